# SPDX-License-Identifier: Apache-2.0
"""Real judge nodes fed message by message and tick by tick, waiting for what they answer."""

from __future__ import annotations

__all__: list[str] = []
