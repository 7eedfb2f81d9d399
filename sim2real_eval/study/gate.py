# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Compare the result of a study with limits and an earlier result, for CI."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sim2real_eval.common.findings import FINDINGS, Severity, from_records
from sim2real_eval.metrics.interval import ScoredRuns
from sim2real_eval.metrics.options import REAL, UncertaintyOptions
from sim2real_eval.metrics.scores import POOLED
from sim2real_eval.metrics.uncertainty import DistanceUncertainty, uncertainty
from sim_sensors.core.errors import ParameterError, Sim2RealError, not_among
from .gate_verdict import TRANSFER, Cell, GateCase, GateVerdict, LimitCheck, ratio_to
from .options import UNSAID, GateOptions
from .outcome import MARK, StudyOutcome, scored_runs, stored_blocks
from .record import describe_difference
from .run import StudyRun
from .transfer_record import loss_text, read_transfer

_SETTING_KEYS = (
    'component', 'metric', 'start_heading', 'off_ticks', 'adapt', 'match_rates', 'simulate_on',
    'synthetic',
)  # fmt: skip
"""Keys of the record in which two compared results must agree."""
_NOTED_KEYS = ('seed', 'repetitions', 'world')
"""Keys of the record in which two compared results may differ."""
_NOW, _BEFORE = 'now', 'before'
_PACKAGE = 'sim2real_sensors'
_MAX_NOTES = 3


class ComparisonKey(NamedTuple):
    """Judge, group and scenario whose runs are compared."""

    judge: str
    group: str
    scenario: str


@dataclasses.dataclass(frozen=True, eq=False)
class GatedResult:
    """The parts of a study that a gate needs.

    Attributes
    ----------
    path : str
    vepd : dict of Cell to float
    runs : dict of ComparisonKey to dict of model (or `real`) to ScoredRuns
    settings : mapping
        Values that must be equal in two compared results, where both have them: settings,
        conditions, each judge, and which sensors of each model are simulated.
    noted : mapping
        Values that may differ and explain part of a change, such as parameters of the models.
    failures : tuple of str
        Recordings that were left out.
    synthetic : bool
        Whether recordings are stand-ins.
    transfer : mapping or None
        Record of the transfer; a result of `sim2real transfer` has nothing else.
    decisive : tuple of str
        Codes of the decisive findings of the study and of the transfer.
    """

    path: str
    vepd: Mapping[Cell, float]
    runs: Mapping[ComparisonKey, Mapping[str, ScoredRuns]]
    settings: Mapping[str, Any]
    noted: Mapping[str, Any]
    failures: tuple[str, ...]
    synthetic: bool = False
    transfer: Mapping[str, Any] | None = None
    decisive: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: str | Path) -> GatedResult:
        """Read the folder of a study or its study.json, or a folder of `sim2real transfer`.

        The file study.json may have another name.

        Raises
        ------
        Sim2RealError
            When there is no study, or it cannot be read.
        """
        transfer = read_transfer(path)
        if transfer is not None and not (Path(path) / MARK).is_file():
            codes = _decisive_codes(transfer)
            return cls(str(path), {}, {}, {}, {}, (), transfer=transfer, decisive=codes)
        outcome = StudyOutcome.read(path, with_notes=False)
        record = {**UNSAID, **outcome.record}
        vepd = {
            Cell(judge, group, row.model, row.scenario): row.vepd
            for judge, group in outcome.compared_pairs
            for row in outcome.table(judge, group)
        }
        if not vepd or not all(map(math.isfinite, vepd.values())):
            # NaN is above no limit, so it would pass.
            raise Sim2RealError(f'{path}: has no distances, or some are not finite')
        runs: dict[ComparisonKey, dict[str, list[StudyRun]]] = {}
        for run in outcome.runs:
            for scenario in (run.scenario, POOLED):
                key = ComparisonKey(run.key.judge, run.group, scenario)
                runs.setdefault(key, {}).setdefault(run.key.model, []).append(run)
        return cls(
            str(path),
            vepd,
            {
                key: {
                    model: scored_runs(model_runs, outcome.blocks)
                    for model, model_runs in models.items()
                }
                for key, models in runs.items()
                if REAL in models
            },
            _settings(record),
            _noted_settings(record),
            tuple(sorted({failure['recording'] for failure in record['failures']})),
            bool(record.get('synthetic')),
            transfer,
            (*_decisive_codes(record), *_decisive_codes(transfer or {})),
        )

    def differences(self, baseline: GatedResult, options: GateOptions) -> list[str]:
        """Return the settings in which the result and a baseline differ.

        Judges and models that the options do not select are not compared.
        """
        judge_keys = [
            {key for key in result.settings if key.startswith('judges.')}
            for result in (self, baseline)
        ]
        if all(judge_keys) and not set.intersection(*judge_keys):
            now, before = (
                ', '.join(sorted(key.removeprefix('judges.') for key in keys))
                for keys in judge_keys
            )
            return [f'judges: were {before}, are {now}']
        return _differences(baseline.settings, self.settings, options)

    def runs_of(self, cell: Cell) -> tuple[ScoredRuns, ScoredRuns] | None:
        """Return the real and the simulated runs of a cell, or None if there are none."""
        models = self.runs.get(ComparisonKey(cell.judge, cell.group, cell.scenario), {})
        if REAL not in models or cell.model not in models:
            return None
        return models[REAL], models[cell.model]


