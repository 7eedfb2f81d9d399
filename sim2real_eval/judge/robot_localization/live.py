# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The embedded judge driven message by message and tick by tick, for a live graph.

It runs the kernels of the batch loop. The same messages and ticks in the same order give the same
bits as `judge()`.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np

from sim2real_eval.common.findings import Finding, JudgeError
from sim2real_eval.judge.estimate import PartCount, part_counts, quaternions_from_angles
from sim2real_eval.recording.metadata import FrameTree
from sim_sensors.core.compiled_rotations import angles_from_matrix, matrix_from_quaternion
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    MessageArray,
    OdometryArray,
    PoseArray,
    TwistArray,
)
from sim_sensors.core.parameters import LARGEST
from .advice import front_end_advice, input_advice, part_advice
from .configuration import NAVSAT_TOPIC, FilterConfig, NavsatConfig
from .filter import dynamics_of
from .fixes import LiveNavsat
from .inputs import check_type, source_messages
from .parts import PartTable, new_memory
from .queue import (
    count_measurements,
    enlarge_history,
    enlarge_queue,
    expire,
    history_ns,
    new_history,
    new_queue,
)
from .replay import deliver, filter_tick, new_scratch, receive_command
from .state import INITIALISED, LAST_NS, NO_STAMP, ROLL, VX, N, Timing, new_filter, new_output

_FIRST_QUEUE = 256


