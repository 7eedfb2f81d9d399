# SPDX-License-Identifier: Apache-2.0
"""Measures a scenario with an IMU, integrates what it measured, and does so many times.

Names are GTSAM's ScenarioRunner's in snake_case; docs/explanation/scenarios.md sets them side by
side and tells where the two differ on purpose.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream
from sim_sensors.motion.nav_state import NavState, States, local_coordinates
from sim_sensors.motion.trajectory import Motion
from .integration import TANGENT, integrate_all
from .measurements import (
    PreintegratedCombinedMeasurements,
    PreintegratedImuMeasurements,
    Preintegration,
    check_angle,
    first_states,
    form_of,
    predicted,
)
from .params import (
    ConstantBias,
    PreintegrationCombinedParams,
    PreintegrationError,
    PreintegrationParams,
)

_SAMPLES_AT_ONCE = 500_000
# More would not fit into a small machine's memory.
_MOST_SAMPLES = 5_000_000
_MOST_RUNS = 1_000_000


@dataclasses.dataclass(frozen=True, eq=False)
class Draws:
    """What n corrupted runs of k samples add to the ideal ones."""

    # (n, k, 3) Bias and noise, m/s^2 and rad/s, in the sensor's axes.
    force: FloatArray
    rate: FloatArray
    bias: FloatArray  # (n, 6) true bias after the last sample: accelerometer, gyroscope


def noise_root(covariance: FloatArray) -> FloatArray:
    """Return L with L L' = a covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


