# SPDX-License-Identifier: Apache-2.0
"""Series on a common time grid, and angles without jumps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.measurements import FloatArray, IntArray

__all__ = ['grid', 'median_rate', 'off_grid', 'resample', 'seconds', 'wrap']


def wrap(angle: ArrayLike) -> FloatArray:
    """Return angles, rad, in [-pi, pi)."""
    given = np.asarray(angle, dtype=np.float64)
    # Angles that are small already keep their bits.
    inside = (given >= -np.pi) & (given < np.pi)
    wrapped: FloatArray = np.where(inside, given, np.mod(given + np.pi, 2.0 * np.pi) - np.pi)
    return wrapped


def median_rate(time: FloatArray) -> float:
    """Return the median rate, Hz, of samples at `time` `(n,)` s; equal stamps do not count."""
    steps = np.diff(time)
    steps = steps[steps > 0.0]
    return float(1.0 / np.median(steps)) if len(steps) else 0.0


def grid(time: FloatArray, rate: float) -> FloatArray:
    """Return the times from the first to the last of `time` at `rate` Hz, `(m,)` s."""
    count = int(np.floor((time[-1] - time[0]) * rate * (1.0 + 1e-12) + 1e-6)) + 1
    times: FloatArray = time[0] + np.arange(count) / rate
    return times


def resample(time: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    """Interpolate columns linearly; beyond the ends the first or last sample is held.

    Between two samples of white noise the interpolated value has between half and all of their
    variance: a grid that does not meet the stamps lowers the upper end of a spectrum, by a factor
    of (2 + cos(2 pi f / rate)) / 3 on average over the phases.

    Parameters
    ----------
    time : (n,) s
        Never decreasing; of samples at one time the last counts.
    values : (n, k)
    at : (m,) s

    Returns
    -------
    (m, k) float
    """
    last = np.append(np.diff(time) > 0.0, True)
    return np.stack([np.interp(at, time[last], column[last]) for column in values.T], axis=1)


def seconds(stamp_ns: IntArray, origin_ns: int) -> FloatArray:
    """Return stamps as seconds since an origin."""
    times: FloatArray = (stamp_ns - np.int64(origin_ns)) * 1e-9
    return times


def off_grid(time: FloatArray, rate: float) -> float:
    """Return how far samples are from the grid that starts at the first, in periods, 0 .. 0.5.

    The 95 % quantile over the samples.
    """
    phase = (time - time[0]) * rate
    return float(np.quantile(np.abs(phase - np.round(phase)), 0.95))
