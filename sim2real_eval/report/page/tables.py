# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Standings and signals of a study, and tables for its report page."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import yaml

from sim2real_eval.metrics.options import MetricError, MetricOptions
from sim2real_eval.metrics.published import TABLE_2, published_vepd, rank_agreement
from sim2real_eval.metrics.scores import POOLED, ResampledRun, VepdRow, prepare, resample
from sim2real_eval.metrics.series import PAPER_SCENARIOS, VelocitySeries
from sim2real_eval.metrics.uncertainty import DistanceUncertainty, Uncertainty
from sim2real_eval.report.console import (
    NONE,
    DataTable,
    TableColumn,
    decimal,
    numeric,
    p_value_text,
    scenario_name,
    span,
)
from sim2real_eval.report.palette import needs_log_axis
from sim2real_eval.report.ranking_tables import detected_text, nis_text, tied_ranks
from sim2real_eval.study.outcome import StudyOutcome, speed_series
from sim2real_eval.study.run import EstimateSignals, RunKey, StudyRun
from sim2real_eval.study.secondary_results import MetricTable, SideResults, study_uncertainty
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray
from .figure import SeriesStyle
from .selection import MAX_ROWS, first_rows, spread_runs, worst_runs


@dataclasses.dataclass(frozen=True, eq=False)
class Standing:
    """Results of the models with a judge and a group of recordings.

    `group` is empty in a study without groups. Rows are per scenario and pooled; `uncertainty`
    maps a scenario, or `all`, to the result of resampling.
    """

    judge: str
    group: str
    rows: tuple[VepdRow, ...]
    uncertainty: Mapping[str, Uncertainty]
    metrics: MetricTable | None = None  # all metrics over all scenarios

    @property
    def pooled_uncertainty(self) -> Uncertainty:
        """Uncertainty of the pooled rows."""
        return self.uncertainty[POOLED]

    @property
    def label(self) -> str:
        """Judge and group."""
        return f'{self.judge}, {self.group}' if self.group else self.judge

    @property
    def scenarios(self) -> list[str]:
        """Scenarios, followed by `all` if there are several."""
        names = list(dict.fromkeys(row.scenario for row in self.rows))
        return names if len(names) > 2 else [name for name in names if name != POOLED]

    @property
    def whole(self) -> str:
        """Scenario of the ranking: all scenarios pooled, or the only one."""
        return self.scenarios[-1]

    @property
    def where(self) -> str:
        """Scenario of the ranking as a phrase for captions."""
        return 'of all scenarios pooled' if self.whole == POOLED else f'in {self.whole}'

    def published_vepd(self, model: str, scenario: str = '') -> float | None:
        """Return the published VEPD for a scenario, or None; the default scenario is `whole`.

        The published pooled VEPD is returned only for a study of exactly the three scenarios of
        the paper.
        """
        scenario = scenario or self.whole
        ours = {PAPER_SCENARIOS.get(row.scenario, row.scenario) for row in self.rows}
        if scenario == POOLED and ours != {*TABLE_2, POOLED}:
            return None
        return published_vepd(model, scenario)

    def row(self, model: str, scenario: str = POOLED) -> VepdRow | None:
        """Return the row of a model and scenario, or None if there is none."""
        return next(
            (row for row in self.rows if (row.model, row.scenario) == (model, scenario)), None
        )

    def pooled_rows(self) -> list[VepdRow]:
        """Return the pooled rows, the closest model first."""
        return sorted(
            (row for row in self.rows if row.scenario == POOLED), key=lambda row: row.rank
        )

    def agreement(self, scenario: str = POOLED) -> float | None:
        """Return Kendall's tau between our ranking and the published one; None below 3 models."""
        pairs = [
            (row.vepd, published)
            for row in self.rows
            if row.scenario == scenario
            and (published := self.published_vepd(row.model, scenario)) is not None
        ]
        if len(pairs) < 3:
            return None
        first, second = zip(*pairs, strict=True)
        return rank_agreement(first, second).kendall


def standings(outcome: StudyOutcome, side: SideResults | None = None) -> list[Standing]:
    """Return the standing of the models for each judge and group, with the metrics of `side`."""
    metrics = {
        (table.judge, table.group): table for table in (side.overall_metrics if side else ())
    }
    return [
        Standing(*place, tuple(outcome.table(*place)), uncertainty, metrics=metrics.get(place))
        for place, uncertainty in study_uncertainty(outcome).items()
    ]


