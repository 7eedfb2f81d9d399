# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Wheel odometry alone and with a camera: drift, consistency, and comparison of noise models."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sim2real_eval.common.findings import Finding, by_severity, merge_findings
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.scores import RunScore, score_run, vepd
from sim2real_eval.metrics.series import velocity_series
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import VISION_TOPIC, WHEEL_TOPIC, simulate_topic
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray
from sim_sensors.core.seeding import run_label
from sim_sensors.motion.motions import truth_of
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.motion.planar import body_steps, heading_of, poses_after
from sim_sensors.motion.trajectory import Motion
from sim_sensors.vision.vision_pose import VisionModel
from sim_sensors.wheels.encoders import NoWheelNoise, Slip, SteeringOffset
from sim_sensors.wheels.wheel_odometry import WheelOdometryModel, load_wheels
from sim_sensors.world.world import World
from .settings import BLIND, UNEVEN

# Extent [m] below which a truth stands still: five standard deviations of RTK noise (1 cm) to
# either side.
_STANDSTILL = 0.1
# Change of height [m] and tilt [rad] of an even floor.
_EVEN_HEIGHT, _EVEN_TILT = 0.1, math.radians(2.0)


@dataclasses.dataclass(frozen=True, eq=False)
class RecordedMotion:
    """True motion of a simulated or recorded drive; see `of_motion` and `of_recording`."""

    recording: Recording  # holds only the truth, that of `base_link`
    motion: OdometryMotion  # that truth, interpolated; time 0 is its first stamp
    # Prefix of the labels of the random streams, so that noise differs between recordings.
    label: str = ''
    remarks: tuple[Finding, ...] = ()

    @classmethod
    def of_motion(cls, motion: Motion, name: str) -> RecordedMotion:
        """Return a simulated motion with its truth at 100 Hz."""
        return cls._of_truth(Recording.of_truth(truth_of(motion), name, name))

    @classmethod
    def of_recording(cls, recording: Recording) -> RecordedMotion:
        """Return the motion of the truth of a recording.

        Raises Sim2RealError when there is no truth, or it is not a motion.
        """
        truth = recording.require('truth')
        assert isinstance(truth, OdometryArray)
        bare = Recording.of_truth(truth, recording.name, recording.scenario, recording.path)
        try:
            motion = cls._of_truth(dataclasses.replace(bare, transforms=recording.transforms))
        except MotionError as error:
            raise MotionError(f'{recording.path or recording.name}: {error}') from None
        return dataclasses.replace(
            motion,
            label=f'{recording.name}/',
            remarks=(*recording.repairs({recording.roles['truth']}), *motion.remarks),
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
        """First stamp of the truth, ns."""
        return int(self.truth.stamp_ns[0])

    @property
    def duration(self) -> float:
        """Time from the first to the last sample, s."""
        return self.motion.end - self.motion.start

    @property
    def way(self) -> float:
        """Length of the path, m."""
        return float(np.linalg.norm(np.diff(self.truth.position, axis=0), axis=1).sum())

    @property
    def stands(self) -> bool:
        """Whether the horizontal position changes by less than 0.1 m."""
        return bool(np.ptp(self.truth.position[:, :2], axis=0).max() < _STANDSTILL)

    @property
    def height(self) -> float:
        """Difference of the largest and the smallest height, m."""
        return float(np.ptp(self.truth.position[:, 2]))

    @property
    def tilt(self) -> float:
        """Largest angle between the vertical and the z axis of the body, rad."""
        x, y = self.truth.orientation[:, 0], self.truth.orientation[:, 1]
        norm = np.linalg.norm(self.truth.orientation, axis=1)
        return float(2.0 * np.arcsin(np.minimum(np.hypot(x, y) / norm, 1.0)).max())

    @property
    def planar_error(self) -> float:
        """RMS position error of perfect wheel odometry, m.

        Wheels add up steps in the plane of the body, so that the error is zero on level ground.
        """
        position, orientation = self.truth.position, self.truth.orientation
        start = np.array([*position[0, :2], heading_of(*orientation[0])])
        odometry = poses_after(start, body_steps(position, orientation))
        error = odometry[:, :2] - position[1:, :2]
        return float(np.sqrt(np.mean(np.sum(error**2, axis=1))))

    def notes(self) -> tuple[Finding, ...]:
        """Return the remarks, and a finding about uneven ground."""
        if self.height <= _EVEN_HEIGHT and self.tilt <= _EVEN_TILT:
            return self.remarks
        values = {'height': self.height, 'tilt': math.degrees(self.tilt)}
        return (UNEVEN(**values, error=self.planar_error), *self.remarks)

    def at(self, stamp_ns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the true positions `(n, 2)`, m, and headings `(n,)`, rad, at stamps `(n,)`.

        The first and the last sample are valid before and after the recording.
        """
        time = _seconds(stamp_ns, self.start_ns)
        truth = self.motion.at(np.clip(time, self.motion.start, self.motion.end))
        return truth.position[:, :2], _headings(truth.orientation)


JUDGES = ('wheels', 'wheels_vision')
"""Profiles of the judges: the wheels alone, and with the poses of the camera."""

# Indices of x, y and yaw in the state, and the variance of the start pose [m^2, rad^2].
_PLANAR = [0, 1, 5]
_START_VARIANCE = 1e-6


@dataclasses.dataclass(frozen=True)
class WheelSetup:
    """Models and number of runs of a wheel study."""

    variants: dict[str, WheelOdometryModel]  # by label; the first represents the real robot
    vision: VisionModel
    world: World  # with tags
    runs: int  # of each variant; the noise differs between runs
    seed: int


@dataclasses.dataclass(frozen=True, eq=False)
class Drift:
    """Error of one estimate of the pose over one run."""

    time: FloatArray  # (n,) s
    position: FloatArray  # (n, 2) estimated, m
    error: FloatArray  # (n,) distance to the true position, m
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
    """Errors, scores and camera poses of one run."""

    odometry: Drift  # pose of the wheel odometry
    fused: Drift  # the judge with wheels and camera
    # Mean normalised squared error of x and y of that judge; 2 for a consistent covariance.
    nees: float
    scores: Mapping[str, RunScore]  # of the speed, by judge
    # Number of camera poses, and of those that the judge fused.
    poses: int
    fused_poses: int
    longest_blind: float  # longest time without a camera pose, s, including start and end


def wheel_run(
    drive: RecordedMotion,
    setup: WheelSetup,
    wheels: WheelOdometryModel,
    judges: Mapping[str, JudgeSetup],
    run: str,
) -> WheelRun:
    """Measure a drive once and judge it.

    `judges` are the `JUDGES` by name, the one with the camera last. They start at the true pose,
    as in [FRC3176]. `run` is the label of the random streams.

    Raises Sim2RealError when the world or a model is unsuitable.
    """
    recording = drive.recording
    label = run_label('recording', 1, f'{drive.label}{run}')
    for kind, model in ((WheelOdometryModel, wheels), (VisionModel, setup.vision)):
        recording = simulate_topic(
            recording, kind, model, drive.motion, setup.world, seed=setup.seed, run=label,
            origin_ns=drive.start_ns, base_frame='base_link',
        )  # fmt: skip
    scores = {}
    for name, judge in judges.items():
        judged = _start_at_truth(judge, drive).judge(recording, start_ns=drive.start_ns)
        scores[name] = score_run(
            velocity_series(judged, drive.truth, origin_ns=drive.start_ns, name=drive.name)
        )
    fused, nees = _fused_drift(judged, drive)
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
        fused_poses=sum(
            part.fused for part in judged.parts if part.topic == VISION_TOPIC.strip('/')
        ),
        longest_blind=float(np.diff(np.concatenate([ends[0], poses, ends[1]])).max() * 1e-9),
    )


def _start_at_truth(judge: JudgeSetup, drive: RecordedMotion) -> JudgeSetup:
    """Return the judge with the true pose as its initial state."""
    truth = drive.truth
    state, covariance = judge.filter.initial_state.copy(), judge.filter.initial_covariance.copy()
    state[_PLANAR] = [*truth.position[0, :2], heading_of(*truth.orientation[0])]
    covariance[_PLANAR, _PLANAR] = _START_VARIANCE
    settings = dataclasses.replace(
        judge.filter, initial_state=state, initial_covariance=covariance
    )
    return dataclasses.replace(judge, filter=settings)


def _fused_drift(judged: JudgedRun, drive: RecordedMotion) -> tuple[Drift, float]:
    """Return the drift of the fused pose and its mean NEES in x and y."""
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
    true_position, true_heading = drive.at(stamp_ns)
    turn = _headings(orientation) - true_heading
    heading_error = np.arctan2(np.sin(turn), np.cos(turn))
    error = np.linalg.norm(position[:, :2] - true_position, axis=1)
    return Drift(_seconds(stamp_ns, drive.start_ns), position[:, :2], error, heading_error)


def _seconds(stamp_ns: IntArray, origin_ns: int) -> FloatArray:
    return np.asarray((stamp_ns - origin_ns) * 1e-9)


def _headings(orientation: FloatArray) -> FloatArray:
    return np.array([heading_of(*q) for q in orientation.tolist()])


# Longest share of a drive without a camera pose that is not reported.
_BLIND = 0.1


@dataclasses.dataclass(frozen=True, eq=False)
class Driven:
    """All runs of one drive."""

    drive: RecordedMotion
    # Pictures of the camera, and pictures with a tag in view; equal in every run.
    frames: int
    in_view: int
    real: tuple[WheelRun, ...]  # runs of the first variant that represent the real robot
    runs: dict[str, tuple[WheelRun, ...]]  # by variant

    @property
    def all_runs(self) -> tuple[WheelRun, ...]:
        """Runs of all variants."""
        return tuple(run for runs in self.runs.values() for run in runs)

    @property
    def poses(self) -> float:
        """Mean number of camera poses of a run, without those gated or lost."""
        return float(np.mean([run.poses for run in self.all_runs]))

    @property
    def fused_poses(self) -> float:
        """Mean number of camera poses of a run that the judge fused."""
        return float(np.mean([run.fused_poses for run in self.all_runs]))

    @property
    def longest_blind(self) -> float:
        """Longest time without a pose in any run, s."""
        return max(run.longest_blind for run in self.all_runs)

    def notes(self) -> tuple[Finding, ...]:
        """Return findings about the drive and the view of the camera."""
        notes = self.drive.notes()
        if self.longest_blind <= _BLIND * self.drive.duration:
            return notes
        return (BLIND(longest=self.longest_blind, duration=self.drive.duration), *notes)


@dataclasses.dataclass(frozen=True, eq=False)
class VariantResult:
    """All runs of one noise variant."""

    label: str
    runs: tuple[WheelRun, ...]  # of all drives, one drive after the other
    vepd: dict[str, float]  # by judge, against the first variant in runs of its own

    @property
    def odometry(self) -> tuple[Drift, ...]:
        """Pose of the wheel odometry, per run."""
        return tuple(run.odometry for run in self.runs)

    @property
    def fused(self) -> tuple[Drift, ...]:
        """The judge with wheels and camera, per run."""
        return tuple(run.fused for run in self.runs)

    @property
    def nees(self) -> tuple[float, ...]:
        """Mean normalised squared error of x and y of that judge, per run."""
        return tuple(run.nees for run in self.runs)


@dataclasses.dataclass(frozen=True, eq=False)
class WheelStudy:
    """Drives and variants of a finished study."""

    setup: WheelSetup
    driven: tuple[Driven, ...]  # at least one
    variants: tuple[VariantResult, ...]  # over all drives

    @property
    def title(self) -> str:
        """Name and length of the drives."""
        way = sum(driven.drive.way for driven in self.driven)
        count = len(self.driven)
        name = self.driven[0].drive.name if count == 1 else f'{count} recordings'
        return f'{name}, {way:.0f} m'

    def notes(self) -> list[Finding]:
        """Return the findings, the most severe first."""
        if len(self.driven) == 1:
            return by_severity(self.driven[0].notes())
        return merge_findings(('driven', driven.notes()) for driven in self.driven)


def drive_variants(
    setup: WheelSetup, drive: RecordedMotion, advance: Callable[[], None] = lambda: None
) -> Driven:
    """Measure and judge all runs of all variants on one drive.

    The runs that represent the real robot have noise of their own, so that the first variant is
    not compared with itself. `advance` is called after each run.

    Raises Sim2RealError when the drive, the world or a model is unsuitable.
    """
    judges = {name: JudgeSetup.load(name) for name in JUDGES}

    def runs(label: str, wheels: WheelOdometryModel) -> tuple[WheelRun, ...]:
        finished = []
        for number in range(1, setup.runs + 1):
            finished.append(wheel_run(drive, setup, wheels, judges, f'{label}/{number}'))
            advance()
        return tuple(finished)

    camera = setup.vision.start(setup.seed, drive.label, world=setup.world)
    _, views = camera.measure_all(drive.motion)
    return Driven(
        drive=drive,
        frames=len(views.count),
        in_view=int(np.sum(views.count > 0)),
        real=runs('real', next(iter(setup.variants.values()))),
        runs={label: runs(label, wheels) for label, wheels in setup.variants.items()},
    )


def study_of(setup: WheelSetup, driven: Sequence[Driven]) -> WheelStudy:
    """Combine one drive or more; VEPD is computed over the runs of all drives."""
    results = []
    for label in setup.variants:
        runs = tuple(run for drive in driven for run in drive.runs[label])
        distances = {
            name: float(
                vepd(
                    [run.scores[name] for drive in driven for run in drive.real],
                    [run.scores[name] for run in runs],
                ).vepd
            )
            for name in JUDGES
        }
        results.append(VariantResult(label, runs, distances))
    return WheelStudy(setup, tuple(driven), tuple(results))


SINGLE_ERRORS = 'errors'
"""Name of all single-error models together in a list of models."""


def single_errors() -> dict[str, WheelOdometryModel]:
    """Return models with one error each, by label.

    The noise of the squared increment and the offset of the steering have the numbers of the
    preset `frc_swerve`. The offset follows the text of [FRC3176] (`exact`) or its code
    (`as_upstream`). Variance per distance, slip and wrong radii have the numbers of `swerve`, the
    same robot.
    """
    published, swerve = load_wheels('frc_swerve'), load_wheels('swerve')
    bare = dataclasses.replace(
        swerve,
        noise=NoWheelNoise(),
        slip=Slip(),
        radius_error=0.0,
        steering_offset=SteeringOffset(),
    )
    exact = dataclasses.replace(published.steering_offset, variant='exact')
    upstream = dataclasses.replace(exact, variant='as_upstream')
    return {
        'squared': dataclasses.replace(bare, noise=published.noise),
        'per_distance': dataclasses.replace(bare, noise=swerve.noise),
        'slip': dataclasses.replace(bare, slip=swerve.slip),
        'radius': dataclasses.replace(bare, radius_error=swerve.radius_error),
        'steering_text': dataclasses.replace(bare, steering_offset=exact),
        'steering_code': dataclasses.replace(bare, steering_offset=upstream),
    }
