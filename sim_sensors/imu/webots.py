# SPDX-License-Identifier: Apache-2.0
"""The Gyro and Accelerometer nodes of Webots."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import non_negative
from sim_sensors.core.seeding import Streams
from sim_sensors.core.shared_parameters import AxisParameters, OfAccelerometer, OfGyroscope
from sim_sensors.noise.electronics import quantise, saturate
from sim_sensors.noise.triad import AxisErrors, Corrupted
from .imu import SampledImu


@dataclasses.dataclass(frozen=True)
class WebotsErrors(AxisParameters):
    """Errors of three axes in Webots; none by default, as there."""

    noise: float = non_negative(
        0.0, '1', 'Third column of the lookup table: deviation over the value itself.'
    )
    range: float = non_negative(0.0, '{u}', 'Where the lookup table ends; 0: nowhere.')
    resolution: float = non_negative(0.0, '{u}', 'Step of the values; 0 stands for -1, none.')


class WebotsGyroscope(OfGyroscope, WebotsErrors):
    """Errors of a Gyro node; none by default."""


class WebotsAccelerometer(OfAccelerometer, WebotsErrors):
    """Errors of an Accelerometer node; none by default."""


@dataclasses.dataclass(frozen=True)
class WebotsImu(SampledImu):
    """The IMU of Webots: Gyro and Accelerometer, with a lookup table that maps a value to itself.

    Per sample and axis::

        y = round(c (1 + noise w)),   c = truth within +-range

    The noise is a share of the value: a gyroscope at rest has none, and an accelerometer at rest
    errs along gravity only. There is no bias. The driver webots_ros2 states no covariance (zeros).
    As upstream `noise` is that of a sample at any rate. The preset `webots_imu` has noise of 1 %,
    which is ours; in Webots it is 0.

    References
    ----------
    [Webots] `WbLookupTable.cpp`, `WbAccelerometer.cpp`; [WebotsRos2] `Ros2IMU.cpp`.
    """

    kind: ClassVar[str] = 'webots_imu'

    gyroscope: WebotsGyroscope = dataclasses.field(default_factory=WebotsGyroscope)
    accelerometer: WebotsAccelerometer = dataclasses.field(default_factory=WebotsAccelerometer)

    def triad(self, part: WebotsErrors, rng: Streams) -> AxisErrors:
        """Return the errors of a triad."""
        return ProportionalTriad(part, float(self.deviation(part.noise)), rng('white'))


class ProportionalTriad:
    """Three axes whose noise is a share of the value; see `WebotsImu`."""

    def __init__(self, part: WebotsErrors, noise: float, rng: np.random.Generator) -> None:
        self._part, self._noise, self._rng = part, noise, rng
        self.bias: FloatArray = np.zeros(3)

    def corrupt(self, truth: FloatArray, dt: FloatArray) -> Corrupted:
        """Return what is measured; see `AxisErrors`."""
        clean = saturate(truth, self._part.range)
        spread = self._noise * clean
        values = clean + spread * self._rng.standard_normal(truth.shape)
        return quantise(values, self._part.resolution), np.zeros_like(truth), spread**2