class ScenarioRunner:
    """Simulates the IMU of a body that follows a scenario: any motion, a `DiscreteScenario`, a
    recorded one.

    measured rate = S' w + b_g + n_g,  measured force = S' R' (a - g) + b_a + n_a, with S the
    mounting and samples of n of covariance C / dt. The true `bias` is 0 by default.

    `seed` and `run` are labels of the draws. The k-th corrupted integration of a runner differs
    from the one before, and equals the k-th of any other runner with the same labels. Raises
    PreintegrationError when the sample time, s, is not above 0.
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
    ) -> None:
        if not (math.isfinite(imu_sample_time) and imu_sample_time > 0.0):
            raise PreintegrationError(
                f'imu_sample_time: {imu_sample_time!r} is not allowed; must be > 0 [s]'
            )
        self.scenario, self.params = scenario, params
        self.bias = bias or ConstantBias()
        self._dt = float(imu_sample_time)
        self._labels = seed, run
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
        """Return what an ideal gyroscope reads at `t` s, `(3,)` rad/s, in the sensor's axes."""
        return np.asarray(self._ideal(np.array([t]))[1][0])

    def actual_specific_force(self, t: float) -> FloatArray:
        """Return what an ideal accelerometer reads at `t` s, `(3,)` m/s^2, in its axes."""
        return np.asarray(self._ideal(np.array([t]))[0][0])

    def measured_angular_velocity(self, t: float) -> FloatArray:
        """Return the same with bias and noise, which is another one at every call."""
        noise = self._root(self.params.gyroscope_covariance)
        drawn = noise @ self._streams['one_gyro'].standard_normal(3)
        return np.asarray(self.actual_angular_velocity(t) + self.bias.gyroscope + drawn)

    def measured_specific_force(self, t: float) -> FloatArray:
        """Return the same with bias and noise, which is another one at every call."""
        noise = self._root(self.params.accelerometer_covariance)
        drawn = noise @ self._streams['one_acc'].standard_normal(3)
        return np.asarray(self.actual_specific_force(t) + self.bias.accelerometer + drawn)

    def measurements_of(
        self, T: float, *, corrupted: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Return all samples of T s at the start of their intervals: force and rate, `(k, 3)`.

        Without corruption there is neither noise nor bias in them.
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

        Whole samples only; a nanosecond of a sample is forgiven. `estimated_bias` is taken off
        every sample, by default 0; `corrupted`: with the true bias and noise.

        Raises PreintegrationError when T is shorter than a sample. Raises MotionError when T is
        beyond the scenario.
        """
        force, rate = self.measurements_of(T, corrupted=corrupted)
        made = self.measurements(self.params, estimated_bias)
        made.integrate_measurements(force, rate, self._dt)
        return made

    def predict(
        self, pim: Preintegration[PreintegrationParams], estimated_bias: ConstantBias | None = None
    ) -> NavState:
        """Return where the measurements lead from the first state; see `pim.predict`."""
        return pim.predict(self._first(), estimated_bias)

    def prediction_errors(
        self,
        T: float,
        N: int = 1000,
        estimated_bias: ConstantBias | None = None,
        *,
        progress: Callable[[], None] = lambda: None,
    ) -> FloatArray:
        """Return how N corrupted predictions differ from one without noise, `(N, 9)`.

        Local coordinates, see `NavState`; a pure function of the arguments and the labels, of
        which the first rows do not depend on N. A combined runner adds 6 columns, the true bias
        at the end less `bias`. `progress` is called for each of the N, some at a time.
        """
        _check_count(N)
        force, rate = self._ideal(self._times(T))
        hat = estimated_bias or ConstantBias()
        still = Draws(
            np.tile(self.bias.accelerometer, (1, len(force), 1)),
            np.tile(self.bias.gyroscope, (1, len(rate), 1)),
            self.bias.vector[None],
        )
        aim = self._predictions(force, rate, still, hat)
        rows = []
        for drawn in self._draws('monte_carlo', N, len(force)):
            there = self._predictions(force, rate, drawn, hat)
            n = len(drawn.force)
            first = np.tile(aim[0], (n, 1)), np.tile(aim[1], (n, 1)), np.tile(aim[2], (n, 1))
            rows.append(self._with_bias(local_coordinates(first, there), drawn))
            for _ in range(n):
                progress()
        return np.concatenate(rows)

    def estimate_covariance(
        self, T: float, N: int = 1000, estimated_bias: ConstantBias | None = None
    ) -> FloatArray:
        """Return the sample covariance of `prediction_errors`: rotation, position, velocity.

        To be compared with `pim.prediction_covariance()`, but for the integration covariance,
        which nothing simulates.
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
        count = 0 if math.isnan(steps) else math.floor(min(steps, 2.0 * _MOST_SAMPLES) + 1e-7)
        if count < 1:
            raise PreintegrationError(
                f'T: {T!r} is not allowed; must be >= {self._dt:g} [s], the time of a sample'
            )
        if count > _MOST_SAMPLES:
            raise PreintegrationError(
                f'T: {T!r} is not allowed; must be <= {_MOST_SAMPLES * self._dt:g} [s], '
                f'{_MOST_SAMPLES} samples'
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
        return predicted(deltas, len(force) * self._dt, self._first(), self.params.n_gravity)

    def _draws(self, purpose: str, n: int, k: int) -> Iterator[Draws]:
        """Yield n draws, not too many at once; what is drawn does not depend on how many."""
        draw = self._white(purpose)
        size = max(_SAMPLES_AT_ONCE // k, 1)
        for start in range(0, n, size):
            count = min(size, n - start)
            force, rate = draw(count, k)
            bias = np.tile(self.bias.vector, (count, 1))
            yield Draws(force + bias[:, None, :3], rate + bias[:, None, 3:], bias)

    def _white(self, purpose: str) -> Callable[[int, int], tuple[FloatArray, FloatArray]]:
        """Return what draws force and rate of n runs of k samples, on from where it was."""
        acc, gyro = self._stream(f'{purpose}/acc'), self._stream(f'{purpose}/gyro')
        acc_root = self._root(self.params.accelerometer_covariance).T
        gyro_root = self._root(self.params.gyroscope_covariance).T

        def draw(n: int, k: int) -> tuple[FloatArray, FloatArray]:
            shape = (n, k, 3)
            return acc.standard_normal(shape) @ acc_root, gyro.standard_normal(shape) @ gyro_root

        return draw

    def _root(self, covariance: FloatArray) -> FloatArray:
        return noise_root(covariance / self._dt)

    def _stream(self, source: str) -> np.random.Generator:
        seed, run = self._labels
        return stream(seed, run, 'scenario_runner', source)


def _check_count(N: int) -> None:
    if not 2 <= N <= _MOST_RUNS:
        raise PreintegrationError(f'N: {N!r} is not allowed; must be >= 2 and <= {_MOST_RUNS}')


class CombinedScenarioRunner(ScenarioRunner):
    """A `ScenarioRunner` whose true biases walk: b <- b + sqrt(C dt) w after every sample.

    The class of this name in [GTSAM] keeps them constant, so that the rows of the biases in its
    Monte Carlo covariance are 0 whatever the analytic one says. Here each corrupted integration
    starts at `bias`, plus a draw from `bias_acc_omega_init`, of the parameters of biases that
    walk.
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
            way = np.zeros((count, k + 1, 6))
            way[:, 0] = first.standard_normal((count, 6)) @ start.T
            way[:, 1:] = walk.standard_normal((count, k, 6)) @ step.T
            way = np.cumsum(way, axis=1)
            yield Draws(
                drawn.force + way[:, :-1, :3],
                drawn.rate + way[:, :-1, 3:],
                drawn.bias + way[:, -1],
            )
