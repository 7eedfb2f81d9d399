# SPDX-License-Identifier: Apache-2.0
"""Recordings of real and simulated runs: read, checked, written; their frames and truth."""
