# SPDX-License-Identifier: Apache-2.0
"""From a signal to the numbers that a sensor reports: range and resolution."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.compilation import compiled
from sim_sensors.measurements import FloatArray

__all__ = ['IncrementQuantiser', 'quantise', 'saturate']


def saturate(values: FloatArray, limit: ArrayLike) -> FloatArray:
    """Hold values within +-limit; a limit of 0 leaves them alone.

    Parameters
    ----------
    values : (n, axes)
        Unit u.
    limit : float or (axes,)
        u, >= 0.
    """
    limits = np.asarray(limit, dtype=np.float64)
    bound = np.where(limits > 0.0, limits, np.inf)
    return np.clip(values, -bound, bound)


def quantise(values: FloatArray, step: ArrayLike) -> FloatArray:
    """Round to the nearest multiple of `step` (half to even); a step of 0 leaves values alone.

    The error is uniform in +-step/2 with variance step^2/12 when the signal moves over many steps.

    Parameters
    ----------
    values : (n, axes)
        Unit u.
    step : float or (axes,)
        u, >= 0.
    """
    steps = np.broadcast_to(np.asarray(step, dtype=np.float64), values.shape)
    safe = np.where(steps > 0.0, steps, 1.0)
    return np.where(steps > 0.0, np.rint(values / safe) * safe, values)


class IncrementQuantiser:
    """A sensor that counts: it reports multiples of a step of the *integral* of its signal.

    y[k] = (r[k] - r[k-1]) / dt with r the integral rounded to multiples of `step`, so no part of
    the motion is lost; the error is the quantisation noise of [IEEE952], with Q = step /
    sqrt(12) and Allan deviation sqrt(3) Q / tau.

    Parameters
    ----------
    step : float or (axes,)
        u s; 0 leaves values alone.
    axes : int
        Number of components.
    """

    def __init__(self, step: ArrayLike, *, axes: int = 3) -> None:
        self._step = np.array(np.broadcast_to(np.asarray(step, dtype=np.float64), (axes,)))
        self._rest: FloatArray = np.zeros(axes)

    def apply(self, values: FloatArray, dt: FloatArray) -> FloatArray:
        """Return what is reported for the next values, `(n, axes)`; every `dt` must be > 0 s."""
        return _increments(self._rest, self._step, values, dt)


@compiled
def _increments(
    rest: FloatArray, step: FloatArray, values: FloatArray, dt: FloatArray
) -> FloatArray:
    """Advance `rest`, what is integrated but not yet reported, in place."""
    out = np.empty_like(values)
    for axis in range(values.shape[1]):
        for k in range(values.shape[0]):
            if step[axis] > 0.0:
                rest[axis] += values[k, axis] * dt[k]
                steps = np.rint(rest[axis] / step[axis])
                rest[axis] -= steps * step[axis]
                out[k, axis] = steps * step[axis] / dt[k]
            else:
                out[k, axis] = values[k, axis]
    return out
