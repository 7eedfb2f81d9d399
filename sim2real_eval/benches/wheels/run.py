# SPDX-License-Identifier: Apache-2.0
"""One run of a wheel study: motion, wheels and tag poses, judged against the truth."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from sim2real_eval.benches.findings import UNEVEN
from sim2real_eval.common.findings import Finding
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.scores import RunScore, score_run
from sim2real_eval.metrics.series import velocity_series
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import VISION_TOPIC, WHEEL_TOPIC, with_topic
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.core.blocks import seconds
from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray
from sim_sensors.core.seeding import run_label
from sim_sensors.motion.motions import truth_of
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.motion.planar import body_steps, heading_of, poses_after
from sim_sensors.motion.trajectory import Motion
from sim_sensors.vision.vision_pose import VisionModel
from sim_sensors.wheels.wheel_odometry import WheelOdometryModel
from sim_sensors.world.world import World

# A true motion that wheels and a camera measure again and again: simulated or recorded.

# Below this extent [m] a truth stands: five standard deviations of RTK noise (1 cm) either way.
_STANDSTILL = 0.1
# What a floor may have of unevenness: change of height [m] and tilt [rad].
_EVEN_HEIGHT, _EVEN_TILT = 0.1, math.radians(2.0)


@dataclasses.dataclass(frozen=True, eq=False)
class RecordedMotion:
    """A true motion and its record. Made by `of_motion` or `of_recording`."""

    recording: Recording  # its truth alone, that of `base_link`
    motion: OdometryMotion  # that truth, interpolated; time 0 is its first stamp
    # Goes before the labels of the random streams, so that two recordings have noise of their own.
    label: str = ''
    remarks: tuple[Finding, ...] = ()  # what the user should know of the truth

    @classmethod
    def of_motion(cls, motion: Motion, name: str) -> RecordedMotion:
        """Return a simulated motion, its truth at 100 Hz."""
        return cls._of_truth(Recording.of_truth(truth_of(motion), name, name))

    @classmethod
    def of_recording(cls, recording: Recording) -> RecordedMotion:
        """Return the motion of a recording's truth; nothing else of it is taken.

        Raises Sim2RealError when there is no truth, or it is no motion.
        """
        truth = recording.require('truth')
        assert isinstance(truth, OdometryArray)
        bare = Recording.of_truth(truth, recording.name, recording.scenario, recording.path)
        try:
            made = cls._of_truth(dataclasses.replace(bare, transforms=recording.transforms))
        except MotionError as error:
            raise MotionError(f'{recording.path or recording.name}: {error}') from None
        return dataclasses.replace(
            made,
            label=f'{recording.name}/',
            remarks=(*recording.repairs({recording.roles['truth']}), *made.remarks),
        )

    @classmethod
    def _of_truth(cls, bare: Recording) -> RecordedMotion:
        maker = TwinMaker(bare, seed=0)
        recording = Recording.of_truth(maker.truth, bare.name, bare.scenario, bare.path)
        return cls(recording, maker.motion, remarks=maker.remarks)

    @property
    def name(self) -> str:
        """Name of the motion or the recording."""
        return self.recording.name

    @property
    def truth(self) -> OdometryArray:
        """The true motion, sampled."""
        truth = self.recording.truth
        assert truth is not None
        return truth

    @property
    def start_ns(self) -> int:
        """First stamp."""
        return int(self.truth.stamp_ns[0])

    @property
    def duration(self) -> float:
        """From the first to the last sample, s."""
        return self.motion.end - self.motion.start

    @property
    def way(self) -> float:
        """Length, m."""
        return float(np.linalg.norm(np.diff(self.truth.position, axis=0), axis=1).sum())

    @property
    def stands(self) -> bool:
        """Whether it never leaves its place in the plane, to 0.1 m."""
        return bool(np.ptp(self.truth.position[:, :2], axis=0).max() < _STANDSTILL)

    @property
    def height(self) -> float:
        """Largest less smallest height, m."""
        return float(np.ptp(self.truth.position[:, 2]))

    @property
    def tilt(self) -> float:
        """Largest angle between up and the body's own up, rad."""
        x, y = self.truth.orientation[:, 0], self.truth.orientation[:, 1]
        norm = np.linalg.norm(self.truth.orientation, axis=1)
        return float(2.0 * np.arcsin(np.minimum(np.hypot(x, y) / norm, 1.0)).max())

    @property
    def planar_error(self) -> float:
        """Rms distance of the place that wheels without any error tell from the true one, m.

        They add up steps in the plane of the body: zero on level ground.
        """
        position, orientation = self.truth.position, self.truth.orientation
        start = np.array([*position[0, :2], heading_of(*orientation[0])])
        told = poses_after(start, body_steps(position, orientation))
        error = told[:, :2] - position[1:, :2]
        return float(np.sqrt(np.mean(np.sum(error**2, axis=1))))

    def notes(self) -> tuple[Finding, ...]:
        """Return the remarks, and what wheels cannot know of the motion."""
        if self.height <= _EVEN_HEIGHT and self.tilt <= _EVEN_TILT:
            return self.remarks
        values = {'height': self.height, 'tilt': math.degrees(self.tilt)}
        return (UNEVEN(**values, error=self.planar_error), *self.remarks)

    def at(self, stamp_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the true places `(n, 2)` in m and headings `(n,)` in rad at stamps `(n,)`.

        Before the first and after the last sample those of that sample.
        """
        time = seconds(stamp_ns, self.start_ns)
        truth = self.motion.at(np.clip(time, self.motion.start, self.motion.end))
        return truth.position[:, :2], _headings(truth.orientation)


JUDGES = ('wheels', 'wheels_vision')
"""Profiles: the wheels alone, and with the poses of the camera."""

# x, y and yaw among the states of the filter, and what a robot knows of its start [m^2, rad^2].
_PLANAR = [0, 1, 5]
_KNOWN = 1e-6


@dataclasses.dataclass(frozen=True)
class WheelSetup:
    """What is measured and how often."""

    variants: dict[str, WheelOdometryModel]  # by label; the first stands for the real robot
    vision: VisionModel
    world: World  # with tags
    runs: int  # of each variant, on the same drive with other noise
    seed: int


@dataclasses.dataclass(frozen=True, eq=False)
class Drift:
    """Error of one estimate of the pose over one run."""

    time: FloatArray  # (n,) s
    position: FloatArray  # (n, 2) estimated, m
    error: FloatArray  # (n,) distance to the true place, m
    heading_error: FloatArray  # (n,) rad

    @property
    def rms(self) -> float:
        """Root mean square of the distance, m."""
        return float(np.sqrt(np.mean(self.error**2)))

    @property
    def heading_rms(self) -> float:
        """Root mean square of the heading error, rad."""
        return float(np.sqrt(np.mean(self.heading_error**2)))


@dataclasses.dataclass(frozen=True, eq=False)
class WheelRun:
    """What became of one run."""

    odometry: Drift  # the pose that the wheels tell
    fused: Drift  # the judge with wheels and camera
    # Mean normalised squared error of x and y of that judge; 2 where it is as sure of itself as it
    # may be.
    nees: float
    scores: Mapping[str, RunScore]  # of the speed, by judge
    # Poses that the camera gave, and those of them that the judge did not refuse.
    poses: int
    taken: int
    longest_blind: float  # longest time without a pose that was given, s; start and end count


def wheel_run(
    drive: RecordedMotion,
    setup: WheelSetup,
    wheels: WheelOdometryModel,
    judges: Mapping[str, JudgeSetup],
    run: str,
) -> WheelRun:
    """Measure a drive once and judge it by the `JUDGES` by name, the last that with the camera.

    The robot is told where it starts, as in [FRC3176]; `run` is the label of the random streams.
    Raises Sim2RealError when the world or a model does not do.
    """
    recording = drive.recording
    label = run_label('recording', 1, f'{drive.label}{run}')
    for kind, model in ((WheelOdometryModel, wheels), (VisionModel, setup.vision)):
        recording = with_topic(
            recording, kind, model, drive.motion, setup.world, seed=setup.seed, run=label,
            origin_ns=drive.start_ns, base_frame='base_link',
        )  # fmt: skip
    scores = {}
    for name, judge in judges.items():
        judged = _told(judge, drive).judge(recording, start_ns=drive.start_ns)
        scores[name] = score_run(
            velocity_series(judged, drive.truth, origin_ns=drive.start_ns, name=drive.name)
        )
    fused, nees = _fused(judged, drive)
    odometry = recording.messages[WHEEL_TOPIC]
    assert isinstance(odometry, OdometryArray)
    poses = recording.messages[VISION_TOPIC].stamp_ns
    ends = [drive.start_ns], [int(drive.truth.stamp_ns[-1])]
    return WheelRun(
        odometry=_drift(drive, odometry.stamp_ns, odometry.position, odometry.orientation),
        fused=fused,
        nees=nees,
        scores=scores,
        poses=len(poses),
        taken=sum(part.fused for part in judged.parts if part.topic == VISION_TOPIC.strip('/')),
        longest_blind=float(np.diff(np.concatenate([ends[0], poses, ends[1]])).max() * 1e-9),
    )


def _told(judge: JudgeSetup, drive: RecordedMotion) -> JudgeSetup:
    """Return the judge as it knows where the robot starts."""
    truth = drive.truth
    state, covariance = judge.filter.initial_state.copy(), judge.filter.initial_covariance.copy()
    state[_PLANAR] = [*truth.position[0, :2], heading_of(*truth.orientation[0])]
    covariance[_PLANAR, _PLANAR] = _KNOWN
    told = dataclasses.replace(judge.filter, initial_state=state, initial_covariance=covariance)
    return dataclasses.replace(judge, filter=told)


def _fused(judged: JudgedRun, drive: RecordedMotion) -> tuple[Drift, float]:
    """Return the drift of a judge's pose and its uncertainty."""
    inside = judged.stamp_ns <= drive.truth.stamp_ns[-1]
    stamps, position = judged.stamp_ns[inside], judged.position[inside]
    drift = _drift(drive, stamps, position, judged.orientation[inside])
    error = drift.position - drive.at(stamps)[0]
    block = judged.pose_covariance[inside][:, :2, :2]
    squares = np.einsum('ni,ni->n', error, np.linalg.solve(block, error[:, :, None])[:, :, 0])
    return drift, float(squares.mean())


def _drift(
    drive: RecordedMotion, stamp_ns: IntArray, position: FloatArray, orientation: FloatArray
) -> Drift:
    place, heading = drive.at(stamp_ns)
    turn = _headings(orientation) - heading
    off = np.arctan2(np.sin(turn), np.cos(turn))
    error = np.asarray(np.linalg.norm(position[:, :2] - place, axis=1), dtype=np.float64)
    return Drift(seconds(stamp_ns, drive.start_ns), position[:, :2], error, off)


def _headings(orientation: FloatArray) -> FloatArray:
    return np.array([heading_of(*q) for q in orientation.tolist()])
