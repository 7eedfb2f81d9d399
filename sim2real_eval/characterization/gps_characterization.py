# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A GPS from recordings with standstills: its error, its stated covariance, and models of both.

The models are checked: simulated at standstill, they must have the statistics of the record.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

import numpy as np

from sim2real_eval.common.findings import Finding, JudgeError
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import select_valid_fixes
from sim_sensors.core.measurements import FloatArray
from sim_sensors.gps.gps import GaussianNoise, GnssNoise, GpsModel, PositionNoise
from . import findings
from .markov_fit import LENGTHS_NEEDED, MarkovFit, fit_markov
from .screening import resolution
from .signals import SignalFileError
from .standstill_fixes import StandingOptions, StandingRun, standing_runs
from .stated_covariance import CovarianceConsistency, StatedFit, covariance_consistency, fit_stated
from .walk_fit import WalkFit, even_errors, fit_walk

AXIS_NAMES = ('east', 'north', 'up')


@dataclasses.dataclass(frozen=True, eq=False)
class GpsResult:
    """Characterization of one receiver.

    It has the rate, Hz, and frame of the fixes, their errors (`axes`: east, north, up), the
    stated covariance, and the consistency of both, horizontal and vertical. `steps` `(3,)`, m, are
    the rounding steps of the fixes; 0 if they are not rounded. `lever_arm` `(3,)`, m, is that of
    the antenna in the base frame, or None if it is unknown.
    """

    runs: tuple[StandingRun, ...]
    steps: FloatArray
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
        """Return the noise models by the name of their file.

        `gps` has white noise and a Gauss-Markov wander, which is a random walk where the record
        does not bound its time; `gps_gaussian` is white, `gps_random_walk` Chrono's (Ch:RW).
        """
        noises_by_file: dict[str, PositionNoise] = {
            'gps': GnssNoise(
                white_std=_three(fit.white.value for fit in self.axes),
                gauss_markov_std=_three(
                    fit.wander.value if fit.time.observable else 0.0 for fit in self.axes
                ),
                gauss_markov_time=_three(
                    fit.time.value if fit.time.observable else 100.0 for fit in self.axes
                ),
                random_walk=_three(
                    fit.walk.value if fit.walk.observable and not fit.time.observable else 0.0
                    for fit in self.axes
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
            noises_by_file['gps_random_walk'] = self.walk.noise(self.rate)
        return noises_by_file

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

    The mounting is None if the recording does not define it. A note says so if it has other
    transforms.
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

    Recordings that never stand still are left out, with a note; SignalFileError, with the reason
    of the first, when none has a standstill. `k` is the deviation that HDOP 1 stands for, m, and
    `base` the frame of the lever arm.
    """
    runs: list[StandingRun] = []
    used: list[Recording] = []
    notes: list[Finding] = []
    problems: list[SignalFileError] = []
    for recording in recordings:
        try:
            standing, run_notes = standing_runs(recording, options)
        except SignalFileError as error:
            problems.append(error)
            continue
        runs += standing
        used.append(recording)
        notes += [
            note.restrict_to(recording.name) if len(recordings) > 1 else note for note in run_notes
        ]
    if not used:
        raise problems[0]
    notes += [findings.LEFT_OUT(sensor='GPS', problem=str(problem)) for problem in problems]
    fixes = used[0].gps
    assert fixes is not None
    valid = select_valid_fixes(fixes)
    place, mounting_notes = mounting(used[0], fixes.frame, base)
    notes += mounting_notes
    axes = tuple(fit_markov([(run.time, run.error[:, axis]) for run in runs]) for axis in range(3))
    _, period = even_errors(runs)
    longest = max(runs, key=lambda run: len(run.time))
    # Degrees rounded to 1e-7 are steps of a centimetre; their last bits differ.
    steps = np.array([resolution(np.round(column, 6)) for column in longest.error.T])
    for name, column, step in zip(AXIS_NAMES, longest.error.T, steps.tolist(), strict=True):
        if step > 2.0 * float(column.std()):
            notes.append(findings.MOSTLY_ROUNDING(name, step=step))
        elif step > 0.5 * float(column.std()):
            notes.append(findings.ROUNDING(name, step=step, noise=step / math.sqrt(12.0)))
    seconds = sum(run.seconds for run in runs)
    for name, fit in zip(AXIS_NAMES, axes, strict=True):
        if not fit.white.observable and not fit.walk.observable:
            notes.append(findings.FIXES_CONSTANT(name))
    unbound = {
        name: fit
        for name, fit in zip(AXIS_NAMES, axes, strict=True)
        if fit.walk.observable and not fit.time.observable
    }
    if unbound:
        times = [fit.time.lower for fit in unbound.values()]
        notes.append(
            findings.WANDER_UNBOUND(
                ', '.join(unbound),
                seconds=seconds,
                lower=min(times),
                walk=max(fit.walk.value for fit in unbound.values()),
                needed=max(LENGTHS_NEEDED * max(times), 2.0 * longest.seconds),
            )
        )
    return GpsResult(
        runs=tuple(runs),
        steps=steps,
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


def _drawn(
    noise: PositionNoise, runs: Sequence[StandingRun], seed: int, run: str
) -> list[StandingRun]:
    """Return errors of a model at the times of standstills, about their means, (n, 3) each."""
    simulated = []
    for number, run_at_rest in enumerate(runs):
        intervals = np.concatenate([[0.0], np.diff(run_at_rest.time)])
        error = noise.start(seed, f'{run}/{number}', 'gps').advance(intervals)
        simulated.append(dataclasses.replace(run_at_rest, error=error - error.mean(axis=0)))
    return simulated


@dataclasses.dataclass(frozen=True)
class SimulatedStatistic:
    """A statistic of the record, and median and 95 % range of those of a simulated model.

    `quantity` is `deviation` or `largest error` about the mean; `largest change` or `change`
    (root mean square) over `lag` s, also `in the first half` and `second half` of it; all in m.
    """

    axis: str
    quantity: str
    lag: float
    record: float
    simulated: float
    lower: float
    upper: float

    def __str__(self) -> str:
        over = f' over {self.lag:.3g} s' if self.lag else ''
        return f'{self.axis}, {self.quantity}{over}'


@dataclasses.dataclass(frozen=True)
class ModelCheck:
    """A model simulated `SIMULATIONS` times like the record.

    `worst` is the statistic of the record that is furthest from the simulations. `beyond` counts
    the simulations whose furthest statistic is at least as far from the rest.
    """

    model: str
    statistics: tuple[SimulatedStatistic, ...]
    worst: SimulatedStatistic
    beyond: int

    @property
    def is_consistent(self) -> bool:
        """Whether the record could be a simulation: a true model fails in 1 % of records."""
        return self.beyond > 0


SIMULATIONS = 99
# m; smaller statistics are rounding errors of geodetic coordinates.
_MIN_STATISTIC_M = 1e-6
# Least scatter of a logarithm. Rounded extremes are often the same in all simulations but a few,
# and the halves of a record differ as soon as its rounding steps are rare.
_MIN = {'deviation': 0.02, 'change': 0.02, 'largest': 0.3, 'half': 0.2}


def _lags(runs: Sequence[StandingRun]) -> list[int]:
    """Return octaves up to a quarter of the longest run, in fixes."""
    quarter = max(len(run.time) for run in runs) // 4
    return [1 << k for k in range(max(quarter, 1).bit_length())]


def _statistics(runs: Sequence[StandingRun], period: float, steps: FloatArray) -> FloatArray:
    """Return the statistics that `check_models` names, each by axis, flat, m.

    Extremes are rounded to `steps`, (3,) m, of the record, because rounding makes them larger.
    """
    error = np.concatenate([run.error for run in runs])
    rounded = np.where(steps > 0.0, np.rint(error / np.maximum(steps, 1e-12)) * steps, error)
    deviation, largest = np.sqrt(np.mean(error**2, axis=0)), np.abs(rounded).max(axis=0)
    rows = [deviation, largest]
    time = np.concatenate([run.time for run in runs])
    number = np.repeat(np.arange(len(runs)), [len(run.time) for run in runs])
    for lag in _lags(runs):
        apart = np.abs(time[lag:] - time[:-lag] - lag * period) < 0.5 * period
        apart &= number[lag:] == number[:-lag]
        change = (error[lag:] - error[:-lag])[apart]
        if lag == 1:
            jump = (rounded[1:] - rounded[:-1])[apart]
            rows.append(np.abs(jump).max(axis=0) if len(jump) else np.zeros(3))
            rows += [_root_mean_square(half) for half in np.array_split(change, 2)]
        rows.append(_root_mean_square(change))
    return np.maximum(rows, _MIN_STATISTIC_M).ravel()


def _root_mean_square(values: FloatArray) -> FloatArray:
    return np.sqrt(np.mean(values**2, axis=0)) if len(values) else np.zeros(3)


def check_models(result: GpsResult, seed: int) -> list[ModelCheck]:
    """Simulate each model over the standstills and compare its statistics with the record's.

    Each statistic is a logarithm, standardised over the record and all simulations. The record
    fails if its largest deviation exceeds that of every simulation. Because all are treated
    alike, the record of a true model fails with probability 1 / (1 + SIMULATIONS).
    """
    _, period = even_errors(result.runs)
    lags = _lags(result.runs)
    kinds = [('deviation', 0.0), ('largest error', 0.0), ('largest change', period)]
    kinds += [(f'change in the {half} half', period) for half in ('first', 'second')]
    kinds += [('change', lag * period) for lag in lags]
    names = [(axis, *kind) for kind in kinds for axis in AXIS_NAMES]
    record = _statistics(result.runs, period, result.steps)
    least = np.array(
        [_MIN['half' if name.endswith('half') else name.split()[0]] for _, name, _ in names]
    )
    checks = []
    for name, noise in result.noises().items():
        drawn = [
            _statistics(
                _drawn(noise, result.runs, seed, f'likeness/{name}/{k}'), period, result.steps
            )
            for k in range(SIMULATIONS)
        ]
        simulated = np.array(drawn)
        logs = np.log(np.vstack([record, simulated]))
        scatter = np.maximum(logs.std(axis=0), least)
        scores = np.abs(logs - logs.mean(axis=0)) / scatter
        largest = scores.max(axis=1)
        low, middle, high = np.quantile(simulated, [0.025, 0.5, 0.975], axis=0)
        statistics = tuple(
            SimulatedStatistic(*words, *map(float, numbers))
            for words, *numbers in zip(names, record, middle, low, high, strict=True)
        )
        checks.append(
            ModelCheck(
                model=name,
                statistics=statistics,
                worst=statistics[int(np.argmax(scores[0]))],
                beyond=int(np.sum(largest[1:] >= largest[0])),
            )
        )
    return checks
