# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Parts of evaluation_node: sensors, passes and the tally."""

from __future__ import annotations

__all__: list[str] = []
