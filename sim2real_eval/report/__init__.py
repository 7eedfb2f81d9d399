# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Tables for the terminal, plots and pages of results."""

from __future__ import annotations

__all__: list[str] = []
