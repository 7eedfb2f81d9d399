# SPDX-License-Identifier: Apache-2.0
"""Wheel odometry: true motion in, odometry of wheels that err out, beside that of perfect ones.

Source: [FRC3176], with drives besides the swerve. From each stamp to the
next the wheels roll as the kinematics of the drive have it; noise, slips, wrong radii, encoder
steps and wrong zeros of the steering are added; the forward kinematics give the step of the body,
and the exponential of SE(2) the pose.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sim_sensors.core import rotations
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray
from sim_sensors.core.parameters import VariedParameters, non_negative, parameter
from sim_sensors.core.registry import Registry
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import Axes, latency, lever_arm, sample_rate
from sim_sensors.motion import planar
from sim_sensors.motion.planar import squares_about
from sim_sensors.sensor.delivery import Delivery
from sim_sensors.sensor.sensor import Measurement, Sensor, SensorModel
from .drives import WHEEL_DRIVES, DifferentialWheels, WheelDrive
from .encoders import (
    WHEEL_NOISES,
    Encoders,
    PerDistance,
    Slip,
    SteeringOffset,
    WheelNoise,
    accumulated,
)

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Trajectory

# Points that stand for independent random numbers: a weighted few with the same moments.

# Where all combinations of signs become many, some are products of others.
_MOST = 6
_PRODUCTS = ([0, 1, 2, 3], [0, 1, 4, 5])


def points_of(kurtosis: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Return points and weights with the moments of independent numbers, to the fourth.

    Of mean 0, variance 1 and symmetric laws, so that the mean of every polynomial of degree four
    is right, and so that of the square of whatever is quadratic in them. It is a central composite
    design (G. E. P. Box and K. B. Wilson, 1951): corners (+-a, .., +-a) of total weight r^2, a
    pair +-b_i on each axis, and the centre. Moments x_i^2, x_i^4 and x_i^2 x_j^2 of 1, k_i and 1
    ask for a^2 = 1/r, b_i^2 = (k_i - 1)/(1 - r) and weights (1 - r)^2 / (2 (k_i - 1)) of each of a
    pair. No weight is negative where r >= (s - 1)/(s + 1), s the sum of 1/(k_i - 1).

    `kurtosis` are the fourth moments k_i of at most 8 numbers, above 1: 3 of a normal one, 1.8 of
    a uniform one. There are 81 points of eight numbers, 25 of four, 1 of none, `(p, m)`; the sum
    of their weights is 1.
    """
    m = len(kurtosis)
    if not m:
        return np.zeros((1, 0)), np.ones(1)
    excess = np.asarray(kurtosis, dtype=float) - 1.0
    total = float((1.0 / excess).sum())
    r = max(0.5, (total - 1.0) / (total + 1.0))
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=min(m, _MOST))))
    # Of four each: no product of four columns or fewer is then the same at all corners.
    made = [signs[:, of].prod(axis=1) for of in _PRODUCTS[: max(m - _MOST, 0)]]
    corners = np.column_stack([signs, *made])
    axes = np.diag(np.sqrt(excess / (1.0 - r)))
    of_axes = (1.0 - r) ** 2 / (2.0 * excess)
    points = np.concatenate([corners / np.sqrt(r), axes, -axes, np.zeros((1, m))])
    of_corners = np.full(len(corners), r * r / len(corners))
    centre = max(1.0 - r * r - 2.0 * of_axes.sum(), 0.0)
    return points, np.concatenate([of_corners, of_axes, of_axes, [centre]])


# Fourth moments of laws of variance 1; that of whole degrees within 4 is 1.76.
_NORMAL, _UNIFORM = 3.0, 1.8


