# SPDX-License-Identifier: Apache-2.0
"""The embedded judge driven message by message and tick by tick, for a live graph.

It runs the kernels of the batch loop on the same state, so that the same messages and ticks in
the same order give the same bits as `judge()`.
"""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from sim2real_eval.judge.advice import enu_advice, input_advice, navsat_advice, part_advice
from sim2real_eval.judge.configuration import NAVSAT_TOPIC, FilterConfig
from sim2real_eval.judge.filter import (
    INITIALISED,
    LAST_NS,
    NO_STAMP,
    dynamics_of,
    new_filter,
)
from sim2real_eval.judge.frames import FrameTree
from sim2real_eval.judge.history import (
    history_ns,
    larger_history,
    measurements,
    new_history,
)
from sim2real_eval.judge.inputs import (
    check_type,
    child_frame,
    gps_kind,
    lacks_attitude,
    part_frame,
    source_blocks,
)
from sim2real_eval.judge.judged import Estimate, GpsPosition, PartCount, part_counts, quaternions
from sim2real_eval.judge.live_enu import LiveEnu
from sim2real_eval.judge.live_navsat import LiveNavsat
from sim2real_eval.judge.navsat_configuration import NavsatConfig
from sim2real_eval.judge.output import new_output
from sim2real_eval.judge.part_table import (
    Part,
    new_parts,
    part_names,
    parts_of,
    place,
    without_attitude,
)
from sim2real_eval.judge.preparation import new_memory
from sim2real_eval.judge.queue import grown, new_queue
from sim2real_eval.judge.replay import Timing, deliver, filter_tick, see_command
from sim2real_eval.judge.rotations import angles_from_matrix, matrix_from_quaternion
from sim2real_eval.judge.state import ROLL, VX, N
from sim_sensors.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    MessageArray,
    PoseArray,
    TwistArray,
)

__all__ = ['LiveJudge']

_FIRST_QUEUE = 256


