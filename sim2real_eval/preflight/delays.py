# SPDX-License-Identifier: Apache-2.0
"""How late a measurement is behind what should have been measured, by correlation."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np

from sim_sensors.core.measurements import FloatArray

SIGMAS = 4.0
"""Standard errors that an estimate must be away from what is right: by chance 6e-5 of Gaussian
ones are, so that 30 estimates of 200 good recordings give less than one false alarm."""

_DELAY_S = 2.0
_LONG_DELAY_S = 30.0
EXPLAINED = 0.8
"""Share of the power of a measurement that leaves no doubt."""
_STEP_S = 0.02


@dataclasses.dataclass(frozen=True)
class Delayed:
    """The delay at which a reference explains a measurement best.

    Attributes
    ----------
    seconds : float
        Positive where the measurement is late; 0 where that is as good.
    gain : complex
        Factor of the reference at that delay.
    left, power : float
        Mean squares: of what is left at that delay, and of the measurement.
    freedom : float
        Number of independent samples.
    deviation : float
        Standard error of the gain.
    """

    seconds: float
    gain: complex
    left: float
    power: float
    freedom: float
    deviation: float

    @property
    def explained(self) -> float:
        """Share of the power of the measurement that is explained."""
        return 1.0 - self.left / self.power if self.power > 0.0 else 0.0

    def is_better_than(self, left: float) -> bool:
        """Whether what is left is less than `left` by more than chance.

        The log likelihood ratio of Gaussian residuals, n ln(a / b), is compared with half the
        square of `SIGMAS` (theorem of Wilks).
        """
        worse = math.log(max(left, 1e-300) / max(self.left, 1e-300))
        return self.freedom * worse > 0.5 * SIGMAS**2


def find_delay(
    measured: FloatArray,
    reference: Callable[[float], FloatArray],
    span: float,
    independent: float,
    *,
    longer: bool = False,
    tolerated: float = 0.0,
) -> Delayed:
    """Return the delay of a measurement, (n,) real or complex, behind a reference.

    At each delay up to 2 s either way, gain and mean of the reference are fitted by least squares;
    the parabola through the three best residuals gives the delay between the steps of 0.02 s.
    If `longer`, and the best is the longest or explains less than four fifths, delays up to 30 s
    or a tenth of the run are tried. Such a one must explain four fifths, as among so many a wrong
    one may fit by chance. Of periodic motion a delay of another period, or of half a one and
    reversed, may fit best by chance: the shortest of those that fit as well counts, and one
    without reversal before others.

    `reference` returns it at a delay, s; `span` is the length of the run and `independent` the
    time after which errors are independent, s. A delay that explains no more, but by chance, than
    one up to the `tolerated` one, s, gives way to that, and either to none.
    """
    centred = measured - measured.mean()
    power = float(np.mean(np.abs(centred) ** 2))
    freedom = max(span / independent, 2.0)

    def fit(delay: float) -> tuple[complex, float, float]:
        one = reference(delay)
        one = one - one.mean()
        size = float(np.mean(np.abs(one) ** 2))
        gain = complex(np.mean(np.conj(one) * centred)) / size if size > 1e-12 else 0.0j
        return gain, float(np.mean(np.abs(centred - gain * one) ** 2)), size

    def delayed(delay: float) -> Delayed:
        gain, left, size = fit(delay)
        deviation = math.sqrt(left / (freedom * size)) if size > 1e-12 else math.inf
        return Delayed(delay, gain, left, power, freedom, deviation)

    @functools.cache
    def left_at(steps: int) -> float:
        return fit(steps * _STEP_S)[1]

    def best_within(steps: int) -> int:
        best = min(range(-steps, steps + 1, 5), key=left_at)
        return min(range(best - 5, best + 6), key=left_at)

    enough = (1.0 - EXPLAINED) * power
    near, far = (round(one / _STEP_S) for one in (_DELAY_S, min(_LONG_DELAY_S, span / 10.0)))
    best = best_within(near)
    if longer and far > near and (left_at(best) > enough or abs(best) >= near):
        other = best_within(far)
        best = other if left_at(other) < min(enough, left_at(best)) else best
    # As good as the best but for chance, with no better one around.
    valleys = [
        min(range(steps - 5, steps + 6), key=left_at)
        for steps in range(5 - near, near - 4, 5)
        if left_at(steps) <= min(left_at(steps - 5), left_at(steps + 5))
    ]
    found = delayed(best * _STEP_S)
    rivals = [steps for steps in valleys if not found.is_better_than(left_at(steps))]
    best = min((best, *rivals), key=lambda one: (fit(one * _STEP_S)[0].real <= 0.0, abs(one)))
    before, between, after = map(left_at, (best - 1, best, best + 1))
    bend = before + after - 2.0 * between
    delay = best * _STEP_S
    if between <= min(before, after) and bend > 0.0:
        delay += 0.5 * _STEP_S * (before - after) / bend
    found = delayed(delay)
    within = round(tolerated / _STEP_S)
    for steps in (min(range(-within, within + 1), key=left_at), 0):
        if found.is_better_than(left_at(steps)):
            break
        found = delayed(steps * _STEP_S)
    return found