class LiveJudge:
    """ekf_node or ukf_node and, if configured, navsat_transform_node, without clock and transport.

    The caller passes messages and calls the timers. Message arrays hold one message or more with
    one frame, which may change between calls. Published arrays hold one message.

    Parameters
    ----------
    config : FilterConfig
    navsat : NavsatConfig or None
        Parameters of navsat_transform_node or of the immediate front end, whose odometry/gps goes
        to the input with that topic.
    frames : FrameTree
        Static transforms; `set_frames` replaces them.
    correct : set of str
        Deviations of robot_localization that are corrected; see `ReplayOptions`. The poses of a
        differential input count as without orientation until one is not the identity; then
        increments start again.

    Attributes
    ----------
    enabled : bool
        Whether ticks do anything. Measurements wait meanwhile: `disabled_at_startup`, `enable`.
    processing : bool
        Whether measurements are used: `toggle`. Without it the state is published unchanged.
    """

    def __init__(
        self,
        config: FilterConfig,
        navsat: NavsatConfig | None,
        frames: FrameTree,
        correct: Set[str] = frozenset(),
    ) -> None:
        self.config, self.navsat = config, navsat
        self.frames, self.correct = frames, correct
        # A reset keeps both, as in robot_localization.
        self.enabled, self.processing = True, True
        self._navsat = None if navsat is None else LiveNavsat(navsat, config, frames)
        by_navsat = {
            source.name: source.topic == NAVSAT_TOPIC and navsat is not None
            for source in config.sources
        }
        self._layout = PartTable(config, navsat, by_navsat, correct)
        for number in self._layout.navsat_part[self._layout.navsat_part >= 0].tolist():
            if 'differential' in correct and self._layout.parts[number].lacks_attitude(None):
                self._layout.without_attitude(number)
        self._dynamics = dynamics_of(config, textbook='unscented' in correct)
        self._timing = Timing(
            0, 1, 0, 0, 1, 0, 0, int(config.sensor_timeout * 1e9), history_ns(config),
            config.predict_to_current_time, config.permit_corrected_publication,
            np.array([-1, -1], dtype=np.int64),
        )  # fmt: skip
        self._scratch = new_scratch(self._timing)
        self.reset()

    def reset(self) -> None:
        """Forget all messages, like a restarted node."""
        self._memory = new_memory(len(self._layout.parts))
        self._filter = new_filter(self.config.initial_state, self.config.initial_covariance)
        self._discard_measurements()
        self._out = new_output(1, 0, len(self._layout.parts))
        self._last_published = NO_STAMP
        self._estimate: OdometryArray | None = None
        self._placed: dict[str, list[tuple[str, str]]] = {}
        self._oriented: set[int] = set()
        self._latest: dict[str, MessageArray | None] = {}
        self._heading: ImuArray | None = None
        if self._navsat is not None:
            self._navsat.reset()

    def start(self, now_ns: int) -> None:
        """Note the time at which the filter's timer is created, or its node is reset."""
        self._memory.node.tick_ns = self.config.release.previous_tick_ns(now_ns)

    def _discard_measurements(self) -> None:
        self._queue = new_queue(_FIRST_QUEUE)
        self._history = new_history(_FIRST_QUEUE if self._timing.history >= 0 else 0)

    def set_frames(self, frames: FrameTree) -> None:
        """Replace the static transforms for later messages."""
        self.frames = frames
        self._placed.clear()
        if self._navsat is not None:
            self._navsat.set_frames(frames)

    def receive(self, name: str, array: MessageArray) -> None:
        """Receive messages of an input, such as odom0.

        Raises
        ------
        JudgeError
            When no transform connects their frame to base_link or the world, or when they do not
            have the type of the input. The messages are then ignored.
        """
        first, parts = self._layout.of[name]
        if not parts:
            return
        check_type(parts[0].source, parts[0].source.topic, array)
        if 'differential' in self.correct:
            self._find_attitude(name, array)
        frames = self._layout.frames(name, array)
        if self._placed.get(name) != frames:
            self._layout.place(name, array, self.frames)
            self._placed[name] = frames
        self._latest[name] = array
        rows = source_messages(first, parts, array)
        for i in range(len(rows.part)):
            self._deliver(
                int(rows.part[i]), int(rows.stamp_ns[i]), rows.value[i],
                rows.covariances[rows.covariance[i]], bool(rows.has_attitude[i]),
            )  # fmt: skip

    def _deliver(
        self, p: int, stamp_ns: int, value: FloatArray, cov: FloatArray, attitude: bool
    ) -> None:
        """Receive a message part; parameters as in `preparation.prepare`."""
        if self._queue.size.unused == 0:
            self._queue = enlarge_queue(self._queue)
        deliver(
            self._layout.table, self._memory, self._filter, self._queue, self._out.counts, p,
            stamp_ns, value, cov, attitude,
        )  # fmt: skip

    def receive_fix(self, fixes: FixArray) -> list[OdometryArray]:
        """Receive fixes; raises JudgeError like `receive`.

        Returns odometry/gps that is published at once, already delivered to the filter. There is
        none with navsat_transform, which waits for its timer.
        """
        if self._navsat is None:
            return []
        published = self._navsat.receive_fix(fixes, self._filter.x)
        for odometry in published:
            self._pass_on(odometry)
        return published

    def receive_heading(self, imu: ImuArray) -> None:
        """Receive orientations for navsat_transform; raises JudgeError like `receive`."""
        if self._navsat is not None and self._navsat.config.needs_heading:
            self._navsat.receive_heading(imu)
            self._heading = imu

    def receive_command(self, commands: TwistArray) -> None:
        """Receive velocity commands, which act from their stamps; JudgeError if not finite."""
        if len(commands) and self.config.control_mask.any():
            twist = np.append(commands.linear_velocity[-1], commands.angular_velocity[-1])
            if not (np.abs(twist) <= LARGEST).all():
                raise JudgeError('cmd_vel is refused: all numbers must be finite')
            receive_command(self._memory.node, self._filter, int(commands.stamp_ns[-1]), twist)

    def tick(self, now_ns: int) -> OdometryArray | None:
        """Run the filter's timer once; return the published odometry, with the tick as arrival."""
        out = self._out
        out.n[0] = 0
        if self.enabled and self.processing:
            if self._timing.history >= 0:
                self._make_room()
            self._last_published = filter_tick(
                self._layout.table, self._memory, self._filter, self._dynamics, self._timing,
                self._queue, self._history, out, self._last_published, now_ns,
                self._scratch,
            )  # fmt: skip
        elif self.enabled:
            self._hold(now_ns)
        if out.n[0] == 0:
            return None
        x = out.x.copy()
        self._estimate = OdometryArray(
            stamp_ns=out.stamp_ns.copy(),
            arrival_ns=np.array([now_ns]),
            frame=self.config.world_frame,
            child_frame=self.config.base_link_frame,
            position=x[:, :3],
            orientation=quaternions_from_angles(x[:, ROLL:VX]),
            linear_velocity=x[:, VX : VX + 3],
            angular_velocity=x[:, VX + 3 : VX + 6],
            pose_covariance=out.pose_covariance.copy(),
            twist_covariance=out.twist_covariance.copy(),
        )
        # The immediate front end does not subscribe to the odometry.
        if self._navsat is not None and self._navsat.config.has_timer:
            self._navsat.receive_odometry(x[0, :6])
        return self._estimate

    def _hold(self, now_ns: int) -> None:
        """Drop all measurements and publish the state as that of the tick.

        robot_localization's `periodicUpdate` does so while processing is toggled off: neither
        state nor covariance changes, and no process noise is added for that time.
        """
        flt, out, timing = self._filter, self._out, self._timing
        self._queue = new_queue(len(self._queue.slots))
        if not self.initialised:
            return
        flt.times[LAST_NS] = now_ns
        if timing.history >= 0:
            expire(self._history, now_ns - timing.history)
        if now_ns <= self._last_published and not timing.permit_corrected_publication:
            return
        out.n[0], out.stamp_ns[0], out.tick_ns[0] = 1, now_ns, now_ns
        out.x[0], out.pose_covariance[0] = flt.x[:N], flt.P[:6, :6]
        out.twist_covariance[0] = flt.P[VX : VX + 6, VX : VX + 6]
        self._last_published = now_ns

    def _make_room(self) -> None:
        """Enlarge queue and history to hold each other's measurements."""
        queued, saved = int(self._queue.size.queued), count_measurements(self._history)
        while len(self._queue.slots) < queued + saved:
            self._queue = enlarge_queue(self._queue)
        while len(self._history.states) < queued + saved:
            self._history = enlarge_history(self._history)

    def navsat_tick(self) -> OdometryArray | None:
        """Run navsat_transform's timer once; return its odometry/gps, already delivered."""
        if self._navsat is None or not self._navsat.config.has_timer:
            return None
        published = self._navsat.tick()
        if published is not None:
            self._pass_on(published)
        return published

    def _pass_on(self, odometry: OdometryArray) -> None:
        # The orientation is the identity; the twist is zero and so is its covariance.
        pose = np.append(odometry.position[0], odometry.orientation[0])
        values = ((pose, odometry.pose_covariance[0]), (np.zeros(7), np.zeros((6, 6))))
        for p, (value, cov) in zip(self._layout.navsat_part.tolist(), values, strict=True):
            if p >= 0:
                self._deliver(p, int(odometry.stamp_ns[0]), value, cov, False)

    def filtered_fix(self, now_ns: int) -> FixArray | None:
        """Return the gps/filtered of the `navsat_tick` just run at this time, if any."""
        if self._navsat is None or self._estimate is None:
            return None
        return self._navsat.filtered_fix(self._estimate, now_ns)

    def set_pose(self, pose: PoseArray, now_ns: int) -> None:
        """Continue from a given pose and ignore older measurements.

        Queued measurements and previous poses are dropped. As in robot_localization, velocities,
        accelerations and their covariance become zero.

        Parameters
        ----------
        pose : PoseArray
            One message.
        now_ns : int
            Becomes the last measurement time.

        Raises
        ------
        JudgeError
            When no transform connects its frame to the world, or when the pose is invalid: a
            number that is not finite, a quaternion of length 0, a negative variance. The filter
            would not recover from such a pose.
        """
        _check_pose(pose)
        rotation, offset = self.frames.lookup(self.config.world_frame, pose.frame, 'set_pose')
        attitude, angles = np.zeros((3, 3)), np.zeros(3)
        # A copy: compiled code for read-only arrays would be another function.
        matrix_from_quaternion(pose.orientation[-1].copy(), attitude)
        angles_from_matrix(rotation @ attitude, angles)
        turn = np.kron(np.eye(2), rotation)
        x, P = self._filter.x, self._filter.P
        x[:], P[:] = 0.0, 0.0
        x[:6] = np.append(rotation @ pose.position[-1] + offset, angles)
        P[:6, :6] = turn @ pose.pose_covariance[-1] @ turn.T
        self._filter.times[LAST_NS] = now_ns
        self._memory.parts['seen'] = 0
        self._memory.parts['stamp_ns'] = int(pose.stamp_ns[-1]) + 1
        self._discard_measurements()

    @property
    def initialised(self) -> bool:
        """Whether a measurement was processed; before, ticks do nothing."""
        return bool(self._filter.times[INITIALISED])

    @property
    def parts(self) -> tuple[PartCount, ...]:
        """Counts of each part of each input since the start or reset."""
        return part_counts(self._layout.names, self._out.counts, self._layout.table['threshold'])

    def notes(self, past: Sequence[PartCount] = ()) -> list[Finding]:
        """Return findings about the estimate so far, or since the counts of its parts were `past`.

        Counts of before a reset are not possible.
        """
        notes = input_advice(self.config, self.navsat, self._latest, self._heading, self.correct)
        parts = self.parts
        if past:
            parts = tuple(map(PartCount.since, parts, past))
        notes += part_advice(parts)
        notes += self.frames.assumptions
        if self._navsat is not None:
            notes += front_end_advice(
                self.config, self._navsat.config, self._navsat.memory,
                fixes=self._navsat.fixes_seen, used=self._navsat.fixes_used,
            )  # fmt: skip
        return notes

    def _find_attitude(self, name: str, array: MessageArray) -> None:
        first, parts = self._layout.of[name]
        for number, part in enumerate(parts, first):
            if not part.lacks_attitude(array):
                self._oriented.add(number)
            lacks = number not in self._oriented
            if lacks != bool(self._layout.table[number].no_attitude):
                self._layout.table[number].no_attitude = lacks
                self._memory.parts[number].seen[:] = 0
                self._placed.pop(name, None)


def _check_pose(pose: PoseArray) -> None:
    """Raise JudgeError for an invalid pose or covariance."""
    quaternion, covariance = pose.orientation[-1], pose.pose_covariance[-1]
    values = np.concatenate([pose.position[-1], quaternion, covariance.ravel()])
    if not (np.abs(values) <= LARGEST).all():
        problem = f'a number is not finite or larger than {LARGEST:g}'
    elif not 0.9 < np.linalg.norm(quaternion) < 1.1:
        problem = f'its quaternion has the length {np.linalg.norm(quaternion):.3g}; must be 1'
    elif np.linalg.eigvalsh(0.5 * (covariance + covariance.T))[0] < -1e-9 * covariance.trace():
        problem = 'its covariance is not positive semidefinite'
    else:
        return
    raise JudgeError(f'set_pose is refused: {problem}')
