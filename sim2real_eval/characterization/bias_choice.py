# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Does the bias flicker for ever, or is it a Gauss-Markov process that comes back?

Both raise the Allan curve above white noise at middle averaging times. Beyond its correlation
time a Gauss-Markov process averages out, and flicker does not: over an hour they differ by a
factor. Each is fitted in the place of the other, beside quantisation, white noise, walk and ramp,
and the likelihoods of the points are compared.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from sim_sensors.core.measurements import FloatArray
from .allan import AllanCurve
from .allan_fit import AllanFit, fit_terms, markov_deviance, model_variance
from .low_pass import LowPass
from .noise_terms import NoiseTerms
from .trends import Trend

# Gain in twice the log-likelihood; a weak flicker has a larger one by chance in 1 of 20 records.
_SEPARATED = 10.0
# If a walk does without flicker, the time is free beside it and the gain is the largest of
# several; as in `markov_fit`.
_BESIDE_WALK = 12.0
# Above it a walk may be a bias that comes back. In 4 h, biases of 1000 s that are as large as the
# noise of 10 s have a larger gain in 51 of 60 records, walks in 10 of 72.
_DOUBTED = 6.0
# A bias that comes back is one where the record holds so many of its longest likely times. In
# shorter records those that happen to come back early would be chosen, with too short a time.
_TIMES_HELD = 25.0
# Correlation times that are tried, in samples and as shares of the record: octaves, then refined.
_SHORTEST, _LONGEST = 4.0, 0.125


@dataclasses.dataclass(frozen=True, eq=False)
class BiasChoice:
    """The fit of a curve, and the other one that follows it as well."""

    # The fit with flicker, or with a Gauss-Markov process that is more likely by a gain of 10.
    fit: AllanFit
    flicker: AllanFit
    markov: AllanFit | None = None  # none where the record shows white noise alone
    gain: float = 0.0  # twice the log-likelihood of the Gauss-Markov fit over that of flicker

    @property
    def separated(self) -> bool:
        """Whether the record says which of the two it is, or shows neither."""
        markov = self.markov
        if markov is None or markov.terms.gauss_markov is None or self.fit is markov:
            return True
        if self.flicker.terms.bias_instability.observable:
            return self.gain < -_SEPARATED
        return self.gain < _DOUBTED


def choose_fit(
    curve: AllanCurve, low_pass: LowPass | None = None, trend: Trend | None = None
) -> BiasChoice:
    """Fit a curve with flicker and with a Gauss-Markov process, and choose; see `fit_terms`.

    Examples
    --------
    >>> from sim2real_eval.characterization.allan import allan_curve
    >>> from sim_sensors.noise.processes import GaussMarkov
    >>> rng = np.random.default_rng(1)
    >>> bias = GaussMarkov(rng, 3e-4, 100.0, axes=1).advance(np.full(65536, 0.1))[:, 0]
    >>> chosen = choose_fit(allan_curve(bias + 3e-3 * rng.standard_normal(65536), 10.0))
    >>> chosen.separated, chosen.fit.terms.bias_instability.observable
    (True, False)
    """
    flicker = fit_terms(curve, low_pass=low_pass, trend=trend)
    terms = flicker.terms
    if not (terms.bias_instability.observable or terms.random_walk.observable or flicker.misfit):
        return BiasChoice(flicker, flicker)
    markov = _best_markov(curve, flicker.misfit, low_pass, trend)
    gain = flicker.deviance - markov.deviance
    needed = _SEPARATED if terms.bias_instability.observable else _BESIDE_WALK
    better = gain > needed and _held(markov)
    return BiasChoice(markov if better else flicker, flicker, markov, gain)


def terms_together(choices: Sequence[BiasChoice]) -> list[NoiseTerms]:
    """Return the terms of records of one axis, with the kind of bias that all together say: were
    it another in each, their mean would have both.
    """
    if len(choices) == 1:
        return [choices[0].fit.terms]
    comes_back = sum(choice.gain for choice in choices) > _SEPARATED and any(
        _held(choice.markov) for choice in choices if choice.markov
    )
    return [
        (choice.markov if comes_back and choice.markov else choice.flicker).terms
        for choice in choices
    ]


def _held(markov: AllanFit) -> bool:
    """Say whether the record is long enough for the Gauss-Markov process to be one."""
    time = markov.terms.gauss_markov_time
    return time is not None and _TIMES_HELD * time.upper <= markov.terms.seconds


def _best_markov(
    curve: AllanCurve, misfit: float, low_pass: LowPass | None, trend: Trend | None
) -> AllanFit:
    low = math.log2(max(_SHORTEST, 2.0 * curve.factors[0]))
    high = max(math.log2(_LONGEST * curve.n), low + 2.0)
    times = 2.0 ** np.arange(low, high + 0.5)
    deviances = np.array(
        [markov_deviance(curve, float(time), misfit, low_pass, trend) for time in times]
    )
    return fit_terms(curve, _refined(times, deviances), low_pass=low_pass, trend=trend)


def _refined(times: FloatArray, deviance: FloatArray) -> float:
    """Return the time at the lowest point of the parabola through the best three."""
    best = int(np.argmin(deviance))
    if not 0 < best < len(times) - 1:
        return float(times[best])
    before, at, after = deviance[best - 1 : best + 2].tolist()
    shift = 0.5 * (before - after) / (before - 2.0 * at + after)
    return float(times[best] * 2.0**shift)


def deviations_at(choice: BiasChoice, dt: float, tau: float) -> tuple[float, float]:
    """Return the Allan deviations of both fits at an averaging time, s: flicker, Gauss-Markov."""
    assert choice.markov is not None
    flicker, markov = (
        math.sqrt(float(model_variance(fit, dt, np.array([tau])).sum()))
        for fit in (choice.flicker, choice.markov)
    )
    return flicker, markov
