# SPDX-License-Identifier: Apache-2.0
"""What the front ends driven message by message share: mountings, and fixes as they come."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sim2real_eval.judge.estimate import GpsPosition
from sim2real_eval.judge.robot_localization import navsat as kernels
from sim2real_eval.judge.robot_localization.fixes import (
    Plane,
    enter_fixes,
    locate,
    new_navsat,
    place_antenna,
    place_heading,
    plane_of,
)
from sim2real_eval.judge.robot_localization.navsat_configuration import NavsatConfig
from sim2real_eval.judge.robot_localization.output import FilteredGps, no_fixes
from sim2real_eval.recording.frames import FrameTree
from sim2real_eval.recording.truth_frame import valid_fixes
from sim_sensors.core.measurements import FixArray, FloatArray, ImuArray

__all__ = ['LiveEnu', 'LiveFrontEnd', 'LiveNavsat']


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


# -------- The plain front end driven message by message: fixes in, positions out at once.


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


# -------- navsat_transform_node driven message by message: fixes and odometry in, positions out.


class LiveNavsat(LiveFrontEnd):
    """navsat_transform_node without clock and transport; see `LiveFrontEnd`."""

    def reset(self) -> None:
        """Forget every message, as a node that has just been started."""
        super().reset()
        # A datum is enough; without one it takes the first fix.
        if self.config.datum is not None:
            self._plane = plane_of(self.config, no_fixes())
        self.fixes_used = 0

    def warm_up(self) -> None:
        """Load the compiled kernels, or compile them after an update, and reset."""
        kernels.receive_fix(self._navsat, self._memory, 0)
        self._navsat.stamp_ns[0] = 1
        kernels.receive_heading(self._navsat, self._memory, np.array([0.0, 0.0, 0.0, 1.0]))
        self.receive_odometry(np.zeros(6))
        self.tick()
        self.tick()
        self.reset()

    def receive_fix(self, fixes: FixArray) -> None:
        """Take fixes; JudgeError when nothing connects their frame to base_link."""
        for _ in self._entered(fixes):
            kernels.receive_fix(self._navsat, self._memory, 0)

    def receive_heading(self, imu: ImuArray) -> None:
        """Take orientations; JudgeError when nothing connects their frame to base_link."""
        if self._placed.get('imu') != imu.frame:
            place_heading(self._navsat, imu.frame, self._base, self._frames)
            self._placed['imu'] = imu.frame
        for q in imu.orientation:
            kernels.receive_heading(self._navsat, self._memory, q)

    def receive_odometry(self, pose: FloatArray) -> None:
        """Take a filtered odometry: position with roll, pitch, yaw, (6,)."""
        kernels.receive_odometry(self._navsat, self._memory, pose)

    def tick(self) -> GpsPosition | None:
        """Run the timer once; return what is published."""
        position, covariance = np.zeros(3), np.zeros((6, 6))
        fix = kernels.tick(self._navsat, self._memory, position, covariance)
        if fix < 0:
            return None
        self.fixes_used += 1
        return GpsPosition(int(self._navsat.stamp_ns[0]), position, covariance)

    def filtered_fix(
        self, stamp_ns: int, tick_ns: int, position: FloatArray, covariance: FloatArray
    ) -> FixArray | None:
        """Return the gps/filtered of the last tick; None when that publishes none.

        Parameters
        ----------
        stamp_ns, tick_ns : int
            Stamp of the latest filtered odometry, and the time of the tick.
        position : (3,) float
            Its position.
        covariance : (6, 6) float
            Of its pose.
        """
        if self._plane is None or not kernels.publishes_filtered_gps(self._memory):
            return None
        found = FilteredGps(
            self._memory, self._plane, self._base, np.array([stamp_ns]), np.array([tick_ns]),
            position[None], covariance[None, :3, :3],
        )  # fmt: skip
        return found.fixes()

    @property
    def lost(self) -> int:
        """How many fixes a newer one overtook after the transform was fixed."""
        return kernels.lost_fixes(self._memory)

    @property
    def early(self) -> int:
        """How many fixes came before a given datum was there to refer them to."""
        return kernels.early_fixes(self._memory)
