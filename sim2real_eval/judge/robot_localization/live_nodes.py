# SPDX-License-Identifier: Apache-2.0
"""Filter and front ends of the embedded judge, driven message by message and tick by tick."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sim2real_eval.judge.estimate import (
    GpsPosition,
    LiveEstimate,
    PartCount,
    part_counts,
    quaternions,
)
from sim2real_eval.judge.robot_localization import navsat as kernels
from sim2real_eval.judge.robot_localization.configuration import FilterConfig, NavsatConfig
from sim2real_eval.judge.robot_localization.filter import dynamics_of
from sim2real_eval.judge.robot_localization.fixes import (
    FilteredGps,
    Plane,
    enter_fixes,
    new_navsat,
    no_fixes,
    place_antenna,
    place_heading,
    plane_of,
)
from sim2real_eval.judge.robot_localization.navsat import locate
from sim2real_eval.judge.robot_localization.parts import PartName, Parts, new_part_state
from sim2real_eval.judge.robot_localization.queue import (
    grown,
    history_ns,
    larger_history,
    measurements,
    new_history,
    new_queue,
)
from sim2real_eval.judge.robot_localization.replay import (
    deliver,
    filter_tick,
    new_output,
    receive_command,
)
from sim2real_eval.judge.robot_localization.state import (
    INITIALISED,
    LAST_NS,
    NO_STAMP,
    ROLL,
    VX,
    N,
    new_filter,
)
from sim2real_eval.judge.robot_localization.timers import Timing
from sim2real_eval.recording.frames import FrameTree
from sim2real_eval.recording.truth_frame import valid_fixes
from sim_sensors.core.measurements import FixArray, FloatArray, ImuArray

_FIRST_QUEUE = 256


class LiveFilter:
    """Runs the kernels of the batch loop on the state of ekf_node or ukf_node.

    Parameters
    ----------
    config : FilterConfig
    parts : Parts
        Configuration of all parts, which the owner may change from one message to the next.
    names : sequence of PartName
        Of the parts.
    textbook : bool
        Whether an unscented filter is the textbook's.
    """

    def __init__(
        self, config: FilterConfig, parts: Parts, names: Sequence[PartName], *, textbook: bool
    ) -> None:
        self.config = config
        self._parts = parts
        self._names = names
        self._dynamics = dynamics_of(config, textbook=textbook)
        self._scratch = (np.zeros(N, dtype=np.int64), np.zeros(N), np.zeros((N, N)))
        self._timing = Timing(
            0, 1, 0, 0, 1, 0, 0, int(config.sensor_timeout * 1e9), history_ns(config),
            config.predict_to_current_time, config.permit_corrected_publication,
            np.array([-1, -1], dtype=np.int64),
        )  # fmt: skip
        self.reset()

    def reset(self) -> None:
        """Forget every message, as a node that has just been started."""
        self._memory = new_part_state(len(self._names), NO_STAMP)
        self._filter = new_filter(self.config.initial_state, self.config.initial_covariance)
        self._discard_measurements()
        self._out = new_output(1, 0, len(self._names))
        self._last_published = NO_STAMP

    def _discard_measurements(self) -> None:
        self._queue = new_queue(_FIRST_QUEUE)
        self._history = new_history(_FIRST_QUEUE if self._timing.history >= 0 else 0)

    def warm_up(self) -> None:
        """Run the compiled kernels once, on what has to be reset afterwards."""
        if self._names:
            self.deliver(0, 0, np.zeros(7), np.zeros((6, 6)), False)
        self.tick(1)

    @property
    def x(self) -> FloatArray:
        """State now, (15,)."""
        return self._filter.x

    @property
    def initialised(self) -> bool:
        """Whether a measurement was processed; before, ticks do nothing."""
        return bool(self._filter.times[INITIALISED])

    @property
    def counts(self) -> tuple[PartCount, ...]:
        """What became of each part of each input since the start or reset."""
        return part_counts(self._names, self._out.counts, self._parts.threshold)

    def deliver(
        self, p: int, stamp_ns: int, value: FloatArray, cov: FloatArray, attitude: bool
    ) -> None:
        """Take a message part; parameters as in `preparation.prepare`."""
        if self._queue.size[1] == 0:
            self._queue = grown(self._queue)
        deliver(
            self._parts, self._memory, self._filter, self._queue, self._out.counts, p, stamp_ns,
            value, cov, attitude,
        )  # fmt: skip

    def command(self, stamp_ns: int, twist: FloatArray) -> None:
        """Take a velocity command, linear and angular, (6,), which acts from its stamp."""
        receive_command(self._memory, self._filter, stamp_ns, twist)

    def tick(self, now_ns: int) -> LiveEstimate | None:
        """Run the timer once; return what it publishes."""
        self._out.n[0] = 0
        if self._timing.history >= 0:
            self._make_room()
        self._last_published = filter_tick(
            self._parts, self._memory, self._filter, self._dynamics, self._timing, self._queue,
            self._history, self._out, self._last_published, now_ns, *self._scratch,
        )  # fmt: skip
        if self._out.n[0] == 0:
            return None
        x = self._out.x[0]
        return LiveEstimate(
            stamp_ns=int(self._out.stamp_ns[0]),
            tick_ns=now_ns,
            position=x[:3].copy(),
            orientation=quaternions(x[None, ROLL:VX])[0],
            linear_velocity=x[VX : VX + 3].copy(),
            angular_velocity=x[VX + 3 : VX + 6].copy(),
            pose_covariance=self._out.pose_covariance[0].copy(),
            twist_covariance=self._out.twist_covariance[0].copy(),
        )

    @property
    def published_pose(self) -> FloatArray:
        """Position and roll, pitch, yaw of what was published last, (6,)."""
        return self._out.x[0, :6]

    def begin_increments_anew(self, p: int) -> None:
        """Forget the previous pose of a differential part."""
        self._memory.seen[p] = 0

    def continue_from(
        self, pose: FloatArray, covariance: FloatArray, stamp_ns: int, now_ns: int
    ) -> None:
        """Continue from a pose at rest; what is older is not taken any more.

        Parameters
        ----------
        pose : (6,) float
            Position and roll, pitch, yaw in the world.
        covariance : (6, 6) float
            Of the pose; that of velocities and accelerations becomes zero, as they do.
        stamp_ns : int
            Of the pose.
        now_ns : int
            Becomes the last measurement time.
        """
        x, P = self._filter.x, self._filter.P
        x[:], P[:] = 0.0, 0.0
        x[:6], P[:6, :6] = pose, covariance
        self._filter.times[LAST_NS] = now_ns
        self._memory.seen[:] = 0
        self._memory.stamp_ns[:] = stamp_ns + 1
        self._discard_measurements()

    def _make_room(self) -> None:
        """Let all that may go back into the queue, or from it into the history, have its place."""
        queued, kept = int(self._queue.size[0]), measurements(self._history)
        while len(self._queue.heap) < queued + kept:
            self._queue = grown(self._queue)
        while len(self._history.state_ns) < queued + kept:
            self._history = larger_history(self._history)


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


# The plain front end driven message by message: fixes in, positions out at once.


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


# navsat_transform_node driven message by message: fixes and odometry in, positions out.


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
