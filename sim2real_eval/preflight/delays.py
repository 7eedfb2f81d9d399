# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Fit of the delay and gain of a measurement behind a reference, by least squares."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.truth_intervals import SIGMAS

_DELAY_S = 2.0
_LONG_DELAY_S = 30.0
EXPLAINED = 0.8
"""Share of the power of a measurement that is explained without doubt."""
_STEP_S = 0.02


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


def effective_count(residual: FloatArray) -> float:
    """Return the number of independent samples of an evenly sampled residual, (n,).

    n / (1 + 2 sum rho); autocorrelations are summed until the first negative one [Geyer1992].
    """
    centred = residual - residual.mean()
    count = len(centred)
    power = float(np.mean(np.abs(centred) ** 2))
    if count < 4 or power == 0.0:
        return float(count)
    total = 1.0
    for lag in range(1, count // 4):
        product = np.mean(centred[lag:] * np.conj(centred[:-lag])).real
        if product <= 0.0:
            break
        total += 2.0 * float(product) / power
    return count / total


def fit_delay(
    measured: FloatArray,
    reference: Callable[[float], FloatArray],
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
        Returns the reference, (n,), at a delay, s.
    span : float
        Length of the run, s.
    independent : float
        Time after which errors are independent, s.
    longer : bool
        Try delays up to 30 s, or a tenth of the run, if the best delay is the longest or explains
        less than four fifths. Among so many delays a wrong one may fit by chance, so that a long
        delay must explain four fifths.
    tolerated : float
        Delay, s, that is preferred to longer ones unless they explain more, and 0 to that.
    """
    centred = measured - measured.mean()
    power = float(np.mean(np.abs(centred) ** 2))
    freedom = max(span / independent, 2.0)

    def fit(delay: float) -> tuple[complex, float, float]:
        shifted = reference(delay)
        shifted = shifted - shifted.mean()
        size = float(np.mean(np.abs(shifted) ** 2))
        gain = complex(np.mean(np.conj(shifted) * centred)) / size if size > 1e-12 else 0.0j
        return gain, float(np.mean(np.abs(centred - gain * shifted) ** 2)), size

    @functools.cache
    def residual_at(steps: int) -> float:
        return fit(steps * _STEP_S)[1]

    def independent_count(delay: float, gain: complex) -> float:
        shifted = reference(delay)
        return max(effective_count(centred - gain * (shifted - shifted.mean())), 4.0)

    def curvature(steps: int) -> float:
        return residual_at(steps - 1) + residual_at(steps + 1) - 2.0 * residual_at(steps)

    def delay_fit(delay: float) -> DelayFit:
        gain, residual, size = fit(delay)
        count = independent_count(delay, gain)
        deviation = math.sqrt(residual / (count * size)) if size > 1e-12 else math.inf
        bend = curvature(round(delay / _STEP_S))
        # Half the log likelihood changes by 1/2 at one standard error.
        spread = 2.0 * residual / (count * bend) if bend > 0.0 else math.inf
        return DelayFit(
            delay, gain, residual, power, freedom, deviation, _STEP_S * math.sqrt(spread)
        )

    def best_within(steps: int) -> int:
        best = min(range(-steps, steps + 1, 5), key=residual_at)
        return min(range(best - 5, best + 6), key=residual_at)

    enough = (1.0 - EXPLAINED) * power
    near, far = (round(limit / _STEP_S) for limit in (_DELAY_S, min(_LONG_DELAY_S, span / 10.0)))
    best = best_within(near)
    if longer and far > near and (residual_at(best) > enough or abs(best) >= near):
        other = best_within(far)
        best = other if residual_at(other) < min(enough, residual_at(best)) else best
    # Minima within the usual delays that explain as much but for chance.
    minima = [
        min(range(steps - 5, steps + 6), key=residual_at)
        for steps in range(5 - near, near - 4, 5)
        if residual_at(steps) <= min(residual_at(steps - 5), residual_at(steps + 5))
    ]
    best_fit = delay_fit(best * _STEP_S)
    rivals = [steps for steps in minima if not best_fit.is_better_than(residual_at(steps))]
    best = min(
        (best, *rivals), key=lambda steps: (fit(steps * _STEP_S)[0].real <= 0.0, abs(steps))
    )
    delay, bend = best * _STEP_S, curvature(best)
    if residual_at(best) <= min(residual_at(best - 1), residual_at(best + 1)) and bend > 0.0:
        delay += 0.5 * _STEP_S * (residual_at(best - 1) - residual_at(best + 1)) / bend
    chosen = delay_fit(delay)
    within = round(tolerated / _STEP_S)
    for steps in (min(range(-within, within + 1), key=residual_at), 0):
        if chosen.is_better_than(residual_at(steps)):
            break
        chosen = delay_fit(steps * _STEP_S)
    return chosen
