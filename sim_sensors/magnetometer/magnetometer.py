# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Magnetometers: true motion through the world's magnetic field in, field with errors out."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray, MagneticFieldArray
from sim_sensors.core.parameters import parameter
from sim_sensors.core.seeding import streams
from sim_sensors.core.shared_parameters import (
    Axes,
    axes,
    latency,
    lever_arm,
    mounting_quaternion,
    sample_rate,
)
from sim_sensors.imu.chain import ChainTriad, ErrorChain
from sim_sensors.motion.ideal import MagneticMotion, MagneticTrajectory
from sim_sensors.noise.electronics import Supply, Temperature
from sim_sensors.sensor.delivery import Delivery
from sim_sensors.sensor.sensor import (
    Measurement,
    MountedModel,
    ReportedCovariance,
    Sensor,
    UnknownCovariance,
    WhiteNoiseCovariance,
)
from sim_sensors.sensor.sensor import simulate as simulate

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Motion, Trajectory
    from sim_sensors.world.world import World


@dataclasses.dataclass(frozen=True)
class MagnetometerErrors(ErrorChain):
    """Errors of a magnetometer; none by default.

    `scale` and `cross_axis` describe soft iron and misalignment, `constant_bias` hard iron.
    """

    unit: ClassVar[str] = 'T'
    integral_unit: ClassVar[str] = 'T s'


@dataclasses.dataclass(frozen=True)
class Magnetometer(MountedModel[MagneticFieldArray]):
    """Magnetometer fixed to the body, with the errors of `sim_sensors.imu.chain.ImuChain`::

        y = S M^T R^T (h + d(p_s)) + b + v

    R is the rotation of the body and M that of the sensor in it. h is the field of the Earth and d
    that of the dipoles at the position p_s of the sensor, which includes the lever arm. S, b and v
    are sensitivity, bias and white noise. [Ligorio2015], equation 5. A `MagneticMotion` gives R^T
    (h + d) itself.
    """

    kind: ClassVar[str] = 'magnetometer'
    name: ClassVar[str] = 'mag'
    noun: ClassVar[str] = 'a magnetometer'
    preset: ClassVar[str] = 'xsens_mtx'
    topic: ClassVar[str] = 'imu/mag'
    message: ClassVar[str] = 'sensor_msgs/msg/MagneticField'
    node: ClassVar[str] = 'magnetometer_node'
    world: ClassVar[str] = 'default'
    ideal_topic: ClassVar[str] = 'ground_truth/mag'
    ideal_values: ClassVar[tuple[str, ...]] = ('magnetic_field',)

    rate: float = sample_rate(100.0, 'Measurements per second.')
    frame_id: str = parameter('imu_link', '', 'Frame of the messages.', read_only=True)
    lever_arm: Axes = lever_arm('magnetometer')
    mounting_rpy: Axes = axes(
        'rad', 'Rotation of the magnetometer in the body: roll, pitch, yaw about fixed axes.'
    )
    latency: float = latency()
    covariance: str = parameter(
        'white_noise',
        '',
        'Published covariance: white_noise: covariance of the white noise; unknown: all zero.',
        choices=('white_noise', 'unknown'),
    )
    delivery: Delivery = dataclasses.field(default_factory=Delivery)
    magnetometer: MagnetometerErrors = dataclasses.field(default_factory=MagnetometerErrors)
    temperature: Temperature = dataclasses.field(default_factory=Temperature)
    supply: Supply = dataclasses.field(default_factory=Supply)

    @staticmethod
    def surroundings(world: World) -> dict[str, Any]:
        """Return the keyword arguments that `start` takes from a world."""
        return {'world': world}

    @staticmethod
    def ideal(
        motion: Motion, messages: MagneticFieldArray, *, world: World, **placement: Any
    ) -> Motion:
        """Return the motion with the field of a noise-free magnetometer; `world` is not used."""
        return MagneticMotion(motion, messages, **placement)

    def start(
        self, seed: int, run: str, sensor: str = 'mag', *, world: World
    ) -> MagnetometerSensor:
        """Switch on a sensor that measures the field of that world; see `SensorModel.start`.

        Raises
        ------
        SensorError, ParameterError
            When the magnetic model of the world is not available there; see
            `World.undisturbed_field`.
        """
        return MagnetometerSensor(self, seed, run, sensor, world)

    def reported_covariance(self) -> ReportedCovariance:
        """Return the source of the published covariance."""
        if self.covariance == 'unknown':
            return UnknownCovariance()
        return WhiteNoiseCovariance(self.magnetometer.noise_correlation)


@dataclasses.dataclass(frozen=True, eq=False)
class MagneticMeasurement(Measurement[MagneticFieldArray]):
    """Measurement of a magnetometer, and its error."""

    message: ClassVar[type[MagneticFieldArray]] = MagneticFieldArray

    # Messages, as in `sim_sensors.core.measurements.MagneticFieldArray`.
    magnetic_field: FloatArray
    magnetic_field_covariance: FloatArray
    bias: FloatArray  # (n, 3) bias in the values, T
    # Values less the undisturbed field of the Earth in the axes of the sensor, (n, 3) T. The field
    # of the dipoles counts as error.
    error: FloatArray


class MagnetometerSensor(Sensor[MagneticMeasurement]):
    """Magnetometer that is switched on: a model and its state. Made by `Magnetometer.start`."""

    model: Magnetometer

    def __init__(
        self, model: Magnetometer, seed: int, run: str, sensor: str, world: World
    ) -> None:
        super().__init__(model, seed, run, sensor, first_interval=1.0 / model.rate)
        self._world = world
        self._earth = world.undisturbed_field
        self._errors = ChainTriad(
            model.magnetometer,
            model.temperature,
            streams(seed, run, sensor, 'magnetometer'),
            model.supply,
        )
        self._reported_covariance = model.reported_covariance()
        self._lever_arm = np.asarray(model.lever_arm, dtype=np.float64)
        self._mounting = mounting_quaternion(model.mounting_rpy)

    @property
    def bias(self) -> FloatArray:
        """Present bias, `(3,)` T."""
        return self._errors.bias

    def _measure(self, truth: Trajectory, dt: FloatArray) -> MagneticMeasurement:
        at_sensor = truth.at_lever_arm(self._lever_arm)
        orientation = rotations.multiply(at_sensor.orientation, self._mounting)
        earth = rotations.rotate_back(orientation, np.tile(self._earth, (len(dt), 1)))
        if isinstance(truth, MagneticTrajectory):
            field = rotations.rotate_back(self._mounting, truth.magnetic_field)
        else:
            world_field = self._world.magnetic_field(at_sensor.position)
            field = rotations.rotate_back(orientation, world_field)
        measured, bias, variance = self._errors.corrupt(field, dt)
        return MagneticMeasurement(
            magnetic_field=measured,
            magnetic_field_covariance=self._reported_covariance.state(measured, variance),
            bias=bias,
            error=measured - earth,
        )


load_mag = Magnetometer.load
