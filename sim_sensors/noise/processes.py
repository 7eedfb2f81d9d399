# SPDX-License-Identifier: Apache-2.0
"""The stochastic processes that sensor errors are made of, each once and exactly discretised.

Every process keeps its state and one random stream. `advance(dt)` makes one row per entry of `dt`,
where `dt[k]` is the time from the previous sample to sample k. One call over an array and any way
of cutting that array into calls give the same bits: draws fill rows in time order, recursions run
sample by sample, and everything else is elementwise.

Notation: w is a fresh standard normal per sample and axis; a density has the unit u/sqrt(Hz).
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core.compilation import compiled
from sim_sensors.core.measurements import FloatArray


class Process(Protocol):
    """What every noise process offers."""

    @property
    def value(self) -> FloatArray:
        """Value at the latest sample, `(axes,)`; the initial value before the first."""

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values at the next samples, `(n, axes)`, `dt` being `(n,)` s, each >= 0."""


def _per_axis(value: ArrayLike, axes: int) -> FloatArray:
    return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (axes,)))


def correlation_root(correlation: tuple[float, float, float]) -> FloatArray:
    """Return the lower triangular A, `(3, 3)`, with A A^T the matrix of these correlations.

    Written out, as it must exist for axes that are fully correlated too.

    Parameters
    ----------
    correlation : tuple of 3 float
        Of x with y, x with z and y with z, each from -1 to 1.

    Raises
    ------
    ValueError
        When no three quantities can be correlated so: the matrix has a negative eigenvalue.
    """
    xy, xz, yz = correlation
    if max(map(abs, correlation)) > 1.0 or _determinant(xy, xz, yz) < -1e-12:
        raise ValueError(f'{correlation!r} are no correlations')
    yy = math.sqrt(1.0 - xy * xy)
    zy = (yz - xy * xz) / yy if yy else 0.0
    zz = math.sqrt(max(0.0, 1.0 - xz * xz - zy * zy))
    return np.array([[1.0, 0.0, 0.0], [xy, yy, 0.0], [xz, zy, zz]])


def _determinant(xy: float, xz: float, yz: float) -> float:
    return 1.0 + 2.0 * xy * xz * yz - xy * xy - xz * xz - yz * yz


