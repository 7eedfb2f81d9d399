# SPDX-License-Identifier: Apache-2.0
"""Drift of wheel odometry, alone and with vision."""

from __future__ import annotations

__all__: list[str] = []
