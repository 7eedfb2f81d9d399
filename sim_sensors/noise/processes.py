# SPDX-License-Identifier: Apache-2.0
"""The stochastic processes that sensor errors are made of, each once and exactly discretised.

Every process keeps its state and one random stream. `advance(dt)` makes one row per entry of `dt`,
where `dt[k]` is the time from the previous sample to sample k. One call over an array and any way
of cutting that array into calls give the same bits: draws fill rows in time order, recursions run
sample by sample, and everything else is elementwise.

Notation: w is a fresh standard normal per sample and axis; a density has the unit u/sqrt(Hz).
What is random takes first `rng`, the stream of this source alone; `axes` is the number of
(independent) components, and every figure is one number or one per axis.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core.compilation import compiled
from sim_sensors.core.measurements import FloatArray

# Neighbouring time constants are at most this factor apart, which makes the plateau wavy by less
# than 0.1 %; they go this far beyond both ends of the span, where it falls by 1.6 %.
_SPACING = 5.0
_MARGIN = 5.0


class Process(Protocol):
    """What every noise process offers."""

    @property
    def value(self) -> FloatArray:
        """Value at the latest sample, `(axes,)`; the initial value before the first."""

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values at the next samples, `(n, axes)`, `dt` being `(n,)` s, each >= 0."""


def per_axis(value: ArrayLike, axes: int) -> FloatArray:
    """Return one number per axis, `(axes,)`, of one for all or of one each."""
    return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (axes,)))


def correlation_root(correlation: tuple[float, float, float]) -> FloatArray:
    """Return the lower triangular A, `(3, 3)`, with A A^T the matrix of these correlations.

    They are those of x with y, x with z and y with z, each from -1 to 1. Written out, as it must
    exist for axes that are fully correlated too.

    Raises ValueError when no three quantities can be correlated so: the matrix has a negative
    eigenvalue.
    """
    xy, xz, yz = correlation
    determinant = 1.0 + 2.0 * xy * xz * yz - xy * xy - xz * xz - yz * yz
    if max(map(abs, correlation)) > 1.0 or determinant < -1e-12:
        raise ValueError(f'{correlation!r} are no correlations')
    yy = math.sqrt(1.0 - xy * xy)
    zy = (yz - xy * xz) / yy if yy else 0.0
    zz = math.sqrt(max(0.0, 1.0 - xz * xz - zy * zy))
    return np.array([[1.0, 0.0, 0.0], [xy, yy, 0.0], [xz, zy, zz]])


class Remembered:
    """Keeps the value at the latest sample."""

    def __init__(self, value: ArrayLike, axes: int) -> None:
        self.value = per_axis(value, axes)

    def keep_last(self, values: FloatArray) -> FloatArray:
        """Keep the last row as the value, if there is one, and return the rows."""
        if len(values):
            self.value = values[-1].copy()
        return values


class _Drawn(Remembered):
    """Draws from a stream of its own."""

    def __init__(self, rng: np.random.Generator, axes: int, value: ArrayLike = 0.0) -> None:
        super().__init__(value, axes)
        self._rng = rng

    def _normals(self, count: int) -> FloatArray:
        return self._rng.standard_normal((count, len(self.value)))


class White(_Drawn):
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
        """Return the next `len(dt)` samples, `(n, axes)`; the lengths of the intervals are not
        used.
        """
        return self.keep_last(self._mean + self._std * self._normals(len(dt)))

    def variance(self, dt: FloatArray) -> FloatArray:
        """Variance about the mean of samples taken at intervals `dt`, `(n, axes)`, u^2."""
        return np.tile(self._std**2, (len(dt), 1))


class WhiteDensity(_Drawn):
    """White noise given as a density, u/sqrt(Hz): y = density w / sqrt(dt).

    What it does to an integral does not depend on the rate; the density is the Allan deviation at
    1 s. Three components may have a `correlation`, see `correlation_root`.
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
            # Written out: a matrix product may add in another order for another number of rows.
            a = self._root
            x, y, z = normals[:, 0], normals[:, 1], normals[:, 2]
            mixed = (x, a[1, 0] * x + a[1, 1] * y, a[2, 0] * x + a[2, 1] * y + a[2, 2] * z)
            normals = np.stack(mixed, axis=1)
        return self.keep_last(self._density / np.sqrt(dt)[:, None] * normals)

    def variance(self, dt: FloatArray) -> FloatArray:
        """Variance of samples taken at intervals `dt`, `(n, axes)`, u^2."""
        return self._density**2 / dt[:, None]


class IntegralNoise(_Drawn):
    """White noise of the *integral*: y[k] = std (w[k] - w[k-1]) / dt, std in u s.

    The quantisation noise of [IEEE952] with Q = std, whose Allan deviation is sqrt(3) Q / tau
    at every rate. Its integral never errs by more than the two noises at the ends.
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


