# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Stochastic processes of sensor errors, exactly discretised.

Every process keeps its state and one random stream. `advance(dt)` returns one row per entry of
`dt`, where `dt[k]` is the time from the previous sample to sample k. One call over an array and
any way of cutting that array into calls give the same bits: draws fill rows in time order,
recursions run sample by sample, and everything else is elementwise.

Notation: u is the unit of the values; w is a fresh standard normal per sample and axis; a density
has the unit u/sqrt(Hz). `rng` is the random stream of the process alone and `axes` the number of
independent components. Every parameter is one number or one per axis.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core.compilation import row_loop
from sim_sensors.core.measurements import FloatArray

# Largest ratio of neighbouring time constants; the ripple of the plateau stays below 0.1 %.
_SPACING = 5.0
# Factor by which the time constants reach beyond both ends of the span. At the ends the plateau is
# 1.6 % too low.
_MARGIN = 5.0


class Process(Protocol):
    """Interface of a noise process."""

    @property
    def value(self) -> FloatArray:
        """Value at the latest sample, `(axes,)`; before the first the initial value."""

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values at the next samples, `(n, axes)`; `dt` is `(n,)` s, each >= 0."""


def per_axis(value: ArrayLike, axes: int) -> FloatArray:
    """Return one number per axis, `(axes,)`, from one number for all or one per axis."""
    return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (axes,)))


def correlation_root(correlation: tuple[float, float, float]) -> FloatArray:
    """Return the lower triangular A, `(3, 3)`, for which A A^T is the correlation matrix.

    `correlation` is that of x with y, x with z and y with z, each from -1 to 1. The root is
    written out because a Cholesky factorisation fails for axes that are fully correlated.

    Raises ValueError when the matrix has a negative eigenvalue: no three quantities have such
    correlations.
    """
    xy, xz, yz = correlation
    determinant = 1.0 + 2.0 * xy * xz * yz - xy * xy - xz * xz - yz * yz
    if max(map(abs, correlation)) > 1.0 or determinant < -1e-12:
        raise ValueError(f'{correlation!r} are not the correlations of three quantities')
    yy = math.sqrt(1.0 - xy * xy)
    zy = (yz - xy * xz) / yy if yy else 0.0
    zz = math.sqrt(max(0.0, 1.0 - xz * xz - zy * zy))
    return np.array([[1.0, 0.0, 0.0], [xy, yy, 0.0], [xz, zy, zz]])


class LastValueProcess:
    """Base of processes that keep the value at the latest sample."""

    def __init__(self, value: ArrayLike, axes: int) -> None:
        self.value = per_axis(value, axes)

    def keep_last(self, values: FloatArray) -> FloatArray:
        """Keep the last row as the value, if there is one, and return the rows."""
        if len(values):
            self.value = values[-1].copy()
        return values


class _RandomProcess(LastValueProcess):
    """Process with a random stream of its own."""

    def __init__(self, rng: np.random.Generator, axes: int, value: ArrayLike = 0.0) -> None:
        super().__init__(value, axes)
        self._rng = rng

    def _normals(self, count: int) -> FloatArray:
        return self._rng.standard_normal((count, len(self.value)))


class White(_RandomProcess):
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
        super().__init__(rng, axes)
        self._std = per_axis(std, axes)
        self._mean = per_axis(mean, axes)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the next samples, `(n, axes)`; only the number of intervals is used."""
        return self.keep_last(self._mean + self._std * self._normals(len(dt)))

    def variance(self, dt: FloatArray) -> FloatArray:
        """Return the variance of samples at intervals `dt` about the mean, `(n, axes)`, u^2."""
        return np.tile(self._std**2, (len(dt), 1))


class WhiteDensity(_RandomProcess):
    """White noise given as a density, u/sqrt(Hz): y = density w / sqrt(dt).

    Its effect on an integral does not depend on the rate. The density is the Allan deviation at
    1 s. Three components may have a `correlation`; see `correlation_root`.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        density: ArrayLike,
        *,
        axes: int = 3,
        correlation: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> None:
        super().__init__(rng, axes)
        self._density = per_axis(density, axes)
        self._root = correlation_root(correlation) if any(correlation) else None

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the next samples, `(n, axes)`; every `dt` must be > 0 s."""
        normals = self._normals(len(dt))
        if self._root is not None:
            # A matrix product may add in another order for another number of rows.
            a = self._root
            x, y, z = normals[:, 0], normals[:, 1], normals[:, 2]
            mixed = (x, a[1, 0] * x + a[1, 1] * y, a[2, 0] * x + a[2, 1] * y + a[2, 2] * z)
            normals = np.stack(mixed, axis=1)
        return self.keep_last(self._density / np.sqrt(dt)[:, None] * normals)

    def variance(self, dt: FloatArray) -> FloatArray:
        """Return the variance of samples at intervals `dt`, `(n, axes)`, u^2."""
        return self._density**2 / dt[:, None]


