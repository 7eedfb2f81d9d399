# SPDX-License-Identifier: Apache-2.0
"""What motions in closed form have alike: they begin at 0 and last as long as they are told."""

from __future__ import annotations

import dataclasses

from sim_sensors.parameters import Parameters, parameter

__all__ = ['TimedMotion']


@dataclasses.dataclass(frozen=True)
class TimedMotion(Parameters):
    """Base of the motions that are parameter sets themselves."""

    duration: float = parameter(
        20.0, 's', 'Duration of the motion.', minimum=0.0, minimum_excluded=True
    )

    @property
    def start(self) -> float:
        """First time, 0 s."""
        return 0.0

    @property
    def end(self) -> float:
        """Last time, s."""
        return self.duration
