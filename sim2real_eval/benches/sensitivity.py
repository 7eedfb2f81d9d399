# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Smallest sensor errors that a study with each judge detects.

Errors of known size are injected into the messages of recordings. A trial draws as many runs as a
study has and applies the permutation test of VEPD, as a study does. Because trials share runs, the
standard error of the power is estimated by the infinitesimal jackknife for subsamples, corrected
for Monte Carlo noise (S. Wager, T. Hastie and B. Efron, J. Mach. Learn. Res. 15, 2014).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from sim2real_eval.common.findings import Finding, by_severity
from sim2real_eval.metrics.mean_wasserstein import MeanWasserstein, side_weights
from sim2real_eval.metrics.options import MetricError
from sim2real_eval.metrics.permutation_test import joint_p_values, permute_labels
from sim2real_eval.recording.corrections import FixCorrection, ImuCorrection
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import interpolate_truth
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.blocks import assign_blocks
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.recordings import StudyRecording, adapt_options, examine_recordings
from sim2real_eval.study.run_plan import Judging, RunPlan
from sim2real_eval.study.search.engine import EvaluationPool, EvaluationStore, Progress
from sim2real_eval.study.search.size import Power, SizeEstimate, SizeSearch
from sim2real_eval.study.variants import StudyJudge
from sim_sensors.core import rotations
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FixArray, FloatArray, ImuArray, IntArray, is_absent
from sim_sensors.core.seeding import stream
from sim_sensors.world.geodesy import LocalFrame
from . import settings
from .settings import LEVEL, SensitivityOptions

__all__ = [
    'ERRORS', 'Detectable', 'InjectedError', 'Sensitivity', 'SensitivityOptions', 'Trials',
    'sensitivity', 'unpaired_runs',
]  # fmt: skip

Injection = Callable[[Recording, float, np.random.Generator], Recording]
"""Takes a recording, a size and a generator in the same state for every size."""


@dataclasses.dataclass(frozen=True)
class InjectedError:
    """A kind of sensor error with an adjustable size.

    Attributes
    ----------
    name, unit : str
    noun : str
        Name with its article, as in `detects a GPS delay`.
    meaning : str
        Definition of the size, for tables.
    role : str
        Role of the changed messages.
    start, most : float
        First and largest size of the search.
    change : Injection
    """

    name: str
    unit: str
    noun: str
    meaning: str
    role: str
    start: float
    most: float
    change: Injection

    def applies(self, recording: Recording) -> bool:
        """Return whether the recording has the quantity that the error changes."""
        if recording.roles.get(self.role) is None:
            return False
        imu = recording.imu
        return self.name != 'heading' or (
            imu is not None and not is_absent(imu.orientation_covariance).any()
        )


def _imu(recording: Recording) -> ImuArray:
    imu = recording.require('imu')
    assert isinstance(imu, ImuArray)
    return imu


def _fixes(recording: Recording) -> FixArray:
    fixes = recording.require('gps')
    assert isinstance(fixes, FixArray)
    return fixes


def _shift_fixes(recording: Recording, offset: FloatArray) -> Recording:
    """Return the recording with fixes shifted by metres east, north and up, `(n, 3)`."""
    fixes = _fixes(recording)
    geodetic = np.stack([fixes.latitude, fixes.longitude, fixes.altitude], axis=1)
    valid = np.isfinite(geodetic).all(axis=1)
    if not valid.any():
        return recording
    frame = LocalFrame(*geodetic[valid][0].tolist())
    shifted = frame.to_geodetic(frame.to_enu(*geodetic[valid].T) + offset[valid])
    geodetic[valid] = np.stack(shifted, axis=1)
    latitude, longitude, altitude = geodetic.T.copy()
    changed = dataclasses.replace(fixes, latitude=latitude, longitude=longitude, altitude=altitude)
    return recording.with_messages('gps', changed)


def _correct_imu(recording: Recording, correction: ImuCorrection) -> Recording:
    return recording.with_messages('imu', correction.apply(_imu(recording)))


def _add_fix_noise(recording: Recording, size: float, rng: np.random.Generator) -> Recording:
    return _shift_fixes(recording, size * rng.standard_normal((len(_fixes(recording)), 3)))


