# SPDX-License-Identifier: Apache-2.0
"""Checks of recordings before they are used: units, axes, clocks, covariances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .checks import CHECKS, check
    from .outcome import Preflight

__all__ = ['CHECKS', 'Preflight', 'check']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'checks', 'outcome')
