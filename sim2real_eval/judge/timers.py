# SPDX-License-Identifier: Apache-2.0
"""When the nodes' timers are due on a clock that jumps from message to message."""

from __future__ import annotations

from sim2real_eval.judge.clock import NAVSAT_PHASE_NS
from sim2real_eval.judge.configuration import FilterConfig
from sim2real_eval.judge.navsat_configuration import NavsatConfig

__all__ = ['Timers']


class Timers:
    """The filter's timer and, if configured, navsat_transform's.

    A timer is due at origin + n period, n >= 1, and ticks once at the first time at or after
    that, however late; ticks that were missed are not made up for, and the grid does not shift.

    Parameters
    ----------
    config : FilterConfig
    navsat : NavsatConfig or None
    start_ns : int
        Origin of the filter's grid; navsat_transform's lies 20 ms later, as in a batch run.
    """

    def __init__(self, config: FilterConfig, navsat: NavsatConfig | None, start_ns: int) -> None:
        self.start_ns = start_ns
        self._period = int(1e9 / config.frequency)
        self._due = start_ns + self._period
        self._navsat_period = 0 if navsat is None else int(1e9 / navsat.frequency)
        self._navsat_due = start_ns + NAVSAT_PHASE_NS + self._navsat_period

    @property
    def next_ns(self) -> int:
        """Time at which something is due next."""
        return min(self._due, self._navsat_due) if self._navsat_period else self._due

    def take_filter(self, now_ns: int) -> bool:
        """Say whether the filter ticks now, and then wait for the next time."""
        if now_ns < self._due:
            return False
        self._due = _after(self._due, self._period, now_ns)
        return True

    def take_navsat(self, now_ns: int) -> bool:
        """Say whether navsat_transform ticks now; asked after the filter has ticked."""
        if not self._navsat_period or now_ns < self._navsat_due:
            return False
        self._navsat_due = _after(self._navsat_due, self._navsat_period, now_ns)
        return True


def _after(due: int, period: int, now_ns: int) -> int:
    return due + ((now_ns - due) // period + 1) * period