class WheelConstants:
    """The errors of one robot's wheels that stay, and what they have done to its pose.

    `radius_error` is the standard deviation of the relative errors of the radii, `steering_offset`
    the law of the zeros of the steering. Drawn are the relative errors of the radii, `(wheels,)`
    `radius_errors`, and those of the measured steering angles, `(steered,)` rad
    `steering_offsets`.
    """

    def __init__(
        self,
        drive: WheelDrive,
        radius_error: float,
        steering_offset: SteeringOffset,
        seed: int,
        run: str,
        sensor: str,
    ) -> None:
        normals = stream(seed, run, sensor, 'wheel_radius').standard_normal(drive.wheels)
        self.radius_errors: FloatArray = radius_error * normals
        self.steering_offsets = steering_offset.draw(seed, run, sensor, drive.steered)
        # Those that are not zero by their law: first the radii, then the steering.
        radii = drive.wheels if radius_error > 0.0 else 0
        angles = drive.steered if steering_offset.bound > 0.0 else 0
        self._radii = radii
        self._drawn = slice(drive.wheels - radii, drive.wheels + angles)
        self._deviations: FloatArray = np.repeat(
            [radius_error, np.sqrt(steering_offset.variance)], [radii, angles]
        )
        self._points, self._weights = points_of([_NORMAL] * radii + [_UNIFORM] * angles)
        # Of robots with constants of these points.
        self._poses: FloatArray = np.zeros((len(self._weights), 3))

    def start_at(self, pose: FloatArray) -> None:
        """Begin at `pose`, `(3,)`, whatever the constants."""
        self._poses[:] = pose

    def step_changes(self, travels: FloatArray, derivatives: FloatArray) -> FloatArray:
        """Return what a standard deviation of each of the `m` not zero does to steps, `(n, 3, m)`.

        A radius is the factor of `travels` `(n, wheels)` m, as told; `derivatives`
        `(n, 3, wheels + steered)` are those of the steps by travels, then angles.
        """
        changes: FloatArray = derivatives[:, :, self._drawn] * self._deviations
        if self._radii:
            changes[:, :, : self._radii] *= travels[:, None, :]
        return changes

    def squares(self, poses: FloatArray, steps: FloatArray, changes: FloatArray) -> FloatArray:
        """Return the mean squares of the errors that stay in the next poses, `(n, 3, 3)`.

        `poses` `(n, 3)` are those told after each step, `steps` `(n, 3)` those told, less the
        means, and `changes` `(n, 3, m)` theirs; see `step_changes`.
        """
        found, self._poses = squares_about(
            poses, steps, changes, self._points, self._weights, self._poses
        )
        return found


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


@dataclasses.dataclass(frozen=True)
class WheelOdometryModel(SensorModel[OdometryArray], VariedParameters):
    """Wheel odometry: a drive, and what its encoders get wrong."""

    kind: ClassVar[str] = 'wheel_odometry'
    name: ClassVar[str] = 'wheels'
    noun: ClassVar[str] = 'a wheel odometry'
    preset: ClassVar[str] = 'swerve'
    topic: ClassVar[str] = 'wheel/odometry'
    message: ClassVar[str] = 'nav_msgs/msg/Odometry'
    node: ClassVar[str] = 'wheel_odometry_node'
    more_topics: ClassVar[tuple[str, ...]] = ('wheel/joint_states',)
    varied: ClassVar[Mapping[str, Registry[Any]]] = {'drive': WHEEL_DRIVES, 'noise': WHEEL_NOISES}

    rate: float = sample_rate(50.0, 'Odometry messages per second.')
    frame_id: str = parameter('odom', '', 'Frame of the poses.', read_only=True)
    child_frame_id: str = parameter(
        'base_link', '', 'Frame of the body, whose motion is reported.', read_only=True
    )
    lever_arm: Axes = lever_arm("drive's centre")
    initial_pose: str = parameter(
        'truth',
        '',
        'Pose of the first message. truth: the true one, if the robot knows where it starts; '
        'origin: zero.',
        choices=('truth', 'origin'),
        read_only=True,
    )
    encoder_counts: float = non_negative(
        0.0, '1', 'Counts of an encoder per turn of its wheel, at least 1; 0: no steps.'
    )
    radius_error: float = non_negative(
        0.0,
        '1',
        'Standard deviation of the relative error of the radius of each wheel, drawn once.',
        maximum=0.5,
    )
    speed_floor: float = non_negative(
        0.01, 'm/s', 'Least standard deviation stated of both velocities.'
    )
    yaw_rate_floor: float = non_negative(
        0.01, 'rad/s', 'Least standard deviation stated of the yaw rate.'
    )
    latency: float = latency()
    delivery: Delivery = dataclasses.field(default_factory=Delivery)
    drive: WheelDrive = dataclasses.field(default_factory=DifferentialWheels)
    noise: WheelNoise = dataclasses.field(default_factory=PerDistance)
    slip: Slip = dataclasses.field(default_factory=Slip)
    steering_offset: SteeringOffset = dataclasses.field(default_factory=SteeringOffset)

    def _check(self) -> None:
        if 0.0 < self.encoder_counts < 1.0:
            problem = f'{self.encoder_counts:g} is not allowed; must be 0 or >= 1'
            raise ParameterError(type(self).__name__, 'encoder_counts', problem)

    def start(self, seed: int, run: str, sensor: str = 'wheels') -> WheelOdometrySensor:
        """Switch the odometry on; see `SensorModel.start`."""
        return WheelOdometrySensor(self, seed, run, sensor)


