# SPDX-License-Identifier: Apache-2.0
"""Score of one run: RMSE and difference of Wiener entropy between estimate and truth."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim2real_eval.metrics.entropy import wiener_entropy
from sim2real_eval.metrics.options import MetricError, MetricOptions
from sim2real_eval.series import VelocitySeries
from sim_sensors.measurements import FloatArray

__all__ = ['ResampledRun', 'RunScore', 'prepare', 'resample', 'score_run']

_MAX_SAMPLES = 10_000_000


@dataclasses.dataclass(frozen=True, eq=False)
class ResampledRun:
    """Truth and estimate on the common grid.

    Attributes
    ----------
    time : (n,) float
        0, 1/rate, 2/rate, ... seconds.
    gt_vel, se_vel : (n,) float
        m/s.
    duration : float
        Where the grid ends (excluded), seconds: the earlier end of truth and estimate.
    """

    time: FloatArray
    gt_vel: FloatArray
    se_vel: FloatArray
    duration: float


@dataclasses.dataclass(frozen=True)
class RunScore:
    """Score of one run.

    Attributes
    ----------
    rmse : float
        Root mean square of estimate minus truth, m/s, not normalised.
    entropy_gt, entropy_se : float
        Wiener entropy of truth and estimate.
    entropy_difference : float
        |entropy_gt - entropy_se|.
    n_samples : int
        Grid points.
    duration : float
        Seconds of run behind them.
    """

    rmse: float
    entropy_gt: float
    entropy_se: float
    entropy_difference: float
    n_samples: int
    duration: float


def prepare(series: VelocitySeries, options: MetricOptions) -> VelocitySeries:
    """Re-zero the times and leave the warm-up out, as the options say.

    The result scored with `rezero` none and `warmup` 0 gives the very score that the series gives
    with these options; it is therefore what to export.

    Raises
    ------
    SeriesError
        When the warm-up leaves nothing.
    """
    se, gt = float(series.se_time[0]), float(series.gt_time[0])
    if options.rezero == 'each':
        series = series.shifted(se, gt)
    elif options.rezero == 'common':
        series = series.shifted(min(se, gt), min(se, gt))
    return series.after(options.warmup, window=options.moving_average)


def resample(series: VelocitySeries, options: MetricOptions | None = None) -> ResampledRun:
    """Bring truth and estimate to the common grid, as the scripts [SBEL] do.

    The truth is interpolated linearly. The estimate and its times first go through a moving
    average (complete windows only), then through the same interpolation. Outside its data a signal
    keeps its first or last value.

    Raises
    ------
    MetricError
        Estimate shorter than the moving average, or fewer than 2 or more than 1e7 grid points.
    SeriesError
        When the warm-up leaves nothing.
    """
    options = options or MetricOptions()
    series = prepare(series, options)
    window = options.moving_average
    if len(series.se_time) < window:
        raise _error(
            series,
            f'estimate has {len(series.se_time)} samples; must be >= {window} (moving_average)',
        )
    duration = series.duration
    count = duration * options.rate
    if not 1 < count <= _MAX_SAMPLES:
        raise _error(
            series,
            f'{duration:g} s at {options.rate:g} Hz; must give 2 to {_MAX_SAMPLES} grid points '
            '(times must be seconds since the start of the run, see rezero)',
        )
    # arange, not k / rate: the grid of the published script to the last bit. Where the run ends
    # on a grid point, rounding may add that point; it then takes the end values.
    time = np.arange(0.0, duration, 1.0 / options.rate)
    kernel = np.ones(window) / window
    se_time = np.convolve(series.se_time, kernel, 'valid')
    se_vel = np.convolve(series.se_vel, kernel, 'valid')
    return ResampledRun(
        time=time,
        gt_vel=np.interp(time, series.gt_time, series.gt_vel),
        se_vel=np.interp(time, se_time, se_vel),
        duration=duration,
    )


def score_run(series: VelocitySeries, options: MetricOptions | None = None) -> RunScore:
    """Score one run.

    Parameters
    ----------
    series : VelocitySeries
        Estimate and truth.
    options : MetricOptions, optional
        The paper's when omitted.

    Raises
    ------
    MetricError
        See `resample`; and where truth or estimate is zero throughout (a standstill with a
        perfect estimate: the paper skips its scenario `rest`).
    SeriesError
        When the warm-up leaves nothing.
    """
    options = options or MetricOptions()
    run = resample(series, options)
    try:
        entropy_gt = wiener_entropy(run.gt_vel, options)
    except MetricError as error:
        raise _error(series, f'truth: {error}') from None
    try:
        entropy_se = wiener_entropy(run.se_vel, options)
    except MetricError as error:
        raise _error(series, f'estimate: {error}') from None
    return RunScore(
        rmse=float(np.sqrt(np.mean(np.square(run.gt_vel - run.se_vel)))),
        entropy_gt=entropy_gt,
        entropy_se=entropy_se,
        entropy_difference=abs(entropy_gt - entropy_se),
        n_samples=len(run.time),
        duration=run.duration,
    )


def _error(series: VelocitySeries, problem: str) -> MetricError:
    return MetricError(f'{series.name}: {problem}' if series.name else problem)
