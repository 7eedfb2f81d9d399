# SPDX-License-Identifier: Apache-2.0
"""What people look at: tables on the console, plots and pages."""

from __future__ import annotations

__all__: list[str] = []
