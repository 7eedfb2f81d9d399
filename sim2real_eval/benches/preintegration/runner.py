# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Simulation and preintegration of the IMU of a scenario, once or many times.

Names are those of GTSAM's ScenarioRunner in snake_case; docs/explanation/scenarios.md compares the
two and lists the intended differences.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.stats import chi2

from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream
from sim_sensors.motion.trajectory import Motion, NavState, States, local_coordinates
from .gtsam_normals import ACCELEROMETER_SEED, GYROSCOPE_SEED, GtsamNormals
from .integration import TANGENT, integrate_all
from .measurements import (
    PreintegratedCombinedMeasurements,
    PreintegratedImuMeasurements,
    Preintegration,
    check_angle,
    first_states,
    form_of,
    predict_states,
)
from .params import (
    ConstantBias,
    PreintegrationCombinedParams,
    PreintegrationError,
    PreintegrationParams,
)

_SAMPLES_AT_ONCE = 500_000
# Limits keep the memory small.
_MAX_SAMPLES = 5_000_000
_MAX_RUNS = 1_000_000


@dataclasses.dataclass(frozen=True, eq=False)
class Draws:
    """Bias and noise of n corrupted runs of k samples."""

    # (n, k, 3) Bias plus noise, m/s^2 and rad/s, in the axes of the sensor.
    force: FloatArray
    rate: FloatArray
    bias: FloatArray  # (n, 6) true bias after the last sample: accelerometer, gyroscope


