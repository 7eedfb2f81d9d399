# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Search engine of `fit`, `tune` and `sensitivity`."""

from __future__ import annotations

__all__: list[str] = []