def _decisive_codes(record: Mapping[str, Any]) -> tuple[str, ...]:
    notes = from_records(record.get('notes', ()))
    return tuple(note.code for note in notes if note.severity is Severity.DECISIVE)


def _settings(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that must be equal in compared results; keys contain the labels."""
    settings = {name: record[name] for name in _SETTING_KEYS if name in record}
    for condition in record.get('conditions', ()):
        settings[f'conditions.{condition["label"]}'.rstrip('.')] = condition
    for judge in record['judges']:
        kind = judge.get('judge', '').partition(':')[0]
        settings[f'judges.{judge["label"]}'] = {
            **{key: value for key, value in judge.items() if key not in ('label', 'name')},
            'files': {file['name']: file['sha256'] for file in judge.get('files', ())},
            'code': record.get('identity', {}).get(Path(kind).name),
        }
    for label, sensors in record.get('models', {}).items():
        settings[f'models.{label}'] = {
            kind: 'simulated' if isinstance(sensor, Mapping) else sensor
            for kind, sensor in sensors.items()
        }
    return settings


def _noted_settings(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that may differ in compared results; keys contain the labels."""
    return {
        **{f'models.{label}': sensors for label, sensors in record.get('models', {}).items()},
        **{name: record[name] for name in _NOTED_KEYS if name in record},
        'blocks': stored_blocks(record),
        'versions': {_PACKAGE: record.get('versions', {}).get(_PACKAGE)},
    }


def _differences(
    before: Mapping[str, Any], now: Mapping[str, Any], options: GateOptions
) -> list[str]:
    """Return a difference for each unequal value that both have and the options select."""
    selected = {'models': options.models, 'judges': options.judges}
    differences = []
    for key in (key for key in now if key in before):
        kind, _, name = key.partition('.')
        if not selected.get(kind) or name in selected[kind]:
            differences.append(describe_difference(key, before[key], now[key]))
    return [difference for difference in differences if difference]


def judge_result(
    result: GatedResult, options: GateOptions, baseline: GatedResult | None = None
) -> GateVerdict:
    """Compare a result with limits and with an earlier result, the baseline.

    The gate fails if a number of the baseline is missing in the result. Without `max_increase` no
    increase over the baseline is allowed.

    Raises
    ------
    Sim2RealError
        When no limit is given, a name is unknown, or the results cannot be compared.
    """
    if baseline is not None and options.max_increase is None:
        options = dataclasses.replace(options, max_increase=0.0)
    limits = (options.max_vepd, options.max_ratio_to_null, baseline)
    limits_vepd = any(limit is not None for limit in limits)
    if not limits_vepd and options.max_transfer_loss is None:
        problem = (
            'has no limit; give --max-vepd, --max-ratio-to-null, --max-transfer-loss or --baseline'
        )
        raise ParameterError('gate', '', problem)
    if not result.vepd and limits_vepd:
        raise Sim2RealError(
            f'{result.path}: has no VEPD, only a transfer loss; must be the folder of a study for '
            'a limit of VEPD'
        )
    _check_names(result, options)
    if baseline is not None and (differences := result.differences(baseline, options)):
        raise Sim2RealError(
            f'{baseline.path}: is another experiment than {result.path}: {differences[0]}; '
            'repeat one of them with the options of the other'
        )
    cells = [cell for cell in result.vepd if limits_vepd and _is_selected(cell, result, options)]
    now = _uncertainties(result, cells, options)
    before = {} if baseline is None else _uncertainties(baseline, cells, options)
    cases = [
        _make_case(cell, result, options, baseline, now.get(cell), before.get(cell))
        for cell in cells
    ]
    if baseline is not None:
        cases += [
            GateCase(
                cell,
                None,
                baseline=vepd,
                checks=(LimitCheck('--baseline', 'is in the baseline but not in the result'),),
            )
            for cell, vepd in baseline.vepd.items()
            if cell not in result.vepd and _is_selected(cell, baseline, options)
        ]
    if options.max_transfer_loss is not None:
        cases = [case for case in cases if not case.skipped] + _transfer_cases(result, options)
    if not cases:
        raise Sim2RealError(
            f'{result.path}: no number is selected by --models, --scenarios and --judge-names'
        )
    if baseline is not None and all(case.skipped for case in cases):
        raise Sim2RealError(f'{result.path}: has nothing in common with {baseline.path}')
    notes = []
    unknown = [
        case.cell
        for case in cases
        if (case.loss_low if case.vepd is None else case.low) is None and not case.broken
    ]
    if unknown and options.by == 'low':
        # No limit could ever be broken.
        raise Sim2RealError(
            f'{result.path}: {unknown[0]} has no interval for --by low: too few recordings; '
            'record more, or use --by estimate'
        )
    without_null = [
        case.cell for case in cases if case.vepd is not None and case.null_high is None
    ]
    if without_null and options.max_ratio_to_null is not None:
        pooled = [case.cell for case in cases if case.cell.scenario == POOLED]
        others = ', or --scenarios all' if set(pooled) - set(without_null) else ''
        raise Sim2RealError(
            f'{result.path}: {without_null[0]} has no null distribution for --max-ratio-to-null: '
            f'fewer than six drives; record more, or use --max-vepd{others}'
        )
    if baseline is not None and _has_other_real_runs(result, baseline):
        notes.append(
            'The real runs differ from those of the baseline and may explain part of a change.'
        )
    if baseline is not None:
        differences = _differences(baseline.noted, result.noted, options)
        notes += [f'Differs from the baseline: {text}' for text in differences[:_MAX_NOTES]]
        if len(differences) > _MAX_NOTES:
            notes.append(f'and {len(differences) - _MAX_NOTES} more differences')
    decisive = tuple(dict.fromkeys(result.decisive))
    if decisive:
        codes = ', '.join(decisive)
        notes.append(f'The result has decisive findings, see its {FINDINGS}: {codes}')
    if result.synthetic:
        notes.append('The recordings are SYNTHETIC stand-ins.')
    failing = decisive if options.strict else ()
    return GateVerdict(options, tuple(cases), result.failures, tuple(notes), failing)


def _transfer_cases(result: GatedResult, options: GateOptions) -> list[GateCase]:
    """Return a case for the transfer loss of each selected model."""
    record, limit = result.transfer, options.max_transfer_loss
    if record is None:
        raise Sim2RealError(
            f'{result.path}: has no transfer loss; measure it with `sim2real transfer`, or '
            '`transfer: {}` in the study file'
        )
    assert limit is not None
    level = record['options']['level']
    if options.by != 'estimate' and options.confidence != level:
        raise ParameterError(
            '--confidence', '', f'is {options.confidence:g}, but the transfer has intervals at '
            f'{level:g}; measure it with --level {options.confidence:g}',
        )  # fmt: skip
    judge = str(record['judge']['name'])
    text_of = functools.partial(loss_text, record['quantity'])
    option = f'--max-transfer-loss {text_of(limit)}'
    cases = [
        GateCase(
            Cell(judge, '', model, TRANSFER),
            None,
            checks=(LimitCheck(option, f'no transfer loss: {problem}'),),
        )
        for model, problem in record['failures'].items()
        if not options.models or model in options.models
    ]
    for model in record['models']:
        if options.models and model['model'] not in options.models:
            continue
        cell = Cell(judge, '', model['model'], TRANSFER)
        loss, low, high = (model[name] for name in ('loss', 'low', 'high'))
        case = GateCase(
            cell, None, loss=loss, loss_low=low, loss_high=high, quantity=record['quantity']
        )
        ends = '' if None in (low, high) else f' ({text_of(low)} to {text_of(high)})'
        number = f'{text_of(loss)}{ends} of {record["quantity"]}'
        check = _check(option, number, limit, (loss, low, high), options.by)
        cases.append(dataclasses.replace(case, checks=(check,)))
    return cases


def _check_names(result: GatedResult, options: GateOptions) -> None:
    """Raise ParameterError for selected models, scenarios or judges that the result lacks."""
    models = {cell.model for cell in result.vepd}
    if result.transfer is not None:
        models |= {model['model'] for model in result.transfer['models']}
        models |= set(result.transfer['failures'])
    for option, selected, existing in (
        ('--models', options.models, models),
        ('--scenarios', options.scenarios, {cell.scenario for cell in result.vepd}),
        ('--judge-names', options.judges, {cell.judge for cell in result.vepd}),
    ):
        for name in selected:
            if name not in existing:
                problem = not_among(f'{name!r} is unknown', name, sorted(existing))
                raise ParameterError(option, '', problem)


def _is_selected(cell: Cell, result: GatedResult, options: GateOptions) -> bool:
    scenarios = {c.scenario for c in result.vepd if (c.judge, c.group) == (cell.judge, cell.group)}
    if cell.scenario == POOLED and len(scenarios) <= 2 and POOLED not in options.scenarios:
        # The pooled number of a single scenario is the same again.
        return False
    return all(
        name in selected or not selected
        for name, selected in (
            (cell.model, options.models),
            (cell.scenario, options.scenarios),
            (cell.judge, options.judges),
        )
    )


def _make_case(
    cell: Cell,
    result: GatedResult,
    options: GateOptions,
    baseline: GatedResult | None,
    now: DistanceUncertainty | None,
    before: DistanceUncertainty | None,
) -> GateCase:
    """Return the case of a cell.

    `now` and `before` are the uncertainties of the result and of the baseline.
    """
    vepd = result.vepd[cell]
    names = ('low', 'high', 'p_value', 'null_median', 'null_high')
    values = {name: getattr(now, name) for name in names} if now else {}
    case = GateCase(cell, vepd, **values)
    checks = []
    if options.max_vepd is not None:
        limit, low, high = options.max_vepd, case.low, case.high
        number = f'{vepd:.4g}{interval_text(low, high)}'
        checks.append(
            _check(f'--max-vepd {limit:g}', number, limit, (vepd, low, high), options.by)
        )
    if options.max_ratio_to_null is not None and case.null_high is not None:
        limit = options.max_ratio_to_null
        ratio, low, high = (
            None if end is None else ratio_to(end, case.null_high)
            for end in (vepd, case.low, case.high)
        )
        number = f'{ratio:.3g}{interval_text(low, high)}'
        option = f'--max-ratio-to-null {limit:g}'
        checks.append(_check(option, number, limit, (ratio, low, high), options.by))
    if baseline is not None and cell in baseline.vepd:
        assert options.max_increase is not None
        low, high = _increase_interval(cell, result, baseline, case, before, options)
        increase, limit = vepd - baseline.vepd[cell], options.max_increase
        case = dataclasses.replace(
            case,
            baseline=baseline.vepd[cell],
            increase=increase,
            increase_low=low,
            increase_high=high,
        )
        number = f'{increase:+.4g}{interval_text(low, high)} to {vepd:.4g}'
        option = f'--max-increase {limit:g}'
        checks.append(_check(option, number, limit, (increase, low, high), options.by))
    skipped = '' if checks else 'is not in the baseline and has no limit'
    return dataclasses.replace(case, checks=tuple(checks), skipped=skipped)


def _check(
    option: str, number: str, limit: float, bounds: Sequence[float | None], by: str
) -> LimitCheck:
    """Return the comparison of a number, given with both ends of its interval, with a limit."""
    value, low, high = bounds
    assert value is not None
    bound = {'estimate': value, 'low': low, 'high': high}[by]
    # An unknown upper bound may exceed the limit, so the limit counts as broken.
    is_broken = by == 'high' if bound is None else bound > limit
    if bound is None and is_broken:
        number += ', its upper end is unknown: too few drives for an interval'
    return LimitCheck(option, number, (value if bound is None else bound) - limit, is_broken)


def _uncertainty_options(options: GateOptions) -> UncertaintyOptions:
    return UncertaintyOptions(resamples=options.resamples, level=options.confidence)


def _uncertainties(
    result: GatedResult, cells: Sequence[Cell], options: GateOptions
) -> dict[Cell, DistanceUncertainty]:
    """Return the uncertainty of each cell; cells of one ComparisonKey share real runs."""
    uncertainties: dict[Cell, DistanceUncertainty] = {}
    for key, runs in result.runs.items():
        here = [
            cell
            for cell in cells
            if ComparisonKey(cell.judge, cell.group, cell.scenario) == key and cell.model in runs
        ]
        if here:
            simulated = {cell.model: runs[cell.model] for cell in here}
            key_result = uncertainty(
                runs[REAL], simulated, _uncertainty_options(options), seed=options.seed
            )
            uncertainties |= {cell: key_result.model(cell.model) for cell in here}
    return uncertainties


def _increase_interval(
    cell: Cell,
    result: GatedResult,
    baseline: GatedResult,
    case: GateCase,
    before: DistanceUncertainty | None,
    options: GateOptions,
) -> tuple[float | None, float | None]:
    """Return the interval of the increase over the baseline.

    If both results have the same real runs, it is the interval of the difference between the sets
    of simulated runs. Otherwise it has the largest width that both intervals allow.
    """
    runs, baseline_runs = result.runs_of(cell), baseline.runs_of(cell)
    if case.low is None or case.high is None or runs is None:
        return None, None
    if baseline_runs is None:
        return case.low - baseline.vepd[cell], case.high - baseline.vepd[cell]
    if _are_equal(runs[0], baseline_runs[0]):
        simulated = {_NOW: runs[1], _BEFORE: baseline_runs[1]}
        difference = uncertainty(
            runs[0], simulated, _uncertainty_options(options), seed=options.seed
        )
        pair = difference.pair(_NOW, _BEFORE)
        return pair.low, pair.high
    if before is None or before.low is None or before.high is None:
        return None, None
    return case.low - before.high, case.high - before.low


def _are_equal(first: ScoredRuns, second: ScoredRuns) -> bool:
    return first.names == second.names and np.array_equal(first.values, second.values)


def _has_other_real_runs(result: GatedResult, baseline: GatedResult) -> bool:
    """Return whether real runs of a common judge differ from those of the baseline."""
    return bool(baseline.runs) and any(
        key.judge in {other.judge for other in baseline.runs}
        and (key not in baseline.runs or not _are_equal(runs[REAL], baseline.runs[key][REAL]))
        for key, runs in result.runs.items()
    )


def interval_text(low: float | None, high: float | None) -> str:
    """Return an interval in parentheses, or an empty string if it is unknown."""
    return '' if low is None or high is None else f' ({low:.3g} to {high:.3g})'


def split_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the single names of arguments that may be lists separated by commas."""
    return tuple(part.strip() for text in names for part in text.split(',') if part.strip())