@dataclasses.dataclass(frozen=True)
class RankingRow:
    """A row of the ranking, as strings; `published` is empty for a model not in the paper."""

    rank: str
    name: str
    colour: str
    runs: str
    differs: str
    vepd: str
    interval: str
    nis: str
    null_high: str
    p_value: str
    tied: str
    w_rmse: str
    w_entropy: str
    published: str


@dataclasses.dataclass(frozen=True)
class Ranking:
    """Rows of the ranking, the closest model first."""

    places: tuple[RankingRow, ...]

    @property
    def has_published(self) -> bool:
        """Whether any of the models has a published VEPD."""
        return any(place.published for place in self.places)

    @property
    def has_nis(self) -> bool:
        """Whether the distance of NIS is known for any of the models."""
        return any(place.nis != NONE for place in self.places)

    @property
    def has_ties(self) -> bool:
        """Whether it is known which models do not differ significantly."""
        return any(place.tied for place in self.places)


def ranking(standing: Standing, colours: Mapping[str, str]) -> Ranking:
    """Return the ranking of a standing; `colours` maps models to the CSS classes of colours."""
    models = {model.model: model for model in standing.pooled_uncertainty.models}
    places = []
    for row in standing.pooled_rows():
        model = models[row.model]
        published = standing.published_vepd(row.model)
        places.append(
            RankingRow(
                rank=f'{row.rank:g}',
                name=row.model,
                colour=colours[row.model],
                runs=f'{row.n_real}/{row.n_sim}',
                differs=detected_text(standing.metrics, model),
                vepd=decimal(row.vepd),
                nis=nis_text(standing.metrics, row.model),
                interval=span(model.low, model.high),
                null_high=decimal(model.null_high),
                p_value=p_value_text(model.adjusted, NONE),
                tied=tied_ranks(standing.pooled_uncertainty, model),
                w_rmse=decimal(row.w_rmse),
                w_entropy=decimal(row.w_entropy),
                published='' if published is None else decimal(published),
            )
        )
    return Ranking(tuple(places))


def first_distance(models: Sequence[DistanceUncertainty]) -> float:
    """Return the start of an axis of distances: 0, or more if the axis is logarithmic."""
    distances = [model.distance for model in models if model.distance > 0.0]
    if not needs_log_axis(distances):
        return 0.0
    return min([*distances, *(model.null_high for model in models if model.null_high)]) / 1.6


def differs(uncertainty: Uncertainty, model: DistanceUncertainty) -> bool | None:
    """Return whether a model differs significantly from the real sensors; None if unknown."""
    return None if model.adjusted is None else model.adjusted <= 1.0 - uncertainty.options.level


def record_tables(record: Mapping[str, Any]) -> list[DataTable]:
    """Return tables of the software, recordings, judges and metric in a study's record."""
    tables = [
        _of_mapping('Software', 'package', 'version', record.get('versions')),
        _of_mappings('Recordings', record.get('recordings')),
        _of_mappings('Judges', record.get('judges')),
        _of_mapping('Metric', 'option', 'value', record.get('metric')),
    ]
    return [table for table in tables if table]


class _Dumper(yaml.SafeDumper):
    """YAML dumper that writes multi-line strings in block style."""


_Dumper.add_representer(
    str,
    lambda dumper, string: dumper.represent_scalar(
        'tag:yaml.org,2002:str', string, style='|' if '\n' in string else None
    ),
)


def record_texts(record: Mapping[str, Any], study_file: str) -> list[tuple[str, str]]:
    """Return titles and contents of verbatim blocks: study file, models and judges."""
    texts = [('Study file', study_file)] if study_file else []
    for name in ('models', 'judges'):
        if record.get(name):
            dumped = yaml.dump(
                record[name], Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100,
                default_flow_style=None,
            )  # fmt: skip
            is_matched = name == 'models' and record.get('match_rates')
            suffix = ' (simulated at the rates of the real sensors)' if is_matched else ''
            texts.append((f'Parameters of {name}{suffix}', dumped))
    return texts


def _of_mapping(title: str, key: str, value: str, entries: Any) -> DataTable:
    rows = [[str(name), _cell(field)] for name, field in (entries or {}).items()]
    return DataTable(title, [TableColumn(key), TableColumn(value)], rows)


def _of_mappings(title: str, entries: Any) -> DataTable:
    """Return a table of mappings, with a column per key; lists and long values are omitted."""
    flat = [dict(_flat(entry)) for entry in entries or [] if isinstance(entry, Mapping)]
    keys = list(dict.fromkeys(key for entry in flat for key in entry))
    # Drop columns that are empty in every row.
    keys = [key for key in keys if any(entry.get(key) not in (None, '') for entry in flat)]
    rows = [[_cell(entry.get(key)) for key in keys] for entry in flat[:MAX_ROWS]]
    title += first_rows(len(flat))
    return DataTable(title, [TableColumn(key.replace('_', ' ')) for key in keys], rows)


