# SPDX-License-Identifier: Apache-2.0
"""White noise of what wheel encoders tell, by two laws, and the error of steering's zero.

Source of the first law and of the steering error: [FRC3176].
"""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import ClassVar

import numpy as np

from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray
from sim_sensors.core.parameters import Parameters, non_negative, variants
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import Upstream
from sim_sensors.sensor.sensor import Measurement


class WheelNoise(Parameters, abc.ABC):
    """Zero-mean white noise in what one wheel rolls from a sample to the next."""

    @abc.abstractmethod
    def deviation(self, travels: FloatArray, wheel_radius: float) -> FloatArray:
        """Return its standard deviation, m, for travels in m, of any shape."""


@dataclasses.dataclass(frozen=True)
class NoWheelNoise(WheelNoise):
    """No noise."""

    kind: ClassVar[str] = 'none'

    def deviation(self, travels: FloatArray, wheel_radius: float) -> FloatArray:
        """Return zeros."""
        return np.zeros_like(travels)


@dataclasses.dataclass(frozen=True)
class SquaredIncrement(WheelNoise):
    """The law of [FRC3176]: delta + scale delta^2 N(0, std), delta the angle increment in rad.

    It depends on the rate: n equal steps that make D rad together have a variance of (scale std)^2
    D^4 / n^3, with the defaults 0.16 D^4 / n^3. Doubling the rate divides the standard deviation
    by 2.83. At 90 rad/s and 50 Hz one step of 1.8 rad errs by 1.3 rad. Use it to repeat published
    simulations; do not calibrate it on logs of another rate.
    """

    kind: ClassVar[str] = 'squared_increment'

    scale: float = non_negative(0.1, '1/rad', 'Factor of the squared increment.')
    std: float = non_negative(
        4.0, '1', 'Standard deviation of the normal number; 2.0 in later code.'
    )

    def deviation(self, travels: FloatArray, wheel_radius: float) -> FloatArray:
        """Return scale std delta^2 wheel_radius."""
        return self.scale * self.std / wheel_radius * (travels * travels)


@dataclasses.dataclass(frozen=True)
class PerDistance(WheelNoise):
    """A variance per distance, density^2: a random walk over the path, the same at every rate."""

    kind: ClassVar[str] = 'per_distance'

    density: float = non_negative(
        0.01,
        'm/sqrt(m)',
        'Standard deviation of the rolled distance after 1 m; after 100 m ten times that.',
    )

    def deviation(self, travels: FloatArray, wheel_radius: float) -> FloatArray:
        """Return density sqrt(|travel|)."""
        return self.density * np.sqrt(np.abs(travels))


WHEEL_NOISES = variants('a wheel noise', WheelNoise)


@dataclasses.dataclass(frozen=True)
class SteeringOffset(Upstream):
    """Constant error of each measured steering angle.

    `exact` is what the text of [FRC3176] says: uniform within +-bound (for 4 degrees a variance of
    5.33). `as_upstream` is what its code does: floor(2 bound U) - bound, for 4 degrees whole
    degrees from -4 to +3, mean -0.5, variance 5.25.
    """

    bound: float = non_negative(0.0, 'deg', 'Largest error; 0: none.', maximum=90.0)

    @property
    def has_defects(self) -> bool:
        """Whether there is an error at all."""
        return self.bound > 0.0

    def draw(self, seed: int, run: str, sensor: str, count: int) -> FloatArray:
        """Return the errors of `count` steered wheels, `(count,)` rad."""
        uniform = stream(seed, run, sensor, 'steering_offset').random(count)
        swing = 2.0 * self.bound * uniform
        degrees = swing - self.bound if self.is_exact else np.floor(swing) - self.bound
        return np.asarray(np.radians(degrees if self.bound > 0.0 else np.zeros(count)))

    @property
    def mean(self) -> float:
        """Mean of each, rad: none as the text says, that of a rounding down as its code does."""
        if self.is_exact or self.bound == 0.0:
            return 0.0
        weight, error = self._law()
        return float((weight * error).sum())

    @property
    def variance(self) -> float:
        """Variance of each about the mean, rad^2."""
        if self.is_exact or self.bound == 0.0:
            return math.radians(self.bound) ** 2 / 3.0
        weight, error = self._law()
        return float((weight * (error - self.mean) ** 2).sum())

    def _law(self) -> tuple[FloatArray, FloatArray]:
        """Return the chances of the errors that the code can yield, and these, rad."""
        # Of each whole number k in [0, 2 bound): the length of its piece of that interval.
        whole = np.arange(math.ceil(2.0 * self.bound))
        weight = np.minimum(whole + 1, 2.0 * self.bound) - whole
        return weight / (2.0 * self.bound), np.radians(whole - self.bound)