def _move_antenna(recording: Recording, size: float, rng: np.random.Generator) -> Recording:
    truth = recording.truth
    assert truth is not None
    stamps = np.clip(_fixes(recording).stamp_ns, truth.stamp_ns[0], truth.stamp_ns[-1])
    ahead = np.broadcast_to([size, 0.0, 0.0], (len(stamps), 3))
    return _shift_fixes(
        recording, rotations.rotate(interpolate_truth(truth, stamps).orientation, ahead)
    )


def _delay_fixes(recording: Recording, size: float, rng: np.random.Generator) -> Recording:
    delayed = FixCorrection(delay=-size).apply(_fixes(recording))
    return recording.with_messages('gps', delayed)


def _add_rate_bias(recording: Recording, size: float, rng: np.random.Generator) -> Recording:
    return _correct_imu(recording, ImuCorrection(rate_bias=(0.0, 0.0, -size)))


def _delay_imu(recording: Recording, size: float, rng: np.random.Generator) -> Recording:
    return _correct_imu(recording, ImuCorrection(delay=-size))


def _turn_heading(recording: Recording, size: float, rng: np.random.Generator) -> Recording:
    return _correct_imu(recording, ImuCorrection(heading=-size))


def _add_force_bias(recording: Recording, size: float, rng: np.random.Generator) -> Recording:
    imu = _imu(recording)
    biased = imu.linear_acceleration + np.array([size, 0.0, 0.0])
    changed = dataclasses.replace(imu, linear_acceleration=biased)
    return recording.with_messages('imu', changed)


def _scale_rates(recording: Recording, size: float, rng: np.random.Generator) -> Recording:
    imu = _imu(recording)
    # A correction of units would scale the stated covariance, too.
    changed = dataclasses.replace(imu, angular_velocity=(1.0 + size) * imu.angular_velocity)
    return recording.with_messages('imu', changed)


ERRORS = {error.name: error for error in (
    InjectedError(
        'gps_noise', 'm', 'white GPS noise', 'standard deviation of each axis, added to the fixes',
        'gps', 0.3, 100.0, _add_fix_noise,
    ),
    InjectedError(
        'gps_delay', 's', 'a GPS delay', 'stamps of the fixes are late', 'gps', 0.2, 5.0,
        _delay_fixes,
    ),
    InjectedError(
        'lever_arm', 'm', 'a GPS lever arm', 'antenna further forward than stated', 'gps', 0.5,
        50.0, _move_antenna,
    ),
    InjectedError(
        'gyro_bias', 'rad/s', 'a gyro bias', 'about the vertical axis of the IMU', 'imu', 0.01,
        3.0, _add_rate_bias,
    ),
    InjectedError(
        'gyro_scale', '1', 'a gyro scale error', 'relative to the rates', 'imu', 0.05, 1.0,
        _scale_rates,
    ),
    InjectedError(
        'accelerometer_bias', 'm/s^2', 'an accelerometer bias',
        'along the forward axis of the IMU', 'imu', 0.2, 10.0, _add_force_bias,
    ),
    InjectedError(
        'imu_delay', 's', 'an IMU delay', 'stamps of the IMU are late', 'imu', 0.1, 5.0,
        _delay_imu,
    ),
    InjectedError(
        'heading', 'deg', 'a heading error', 'of the published orientation', 'imu', 3.0, 90.0,
        _turn_heading,
    ),
)}  # fmt: skip
"""All kinds of errors by name."""