def _flat(entry: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in entry.items():
        if isinstance(value, Mapping | list | tuple) or (isinstance(value, str) and '\n' in value):
            continue
        yield str(key), value


def _cell(value: Any) -> str:
    if value is None:
        return ''
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    return f'{value:g}' if isinstance(value, float) else str(value)


_CONSISTENCY = {
    'nis_gps': 'NIS GPS',
    'nis_imu': 'NIS IMU',
    'nis_other': 'NIS other',
    'nees_position': 'NEES position',
    'nees_orientation': 'NEES orientation',
    'nees_velocity': 'NEES velocity',
    'nees_angular_velocity': 'NEES angular velocity',
}
_RUN_COLUMNS = {
    'rmse': ('RMSE', 'm/s', 4),
    'entropy_difference': ('ΔH', '', 4),
    'forward_rmse': ('forward RMSE', 'm/s', 3),
    'position_rmse': ('position RMSE', 'm', 2),
    'yaw_rmse': ('yaw RMSE', '°', 1),
    'velocity_covariance_consistency': ('stated / error', '', 2),
    'nis_gps': ('NIS GPS', '', 2),
    'duration': ('duration', 's', 1),
    'estimates': ('estimates', '', 0),
    'fixes_used': ('fixes', '', 0),
}


def by_scenario(standing: Standing, colours: Mapping[str, str]) -> DataTable | None:
    """Return a table of VEPD and rank per model and scenario, with the published VEPD.

    It is None for a single scenario, because the ranking has the same numbers.
    """
    scenarios = standing.scenarios
    if len(scenarios) < 2:
        return None
    models = [row.model for row in standing.pooled_rows()]
    columns, rows = [TableColumn('model')], [[model] for model in models]
    for name in scenarios:
        _add_scores(columns, rows, scenario_name(name), standing, name)
        printed = [standing.published_vepd(model, name) for model in models]
        if any(vepd is not None for vepd in printed):
            columns.append(numeric('paper', 'VEPD'))
            for cells, vepd in zip(rows, printed, strict=True):
                cells.append(decimal(vepd))
    title = f'VEPD by scenario, judge {standing.label}'
    return DataTable(title, columns, rows, colours=colours)


def _add_scores(
    columns: list[TableColumn],
    rows: list[list[str]],
    label: str,
    standing: Standing,
    scenario: str,
) -> None:
    """Add columns of VEPD and rank in a scenario; the first cell of each row is the model."""
    columns += [numeric(label, 'VEPD'), numeric('rank')]
    for cells in rows:
        row = standing.row(cells[0], scenario)
        cells += [NONE, NONE] if row is None else [decimal(row.vepd), f'{row.rank:g}']


def overview(standings: Sequence[Standing], colours: Mapping[str, str]) -> DataTable | None:
    """Return a table of VEPD and rank per model and standing, or None for a single standing."""
    if len(standings) < 2:
        return None
    models = dict.fromkeys(row.model for standing in standings for row in standing.pooled_rows())
    columns, rows = [TableColumn('model')], [[model] for model in models]
    for standing in standings:
        _add_scores(columns, rows, standing.label, standing, POOLED)
    title = 'VEPD of all scenarios pooled, and rank, by judge'
    return DataTable(title, columns, rows, colours=colours)


def consistency(
    outcome: StudyOutcome, judge: str, group: str, sources: Mapping[str, SeriesStyle]
) -> DataTable | None:
    """Return a table of mean NIS and NEES per degree of freedom, or None without values."""
    runs_by_model = outcome.by_model(judge, group)
    names = [
        name
        for name in _CONSISTENCY
        if any(name in run.values for runs in runs_by_model.values() for run in runs)
    ]
    if not names:
        return None
    columns = [TableColumn('sensors'), *(numeric(_CONSISTENCY[name]) for name in names)]
    rows = []
    for model, runs in runs_by_model.items():
        cells = [sources[model].name]
        for name in names:
            values = [run.values[name] for run in runs if name in run.values]
            mean = float(np.mean(values)) if values else None
            cells.append(decimal(mean, 2 if mean is None or mean < 100.0 else 0))
        rows.append(cells)
    where = f'{judge}, {group}' if group else judge
    title = f'NIS and NEES per degree of freedom, mean over runs, judge {where}'
    return DataTable(title, columns, rows, colours=_colours(sources))


def _colours(sources: Mapping[str, SeriesStyle]) -> dict[str, str]:
    return {source.name: source.kind for source in sources.values()}


def run_table(outcome: StudyOutcome, sources: Mapping[str, SeriesStyle]) -> DataTable:
    """Return a table with a row per judged run."""
    values = [name for name in _RUN_COLUMNS if any(name in run.values for run in outcome.runs)]
    has_groups = any(outcome.groups)
    columns = [TableColumn('judge'), TableColumn('scenario'), TableColumn('model')]
    columns += [TableColumn('group')] if has_groups else []
    columns += [TableColumn('recording'), numeric('run')]
    columns += [numeric(*_RUN_COLUMNS[name][:2]) for name in values]
    rows = []
    shown = worst_runs(outcome.runs)
    for run in shown:
        key = run.key
        cells = [key.judge, run.scenario, sources[key.model].name]
        cells += [run.group] if has_groups else []
        cells += [key.recording, str(key.repetition)]
        for name in values:
            value = run.values.get(name)
            if value is not None and name == 'yaw_rmse':
                value = float(np.degrees(value))
            cells.append(decimal(value, _RUN_COLUMNS[name][2]))
        rows.append(cells)
    title, notes = 'Every judged run', []
    if len(shown) < len(outcome.runs):
        title = 'Judged runs with the largest RMSE'
        notes = [
            f'The {len(shown)} of {len(outcome.runs)} runs with the largest RMSE of their model '
            'and judge; runs.csv has all.'
        ]
    return DataTable(
        title, columns, rows, headed=False, kind='runs', colours=_colours(sources), notes=notes
    )


@dataclasses.dataclass(frozen=True, eq=False)
class RunSignals:
    """Resampled speeds, deviations and errors of one run.

    `grid` holds the speeds that the metric compares, without the warm-up. `position` (m) and
    `velocity` (m/s) are pairs of horizontal root mean squares over the run: the standard
    deviation that the judge states, and the error. Both are NaN without a ground truth. `signals`
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
    """Signals of the runs of one judge that a page shows.

    `representatives` maps (group, scenario) and model, or `real`, to the run that is drawn where
    a plot shows single runs; `representative_runs` selects it. `rate` is the rate of the metric's
    grid in Hz. `missing` holds messages about runs that are not shown, or could not be read.
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
    """Read the signals of a judge's runs; unreadable runs are listed as missing.

    If a model has thousands of runs, only a selection is read, see `spread_runs`.
    """
    component = str(outcome.record.get('component', 'horizontal'))
    options = MetricOptions.from_mapping(outcome.record.get('metric') or {}, 'metric')
    runs = [run for run in outcome.runs if run.key.judge == judge]
    chosen = representative_runs(runs)
    place_of_run = {key: place for place, keys in chosen.items() for key in keys}
    representatives: dict[tuple[str, str], dict[str, RunSignals]] = {place: {} for place in chosen}
    readable_runs: list[RunSignals] = []
    missing: list[str] = []
    shown = {run.key for run in spread_runs(runs)} | place_of_run.keys()
    if len(shown) < len(runs):
        missing.append(f'{len(runs) - len(shown)} of {len(runs)} runs, which runs.csv has')
    for run in runs:
        if run.key not in shown:
            continue
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
    if not len(signals.true_time):
        raise MetricError(f'{name}: has no ground truth')
    if not finite.any():
        raise MetricError(f'{name}: no estimate is finite')
    # The other fields are not used for the speed, so they keep their length.
    estimates = {
        field: getattr(signals, field)[finite] for field in ('time', 'velocity', 'orientation')
    }
    return speed_series(dataclasses.replace(signals, **estimates), component, name)


def representative_runs(runs: Sequence[StudyRun]) -> dict[tuple[str, str], list[RunKey]]:
    """Return the runs to draw, one per model and one of the real sensors, by (group, scenario).

    They are of the recording whose real run has the lower median RMSE. A model without a run on
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
    """Return the RMS stated deviation and RMS error of position, then those of velocity."""
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
    """Return the RMS norms of deviations and errors, (n, 2) each, over rows that are finite."""
    squares = np.stack([np.sum(deviation**2, axis=1), np.sum(error**2, axis=1)], axis=1)
    squares = squares[np.isfinite(squares).all(axis=1)]
    if not len(squares):
        return float('nan'), float('nan')
    return float(np.sqrt(np.mean(squares[:, 0]))), float(np.sqrt(np.mean(squares[:, 1])))
