# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""ROS 2 nodes of the judge."""

from __future__ import annotations

__all__: list[str] = []
