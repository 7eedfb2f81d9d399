# SPDX-License-Identifier: Apache-2.0
"""One scenario end to end, and a test of its covariance by Monte Carlo."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
from scipy.stats import chi2

from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.nav_state import NavState
from sim_sensors.motion.trajectory import Motion
from .measurements import Preintegration
from .params import (
    ConstantBias,
    PreintegrationCombinedParams,
    PreintegrationError,
    PreintegrationParams,
)
from .runner import CombinedScenarioRunner, ScenarioRunner

# Is a sample covariance that of a model? A test of the whole matrix at once.

# Below this share of the largest variance (after scaling rows to 1) a direction counts as having
# none.
_NOTHING = 1e-12
# Variance that rounding leaves where nothing at all varies.
_ROUNDING = 1e-20


@dataclasses.dataclass(frozen=True)
class CovarianceTest:
    """Result of the test."""

    statistic: float  # chi-square distributed if the model is right
    freedom: int  # its degrees of freedom
    probability: float  # of a statistic at least so large if the model is right


def covariance_agreement(estimated: FloatArray, model: FloatArray, samples: int) -> CovarianceTest:
    """Return the likelihood-ratio test that Gaussian samples have the covariance of a model.

    n (tr M - ln det M - d) with M = model^-1 estimated, n = samples - 1 and d rows, times
    Bartlett's factor 1 - (2 d + 1 - 2/(d + 1))/(6 n), is chi-square with d (d + 1)/2 degrees of
    freedom (R. J. Muirhead, "Aspects of Multivariate Statistical Theory", 1982, section 8.4).
    Directions in which the model has no variance are left out, unless the sample has some there.

    The estimate has the divisor samples - 1. Raises PreintegrationError when there are d or fewer.
    """
    scale = np.sqrt(np.diag(model))
    scale = np.where(scale > 0.0, scale, 1.0)
    values, vectors = np.linalg.eigh(model / np.outer(scale, scale))
    inside = values > _NOTHING * values[-1]
    d = int(inside.sum())
    n = samples - 1
    if n <= d:
        raise PreintegrationError(f'N: {samples} is not allowed; must be > {d + 1} for {d} rows')
    turned = vectors.T @ (estimated / np.outer(scale, scale)) @ vectors
    beyond = np.diag(turned)[~inside]
    whitened = turned[np.ix_(inside, inside)] / np.sqrt(np.outer(values[inside], values[inside]))
    sign, log_determinant = np.linalg.slogdet(whitened)
    freedom = d * (d + 1) // 2
    if sign <= 0.0 or bool((beyond > max(1e-9 * values[-1], _ROUNDING)).any()):
        return CovarianceTest(math.inf, freedom, 0.0)
    if d == 0:
        return CovarianceTest(0.0, 0, 1.0)
    ratio = n * (float(np.trace(whitened)) - float(log_determinant) - d)
    statistic = ratio * (1.0 - (2.0 * d + 1.0 - 2.0 / (d + 1.0)) / (6.0 * n))
    return CovarianceTest(statistic, freedom, float(chi2.sf(statistic, freedom)))


COMPONENTS = tuple(
    f'{what}_{axis}'
    for what in ('rotation', 'position', 'velocity', 'bias_acc', 'bias_gyro')
    for axis in 'xyz'
)
"""Names of the errors: rad, m, m/s, m/s^2, rad/s."""


@dataclasses.dataclass(frozen=True, eq=False)
class ScenarioSetup:
    """What is run."""

    scenario: Motion
    name: str  # what it is called
    duration: float  # time that is integrated, s
    dt: float  # time of a sample, s
    params: PreintegrationParams  # those of walking biases make the biases walk
    # True one, and the one that is taken off.
    bias: ConstantBias
    estimated_bias: ConstantBias
    runs: int = 1000  # of the Monte Carlo estimate
    seed: int = 0

    def runner(self) -> ScenarioRunner:
        """Return a new runner of this set-up."""
        walks = isinstance(self.params, PreintegrationCombinedParams)
        kind = CombinedScenarioRunner if walks else ScenarioRunner
        return kind(self.scenario, self.params, self.dt, self.bias, seed=self.seed)


@dataclasses.dataclass(frozen=True, eq=False)
class ScenarioStudy:
    """What came out; d is 9, or 15 with walking biases."""

    setup: ScenarioSetup
    time: FloatArray  # (k,) when the samples were taken, s
    # (k, 6) Specific force, m/s^2, and angular rate, rad/s, without and with bias and noise
    ideal: FloatArray
    measured: FloatArray
    pim: Preintegration[PreintegrationParams]  # of the measured ones
    # State at the end: predicted from them, and true
    predicted: NavState
    truth: NavState
    error: FloatArray  # (9,) from predicted to true, in its local coordinates
    step_error: FloatArray  # (9,) the same without bias and noise: what holding each sample does
    # (d, d) Of the prediction, without the integration covariance, which nothing simulates
    predicted_covariance: FloatArray
    estimated_covariance: FloatArray  # (d, d) of the Monte Carlo runs
    errors: FloatArray  # (n, d) their errors
    agreement: CovarianceTest  # of the two covariances

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the d errors."""
        return COMPONENTS[: self.errors.shape[1]]


def run_study(setup: ScenarioSetup, progress: Callable[[], None] = lambda: None) -> ScenarioStudy:
    """Run a set-up.

    `progress`: called for each Monte Carlo run. Raises PreintegrationError, MotionError when the
    set-up is wrong.
    """
    runner = setup.runner()
    force, rate = runner.measurements_of(setup.duration)
    pim = runner.measurements(setup.params, setup.estimated_bias)
    measured = runner.measurements_of(setup.duration, corrupted=True)
    pim.integrate_measurements(*measured, setup.dt)
    predicted = runner.predict(pim, setup.estimated_bias)
    start = setup.scenario.start
    end = setup.scenario.at([start + pim.delta_tij()])
    truth = NavState(end.orientation[0], end.position[0], end.velocity[0])
    ideal = runner.predict(runner.integrate(setup.duration))
    covariance = _simulated_covariance(setup)
    errors = runner.prediction_errors(
        setup.duration, setup.runs, setup.estimated_bias, progress=progress
    )
    estimated = np.asarray(np.cov(errors, rowvar=False))
    return ScenarioStudy(
        setup=setup,
        time=np.asarray(start + np.arange(len(force)) * setup.dt),
        ideal=np.hstack([force, rate]),
        measured=np.hstack(measured),
        pim=pim,
        predicted=predicted,
        truth=truth,
        error=predicted.local_coordinates(truth),
        step_error=ideal.local_coordinates(truth),
        predicted_covariance=covariance,
        estimated_covariance=estimated,
        errors=errors,
        agreement=covariance_agreement(estimated, covariance, setup.runs),
    )


def _simulated_covariance(setup: ScenarioSetup) -> FloatArray:
    """Return the covariance about the run with the true bias and no noise."""
    params = dataclasses.replace(setup.params, integration_covariance=np.zeros((3, 3)))
    still = dataclasses.replace(setup, params=params).runner()
    force, rate = still.measurements_of(setup.duration)
    pim = still.measurements(params, setup.estimated_bias)
    pim.integrate_measurements(
        force + setup.bias.accelerometer, rate + setup.bias.gyroscope, setup.dt
    )
    return pim.prediction_covariance()
