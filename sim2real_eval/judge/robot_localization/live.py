# SPDX-License-Identifier: Apache-2.0
"""The embedded judge driven message by message and tick by tick, for a live graph.

It runs the kernels of the batch loop on the same state, so that the same messages and ticks in
the same order give the same bits as `judge()`.
"""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from sim2real_eval.common.findings import Finding
from sim2real_eval.judge.estimate import GpsPosition, LiveEstimate, PartCount
from sim2real_eval.judge.robot_localization.advice import (
    enu_advice,
    input_advice,
    navsat_advice,
    part_advice,
)
from sim2real_eval.judge.robot_localization.configuration import (
    NAVSAT_TOPIC,
    FilterConfig,
    NavsatConfig,
)
from sim2real_eval.judge.robot_localization.inputs import (
    check_type,
    child_frame,
    gps_kind,
    lacks_attitude,
    part_frame,
    source_blocks,
)
from sim2real_eval.judge.robot_localization.live_nodes import LiveEnu, LiveFilter, LiveNavsat
from sim2real_eval.judge.robot_localization.parts import (
    Part,
    new_parts,
    part_names,
    parts_of,
    place,
    without_attitude,
)
from sim2real_eval.recording.frames import FrameTree
from sim_sensors.core.compiled_rotations import angles_from_matrix, matrix_from_quaternion
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    MessageArray,
    PoseArray,
    TwistArray,
)


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
        Deviations of robot_localization that are corrected; see `ReplayOptions`. Whether the poses
        of a differential input have an orientation shows only as they come: they have none until
        one is not the identity, from which increments begin anew.
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
        self._parts = new_parts(parts, config, correct)
        for number in self._navsat_parts:
            if 'differential' in correct and lacks_attitude(parts[number], None):
                without_attitude(self._parts, number, parts[number])
        self._filter = LiveFilter(
            config, self._parts, part_names(parts), textbook='unscented' in correct
        )
        self.reset()

    def reset(self) -> None:
        """Forget every message, as a node that has just been started."""
        self._filter.reset()
        self._estimate: LiveEstimate | None = None
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
        self._filter.warm_up()
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
            self._find_attitude(name, array)
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
                self._filter.deliver(
                    int(block.part[i]), int(block.stamp_ns[i]), block.value[i],
                    matrices[block.covariance[i]], bool(block.has_attitude[i]),
                )  # fmt: skip

    def receive_fix(self, fixes: FixArray) -> list[GpsPosition]:
        """Take fixes; raises JudgeError like `receive`.

        Returns what is published at once, already delivered: nothing with navsat_transform, which
        waits for its timer.
        """
        if self._gps is not None:
            self._gps.receive_fix(fixes)
        if self._enu is None:
            return []
        found = self._enu.receive_fix(fixes, self._filter.x)
        for position in found:
            self._pass_on(position)
        return found

    def receive_heading(self, imu: ImuArray) -> None:
        """Take orientations for navsat_transform; raises JudgeError like `receive`."""
        if self.navsat is None or not self.navsat.needs_heading:
            return
        if self._gps is not None:
            self._gps.receive_heading(imu)
            self._heading = imu

    def receive_command(self, commands: TwistArray) -> None:
        """Take velocity commands, which act from their stamps."""
        if len(commands) and self.config.control_mask.any():
            twist = np.append(commands.linear_velocity[-1], commands.angular_velocity[-1])
            self._filter.command(int(commands.stamp_ns[-1]), twist)

    def tick(self, now_ns: int) -> LiveEstimate | None:
        """Run the filter's timer once; return what it publishes."""
        found = self._filter.tick(now_ns)
        if found is not None:
            self._estimate = found
            if self._gps is not None:
                self._gps.receive_odometry(self._filter.published_pose)
        return found

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
            self._filter.deliver(p, found.stamp_ns, value, cov, False)

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
        self._filter.continue_from(
            np.append(rotation @ pose.position[-1] + offset, angles),
            turn @ pose.pose_covariance[-1] @ turn.T,
            int(pose.stamp_ns[-1]),
            now_ns,
        )

    @property
    def initialised(self) -> bool:
        """Whether a measurement was processed; before, ticks do nothing."""
        return self._filter.initialised

    @property
    def parts(self) -> tuple[PartCount, ...]:
        """What became of each part of each input since the start or reset."""
        return self._filter.counts

    def notes(self) -> list[Finding]:
        """Say what the user should know about the estimate so far."""
        found = input_advice(self.config, self.navsat, self._latest, self._heading, self.correct)
        found += part_advice(self.parts)
        found += self.frames.assumptions
        gps = self._gps
        if self._enu is not None:
            found += enu_advice(self.config, self._enu.config, self._enu.fixes_seen)
        if gps is not None:
            found += navsat_advice(
                gps.fixes_seen, gps.fixes_used, gps.lost, gps.early, gps.config.frequency
            )
        return found

    def _find_attitude(self, name: str, array: MessageArray) -> None:
        first, own = self._of[name]
        for number, part in enumerate(own, first):
            if number not in self._oriented and not lacks_attitude(part, array):
                self._oriented.add(number)
            lacks = number not in self._oriented
            if lacks != bool(self._parts.no_attitude[number]):
                self._parts.no_attitude[number] = lacks
                self._filter.begin_increments_anew(number)
                self._placed.pop(name, None)
