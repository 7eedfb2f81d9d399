# SPDX-License-Identifier: Apache-2.0
"""Drift of wheel odometry, alone and with vision."""
