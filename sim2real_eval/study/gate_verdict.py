# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Cases of a gate, their comparisons with limits, and the verdict."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

from sim2real_eval.metrics.scores import POOLED
from .options import GateOptions

TRANSFER = 'transfer'
"""Scenario of a transfer loss."""
_MAX_SHOWN = 5


class Cell(NamedTuple):
    """Position of one VEPD in a result; scenario `all` is all scenarios pooled."""

    judge: str
    group: str
    model: str
    scenario: str

    def __str__(self) -> str:
        judge = f'{self.judge}, {self.group}' if self.group else self.judge
        if self.scenario == TRANSFER:
            return f'{self.model} (judge {judge})'
        scenario = 'all scenarios' if self.scenario == POOLED else self.scenario
        return f'{self.model} in {scenario} (judge {judge})'


class LimitCheck(NamedTuple):
    """Comparison of one number of a case with a limit.

    `limit` is the option with its value, and `number` the compared number as shown to the user.
    `excess` is the number minus the limit; infinity if there is no number.
    """

    limit: str
    number: str
    excess: float = math.inf
    is_broken: bool = True


@dataclasses.dataclass(frozen=True)
class GateCase:
    """VEPD of a model, and its comparison with each limit."""

    cell: Cell
    vepd: float | None  # None: it is in the baseline but not in the result
    low: float | None = None  # interval and test of `uncertainty`; None with too few runs
    high: float | None = None
    p_value: float | None = None
    null_median: float | None = None
    null_high: float | None = None
    baseline: float | None = None  # VEPD of the baseline, and the increase with its interval
    increase: float | None = None
    increase_low: float | None = None
    increase_high: float | None = None
    loss: float | None = None  # transfer loss with its interval, of a case without VEPD
    loss_low: float | None = None
    loss_high: float | None = None
    quantity: str = ''  # error or score of the loss
    checks: tuple[LimitCheck, ...] = ()
    skipped: str = ''  # reason why it was not compared; usually empty

    @property
    def broken(self) -> tuple[str, ...]:
        """Broken limits in words; empty if the case passes."""
        return tuple(f'{check.number} ({check.limit})' for check in self.checks if check.is_broken)

    @property
    def ratio_to_null(self) -> float | None:
        """VEPD divided by the largest one expected of identical sensors, or None if unknown."""
        return None if self.vepd is None else ratio_to(self.vepd, self.null_high)

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        fields = {**vars(self), 'ratio_to_null': self.ratio_to_null, 'broken': list(self.broken)}
        del fields['cell'], fields['checks']
        passed = not self.broken and not self.skipped
        return {**self.cell._asdict(), 'passed': passed, **fields}


def ratio_to(vepd: float, null: float | None) -> float | None:
    """Return VEPD relative to the null distribution; equal runs have the ratio 0."""
    if null is None:
        return None
    return vepd / null if null > 0.0 else 0.0 if vepd == 0.0 else math.inf


@dataclasses.dataclass(frozen=True)
class GateVerdict:
    """All cases of a gate.

    Attributes
    ----------
    options : GateOptions
    cases : tuple of GateCase
    left_out : tuple of str
        Recordings that are missing in the result; with any, the gate fails.
    notes : tuple of str
    decisive : tuple of str
        Codes of decisive findings that make the gate fail.
    """

    options: GateOptions
    cases: tuple[GateCase, ...]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    decisive: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no limit is broken, no recording is missing and no finding forbids it."""
        is_broken = any(case.broken for case in self.cases)
        return not (self.left_out or self.decisive or is_broken)

    @property
    def lines(self) -> list[str]:
        """The verdict and a line per limit; below each broken limit, its worst cases."""
        compared = [case for case in self.cases if not case.skipped]
        numbers = f'{len(compared)} number{"" if len(compared) == 1 else "s"}'
        broken = sum(bool(case.broken) for case in self.cases)
        verb = 'exceeds' if broken == 1 else 'exceed'
        if broken:
            reason = f'{broken} of {numbers} {verb} a limit'
        elif len(self.left_out) == 1:
            reason = 'a recording was left out'
        elif self.left_out:
            reason = f'{len(self.left_out)} recordings were left out'
        elif self.decisive:
            reason = 'the result has decisive findings'
        else:
            reason = f'{numbers} compared'
        lines = [f'{"PASS" if self.passed else "FAIL"}: {reason}']
        if self.left_out:
            lines.append(f'Left out: {", ".join(self.left_out)}')
        checks: dict[str, list[tuple[LimitCheck, Cell]]] = {}
        for case in self.cases:
            for check in case.checks:
                checks.setdefault(check.limit, []).append((check, case.cell))
        for limit, limit_checks in checks.items():
            limit_checks.sort(key=lambda pair: -pair[0].excess)
            broken_checks = [(check, cell) for check, cell in limit_checks if check.is_broken]
            if failed := [f'  {cell}: {check.number}' for check, cell in broken_checks]:
                if limit == '--baseline':
                    missing = 'number is' if len(failed) == 1 else 'numbers are'
                    lines.append(f'{limit}: {len(failed)} {missing} missing')
                else:
                    count_text = f'exceeded by {len(failed)} of {len(limit_checks)}'
                    # A failed transfer has no number, and then no interval.
                    has_interval = any(
                        '(' in check.number
                        for check, _ in broken_checks
                        if math.isfinite(check.excess)
                    )
                    level = f'; {100 * self.options.confidence:g} % interval in parentheses'
                    lines.append(f'{limit}: {count_text}{level if has_interval else ""}')
                lines += failed[:_MAX_SHOWN]
                if len(failed) > _MAX_SHOWN:
                    lines.append(f'  and by {len(failed) - _MAX_SHOWN} more: --json')
            else:
                closest, cell = limit_checks[0]
                lines.append(f'{limit}: holds; closest is {cell}: {closest.number}')
        return [*lines, *self.notes]

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            'passed': self.passed,
            'reason': '\n'.join(self.lines),
            'options': {
                key: list(value) if isinstance(value, tuple) else value
                for key, value in dataclasses.asdict(self.options).items()
            },
            'cases': [case.to_mapping() for case in self.cases],
            'left_out': list(self.left_out),
            'decisive': list(self.decisive),
            'notes': list(self.notes),
        }
