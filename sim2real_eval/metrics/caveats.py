# SPDX-License-Identifier: Apache-2.0
"""What a user must know about a run before believing its score."""

from __future__ import annotations

import numpy as np

from sim2real_eval.common.findings import decisive
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.scores import prepare
from sim2real_eval.metrics.series import VelocitySeries
from sim_sensors.core.measurements import FloatArray

__all__ = ['SHORT_RUN', 'STARTING_SPEED', 'advice', 'slow_truth_advice']

STARTING_SPEED = 0.5
"""m/s of truth at the start above which a run is told to begin in motion."""

SHORT_RUN = 10.0
"""Seconds below which a run is told to be short; the paper's runs last 20 s."""

_CUT = 1.0  # s; less is normal, as topics never start and end together
_GAP = 1.0  # s
_RATE_TOLERANCE = 0.95  # a 15 Hz truth with jitter is not slower than a 15 Hz grid


def slow_truth_advice(truth_rate: float, grid_rate: float) -> str | None:
    """Say what it means that the truth is slower than the grid; None when it is not.

    Parameters
    ----------
    truth_rate, grid_rate : float
        Hz.
    """
    if truth_rate >= _RATE_TOLERANCE * grid_rate:
        return None
    rate = f'{round(truth_rate, 1):g}'
    return (
        f'truth comes at {rate} Hz, the grid runs at {grid_rate:g} Hz: between its samples the '
        f'truth is a straight line, so motion faster than {round(truth_rate / 2, 1):g} Hz counts '
        "as error of the estimate, and the upper part of the truth's spectrum, with its entropy, "
        f'is made by the interpolation; --rate {rate} (in a study file '
        f'`metric: {{rate: {rate}}}`) '
        "compares at the truth's own rate"
    )


def advice(series: VelocitySeries, options: MetricOptions | None = None) -> list[str]:
    """Return one line per thing that makes the score of this run say less than it seems to.

    Texts hold rounded numbers and no run name, so that equal lines of many runs can be counted
    together.

    Raises
    ------
    SeriesError
        When the warm-up leaves nothing.
    """
    options = options or MetricOptions()
    run = prepare(series, options)
    lines: list[str] = []
    rate = _rate(run.gt_time)
    slow = slow_truth_advice(rate, options.rate) if rate is not None else None
    if slow is not None:
        lines.append(slow)
    start = float(np.interp(max(0.0, run.gt_time[0]), run.gt_time, run.gt_vel))
    # After a warm-up the judge no longer starts there.
    if options.warmup == 0.0 and abs(start) > STARTING_SPEED:
        lines.append(
            decisive(
                f'truth starts at {start:.1f} m/s: a judge that starts at rest is scored for '
                'finding the speed, not for its sensors; --warmup SECONDS leaves the start out '
                '(in a study file `metric: {warmup: SECONDS}`)'
            )
        )
    if run.duration < SHORT_RUN:
        lines.append(
            f'run lasts {run.duration:.1f} s (paper: 20 s): the start weighs much, and the '
            f'entropy rests on {int(run.duration * options.rate)} samples'
        )
    lines += _ends(run)
    for name, time in (('truth', run.gt_time), ('estimate', run.se_time)):
        gap = float(np.max(np.diff(time))) if len(time) > 1 else 0.0
        if gap > _GAP:
            lines.append(f'{name} has a gap of {gap:.1f} s, bridged by a straight line')
    return lines


def _rate(time: FloatArray) -> float | None:
    """Typical rate in Hz: the median interval stands single gaps."""
    steps = np.diff(time)
    steps = steps[steps > 0]
    return 1.0 / float(np.median(steps)) if len(steps) else None


def _ends(run: VelocitySeries) -> list[str]:
    lines: list[str] = []
    se_end, gt_end = float(run.se_time[-1]), float(run.gt_time[-1])
    if gt_end - se_end > _CUT:
        lines.append(
            f'estimate ends {gt_end - se_end:.1f} s before the truth: the rest of the run does '
            'not count'
        )
    elif se_end - gt_end > _CUT:
        lines.append(
            f'truth ends {se_end - gt_end:.1f} s before the estimate: the rest of the run does '
            'not count'
        )
    for name, first in (('estimate', run.se_time[0]), ('truth', run.gt_time[0])):
        if first > _CUT:
            lines.append(
                f'{name} starts {first:.1f} s after time zero: until then its first value is held'
            )
    return lines