class IntegralNoise(_RandomProcess):
    """White noise of the *integral*: y[k] = std (w[k] - w[k-1]) / dt, std in u s.

    It is the quantisation noise of [IEEE952] with Q = std, whose Allan deviation is sqrt(3) Q /
    tau at every rate. The error of an integral is that of its two ends alone.
    """

    def __init__(self, rng: np.random.Generator, std: ArrayLike, *, axes: int = 3) -> None:
        super().__init__(rng, axes)
        self._std = per_axis(std, axes)
        self._before = self._normals(1)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the next samples, `(n, axes)`; every `dt` must be > 0 s."""
        normals = np.concatenate([self._before, self._normals(len(dt))])
        self._before = normals[-1:].copy()
        return self.keep_last(self._std * (normals[1:] - normals[:-1]) / dt[:, None])


class TurnOn(_RandomProcess):
    """Constant that is drawn once when the sensor is switched on: y = mean + std w."""

    def __init__(
        self, rng: np.random.Generator, std: ArrayLike, mean: ArrayLike = 0.0, *, axes: int = 3
    ) -> None:
        super().__init__(rng, axes)
        self.value = per_axis(mean, axes) + per_axis(std, axes) * self._normals(1)[0]

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the constant once per sample, `(n, axes)`."""
        return np.tile(self.value, (len(dt), 1))


