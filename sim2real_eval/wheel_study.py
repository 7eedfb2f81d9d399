# SPDX-License-Identifier: Apache-2.0
"""How far wheels drift alone and with a camera, and how alike noise variants are to a judge."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from sim2real_eval.judge_setup import JudgeSetup, velocity_series
from sim2real_eval.metrics import RunScore, score_run, vepd
from sim2real_eval.planar_sensors import VISION_TOPIC, WHEEL_TOPIC
from sim2real_eval.recording import Recording
from sim2real_eval.synthetic import synthetic_recording
from sim2real_eval.twin import Twin
from sim_sensors.measurements import FloatArray, IntArray, OdometryArray
from sim_sensors.planar_steps import heading_of
from sim_sensors.sampling import seconds
from sim_sensors.trajectory import Motion
from sim_sensors.vision_pose import VisionModel
from sim_sensors.wheel_odometry import WheelOdometryModel
from sim_sensors.world import World

__all__ = ['JUDGES', 'Drift', 'VariantResult', 'WheelSetup', 'WheelStudy', 'run_wheel_study']

JUDGES = ('wheels', 'wheels_vision')
"""Profiles: the wheels alone, and with the poses of the camera."""

# x, y and yaw among the states of the filter, and what a robot knows of its start [m^2, rad^2].
_PLANAR = [0, 1, 5]
_KNOWN = 1e-6


@dataclasses.dataclass(frozen=True)
class WheelSetup:
    """What is driven, measured and how often.

    Attributes
    ----------
    motion : Motion
    name : str
        Of the motion.
    variants : mapping of str to WheelOdometryModel
        By label; the first stands for the real robot.
    vision : VisionModel
    world : World
        With tags.
    runs : int
        Of each variant, on the same motion with other noise.
    seed : int
    """

    motion: Motion
    name: str
    variants: dict[str, WheelOdometryModel]
    vision: VisionModel
    world: World
    runs: int
    seed: int


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
class VariantResult:
    """What became of one noise variant.

    Attributes
    ----------
    label : str
    odometry : tuple of Drift
        The pose that the wheels tell, per run.
    fused : tuple of Drift
        The judge with wheels and camera, per run.
    nees : tuple of float
        Mean normalised squared error of x and y of that judge, per run; 2 where it is as sure of
        itself as it may be.
    blind : tuple of float
        Longest time without a pose of the camera, per run, s.
    vepd : mapping of str to float
        By judge, against the first variant in runs of its own.
    """

    label: str
    odometry: tuple[Drift, ...]
    fused: tuple[Drift, ...]
    nees: tuple[float, ...]
    blind: tuple[float, ...]
    vepd: dict[str, float]


@dataclasses.dataclass(frozen=True, eq=False)
class WheelStudy:
    """A study that was made.

    Attributes
    ----------
    setup : WheelSetup
    way : float
        Length of the motion, m.
    variants : tuple of VariantResult
    """

    setup: WheelSetup
    way: float
    variants: tuple[VariantResult, ...]


def run_wheel_study(setup: WheelSetup, advance: Callable[[], None] = lambda: None) -> WheelStudy:
    """Drive, measure and judge every run of every variant.

    The robot is told where it starts, as in seed 004. The runs that stand for the real robot have
    noise of their own, so that the first variant, too, is compared with others than itself.

    Parameters
    ----------
    setup : WheelSetup
    advance : callable
        Called after each run.

    Raises
    ------
    Sim2RealError
        When the motion, the world or a model does not do.
    """
    judges = {name: JudgeSetup.load(name) for name in JUDGES}
    label, model = next(iter(setup.variants.items()))
    real: dict[str, list[RunScore]] = {name: [] for name in JUDGES}
    for number in range(setup.runs):
        recording = _recording(setup, model, f'real/{number + 1}')
        for name, judge in judges.items():
            real[name].append(_judged(judge, recording, setup)[0])
        advance()
    results = []
    for label, model in setup.variants.items():
        odometry, fused, nees, blind = [], [], [], []
        scores: dict[str, list[RunScore]] = {name: [] for name in JUDGES}
        for number in range(setup.runs):
            recording = _recording(setup, model, f'{label}/{number + 1}')
            odometry.append(_drift_of_wheels(recording, setup))
            blind.append(_longest_blind(recording))
            for name, judge in judges.items():
                score, drift, consistency = _judged(judge, recording, setup)
                scores[name].append(score)
            fused.append(drift)
            nees.append(consistency)
            advance()
        found = {name: float(vepd(real[name], scores[name]).vepd) for name in JUDGES}
        results.append(
            VariantResult(label, tuple(odometry), tuple(fused), tuple(nees), tuple(blind), found)
        )
    truth = recording.truth
    assert truth is not None
    way = float(np.linalg.norm(np.diff(truth.position, axis=0), axis=1).sum())
    return WheelStudy(setup, way, tuple(results))


def _recording(setup: WheelSetup, model: WheelOdometryModel, run: str) -> Recording:
    twin = Twin('wheels', gps=None, imu=None, wheels=model, vision=setup.vision)
    return synthetic_recording(
        setup.motion,
        twin,
        seed=setup.seed,
        run=run,
        scenario=setup.name,
        origin=setup.world.frame,
        world=setup.world,
    )


def _judged(
    judge: JudgeSetup, recording: Recording, setup: WheelSetup
) -> tuple[RunScore, Drift, float]:
    """Return the score of a judge's speed, the drift of its pose and how sure it is of it."""
    truth = recording.truth
    assert truth is not None
    state, covariance = judge.filter.initial_state.copy(), judge.filter.initial_covariance.copy()
    state[_PLANAR] = [*truth.position[0, :2], heading_of(truth.orientation[0])]
    covariance[_PLANAR, _PLANAR] = _KNOWN
    told = dataclasses.replace(judge.filter, initial_state=state, initial_covariance=covariance)
    judged = dataclasses.replace(judge, filter=told).judge(
        recording, start_ns=int(truth.stamp_ns[0])
    )
    origin_ns = int(truth.stamp_ns[0])
    series = velocity_series(judged, truth, origin_ns=origin_ns, name=recording.name)
    inside = judged.stamp_ns <= truth.stamp_ns[-1]
    drift = _drift(
        judged.stamp_ns[inside], judged.position[inside], judged.orientation[inside],
        origin_ns, setup.motion,
    )  # fmt: skip
    error = drift.position - _place(drift.time, setup.motion)[0]
    block = judged.pose_covariance[inside][:, :2, :2]
    squares = np.einsum('ni,ni->n', error, np.linalg.solve(block, error[:, :, None])[:, :, 0])
    return score_run(series), drift, float(squares.mean())