# Of z, roll and pitch, which wheels do not measure; diff_drive_controller of ros2_control has it.
_UNMEASURED = 1e6
# Places of x, y and the rotation about z among the six of a message.
_PLANAR = np.ix_([0, 1, 5], [0, 1, 5])


@dataclasses.dataclass(frozen=True, eq=False)
class WheelMeasurement(Measurement[OdometryArray]):
    """Odometry of wheels that err, beside that of perfect ones.

    The true ones are those of wheels without error: of a drive that sees all of the motion (a
    swerve), the true motion itself.
    """

    pose: FloatArray  # (n, 3) x, y in m and heading in rad, not wrapped
    # (n, 3) Mean since the sample before: forward, left in m/s and yaw rate in rad/s
    velocity: FloatArray
    # (n, 3, 3) As stated, in the order of the above
    pose_covariance: FloatArray
    velocity_covariance: FloatArray
    true_pose: FloatArray
    true_velocity: FloatArray
    wheel_angle: FloatArray  # (n, wheels) turned since the first sample, rad
    steering_angle: FloatArray  # (n, steered) rad, to the left of forward
    true_wheel_angle: FloatArray
    true_steering_angle: FloatArray
    height: float  # z of the poses, m
    child_frame: str  # of the body, whose motion is told

    def messages(self, stamp_ns: IntArray, frame: str) -> OdometryArray:
        """Return nav_msgs/Odometry arrays stamped `stamp_ns`, arriving at once."""
        covariances = _of_six(self.pose_covariance), _of_six(self.velocity_covariance)
        return self._odometry(stamp_ns, frame, self.pose, self.velocity, *covariances)

    def true_messages(self, stamp_ns: IntArray, frame: str) -> OdometryArray:
        """Return the odometry of wheels without error, with covariances of zero."""
        zero = np.zeros((len(self.pose), 6, 6))
        return self._odometry(stamp_ns, frame, self.true_pose, self.true_velocity, zero, zero)

    def _odometry(
        self,
        stamp_ns: IntArray,
        frame: str,
        pose: FloatArray,
        velocity: FloatArray,
        pose_covariance: FloatArray,
        twist_covariance: FloatArray,
    ) -> OdometryArray:
        zero = np.zeros(len(pose))
        return OdometryArray(
            stamp_ns=stamp_ns,
            arrival_ns=stamp_ns,
            frame=frame,
            child_frame=self.child_frame,
            position=np.column_stack([pose[:, :2], np.full(len(pose), self.height)]),
            orientation=rotations.from_heading(pose[:, 2]),
            linear_velocity=np.column_stack([velocity[:, :2], zero]),
            angular_velocity=np.column_stack([zero, zero, velocity[:, 2]]),
            pose_covariance=pose_covariance,
            twist_covariance=twist_covariance,
        )


def _of_six(planar: FloatArray) -> FloatArray:
    full = np.zeros((len(planar), 6, 6))
    full[:, [2, 3, 4], [2, 3, 4]] = _UNMEASURED
    full[:, _PLANAR[0], _PLANAR[1]] = planar
    return full
