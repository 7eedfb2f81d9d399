# SPDX-License-Identifier: Apache-2.0
"""Signals of real sensors against those of simulated ones, each against its own truth."""