class White:
    """White noise with a standard deviation per sample, whatever the rate: y = mean + std w.

    Parameters
    ----------
    rng : numpy.random.Generator
        Stream of this source alone.
    std, mean : float or (axes,)
        Unit u.
    axes : int
        Number of independent components.
    """

    def __init__(
        self, rng: np.random.Generator, std: ArrayLike, mean: ArrayLike = 0.0, *, axes: int = 3
    ) -> None:
        self._rng = rng
        self._std = _per_axis(std, axes)
        self._mean = _per_axis(mean, axes)
        self.value: FloatArray = np.zeros(axes)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the next `len(dt)` samples, `(n, axes)`; the lengths of the intervals are not
        used.
        """
        normals = self._rng.standard_normal((len(dt), len(self._std)))
        return _with_last_value(self, self._mean + self._std * normals)

    def variance(self, dt: FloatArray) -> FloatArray:
        """Variance about the mean of samples taken at intervals `dt`, `(n, axes)`, u^2."""
        return np.tile(self._std**2, (len(dt), 1))


class WhiteDensity:
    """White noise given as a density: y = density w / sqrt(dt).

    What it does to an integral does not depend on the rate.

    Parameters
    ----------
    rng : numpy.random.Generator
        Stream of this source alone.
    density : float or (axes,)
        u/sqrt(Hz), which is the Allan deviation at 1 s.
    axes : int
        Number of components.
    correlation : tuple of 3 float
        Of x with y, x with z and y with z where there are three; see `correlation_root`.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        density: ArrayLike,
        *,
        axes: int = 3,
        correlation: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> None:
        self._rng = rng
        self._density = _per_axis(density, axes)
        self._root = correlation_root(correlation) if any(correlation) else None
        self.value: FloatArray = np.zeros(axes)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the next samples, `(n, axes)`; every `dt` must be > 0 s."""
        normals = self._rng.standard_normal((len(dt), len(self._density)))
        if self._root is not None:
            # Written out: a matrix product may add in another order for another number of rows.
            a = self._root
            x, y, z = normals[:, 0], normals[:, 1], normals[:, 2]
            mixed = (x, a[1, 0] * x + a[1, 1] * y, a[2, 0] * x + a[2, 1] * y + a[2, 2] * z)
            normals = np.stack(mixed, axis=1)
        return _with_last_value(self, self._density / np.sqrt(dt)[:, None] * normals)

    def variance(self, dt: FloatArray) -> FloatArray:
        """Variance of samples taken at intervals `dt`, `(n, axes)`, u^2."""
        return self._density**2 / dt[:, None]


class IntegralNoise:
    """White noise of the *integral*: y[k] = std (w[k] - w[k-1]) / dt.

    The quantisation noise of [IEEE952] with Q = std, whose Allan deviation is sqrt(3) Q / tau
    at every rate. Its integral never errs by more than the two noises at the ends.

    Parameters
    ----------
    rng : numpy.random.Generator
        Stream of this source alone.
    std : float or (axes,)
        u s.
    axes : int
        Number of independent components.
    """

    def __init__(self, rng: np.random.Generator, std: ArrayLike, *, axes: int = 3) -> None:
        self._rng = rng
        self._std = _per_axis(std, axes)
        self._before: FloatArray = rng.standard_normal(axes)
        self.value: FloatArray = np.zeros(axes)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the next samples, `(n, axes)`; every `dt` must be > 0 s."""
        normals = np.empty((len(dt) + 1, len(self._std)))
        normals[0] = self._before
        normals[1:] = self._rng.standard_normal((len(dt), len(self._std)))
        self._before = normals[-1].copy()
        return _with_last_value(self, self._std * (normals[1:] - normals[:-1]) / dt[:, None])


class TurnOn:
    """Constant drawn once when the sensor is switched on: y = mean + std w."""

    def __init__(
        self, rng: np.random.Generator, std: ArrayLike, mean: ArrayLike = 0.0, *, axes: int = 3
    ) -> None:
        self.value: FloatArray = _per_axis(mean, axes) + _per_axis(
            std, axes
        ) * rng.standard_normal(axes)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the constant once per sample, `(n, axes)`."""
        return np.tile(self.value, (len(dt), 1))


class RandomWalk:
    """Integrated white noise: y[k] = y[k-1] + density sqrt(dt) w; variance density^2 t after t.

    Parameters
    ----------
    rng : numpy.random.Generator
        Stream of this source alone.
    density : float or (axes,)
        u/s/sqrt(Hz), the same as u/sqrt(s).
    initial : float or (axes,)
        Value before the first sample, u.
    axes : int
        Number of independent components.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        density: ArrayLike,
        initial: ArrayLike = 0.0,
        *,
        axes: int = 3,
    ) -> None:
        self._rng = rng
        self._density = _per_axis(density, axes)
        self.value: FloatArray = _per_axis(initial, axes)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values after each step, `(n, axes)`."""
        return self._walk(dt)[1:]

    def advance_after_use(self, dt: FloatArray) -> FloatArray:
        """Take the same steps but return the values before each of them, `(n, axes)`: the order of
        AirSim, which uses the bias first and moves it afterwards.
        """
        return self._walk(dt)[:-1]

    def _walk(self, dt: FloatArray) -> FloatArray:
        rows = np.empty((len(dt) + 1, len(self.value)))
        rows[0] = self.value
        normals = self._rng.standard_normal((len(dt), len(self.value)))
        rows[1:] = self._density * np.sqrt(dt)[:, None] * normals
        # accumulate adds row after row by definition, as stepping does; sums may be pairwise.
        np.add.accumulate(rows, axis=0, out=rows)
        self.value = rows[-1].copy()
        return rows


class GaussMarkov:
    """First-order Gauss-Markov process with stationary deviation `std` at every rate:
    y[k] = phi y[k-1] + std sqrt(1 - phi^2) w with phi = exp(-dt / time_constant).

    Parameters
    ----------
    rng : numpy.random.Generator
        Stream of this source alone.
    std : float or (axes,)
        Stationary standard deviation, u.
    time_constant : float or (axes,)
        Correlation time, s, > 0.
    stationary : bool
        True draws the initial value from the stationary law; False starts at zero, from where the
        variance grows as std^2 (1 - exp(-2 t / time_constant)).
    axes : int
        Number of independent components.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        std: ArrayLike,
        time_constant: ArrayLike,
        *,
        stationary: bool = True,
        axes: int = 3,
    ) -> None:
        self._rng = rng
        self._std = _per_axis(std, axes)
        self._time_constant = _per_axis(time_constant, axes)
        self.value: FloatArray = self._std * rng.standard_normal(axes) * float(stationary)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values after each step, `(n, axes)`."""
        normals = self._rng.standard_normal((len(dt), len(self.value)))
        values = _gauss_markov(self.value, self._std, self._time_constant, dt, normals)
        return _with_last_value(self, values)


class Decay:
    """First-order low pass of a step, without noise: y[k] = a y[k-1] + (1 - a) limit with
    a = exp(-dt / time_constant), so y(t) = limit + (initial - limit) exp(-t / time_constant) at
    every step size.
    """

    def __init__(
        self, initial: ArrayLike, limit: ArrayLike, time_constant: float, *, axes: int = 1
    ) -> None:
        self._limit = _per_axis(limit, axes)
        self._time_constant = time_constant
        self.value: FloatArray = _per_axis(initial, axes)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values after each step, `(n, axes)`."""
        return _with_last_value(self, _decay(self.value, self._limit, self._time_constant, dt))


