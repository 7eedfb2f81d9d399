# SPDX-License-Identifier: Apache-2.0
"""What the front ends driven message by message share: mountings, and fixes as they come."""

from __future__ import annotations

from collections.abc import Iterator

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
from sim2real_eval.judge.navsat_configuration import NavsatConfig
from sim_sensors.measurements import FixArray

__all__ = ['LiveFrontEnd']


class LiveFrontEnd:
    """Runs the kernels of the batch loop on fixes one by one; without clock and transport.

    Parameters
    ----------
    config : NavsatConfig
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
        self._memory = kernels.new_navsat_state()
        self._plane: Plane | None = None
        self._placed: dict[str, str] = {}
        self.fixes_seen = 0

    def set_frames(self, frames: FrameTree) -> None:
        """Replace the static transforms; they apply to what arrives from now on."""
        self._frames = frames
        self._placed.clear()

    def _entered(self, fixes: FixArray) -> Iterator[None]:
        """Enter the valid fixes one after another, and have the caller take each.

        Raises
        ------
        JudgeError
            When nothing connects their frame to base_link.
        """
        valid = valid_fixes(fixes)
        if len(valid) and self._placed.get('fix') != fixes.frame:
            place_antenna(self._navsat, self.config, fixes.frame, self._base, self._frames)
            self._placed['fix'] = fixes.frame
        for number in range(len(valid)):
            fix = valid.take([number])
            self._plane = self._plane or plane_of(self.config, fix)
            enter_fixes(self._navsat, fix, self._plane)
            self.fixes_seen += 1
            yield
