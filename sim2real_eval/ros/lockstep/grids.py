# SPDX-License-Identifier: Apache-2.0
"""The timers of a side that is a node, which has its own idea of them."""

from __future__ import annotations

from sim2real_eval.judge import Clock, FilterConfig, JudgeError, NavsatConfig
from sim2real_eval.judge.clock import NAVSAT_PHASE_NS
from sim2real_eval.judge.timers import Grids

__all__ = ['node_grids']


def node_grids(
    clock: Clock,
    config: FilterConfig,
    navsat: NavsatConfig | None,
    start_ns: int,
    *,
    inside: bool,
) -> Grids:
    """Return the timers of nodes.

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
    grids = Grids(config, navsat, start_ns, clock)
    _require('filter_timer_period_ns', grids.filter.period_ns, int(1e9 / config.frequency))
    if inside and navsat is not None and grids.navsat is not None:
        origin = grids.filter.origin_ns + NAVSAT_PHASE_NS
        _require('navsat_timer_origin_ns', grids.navsat.origin_ns, origin)
        _require('navsat_timer_period_ns', grids.navsat.period_ns, int(1e9 / navsat.frequency))
    return grids


def _require(key: str, value: int, fixed: int) -> None:
    if value != fixed:
        raise JudgeError(
            f'case: clock.{key}: {value} is not allowed with a judge that is a node; must be '
            f'{fixed}, as the node has it, or absent'
        )
