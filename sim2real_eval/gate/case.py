# SPDX-License-Identifier: Apache-2.0
"""What a gate holds against which limits, and what came of one number."""

from __future__ import annotations

import dataclasses
from typing import Any

from sim2real_eval.gate.result import Cell

__all__ = ['BY', 'GateCase', 'GateOptions']

BY = ('estimate', 'low', 'high')
"""What is held against a limit: the number itself, or a bound of its interval. `low` breaks a
limit only when it is sure to be broken, `high` unless it is sure to be kept."""


@dataclasses.dataclass(frozen=True)
class GateOptions:
    """What a result is held against.

    Attributes
    ----------
    max_vepd : float or None
    max_increase : float or None
        Over the baseline; None without one.
    by : str
        One of `BY`.
    confidence : float
        Of the intervals.
    resamples : int
    seed : int
    models, scenarios, judges : tuple of str
        What is looked at; empty: everything.
    """

    max_vepd: float | None = None
    max_increase: float | None = None
    by: str = 'estimate'
    confidence: float = 0.95
    resamples: int = 10_000
    seed: int = 0
    models: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class GateCase:
    """One number, held against its limits.

    Attributes
    ----------
    cell : Cell
    vepd : float or None
        None: the baseline has it, the result has not.
    low, high, p_value, null_median : float or None
        From `uncertainty`; None where that cannot be told.
    baseline, increase, increase_low, increase_high : float or None
        VEPD of the baseline, and how much more it is now, with its interval.
    broken : tuple of str
        Limits that are broken, in words; empty: passed.
    skipped : str
        Why nothing was held against it; empty as a rule.
    """

    cell: Cell
    vepd: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    null_median: float | None = None
    baseline: float | None = None
    increase: float | None = None
    increase_low: float | None = None
    increase_high: float | None = None
    broken: tuple[str, ...] = ()
    skipped: str = ''

    def to_mapping(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        fields = dataclasses.asdict(self)
        del fields['cell']
        passed = not self.broken and not self.skipped
        return {**self.cell._asdict(), 'passed': passed, **fields, 'broken': list(self.broken)}
