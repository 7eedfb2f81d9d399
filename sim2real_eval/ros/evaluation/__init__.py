# SPDX-License-Identifier: Apache-2.0
"""What evaluation_node is made of: sensors, passes and the tally."""

from __future__ import annotations

__all__: list[str] = []