def _longest_blind(recording: Recording) -> float:
    """Return the longest time without a pose of the camera, s."""
    truth = recording.truth
    assert truth is not None
    seen = recording.messages[VISION_TOPIC].stamp_ns
    stamps = np.concatenate([truth.stamp_ns[:1], seen, truth.stamp_ns[-1:]])
    return float(np.diff(stamps).max() / 1e9)


def _drift_of_wheels(recording: Recording, setup: WheelSetup) -> Drift:
    odometry = recording.messages[WHEEL_TOPIC]
    truth = recording.truth
    assert isinstance(odometry, OdometryArray)
    assert truth is not None
    return _drift(
        odometry.stamp_ns, odometry.position, odometry.orientation, int(truth.stamp_ns[0]),
        setup.motion,
    )  # fmt: skip


def _drift(
    stamp_ns: IntArray,
    position: FloatArray,
    orientation: FloatArray,
    origin_ns: int,
    motion: Motion,
) -> Drift:
    time: FloatArray = seconds(stamp_ns, origin_ns) + motion.start
    place, heading = _place(time, motion)
    own = np.array([heading_of(q) for q in orientation])
    off = np.arctan2(np.sin(own - heading), np.cos(own - heading))
    error = np.asarray(np.linalg.norm(position[:, :2] - place, axis=1), dtype=np.float64)
    return Drift(time, position[:, :2], error, off)


def _place(time: FloatArray, motion: Motion) -> tuple[FloatArray, FloatArray]:
    """Return the true places `(n, 2)` and headings `(n,)`."""
    truth = motion.at(np.clip(time, motion.start, motion.end))
    return truth.position[:, :2], np.array([heading_of(q) for q in truth.orientation])
