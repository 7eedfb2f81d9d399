# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Studies with a verb of their own: attitude, wheels, following, preintegration, world."""

from __future__ import annotations

__all__: list[str] = []
