# SPDX-License-Identifier: Apache-2.0
"""Wheel odometry: true motion in, odometry of wheels that err out, beside that of perfect ones.

Source: [FRC3176], with drives besides the swerve. From each stamp to the
next the wheels roll as the kinematics of the drive have it; noise, slips, wrong radii, encoder
steps and wrong zeros of the steering are added; the forward kinematics give the step of the body,
and the exponential of SE(2) the pose.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sim_sensors.core import rotations
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray, OdometryArray
from sim_sensors.core.parameters import VariedParameters, non_negative, parameter
from sim_sensors.core.registry import Registry
from sim_sensors.core.shared_parameters import Axes, latency, lever_arm, sample_rate
from sim_sensors.motion import planar
from sim_sensors.sensor.delivery import Delivery
from sim_sensors.sensor.sensor import Sensor, SensorModel
from .constants import WheelConstants
from .drives import WHEEL_DRIVES, DifferentialWheels, WheelDrive
from .encoders import Encoders, Slip, accumulated
from .noise import WHEEL_NOISES, PerDistance, SteeringOffset, WheelMeasurement, WheelNoise

if TYPE_CHECKING:
    from sim_sensors.motion.trajectory import Trajectory


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
