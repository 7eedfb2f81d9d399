# SPDX-License-Identifier: Apache-2.0
"""Signals of all runs of one judge, reduced in one pass to what the plots of a page draw."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from sim2real_eval.metrics.options import MetricError, MetricOptions
from sim2real_eval.metrics.scores import ResampledRun, prepare, resample
from sim2real_eval.metrics.series import VelocitySeries
from sim2real_eval.study.outcome import (
    EstimateSignals,
    RunKey,
    StudyOutcome,
    StudyRun,
    speed_series,
)
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray


@dataclasses.dataclass(frozen=True, eq=False)
class RunSignals:
    """Resampled speeds, deviations and errors of one run.

    `grid` holds the speeds that the metric compares, without the warm-up. `position` (m) and
    `velocity` (m/s) are pairs of horizontal root mean squares over the run: the standard
    deviation stated by the judge, and its error. Both are NaN without a ground truth. `signals`
    is set only for runs that are drawn individually.
    """

    run: StudyRun
    grid: ResampledRun
    position: tuple[float, float]
    velocity: tuple[float, float]
    signals: EstimateSignals | None

    @property
    def error(self) -> FloatArray:
        """Estimated minus true speed, shape (n,), m/s."""
        return self.grid.se_vel - self.grid.gt_vel


@dataclasses.dataclass(frozen=True, eq=False)
class JudgeSignals:
    """Signals of all runs of one judge.

    `representatives` maps (group, scenario) and model, or `real`, to the run that is drawn where
    a plot shows single runs; `representative_runs` selects it. `rate` is the rate of the metric's
    grid in Hz. `missing` holds the errors of runs that could not be read.
    """

    runs: tuple[RunSignals, ...]
    representatives: Mapping[tuple[str, str], Mapping[str, RunSignals]]
    rate: float
    missing: tuple[str, ...]

    def runs_of_model(self, model: str) -> list[RunSignals]:
        """Return the runs of a model, or of the real sensors for `real`."""
        return [run_signals for run_signals in self.runs if run_signals.run.key.model == model]

    def select_group(self, group: str) -> JudgeSignals:
        """Return a copy that holds only the runs of one group of recordings."""
        runs = tuple(signals for signals in self.runs if signals.run.group == group)
        return dataclasses.replace(self, runs=runs)


def gather(outcome: StudyOutcome, judge: str) -> JudgeSignals:
    """Read the signals of every run of a judge; runs that cannot be read are listed as missing."""
    component = str(outcome.record.get('component', 'horizontal'))
    options = MetricOptions.from_mapping(outcome.record.get('metric') or {}, 'metric')
    runs = [run for run in outcome.runs if run.key.judge == judge]
    chosen = representative_runs(runs)
    place_of_run = {key: place for place, keys in chosen.items() for key in keys}
    representatives: dict[tuple[str, str], dict[str, RunSignals]] = {place: {} for place in chosen}
    readable_runs: list[RunSignals] = []
    missing: list[str] = []
    for run in runs:
        try:
            signals = outcome.signals(run.key)
            series = prepare(speeds(signals, component, run.key.recording), options)
            grid = resample(series, dataclasses.replace(options, warmup=0.0, rezero='none'))
        except Sim2RealError as error:
            missing.append(str(error))
            continue
        position, velocity = _rms_deviations_and_errors(signals, options.warmup)
        place = place_of_run.get(run.key)
        run_signals = RunSignals(
            run, grid, position, velocity, signals if place is not None else None
        )
        readable_runs.append(run_signals)
        if place is not None:
            representatives[place][run.key.model] = run_signals
    return JudgeSignals(tuple(readable_runs), representatives, options.rate, tuple(missing))


def speeds(signals: EstimateSignals, component: str, name: str) -> VelocitySeries:
    """Return the speeds of a run, without estimates that are not finite.

    Raises MetricError if no estimate is finite or there is no ground truth.
    """
    finite = (
        np.isfinite(signals.velocity).all(axis=1) & np.isfinite(signals.orientation).all(axis=1)
    )  # fmt: skip
    if not finite.any() or not len(signals.true_time):
        raise MetricError(f'{name}: no estimate is a number')
    # Other fields do not enter the speed and stay as long as they were.
    estimates = {
        field: getattr(signals, field)[finite] for field in ('time', 'velocity', 'orientation')
    }
    return speed_series(dataclasses.replace(signals, **estimates), component, name)


def representative_runs(runs: Sequence[StudyRun]) -> dict[tuple[str, str], list[RunKey]]:
    """Return by (group, scenario) the run of each model, and of the real sensors, to draw.

    The recording is that of the (lower) median RMSE of the real runs. A model without a run on
    that recording is represented by its first run.
    """
    places: dict[tuple[str, str], list[StudyRun]] = {}
    for run in runs:
        places.setdefault((run.group, run.scenario), []).append(run)
    chosen = {}
    for place, place_runs in places.items():
        real = sorted((run for run in place_runs if run.is_real), key=lambda run: run.score.rmse)
        recording = real[(len(real) - 1) // 2].key.recording if real else ''
        first: dict[str, RunKey] = {}
        # The sort is stable, so that a model without a run on the recording keeps its first run.
        for run in sorted(place_runs, key=lambda run: run.key.recording != recording):
            first.setdefault(run.key.model, run.key)
        chosen[place] = list(first.values())
    return chosen


def _rms_deviations_and_errors(
    signals: EstimateSignals, warmup: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return RMS stated deviation and RMS error after the warm-up, of position and velocity."""
    start = int(np.searchsorted(signals.time, warmup))
    time = signals.time[start:]
    true_velocity = np.stack(
        [np.interp(time, signals.true_time, signals.true_velocity[:, i]) for i in (0, 1)], axis=1
    )
    position_error = (signals.position - signals.true_position)[start:, :2]
    velocity_error = signals.velocity[start:, :2] - true_velocity
    return (
        _root_mean_squares(signals.position_sigma[start:, :2], position_error),
        _root_mean_squares(signals.velocity_sigma[start:, :2], velocity_error),
    )


def _root_mean_squares(deviation: FloatArray, error: FloatArray) -> tuple[float, float]:
    """Return RMS norms of deviations and errors, both (n, 2), over the rows finite in both."""
    squares = np.stack([np.sum(deviation**2, axis=1), np.sum(error**2, axis=1)], axis=1)
    squares = squares[np.isfinite(squares).all(axis=1)]
    if not len(squares):
        return float('nan'), float('nan')
    return float(np.sqrt(np.mean(squares[:, 0]))), float(np.sqrt(np.mean(squares[:, 1])))