@dataclasses.dataclass(frozen=True, eq=False)
class Trials:
    """Random studies that are drawn from runs `(recordings, draws)` without and with an error.

    Attributes
    ----------
    recording, draw : (trials, 2 n) int
        Indices of the runs of each trial; those without the error first.
    weights : (permutations, 2 n) array
        Signed weights of the runs in each permutation; the first row is unpermuted.
    shape : tuple of int
        Number of recordings and of draws.
    paired : bool
        Whether both runs of a pair are of the same recording.
    """

    recording: IntArray
    draw: IntArray
    weights: FloatArray
    shape: tuple[int, int]
    paired: bool

    @classmethod
    def draw_trials(
        cls, recordings: int, draws: int, trials: int, permutations: int, seed: int
    ) -> Trials:
        """Draw random studies from runs.

        The two runs of each recording are a pair if there are several draws. A single draw is the
        recorded run; half of the recordings are then compared with the other half.
        """
        rng = stream(seed, 'sensitivity', 'trials', '')
        paired = draws > 1
        if paired:
            n = recordings
            order = rng.random((trials, n, draws)).argsort(axis=2)[:, :, :2]
            draw = np.concatenate([order[:, :, 0], order[:, :, 1]], axis=1)
            recording = np.tile(np.arange(n), (trials, 2))
        else:
            n = unpaired_runs(recordings)
            recording = rng.random((trials, recordings)).argsort(axis=1)[:, : 2 * n]
            draw = np.zeros_like(recording)
        real = [f'{i}' for i in range(n)]
        simulated = real if paired else [f'other {i}' for i in range(n)]
        labels = permute_labels(real, simulated, permutations, seed).real
        first, second = side_weights(labels)
        return cls(recording, draw, first - second, (recordings, draws), paired)

    def power(self, base: FloatArray, changed: FloatArray) -> Power:
        """Return the power for runs `(recordings, draws, coordinates)` without and with an error.

        Scores that are not finite, as those of a failed judge, count as detected.
        """
        detected = np.array([self._detects(base, changed, k) for k in range(len(self.draw))])
        recordings, draws = self.shape
        degrees = recordings * (draws - 1) if self.paired else recordings - 1
        return Power(float(detected.mean()), self._standard_error(detected), degrees)

    def _detects(self, base: FloatArray, changed: FloatArray, trial: int) -> bool:
        n = self.recording.shape[1] // 2
        recording, draw = self.recording[trial], self.draw[trial]
        scores = np.concatenate([base[recording[:n], draw[:n]], changed[recording[n:], draw[n:]]])
        if not np.isfinite(scores).all():
            return True
        distances = MeanWasserstein.from_values(scores).weighted_distance(self.weights)
        return joint_p_values(distances[None]).single[0] <= LEVEL

    def _standard_error(self, detected: FloatArray) -> float:
        """Return the standard error of the mean of `detected`; see the module for the source."""
        trials, (recordings, draws) = len(detected), self.shape
        membership = np.zeros((trials, recordings, draws))
        np.put_along_axis(
            membership.reshape(trials, -1), self.recording * draws + self.draw, 1.0, axis=1
        )
        # Every trial draws `part` of the `size` runs of a stratum.
        size, part = (draws, 2) if self.paired else (recordings, self.recording.shape[1])
        share = part / size
        centred = np.asarray(detected - detected.mean(), dtype=np.float64)
        covariance = np.tensordot(centred, membership - share, axes=1) / trials
        noise = recordings * draws * share * (1.0 - share) * centred.var() / trials
        factor = (size - 1) / size * (size / (size - part)) ** 2 if size > part else 0.0
        run_variance = max(factor * (float(np.sum(covariance**2)) - noise), 0.0)
        return float(np.sqrt(run_variance + centred.var() / trials))


def unpaired_runs(recordings: int) -> int:
    """Return the number of recordings on each side; each trial leaves out at least one."""
    return (recordings - 1) // 2


@dataclasses.dataclass(frozen=True)
class Detectable(SizeEstimate):
    """The smallest error of a kind that a judge detects, in the unit of the error.

    There are no points if the messages do not hold the quantity.
    """

    judge: str = dataclasses.field(kw_only=True)
    error: InjectedError = dataclasses.field(kw_only=True)


MIN_PAIRS = 6
"""Fewest pairs of runs for which a p-value can be 0.05 or less."""

MIN_UNPAIRED = 4
"""Fewest unpaired runs of each side for which a p-value can be 0.05 or less."""


@dataclasses.dataclass(frozen=True)
class Sensitivity:
    """Smallest errors that each judge detects.

    Attributes
    ----------
    options : SensitivityOptions
    runs : int
        Runs of each side in a study.
    paired : bool
        Whether both sides follow the same motions.
    detectable : tuple of Detectable
        All errors of the first judge, then those of the next.
    false_alarms : mapping of str to float
        Share of studies without an injected error that detect one, by judge.
    notes : tuple of Finding
    """

    options: SensitivityOptions
    runs: int
    paired: bool
    detectable: tuple[Detectable, ...]
    false_alarms: Mapping[str, float]
    notes: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[InjectedError, ...]:
        """The errors that were injected."""
        return tuple(dict.fromkeys(detectable.error for detectable in self.detectable))


class _InjectionRequest(NamedTuple):
    judge: int
    error: InjectedError | None  # None: no error is injected
    size: float

    @property
    def key(self) -> tuple[object, ...]:
        return self.judge, self.error and self.error.name, self.size


class _ErrorSearch(NamedTuple):
    judge: int
    error: InjectedError
    sizes: SizeSearch

    @property
    def request(self) -> _InjectionRequest:
        return _InjectionRequest(self.judge, self.error, self.sizes.next)


