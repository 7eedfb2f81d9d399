# SPDX-License-Identifier: Apache-2.0
"""navsat_transform_node driven message by message: fixes and odometry in, positions out."""

from __future__ import annotations

import numpy as np

from sim2real_eval.judge import navsat as kernels
from sim2real_eval.judge.filtered_gps import FilteredGps, no_fixes
from sim2real_eval.judge.fixes import place_heading, plane_of
from sim2real_eval.judge.judged import GpsPosition
from sim2real_eval.judge.live_front_end import LiveFrontEnd
from sim_sensors.measurements import FixArray, FloatArray, ImuArray

__all__ = ['LiveNavsat']


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
