# SPDX-License-Identifier: Apache-2.0
"""The error-state judge: a GNSS/INS Kalman filter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core.faces import lazily

if TYPE_CHECKING:
    from sim2real_eval.judge.error_state.error_state import ErrorStateJudge

__all__ = ['ErrorStateJudge']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'error_state')