def sensitivity(
    recordings: Sequence[StudyRecording],
    judges: Sequence[StudyJudge],
    twin: Twin | None,
    options: SensitivityOptions | None = None,
    study: StudyOptions | None = None,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    store: EvaluationStore | None = None,
) -> Sensitivity:
    """Find the smallest sensor errors that a study of these recordings detects.

    Parameters
    ----------
    recordings : sequence of StudyRecording
        Recordings with ground truth.
    judges : sequence of StudyJudge
    twin : Twin or None
        Sensors that are simulated on the true motion of the recordings, with and without errors.
        None uses the recorded sensors: half of the recordings, with errors injected, is compared
        with the other half.
    options : SensitivityOptions, optional
    study : StudyOptions, optional
        How runs are simulated, judged and scored.
    jobs : int
        Processes; the result does not depend on it.
    progress : Progress, optional
    store : EvaluationStore, optional
        Evaluations of an interrupted search, which are not repeated.

    Raises
    ------
    Sim2RealError
        For too few recordings, or one that cannot be read or judged.

    Examples
    --------
    >>> try:
    ...     sensitivity([], [], None)
    ... except Sim2RealError as error:
    ...     print(str(error).partition(',')[0])
    0 recordings cannot reveal anything; must be 9 or more
    """
    options = options or SensitivityOptions()
    _check_count(len(recordings), simulated=twin is not None)
    runs = unpaired_runs(len(recordings)) if twin is None else len(recordings)
    twins = () if twin is None else (twin,)
    examined = examine_recordings(recordings, twins, judges)
    adapted_study, notes = adapt_options(
        study or StudyOptions(), recordings, twins, judges, examined
    )
    spans = {name: properties.span for name, properties in examined.items()}
    in_blocks, _ = assign_blocks(recordings, adapted_study.block, spans)
    drives = len({recording.block or (recording.name,) for recording in in_blocks})
    if drives < len(recordings):
        noun = 'drive or block' if drives == 1 else 'drives or blocks'
        notes.append(settings.SAME_BLOCKS(recordings=len(recordings), drives=drives, noun=noun))
    task = _InjectionTask(tuple(judges), twins, adapted_study)
    searches = [
        _ErrorSearch(
            judge, error, SizeSearch(error.start, error.most, options.power, same_runs=not twins)
        )
        for judge in range(len(judges))
        for error in (ERRORS[name] for name in options.names)
    ]
    with EvaluationPool(jobs, progress, store) as pool:
        base = _search_sizes(task, recordings, searches, options, pool)
        trials = _draw_trials(len(recordings), base.shape[2], options, adapted_study.seed)
        alarms = pool.map(partial(_power, trials=trials), [(scores, scores) for scores in base])
    detectable = tuple(
        Detectable(
            **vars(search.sizes.estimate()), judge=judges[search.judge].label, error=search.error
        )
        for search in searches
    )
    return Sensitivity(
        options,
        runs,
        twin is not None,
        detectable,
        {judge.label: power.share for judge, power in zip(judges, alarms, strict=True)},
        tuple(by_severity([*notes, *(_finding(result, options, runs) for result in detectable)])),
    )


def _check_count(count: int, *, simulated: bool) -> None:
    least, alternative = MIN_PAIRS, ''
    if not simulated:
        least = 2 * MIN_UNPAIRED + 1
        alternative = f', or {MIN_PAIRS} with simulated sensors (--gps, --imu)'
    if count < least:
        raise MetricError(
            f'{count} recordings cannot reveal anything; must be {least} or more{alternative}'
        )


def _draw_trials(recordings: int, draws: int, options: SensitivityOptions, seed: int) -> Trials:
    return Trials.draw_trials(recordings, draws, options.trials, options.permutations, seed)


@dataclasses.dataclass(frozen=True, eq=False)
class _InjectionTask:
    judges: tuple[StudyJudge, ...]
    twins: tuple[Twin, ...]
    study: StudyOptions

    def plan(self, recording: StudyRecording, judge: int, draws: int = 1) -> RunPlan:
        setup = self.judges[judge].setup
        judging = Judging(setup, dataclasses.replace(self.study, repetitions=draws))
        return RunPlan(recording.read(setup.transforms), self.twins, judging)

    def first_run(self, recording: StudyRecording) -> Recording:
        """Return the messages of the first run, into which errors are injected."""
        plan = self.plan(recording, 0)
        return plan.recording(plan.twins[0] if self.twins else plan.real)


