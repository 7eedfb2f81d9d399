# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Runs that follow from a recording, and the numbers and signals that a study keeps of each.

The runs are judged by the caller: from arrays, or by nodes on a live graph.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.findings import Finding
from sim2real_eval.judge.estimate import JudgedRun, PartCount
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.judge.robot_localization.configuration import NAVSAT_TOPIC
from sim2real_eval.metrics.consistency import (
    QUANTITIES,
    Squares,
    inside_share,
    is_planar,
    judged_world,
    known_axes,
    nees_at,
    nis,
)
from sim2real_eval.metrics.error_curves import correlation_time
from sim2real_eval.metrics.judged_world import has_truth_at
from sim2real_eval.metrics.options import REAL, MetricOptions
from sim2real_eval.metrics.scores import RunScore, advice, prepare, resample, score_run
from sim2real_eval.metrics.series import VelocitySeries, velocity_series
from sim2real_eval.preflight.checks import remarks
from sim2real_eval.preflight.findings import OF_FIXES
from sim2real_eval.preflight.messages import COVARIANCES
from sim2real_eval.recording.reading import assign_subscribed_roles
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import interpolate_truth, true_heading
from sim2real_eval.signals.agreement import wrap
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker, make_twin_maker
from sim_sensors.core.measurements import FloatArray, IntArray, MessageArray, OdometryArray
from sim_sensors.core.rotations import heading, rotate, rotation_between
from sim_sensors.world.world import World
from .options import COVARIANCE_ONE_SIDED, TRUTH_OF_FIXES, StudyOptions
from .outcome import AGAIN, OF_VEPD
from .recordings import OFF_TICKS_NS
from .run import EstimateSignals, RunKey, StudyRun


@dataclasses.dataclass(frozen=True, eq=False)
class Judging:
    """The judge of runs, and how runs are simulated and scored."""

    setup: Judge
    options: StudyOptions = dataclasses.field(default_factory=StudyOptions)
    world: World | None = None  # surroundings of simulated sensors


