# SPDX-License-Identifier: Apache-2.0
"""What the plots of a page need of every run's signals, taken in one pass over them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from sim2real_eval.metrics.options import MetricError, MetricOptions
from sim2real_eval.metrics.scores import ResampledRun, prepare, resample
from sim2real_eval.metrics.series import VelocitySeries
from sim2real_eval.study.outcome import StudyOutcome, speed_series
from sim2real_eval.study.run import EstimateSignals, RunKey, StudyRun
from sim_sensors.core.blocks import by_blocks, column_of, rows_of
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray


@dataclasses.dataclass(frozen=True, eq=False)
class RunEvidence:
    """Of one run; `grid` are the speeds that the metric compares, the warm-up left out.

    Position and velocity are root mean squares over the run in the horizontal plane, m and m/s:
    of the standard deviations that the judge states, and of its errors; NaN where there is no
    truth. Signals are kept of the runs that are drawn one by one.
    """

    run: StudyRun
    grid: ResampledRun
    position: tuple[float, float]
    velocity: tuple[float, float]
    signals: EstimateSignals | None

    @property
    def error(self) -> FloatArray:
        """Estimate minus truth, `(n,)` m/s."""
        return self.grid.se_vel - self.grid.gt_vel


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """Of all runs of a judge.

    `shown` holds by (group, scenario) and by model, or `real`, the run that stands for it in plots
    of single runs: that on the recording of the (lower) median real RMSE, no showcase, or the
    first where the model drove a way of its own. `rate` is that of the metric's grid, Hz;
    `missing` says why runs are not in the plots.
    """

    runs: tuple[RunEvidence, ...]
    shown: Mapping[tuple[str, str], Mapping[str, RunEvidence]]
    rate: float
    missing: tuple[str, ...]

    def of(self, model: str) -> list[RunEvidence]:
        """Return the runs of a model, or `real`."""
        return [one for one in self.runs if one.run.key.model == model]

    def part(self, group: str) -> Evidence:
        """Return what there is of a group of recordings."""
        return dataclasses.replace(
            self, runs=tuple(one for one in self.runs if one.run.group == group)
        )


def gather(outcome: StudyOutcome, judge: str) -> Evidence:
    """Read the signals of every run of a judge."""
    component = str(outcome.record.get('component', 'horizontal'))
    options = MetricOptions.from_mapping(outcome.record.get('metric') or {}, 'metric')
    runs = [run for run in outcome.runs if run.key.judge == judge]
    chosen = representative(runs)
    kept = {key: place for place, keys in chosen.items() for key in keys}
    shown: dict[tuple[str, str], dict[str, RunEvidence]] = {place: {} for place in chosen}
    found: list[RunEvidence] = []
    missing: list[str] = []
    for run in runs:
        try:
            signals = outcome.signals(run.key)
            series = prepare(speeds(signals, component, run.key.recording), options)
            grid = resample(series, dataclasses.replace(options, warmup=0.0, rezero='none'))
        except Sim2RealError as error:
            missing.append(str(error))
            continue
        position, velocity = _covariance_consistency(signals, options.warmup)
        place = kept.get(run.key)
        one = RunEvidence(run, grid, position, velocity, signals if place is not None else None)
        found.append(one)
        if place is not None:
            shown[place][run.key.model] = one
    return Evidence(tuple(found), shown, options.rate, tuple(missing))


def speeds(signals: EstimateSignals, component: str, name: str) -> VelocitySeries:
    """Return the speeds of a run without estimates that are no numbers; MetricError when none is
    left.
    """
    sound = by_blocks(
        lambda *rows: np.isfinite(np.hstack(rows)).all(axis=1),
        signals.velocity,
        signals.orientation,
    )
    if not sound.any() or not len(signals.true_time):
        raise MetricError(f'{name}: no estimate is a number')
    # What speeds are made of; the rest is not looked at.
    estimated = {
        field: rows_of(getattr(signals, field), sound)
        for field in ('time', 'velocity', 'orientation')
    }
    return speed_series(dataclasses.replace(signals, **estimated), component, name)


def representative(runs: Sequence[StudyRun]) -> dict[tuple[str, str], list[RunKey]]:
    """Return by (group, scenario) the run of each model, and the real one, that is drawn."""
    places: dict[tuple[str, str], list[StudyRun]] = {}
    for run in runs:
        places.setdefault((run.group, run.scenario), []).append(run)
    chosen = {}
    for place, found in places.items():
        real = sorted((run for run in found if run.is_real), key=lambda run: run.score.rmse)
        motion = real[(len(real) - 1) // 2].key.recording if real else ''
        first: dict[str, RunKey] = {}
        # Stable: a model without a run of that motion gives its first.
        for run in sorted(found, key=lambda run: run.key.recording != motion):
            first.setdefault(run.key.model, run.key)
        chosen[place] = list(first.values())
    return chosen


def _covariance_consistency(
    signals: EstimateSignals, warmup: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    counted = slice(int(np.searchsorted(signals.time, warmup)), None)
    true = [column_of(signals.true_velocity, axis) for axis in (0, 1)]

    def squares(*rows: FloatArray) -> FloatArray:
        time, position, true_position, velocity, *stated = rows
        true_velocity = np.stack(
            [np.interp(time, signals.true_time, axis) for axis in true], axis=1
        )
        found = (*stated, position - true_position, velocity[:, :2] - true_velocity)
        return np.stack([np.sum(np.square(each[:, :2]), axis=1) for each in found], axis=1)

    found = by_blocks(
        squares,
        *(
            each[counted]
            for each in (
                signals.time, signals.position, signals.true_position, signals.velocity,
                signals.position_sigma, signals.velocity_sigma,
            )
        ),
    )  # fmt: skip
    return _root_means(found, (0, 2)), _root_means(found, (1, 3))


def _root_means(squares: FloatArray, columns: tuple[int, int]) -> tuple[float, float]:
    stated, error = (column_of(squares, number) for number in columns)
    known = by_blocks(lambda *rows: np.isfinite(np.stack(rows)).all(axis=0), stated, error)
    if not known.any():
        return float('nan'), float('nan')
    first, second = (float(np.sqrt(np.mean(rows_of(each, known)))) for each in (stated, error))
    return first, second
