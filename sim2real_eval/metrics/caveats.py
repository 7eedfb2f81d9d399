# SPDX-License-Identifier: Apache-2.0
"""What a user must know about a run before believing its score."""

from __future__ import annotations

import numpy as np

from sim2real_eval.common.findings import Finding
from sim2real_eval.metrics import findings
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.scores import prepare
from sim2real_eval.metrics.series import VelocitySeries
from sim_sensors.core.measurements import FloatArray

STARTING_SPEED = 0.5
"""m/s of truth at the start above which a run is told to begin in motion."""

SHORT_RUN = 10.0
"""Seconds below which a run is told to be short; the paper's runs last 20 s."""

_CUT = 1.0  # s; less is normal, as topics never start and end together
_GAP = 1.0  # s
_RATE_TOLERANCE = 0.95  # a 15 Hz truth with jitter is not slower than a 15 Hz grid


def slow_truth_advice(truth_rate: float, grid_rate: float) -> list[Finding]:
    """Say what it means that the truth is slower than the grid; empty when it is not.

    Parameters
    ----------
    truth_rate, grid_rate : float
        Hz.
    """
    if truth_rate >= _RATE_TOLERANCE * grid_rate:
        return []
    return [findings.SLOW_TRUTH(rate=truth_rate, grid=grid_rate, half=truth_rate / 2)]


def advice(series: VelocitySeries, options: MetricOptions | None = None) -> list[Finding]:
    """Return what makes the score of this run say less than it seems to.

    Raises
    ------
    SeriesError
        When the warm-up leaves nothing.
    """
    options = options or MetricOptions()
    run = prepare(series, options)
    found: list[Finding] = []
    rate = _rate(run.gt_time)
    if rate is not None:
        found += slow_truth_advice(rate, options.rate)
    start = float(np.interp(max(0.0, run.gt_time[0]), run.gt_time, run.gt_vel))
    # After a warm-up the judge no longer starts there.
    if options.warmup == 0.0 and abs(start) > STARTING_SPEED:
        found.append(findings.MOVING_START(speed=start))
    if run.duration < SHORT_RUN:
        samples = int(run.duration * options.rate)
        found.append(findings.SHORT_RUN(duration=run.duration, samples=samples))
    found += _ends(run)
    for name, time in (('truth', run.gt_time), ('estimate', run.se_time)):
        gap = float(np.max(np.diff(time))) if len(time) > 1 else 0.0
        if gap > _GAP:
            found.append(findings.SERIES_GAP(name, gap=gap))
    return found


def _rate(time: FloatArray) -> float | None:
    """Typical rate in Hz: the median interval stands single gaps."""
    steps = np.diff(time)
    steps = steps[steps > 0]
    return 1.0 / float(np.median(steps)) if len(steps) else None


def _ends(run: VelocitySeries) -> list[Finding]:
    found: list[Finding] = []
    se_end, gt_end = float(run.se_time[-1]), float(run.gt_time[-1])
    if gt_end - se_end > _CUT:
        found.append(findings.ENDS_EARLY('estimate', time=gt_end - se_end, other='truth'))
    elif se_end - gt_end > _CUT:
        found.append(findings.ENDS_EARLY('truth', time=se_end - gt_end, other='estimate'))
    for name, first in (('estimate', run.se_time[0]), ('truth', run.gt_time[0])):
        if first > _CUT:
            found.append(findings.STARTS_LATE(name, time=first))
    return found
