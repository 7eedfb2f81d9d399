# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Scores of runs, VEPD and energy distance between sets of runs, and findings about scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim2real_eval.common.findings import Finding
from sim2real_eval.common.results import Field
from sim_sensors.core.measurements import FloatArray
from .options import (
    ENDS_EARLY,
    LATE_START,
    MIXTURES_DIFFER,
    MOVING_START,
    SERIES_GAP,
    SHORT_RUN,
    SLOW_TRUTH,
    MetricError,
    MetricOptions,
)

if TYPE_CHECKING:
    from .series import VelocitySeries


def wiener_entropy(signal: ArrayLike, options: MetricOptions | None = None) -> float:
    r"""Return the Wiener entropy of a signal as the paper computes it.

    A_k are the magnitudes of the full complex FFT (both halves, no window), e is the floor:

    .. math:: SF = \exp(\overline{\ln(A_k + e)}) / \overline{A_k}

    It does not depend on the scale of the signal (as long as A >> e) and lies between 0 (all in
    one frequency: a constant) and 1 (all frequencies alike: an impulse). White Gaussian noise
    gives exp((ln 2 - gamma) / 2) / sqrt(pi / 2) = 0.8455, and exp(-gamma) = 0.5615 with the power
    spectrum. Source: [Mahajan2024], section II-E, and its scripts [SBEL].

    Parameters
    ----------
    signal : (n,) array_like
        Samples on an even grid.
    options : MetricOptions, optional
        Uses `spectrum`, `detrend` and `spectrum_floor`.

    Returns
    -------
    float
        Dimensionless.

    Raises
    ------
    MetricError
        When the signal is empty, not finite, or zero throughout (0 / 0).

    Examples
    --------
    >>> round(wiener_entropy([0.0, 1.0, 0.0, 0.0]), 6)
    1.0
    """
    options = options or MetricOptions()
    values: FloatArray = np.asarray(signal, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or not np.all(np.isfinite(values)):
        raise MetricError('entropy needs a signal (n,) that is finite and not empty')
    if options.detrend == 'mean':
        values = values - values.mean()
    amplitude = np.abs(np.fft.fft(values))
    if options.spectrum == 'power':
        amplitude = amplitude**2
    mean = float(np.mean(amplitude))
    if mean == 0.0:
        problem = 'without its mean ' if options.detrend == 'mean' else ''
        raise MetricError(f'signal {problem}is zero everywhere; its Wiener entropy is undefined')
    return float(np.exp(np.mean(np.log(amplitude + options.spectrum_floor))) / mean)


_MAX_SAMPLES = 10_000_000


@dataclasses.dataclass(frozen=True, eq=False)
class ResampledRun:
    """Truth and estimate on the common grid.

    `time` is 0, 1/rate, 2/rate ... s, `gt_vel` and `se_vel` are m/s, `(n,)` each; the grid ends
    before `duration`, s: the earlier end of truth and estimate.
    """

    time: FloatArray
    gt_vel: FloatArray
    se_vel: FloatArray
    duration: float


@dataclasses.dataclass(frozen=True)
class RunScore:
    """Score of one run.

    Attributes
    ----------
    rmse : float
        Root mean square of estimate minus truth, m/s, not normalised.
    entropy_gt, entropy_se : float
        Wiener entropy of truth and estimate.
    entropy_difference : float
        |entropy_gt - entropy_se|.
    n_samples : int
        Number of grid points.
    duration : float
        Duration of the run, s.
    """

    rmse: float
    entropy_gt: float
    entropy_se: float
    entropy_difference: float
    n_samples: int
    duration: float


def prepare(series: VelocitySeries, options: MetricOptions) -> VelocitySeries:
    """Re-zero the times and remove the warm-up, as the options say.

    The result, scored with `rezero` none and `warmup` 0, has the same score as the original series
    with these options. It is therefore the series to export. Raise SeriesError if the warm-up
    leaves nothing.
    """
    se, gt = float(series.se_time[0]), float(series.gt_time[0])
    if options.rezero == 'each':
        series = series.shift_times(se, gt)
    elif options.rezero == 'common':
        series = series.shift_times(min(se, gt), min(se, gt))
    return series.skip_start(options.warmup, window=options.moving_average)


def resample(series: VelocitySeries, options: MetricOptions | None = None) -> ResampledRun:
    """Bring truth and estimate to the common grid, as the scripts [SBEL] do.

    The truth is interpolated linearly. The estimate and its times first go through a moving
    average (complete windows only), then through the same interpolation. Outside its data a signal
    keeps its first or last value. Raise MetricError for an estimate shorter than the moving
    average, and for fewer than 2 or more than 1e7 grid points; other errors as `prepare`.
    """
    options = options or MetricOptions()
    series = prepare(series, options)
    window = options.moving_average
    if len(series.se_time) < window:
        raise _error(
            series,
            f'estimate has {len(series.se_time)} samples; must be >= {window} (moving_average)',
        )
    duration = series.duration
    count = duration * options.rate
    if not 1 < count <= _MAX_SAMPLES:
        raise _error(
            series,
            f'{duration:g} s at {options.rate:g} Hz; must give 2 to {_MAX_SAMPLES} grid points '
            '(times must be seconds since the start of the run, see rezero)',
        )
    # arange, not k / rate: the grid of the published script to the last bit. If the run ends
    # on a grid point, rounding may add that point; it then takes the end values.
    time = np.arange(0.0, duration, 1.0 / options.rate)
    kernel = np.ones(window) / window
    se_time = np.convolve(series.se_time, kernel, 'valid')
    se_vel = np.convolve(series.se_vel, kernel, 'valid')
    return ResampledRun(
        time=time,
        gt_vel=np.interp(time, series.gt_time, series.gt_vel),
        se_vel=np.interp(time, se_time, se_vel),
        duration=duration,
    )


def score_run(series: VelocitySeries, options: MetricOptions | None = None) -> RunScore:
    """Score one run.

    Parameters
    ----------
    series : VelocitySeries
        Estimate and truth.
    options : MetricOptions, optional
        By default, those of the paper.

    Raises
    ------
    MetricError
        See `resample`; also when truth or estimate is zero throughout (a standstill with a
        perfect estimate: the paper skips its scenario `rest`).
    SeriesError
        When the warm-up leaves nothing.

    Examples
    --------
    >>> from sim2real_eval.metrics.series import VelocitySeries
    >>> time = np.linspace(0.0, 20.0, 401)
    >>> series = VelocitySeries(time, np.full(401, 1.1), time, np.ones(401))
    >>> round(score_run(series).rmse, 6)
    0.1
    """
    options = options or MetricOptions()
    run = resample(series, options)
    entropies = []
    for name, velocity in (('truth', run.gt_vel), ('estimate', run.se_vel)):
        try:
            entropies.append(wiener_entropy(velocity, options))
        except MetricError as error:
            raise _error(series, f'{name}: {error}') from None
    entropy_gt, entropy_se = entropies
    return RunScore(
        rmse=float(np.sqrt(np.mean(np.square(run.gt_vel - run.se_vel)))),
        entropy_gt=entropy_gt,
        entropy_se=entropy_se,
        entropy_difference=abs(entropy_gt - entropy_se),
        n_samples=len(run.time),
        duration=run.duration,
    )


def _error(series: VelocitySeries, problem: str) -> MetricError:
    return MetricError(f'{series.name}: {problem}' if series.name else problem)


# Findings that limit what the score of a run means.

STARTING_SPEED = 0.5
"""True speed at the start, m/s, above which a run is reported to begin in motion."""

SHORTEST_RUN = 10.0
"""Duration, s, below which a run is reported as short; the paper's runs last 20 s."""

_CUT = 1.0  # s; topics never start and end together, so smaller differences are normal
_LATE_SHARE = 0.1  # of the run
_GAP = 1.0  # s
_RATE_TOLERANCE = 0.95  # a 15 Hz truth with jitter is not slower than a 15 Hz grid


def is_slow(truth_rate: float, grid_rate: float) -> bool:
    """Return whether truth is slower than the grid, both in Hz."""
    return truth_rate < _RATE_TOLERANCE * grid_rate


def slow_truth_advice(truth_rate: float, grid_rate: float) -> list[Finding]:
    """Return the consequence of a truth that is slower than the grid, Hz; empty if it is not."""
    if not is_slow(truth_rate, grid_rate):
        return []
    return [SLOW_TRUTH(rate=truth_rate, grid=grid_rate, half=truth_rate / 2)]


def advice(series: VelocitySeries, options: MetricOptions | None = None) -> list[Finding]:
    """Return findings that limit what the score of this run means.

    Raise SeriesError if the warm-up leaves nothing.
    """
    options = options or MetricOptions()
    run = prepare(series, options)
    findings: list[Finding] = []
    steps = np.diff(run.gt_time)
    steps = steps[steps > 0]
    if len(steps):
        # The median interval gives the typical rate even if there are gaps.
        findings += slow_truth_advice(1.0 / float(np.median(steps)), options.rate)
    start = float(np.interp(max(0.0, run.gt_time[0]), run.gt_time, run.gt_vel))
    # A warm-up removes the start.
    if options.warmup == 0.0 and abs(start) > STARTING_SPEED:
        findings.append(MOVING_START(speed=start))
    if run.duration < SHORTEST_RUN:
        samples = int(run.duration * options.rate)
        findings.append(SHORT_RUN(duration=run.duration, samples=samples))
    ends = {'estimate': run.se_time[-1], 'truth': run.gt_time[-1]}
    early, late = sorted(ends, key=lambda name: float(ends[name]))
    if ends[late] - ends[early] > _CUT:
        findings.append(ENDS_EARLY(early, time=ends[late] - ends[early], other=late))
    for name, first in (('estimate', run.se_time[0]), ('truth', run.gt_time[0])):
        if first > max(_CUT, _LATE_SHARE * run.duration):
            findings.append(LATE_START(name, gap=first, share=first / run.duration))
        elif first > _CUT:
            findings.append(
                SERIES_GAP(name, gap=first, filling='at its start: the first value is used there')
            )
    for name, time in (('truth', run.gt_time), ('estimate', run.se_time)):
        gap = float(np.max(np.diff(time))) if len(time) > 1 else 0.0
        if gap > _GAP:
            findings.append(
                SERIES_GAP(name, gap=gap, filling='between samples, bridged by a straight line')
            )
    return findings


POOLED = 'all'
VEPD_COLUMNS = ('model', 'scenario', 'n_real', 'n_sim', 'w_rmse', 'w_entropy', 'vepd', 'rank')


@dataclasses.dataclass(frozen=True)
class Vepd:
    """Distance between two sets of runs.

    Attributes
    ----------
    n_real, n_sim : int
        Runs in the two sets.
    w_rmse : float
        First Wasserstein distance between the RMSE values, m/s.
    w_entropy : float
        First Wasserstein distance between the entropy differences, dimensionless.
    vepd : float
        Mean of the two numbers (the paper adds a speed to a pure number).
    """

    n_real: int
    n_sim: int
    w_rmse: float
    w_entropy: float
    vepd: float


@dataclasses.dataclass(frozen=True)
class VepdRow(Vepd):
    """One row of vepd.csv: a `Vepd` with its labels."""

    # Labels; scenario `all` is all scenarios pooled
    model: str
    scenario: str
    # 1 is the smallest VEPD among the models of the scenario; equal values share the average of
    # their ranks, hence a float
    rank: float

    def fields(self) -> tuple[Field, ...]:
        """Return the fields in the order of `VEPD_COLUMNS`; a whole rank as an integer."""
        rank = int(self.rank) if self.rank.is_integer() else self.rank
        return (*(getattr(self, name) for name in VEPD_COLUMNS[:-1]), rank)


def vepd(real_scores: Sequence[RunScore], sim_scores: Sequence[RunScore]) -> Vepd:
    """Return the VEPD of a set of simulated runs against a set of real ones.

    VEPD = (W1 + W2) / 2, W1 between the two sets of RMSE and W2 between the two sets of entropy
    differences. Source: [Mahajan2024], section II-E.

    Raises
    ------
    MetricError
        When a set is empty.

    Examples
    --------
    >>> score = RunScore(0.1, 0.2, 0.3, 0.1, 300, 20.0)
    >>> vepd([score], [score]).vepd
    0.0
    """
    for name, scores in (('real', real_scores), ('simulated', sim_scores)):
        if not scores:
            raise MetricError(f'no {name} run; VEPD needs at least one real and one simulated')
    w_rmse, w_entropy = (
        wasserstein(
            [getattr(score, name) for score in sim_scores],
            [getattr(score, name) for score in real_scores],
        )
        for name in ('rmse', 'entropy_difference')
    )
    return Vepd(len(real_scores), len(sim_scores), w_rmse, w_entropy, (w_rmse + w_entropy) / 2)


# scipy.stats has the next two functions, too, but its import takes longer than all statistics of
# most studies.


def wasserstein(first: ArrayLike, second: ArrayLike) -> float:
    """Return W1 between two sets of numbers, (n,) and (m,): the integral of |F - G|.

    Examples
    --------
    >>> wasserstein([0.0, 1.0], [1.0, 2.0])
    1.0
    """
    first_sorted, second_sorted = np.sort(first), np.sort(second)
    points = np.sort(np.concatenate([first_sorted, second_sorted]))
    shares = [
        np.searchsorted(side, points[:-1], 'right') / len(side)
        for side in (first_sorted, second_sorted)
    ]
    return float(np.abs(shares[0] - shares[1]) @ np.diff(points))


def ranks(values: ArrayLike) -> FloatArray:
    """Return the rank of each value (n, ...) among the n, from 1; equal ones share the mean rank.

    NaN has the rank NaN and does not count.

    Examples
    --------
    >>> ranks([0.3, 0.1, 0.3]).tolist()
    [2.5, 1.0, 2.5]
    """
    numbers = np.asarray(values, dtype=np.float64)
    ranking = np.empty(numbers.shape)
    for place, number in enumerate(numbers):
        ranking[place] = (numbers < number).sum(axis=0) + (
            (numbers == number).sum(axis=0) + 1
        ) / 2.0
    return np.where(np.isnan(numbers), np.nan, ranking)


def vepd_table(
    real: Mapping[str, Sequence[RunScore]], sim: Mapping[str, Mapping[str, Sequence[RunScore]]]
) -> list[VepdRow]:
    """Return the VEPD of every model per scenario, then pooled over all scenarios.

    `real` are scores of the real runs by scenario, `sim` those of the simulated ones by model and
    scenario. Scenarios come in the order of `real` and `all` last, inside them the models in the
    order of `sim`. A row is made where both sides have runs; `all` pools every run of either side,
    see `coverage_notes`. Raise MetricError if there is nothing to compare, or a scenario is called
    `all`.
    """
    scenarios = [*real, *(name for model in sim.values() for name in model)]
    if POOLED in scenarios:
        raise MetricError(
            f'scenario name {POOLED!r} is reserved for the pooled row; rename the scenario'
        )
    rows: list[VepdRow] = []
    for scenario, scores in real.items():
        runs_by_model = {model: runs.get(scenario, ()) for model, runs in sim.items()}
        rows += _rank_models(scenario, scores, runs_by_model)
    rows += _rank_models(
        POOLED, _pool_runs(real), {model: _pool_runs(runs) for model, runs in sim.items()}
    )
    if not rows:
        raise MetricError('no runs to compare; need at least one real and one simulated run')
    return rows


def _pool_runs(runs: Mapping[str, Sequence[RunScore]]) -> list[RunScore]:
    return [score for scores in runs.values() for score in scores]


def _rank_models(
    scenario: str, real: Sequence[RunScore], sim: Mapping[str, Sequence[RunScore]]
) -> list[VepdRow]:
    if not real:
        return []
    results = {model: vepd(real, scores) for model, scores in sim.items() if scores}
    # Ranks come from the unrounded values; pandas' rank, which the paper uses, averages ties too.
    ranking = ranks([result.vepd for result in results.values()])
    return [
        VepdRow(**dataclasses.asdict(result), model=model, scenario=scenario, rank=float(rank))
        for (model, result), rank in zip(results.items(), ranking, strict=True)
    ]


def coverage_notes(
    real: Mapping[str, Sequence[RunScore]], sim: Mapping[str, Mapping[str, Sequence[RunScore]]]
) -> list[Finding]:
    """Return findings about sets that cover scenarios in different proportions.

    The pooled row then compares different mixtures of scenarios, also between models.
    """
    n_real = {scenario: len(scores) for scenario, scores in real.items() if scores}
    notes: list[Finding] = []
    for model, runs in sim.items():
        n_sim = {scenario: len(scores) for scenario, scores in runs.items() if scores}
        total_real, total_sim = sum(n_real.values()), sum(n_sim.values())
        counts = {name: (n_real.get(name, 0), n_sim.get(name, 0)) for name in {**n_real, **n_sim}}
        uneven = [
            f'{name} {of_real} real, {of_sim} simulated'
            for name, (of_real, of_sim) in counts.items()
            if of_real * total_sim != of_sim * total_real
        ]
        if uneven:
            notes.append(MIXTURES_DIFFER(model, runs='; '.join(uneven)))
    return notes


# Energy distance between two sets of points: zero only if the two distributions are equal.
#
# The Wasserstein distances of VEPD compare RMSE and entropy difference separately. Two sets can
# agree in both although their runs combine the values differently. The energy distance compares
# the points themselves [Szekely2013].


@dataclasses.dataclass(frozen=True, eq=False)
class EnergyDistance:
    """Energy distance for many ways to divide the same runs into two sets.

    sqrt(2 E|X - Y| - E|X - X'| - E|Y - Y'|), which `scipy.stats.energy_distance` computes in one
    dimension. Like that function, it pairs each point with itself too, so it depends on the sizes
    of the sets.

    `pair_distances` `(runs, runs)` are the Euclidean distances of any two runs. They are None for
    more than `MAX_IN_MATRIX` runs in two dimensions, as they would need gigabytes. The distance
    is then the mean over `_DIRECTIONS` projections of `values`, where it is 2 times the integral
    of (F - G)^2 (G. J. Szekely and M. L. Rizzo, J. Stat. Plan. Inference 143, 2013). The mean
    length of the projections of a vector is 2 / pi of its length; the error is below 0.4 %.
    """

    values: FloatArray
    pair_distances: FloatArray | None

    @classmethod
    def from_values(cls, values: FloatArray, scale: FloatArray | None = None) -> EnergyDistance:
        """Prepare the distance from the values `(runs, coordinates)` of all runs.

        Each coordinate is divided by its `scale` (coordinates,); one with scale 0 does not count.
        """
        if scale is not None:
            values = values[:, scale > 0.0] / scale[scale > 0.0]
        if len(values) > MAX_IN_MATRIX and values.shape[1] == 2:
            return cls(values, None)
        steps = values[:, None, :] - values[None, :, :]
        return cls(values, np.sqrt(np.sum(steps**2, axis=2)))

    def between(self, first: NDArray[np.bool_]) -> FloatArray:
        """Return the distance between the runs chosen by each row of `(p, runs)` and the rest."""
        first_weights = first / first.sum(axis=1, keepdims=True)
        difference = first_weights - ~first / (~first).sum(axis=1, keepdims=True)
        if self.pair_distances is None:
            square, largest = self._projected(difference), float(np.ptp(self.values))
        else:
            square = -np.sum((difference @ self.pair_distances) * difference, axis=1)
            largest = float(self.pair_distances.max(initial=0.0))
        # For equal sets, only rounding of either sign is left.
        return np.sqrt(np.where(square > 1e-12 * max(largest, 1e-300), square, 0.0))

    def _projected(self, difference: FloatArray) -> FloatArray:
        square = np.zeros(len(difference))
        for angle in np.arange(_DIRECTIONS) * np.pi / _DIRECTIONS:
            along = self.values @ [np.cos(angle), np.sin(angle)]
            order = np.argsort(along, kind='stable')
            gaps = np.cumsum(difference[:, order[:-1]], axis=1)
            square += np.pi / _DIRECTIONS * (np.square(gaps, out=gaps) @ np.diff(along[order]))
        return square


MAX_IN_MATRIX = 1000
_DIRECTIONS = 32


def energy_distance(first: FloatArray, second: FloatArray) -> float:
    """Return the energy distance between two sets of points, (n, k) and (m, k).

    Examples
    --------
    >>> energy_distance(np.zeros((4, 2)), np.zeros((3, 2)))
    0.0
    """
    labels = np.arange(len(first) + len(second)) < len(first)
    return float(
        EnergyDistance.from_values(np.concatenate([first, second])).between(labels[None])[0]
    )
