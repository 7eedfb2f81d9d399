# SPDX-License-Identifier: Apache-2.0
"""Distances between the error signatures of real and simulated runs."""