class Ramp:
    """Drift at a constant rate, without noise: y = slope t, t since it was made.

    Parameters
    ----------
    slope : float or (axes,)
        u/s, the rate ramp R of [IEEE952]; its Allan deviation is R tau / sqrt(2).
    axes : int
        Number of components.
    """

    def __init__(self, slope: ArrayLike, *, axes: int = 3) -> None:
        self._slope = _per_axis(slope, axes)
        self._elapsed = 0.0
        self.value: FloatArray = np.zeros(axes)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values after each step, `(n, axes)`."""
        elapsed = np.empty(len(dt) + 1)
        elapsed[0], elapsed[1:] = self._elapsed, dt
        np.add.accumulate(elapsed, out=elapsed)
        self._elapsed = float(elapsed[-1])
        return _with_last_value(self, elapsed[1:, None] * self._slope)


def _with_last_value(process: Process, values: FloatArray) -> FloatArray:
    """Keep the last row as the state, if there is one, and return the rows."""
    if len(values):
        process.value = values[-1].copy()  # type: ignore[misc]
    return values


# exp() is taken sample by sample in compiled code: numpy's vector exp may differ from its scalar
# one in the last bit, which would break the equality of array run and stepping.
@compiled
def _gauss_markov(
    value: FloatArray,
    std: FloatArray,
    time_constant: FloatArray,
    dt: FloatArray,
    normals: FloatArray,
) -> FloatArray:
    out = np.empty_like(normals)
    for axis in range(normals.shape[1]):
        y = value[axis]
        for k in range(normals.shape[0]):
            x = dt[k] / time_constant[axis]
            y = math.exp(-x) * y + std[axis] * math.sqrt(-math.expm1(-2.0 * x)) * normals[k, axis]
            out[k, axis] = y
    return out


@compiled
def _decay(
    value: FloatArray, limit: FloatArray, time_constant: float, dt: FloatArray
) -> FloatArray:
    out = np.empty((dt.shape[0], value.shape[0]))
    for axis in range(value.shape[0]):
        y = value[axis]
        for k in range(dt.shape[0]):
            a = math.exp(-dt[k] / time_constant)
            y = a * y + (1.0 - a) * limit[axis]
            out[k, axis] = y
    return out