def noise_root(covariance: FloatArray) -> FloatArray:
    """Return a root L of a possibly singular covariance, L L' = C."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


class ScenarioRunner:
    """Simulator of the IMU of a body on a simulated or recorded motion.

    measured rate = S' w + b_g + n_g,  measured force = S' R' (a - g) + b_a + n_a, with the
    mounting S and noise samples n of covariance C / dt. The true `bias` is 0 by default.

    `seed` and `run` are labels of the draws. The k-th corrupted integration of a runner equals the
    k-th of any other runner with the same labels. The draws of `noise` gtsam and gtsam_macos are
    those of GTSAM, to rounding, whatever the labels are; see `GtsamNormals`.

    Raises PreintegrationError when the sample time, s, is not above 0, and for GTSAM's noise when
    a covariance is not diagonal, or 0 on some axes only.
    """

    measurements: type[Preintegration[Any]] = PreintegratedImuMeasurements

    def __init__(
        self,
        scenario: Motion,
        params: PreintegrationParams,
        imu_sample_time: float = 0.01,
        bias: ConstantBias | None = None,
        *,
        seed: int = 0,
        run: str = 'scenario',
        noise: str = 'seeded',
    ) -> None:
        if not (math.isfinite(imu_sample_time) and imu_sample_time > 0.0):
            raise PreintegrationError(
                f'imu_sample_time: {imu_sample_time!r} is not allowed; must be > 0 [s]'
            )
        self.scenario, self.params = scenario, params
        self.bias = bias or ConstantBias()
        self._dt = float(imu_sample_time)
        self._labels = seed, run
        self._gtsam: dict[str, GtsamNormals] = {}
        if noise != 'seeded':
            _check_diagonal(params)
            seeds = {'acc': ACCELEROMETER_SEED, 'gyro': GYROSCOPE_SEED}
            self._gtsam = {
                name: GtsamNormals(one, macos=noise == 'gtsam_macos')
                for name, one in seeds.items()
            }
        self._streams = {name: self._stream(name) for name in ('one_acc', 'one_gyro')}
        self._integrations = 0
        self._latest_bias = self.bias

    def gravity_n(self) -> FloatArray:
        """Return gravity in the world, `(3,)` m/s^2."""
        return np.array(self.params.n_gravity)

    def imu_sample_time(self) -> float:
        """Return the time between samples, s."""
        return self._dt

    def latest_bias(self) -> ConstantBias:
        """Return the true bias at the end of the latest corrupted integration."""
        return self._latest_bias

    def actual_angular_velocity(self, t: float) -> FloatArray:
        """Return the reading of an ideal gyroscope at `t` s, `(3,)` rad/s, in its axes."""
        return np.asarray(self._ideal(np.array([t]))[1][0])

    def actual_specific_force(self, t: float) -> FloatArray:
        """Return the reading of an ideal accelerometer at `t` s, `(3,)` m/s^2, in its axes."""
        return np.asarray(self._ideal(np.array([t]))[0][0])

    def measured_angular_velocity(self, t: float) -> FloatArray:
        """Return the angular velocity at `t` s with bias and newly drawn noise, `(3,)` rad/s."""
        noise = self._root(self.params.gyroscope_covariance)
        drawn = noise @ self._streams['one_gyro'].standard_normal((3,))
        return np.asarray(self.actual_angular_velocity(t) + self.bias.gyroscope + drawn)

    def measured_specific_force(self, t: float) -> FloatArray:
        """Return the specific force at `t` s with bias and newly drawn noise, `(3,)` m/s^2."""
        noise = self._root(self.params.accelerometer_covariance)
        drawn = noise @ self._streams['one_acc'].standard_normal((3,))
        return np.asarray(self.actual_specific_force(t) + self.bias.accelerometer + drawn)

    def measurements_of(
        self, T: float, *, corrupted: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Return force and rate `(k, 3)` at the start of each sample interval of T s.

        Bias and noise are included only if `corrupted`.
        """
        force, rate = self._ideal(self._times(T))
        if not corrupted:
            return force, rate
        self._integrations += 1
        drawn = next(self._draws(f'integration/{self._integrations}', 1, len(force)))
        self._latest_bias = ConstantBias(drawn.bias[0, :3], drawn.bias[0, 3:])
        return force + drawn.force[0], rate + drawn.rate[0]

    def integrate(
        self, T: float, estimated_bias: ConstantBias | None = None, corrupted: bool = False
    ) -> Preintegration[PreintegrationParams]:
        """Return the preintegrated measurements of the first T s.

        Only whole samples are integrated, with a tolerance of a nanosecond. `estimated_bias`, by
        default 0, is subtracted from every sample. `corrupted` adds the true bias and noise; it is
        False by default, as in GTSAM's code, although the page [ScenarioRunner] writes True.

        Raises PreintegrationError when T is shorter than a sample, and MotionError when T is
        beyond the scenario.
        """
        force, rate = self.measurements_of(T, corrupted=corrupted)
        pim = self.measurements(self.params, estimated_bias)
        pim.integrate_measurements(force, rate, self._dt)
        return pim

    def predict(
        self, pim: Preintegration[PreintegrationParams], estimated_bias: ConstantBias | None = None
    ) -> NavState:
        """Return the state at the end of the measurements; see `pim.predict`."""
        return pim.predict(self._first(), estimated_bias)

    def prediction_errors(
        self,
        T: float,
        N: int = 1000,
        estimated_bias: ConstantBias | None = None,
        *,
        progress: Callable[[], None] = lambda: None,
    ) -> FloatArray:
        """Return the errors of N corrupted predictions from one without noise, `(N, 9)`.

        The errors are local coordinates, see `NavState`. They depend only on the arguments and the
        labels, and the first rows do not depend on N. A combined runner adds 6 columns: the true
        bias at the end minus `bias`. `progress` is called for each prediction.
        """
        _check_count(N)
        force, rate = self._ideal(self._times(T))
        hat = estimated_bias or ConstantBias()
        still = Draws(
            np.tile(self.bias.accelerometer, (1, len(force), 1)),
            np.tile(self.bias.gyroscope, (1, len(rate), 1)),
            self.bias.vector[None],
        )
        reference = self._predictions(force, rate, still, hat)
        rows = []
        for drawn in self._draws('monte_carlo', N, len(force)):
            states = self._predictions(force, rate, drawn, hat)
            n = len(drawn.force)
            first = (
                np.tile(reference[0], (n, 1)),
                np.tile(reference[1], (n, 1)),
                np.tile(reference[2], (n, 1)),
            )
            rows.append(self._with_bias(local_coordinates(first, states), drawn))
            for _ in range(n):
                progress()
        return np.concatenate(rows)

    def estimate_covariance(
        self, T: float, N: int = 1000, estimated_bias: ConstantBias | None = None
    ) -> FloatArray:
        """Return the sample covariance of `prediction_errors`: rotation, position, velocity.

        Compare it with `pim.prediction_covariance()` without an integration covariance, which is
        not simulated.
        """
        return np.asarray(np.cov(self.prediction_errors(T, N, estimated_bias), rowvar=False))

    def estimate_noise_covariance(self, N: int = 1000) -> FloatArray:
        """Return the covariance `(6, 6)` of N samples of noise: accelerometer, gyroscope."""
        _check_count(N)
        force, rate = self._white('noise')(N, 1)
        return np.asarray(np.cov(np.hstack([force[:, 0], rate[:, 0]]), rowvar=False))

    def _with_bias(self, errors: FloatArray, drawn: Draws) -> FloatArray:
        return errors

    def _first(self) -> NavState:
        now = self.scenario.at([self.scenario.start])
        return NavState(now.orientation[0], now.position[0], now.velocity[0])

    def _times(self, T: float) -> FloatArray:
        steps = T / self._dt
        count = 0 if math.isnan(steps) else math.floor(min(steps, 2.0 * _MAX_SAMPLES) + 1e-7)
        if count < 1:
            raise PreintegrationError(
                f'T: {T!r} is not allowed; must be >= {self._dt:g} [s], the time of a sample'
            )
        if count > _MAX_SAMPLES:
            raise PreintegrationError(
                f'T: {T!r} is not allowed; must be <= {_MAX_SAMPLES * self._dt:g} [s], '
                f'{_MAX_SAMPLES} samples'
            )
        return np.asarray(self.scenario.start + np.arange(count) * self._dt)

    def _ideal(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        pose = self.params.body_p_sensor
        truth = self.scenario.at(times).at_lever_arm(pose[:3, 3])
        force = truth.specific_force(self.params.n_gravity)
        return force @ pose[:3, :3], truth.angular_velocity @ pose[:3, :3]

    def _predictions(
        self, force: FloatArray, rate: FloatArray, drawn: Draws, hat: ConstantBias
    ) -> States:
        form, pose = form_of(self.params), self.params.body_p_sensor
        states = first_states(form, len(drawn.force))
        integrate_all(
            form, states, force + drawn.force, rate + drawn.rate, self._dt, hat.vector,
            np.ascontiguousarray(pose[:3, :3]), np.ascontiguousarray(pose[:3, 3]),
        )  # fmt: skip
        check_angle(form, states)
        turn = rotations.exp(states[:, :3]) if form == TANGENT else states[:, :4]
        deltas = turn, states[:, -6:-3], states[:, -3:]
        return predict_states(deltas, len(force) * self._dt, self._first(), self.params.n_gravity)

    def _draws(self, purpose: str, n: int, k: int) -> Iterator[Draws]:
        """Yield n draws in parts; the draws do not depend on the size of the parts."""
        draw = self._white(purpose)
        size = max(_SAMPLES_AT_ONCE // k, 1)
        for start in range(0, n, size):
            count = min(size, n - start)
            force, rate = draw(count, k)
            bias = np.tile(self.bias.vector, (count, 1))
            yield Draws(force + bias[:, None, :3], rate + bias[:, None, 3:], bias)

    def _white(self, purpose: str) -> Callable[[int, int], tuple[FloatArray, FloatArray]]:
        """Return a function that draws force and rate of the next n runs of k samples."""
        acc, gyro = self._stream(f'{purpose}/acc'), self._stream(f'{purpose}/gyro')
        acc_root = self._root(self.params.accelerometer_covariance).T
        gyro_root = self._root(self.params.gyroscope_covariance).T

        def draw(n: int, k: int) -> tuple[FloatArray, FloatArray]:
            shape = (n, k, 3)
            return acc.standard_normal(shape) @ acc_root, gyro.standard_normal(shape) @ gyro_root

        return draw

    def _root(self, covariance: FloatArray) -> FloatArray:
        if self._gtsam:
            return np.asarray(np.sqrt(covariance / self._dt))
        return noise_root(covariance / self._dt)

    def _stream(self, source: str) -> np.random.Generator | GtsamNormals:
        # GTSAM has one stream per sensor, which goes on from one purpose to the next.
        if (sensor := source.rpartition('/')[2].removeprefix('one_')) in self._gtsam:
            return self._gtsam[sensor]
        seed, run = self._labels
        return stream(seed, run, 'scenario_runner', source)


def _check_count(N: int) -> None:
    if not 2 <= N <= _MAX_RUNS:
        raise PreintegrationError(f'N: {N!r} is not allowed; must be >= 2 and <= {_MAX_RUNS}')


def _check_diagonal(params: PreintegrationParams) -> None:
    for name in ('accelerometer_covariance', 'gyroscope_covariance'):
        covariance = getattr(params, name)
        variances = np.diag(covariance)
        # GTSAM draws nothing for a variance of 0, which would shift what follows.
        if not np.array_equal(covariance, np.diag(variances)) or len({*(variances > 0.0)}) > 1:
            raise PreintegrationError(
                f'{name}: must be diagonal, and positive or 0 on all axes, for the noise of GTSAM'
            )


class CombinedScenarioRunner(ScenarioRunner):
    """A `ScenarioRunner` whose true biases walk: b <- b + sqrt(C dt) w after every sample.

    The class of this name in [GTSAM] keeps them constant, so that the biases have no variance in
    its Monte Carlo covariance. Here each corrupted integration starts at `bias` plus a draw from
    `bias_acc_omega_init`.
    """

    measurements = PreintegratedCombinedMeasurements

    def _with_bias(self, errors: FloatArray, drawn: Draws) -> FloatArray:
        return np.hstack([errors, drawn.bias - self.bias.vector])

    def _draws(self, purpose: str, n: int, k: int) -> Iterator[Draws]:
        params = self.params
        assert isinstance(params, PreintegrationCombinedParams)
        walk, first = self._stream(f'{purpose}/walk'), self._stream(f'{purpose}/first_bias')
        step = np.zeros((6, 6))
        step[:3, :3] = noise_root(params.bias_acc_covariance * self._dt)
        step[3:, 3:] = noise_root(params.bias_omega_covariance * self._dt)
        start = noise_root(params.bias_acc_omega_init)
        for drawn in super()._draws(purpose, n, k):
            count = len(drawn.bias)
            drift = np.zeros((count, k + 1, 6))
            drift[:, 0] = first.standard_normal((count, 6)) @ start.T
            drift[:, 1:] = walk.standard_normal((count, k, 6)) @ step.T
            drift = np.cumsum(drift, axis=1)
            yield Draws(
                drawn.force + drift[:, :-1, :3],
                drawn.rate + drift[:, :-1, 3:],
                drawn.bias + drift[:, -1],
            )


# Share of the largest variance, after scaling rows to 1, below which a direction has none.
_NO_VARIANCE = 1e-12
# Variance of a constant due to rounding.
_ROUNDING = 1e-20


@dataclasses.dataclass(frozen=True)
class CovarianceTest:
    """Result of a likelihood-ratio test of a covariance."""

    statistic: float  # chi-square distributed if the model is right
    freedom: int  # its degrees of freedom
    probability: float  # of a statistic at least this large if the model is right


def covariance_agreement(estimated: FloatArray, model: FloatArray, samples: int) -> CovarianceTest:
    """Return the likelihood-ratio test that Gaussian samples have the covariance of a model.

    n (tr M - ln det M - d) with M = model^-1 estimated, n = samples - 1 and d rows, times
    Bartlett's factor 1 - (2 d + 1 - 2/(d + 1))/(6 n), is chi-square with d (d + 1)/2 degrees of
    freedom (R. J. Muirhead, "Aspects of Multivariate Statistical Theory", 1982, section 8.4).
    Directions in which the model has no variance are ignored, unless the sample has some there.

    The divisor of the estimate is samples - 1. Raises PreintegrationError when it is d or less.
    """
    scale = np.sqrt(np.diag(model))
    scale = np.where(scale > 0.0, scale, 1.0)
    values, vectors = np.linalg.eigh(model / np.outer(scale, scale))
    inside = values > _NO_VARIANCE * values[-1]
    d = int(inside.sum())
    n = samples - 1
    if n <= d:
        raise PreintegrationError(f'N: {samples} is not allowed; must be > {d + 1} for {d} rows')
    rotated = vectors.T @ (estimated / np.outer(scale, scale)) @ vectors
    beyond = np.diag(rotated)[~inside]
    whitened = rotated[np.ix_(inside, inside)] / np.sqrt(np.outer(values[inside], values[inside]))
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
"""Names of the errors in rad, m, m/s, m/s^2 and rad/s."""


@dataclasses.dataclass(frozen=True, eq=False)
class ScenarioSetup:
    """Motion, IMU, biases and number of runs of a scenario."""

    scenario: Motion
    name: str
    duration: float  # integrated time, s
    dt: float  # sample time, s
    params: PreintegrationParams  # biases walk with `PreintegrationCombinedParams`
    bias: ConstantBias  # true
    estimated_bias: ConstantBias  # subtracted from every sample
    runs: int = 1000  # of the Monte Carlo estimate
    seed: int = 0
    noise: str = 'seeded'  # or that of GTSAM: gtsam, gtsam_macos

    def runner(self) -> ScenarioRunner:
        """Return a new runner of this set-up."""
        walks = isinstance(self.params, PreintegrationCombinedParams)
        kind = CombinedScenarioRunner if walks else ScenarioRunner
        return kind(
            self.scenario, self.params, self.dt, self.bias, seed=self.seed, noise=self.noise
        )


@dataclasses.dataclass(frozen=True, eq=False)
class ScenarioStudy:
    """Results of a scenario; d is 9, or 15 with walking biases."""

    setup: ScenarioSetup
    time: FloatArray  # (k,) of the samples, s
    # (k, 6) Specific force, m/s^2, and angular rate, rad/s, without and with bias and noise
    ideal: FloatArray
    measured: FloatArray
    pim: Preintegration[PreintegrationParams]  # of the measured samples
    # Predicted and true state at the end
    predicted: NavState
    truth: NavState
    error: FloatArray  # (9,) from predicted to true, in its local coordinates
    step_error: FloatArray  # (9,) without bias and noise, due to holding each sample
    # (d, d) Of the prediction, without the integration covariance, which is not simulated
    predicted_covariance: FloatArray
    estimated_covariance: FloatArray  # (d, d) of the Monte Carlo runs
    errors: FloatArray  # (n, d) of the Monte Carlo runs
    agreement: CovarianceTest  # of the two covariances

    @property
    def components(self) -> tuple[str, ...]:
        """Names of the d errors."""
        return COMPONENTS[: self.errors.shape[1]]


def run_study(setup: ScenarioSetup, progress: Callable[[], None] = lambda: None) -> ScenarioStudy:
    """Run a scenario; `progress` is called for each Monte Carlo run.

    Raises PreintegrationError or MotionError when the set-up is wrong.
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
    """Return the predicted covariance of a run with the true bias and no noise."""
    params = dataclasses.replace(setup.params, integration_covariance=np.zeros((3, 3)))
    still = dataclasses.replace(setup, params=params).runner()
    force, rate = still.measurements_of(setup.duration)
    pim = still.measurements(params, setup.estimated_bias)
    pim.integrate_measurements(
        force + setup.bias.accelerometer, rate + setup.bias.gyroscope, setup.dt
    )
    return pim.prediction_covariance()
