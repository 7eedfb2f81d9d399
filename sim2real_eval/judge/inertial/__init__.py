# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Error-state judge, a GNSS/INS Kalman filter, and the inputs that it shares with the smoother."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .error_state import ErrorStateJudge
    from .settings import InertialJudge, InertialSettings

__all__ = ['ErrorStateJudge', 'InertialJudge', 'InertialSettings']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'error_state', 'settings')
