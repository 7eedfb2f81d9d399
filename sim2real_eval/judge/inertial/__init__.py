# SPDX-License-Identifier: Apache-2.0
"""What the judges that integrate the IMU themselves share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core.faces import lazily

if TYPE_CHECKING:
    from sim2real_eval.judge.inertial.settings import InertialJudge, InertialSettings

__all__ = ['InertialJudge', 'InertialSettings']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'settings')