class TurnOn(_Drawn):
    """Constant drawn once when the sensor is switched on: y = mean + std w."""

    def __init__(
        self, rng: np.random.Generator, std: ArrayLike, mean: ArrayLike = 0.0, *, axes: int = 3
    ) -> None:
        super().__init__(rng, axes)
        self.value = per_axis(mean, axes) + per_axis(std, axes) * self._normals(1)[0]

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the constant once per sample, `(n, axes)`."""
        return np.tile(self.value, (len(dt), 1))


class RandomWalk(_Drawn):
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
        super().__init__(rng, axes, initial)
        self._density = per_axis(density, axes)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values after each step, `(n, axes)`."""
        return self._walk(dt)[1:]

    def advance_after_use(self, dt: FloatArray) -> FloatArray:
        """Take the same steps but return the values before each of them, `(n, axes)`: the order of
        AirSim, which uses the bias first and moves it afterwards.
        """
        return self._walk(dt)[:-1]

    def _walk(self, dt: FloatArray) -> FloatArray:
        steps = self._density * np.sqrt(dt)[:, None] * self._normals(len(dt))
        # accumulate adds row after row by definition, as stepping does; sums may be pairwise.
        return self.keep_last(np.add.accumulate(np.concatenate([self.value[None], steps])))


class GaussMarkov(_Drawn):
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


class Flicker(_Drawn):
    """Noise with the spectral density B^2 / (2 pi f), so that its Allan deviation is a plateau at
    sqrt(2 ln(2) / pi) B = 0.664 B.

    It is a sum of stationary Gauss-Markov processes whose time constants T are spaced evenly on a
    logarithmic scale with the step L = ln(T[i+1] / T[i]). Each has the variance B^2 L / pi, since
    the integral of 2 T / (1 + (2 pi f T)^2) over ln T is 1 / (2 f); the first and the last also
    carry what the faster ones contribute as white noise and the slower ones as a random walk,
    which makes theirs 1 / (1 - exp(-L)) times as large. Within the span the plateau is met to 2 %;
    below it the Allan deviation rises as its square root of time, above it falls so.

    A value is the mean of the sum over the interval before it, drawn from the exact joint law of
    that mean and of the state at its end: with x = dt / T[i] and a = exp(-x) the state is a x[i]
    + sqrt(1 - a^2) w, and the mean has, given the state before, the expectation x[i] (1 - a) / x,
    the variance (2 x - 3 + 4 a - a^2) / x^2 and the covariance (1 - a)^2 / x with the state
    after. So averages over several samples are those of the process in continuous time, and the
    Allan deviation is the same at every rate, down to an averaging time of one sample.

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
        first, last = shortest / _MARGIN, longest * _MARGIN
        count = math.ceil(math.log(last / first) / math.log(_SPACING)) + 1
        self._times = np.geomspace(first, last, count)
        step = math.log(last / first) / (count - 1)
        variance = np.full(count, step / math.pi)
        variance[[0, -1]] /= -math.expm1(-step)
        self._std = np.sqrt(variance)[:, None] * per_axis(instability, axes)
        self._state = self._normals(count)
        self.value = (self._std * self._state).sum(axis=0)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values after each step, `(n, axes)`."""
        normals = self._rng.standard_normal((len(dt), len(self._times) + 1, self._state.shape[1]))
        return self.keep_last(_flicker(self._state, self._std, self._times, dt, normals))


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
def _flicker(
    state: FloatArray, std: FloatArray, times: FloatArray, dt: FloatArray, normals: FloatArray
) -> FloatArray:
    """Advance `state` in place."""
    count, axes = state.shape
    out = np.zeros((dt.shape[0], axes))
    rest = np.empty(axes)
    for k in range(dt.shape[0]):
        rest[:] = 0.0
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
            # What the mean has beside the state is white: that of all processes is drawn at once.
            own = max(spread - shared * shared / b2, 0.0)
            for axis in range(axes):
                w = normals[k, i, axis]
                out[k, axis] += std[i, axis] * (carried * state[i, axis] + shared / b * w)
                state[i, axis] = a * state[i, axis] + b * w
                rest[axis] += std[i, axis] * std[i, axis] * own
        for axis in range(axes):
            out[k, axis] += math.sqrt(rest[axis]) * normals[k, count, axis]
    return out