class LiveJudge:
    """ekf_node or ukf_node and, if configured, navsat_transform_node, without clock and transport.

    The caller says what arrives and when timers tick. Message arrays hold one message or more, of
    one frame; a frame that changes later is looked up again.

    Parameters
    ----------
    config : FilterConfig
    navsat : NavsatConfig or None
        navsat_transform_node's, or the plain front end's, whose odometry/gps then goes to the
        input that names that topic.
    frames : FrameTree
        Static transforms; `set_frames` replaces them.
    correct : set of str
        Oddities of robot_localization that are mended; see `Case`. Whether the poses of a
        differential input have an orientation shows only as they come: they have none until one
        is not the identity, from which increments begin anew.
    """

    def __init__(
        self,
        config: FilterConfig,
        navsat: NavsatConfig | None,
        frames: FrameTree,
        correct: Set[str] = frozenset(),
    ) -> None:
        self.config = config
        self.navsat = navsat
        self.frames = frames
        self.correct = correct
        base = config.base_link_frame
        self._gps: LiveNavsat | None = None
        self._enu: LiveEnu | None = None
        if navsat is not None and navsat.timed:
            self._gps = LiveNavsat(navsat, base, frames)
        elif navsat is not None:
            self._enu = LiveEnu(navsat, base, frames)
        parts: list[Part] = []
        self._of: dict[str, tuple[int, list[Part]]] = {}
        self._navsat_parts: tuple[int, ...] = ()
        for source in config.sources:
            if source.topic == NAVSAT_TOPIC and navsat is not None:
                own = parts_of(source, gps_kind(navsat))
                self._navsat_parts = tuple(range(len(parts), len(parts) + len(own)))
            else:
                own = parts_of(source, source.kind)
                self._of[source.name] = (len(parts), own)
            parts += own
        self._names = part_names(parts)
        self._parts = new_parts(parts, config, correct)
        for number in self._navsat_parts:
            if 'differential' in correct and lacks_attitude(parts[number], None):
                without_attitude(self._parts, number, parts[number])
        self._dynamics = dynamics_of(config, textbook='unscented' in correct)
        self._scratch = (np.zeros(N, dtype=np.int64), np.zeros(N), np.zeros((N, N)))
        self._timing = Timing(
            0, 1, 0, 0, 1, 0, 0, int(config.sensor_timeout * 1e9), history_ns(config),
            config.predict_to_current_time, config.permit_corrected_publication,
            np.array([-1, -1], dtype=np.int64),
        )  # fmt: skip
        self.reset()

    def reset(self) -> None:
        """Forget every message, as a node that has just been started."""
        self._memory = new_memory(len(self._names), NO_STAMP)
        self._filter = new_filter(self.config.initial_state, self.config.initial_covariance)
        self._forget_measurements()
        self._out = new_output(1, 0, len(self._names))
        self._last_published = NO_STAMP
        self._estimate: Estimate | None = None
        self._placed: dict[str, tuple[tuple[str, str], ...]] = {}
        self._oriented: set[int] = set()
        self._latest: dict[str, MessageArray | None] = {}
        self._heading: ImuArray | None = None
        for front_end in (self._gps, self._enu):
            if front_end is not None:
                front_end.reset()

    def warm_up(self) -> None:
        """Load the compiled kernels, or compile them after an update (half a minute), and reset.

        Without it the first message or tick does so, and others are lost meanwhile.
        """
        if len(self._names):
            self._deliver(0, 0, np.zeros(7), np.zeros((6, 6)), False)
        self.tick(1)
        for front_end in (self._gps, self._enu):
            if front_end is not None:
                front_end.warm_up()
        self.reset()

    def set_frames(self, frames: FrameTree) -> None:
        """Replace the static transforms; they apply to what arrives from now on."""
        self.frames = frames
        self._placed.clear()
        for front_end in (self._gps, self._enu):
            if front_end is not None:
                front_end.set_frames(frames)

    def receive(self, name: str, array: MessageArray) -> None:
        """Take messages of an input, such as odom0.

        Raises
        ------
        JudgeError
            When nothing connects their frame to base_link or the world (they are then left out),
            or when they are of another type than the input.
        """
        first, own = self._of[name]
        if not own:
            return
        check_type(own[0].source, array)
        config = self.config
        if 'differential' in self.correct:
            self._look_for_attitude(name, array)
        frames = tuple(
            (part_frame(part, array, config), child_frame(part, array, config)) for part in own
        )
        if self._placed.get(name) != frames:
            for number, (part, (frame, child)) in enumerate(zip(own, frames, strict=True), first):
                place(self._parts, number, part, frame, config, self.frames, child)
            self._placed[name] = frames
        self._latest[name] = array
        covariances: list[FloatArray] = [np.zeros((1, 6, 6))]
        for block in source_blocks(own, first, array, covariances):
            matrices = np.concatenate(covariances)
            for i in range(len(block.part)):
                self._deliver(
                    int(block.part[i]), int(block.stamp_ns[i]), block.value[i],
                    matrices[block.covariance[i]], bool(block.has_attitude[i]),
                )  # fmt: skip

    def see_fix(self, fixes: FixArray) -> list[GpsPosition]:
        """Take fixes; raises JudgeError like `receive`.

        Returns what is published at once, already delivered: nothing with navsat_transform, which
        waits for its timer.
        """
        if self._gps is not None:
            self._gps.see_fix(fixes)
        if self._enu is None:
            return []
        found = self._enu.see_fix(fixes, self._filter.x)
        for position in found:
            self._pass_on(position)
        return found

    def see_heading(self, imu: ImuArray) -> None:
        """Take orientations for navsat_transform; raises JudgeError like `receive`."""
        if self.navsat is None or not self.navsat.needs_heading:
            return
        if self._gps is not None:
            self._gps.see_heading(imu)
            self._heading = imu

    def see_command(self, commands: TwistArray) -> None:
        """Take velocity commands, which act from their stamps."""
        if len(commands) and self.config.control_mask.any():
            twist = np.append(commands.linear_velocity[-1], commands.angular_velocity[-1])
            see_command(self._memory, self._filter, int(commands.stamp_ns[-1]), twist)

    def tick(self, now_ns: int) -> Estimate | None:
        """Run the filter's timer once; return what it publishes."""
        self._out.n[0] = 0
        if self._timing.history >= 0:
            self._make_room()
        self._last_published = filter_tick(
            self._parts, self._memory, self._filter, self._dynamics, self._timing, self._queue,
            self._history, self._out, self._last_published, now_ns, *self._scratch,
        )  # fmt: skip
        if self._out.n[0] == 0:
            return None
        x, stamp_ns = self._out.x[0], int(self._out.stamp_ns[0])
        if self._gps is not None:
            self._gps.see_odometry(x[:6])
        self._estimate = Estimate(
            stamp_ns=stamp_ns,
            tick_ns=now_ns,
            position=x[:3].copy(),
            orientation=quaternions(x[None, ROLL:VX])[0],
            linear_velocity=x[VX : VX + 3].copy(),
            angular_velocity=x[VX + 3 : VX + 6].copy(),
            pose_covariance=self._out.pose_covariance[0].copy(),
            twist_covariance=self._out.twist_covariance[0].copy(),
        )
        return self._estimate

    def navsat_tick(self) -> GpsPosition | None:
        """Run navsat_transform's timer once; return what it publishes, already delivered."""
        found = None if self._gps is None else self._gps.tick()
        if found is not None:
            self._pass_on(found)
        return found

    def _pass_on(self, found: GpsPosition) -> None:
        # The orientation is the identity; the twist is zero and so is its covariance.
        pose = np.concatenate([found.position, [0.0, 0.0, 0.0, 1.0]])
        values = ((pose, found.covariance), (np.zeros(7), np.zeros((6, 6))))
        for p in self._navsat_parts:
            value, cov = values[int(self._parts.kind[p])]
            self._deliver(p, found.stamp_ns, value, cov, False)

    def filtered_fix(self, now_ns: int) -> FixArray | None:
        """Return the gps/filtered of the `navsat_tick` just run at this time, if there is one."""
        gps, estimate = self._gps, self._estimate
        if gps is None or estimate is None:
            return None
        return gps.filtered_fix(
            estimate.stamp_ns, now_ns, estimate.position, estimate.pose_covariance
        )

    def set_pose(self, pose: PoseArray, now_ns: int) -> None:
        """Continue from a given pose, at rest and sure of it; what is older is not taken any more.

        Queued measurements and previous poses are dropped. The velocities and accelerations
        become zero, and so does their covariance, as in robot_localization.

        Parameters
        ----------
        pose : PoseArray
            One message.
        now_ns : int
            Becomes the last measurement time.

        Raises
        ------
        JudgeError
            When nothing connects its frame to the world.
        """
        rotation, offset = self.frames.lookup(self.config.world_frame, pose.frame, 'set_pose')
        attitude, angles = np.zeros((3, 3)), np.zeros(3)
        matrix_from_quaternion(pose.orientation[-1], attitude)
        angles_from_matrix(rotation @ attitude, angles)
        turn = np.kron(np.eye(2), rotation)
        x, P = self._filter.x, self._filter.P
        x[:], P[:] = 0.0, 0.0
        x[:3] = rotation @ pose.position[-1] + offset
        x[3:6] = angles
        P[:6, :6] = turn @ pose.pose_covariance[-1] @ turn.T
        self._filter.times[LAST_NS] = now_ns
        self._memory.seen[:] = 0
        self._memory.stamp_ns[:] = int(pose.stamp_ns[-1]) + 1
        self._forget_measurements()

    @property
    def initialised(self) -> bool:
        """Whether a measurement was processed; before, ticks do nothing."""
        return bool(self._filter.times[INITIALISED])

    @property
    def parts(self) -> tuple[PartCount, ...]:
        """What became of each part of each input since the start or reset."""
        return part_counts(self._names, self._out.counts, self._parts.threshold)

    def notes(self) -> list[str]:
        """Say what the user should know about the estimate so far, one line each."""
        found = input_advice(self.config, self.navsat, self._latest, self._heading, self.correct)
        found += part_advice(self.parts)
        if self.frames.assumed:
            pairs = ', '.join(f'{source} = {target}' for target, source in self.frames.assumed)
            found.append(f'no static transforms: frames assumed equal: {pairs}')
        gps = self._gps
        if self._enu is not None:
            found += enu_advice(self.config, self._enu.config, self._enu.fixes_seen)
        if gps is not None:
            found += navsat_advice(
                gps.fixes_seen, gps.fixes_used, gps.lost, gps.early, gps.config.frequency
            )
        return found

    def _look_for_attitude(self, name: str, array: MessageArray) -> None:
        first, own = self._of[name]
        for number, part in enumerate(own, first):
            if number not in self._oriented and not lacks_attitude(part, array):
                self._oriented.add(number)
            lacks = number not in self._oriented
            if lacks != bool(self._parts.no_attitude[number]):
                self._parts.no_attitude[number] = lacks
                self._memory.seen[number] = 0
                self._placed.pop(name, None)

    def _forget_measurements(self) -> None:
        self._queue = new_queue(_FIRST_QUEUE)
        self._history = new_history(_FIRST_QUEUE if self._timing.history >= 0 else 0)

    def _make_room(self) -> None:
        """Let all that may go back into the queue, or from it into the history, have its place."""
        queued, kept = int(self._queue.size[0]), measurements(self._history)
        while len(self._queue.heap) < queued + kept:
            self._queue = grown(self._queue)
        while len(self._history.state_ns) < queued + kept:
            self._history = larger_history(self._history)

    def _deliver(
        self, p: int, stamp_ns: int, value: FloatArray, cov: FloatArray, attitude: bool
    ) -> None:
        if self._queue.size[1] == 0:
            self._queue = grown(self._queue)
        deliver(
            self._parts, self._memory, self._filter, self._queue, self._out.counts, p, stamp_ns,
            value, cov, attitude,
        )  # fmt: skip
