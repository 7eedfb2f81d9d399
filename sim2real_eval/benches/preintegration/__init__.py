# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Preintegration of an IMU and Monte Carlo runs of scenarios, as in GTSAM."""

from __future__ import annotations

__all__: list[str] = []
