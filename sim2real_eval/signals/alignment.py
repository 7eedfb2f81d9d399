# SPDX-License-Identifier: Apache-2.0
"""How late one series is against another: the peak of their cross-correlation."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim_sensors.measurements import FloatArray

__all__ = ['Lag', 'find_lag']

_LEAST_CORRELATION = 0.5
_LEAST_OVERLAP = 8


@dataclasses.dataclass(frozen=True)
class Lag:
    """Delay of one series behind another.

    Attributes
    ----------
    seconds : float
        Positive: the series comes late.
    correlation : float
        At the peak.
    """

    seconds: float
    correlation: float


def find_lag(series: FloatArray, reference: FloatArray, rate: float, max_lag: float) -> Lag | None:
    """Return the lag at which a series is most like a reference.

    At every lag the correlation coefficient is taken over the overlap alone, about its own mean,
    all columns together (the covariances and the variances summed over them). That is 1 for the
    right lag also where the signals drift, which the plain cross-correlation is not. Between
    samples the peak is that of the parabola through the three highest.

    Parameters
    ----------
    series, reference : (n, k) float
        On one grid.
    rate : float
        Of the grid, Hz.
    max_lag : float
        Largest lag to either side, s.

    Returns
    -------
    Lag or None
        None when there is no peak to speak of: it lies at the end of the range, or the
        correlation there is below 0.5.
    """
    n = len(series)
    most = min(round(max_lag * rate), n - _LEAST_OVERLAP)
    if most < 1:
        return None
    coefficients = np.array(
        [
            _correlation(series[max(k, 0) : n + min(k, 0)], reference[max(-k, 0) : n - max(k, 0)])
            for k in range(-most, most + 1)
        ]
    )
    peak = int(np.argmax(coefficients))
    if peak in (0, 2 * most) or not coefficients[peak] >= _LEAST_CORRELATION:
        return None
    before, top, after = coefficients[peak - 1 : peak + 2]
    bend = before - 2.0 * top + after
    shift = 0.5 * (before - after) / bend if bend < 0.0 else 0.0
    return Lag(float((peak - most + shift) / rate), float(top))


def _correlation(a: FloatArray, b: FloatArray) -> float:
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    scale = float(np.sqrt(np.sum(a * a) * np.sum(b * b)))
    return float(np.sum(a * b)) / scale if scale > 0.0 else 0.0
