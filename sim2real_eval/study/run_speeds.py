# SPDX-License-Identifier: Apache-2.0
"""Estimated and true speed of a run of a study, from its signals."""

from __future__ import annotations

from sim2real_eval.metrics import MetricOptions
from sim2real_eval.metrics.scores import resample
from sim2real_eval.metrics.speeds import all_speeds
from sim2real_eval.series import VelocitySeries
from sim2real_eval.study.signals import EstimateSignals
from sim_sensors.measurements import FloatArray

__all__ = ['speed_error', 'speed_series']


def speed_series(signals: EstimateSignals, name: str = '') -> dict[str, VelocitySeries]:
    """Return estimated and true speed, whole, by component (`sim2real_eval.metrics.speed`)."""
    estimated = all_speeds(signals.velocity, signals.orientation)
    true = all_speeds(signals.true_velocity, signals.true_orientation)
    return {
        component: VelocitySeries(
            se_time=signals.time,
            se_vel=estimated[component],
            gt_time=signals.true_time,
            gt_vel=true[component],
            name=name,
        )
        for component in estimated
    }


def speed_error(signals: EstimateSignals, component: str, options: MetricOptions) -> FloatArray:
    """Return estimated less true speed, (n,) m/s, on the grid of the score.

    Raises
    ------
    MetricError, SeriesError
        As `sim2real_eval.metrics.score_run`.
    """
    run = resample(speed_series(signals)[component], options)
    return run.se_vel - run.gt_vel
