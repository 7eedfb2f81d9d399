# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Electronics of a sensor: bandwidth, range and resolution, temperature, supply voltage."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core.compilation import row_loop
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter, positive
from .processes import LastValueProcess, per_axis


class LowPass:
    """Low pass with -3 dB at `bandwidth`, Hz, > 0, and unit gain at rest.

    First order: y' = w (u - y). Second order: Butterworth, y'' = w^2 (u - y) - sqrt(2) w y'. Here
    w = 2 pi bandwidth, and u is constant over each interval between samples, for which the
    solution is exact. White noise therefore keeps its density inside the band at every rate, and
    nothing is folded into it from above the rate.

    The filter starts settled on the first clean value; its noise starts from zero, and the
    variance of the noise is propagated with it.
    """

    def __init__(self, bandwidth: float, order: int, *, axes: int = 3) -> None:
        self._omega = 2.0 * math.pi * bandwidth
        self._order = order
        # Per axis: value, its derivative; variance of value, covariance of both, of derivative.
        self._state = np.zeros((axes, 5))
        self._is_settled = False

    def filter(
        self, clean: FloatArray, noise: FloatArray, variance: FloatArray, dt: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the filtered sum of signal and white noise, and the variance of its noise.

        All are `(n, axes)`; `variance` is that of the noise of each sample, and `dt` `(n,)` s the
        time since the previous sample.
        """
        if not self._is_settled and len(clean):
            self._state[:, 0] = clean[0]
            self._is_settled = True
        return _filter(self._state, self._omega, self._order, clean + noise, variance, dt)


@row_loop
def _filter(
    state: FloatArray,
    omega: float,
    order: int,
    inputs: FloatArray,
    variance: FloatArray,
    dt: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return values and variances of the noise, and advance `state` in place."""
    out, spread = np.empty_like(inputs), np.empty_like(inputs)
    half = math.sqrt(0.5) * omega
    for k in range(inputs.shape[0]):
        # Transition matrix of (y - u, y').
        if order == 1:
            f00, f01, f10, f11 = math.exp(-omega * dt[k]), 0.0, 0.0, 0.0
        else:
            e, x = math.exp(-half * dt[k]), half * dt[k]
            c, s = math.cos(x), math.sin(x)
            f00, f01 = e * (c + s), e * s / half
            f10, f11 = -e * s * 2.0 * half, e * (c - s)
        for axis in range(inputs.shape[1]):
            y, v, p00, p01, p11 = state[axis]
            u, q = inputs[k, axis], variance[k, axis]
            state[axis, 0] = u + f00 * (y - u) + f01 * v
            state[axis, 1] = f10 * (y - u) + f11 * v
            g0, g1 = 1.0 - f00, -f10
            state[axis, 2] = (
                f00 * f00 * p00 + 2.0 * f00 * f01 * p01 + f01 * f01 * p11 + g0 * g0 * q
            )
            state[axis, 3] = (
                f00 * f10 * p00 + (f00 * f11 + f01 * f10) * p01 + f01 * f11 * p11 + g0 * g1 * q
            )
            state[axis, 4] = (
                f10 * f10 * p00 + 2.0 * f10 * f11 * p01 + f11 * f11 * p11 + g1 * g1 * q
            )
            out[k, axis], spread[k, axis] = state[axis, 0], state[axis, 2]
    return out, spread


def saturate(values: FloatArray, limit: ArrayLike) -> FloatArray:
    """Return the values limited to +-limit; a limit of 0 does not limit.

    `values` are `(n, axes)`; the limit is one number or one per axis, in their unit.
    """
    limits = np.asarray(limit, dtype=np.float64)
    bound = np.where(limits > 0.0, limits, np.inf)
    return np.clip(values, -bound, bound)


def quantise(values: FloatArray, step: ArrayLike) -> FloatArray:
    """Return the values rounded to multiples of `step` (half to even); a step of 0 rounds nothing.

    The error is uniform in +-step/2 with variance step^2/12 when the signal moves over many steps.
    `values` are `(n, axes)`; the step is one number or one per axis, in their unit.
    """
    steps = np.broadcast_to(np.asarray(step, dtype=np.float64), values.shape)
    safe = np.where(steps > 0.0, steps, 1.0)
    return np.where(steps > 0.0, np.rint(values / safe) * safe, values)


class IncrementQuantiser:
    """Sensor that counts: it reports multiples of a step of the *integral* of its signal.

    y[k] = (r[k] - r[k-1]) / dt with r the integral rounded to multiples of `step`, u s, so no part
    of the motion is lost. The error is the quantisation noise of [IEEE952] with Q = step /
    sqrt(12) and the Allan deviation sqrt(3) Q / tau. A step of 0 rounds nothing.
    """

    def __init__(self, step: ArrayLike, *, axes: int = 3) -> None:
        self._step = per_axis(step, axes)
        self._unreported: FloatArray = np.zeros(axes)

    def apply(self, values: FloatArray, dt: FloatArray) -> FloatArray:
        """Return the reported next values, `(n, axes)`; every `dt` must be > 0 s."""
        return _increments(self._unreported, self._step, values, dt)


@row_loop
def _increments(
    unreported: FloatArray, step: FloatArray, values: FloatArray, dt: FloatArray
) -> FloatArray:
    """Return the reported values and advance `unreported`, the rest of the integral, in place."""
    out = np.empty_like(values)
    for axis in range(values.shape[1]):
        for k in range(values.shape[0]):
            if step[axis] > 0.0:
                unreported[axis] += values[k, axis] * dt[k]
                steps = np.rint(unreported[axis] / step[axis])
                unreported[axis] -= steps * step[axis]
                out[k, axis] = steps * step[axis] / dt[k]
            else:
                out[k, axis] = values[k, axis]
    return out


class Decay(LastValueProcess):
    """Exponential approach to a limit, without noise.

    y[k] = a y[k-1] + (1 - a) limit with a = exp(-dt / time_constant), so y(t) = limit + (initial -
    limit) exp(-t / time_constant) at every step size.
    """

    def __init__(
        self, initial: ArrayLike, limit: ArrayLike, time_constant: float, *, axes: int = 1
    ) -> None:
        super().__init__(initial, axes)
        self._limit = per_axis(limit, axes)
        self._time_constant = time_constant

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values after each step, `(n, axes)`."""
        return self.keep_last(_decay(self.value, self._limit, self._time_constant, dt))


class Ramp(LastValueProcess):
    """Drift at a constant rate, without noise: y = slope t, t since the start.

    The slope, u/s, is the rate ramp R of [IEEE952]; its Allan deviation is R tau / sqrt(2).
    """

    def __init__(self, slope: ArrayLike, *, axes: int = 3) -> None:
        super().__init__(0.0, axes)
        self._slope = per_axis(slope, axes)
        self._elapsed = 0.0

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values after each step, `(n, axes)`."""
        elapsed = np.add.accumulate(np.concatenate([[self._elapsed], dt]))
        self._elapsed = float(elapsed[-1])
        return self.keep_last(elapsed[1:, None] * self._slope)


@row_loop
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


@dataclasses.dataclass(frozen=True)
class Temperature(Parameters):
    """Temperature profile T(t), with t since the sensor was switched on.

    constant: T = initial. ramp: linear from initial to final within `time`, then final. warm_up: T
    = final + (initial - final) exp(-t / time).
    """

    profile: str = parameter(
        'constant',
        '',
        'constant: always initial; ramp: linear from initial to final within time; '
        'warm_up: exponential from initial to final with the time constant time.',
        choices=('constant', 'ramp', 'warm_up'),
        read_only=True,
    )
    initial: float = parameter(25.0, 'degC', 'Temperature when switched on.', minimum=-273.15)
    final: float = parameter(25.0, 'degC', 'Temperature after warming up.', minimum=-273.15)
    time: float = positive(600.0, 's', 'Length of the ramp or time constant of the warm-up.')
    reference: float = parameter(
        25.0,
        'degC',
        'Reference temperature, at which temperature effects are zero.',
        minimum=-273.15,
    )

    def start(self) -> ProfileExcess:
        """Return the temperature above its reference, starting now."""
        return ProfileExcess(self)


@dataclasses.dataclass(frozen=True)
class Supply(Parameters):
    """Supply voltage V(t), such as of a battery, with t since the sensor was switched on.

    constant: V = initial. ramp: linear from initial to final within `time`, then final.
    """

    profile: str = parameter(
        'constant',
        '',
        'constant: always initial; ramp: linear from initial to final within time.',
        choices=('constant', 'ramp'),
        read_only=True,
    )
    initial: float = non_negative(3.3, 'V', 'Voltage when switched on.')
    final: float = non_negative(3.3, 'V', 'Voltage at the end of the ramp.')
    time: float = positive(3600.0, 's', 'Length of the ramp.')
    reference: float = non_negative(
        3.3, 'V', 'Reference voltage, at which voltage effects are zero.'
    )

    def start(self) -> ProfileExcess:
        """Return the voltage above its reference, starting now."""
        return ProfileExcess(self)


class ProfileExcess:
    """Temperature or supply voltage above its reference, with its state."""

    def __init__(self, profile: Temperature | Supply) -> None:
        self._profile = profile
        self._decay = Decay(profile.initial, profile.final, profile.time)
        self._ramp = Ramp((profile.final - profile.initial) / profile.time, axes=1)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the excess at the next samples, `(n, 1)` in the unit of the profile."""
        law = self._profile
        if law.profile == 'warm_up':
            return self._decay.advance(dt) - law.reference
        if law.profile == 'ramp':
            low, high = sorted((law.initial, law.final))
            reached = np.clip(law.initial + self._ramp.advance(dt), low, high)
            return np.asarray(reached - law.reference)
        return np.full((len(dt), 1), law.initial - law.reference)
