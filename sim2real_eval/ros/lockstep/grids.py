# SPDX-License-Identifier: Apache-2.0
"""When the timers of one side are due, on a clock that may come in steps."""

from __future__ import annotations

from sim2real_eval.judge import Clock, FilterConfig, JudgeError, NavsatConfig
from sim2real_eval.judge.clock import NAVSAT_PHASE_NS

__all__ = ['Grid', 'Grids']


class Grid:
    """One timer: due at origin + n period, n >= 1; a late tick does not shift it.

    Parameters
    ----------
    origin_ns, period_ns : int
    start_ns, step_ns : int
        Things happen at start + k step only.
    """

    def __init__(self, origin_ns: int, period_ns: int, start_ns: int, step_ns: int) -> None:
        self.origin_ns, self.period_ns = origin_ns, period_ns
        self._start, self._step = start_ns, step_ns
        self._due = origin_ns + period_ns

    @property
    def next_ns(self) -> int:
        """Clock step of the next tick."""
        steps = max(-((self._start - self._due) // self._step), 0)
        return self._start + steps * self._step

    def take(self, now_ns: int) -> bool:
        """Say whether the timer ticks now, and then wait for the next time."""
        if now_ns < self._due:
            return False
        self._due += ((now_ns - self._due) // self.period_ns + 1) * self.period_ns
        return True


class Grids:
    """The timers of the filter and, if there is one, of navsat_transform.

    Parameters
    ----------
    clock : Clock
    config : FilterConfig
    navsat : NavsatConfig or None
    start_ns : int
        Unless the clock says so.
    inside : bool
        Whether navsat_transform runs in the filter's node, which then sets its timer.

    Raises
    ------
    JudgeError
        When a node cannot tick as the clock says.
    """

    def __init__(
        self,
        clock: Clock,
        config: FilterConfig,
        navsat: NavsatConfig | None,
        start_ns: int,
        *,
        inside: bool,
    ) -> None:
        start = start_ns if clock.start_ns is None else clock.start_ns
        origin = start if clock.filter_origin_ns is None else clock.filter_origin_ns
        period = int(1e9 / config.frequency)
        _require('filter_timer_period_ns', clock.filter_period_ns, period)
        self.start_ns = start
        self.filter = Grid(origin, period, start, clock.step_ns)
        self.navsat: Grid | None = None
        if navsat is not None:
            phase = clock.navsat_origin_ns
            if phase is None:
                phase = start + NAVSAT_PHASE_NS
            period = int(1e9 / navsat.frequency)
            if inside:
                _require('navsat_timer_origin_ns', phase, origin + NAVSAT_PHASE_NS)
                _require('navsat_timer_period_ns', clock.navsat_period_ns, period)
            period = clock.navsat_period_ns or period
            self.navsat = Grid(phase, period, start, clock.step_ns)

    @property
    def next_ns(self) -> int:
        """Clock step at which something is due next."""
        due = self.filter.next_ns
        return due if self.navsat is None else min(due, self.navsat.next_ns)


def _require(key: str, value: int | None, fixed: int) -> None:
    if value not in (None, fixed):
        raise JudgeError(
            f'case: clock.{key}: {value} is not allowed with a judge that is a node; must be '
            f'{fixed}, as the node has it, or absent'
        )