class JudgedScore(NamedTuple):
    """Scores of a judged run."""

    series: VelocitySeries  # scored speeds: re-zeroed, without the warm-up
    score: RunScore
    forward: RunScore  # score of body-forward speed, which depends on the heading
    notes: tuple[Finding, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class PlannedRun:
    """A run that is to be judged."""

    model: str  # `real` or the label of a twin
    repetition: int  # 1 for the real run
    twin: Twin | None  # simulated sensors at their final rates; None for the real run


class Start(NamedTuple):
    """Start of a judge: keywords of its method `judge`."""

    start_ns: int  # start of its clock
    start_heading: float | None  # radians from east; None: as its parameter file says


class RunPlan:
    """The real run of a recording with ground truth, and the runs of its twins.

    The twins have distinct labels. A recording without ground truth, or with a sensor that has no
    message during it, raises Sim2RealError.
    """

    def __init__(self, recording: Recording, twins: Sequence[Twin], judging: Judging) -> None:
        options = judging.options
        base = judging.setup.base_link_frame
        recording = assign_subscribed_roles(
            recording, getattr(judging.setup, 'subscribed_topics', ())
        )
        # Without a world, a magnetometer is in the field that the recording's own one measured.
        make = make_twin_maker if any('mag' in twin.others for twin in twins) else TwinMaker
        self.maker = make(recording, world=judging.world, seed=options.seed, base_frame=base)
        self.real = PlannedRun(REAL, 1, None)
        self.twins = tuple(
            PlannedRun(
                twin.label,
                repetition,
                self.maker.at_real_rates(twin) if options.match_rates else twin,
            )
            for twin in twins
            for repetition in range(1, options.repetitions + 1)
        )
        self._judging = judging
        self._recording = recording
        self._simulates_gps = any(twin.gps is not None for twin in twins)

    @functools.cached_property
    def _recording_notes(self) -> tuple[Finding, ...]:
        """Findings about the recording."""
        notes = (*self._recording.notes, *self.maker.remarks)
        base = self._judging.setup.base_link_frame
        notes = remarks(self._recording, notes, base_frame=base, maker=self.maker)
        if not self._simulates_gps:
            return notes
        # A truth that was made from the fixes invalidates a comparison of receivers.
        return tuple(
            TRUTH_OF_FIXES(note.subject, error=note.numbers['error'])
            if note.kind in OF_FIXES
            else note
            for note in notes
        )

    def __iter__(self) -> Iterator[PlannedRun]:
        yield self.real
        yield from self.twins

    def recording(self, run: PlannedRun) -> Recording:
        """Return the recording that is judged in a run."""
        if run.twin is None:
            return self.maker.real
        return self.maker.make(run.twin, run.repetition)

    def start_of(self, judge: Judge) -> Start:
        """Return the start of a judge that has the same sensor mountings as the plan's judge."""
        options, real, start_ns = self._judging.options, self.maker.real, self.maker.start_ns
        has_true_heading = options.start_heading or (
            'start_heading' in options.adapts and judge.lacks_heading(real)
        )
        is_late = options.off_ticks or (
            'off_ticks' in options.adapts
            and judge.splits_fixes(real, start_ns, start_ns + OFF_TICKS_NS)
        )
        return Start(
            start_ns + OFF_TICKS_NS * is_late,
            true_heading(self.maker.truth) if has_true_heading else None,
        )

    @functools.cached_property
    def _start(self) -> Start:
        return self.start_of(self._judging.setup)

    def judge(self, run: PlannedRun) -> JudgedRun:
        """Judge a run; a recording without what the judge needs raises Sim2RealError."""
        return self._judging.setup.judge(self.recording(run), **self._start._asdict())

    def score(self, run: PlannedRun, judged: JudgedRun) -> JudgedScore:
        """Score a judged run.

        Raises
        ------
        Sim2RealError
            When the judge published nothing that can be scored.
        """
        options = self._judging.options
        whole = self._series(judged, options.component, run.model)
        series = prepare(whole, options.metric)
        # `prepare` has left out the warm-up and re-zeroed the speeds.
        prepared = dataclasses.replace(options.metric, warmup=0.0, rezero='none')
        notes = self._recording_notes if run.twin is None else self.maker.model_notes(run.twin)
        return JudgedScore(
            series=series,
            score=score_run(series, prepared),
            forward=score_run(self._series(judged, 'forward', run.model), options.metric),
            notes=notes + judged.notes + tuple(advice(whole, options.metric)),
        )

    def vepd_score(self, run: PlannedRun, judged: JudgedRun) -> RunScore:
        """Return only the field `score` of `score`, which is much faster."""
        options = self._judging.options
        return score_run(self._series(judged, options.component, run.model), options.metric)

    def _series(self, judged: JudgedRun, component: str, model: str) -> VelocitySeries:
        return velocity_series(
            judged,
            self.maker.truth,
            origin_ns=self.maker.start_ns,
            component=component,
            name=f'{self.maker.real.name} ({model})',
        )

    def evaluate(
        self,
        run: PlannedRun,
        setup: Judge,
        recording: Recording,
        judged: JudgedRun,
        key: RunKey,
        group: str,
    ) -> tuple[StudyRun, EstimateSignals]:
        """Return the numbers and signals that a study keeps of a run.

        `setup` has judged `recording`. See `score` and `observe` for errors.
        """
        scored = self.score(run, judged)
        metric = self._judging.options.metric
        signals, observed = observe(setup, recording, judged, scored.series, metric)
        notes = scored.notes
        if run.twin is not None:
            notes += one_sided_covariances(self.maker.real, recording)
        values = {
            **dataclasses.asdict(scored.score),
            'forward_rmse': scored.forward.rmse,
            'estimates': len(judged),
            'fixes_used': len(judged.gps_stamp_ns),
            **observed,
        }
        if judged.again is not None:
            again = self.score(run, judged.again).score
            values |= {f'{name}{AGAIN}': getattr(again, name) for name in OF_VEPD}
        finite = {name: float(value) for name, value in values.items() if math.isfinite(value)}
        return StudyRun(key, self.maker.real.scenario, group, finite, notes), signals


_PROBABILITY = 0.95
"""Probability of the two-sided bounds of NIS and NEES."""


def observe(
    judge: Judge,
    recording: Recording,
    judged: JudgedRun,
    series: VelocitySeries,
    metric: MetricOptions,
) -> tuple[EstimateSignals, dict[str, float]]:
    """Return the signals of a judged run, and values for `StudyRun.values`.

    Parameters
    ----------
    judge : Judge
    recording : Recording
        Judged recording, with the ground truth of the base frame; see `RunPlan.recording`.
    judged : JudgedRun
        Finite estimates.
    series : VelocitySeries
        Scored speeds.
    metric : MetricOptions
        Options of the score; all values leave out its warm-up.

    Returns
    -------
    EstimateSignals
    dict of str to float
        Without values that cannot be computed: `speed_bias`, `speed_std` (m/s, so that `rmse`^2 =
        `speed_bias`^2 + `speed_std`^2), `speed_correlation_time` (s, integrated autocorrelation
        time of the speed error); `nis_gps`, `nis_imu`, `nis_other` (mean NIS over degrees of
        freedom of the parts of one sensor), `nis_inside`; `position_rmse`, `position_end` (m,
        horizontal, of all and of the last estimate), `position_covariance_consistency` (stated
        horizontal sigma over RMSE), `orientation_rmse`, `yaw_rmse` (rad), `velocity_rmse` (m/s, of
        the horizontal velocity in the body frame), `velocity_covariance_consistency`,
        `nees_position`, `nees_orientation`, `nees_velocity`, `nees_angular_velocity` (mean NEES
        over degrees of freedom) and `nees_velocity_inside`. Values `..._inside` are shares of
        samples within their two-sided 95 % bounds.

    Raises
    ------
    Sim2RealError
        When the ground truth does not overlap the estimates in time.
    """
    truth = recording.require('truth')
    assert isinstance(truth, OdometryArray)
    origin_ns = int(truth.stamp_ns[0])
    world, _, alignment = judged_world(judge, recording, truth, judged)
    inside = np.flatnonzero(has_truth_at(world, judged.stamp_ns))
    true = interpolate_truth(world, judged.stamp_ns[inside])
    true_position = np.full(judged.position.shape, np.nan)
    true_position[inside] = true.position
    signals = EstimateSignals(
        time=_seconds_since(origin_ns, judged.stamp_ns),
        position=judged.position,
        true_position=true_position,
        orientation=judged.orientation,
        velocity=judged.linear_velocity,
        position_sigma=_sigma(judged.pose_covariance),
        velocity_sigma=_sigma(judged.twist_covariance),
        true_time=_seconds_since(origin_ns, truth.stamp_ns),
        true_velocity=truth.linear_velocity,
        true_orientation=truth.orientation,
    )
    since_ns = origin_ns + round(metric.warmup * 1e9)
    is_late = true.stamp_ns >= since_ns
    inside, true = inside[is_late], true.take(is_late)
    innovations = nis(judged, two_d=is_planar(judge))
    values = {
        **_speed_values(series, metric),
        **_nis_values(judged, recording, innovations, since_ns),
    }
    if len(inside):
        values |= _error_values(signals, inside, true, 'orientation' not in judged.unknown)
        values |= _nees_values(nees_at(judged, inside, true, *known_axes(judge), alignment))
    return signals, {name: value for name, value in values.items() if not math.isnan(value)}


def _seconds_since(origin_ns: int, stamp_ns: IntArray) -> FloatArray:
    return np.asarray((stamp_ns - origin_ns) * 1e-9, dtype=np.float64)


def _sigma(covariance: FloatArray) -> FloatArray:
    """Return the first three standard deviations, (n, 3), of covariances (n, 6, 6)."""
    variance = covariance[:, (0, 1, 2), (0, 1, 2)]
    # The faithful UKF can state a negative variance, which has no standard deviation.
    return np.sqrt(np.where(variance >= 0.0, variance, np.nan))


def _speed_values(series: VelocitySeries, metric: MetricOptions) -> dict[str, float]:
    # The scored speeds have been re-zeroed and cut.
    run = resample(series, dataclasses.replace(metric, warmup=0.0, rezero='none'))
    error = run.se_vel - run.gt_vel
    return {
        'speed_bias': float(np.mean(error)),
        'speed_std': float(np.std(error)),
        'speed_correlation_time': correlation_time(error) / metric.rate,
    }


def _error_values(
    signals: EstimateSignals, inside: NDArray[np.intp], true: OdometryArray, has_orientation: bool
) -> dict[str, float]:
    """Return errors of pose and velocity of the estimates `inside`, at the true motion `true`.

    Without an estimated orientation, velocities are compared in the axes of the world.
    """
    orientation = signals.orientation[inside]
    velocity, true_velocity = signals.velocity[inside], true.linear_velocity
    if not has_orientation:
        velocity = rotate(orientation, velocity)
        true_velocity = rotate(true.orientation, true_velocity)
    position_error = (signals.position[inside] - true.position)[:, :2]
    position = _root_mean_square(position_error)
    velocity_rmse = _root_mean_square((velocity - true_velocity)[:, :2])
    values = {
        'position_rmse': position,
        'position_end': float(np.hypot(*position_error[-1])),
        'velocity_rmse': velocity_rmse,
    }
    if has_orientation:
        yaw_error = wrap(heading(orientation) - heading(true.orientation))
        values['orientation_rmse'] = _root_mean_square(
            rotation_between(true.orientation, orientation)
        )
        values['yaw_rmse'] = _root_mean_square(yaw_error[:, np.newaxis])
    if position > 0.0:
        sigma = _root_mean_square(signals.position_sigma[inside, :2])
        values['position_covariance_consistency'] = sigma / position
    if velocity_rmse > 0.0:
        sigma = _root_mean_square(signals.velocity_sigma[inside, :2])
        values['velocity_covariance_consistency'] = sigma / velocity_rmse
    return values


def _root_mean_square(vectors: FloatArray) -> float:
    """Return the root of the mean squared length of vectors, (n, k)."""
    return float(np.sqrt(np.mean(np.sum(vectors**2, axis=1))))


def _nis_values(
    judged: JudgedRun, recording: Recording, squares: Sequence[Squares], since_ns: int
) -> dict[str, float]:
    sensors: dict[str, list[Squares]] = {}
    for part, part_squares in zip(judged.parts, squares, strict=True):
        late = part_squares.skip_before(since_ns)
        if len(late):
            sensors.setdefault(_sensor_of(part, recording), []).append(late)
    values = {f'nis_{sensor}': _mean_ratio(parts) for sensor, parts in sensors.items()}
    if sensors:
        values['nis_inside'] = _inside([part for parts in sensors.values() for part in parts])
    return values


def _sensor_of(part: PartCount, recording: Recording) -> str:
    """Return the sensor of a filter input: `gps`, `imu` or `other`."""
    topic = part.topic.strip('/')
    if topic == NAVSAT_TOPIC:
        return 'gps'
    for sensor in ('gps', 'imu'):
        if topic == recording.roles.get(sensor, '').strip('/'):
            return sensor
    # A filter that expects a topic which the recording lacks gets the recording's IMU.
    return 'other' if topic in {name.strip('/') for name in recording.messages} else 'imu'


def _nees_values(squares: Sequence[Squares]) -> dict[str, float]:
    values = {}
    for quantity, quantity_squares in zip(QUANTITIES, squares, strict=True):
        if len(quantity_squares):
            values[f'nees_{quantity.replace(" ", "_")}'] = _mean_ratio([quantity_squares])
            if quantity == 'velocity':
                values['nees_velocity_inside'] = _inside([quantity_squares])
    return values


def _mean_ratio(parts: Sequence[Squares]) -> float:
    """Return the sum of normalised squares over the sum of their degrees of freedom."""
    total = sum(float(np.sum(part.squares)) for part in parts)
    return total / sum(int(np.sum(part.freedom)) for part in parts)


def _inside(parts: Sequence[Squares]) -> float:
    """Return the share of normalised squares within their bounds."""
    count = sum(len(part) for part in parts)
    return sum(inside_share(part, _PROBABILITY) * len(part) for part in parts) / count


_REMEDIES = {
    'real': '`corrections: {{{role}: {{{keys}}}}}` in recording.yaml',
    'simulated': '`covariance: {form}` in the file of the model',
}
"""Where the side that lacks covariances can state them."""
_FORMS = {'gps': '{model: constant, std: [EAST, NORTH, UP]}', 'imu': 'white_noise'}
"""Parameter `covariance` of a model that states it."""


def one_sided_covariances(real: Recording, simulated: Recording) -> tuple[Finding, ...]:
    """Return a finding for each sensor that states covariances on one side only.

    Zeros mean that a covariance is unknown; -1 means that the quantity is absent.

    Examples
    --------
    >>> from sim2real_eval import simulate
    >>> from sim_sensors import motion_of
    >>> motion = motion_of('line', duration=2.0)
    >>> one, other = (simulate(motion, gps='ch_rw', imu=imu) for imu in ('chrono', 'ideal'))
    >>> [finding.words['quantities'] for finding in one_sided_covariances(one, other)]
    ['linear acceleration, angular velocity']
    """
    notes = []
    for role, quantities in COVARIANCES.items():
        if role not in real.roles or role not in simulated.roles:
            continue
        lacking: dict[str, list[tuple[str, str]]] = {'real': [], 'simulated': []}
        for name, key in quantities:
            if name == 'orientation':
                # Judges take an unknown one as certain, and say so; models need not publish it.
                continue
            real_states = _states_covariance(real.require(role), name)
            simulated_states = _states_covariance(simulated.require(role), name)
            if {real_states, simulated_states} == {True, False}:
                lacking['simulated' if real_states else 'real'].append((name, key))
        notes += [
            COVARIANCE_ONE_SIDED(
                real.roles[role],
                has='simulated' if side == 'real' else 'real',
                lacks=side,
                sensor=role.upper(),
                quantities=', '.join(name.replace('_', ' ') for name, _ in missing),
                remedy=_REMEDIES[side].format(
                    role=role,
                    keys=', '.join(f'{key}: VALUE' for _, key in missing),
                    form=_FORMS[role],
                ),
            )
            for side, missing in lacking.items()
            if missing
        ]
    return tuple(notes)


def _states_covariance(array: MessageArray, quantity: str) -> bool | None:
    """Return whether messages state a covariance; None if the quantity is absent."""
    covariance = getattr(array, f'{quantity}_covariance')
    if covariance[:, 0, 0].max(initial=0.0) > 0.0:
        return True
    return None if covariance.any() else False
