# SPDX-License-Identifier: Apache-2.0
"""Results held against limits and earlier results, for CI."""

from __future__ import annotations

__all__: list[str] = []
