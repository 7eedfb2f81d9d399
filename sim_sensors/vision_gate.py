# SPDX-License-Identifier: Apache-2.0
"""Which poses from tags are accepted."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from sim_sensors.measurements import FloatArray, IntArray
from sim_sensors.parameters import Parameters, parameter

__all__ = ['Gate', 'GateState']


@dataclasses.dataclass(frozen=True)
class Gate(Parameters):
    """Refuses poses that are likely wrong; by default as Team 3176 did [FRC3176].

    Theirs compares a jump with the estimate of the robot, which a sensor does not have; this one
    compares it with the newest pose that was accepted, plus the way that the robot can have gone
    since.
    """

    enabled: bool = parameter(True, '', 'False: every pose is accepted.')
    single_tag_only: bool = parameter(
        True, '', 'True: poses from several tags are accepted whatever they say.'
    )
    max_height: float = parameter(1.0, 'm', 'Largest |z| of the body; 0: any.', minimum=0.0)
    max_distance: float = parameter(
        7.0, 'm', 'Largest mean distance of the tags; 0: any.', minimum=0.0
    )
    max_jump: float = parameter(
        1.0, 'm', 'Largest jump from the newest pose that was accepted; 0: any.', minimum=0.0
    )
    top_speed: float = parameter(
        5.0, 'm/s', 'Speed of the robot, by which the allowed jump grows with time.', minimum=0.0
    )

    def start(self) -> GateState:
        """Return a gate that has seen nothing."""
        return GateState(self)


class GateState:
    """A gate as poses come; it remembers the newest that it accepted."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._newest: tuple[float, FloatArray] | None = None

    def accepted(
        self, times: FloatArray, position: FloatArray, distance: FloatArray, count: IntArray
    ) -> NDArray[np.bool_]:
        """Return which of the next poses are accepted, `(n,)`.

        Parameters
        ----------
        times : (n,)
            s.
        position : (n, 3)
            Measured, m.
        distance : (n,)
            Mean distance of the tags, m.
        count : (n,)
            Tags in view; 0: there is no pose.
        """
        gate = self._gate
        found = count > 0
        if not gate.enabled:
            return found
        asked = count == 1 if gate.single_tag_only else found
        if gate.max_height > 0.0:
            found &= ~asked | (np.abs(position[:, 2]) <= gate.max_height)
        if gate.max_distance > 0.0:
            found &= ~asked | (distance <= gate.max_distance)
        if gate.max_jump > 0.0:
            for k in np.flatnonzero(found):
                found[k] = not asked[k] or self._is_near(float(times[k]), position[k])
                if found[k]:
                    self._newest = float(times[k]), position[k].copy()
        return found

    def _is_near(self, time: float, position: FloatArray) -> bool:
        if self._newest is None:
            return True
        then, place = self._newest
        step = position - place
        jump = float(np.sqrt(step[0] * step[0] + step[1] * step[1] + step[2] * step[2]))
        return jump <= self._gate.max_jump + self._gate.top_speed * (time - then)