class WheelOdometrySensor(Sensor[WheelMeasurement]):
    """Wheel odometry that is switched on. Made by `WheelOdometryModel.start`.

    The first message has the initial pose, and the velocities of a step that led there.

    Attributes
    ----------
    encoders : Encoders
        What its wheels are measured with.
    constants : WheelConstants
        Errors of its wheels and their steering that stay.
    """

    model: WheelOdometryModel

    def __init__(self, model: WheelOdometryModel, seed: int, run: str, sensor: str) -> None:
        drive = model.drive
        super().__init__(model, seed, run, sensor, first_interval=1.0 / model.rate)
        self.constants = WheelConstants(
            drive, model.radius_error, model.steering_offset, seed, run, sensor
        )
        self.encoders = Encoders(
            drive, model.noise, model.slip, model.encoder_counts, seed, run, sensor
        )
        self._place: tuple[FloatArray, FloatArray] | None = None
        self._angles: FloatArray = np.zeros(drive.steered)
        self._rolled: FloatArray = np.zeros((2, drive.wheels))
        # Of perfect wheels, and as told.
        self._pose: FloatArray = np.zeros((2, 3))
        self._covariance: FloatArray = np.zeros((3, 3))
        self._height = 0.0

    def _measure(self, truth: Trajectory, dt: FloatArray) -> WheelMeasurement:
        model, drive = self.model, self.model.drive
        is_first = self._place is None
        steps = self._steps(truth, dt)
        travels, angles = drive.inverse(_steps_at(steps, model.lever_arm, 1.0), self._angles)
        if len(angles):
            self._angles = angles[-1].copy()
        perfect = self._of_body(drive.forward(travels, angles))
        told = self.encoders.read(travels, self.constants.radius_errors)
        tilted = angles + self.constants.steering_offsets
        erring = self._of_body(drive.forward(told, tilted))
        # What slips add on average is the same share of every travel.
        mean = told / (1.0 + model.slip.mean), tilted - model.steering_offset.mean
        middle = self._of_body(drive.forward(*mean))
        derivatives = self._of_body(drive.derivatives(*mean))
        changes = self.constants.step_changes(mean[0], derivatives)
        white = self._white(derivatives, self.encoders.variance(mean[0]))
        counted = slice(1, None) if is_first else slice(None)
        true_poses, _ = self._walk(0, perfect, counted)
        poses, before = self._walk(1, erring, counted)
        covariances = np.zeros((len(truth), 3, 3))
        covariances[counted] = planar.pose_covariances(
            before, erring[counted], white[counted], self._covariance
        )
        if len(truth):
            self._covariance = covariances[-1].copy()
        # Mean squares about the truth: a mean is no variance, but an error all the same.
        covariances[counted] += self.constants.squares(
            poses[counted], middle[counted], changes[counted]
        )
        return WheelMeasurement(
            pose=poses,
            velocity=erring / dt[:, None],
            pose_covariance=covariances,
            velocity_covariance=self._velocity_covariance(
                white
                + planar.squares_of(changes)
                + planar.squares_of((erring - middle)[:, :, None]),
                derivatives,
                dt,
            ),
            true_pose=true_poses,
            true_velocity=perfect / dt[:, None],
            wheel_angle=self._roll(1, told, counted),
            steering_angle=tilted,
            true_wheel_angle=self._roll(0, travels, counted),
            true_steering_angle=angles,
            height=self._height,
            child_frame=model.child_frame_id,
        )

    def _steps(self, truth: Trajectory, dt: FloatArray) -> FloatArray:
        """Return the true steps to each sample; to the first, as the velocity there has it."""
        if not len(truth):
            return np.zeros((0, 3))
        position, orientation = truth.position, truth.orientation
        if self._place is None:
            steps = np.empty((len(truth), 3))
            velocity = rotations.rotate_back(orientation[:1], truth.velocity[:1])[0]
            steps[0] = dt[0] * np.array([*velocity[:2], truth.angular_velocity[0, 2]])
            steps[1:] = planar.body_steps(position, orientation)
            if self.model.initial_pose == 'truth':
                heading = planar.heading_of(*orientation[0])
                self._pose[:] = position[0, 0], position[0, 1], heading
                self.constants.start_at(self._pose[0])
                self._height = float(position[0, 2])
        else:
            steps = planar.body_steps(
                np.concatenate([self._place[0], position]),
                np.concatenate([self._place[1], orientation]),
            )
        self._place = position[-1:].copy(), orientation[-1:].copy()
        return steps

    def _of_body(self, steps: FloatArray) -> FloatArray:
        return _steps_at(steps, self.model.lever_arm, -1.0)

    def _white(self, derivatives: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the covariance of the body's steps, `(n, 3, 3)`, for variances of travels."""
        by_travels = derivatives[:, :, : self.model.drive.wheels]
        return planar.squares_of(by_travels * np.sqrt(variance)[:, None, :])

    def _velocity_covariance(
        self, spread: FloatArray, derivatives: FloatArray, dt: FloatArray
    ) -> FloatArray:
        """Return the covariance of the velocities: `spread` of the steps, counting, and the floor.

        A whole count is no error that adds up, so that poses have it not.
        """
        model, total = self.model, spread
        if model.encoder_counts > 0.0:
            variance = np.full((len(dt), model.drive.wheels), self.encoders.variance_of_counting)
            total = total + self._white(derivatives, variance)
        floor = np.diag([model.speed_floor**2, model.speed_floor**2, model.yaw_rate_floor**2])
        return total / (dt * dt)[:, None, None] + floor

    def _walk(self, row: int, steps: FloatArray, counted: slice) -> tuple[FloatArray, FloatArray]:
        """Return the poses at the samples, and the headings before the steps that count."""
        start = self._pose[row].copy()
        poses = np.tile(start, (len(steps), 1))
        poses[counted] = planar.poses_after(start, steps[counted])
        if len(poses):
            self._pose[row] = poses[-1]
        moved = poses[counted, 2]
        return poses, np.concatenate([start[2:], moved[:-1]]) if len(moved) else moved

    def _roll(self, row: int, travels: FloatArray, counted: slice) -> FloatArray:
        """Return the angles of the wheels since the first sample, `(n, wheels)` rad."""
        rolled = np.tile(self._rolled[row], (len(travels), 1))
        rolled[counted] = accumulated(self._rolled[row], travels[counted])[1:]
        if len(rolled):
            self._rolled[row] = rolled[-1]
        return rolled / self.model.drive.wheel_radius


def _steps_at(steps: FloatArray, arm: tuple[float, float, float], sign: float) -> FloatArray:
    """Return steps of the point at `sign` times `arm`: the adjoint of SE(2).

    Also their derivatives, `(n, 3, m)`, as it is linear.
    """
    moved: FloatArray = steps.copy()
    moved[:, 0] -= sign * arm[1] * steps[:, 2]
    moved[:, 1] += sign * arm[0] * steps[:, 2]
    return moved


load_wheels, simulate = WheelOdometryModel.load, WheelOdometryModel.simulate
