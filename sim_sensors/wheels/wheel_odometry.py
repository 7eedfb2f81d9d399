# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Wheel odometry: true motion in, odometry of wheels with errors out.

Source: [FRC3176], extended to other drives than the swerve. The inverse kinematics of the drive
give the travel of the wheels between stamps. Noise, slips, wrong radii, quantisation of the
encoders and zero errors of the steering are added. The forward kinematics give the step of the
body, and the exponential of SE(2) adds it to the pose.
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
from sim_sensors.motion.planar import sigma_point_squares
from sim_sensors.sensor.delivery import Delivery
from sim_sensors.sensor.sensor import Measurement, Sensor, SensorModel
from sim_sensors.sensor.sensor import simulate as simulate
from .encoders import (
    WHEEL_DRIVES,
    WHEEL_NOISES,
    DifferentialWheels,
    Encoders,
    PerDistance,
    Slip,
    SteeringOffset,
    WheelDrive,
    WheelNoise,
    accumulate_rows,
)

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Trajectory

# Up to this many numbers, the corners have all combinations of signs. The signs of each further
# number are the product of the columns below.
_MAX_FREE_SIGNS = 6
_PRODUCTS = ([0, 1, 2, 3], [0, 1, 4, 5])


def points_of(kurtosis: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Return weighted points with the moments of independent random numbers up to the fourth.

    The numbers have symmetric distributions with mean 0 and variance 1. The weighted mean over the
    points is exact for every polynomial of degree four, and so for the square of a quadratic form.

    It is a central composite design (G. E. P. Box and K. B. Wilson, 1951): corners (+-a, .., +-a)
    of total weight r^2, a pair +-b_i on each axis, and the centre. The moments x_i^2, x_i^4 and
    x_i^2 x_j^2 are 1, k_i and 1 if a^2 = 1/r, b_i^2 = (k_i - 1)/(1 - r) and the weight of each
    point of a pair is (1 - r)^2 / (2 (k_i - 1)). No weight is negative if r >= (s - 1)/(s + 1),
    where s is the sum of 1/(k_i - 1).

    Parameters
    ----------
    kurtosis : sequence of float
        Fourth moments k_i > 1 of at most 8 numbers: 3 for a normal, 1.8 for a uniform one.

    Returns
    -------
    points : (p, m)
        81 points for eight numbers, 25 for four, 1 for none.
    weights : (p,)
        Weights, whose sum is 1.
    """
    m = len(kurtosis)
    if not m:
        return np.zeros((1, 0)), np.ones(1)
    excess = np.asarray(kurtosis, dtype=float) - 1.0
    total = float((1.0 / excess).sum())
    r = max(0.5, (total - 1.0) / (total + 1.0))
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=min(m, _MAX_FREE_SIGNS))))
    # Products of four columns each: no product of four or fewer columns is then constant.
    products = [
        signs[:, columns].prod(axis=1) for columns in _PRODUCTS[: max(m - _MAX_FREE_SIGNS, 0)]
    ]
    corners = np.column_stack([signs, *products])
    axes = np.diag(np.sqrt(excess / (1.0 - r)))
    axis_weights = (1.0 - r) ** 2 / (2.0 * excess)
    points = np.concatenate([corners / np.sqrt(r), axes, -axes, np.zeros((1, m))])
    corner_weights = np.full(len(corners), r * r / len(corners))
    centre = max(1.0 - r * r - 2.0 * axis_weights.sum(), 0.0)
    return points, np.concatenate([corner_weights, axis_weights, axis_weights, [centre]])


# Fourth moments at variance 1. Whole degrees from -4 to 3 have 1.76, close to a uniform number.
_NORMAL, _UNIFORM = 3.0, 1.8


class WheelConstants:
    """Constant errors of the wheels of one robot, and their effect on its pose.

    The errors of wheel radii and steering zeros are drawn once. Their effect grows with the
    distance: after n equal steps on a line it is n times that of one step, while white noise grows
    by sqrt(n). They also bend the path: with an unknown zero of the steering, the possible poses
    lie on an arc. Its sagitta, an effect of second order, soon exceeds all white noise.

    Several hypothetical robots with different constants are therefore tracked. Let s be a measured
    step without the mean of its error, and c_i its derivative by constant i times the standard
    deviation of that constant. The steps of robot j are::

        s + sum of c_i x_ij

    The points x_j with weights w_j have the moments of the constants up to the fourth; see
    `points_of`. The mean square error of the measured pose p is then::

        sum of w_j (p - p_j) (p - p_j)'

    which includes the means and the second order of the bends. For a single step it is the sum of
    c_i c_i'.

    Parameters
    ----------
    radius_error : float
        Standard deviation of the relative errors of the radii.
    steering_offset : SteeringOffset
        Distribution of the errors of the steering zeros.

    Attributes
    ----------
    radius_errors : (wheels,)
        Relative errors of the radii.
    steering_offsets : (steered,)
        Errors of the measured steering angles, rad.
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
        # Constants that are always zero are left out. The radii come first, then the steering.
        radii = drive.wheels if radius_error > 0.0 else 0
        angles = drive.steered if steering_offset.bound > 0.0 else 0
        self._radii = radii
        self._constants = slice(drive.wheels - radii, drive.wheels + angles)
        self._deviations: FloatArray = np.repeat(
            [radius_error, np.sqrt(steering_offset.variance)], [radii, angles]
        )
        self._points, self._weights = points_of([_NORMAL] * radii + [_UNIFORM] * angles)
        # Poses of the robots with the constants of these points.
        self._poses: FloatArray = np.zeros((len(self._weights), 3))

    def start_at(self, pose: FloatArray) -> None:
        """Set the initial pose, `(3,)`, of all robots."""
        self._poses[:] = pose

    def step_changes(self, travels: FloatArray, derivatives: FloatArray) -> FloatArray:
        """Return the change of the steps by one standard deviation of each constant, `(n, 3, m)`.

        `travels` `(n, wheels)` m are the measured ones. `derivatives` `(n, 3, wheels + steered)`
        are those of the steps by the travels, then by the angles.
        """
        changes: FloatArray = derivatives[:, :, self._constants] * self._deviations
        if self._radii:
            changes[:, :, : self._radii] *= travels[:, None, :]
        return changes

    def squares(self, poses: FloatArray, steps: FloatArray, changes: FloatArray) -> FloatArray:
        """Return the mean square errors of the next poses due to the constants, `(n, 3, 3)`.

        `poses` `(n, 3)` are the measured poses after each step, `steps` `(n, 3)` the measured
        steps without the mean errors, and `changes` `(n, 3, m)` the result of `step_changes`.
        """
        mean_squares, self._poses = sigma_point_squares(
            poses, steps, changes, self._points, self._weights, self._poses
        )
        return mean_squares


# Variance of z, roll and pitch, which wheels do not measure, as in diff_drive_controller of
# ros2_control.
_UNMEASURED = 1e6
# Indices of x, y and the rotation about z in the covariance of a message.
_PLANAR = np.ix_([0, 1, 5], [0, 1, 5])


@dataclasses.dataclass(frozen=True, eq=False)
class WheelMeasurement(Measurement[OdometryArray]):
    """Odometry of wheels with errors and of perfect wheels.

    True poses and velocities are those of perfect wheels. For a drive that measures the whole
    motion (a swerve), they are the true motion itself.
    """

    pose: FloatArray  # (n, 3) x, y in m and heading in rad, not wrapped
    # Mean since the previous sample, (n, 3): forward, left in m/s and yaw rate in rad/s.
    velocity: FloatArray
    # Stated covariances, (n, 3, 3), in the same order.
    pose_covariance: FloatArray
    velocity_covariance: FloatArray
    true_pose: FloatArray
    true_velocity: FloatArray
    wheel_angle: FloatArray  # (n, wheels) rotation since the first sample, rad
    steering_angle: FloatArray  # (n, steered) rad, to the left of forward
    true_wheel_angle: FloatArray
    true_steering_angle: FloatArray
    height: float  # z of the poses, m
    child_frame: str  # frame of the body

    def messages(self, stamp_ns: IntArray, frame: str) -> OdometryArray:
        """Return nav_msgs/Odometry arrays stamped `stamp_ns`, arriving at once."""
        covariances = (
            _expand_covariance(self.pose_covariance),
            _expand_covariance(self.velocity_covariance),
        )
        return self._odometry(stamp_ns, frame, self.pose, self.velocity, *covariances)

    def true_messages(self, stamp_ns: IntArray, frame: str) -> OdometryArray:
        """Return the odometry of wheels without errors, with covariances of zero."""
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


def _expand_covariance(planar: FloatArray) -> FloatArray:
    full = np.zeros((len(planar), 6, 6))
    full[:, [2, 3, 4], [2, 3, 4]] = _UNMEASURED
    full[:, _PLANAR[0], _PLANAR[1]] = planar
    return full


@dataclasses.dataclass(frozen=True)
class WheelOdometryModel(SensorModel[OdometryArray], VariedParameters):
    """Wheel odometry: a drive and the errors of its encoders."""

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
    child_frame_id: str = parameter('base_link', '', 'Frame of the body.', read_only=True)
    lever_arm: Axes = lever_arm("drive's centre")
    initial_pose: str = parameter(
        'truth',
        '',
        'Pose of the first message. truth: the true pose, as if the robot knew it; origin: zero.',
        choices=('truth', 'origin'),
        read_only=True,
    )
    encoder_counts: float = non_negative(
        0.0, '1', 'Counts of an encoder per turn of its wheel, at least 1; 0: not quantised.'
    )
    radius_error: float = non_negative(
        0.0,
        '1',
        'Standard deviation of the relative error of the radius of each wheel, drawn once.',
        maximum=0.5,
    )
    left_radius_error: float = parameter(
        0.0,
        '1',
        'Fixed relative error of the radii of the left wheels, in addition to radius_error; '
        'positive: assumed too large.',
        minimum=-0.5,
        maximum=0.5,
    )
    right_radius_error: float = parameter(
        0.0, '1', 'The same for the right wheels.', minimum=-0.5, maximum=0.5
    )
    half_track_error: float = parameter(
        0.0,
        '1',
        'Fixed relative error of the distance between left and right wheels (half_track, '
        'module_y); positive: assumed too wide, so that turns are measured too small.',
        minimum=-0.5,
        maximum=0.5,
    )
    speed_floor: float = non_negative(
        0.01, 'm/s', 'Smallest stated standard deviation of both velocities.'
    )
    yaw_rate_floor: float = non_negative(
        0.01, 'rad/s', 'Smallest stated standard deviation of the yaw rate.'
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
        self.assumed_drive()

    def assumed_drive(self) -> WheelDrive:
        """Return the drive with which the robot converts travels to its motion."""
        error = self.half_track_error
        return self.drive.with_track_scale(1.0 + error) if error else self.drive

    def start(self, seed: int, run: str, sensor: str = 'wheels') -> WheelOdometrySensor:
        """Switch the odometry on; see `SensorModel.start`."""
        return WheelOdometrySensor(self, seed, run, sensor)


class WheelOdometrySensor(Sensor[WheelMeasurement]):
    """Running wheel odometry: a model and its state. Made by `WheelOdometryModel.start`.

    The first message has the initial pose and the velocities of the interval before it.

    Attributes
    ----------
    encoders : Encoders
        Encoders of the wheels.
    constants : WheelConstants
        Constant errors of the wheels and their steering.
    """

    model: WheelOdometryModel

    def __init__(self, model: WheelOdometryModel, seed: int, run: str, sensor: str) -> None:
        drive = model.drive
        super().__init__(model, seed, run, sensor, first_interval=1.0 / model.rate)
        self._assumed = model.assumed_drive()
        self._fixed_errors: FloatArray = np.where(
            drive.sides > 0.0, model.left_radius_error, model.right_radius_error
        )
        self.constants = WheelConstants(
            drive, model.radius_error, model.steering_offset, seed, run, sensor
        )
        self.encoders = Encoders(
            drive, model.noise, model.slip, model.encoder_counts, seed, run, sensor
        )
        self._last_pose: tuple[FloatArray, FloatArray] | None = None
        self._angles: FloatArray = np.zeros(drive.steered)
        self._rolled: FloatArray = np.zeros((2, drive.wheels))
        # Row 0: wheels without errors; row 1: as measured.
        self._pose: FloatArray = np.zeros((2, 3))
        self._covariance: FloatArray = np.zeros((3, 3))
        self._height = 0.0

    def _measure(self, truth: Trajectory, dt: FloatArray) -> WheelMeasurement:
        model, drive = self.model, self.model.drive
        is_first = self._last_pose is None
        body_steps = self._true_steps(truth, dt)
        travels, angles = drive.inverse(_steps_at(body_steps, model.lever_arm, 1.0), self._angles)
        if len(angles):
            self._angles = angles[-1].copy()
        true_steps = self._at_body(drive.forward(travels, angles))
        radius_errors = self.constants.radius_errors + self._fixed_errors
        measured_travels = self.encoders.read(travels, radius_errors)
        measured_angles = angles + self.constants.steering_offsets
        steps = self._at_body(self._assumed.forward(measured_travels, measured_angles))
        # The mean contributions of slips and wrong radii are the same share of every travel.
        unbiased_travels = measured_travels / (1.0 + model.slip.mean + self._fixed_errors)
        unbiased = unbiased_travels, measured_angles - model.steering_offset.mean
        unbiased_steps = self._at_body(drive.forward(*unbiased))
        derivatives = self._at_body(drive.derivatives(*unbiased))
        changes = self.constants.step_changes(unbiased_travels, derivatives)
        white = self._step_covariance(derivatives, self.encoders.variance(unbiased_travels))
        # The step before the first message does not move the pose.
        integrated = slice(1, None) if is_first else slice(None)
        true_poses, _ = self._integrate(0, true_steps, integrated)
        poses, headings = self._integrate(1, steps, integrated)
        covariances = np.zeros((len(truth), 3, 3))
        covariances[integrated] = planar.pose_covariances(
            headings, steps[integrated], white[integrated], self._covariance
        )
        if len(truth):
            self._covariance = covariances[-1].copy()
        # The mean square errors due to the constants are about the truth, so they include the
        # mean.
        covariances[integrated] += self.constants.squares(
            poses[integrated], unbiased_steps[integrated], changes[integrated]
        )
        return WheelMeasurement(
            pose=poses,
            velocity=steps / dt[:, None],
            pose_covariance=covariances,
            velocity_covariance=self._velocity_covariance(
                white
                + planar.sum_squared_columns(changes)
                + planar.sum_squared_columns((steps - unbiased_steps)[:, :, None]),
                derivatives,
                dt,
            ),
            true_pose=true_poses,
            true_velocity=true_steps / dt[:, None],
            wheel_angle=self._accumulate_angles(1, measured_travels, integrated),
            steering_angle=measured_angles,
            true_wheel_angle=self._accumulate_angles(0, travels, integrated),
            true_steering_angle=angles,
            height=self._height,
            child_frame=model.child_frame_id,
        )

    def _true_steps(self, truth: Trajectory, dt: FloatArray) -> FloatArray:
        """Return the true step to each sample; the first one follows from the velocity."""
        if not len(truth):
            return np.zeros((0, 3))
        position, orientation = truth.position, truth.orientation
        if self._last_pose is None:
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
                np.concatenate([self._last_pose[0], position]),
                np.concatenate([self._last_pose[1], orientation]),
            )
        self._last_pose = position[-1:].copy(), orientation[-1:].copy()
        return steps

    def _at_body(self, steps: FloatArray) -> FloatArray:
        return _steps_at(steps, self.model.lever_arm, -1.0)

    def _step_covariance(self, derivatives: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the covariance of the body's steps, `(n, 3, 3)`, for variances of travels."""
        by_travels = derivatives[:, :, : self.model.drive.wheels]
        return planar.sum_squared_columns(by_travels * np.sqrt(variance)[:, None, :])

    def _velocity_covariance(
        self, step_covariance: FloatArray, derivatives: FloatArray, dt: FloatArray
    ) -> FloatArray:
        """Return the covariance of the velocities, from the steps, the quantisation and the floor.

        Quantisation errors do not add up, so the covariance of the poses does not include them.
        """
        model, total = self.model, step_covariance
        if model.encoder_counts > 0.0:
            variance = np.full((len(dt), model.drive.wheels), self.encoders.variance_of_counting)
            total = total + self._step_covariance(derivatives, variance)
        floor = np.diag([model.speed_floor**2, model.speed_floor**2, model.yaw_rate_floor**2])
        return total / (dt * dt)[:, None, None] + floor

    def _integrate(
        self, row: int, steps: FloatArray, integrated: slice
    ) -> tuple[FloatArray, FloatArray]:
        """Return the poses at the samples, and the headings before the integrated steps."""
        start = self._pose[row].copy()
        poses = np.tile(start, (len(steps), 1))
        poses[integrated] = planar.poses_after(start, steps[integrated])
        if len(poses):
            self._pose[row] = poses[-1]
        headings = poses[integrated, 2]
        return poses, np.concatenate([start[2:], headings[:-1]]) if len(headings) else headings

    def _accumulate_angles(self, row: int, travels: FloatArray, integrated: slice) -> FloatArray:
        """Return the rotations of the wheels since the first sample, `(n, wheels)` rad."""
        rolled = np.tile(self._rolled[row], (len(travels), 1))
        rolled[integrated] = accumulate_rows(self._rolled[row], travels[integrated])[1:]
        if len(rolled):
            self._rolled[row] = rolled[-1]
        return rolled / self.model.drive.wheel_radius


def _steps_at(steps: FloatArray, arm: tuple[float, float, float], sign: float) -> FloatArray:
    """Return the steps of the point at `sign` times `arm`, by the adjoint of SE(2).

    `steps` are `(n, 3)`, or derivatives of steps, `(n, 3, m)`, since the map is linear.
    """
    shifted: FloatArray = steps.copy()
    shifted[:, 0] -= sign * arm[1] * steps[:, 2]
    shifted[:, 1] += sign * arm[0] * steps[:, 2]
    return shifted


load_wheels = WheelOdometryModel.load
