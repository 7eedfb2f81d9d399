# SPDX-License-Identifier: Apache-2.0
"""The plain front end driven message by message: fixes in, positions out at once."""

from __future__ import annotations

import numpy as np

from sim2real_eval.judge import navsat as kernels
from sim2real_eval.judge.fixes import (
    Plane,
    enter_fixes,
    new_navsat,
    place_antenna,
    plane_of,
    valid_fixes,
)
from sim2real_eval.judge.frames import FrameTree
from sim2real_eval.judge.judged import GpsPosition
from sim2real_eval.judge.navsat_configuration import NavsatConfig
from sim2real_eval.judge.plain_enu import locate
from sim_sensors.measurements import FixArray, FloatArray

__all__ = ['LiveEnu']


class LiveEnu:
    """Runs the kernel of the batch loop on fixes one by one; without clock and transport.

    Parameters
    ----------
    config : NavsatConfig
        Of the front end enu.
    base_link_frame : str
        Frame whose position the fixes are turned into.
    frames : FrameTree
        Static transforms; `set_frames` replaces them.
    """

    def __init__(self, config: NavsatConfig, base_link_frame: str, frames: FrameTree) -> None:
        self.config = config
        self._base = base_link_frame
        self._frames = frames
        self.reset()

    def reset(self) -> None:
        """Forget every message, as a node that has just been started."""
        self._navsat = new_navsat(self.config, 1)
        self._memory = kernels.new_navsat_memory()
        self._plane: Plane | None = None
        self._placed = ''
        self.fixes_seen = 0

    def warm_up(self) -> None:
        """Load the compiled kernel, or compile it after an update, and reset."""
        locate(self._navsat, self._memory, np.zeros(15), 0, np.zeros(3), np.zeros((6, 6)))
        self.reset()

    def set_frames(self, frames: FrameTree) -> None:
        """Replace the static transforms; they apply to what arrives from now on."""
        self._frames = frames
        self._placed = ''

    def see_fix(self, fixes: FixArray, x: FloatArray) -> list[GpsPosition]:
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
        valid = valid_fixes(fixes)
        found = []
        if len(valid) and self._placed != fixes.frame:
            place_antenna(self._navsat, self.config, fixes.frame, self._base, self._frames)
            self._placed = fixes.frame
        for number in range(len(valid)):
            fix = valid.take([number])
            self._plane = self._plane or plane_of(self.config, fix)
            enter_fixes(self._navsat, fix, self._plane)
            position, covariance = np.zeros(3), np.zeros((6, 6))
            locate(self._navsat, self._memory, x, 0, position, covariance)
            found.append(GpsPosition(int(self._navsat.stamp_ns[0]), position, covariance))
        self.fixes_seen += len(valid)
        return found
