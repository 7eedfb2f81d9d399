# SPDX-License-Identifier: Apache-2.0
"""The IMU of gnss-ins-sim."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np

from sim_sensors.core.compilation import compiled
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import parameter
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import AxisParameters, axes
from sim_sensors.imu.imu import UpstreamImu
from sim_sensors.noise.processes import GaussMarkov, Process, TurnOn, White, WhiteDensity
from sim_sensors.noise.triad import AxisErrors, SumTriad

_ZERO = (0.0, 0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class GnssInsSimErrors(AxisParameters):
    """Errors of three axes in gnss-ins-sim."""

    bias: tuple[float, float, float] = axes('{u}', 'Constant bias.')
    drift_std: tuple[float, float, float] = axes(
        '{u}', 'Stationary deviation of the drift.', minimum=0.0
    )
    drift_time: float = parameter(
        100.0, 's', 'Correlation time of the drift; 0: infinite.', minimum=0.0
    )
    noise_density: tuple[float, float, float] = axes(
        '{u}/sqrt(Hz)', 'White noise: Allan deviation at 1 s.', minimum=0.0
    )


@dataclasses.dataclass(frozen=True)
class GnssInsSimGyroscope(GnssInsSimErrors):
    """Errors of a gyroscope in gnss-ins-sim; none by default."""

    unit: ClassVar[str] = 'rad/s'
    integral_unit: ClassVar[str] = 'rad'


@dataclasses.dataclass(frozen=True)
class GnssInsSimAccelerometer(GnssInsSimErrors):
    """Errors of an accelerometer in gnss-ins-sim; none by default."""

    unit: ClassVar[str] = 'm/s^2'
    integral_unit: ClassVar[str] = 'm/s'


@dataclasses.dataclass(frozen=True)
class GnssInsSimImu(UpstreamImu):
    """gnss-ins-sim: y = truth + bias + drift + noise_density w / sqrt(dt).

    The drift is a Gauss-Markov process from zero. exact: discretised exactly; with an infinite
    time it stays zero, the limit of that law. As upstream it decays by 1 - dt/time, and with an
    infinite time it is *white* noise of drift_std per sample. Source: [GnssInsSim], pathgen.
    Vibration is not modelled.
    """

    kind: ClassVar[str] = 'gnss_ins_sim'

    gyroscope: GnssInsSimGyroscope = dataclasses.field(default_factory=GnssInsSimGyroscope)
    accelerometer: GnssInsSimAccelerometer = dataclasses.field(
        default_factory=GnssInsSimAccelerometer
    )

    def _check(self) -> None:
        super()._check()
        for name, part in (('gyroscope', self.gyroscope), ('accelerometer', self.accelerometer)):
            # An Euler step by more than twice the time constant grows without end.
            least = 0.5 / self.rate
            if not self.is_exact and 0.0 < part.drift_time <= least and any(part.drift_std):
                raise ParameterError(
                    type(self).__name__,
                    f'{name}.drift_time',
                    f'{part.drift_time!r} is not allowed as_upstream at {self.rate:g} Hz, where '
                    f'the drift diverges; must be 0 or > {least:g} [s]',
                )

    def triads(self, seed: int, run: str, sensor: str) -> tuple[AxisErrors, AxisErrors]:
        """Return the errors of the gyroscope and of the accelerometer."""
        parts: tuple[tuple[str, GnssInsSimErrors], ...] = (
            ('gyroscope', self.gyroscope),
            ('accelerometer', self.accelerometer),
        )
        gyroscope, accelerometer = (
            SumTriad(
                WhiteDensity(stream(seed, run, sensor, f'{name}_white'), part.noise_density),
                (
                    TurnOn(stream(seed, run, sensor, f'{name}_turn_on'), 0.0, part.bias),
                    self._drift(part, stream(seed, run, sensor, f'{name}_gauss_markov')),
                ),
            )
            for name, part in parts
        )
        return gyroscope, accelerometer

    def _drift(self, part: GnssInsSimErrors, rng: np.random.Generator) -> Process:
        if self.is_exact:
            time = part.drift_time or math.inf
            return GaussMarkov(rng, part.drift_std, time, stationary=False)
        if part.drift_time:
            return EulerDrift(rng, part.drift_std, part.drift_time)
        return White(rng, part.drift_std)


class EulerDrift:
    """gnss-ins-sim's drift: y[k] = (1 - dt/T) y[k-1] + std sqrt(1 - exp(-2 dt/T)) w, from zero.

    The decay is an Euler step and the noise is not, so the stationary deviation grows with dt.
    """

    def __init__(
        self, rng: np.random.Generator, std: tuple[float, float, float], time: float
    ) -> None:
        self._rng, self._std, self._time = rng, np.asarray(std), time
        self.value: FloatArray = np.zeros(3)

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values after each step, `(n, 3)`."""
        normals = self._rng.standard_normal((len(dt), 3))
        values = _euler_drift(self.value, self._std, self._time, dt, normals)
        if len(values):
            self.value = values[-1].copy()
        return values


@compiled
def _euler_drift(
    value: FloatArray, std: FloatArray, time: float, dt: FloatArray, normals: FloatArray
) -> FloatArray:
    out = np.empty_like(normals)
    for axis in range(normals.shape[1]):
        y = value[axis]
        for k in range(normals.shape[0]):
            spread = std[axis] * math.sqrt(-math.expm1(-2.0 * dt[k] / time))
            y = (1.0 - dt[k] / time) * y + spread * normals[k, axis]
            out[k, axis] = y
    return out
