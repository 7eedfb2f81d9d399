# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The `sim2real` command: thin verbs over the library."""

from __future__ import annotations

__all__: list[str] = []
