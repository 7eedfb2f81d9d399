# SPDX-License-Identifier: Apache-2.0
"""The line and the band behind a standstill's autocovariance are those of simulated records."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from sim2real_eval.characterization.gps_characterization import (
    autocovariance_scatter,
    expected_autocovariance,
)
from sim2real_eval.characterization.markov_fit import MarkovFit, autocovariance
from sim2real_eval.characterization.noise_terms import ParameterEstimate

PERIOD, LAGS, RUNS = 0.2, 60, 400


def fit_of(white: float, wander: float, time: float) -> MarkovFit:
    total, walk = np.hypot(white, wander), np.sqrt(2.0 * wander**2 / time)
    values = (total, white, wander, time, walk)
    units = ('m', 'm', 'm', 's', 'm/sqrt(s)')
    return MarkovFit(
        *(
            ParameterEstimate(float(value), 0.0, unit)
            for value, unit in zip(values, units, strict=True)
        ),
        gain=100.0,
    )


def record(rng: np.random.Generator, fit: MarkovFit, n: int) -> np.ndarray:
    """A stationary Gauss-Markov process by scipy's filter, and white noise on it."""
    keep = np.exp(-PERIOD / fit.time.value)
    drive = rng.normal(0.0, fit.wander.value * np.sqrt(1.0 - keep**2), n)
    drive[0] = rng.normal(0.0, fit.wander.value)
    return lfilter([1.0], [1.0, -keep], drive) + rng.normal(0.0, fit.white.value, n)


@pytest.mark.parametrize('lengths', [(3000,), (1200, 1800)])
@pytest.mark.parametrize('fit', [fit_of(0.01, 0.03, 3.0), fit_of(0.02, 0.01, 6.0)])
def test_mean_and_scatter_are_those_of_simulated_records(
    fit: MarkovFit, lengths: tuple[int, ...]
) -> None:
    """400 sets of records of 100 time constants and more.

    Means within 4.5 standard errors (neighbouring lags are no independent looks: < 1e-3 per case);
    deviations within 4.5 of theirs, 3.5 % each, and what Bartlett's formula leaves out, 5 %.
    """
    rng = np.random.default_rng(7)
    simulated = np.array(
        [autocovariance([record(rng, fit, n) for n in lengths], LAGS) for _ in range(RUNS)]
    )
    scatter = autocovariance_scatter(fit, lengths, PERIOD, LAGS)
    error = (
        simulated.mean(axis=0) - expected_autocovariance(fit, lengths, PERIOD, LAGS)
    ) / scatter
    assert np.abs(error).max() < 4.5 / np.sqrt(RUNS)
    assert simulated.std(axis=0) / scatter == pytest.approx(
        1.0, abs=4.5 * np.sqrt(0.5 / RUNS) + 0.05
    )


def test_a_lag_longer_than_every_record_has_no_product_to_scatter_with() -> None:
    """The sum over c_(j+k) c_(j-k) is empty for lags beyond the record."""
    fit = fit_of(0.01, 0.03, 1.0)
    scatter = autocovariance_scatter(fit, (40,), PERIOD, 60)
    assert scatter.shape == (61,)
    assert np.ptp(scatter[41:]) == 0.0
