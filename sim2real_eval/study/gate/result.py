# SPDX-License-Identifier: Apache-2.0
"""A study as a gate needs it, and which of its numbers break a limit, and why."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.metrics.uncertainty.assessment import uncertainty
from sim2real_eval.metrics.uncertainty.motions import ScoredRuns
from sim2real_eval.metrics.uncertainty.result import DistanceUncertainty, UncertaintyOptions
from sim2real_eval.study.options import UNSAID, GateOptions
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.run import StudyRun, scored_runs
from sim_sensors.core.errors import ParameterError, Sim2RealError, not_among
from .verdict import Cell, GateCase, GateVerdict, interval

_MUST_MATCH = ('component', 'metric', 'start_heading', 'off_ticks', 'adapt')
_SYNTHETIC = 'synthetic'
_NOW, _BEFORE = 'now', 'before'


class ComparisonKey(NamedTuple):
    """Where runs are compared."""

    judge: str
    group: str
    scenario: str


@dataclasses.dataclass(frozen=True, eq=False)
class GatedResult:
    """What a gate reads of a result.

    Attributes
    ----------
    path : str
    vepd : dict of Cell to float
    runs : dict of ComparisonKey to dict of model (or `real`) to ScoredRuns
    settings : mapping
        What must be alike in two results that are compared.
    judges : dict of str to tuple of str
        SHA-256 of the parameter files of each judge.
    failures : tuple of str
        Recordings that were left out.
    synthetic : bool
        Whether recordings are stand-ins.
    """

    path: str
    vepd: Mapping[Cell, float]
    runs: Mapping[ComparisonKey, Mapping[str, ScoredRuns]]
    settings: Mapping[str, Any]
    judges: Mapping[str, tuple[str, ...]]
    failures: tuple[str, ...]
    synthetic: bool = False

    @classmethod
    def read(cls, path: str | Path) -> GatedResult:
        """Read the folder of a study, or its study.json under whatever name.

        Raises
        ------
        Sim2RealError
            When there is none, or it is not readable as one.
        """
        outcome = StudyOutcome.read(path)
        record = {**UNSAID, **outcome.record}
        vepd = {
            Cell(judge, group, row.model, row.scenario): row.vepd
            for judge, group in outcome.compared
            for row in outcome.table(judge, group)
        }
        if not vepd or not all(map(math.isfinite, vepd.values())):
            # NaN is above no limit: it would pass.
            raise Sim2RealError(f'{path}: holds no distances, or some that are no numbers')
        runs: dict[ComparisonKey, dict[str, list[StudyRun]]] = {}
        for run in outcome.runs:
            for scenario in (run.scenario, POOLED):
                place = ComparisonKey(run.key.judge, run.group, scenario)
                runs.setdefault(place, {}).setdefault(run.key.model, []).append(run)
        return cls(
            str(path),
            vepd,
            {
                place: {
                    model: scored_runs(found, outcome.blocks) for model, found in models.items()
                }
                for place, models in runs.items()
                if REAL in models
            },
            {name: record[name] for name in (*_MUST_MATCH, _SYNTHETIC) if name in record},
            {
                one['label']: tuple(file['sha256'] for file in one.get('files', ()))
                for one in record['judges']
            },
            tuple(sorted({failure['recording'] for failure in record['failures']})),
            bool(record.get(_SYNTHETIC)),
        )

    def differs(self, other: GatedResult) -> str | None:
        """Say in which setting two results differ; None when they can be compared."""
        for name in (name for name in self.settings if name in other.settings):
            mine, theirs = _by_key(name, self.settings[name]), _by_key(name, other.settings[name])
            for key in {**mine, **theirs}:
                if mine.get(key) != theirs.get(key):
                    return f'{key} is {theirs.get(key)!r} there and {mine.get(key)!r} here'
        for label, files in self.judges.items():
            if label in other.judges and files != other.judges[label]:
                return f'judge {label} has other parameters there than here'
        return None


def _by_key(name: str, value: Any) -> dict[str, Any]:
    """Return the values of a setting, each by its own name."""
    if not isinstance(value, Mapping):
        return {name: value}
    return {f'{name}.{key}': one for key, one in value.items()}


def judge_result(
    result: GatedResult, options: GateOptions, baseline: GatedResult | None = None
) -> GateVerdict:
    """Hold a result against limits.

    What an earlier one, `baseline`, has and the result has not breaks the gate. Sim2RealError when
    no limit is given, a name is not in the result, or the two cannot be compared.
    """
    if options.max_vepd is None and baseline is None:
        raise ParameterError('gate', '', 'has no limit; must be given --max-vepd or --baseline')
    if baseline is not None and (told := result.differs(baseline)):
        raise Sim2RealError(f'{baseline.path}: cannot be compared with {result.path}: {told}')
    for option, wanted, there in (
        ('--models', options.models, {cell.model for cell in result.vepd}),
        ('--scenarios', options.scenarios, {cell.scenario for cell in result.vepd}),
        ('--judge-names', options.judges, {cell.judge for cell in result.vepd}),
    ):
        for name in wanted:
            if name not in there:
                problem = not_among(f'{name!r} is unknown', name, sorted(there))
                raise ParameterError(option, '', problem)
    cells = [cell for cell in result.vepd if _wanted(cell, result, options)]
    now = _all_known(result, cells, options)
    before = {} if baseline is None else _all_known(baseline, cells, options)
    cases = [
        _case(cell, result, options, baseline, now.get(cell), before.get(cell)) for cell in cells
    ]
    notes = []
    if baseline is not None:
        gone = [
            cell
            for cell in baseline.vepd
            if cell not in result.vepd and _wanted(cell, baseline, options)
        ]
        cases += [
            GateCase(
                cell,
                None,
                baseline=baseline.vepd[cell],
                broken=('is in the baseline, and not in the result',),
            )
            for cell in gone
        ]
    if not any(not case.skipped for case in cases):
        raise Sim2RealError(f'{result.path}: nothing is in it and in {baseline and baseline.path}')
    unknown = [case.cell for case in cases if case.vepd is not None and case.low is None]
    if unknown and options.by == 'low':
        # Nothing would break a limit, whatever it is.
        raise Sim2RealError(
            f'{result.path}: {unknown[0]} has no interval: too few recordings, or no runs.csv; '
            'must have one for --by low (--by estimate takes the number itself)'
        )
    if unknown and options.by == 'high':
        notes.append('Some intervals are unknown: too few recordings, or no runs.csv')
    if baseline is not None and _others(result, baseline):
        notes.append(
            'The real runs are not those of the baseline, so that part of a change may be theirs'
        )
    if result.synthetic:
        notes.append('Recordings are SYNTHETIC stand-ins')
    return GateVerdict(options, tuple(cases), result.failures, tuple(notes))


def _wanted(cell: Cell, result: GatedResult, options: GateOptions) -> bool:
    scenarios = {c.scenario for c in result.vepd if (c.judge, c.group) == (cell.judge, cell.group)}
    if cell.scenario == POOLED and len(scenarios) <= 2 and POOLED not in options.scenarios:
        # One scenario: the pooled number is that of the scenario once more.
        return False
    return all(
        name in wanted or not wanted
        for name, wanted in (
            (cell.model, options.models),
            (cell.scenario, options.scenarios),
            (cell.judge, options.judges),
        )
    )


def _case(
    cell: Cell,
    result: GatedResult,
    options: GateOptions,
    baseline: GatedResult | None,
    known: DistanceUncertainty | None,
    old: DistanceUncertainty | None,
) -> GateCase:
    names = () if known is None else ('low', 'high', 'p_value', 'null_median')
    told: dict[str, Any] = {name: getattr(known, name) for name in names}
    case = GateCase(cell, result.vepd[cell], **told)
    if baseline is not None and cell in baseline.vepd:
        before = baseline.vepd[cell]
        low, high = _increase(cell, result, baseline, case, old, options)
        case = dataclasses.replace(
            case,
            baseline=before,
            increase=result.vepd[cell] - before,
            increase_low=low,
            increase_high=high,
        )
    broken = []
    if _breaks(options.max_vepd, case.vepd, case.low, case.high, options.by):
        broken.append(f'{case.told(options)}; limit {options.max_vepd:g}')
    bounds = case.increase_low, case.increase_high
    if _breaks(options.max_increase, case.increase, *bounds, options.by):
        broken.append(
            f'VEPD {case.vepd:.4g} is {case.increase:.4g} above the baseline of '
            f'{case.baseline:.4g}{interval(*bounds, options)}; at most '
            f'{options.max_increase:g} allowed'
        )
    skipped = ''
    if options.max_vepd is None and case.baseline is None:
        skipped = 'is not in the baseline, and there is no limit'
    return dataclasses.replace(case, broken=tuple(broken), skipped=skipped)


def _breaks(
    limit: float | None, value: float | None, low: float | None, high: float | None, by: str
) -> bool:
    if limit is None or value is None:
        return False
    bound = {'estimate': value, 'low': low, 'high': high}[by]
    # Nothing shows that an unknown upper bound is kept.
    return by == 'high' if bound is None else bound > limit


def _method(options: GateOptions) -> UncertaintyOptions:
    return UncertaintyOptions(resamples=options.resamples, level=options.confidence)


def _runs(result: GatedResult, cell: Cell) -> tuple[ScoredRuns, ScoredRuns] | None:
    models = result.runs.get(ComparisonKey(cell.judge, cell.group, cell.scenario), {})
    if REAL not in models or cell.model not in models:
        return None
    return models[REAL], models[cell.model]


def _all_known(
    result: GatedResult, cells: Sequence[Cell], options: GateOptions
) -> dict[Cell, DistanceUncertainty]:
    """Return what is known of each number, one place at a time: its real runs are shared."""
    found: dict[Cell, DistanceUncertainty] = {}
    for place, runs in result.runs.items():
        wanted = [
            cell
            for cell in cells
            if ComparisonKey(cell.judge, cell.group, cell.scenario) == place and cell.model in runs
        ]
        if not wanted:
            continue
        simulated = {cell.model: runs[cell.model] for cell in wanted}
        known = uncertainty(runs[REAL], simulated, _method(options), seed=options.seed)
        found |= {cell: known.of(cell.model) for cell in wanted}
    return found


def _increase(
    cell: Cell,
    result: GatedResult,
    baseline: GatedResult,
    case: GateCase,
    old: DistanceUncertainty | None,
    options: GateOptions,
) -> tuple[float | None, float | None]:
    """Return the interval of the increase over the baseline.

    From both sets of simulated runs against the real ones where these are the same; else from both
    intervals, as wide as they allow; or from that of the result when the baseline has no runs.
    """
    now, before = _runs(result, cell), _runs(baseline, cell)
    if case.low is None or case.high is None or now is None:
        return None, None
    if before is None:
        known = baseline.vepd[cell]
        return case.low - known, case.high - known
    if _same(now[0], before[0]):
        found = uncertainty(
            now[0], {_NOW: now[1], _BEFORE: before[1]}, _method(options), seed=options.seed
        )
        pair = found.pair(_NOW, _BEFORE)
        return pair.low, pair.high
    if old is None or old.low is None or old.high is None:
        return None, None
    return case.low - old.high, case.high - old.low


def _same(one: ScoredRuns, other: ScoredRuns) -> bool:
    return one.names == other.names and np.array_equal(one.values, other.values)


def _others(result: GatedResult, baseline: GatedResult) -> bool:
    """Say whether there are other real runs somewhere than in the baseline, as far as is known."""
    return bool(baseline.runs) and any(
        place.judge in {there.judge for there in baseline.runs}
        and (place not in baseline.runs or not _same(runs[REAL], baseline.runs[place][REAL]))
        for place, runs in result.runs.items()
    )


def only(names: Sequence[str]) -> tuple[str, ...]:
    """Return names given by comma or one by one."""
    return tuple(part.strip() for text in names for part in text.split(',') if part.strip())
