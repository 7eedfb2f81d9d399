# SPDX-License-Identifier: Apache-2.0
"""A GPS from recordings with standstills: its error, its stated covariance, and models of both.

The models are checked: simulated at standstill, they must have the statistics of the record.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.signal import fftconvolve

from sim2real_eval.common.findings import Finding, JudgeError
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import select_valid_fixes
from sim_sensors.core.measurements import FloatArray
from sim_sensors.gps.gps import GaussianNoise, GnssNoise, GpsModel, PositionNoise
from . import findings
from .markov_fit import MarkovFit, fit_markov
from .screening import resolution
from .signals import SignalFileError
from .standstill_fixes import StandingOptions, StandingRun, standing_runs
from .stated_covariance import CovarianceConsistency, StatedFit, covariance_consistency, fit_stated
from .walk_fit import WalkFit, even_errors, fit_walk

AXIS_NAMES = ('east', 'north', 'up')


@dataclasses.dataclass(frozen=True, eq=False)
class GpsResult:
    """What was found of one receiver: rate, Hz, and frame of the fixes, their errors (`axes`:
    east, north, up), the stated covariance, and their consistency, horizontal and vertical.

    `lever_arm` is that of the antenna in the base frame, (3,) m; None where it is not known.
    """

    runs: tuple[StandingRun, ...]
    rate: float
    frame: str
    lever_arm: FloatArray | None
    axes: tuple[MarkovFit, MarkovFit, MarkovFit]
    walk: WalkFit
    stated: StatedFit
    consistency: tuple[CovarianceConsistency, ...]
    notes: tuple[Finding, ...]

    @property
    def seconds(self) -> float:
        """Time at standstill."""
        return sum(run.seconds for run in self.runs)

    @property
    def rms(self) -> FloatArray:
        """Root mean square of the errors about their means, (3,) m."""
        error = np.concatenate([run.error for run in self.runs])
        return np.asarray(np.sqrt(np.mean(error**2, axis=0)), np.float64)

    def noises(self) -> dict[str, PositionNoise]:
        """Return the noise models by the name of their file: `gps` (white and Gauss-Markov),
        `gps_gaussian`, `gps_random_walk` (Ch:RW).
        """
        wanders = [(fit, fit.walk.observable) for fit in self.axes]
        found: dict[str, PositionNoise] = {
            'gps': GnssNoise(
                white_std=_three(fit.white.value for fit in self.axes),
                gauss_markov_std=_three(
                    fit.wander.value if seen else 0.0 for fit, seen in wanders
                ),
                gauss_markov_time=_three(
                    fit.time.value if seen else 100.0 for fit, seen in wanders
                ),
            ),
            'gps_gaussian': GaussianNoise(
                std=_three(
                    fit.total.value if fit.total.observable else float(rms)
                    for fit, rms in zip(self.axes, self.rms, strict=True)
                )
            ),
        }
        if self.walk.speed_limit.observable:
            found['gps_random_walk'] = self.walk.noise(self.rate)
        return found

    def models(self) -> dict[str, GpsModel]:
        """Return the models by the name of their file; they differ in the noise only."""
        base = GpsModel(
            rate=self.rate, frame_id=self.frame or 'gps_link', covariance=self.stated.model()
        )
        if self.lever_arm is not None:
            base = base.mounted(self.lever_arm)
        return {
            name: dataclasses.replace(base, noise=noise) for name, noise in self.noises().items()
        }


def _three(values: Iterable[float]) -> tuple[float, float, float]:
    east, north, up = values
    return east, north, up


def mounting(
    recording: Recording, frame: str, base: str = 'base_link'
) -> tuple[tuple[FloatArray, FloatArray] | None, list[Finding]]:
    """Return rotation (3, 3) and position (3,) of a sensor frame in the base frame, and a note.

    None where the recording does not tell; the note says so where it has other transforms.
    """
    if not recording.transforms:
        return None, []
    try:
        return FrameTree(recording.transforms).lookup(base, frame, 'sensor'), []
    except JudgeError:
        return None, [findings.NO_LEVER_ARM(frame=frame, base=base)]


def characterize_gps(
    recordings: Sequence[Recording],
    *,
    k: float = 0.02,
    base: str = 'base_link',
    options: StandingOptions | None = None,
) -> GpsResult:
    """Characterise the receiver of one or several recordings.

    Those that never stand still are left out, with a note; SignalFileError, with the reason of the
    first, when none has a standstill. `k` is the deviation that HDOP 1 stands for, m, and `base`
    the frame of the lever arm.
    """
    runs: list[StandingRun] = []
    used: list[Recording] = []
    notes: list[Finding] = []
    problems: list[SignalFileError] = []
    for recording in recordings:
        try:
            found, said = standing_runs(recording, options)
        except SignalFileError as error:
            problems.append(error)
            continue
        runs += found
        used.append(recording)
        notes += [note.of(recording.name) if len(recordings) > 1 else note for note in said]
    if not used:
        raise problems[0]
    notes += [findings.LEFT_OUT(sensor='GPS', problem=str(problem)) for problem in problems]
    fixes = used[0].gps
    assert fixes is not None
    valid = select_valid_fixes(fixes)
    place, unknown = mounting(used[0], fixes.frame, base)
    notes += unknown
    axes = tuple(fit_markov([(run.time, run.error[:, axis]) for run in runs]) for axis in range(3))
    _, period = even_errors(runs)
    longest = max(runs, key=lambda run: len(run.time))
    for name, column in zip(AXIS_NAMES, longest.error.T, strict=True):
        # Degrees rounded to 1e-7 are steps of a centimetre; their last bits differ.
        step = resolution(np.round(column, 6))
        if step > 2.0 * float(column.std()):
            notes.append(findings.MOSTLY_ROUNDING(name, step=step))
        elif step > 0.5 * float(column.std()):
            notes.append(findings.ROUNDING(name, step=step, noise=step / math.sqrt(12.0)))
    seconds = sum(run.seconds for run in runs)
    for name, fit in zip(AXIS_NAMES, axes, strict=True):
        if not fit.white.observable and not fit.walk.observable:
            notes.append(findings.FIXES_CONSTANT(name))
        if fit.walk.observable and not fit.time.observable:
            values = {'lower': fit.time.lower, 'wander': fit.wander.value, 'time': fit.time.value}
            notes.append(findings.WANDER_UNBOUND(name, seconds=seconds, **values))
    return GpsResult(
        runs=tuple(runs),
        rate=float(f'{1.0 / period:.4g}'),
        frame=fixes.frame,
        lever_arm=None if place is None else place[1],
        axes=axes,  # type: ignore[arg-type]
        walk=fit_walk(runs),
        stated=fit_stated(valid, k),
        consistency=(
            covariance_consistency(runs, axes, 'horizontal, about the mean', (0, 1)),
            covariance_consistency(runs, axes, 'vertical, about the mean', (2,)),
        ),
        notes=tuple(notes),
    )


def expected_autocovariance(
    fit: MarkovFit, lengths: Sequence[int], period: float, lags: int
) -> FloatArray:
    """Return the mean of `autocovariance` over records of the model, `(lags + 1,)` m^2.

    Each record, of `lengths` samples `period` s apart, is taken about its own mean, which takes
    some of a slow wander away: at lag k the covariances of x[i] - m and x[i + k] - m are summed
    sample by sample.
    """
    sums, counts = np.zeros(lags + 1), np.zeros(lags + 1)
    for n in lengths:
        c = _covariances(fit, n, period)
        # Mean of the covariances of a sample with all others, sample by sample.
        cumulated = np.cumsum(c)
        with_all = (cumulated + cumulated[::-1] - c[0]) / n
        whole = float(with_all.mean())
        for k in range(min(lags, n - 1) + 1):
            sums[k] += (n - k) * (c[k] + whole) - with_all[: n - k].sum() - with_all[k:].sum()
            counts[k] += n
    return sums / np.maximum(counts, 1.0)


def autocovariance_scatter(
    fit: MarkovFit, lengths: Sequence[int], period: float, lags: int
) -> FloatArray:
    """Return the standard deviation of `autocovariance` over records of the model, as
    `expected_autocovariance` has them, `(lags + 1,)` m^2.

    Bartlett's formula for N samples of a normal process (Brockwell and Davis, Time Series: Theory
    and Methods, 7.2): N var(c_k) = sum over all j of c_j^2 + c_(j+k) c_(j-k). It holds for records
    of many time constants; of few, whose mean takes part of it away, it is too much. Neighbouring
    lags err alike, so dots that leave the fit for a while are what such records do.
    """
    c = _covariances(fit, max(lengths), period)
    both = np.concatenate([c[:0:-1], c])
    # At 2 k from the middle: the sum of c_(j+k) c_(j-k); beyond the end it is nothing.
    products = np.append(fftconvolve(both, both), 0.0)
    middle = len(both) - 1
    crossed = products[np.minimum(middle + 2 * np.arange(lags + 1), len(products) - 1)]
    variance: FloatArray = np.maximum((products[middle] + crossed) / sum(lengths), 0.0)
    return np.asarray(np.sqrt(variance))


def _covariances(fit: MarkovFit, n: int, period: float) -> FloatArray:
    """Return the autocovariance of the model itself at lags 0 to n - 1, `(n,)` m^2."""
    g = fit.wander.value if fit.walk.observable else 0.0
    time = fit.time.value if fit.walk.observable else 1.0
    c: FloatArray = g**2 * np.exp(-np.arange(n) * period / time)
    c[0] += fit.white.value**2
    return c


_REPEATS = 24


def _drawn(
    noise: PositionNoise, runs: Sequence[StandingRun], seed: int, run: str
) -> list[StandingRun]:
    """Return errors of a model at the times of standstills, about their means, (n, 3) each."""
    found = []
    for number, one in enumerate(runs):
        intervals = np.concatenate([[0.0], np.diff(one.time)])
        error = noise.start(seed, f'{run}/{number}', 'gps').advance(intervals)
        found.append(dataclasses.replace(one, error=error - error.mean(axis=0)))
    return found


@dataclasses.dataclass(frozen=True)
class SimulatedStatistic:
    """One statistic of the record and of a model simulated over the same times: value of the
    record, mean and scatter over simulations, and whether the record lies within three of these.
    """

    model: str
    statistic: str
    record: float
    simulated: float
    std: float
    consistent: bool


_STATISTICS = (
    'horizontal error [m]',
    'vertical error [m]',
    'horizontal speed [m/s]',
    'vertical speed [m/s]',
)


def _statistics(runs: Sequence[StandingRun]) -> FloatArray:
    error = np.concatenate([run.error for run in runs])
    speed = np.concatenate(
        [np.diff(run.error, axis=0) / np.diff(run.time)[:, None] for run in runs]
    )
    parts = (error[:, :2], error[:, 2], speed[:, :2], speed[:, 2])
    return np.array([np.sqrt(np.mean(values**2)) for values in parts])


def simulated_statistics(result: GpsResult, seed: int) -> list[SimulatedStatistic]:
    """Simulate each model over the standstills and hold its deviations against the record's:
    of the error, and of its difference from fix to fix, on which a velocity estimate depends.
    """
    own = _statistics(result.runs)
    found = []
    for name, noise in result.noises().items():
        drawn = np.stack(
            [
                _statistics(_drawn(noise, result.runs, seed, f'likeness/{name}/{k}'))
                for k in range(_REPEATS)
            ]
        )
        columns = own.tolist(), drawn.mean(axis=0).tolist(), drawn.std(axis=0, ddof=1).tolist()
        for statistic, record, mean, std in zip(_STATISTICS, *columns, strict=True):
            consistent = abs(record - mean) <= 3.0 * std
            found.append(SimulatedStatistic(name, statistic, record, mean, std, consistent))
    return found


def gps_recovered_parameters(
    result: GpsResult, seed: int
) -> list[tuple[str, str, float, float, bool]]:
    """Simulate the models over the standstills and identify them again.

    Return (axis, parameter, given, found, came back) of white noise, wander and its time by axis,
    and of the walk's acceleration; what either fit does not show is left out.
    """
    noises = result.noises()
    found = []
    again = _drawn(noises['gps'], result.runs, seed, 'comeback/gps')
    for axis, name in enumerate(AXIS_NAMES):
        fit = fit_markov([(run.time, run.error[:, axis]) for run in again])
        for key in ('white', 'wander', 'time', 'walk'):
            given, one = getattr(result.axes[axis], key), getattr(fit, key)
            if given.observable and one.observable:
                found.append((name, key, given.value, one.value, one.agrees_with(given.value)))
    if result.walk.acceleration_std.observable and result.walk.acceleration_std.value > 0.0:
        walk = fit_walk(_drawn(noises['gps_random_walk'], result.runs, seed, 'comeback/walk'))
        one, given = walk.acceleration_std, result.walk.acceleration_std
        if one.observable and not math.isnan(one.std):
            found.append(
                ('all', 'acceleration_std', given.value, one.value, one.agrees_with(given.value))
            )
    return found
