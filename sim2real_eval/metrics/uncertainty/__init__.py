# SPDX-License-Identifier: Apache-2.0
"""How certain a distance between real and simulated runs is."""

from __future__ import annotations

__all__: list[str] = []
