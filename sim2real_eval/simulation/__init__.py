# SPDX-License-Identifier: Apache-2.0
"""Simulated twins of recordings, and stand-ins for recordings."""
