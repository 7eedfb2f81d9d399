# SPDX-License-Identifier: Apache-2.0
"""When the nodes' timers are due, on a clock that may come in steps."""

from __future__ import annotations

from typing import NamedTuple

from sim2real_eval.judge.robot_localization.configuration import FilterConfig, NavsatConfig
from sim2real_eval.judge.robot_localization.replay_options import NAVSAT_PHASE_NS, Clock
from sim_sensors.core.compilation import kernel
from sim_sensors.core.measurements import IntArray

_PLAIN = Clock()


def _next_due(origin: int, period: int, now: int) -> int:
    """Return the first time of the grid after `now`."""
    return origin + ((now - origin) // period + 1) * period


next_due = kernel(_next_due)


class Grid:
    """One timer: due at origin + n period, n >= 1; a late tick does not shift it.

    It ticks once at the first clock step at or after that, however late; ticks that were missed
    are not made up for.

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
        self._due = _next_due(self.origin_ns, self.period_ns, now_ns)
        return True


class Grids:
    """The timers of the filter and, if there is one, of navsat_transform.

    Parameters
    ----------
    config : FilterConfig
    navsat : NavsatConfig or None
    start_ns : int
        When the nodes start, unless the clock says so.
    clock : Clock

    Attributes
    ----------
    start_ns : int
    filter : Grid
    navsat : Grid or None
        Asked after the filter has ticked.
    """

    def __init__(
        self,
        config: FilterConfig,
        navsat: NavsatConfig | None,
        start_ns: int,
        clock: Clock = _PLAIN,
    ) -> None:
        start = start_ns if clock.start_ns is None else clock.start_ns
        origin = start if clock.filter_origin_ns is None else clock.filter_origin_ns
        period = clock.filter_period_ns or int(1e9 / config.frequency)
        self.start_ns = start
        self.filter = Grid(origin, period, start, clock.step_ns)
        self.navsat: Grid | None = None
        if navsat is not None and navsat.timed:
            phase = clock.navsat_origin_ns
            origin = start + NAVSAT_PHASE_NS if phase is None else phase
            period = clock.navsat_period_ns or int(1e9 / navsat.frequency)
            self.navsat = Grid(origin, period, start, clock.step_ns)

    @property
    def next_ns(self) -> int:
        """Clock step at which something is due next."""
        due = self.filter.next_ns
        return due if self.navsat is None else min(due, self.navsat.next_ns)

    def take_filter(self, now_ns: int) -> bool:
        """Say whether the filter ticks now, and then wait for the next time."""
        return self.filter.take(now_ns)

    def take_navsat(self, now_ns: int) -> bool:
        """Say whether navsat_transform ticks now; asked after the filter has ticked."""
        return self.navsat is not None and self.navsat.take(now_ns)


class Timing(NamedTuple):
    """Clock and timers, nanoseconds.

    Attributes
    ----------
    start, step : int
        First clock step and distance of two; 1 ns is a continuous clock.
    end : int
        Last clock time.
    filter_origin, filter_period : int
        The filter ticks at origin + n period, n >= 1.
    navsat_origin, navsat_period : int
        Likewise; period 0 for no navsat_transform.
    sensor_timeout : int
    history : int
        How far back a late measurement is put in its place; -1 for not at all.
    predict_to_current_time, permit_corrected_publication : bool
    navsat_part : (2,) int64
        Parts that odometry/gps feeds: pose and twist, -1 where it feeds none.
    navsat_latency : int
        From the tick that publishes an odometry/gps to its arrival at the filter.
    """

    start: int
    step: int
    end: int
    filter_origin: int
    filter_period: int
    navsat_origin: int
    navsat_period: int
    sensor_timeout: int
    history: int
    predict_to_current_time: bool
    permit_corrected_publication: bool
    navsat_part: IntArray
    navsat_latency: int = 0
