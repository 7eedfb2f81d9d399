# SPDX-License-Identifier: Apache-2.0
"""The plain front end driven message by message: fixes in, positions out at once."""

from __future__ import annotations

import numpy as np

from sim2real_eval.judge.judged import GpsPosition
from sim2real_eval.judge.live_front_end import LiveFrontEnd
from sim2real_eval.judge.plain_enu import locate
from sim_sensors.measurements import FixArray, FloatArray

__all__ = ['LiveEnu']


class LiveEnu(LiveFrontEnd):
    """The plain front end, of a `config` of the front end enu; see `LiveFrontEnd`."""

    def warm_up(self) -> None:
        """Load the compiled kernel, or compile it after an update, and reset."""
        locate(self._navsat, self._memory, np.zeros(15), 0, np.zeros(3), np.zeros((6, 6)))
        self.reset()

    def receive_fix(self, fixes: FixArray, x: FloatArray) -> list[GpsPosition]:
        """Return the position of every valid fix.

        Parameters
        ----------
        fixes : FixArray
        x : (15,) float
            State of the filter now.

        Raises
        ------
        JudgeError
            When nothing connects their frame to base_link.
        """
        found = []
        for _ in self._entered(fixes):
            position, covariance = np.zeros(3), np.zeros((6, 6))
            locate(self._navsat, self._memory, x, 0, position, covariance)
            found.append(GpsPosition(int(self._navsat.stamp_ns[0]), position, covariance))
        return found
