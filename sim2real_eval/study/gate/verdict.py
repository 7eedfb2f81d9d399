# SPDX-License-Identifier: Apache-2.0
"""Which numbers of a result break a limit, and why."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.metrics.uncertainty.assessment import uncertainty
from sim2real_eval.metrics.uncertainty.motions import ScoredRuns
from sim2real_eval.metrics.uncertainty.result import DistanceUncertainty, UncertaintyOptions
from sim2real_eval.study.gate.result import Cell, ComparisonKey, GateCase, GatedResult
from sim2real_eval.study.options import GateOptions
from sim_sensors.core.errors import ParameterError, Sim2RealError, not_among

_NOW, _BEFORE = 'now', 'before'
_MOST = 5


@dataclasses.dataclass(frozen=True)
class GateVerdict:
    """All cases, and what to make of them.

    Attributes
    ----------
    options : GateOptions
    cases : tuple of GateCase
    left_out : tuple of str
        Recordings that are not in the result: it then does not pass.
    notes : tuple of str
    """

    options: GateOptions
    cases: tuple[GateCase, ...]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no limit is broken and no recording is missing."""
        return not self.left_out and not any(case.broken for case in self.cases)

    @property
    def reason(self) -> str:
        """One paragraph: what broke which limit, or how close the nearest came to one."""
        broken = [case for case in self.cases if case.broken]
        held = [case for case in self.cases if not case.skipped]
        sentences = []
        if self.left_out:
            sentences.append(f'Recordings were left out: {", ".join(self.left_out)}')
        if broken:
            breaks = 'breaks' if len(broken) == 1 else 'break'
            worst = sorted(broken, key=lambda case: -_beyond(case, self.options))[:_MOST]
            order = ', worst first' if len(broken) > 1 else ''
            sentences.append(
                f'{len(broken)} of {_count(len(held), "number")} {breaks} a limit{order}'
            )
            sentences += [f'{case.cell}: {"; ".join(case.broken)}' for case in worst]
            if len(broken) > _MOST:
                sentences.append(f'So do {len(broken) - _MOST} more')
        elif not self.left_out:
            nearest = max(held, key=_excess)
            sentences.append(
                f'{_count(len(held), "number")} within the limits; the nearest to one is '
                f'{nearest.cell}: {_told(nearest, self.options)}{_over(nearest)}'
            )
        sentences += self.notes
        return f'{"PASS" if self.passed else "FAIL"}: {". ".join(sentences)}.'

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            'passed': self.passed,
            'reason': self.reason,
            'options': {
                key: list(value) if isinstance(value, tuple) else value
                for key, value in dataclasses.asdict(self.options).items()
            },
            'cases': [case.to_mapping() for case in self.cases],
            'left_out': list(self.left_out),
            'notes': list(self.notes),
        }


def _excess(case: GateCase) -> float:
    """Return by what a case is compared with others: its increase, where it has one."""
    return (case.vepd or 0.0) if case.increase is None else case.increase


def _beyond(case: GateCase, options: GateOptions) -> float:
    """Return by how much a case is beyond that of its limits which it breaks most.

    By what is held against the limits; by the number itself where a bound cannot be told. A number
    that is gone is beyond everything.
    """
    if case.vepd is None:
        return math.inf
    found = [-math.inf]
    for limit, value, low, high in (
        (options.max_vepd, case.vepd, case.low, case.high),
        (options.max_increase, case.increase, case.increase_low, case.increase_high),
    ):
        if limit is not None and value is not None:
            bound = {'estimate': value, 'low': low, 'high': high}[options.by]
            found.append((value if bound is None else bound) - limit)
    return max(found)


def _over(case: GateCase) -> str:
    if case.increase is None:
        return ''
    if case.increase == 0.0:
        return ', as in the baseline'
    where = 'above' if case.increase > 0.0 else 'below'
    return f', {abs(case.increase):.4g} {where} the baseline'


def _count(number: int, what: str) -> str:
    return f'{number} {what}{"" if number == 1 else "s"}'


def judge_result(
    result: GatedResult, options: GateOptions, baseline: GatedResult | None = None
) -> GateVerdict:
    """Hold a result against limits.

    Raises Sim2RealError when no limit is given, a name is not in the result, or the two cannot be
    compared.

    Parameters
    ----------
    baseline : GatedResult, optional
        Earlier result; what it has and the result has not breaks the gate.
    """
    if options.max_vepd is None and baseline is None:
        raise ParameterError('gate', '', 'has no limit; must be given --max-vepd or --baseline')
    if baseline is not None and (told := result.differs(baseline)):
        raise Sim2RealError(f'{baseline.path}: cannot be compared with {result.path}: {told}')
    for option, wanted, there in (
        ('--model', options.models, {cell.model for cell in result.vepd}),
        ('--scenario', options.scenarios, {cell.scenario for cell in result.vepd}),
        ('--judge-name', options.judges, {cell.judge for cell in result.vepd}),
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
    if options.by != 'estimate' and any(case.low is None for case in cases if case.vepd):
        notes.append('Some intervals cannot be told: too few recordings, or no runs.csv')
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
    vepd = result.vepd[cell]
    case = GateCase(cell, vepd)
    if known is not None:
        case = dataclasses.replace(
            case,
            low=known.low,
            high=known.high,
            p_value=known.p_value,
            null_median=known.null_median,
        )
    if baseline is not None and cell in baseline.vepd:
        before = baseline.vepd[cell]
        low, high = _increase(cell, result, baseline, case, old, options)
        case = dataclasses.replace(
            case, baseline=before, increase=vepd - before, increase_low=low, increase_high=high
        )
    broken = []
    if options.max_vepd is not None and _breaks(
        vepd, case.low, case.high, options.max_vepd, options.by
    ):
        broken.append(f'{_told(case, options)}; limit {options.max_vepd:g}')
    limit = options.max_increase
    if limit is not None and case.increase is not None and _breaks(
        case.increase, case.increase_low, case.increase_high, limit, options.by
    ):  # fmt: skip
        interval = _interval(case.increase_low, case.increase_high, options)
        broken.append(
            f'VEPD {vepd:.4g} is {case.increase:.4g} above the baseline of {case.baseline:.4g}'
            f'{interval}; at most {limit:g} allowed'
        )
    skipped = ''
    if options.max_vepd is None and case.baseline is None:
        skipped = 'is not in the baseline, and there is no limit'
    return dataclasses.replace(case, broken=tuple(broken), skipped=skipped)


def _breaks(value: float, low: float | None, high: float | None, limit: float, by: str) -> bool:
    if by == 'low':
        return low is not None and low > limit
    if by == 'high':
        # What cannot be told is not sure to be kept.
        return high is None or high > limit
    return value > limit


def _told(case: GateCase, options: GateOptions) -> str:
    assert case.vepd is not None
    text = f'VEPD {case.vepd:.4g}{_interval(case.low, case.high, options)}'
    if case.p_value is not None:
        text += f', p-value under a perfect model {case.p_value:.2g}'
    return text


def _interval(low: float | None, high: float | None, options: GateOptions) -> str:
    if low is None or high is None:
        return ''
    return f', {options.confidence:.0%} from {low:.4g} to {high:.4g}'


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