def _search_sizes(
    task: _InjectionTask,
    recordings: Sequence[StudyRecording],
    searches: Sequence[_ErrorSearch],
    options: SensitivityOptions,
    pool: EvaluationPool,
) -> FloatArray:
    """Evaluate sizes until every search ends, and return the scores without injected errors.

    The scores have the shape `(judges, recordings, draws, 2)`.
    """
    draws = options.draws if task.twins else 1
    first_run = task.first_run(recordings[0])
    active = [search for search in searches if search.error.applies(first_run)]
    without_error = [_InjectionRequest(judge, None, 0.0) for judge in range(len(task.judges))]
    base: list[FloatArray] = []
    first = 0
    while active or not base:
        requests = (*without_error, *(search.request for search in active))
        advance = pool.begin(len(recordings) + len(active))
        keys = tuple(request.key for request in requests)
        rows = pool.map(
            partial(_score_injections, requests=requests, task=task,
                    draws=range(first, first + draws)),
            recordings,
            keys=[(i, first, draws, keys) for i in range(len(recordings))],
            advance=advance,
        )  # fmt: skip
        scores = np.array(rows).swapaxes(0, 1)
        base.append(scores[: len(task.judges)])
        trials = _draw_trials(len(recordings), draws, options, task.study.seed + first)
        changed = scores[len(task.judges) :]
        pairs = [
            (scores[search.judge], scores_with_error)
            for search, scores_with_error in zip(active, changed, strict=True)
        ]
        powers = pool.map(partial(_power, trials=trials), pairs, advance=advance)
        for search, power in zip(active, powers, strict=True):
            search.sizes.add(power)
        active = [search for search in active if not search.sizes.is_done]
        # Simulated sensors get new runs in each round; recorded ones have a single run.
        first += draws if task.twins else 0
    return np.concatenate(base if task.twins else base[:1], axis=2)


def _score_injections(
    recording: StudyRecording,
    *,
    requests: Sequence[_InjectionRequest],
    task: _InjectionTask,
    draws: range,
) -> FloatArray:
    """Return RMSE and entropy difference of each request and draw, `(requests, draws, 2)`."""
    scores = np.full((len(requests), len(draws), 2), np.nan)
    for number, judge in enumerate(task.judges):
        own_requests = [k for k, request in enumerate(requests) if request.judge == number]
        if not own_requests:
            continue
        plan = task.plan(recording, number, draws.stop)
        runs = plan.twins[draws.start :] if task.twins else (plan.real,)
        start = plan.start_of(judge.setup)._asdict()
        for column, run in enumerate(runs):
            original = plan.recording(run)
            for k in own_requests:
                _, error, size = requests[k]
                try:
                    changed = original
                    if error is not None:
                        labels = f'{recording.name} {run.repetition}', error.name
                        rng = stream(task.study.seed, 'sensitivity', *labels)
                        changed = error.change(original, size, rng)
                    judged = judge.setup.judge(changed, **start)
                    score = plan.vepd_score(run, judged)
                except Sim2RealError:
                    if error is None:
                        raise
                    continue
                scores[k, column] = score.rmse, score.entropy_difference
    return scores


def _power(pair: tuple[FloatArray, FloatArray], *, trials: Trials) -> Power:
    return trials.power(*pair)


def _finding(detectable: Detectable, options: SensitivityOptions, runs: int) -> Finding:
    error = detectable.error
    quantity = {'noun': error.noun, 'unit': '' if error.unit == '1' else error.unit}
    study = {'runs': runs, 'power': 100.0 * options.power}
    size, low, high, points = (
        detectable.size, detectable.low, detectable.high, detectable.points
    )  # fmt: skip
    if not points:
        note = settings.NOT_THERE(noun=error.noun)
    elif detectable.jump is not None:
        before, after = (100.0 * share for share in detectable.jump)
        note = settings.JUMP(**quantity, **study, size=size, low=low, before=before, after=after)
    elif size is not None:
        note = settings.SMALLEST(**quantity, **study, size=size, low=low, high=high)
    elif points[-1].power >= options.power:
        note = settings.AT_ONCE(**quantity, least=points[0].size)
    else:
        share = 100.0 * points[-1].power
        note = settings.UNSEEN(**quantity, **study, most=points[-1].size, found=share)
    return note.restrict_to(f'judge {detectable.judge}')
