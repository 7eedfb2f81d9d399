# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""An alpha-beta filter on GPS fixes: position and velocity, constant gains."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim2real_eval.judge import Estimate
from sim2real_eval.recording import Recording
from sim_sensors.core import Parameters, parameter
from sim_sensors.world import LocalFrame


@dataclasses.dataclass(frozen=True)
class AlphaBeta(Parameters):
    """Position and velocity from fixes alone; at rest when it starts."""

    alpha: float = parameter(0.5, '', 'Gain of the position.', minimum=0.0, maximum=1.0)
    beta: float = parameter(0.1, '', 'Gain of the velocity.', minimum=0.0, maximum=2.0)

    def judge(self, recording: Recording) -> Estimate:
        """Return position and velocity, east, north and up, at the stamps of the fixes."""
        fixes = recording.require('gps')
        world = LocalFrame(fixes.latitude[0], fixes.longitude[0], fixes.altitude[0])
        measured = world.to_enu(fixes.latitude, fixes.longitude, fixes.altitude)
        dt = np.diff(fixes.stamp_ns) * 1e-9
        position, velocity = np.zeros_like(measured), np.zeros_like(measured)
        for i in range(1, len(measured)):
            predicted = position[i - 1] + velocity[i - 1] * dt[i - 1]
            innovation = measured[i] - predicted
            position[i] = predicted + self.alpha * innovation
            velocity[i] = velocity[i - 1] + self.beta / dt[i - 1] * innovation
        return Estimate(fixes.stamp_ns, velocity, position=position)
