# SPDX-License-Identifier: Apache-2.0
"""One run of a wheel study: wheels and poses from tags, simulated, judged, held to the truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from sim2real_eval.judge import JudgedRun
from sim2real_eval.judge_setup import JudgeSetup, velocity_series
from sim2real_eval.metrics import RunScore, score_run
from sim2real_eval.planar_sensors import VISION_TOPIC, WHEEL_TOPIC, with_planar_sensors
from sim2real_eval.wheel_drive import RecordedMotion
from sim_sensors.measurements import FloatArray, IntArray, OdometryArray
from sim_sensors.planar_steps import heading_of
from sim_sensors.sampling import seconds
from sim_sensors.seeding import run_label
from sim_sensors.vision_pose import VisionModel
from sim_sensors.wheel_odometry import WheelOdometryModel
from sim_sensors.world import World

__all__ = ['JUDGES', 'Drift', 'Planar', 'WheelRun', 'wheel_run']

JUDGES = ('wheels', 'wheels_vision')
"""Profiles: the wheels alone, and with the poses of the camera."""

# x, y and yaw among the states of the filter, and what a robot knows of its start [m^2, rad^2].
_PLANAR = [0, 1, 5]
_KNOWN = 1e-6


@dataclasses.dataclass(frozen=True)
class Planar:
    """What a robot measures with in the plane.

    Attributes
    ----------
    wheels : WheelOdometryModel
    vision : VisionModel
    world : World
        With tags.
    """

    wheels: WheelOdometryModel
    vision: VisionModel
    world: World


@dataclasses.dataclass(frozen=True, eq=False)
class Drift:
    """Error of one estimate of the pose over one run.

    Attributes
    ----------
    time : (n,) float
        s.
    position : (n, 2) float
        Estimated, m.
    error : (n,) float
        Distance to the true place, m.
    heading_error : (n,) float
        rad.
    """

    time: FloatArray
    position: FloatArray
    error: FloatArray
    heading_error: FloatArray

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
    """What became of one run.

    Attributes
    ----------
    odometry : Drift
        The pose that the wheels tell.
    fused : Drift
        The judge with wheels and camera.
    nees : float
        Mean normalised squared error of x and y of that judge; 2 where it is as sure of itself as
        it may be.
    scores : mapping of str to RunScore
        Of the speed, by judge.
    poses, taken : int
        That the camera gave, and those of them that the judge did not refuse.
    longest_blind : float
        Longest time without a pose that was given, s; start and end count.
    """

    odometry: Drift
    fused: Drift
    nees: float
    scores: Mapping[str, RunScore]
    poses: int
    taken: int
    longest_blind: float


def wheel_run(
    drive: RecordedMotion,
    sensors: Planar,
    judges: Mapping[str, JudgeSetup],
    *,
    seed: int,
    run: str,
) -> WheelRun:
    """Measure a drive once and judge it.

    The robot is told where it starts, as in [FRC3176].

    Parameters
    ----------
    drive : RecordedMotion
    sensors : Planar
    judges : mapping of str to JudgeSetup
        The `JUDGES` by name; the last is that with the camera.
    seed, run
        Labels of the random streams.

    Raises
    ------
    Sim2RealError
        When the world or a model does not do.
    """
    recording = with_planar_sensors(
        drive.recording, drive.motion, (sensors.wheels, sensors.vision), sensors.world, seed=seed,
        run=run_label('recording', 1, f'{drive.label}{run}'), start_ns=drive.start_ns,
        base_frame='base_link',
    )  # fmt: skip
    scores = {}
    for name, judge in judges.items():
        judged = _told(judge, drive).judge(recording, start_ns=drive.start_ns)
        scores[name] = _score(judged, drive)
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
    state[_PLANAR] = [*truth.position[0, :2], heading_of(truth.orientation[0])]
    covariance[_PLANAR, _PLANAR] = _KNOWN
    told = dataclasses.replace(judge.filter, initial_state=state, initial_covariance=covariance)
    return dataclasses.replace(judge, filter=told)


def _score(judged: JudgedRun, drive: RecordedMotion) -> RunScore:
    return score_run(
        velocity_series(judged, drive.truth, origin_ns=drive.start_ns, name=drive.name)
    )


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
    own = np.array([heading_of(q) for q in orientation])
    off = np.arctan2(np.sin(own - heading), np.cos(own - heading))
    error = np.asarray(np.linalg.norm(position[:, :2] - place, axis=1), dtype=np.float64)
    return Drift(seconds(stamp_ns, drive.start_ns), position[:, :2], error, off)