class FromFirstSample:
    """Process whose first sample has the initial value: the interval before it counts as 0 s.

    Simulators that take their interval from the previous sample have none at the first.
    """

    def __init__(self, process: Process) -> None:
        self._process, self._has_started = process, False

    @property
    def value(self) -> FloatArray:
        """Value at the latest sample, `(axes,)`; before the first the initial value."""
        return self._process.value

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values at the next samples, `(n, axes)`."""
        if len(dt) and not self._has_started:
            self._has_started = True
            dt = np.concatenate([[0.0], dt[1:]])
        return self._process.advance(dt)


class RandomWalk(_RandomProcess):
    """Integrated white noise: y[k] = y[k-1] + density sqrt(dt) w; variance density^2 t at time t.

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
        super().__init__(rng, axes, initial)
        self._density = per_axis(density, axes)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values after each step, `(n, axes)`."""
        return self._walk(dt)[1:]

    def advance_after_use(self, dt: FloatArray) -> FloatArray:
        """Take the same steps and return the values before each of them, `(n, axes)`.

        This is the order of AirSim, which uses the bias first and moves it afterwards.
        """
        return self._walk(dt)[:-1]

    def _walk(self, dt: FloatArray) -> FloatArray:
        steps = self._density * np.sqrt(dt)[:, None] * self._normals(len(dt))
        # `accumulate` adds row after row, as stepping does; `sum` may add pairwise.
        return self.keep_last(np.add.accumulate(np.concatenate([self.value[None], steps])))


class GaussMarkov(_RandomProcess):
    """First-order Gauss-Markov process with the stationary deviation `std` at every rate.

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
        True draws the initial value from the stationary distribution. False starts at zero; the
        variance then grows as std^2 (1 - exp(-2 t / time_constant)).
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
        super().__init__(rng, axes)
        self._std = per_axis(std, axes)
        self._time_constant = per_axis(time_constant, axes)
        self.value = self._std * self._normals(1)[0] * float(stationary)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values after each step, `(n, axes)`."""
        normals = self._normals(len(dt))
        return self.keep_last(
            _gauss_markov(self.value, self._std, self._time_constant, dt, normals)
        )


def relaxation_processes(shortest: float, longest: float) -> tuple[FloatArray, FloatArray]:
    """Return time constants, s, and standard deviations of the processes that make up `Flicker`.

    The deviations are those of flicker with B = 1.
    """
    first, last = shortest / _MARGIN, longest * _MARGIN
    count = math.ceil(math.log(last / first) / math.log(_SPACING)) + 1
    step = math.log(last / first) / (count - 1)
    variance = np.full(count, step / math.pi)
    variance[[0, -1]] /= -math.expm1(-step)
    return np.geomspace(first, last, count), np.sqrt(variance)


class Flicker(_RandomProcess):
    """Flicker noise with the spectral density B^2 / (2 pi f).

    Its Allan deviation is a plateau at sqrt(2 ln(2) / pi) B = 0.664 B.

    The noise is a sum of stationary Gauss-Markov processes whose time constants T are spaced
    evenly on a logarithmic scale with the step L = ln(T[i+1] / T[i]). Each has the variance B^2 L
    / pi, since the integral of 2 T / (1 + (2 pi f T)^2) over ln T is 1 / (2 f). The first and the
    last replace the faster processes (white noise) and the slower ones (a random walk), so their
    variance is 1 / (1 - exp(-L)) times as large. Within the span the plateau is met to 2 %. Below
    the span the Allan deviation rises with the square root of time; above it falls likewise.

    A value is the mean of the sum over the interval before it. It is drawn from the exact joint
    distribution of that mean and the state at the end of the interval. Let x = dt / T[i] and a =
    exp(-x); then the state is a x[i] + sqrt(1 - a^2) w. Given the state before, the mean has the
    expectation x[i] (1 - a) / x, the variance (2 x - 3 + 4 a - a^2) / x^2 and the covariance
    (1 - a)^2 / x with the state after. Averages over several samples are therefore those of the
    process in continuous time, and the Allan deviation is the same at every rate.

    Parameters
    ----------
    rng : numpy.random.Generator
        Stream of this source alone.
    instability : float or (axes,)
        B, unit u.
    shortest, longest : float
        Span of averaging times with a plateau, s, 0 < shortest < longest.
    axes : int
        Number of independent components.

    References
    ----------
    [IEEE952], annex C.1.3 (B and the plateau). Sum of relaxation processes: [VanDerZiel1950].
    """

    def __init__(
        self,
        rng: np.random.Generator,
        instability: ArrayLike,
        shortest: float,
        longest: float,
        *,
        axes: int = 3,
    ) -> None:
        super().__init__(rng, axes)
        self._times, std = relaxation_processes(shortest, longest)
        self._std = std[:, None] * per_axis(instability, axes)
        self._state = self._normals(len(self._times))
        self.value = (self._std * self._state).sum(axis=0)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values after each step, `(n, axes)`."""
        normals = self._rng.standard_normal((len(dt), len(self._times) + 1, self._state.shape[1]))
        return self.keep_last(_flicker(self._state, self._std, self._times, dt, normals))


# These recursions are compiled and take exp() sample by sample. NumPy's vector exp may differ from
# its scalar one in the last bit, so that an array run and stepping would differ.
@row_loop
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


@row_loop
def _flicker(
    state: FloatArray, std: FloatArray, times: FloatArray, dt: FloatArray, normals: FloatArray
) -> FloatArray:
    """Return the next values and advance `state` in place."""
    count, axes = state.shape
    out = np.zeros((dt.shape[0], axes))
    white_variance = np.empty(axes)
    for k in range(dt.shape[0]):
        white_variance[:] = 0.0
        for i in range(count):
            x = dt[k] / times[i]
            a = math.exp(-x)
            b2 = -math.expm1(-2.0 * x)
            carried = -math.expm1(-x) / x
            shared = x * carried * carried
            # The closed form loses its digits where x is small; the series errs by 1e-9.
            if x < 0.01:
                spread = x * (2.0 / 3.0 - x * (0.5 - x * (7.0 / 30.0 - x / 12.0)))
            else:
                spread = (2.0 * x - 3.0 + 4.0 * a - a * a) / (x * x)
            b = math.sqrt(b2)
            # The part of the mean that is independent of the state is white. It is drawn at once
            # for the sum of all processes.
            independent = max(spread - shared * shared / b2, 0.0)
            for axis in range(axes):
                w = normals[k, i, axis]
                out[k, axis] += std[i, axis] * (carried * state[i, axis] + shared / b * w)
                state[i, axis] = a * state[i, axis] + b * w
                white_variance[axis] += std[i, axis] * std[i, axis] * independent
        for axis in range(axes):
            out[k, axis] += math.sqrt(white_variance[axis]) * normals[k, count, axis]
    return out
