# SPDX-License-Identifier: Apache-2.0
"""Magnetometers: true motion through the world's magnetic field in, field with errors out."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray, IntArray, MagneticFieldArray
from sim_sensors.core.parameters import Parameters, parameter
from sim_sensors.core.shared_parameters import (
    latency,
    lever_arm,
    mounting_quaternion,
    placed,
    sample_rate,
    turned,
)
from sim_sensors.imu.chain import ChainTriad, ErrorChain
from sim_sensors.noise.electronics import Temperature
from sim_sensors.sensor.catalogue import SensorKind
from sim_sensors.sensor.delivery import Channel, Delivery
from sim_sensors.sensor.reported_covariance import Correlated, ReportedCovariance, Unknown
from sim_sensors.sensor.sensor import Sensor

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Motion, Trajectory
    from sim_sensors.world.world import World


@dataclasses.dataclass(frozen=True)
class MagnetometerErrors(ErrorChain):
    """Errors of a magnetometer; none by default.

    `scale` and `cross_axis` hold its soft iron and misalignment, `constant_bias` its hard iron.
    """

    unit: ClassVar[str] = 'T'
    integral_unit: ClassVar[str] = 'T s'


@dataclasses.dataclass(frozen=True)
class Magnetometer(Parameters):
    """A magnetometer fixed to the body, with the errors of `sim_sensors.imu.chain.ImuChain`:

        y = S M^T R^T (h + d(p_s)) + b + v

    R turns the body and M the sensor in it, h is the field of the Earth and d that of the dipoles
    at the sensor's place p_s, which a lever arm moves; S, b and v are sensitivity, bias and white
    noise. [Ligorio2015], equation 5.
    """

    kind: ClassVar[str] = 'magnetometer'

    rate: float = sample_rate(100.0, 'Measurements per second.')
    frame_id: str = parameter('imu_link', '', 'Frame of the messages.', read_only=True)
    lever_arm: tuple[float, float, float] = lever_arm('magnetometer')
    mounting_rpy: tuple[float, float, float] = parameter(
        (0.0, 0.0, 0.0),
        'rad',
        'Rotation of the magnetometer in the body: roll, pitch, yaw about fixed axes.',
    )
    latency: float = latency()
    covariance: str = parameter(
        'white_noise',
        '',
        'Published covariance: white_noise: that of the white noise; unknown: all zero.',
        choices=('white_noise', 'unknown'),
    )
    delivery: Delivery = dataclasses.field(default_factory=Delivery)
    magnetometer: MagnetometerErrors = dataclasses.field(default_factory=MagnetometerErrors)
    temperature: Temperature = dataclasses.field(default_factory=Temperature)

    def mounted(self, translation: ArrayLike, rotation: ArrayLike) -> Magnetometer:
        """Return the model mounted as a static transform says.

        Parameters
        ----------
        translation : (3,)
            Position in the body, m.
        rotation : (4,)
            Quaternion x y z w, sensor to body.
        """
        turn = Rotation.from_quat(np.asarray(rotation, dtype=np.float64))
        return turned(placed(self, translation), turn)

    def start(
        self, seed: int, run: str, sensor: str = 'mag', *, world: World
    ) -> MagnetometerSensor:
        """Switch a sensor on.

        Parameters
        ----------
        seed, run, sensor
            Labels of its random streams; see `sim_sensors.core.seeding.stream`.
        world : World
            Whose field it measures.

        Raises
        ------
        SensorError, ParameterError
            When the world has no field; see `World.undisturbed_field`.
        """
        errors = ChainTriad(self.magnetometer, self.temperature, seed, run, sensor, 'magnetometer')
        return MagnetometerSensor(self, world, errors, self.channel(seed, run, sensor))

    def reported_covariance(self) -> ReportedCovariance:
        """Return what is stated as covariance."""
        if self.covariance == 'unknown':
            return Unknown()
        return Correlated(self.magnetometer.noise_correlation)

    def channel(self, seed: int, run: str, sensor: str = 'mag') -> Channel:
        """Return what carries the messages of the sensor that `start` gives."""
        return self.delivery.start(seed, run, sensor, self.latency)


@dataclasses.dataclass(frozen=True, eq=False)
class MagneticMeasurement:
    """What a magnetometer reports, and what is in it.

    Attributes
    ----------
    magnetic_field : (n, 3)
        T, sensor frame.
    covariance : (n, 3, 3)
        T^2; as in `sim_sensors.core.measurements.MagneticFieldArray`.
    bias : (n, 3)
        Part of the reported values that is bias, T.
    error : (n, 3)
        What is reported less the undisturbed field of the Earth in the sensor's axes, T: the
        dipoles are in it.
    """

    magnetic_field: FloatArray
    covariance: FloatArray
    bias: FloatArray
    error: FloatArray

    def messages(self, stamp_ns: IntArray, frame: str) -> MagneticFieldArray:
        """Return sensor_msgs/MagneticField arrays stamped `stamp_ns`, arriving at once."""
        return MagneticFieldArray(
            stamp_ns=stamp_ns,
            arrival_ns=stamp_ns,
            frame=frame,
            magnetic_field=self.magnetic_field,
            magnetic_field_covariance=self.covariance,
        )


class MagnetometerSensor(Sensor[MagneticMeasurement]):
    """A magnetometer that is switched on: a model and its state. Made by `Magnetometer.start`.

    Attributes
    ----------
    model : Magnetometer
        What it is.
    channel : Channel
        What carries its messages.
    """

    def __init__(
        self, model: Magnetometer, world: World, errors: ChainTriad, channel: Channel
    ) -> None:
        super().__init__(model.rate, channel, first_interval=1.0 / model.rate)
        self.model = model
        self._world = world
        self._earth = world.undisturbed_field
        self._errors = errors
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
        field = rotations.rotate_back(orientation, self._world.magnetic_field(at_sensor.position))
        earth = rotations.rotate_back(orientation, np.tile(self._earth, (len(dt), 1)))
        measured, bias, variance = self._errors.corrupt(field, dt)
        return MagneticMeasurement(
            magnetic_field=measured,
            covariance=self._reported_covariance.state(measured, variance),
            bias=bias,
            error=measured - earth,
        )


def simulate(
    model: Magnetometer,
    motion: Motion,
    *,
    seed: int,
    run: str,
    world: World,
    sensor: str = 'mag',
    start_ns: int | None = None,
    origin_ns: int = 0,
) -> MagneticFieldArray:
    """Measure a whole motion with the sensor that `model.start` gives.

    For `start_ns` and `origin_ns` see `sim_sensors.sensor.sensor.Sensor.measure_all`.

    Examples
    --------
    >>> from sim_sensors import World, load_mag, motion_of
    >>> motion = motion_of('standstill', duration=2.0)
    >>> field = simulate(load_mag('ideal'), motion, seed=1, run='1', world=World())
    >>> field.magnetic_field.shape
    (201, 3)
    """
    magnetometer = model.start(seed, run, sensor, world=world)
    stamp_ns, field = magnetometer.measure_all(motion, start_ns=start_ns, origin_ns=origin_ns)
    return magnetometer.channel.deliver(field.messages(stamp_ns, model.frame_id))


MAG = SensorKind(
    name='mag',
    one='a magnetometer',
    base=Magnetometer,
    preset='xsens_mtx',
    topic='imu/mag',
    message='sensor_msgs/msg/MagneticField',
    node='magnetometer_node',
    world='default',
    simulate=simulate,
    surroundings=lambda world: {'world': world},
)
load_mag = MAG.load
