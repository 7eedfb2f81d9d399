# SPDX-License-Identifier: Apache-2.0
"""Parameters of sensor models tuned until the judge errs as it does on real recordings."""

from __future__ import annotations

__all__: list[str] = []
