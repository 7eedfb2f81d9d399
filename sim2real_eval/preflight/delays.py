# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Fit of the delay and gain of a measurement behind a reference, by least squares."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.truth_intervals import SIGMAS

_DELAY_S = 2.0
_LONG_DELAY_S = 30.0
EXPLAINED = 0.8
"""Share of the power of a measurement that is explained without doubt."""
_STEP_S = 0.02
_SAMPLES_AT_ONCE = 1 << 17
"""Samples of the reference, at all delays that are tried together."""


@dataclasses.dataclass(frozen=True)
class DelayFit:
    """Delay at which a reference explains a measurement best.

    Attributes
    ----------
    seconds : float
        Delay, positive if the measurement is late; 0 if that explains as much.
    gain : complex
        Factor of the reference at that delay.
    residual, power : float
        Mean squares of the residual at that delay, and of the measurement without its mean.
    freedom : float
        Number of independent samples of the measurement, as assumed.
    deviation : float
        Standard error of the gain.
    delay_deviation : float
        Standard error of the delay, s; infinite if the residual has no minimum.
    """

    seconds: float
    gain: complex
    residual: float
    power: float
    freedom: float
    deviation: float
    delay_deviation: float = math.inf

    @property
    def explained(self) -> float:
        """Share of the power of the measurement that is explained."""
        return 1.0 - self.residual / self.power if self.power > 0.0 else 0.0

    def is_better_than(self, residual: float) -> bool:
        """Return whether the residual is smaller than another one by more than chance.

        The log likelihood ratio of Gaussian residuals, n ln(a / b), is compared with half the
        square of `SIGMAS` (theorem of Wilks).
        """
        ratio = math.log(max(residual, 1e-300) / max(self.residual, 1e-300))
        return self.freedom * ratio > 0.5 * SIGMAS**2


