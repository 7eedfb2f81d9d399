# SPDX-License-Identifier: Apache-2.0
"""What the launch files share: their arguments, each described once, and their nodes."""

from __future__ import annotations

__all__: list[str] = []
