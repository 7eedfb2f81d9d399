# SPDX-License-Identifier: Apache-2.0
"""Trend of a series by a running median."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import median_filter

from sim2real_eval.signals.options import SignalComparisonError
from sim_sensors.measurements import FloatArray

__all__ = ['median_trend']


def median_trend(values: FloatArray, window: int) -> FloatArray:
    """Return the median of the samples n-k .. n+k at every n ([Cesenek2019], 3.2.3).

    At the ends the first and last sample stand for those that are missing, so that a ramp is left
    as it is also there. An isolated spike of at most k samples vanishes.

    Parameters
    ----------
    values : (n,) float
    window : int
        Full length 2k + 1, odd.

    Raises
    ------
    SignalComparisonError
        When the window is even or longer than the series.
    """
    if window < 1 or window % 2 == 0:
        raise SignalComparisonError(f'trend window: {window} is not allowed; must be odd, 2k + 1')
    if window > len(values):
        raise SignalComparisonError(
            f'trend window: {window} samples are more than the {len(values)} of the series; must '
            f'be at most {len(values) - (len(values) + 1) % 2}'
        )
    trend: FloatArray = median_filter(np.asarray(values), size=window, mode='nearest')
    return trend