def effective_counts(residuals: FloatArray) -> FloatArray:
    """Return the numbers of independent samples of evenly sampled residuals (k, n).

    n / (1 + 2 sum rho); autocorrelations are summed until the first negative one [Geyer1992].
    """
    rows = np.ascontiguousarray(residuals)
    rows = rows - rows.mean(axis=1, keepdims=True)
    count = rows.shape[1]
    power = np.mean(np.abs(rows) ** 2, axis=1)
    totals = np.ones(len(rows))
    summed = np.flatnonzero(power)
    rows = rows[summed]
    for lag in range(1, count // 4):
        products = np.mean(rows[:, lag:] * np.conj(rows[:, :-lag]), axis=1).real
        is_positive = products > 0.0
        if not is_positive.all():
            rows, summed, products = (part[is_positive] for part in (rows, summed, products))
        if not len(summed):
            break
        totals[summed] += 2.0 * products / power[summed]
    return np.asarray(count / totals)


def _most_steps(span: float) -> int:
    """Return the longest delay, in steps, that `longer` tries in a run of `span` seconds."""
    return round(min(_LONG_DELAY_S, span / 10.0) / _STEP_S)


def has_longer_delays(span: float) -> bool:
    """Return whether `longer` tries more delays in a run of `span` seconds."""
    return _most_steps(span) > round(_DELAY_S / _STEP_S)


def fit_delay(
    measured: FloatArray,
    reference: Callable[[FloatArray], FloatArray],
    span: float,
    independent: float,
    *,
    longer: bool = False,
    tolerated: float = 0.0,
) -> DelayFit:
    """Fit the delay of a measurement behind a reference.

    At each delay within 2 s, gain and mean of the reference are fitted by least squares. A
    parabola through the three smallest residuals gives the delay between steps of 0.02 s.
    Periodic motion may fit best a period late, or half a period late and reversed, by chance: of
    delays that explain as much, the shortest without reversal is chosen.

    Parameters
    ----------
    measured : (n,) float or complex
        Measurement.
    reference : callable
        Returns the reference, (k, n), at delays (k, 1), s.
    span : float
        Length of the run, s.
    independent : float
        Time after which errors are independent, s.
    longer : bool
        Try delays up to 30 s, or a tenth of the run, if the best delay is the longest or explains
        less than four fifths. Among so many delays a wrong one may fit by chance, so that a long
        delay must explain four fifths.
    tolerated : float
        Limit, s. A delay within it is preferred to longer ones unless they explain more. In the
        same way, 0 is preferred to the delays within the limit.
    """
    centred = measured - measured.mean()
    power = float(np.mean(np.abs(centred) ** 2))
    freedom = max(span / independent, 2.0)

    def fit(delays: FloatArray) -> tuple[NDArray[np.complex128], FloatArray, FloatArray, Any]:
        """Return gains, mean squares of residual and reference, and residuals, at k delays."""
        shifted = np.ascontiguousarray(reference(delays[:, None]))
        shifted = shifted - shifted.mean(axis=1, keepdims=True)
        size = np.mean(np.abs(shifted) ** 2, axis=1)
        product = np.mean(np.conj(shifted) * centred, axis=1)
        is_moving = size > 1e-12
        gain = np.zeros(len(delays), np.complex128)
        gain.real[is_moving] = product.real[is_moving] / size[is_moving]
        gain.imag[is_moving] = product.imag[is_moving] / size[is_moving]
        error = centred - gain[:, None] * shifted
        return gain, np.mean(np.abs(error) ** 2, axis=1), size, error

    residuals: dict[int, float] = {}
    at_once = max(_SAMPLES_AT_ONCE // len(measured), 1)

    def residual_at(steps: int) -> float:
        if steps not in residuals:
            best_of([steps])
        return residuals[steps]

    def best_of(steps: Sequence[int]) -> int:
        """Return the number of steps with the smallest residual, the first of equal ones."""
        missing = [number for number in steps if number not in residuals]
        for first in range(0, len(missing), at_once):
            part = missing[first : first + at_once]
            found = fit(np.array(part) * _STEP_S)[1]
            residuals.update(zip(part, found.tolist(), strict=True))
        return min(steps, key=residuals.__getitem__)

    def curvature(steps: int) -> float:
        return residual_at(steps - 1) + residual_at(steps + 1) - 2.0 * residual_at(steps)

    @functools.cache
    def delay_fit(delay: float) -> DelayFit:
        gains, residual_squares, sizes, errors = fit(np.array([delay]))
        gain, residual, size = complex(gains[0]), float(residual_squares[0]), float(sizes[0])
        count = max(float(effective_counts(errors)[0]), 4.0)
        deviation = math.sqrt(residual / (count * size)) if size > 1e-12 else math.inf
        bend = curvature(round(delay / _STEP_S))
        # Half the log likelihood changes by 1/2 at one standard error.
        spread = 2.0 * residual / (count * bend) if bend > 0.0 else math.inf
        return DelayFit(
            delay, gain, residual, power, freedom, deviation, _STEP_S * math.sqrt(spread)
        )

    def best_within(steps: int) -> int:
        best = best_of(range(-steps, steps + 1, 5))
        return best_of(range(best - 5, best + 6))

    enough = (1.0 - EXPLAINED) * power
    near, far = round(_DELAY_S / _STEP_S), _most_steps(span)
    best = best_within(near)
    if longer and far > near and (residual_at(best) > enough or abs(best) >= near):
        other = best_within(far)
        best = other if residual_at(other) < min(enough, residual_at(best)) else best
    # Minima within the usual delays that explain as much but for chance.
    minima = [
        best_of(range(steps - 5, steps + 6))
        for steps in range(5 - near, near - 4, 5)
        if residual_at(steps) <= min(residual_at(steps - 5), residual_at(steps + 5))
    ]
    best_fit = delay_fit(best * _STEP_S)
    rivals = [steps for steps in minima if not best_fit.is_better_than(residual_at(steps))]
    candidates = [best, *rivals]
    is_reversed = fit(np.array(candidates) * _STEP_S)[0].real <= 0.0
    _, _, best = min(zip(is_reversed, map(abs, candidates), candidates, strict=True))
    delay, bend = best * _STEP_S, curvature(best)
    if residual_at(best) <= min(residual_at(best - 1), residual_at(best + 1)) and bend > 0.0:
        delay += 0.5 * _STEP_S * (residual_at(best - 1) - residual_at(best + 1)) / bend
    chosen = delay_fit(delay)
    within = round(tolerated / _STEP_S)
    for steps in (best_of(range(-within, within + 1)), 0):
        if chosen.is_better_than(residual_at(steps)):
            break
        chosen = delay_fit(steps * _STEP_S)
    return chosen
