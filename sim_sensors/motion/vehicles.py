# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Kinematics of wheeled robots, and the Ackermann digital twin of the ART vehicle.

Published (dART.json and the 4-DOF configuration of [SBEL]): distances of the centre of gravity to
the axles, mass, yaw inertia, largest steering angle, wheel radius; the 4-DOF motor model with its
gear ratio gamma, stall torque tau_0, no-load speed omega_0 and resistance c_1 w + c_0; integration
step 1 ms.

Assumed, as no values are published: the whole mass instead of the wheel inertia of the 4-DOF
model, the critically damped steering servo, the first-order lag of the motor controller, and the
smoothing of the constant resistance around rest.

The motion is that of the kinematic bicycle, without yaw inertia and tyre forces. At the paper's
throttle of 0.75, the motor constants give 0.57 m/s. The sharpest turn (radius 1 m) then needs a
lateral acceleration of 0.3 m/s^2, a thirtieth of what tyres hold, and slip angles would be a
fraction of a degree.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sim_sensors.core import rotations
from sim_sensors.core.compilation import compiled, row_loop, scalar_kernel
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter, positive
from .planar import Pose, advance
from .trajectory import Trajectory

_State = tuple[float, float, float, float, float, float, float]
"""x, y (rear axle, m), heading (rad), speed (m/s), steer (rad), steer rate (rad/s), drive (1)."""

_Constants = tuple[float, float, float, float, float, float, float, float, float, float]
"""Wheelbase, leverage and inertia at the motor, stall torque, no-load rate, linear and constant
resistance, motor lag, steering lag, largest torque of gravity."""

GRAVITY = 9.80665
"""Gravity on the vehicles, m/s^2."""

REST_RATE = 0.5
"""Motor rate over which the constant resistance sets in, rad/s."""


@dataclasses.dataclass(frozen=True)
class VehicleState:
    """Position [m], heading [rad] and speed [m/s] of the rear axle.

    The heading is counterclockwise from east, not wrapped.
    """

    x: float
    y: float
    heading: float
    speed: float


@dataclasses.dataclass(frozen=True)
class VehicleCommand:
    """Command of a controller: throttle 0 to 1, steering -1 (full right) to 1 (full left).

    Values outside these ranges are clipped.
    """

    throttle: float
    steering: float


Controller = Callable[[float, VehicleState], VehicleCommand]
"""Function of time (s) and state that returns a command; called at the control rate."""


@dataclasses.dataclass(frozen=True)
class AckermannVehicle(Parameters):
    """Vehicle with front steering: kinematic bicycle with a motor and a steering servo.

    Motion of the rear axle with wheelbase L, wheel radius r, motor rate w = v / (gamma r), drive u
    and steering angle d:

        x' = v cos psi,  y' = v sin psi,  psi' = v tan(d) / L
        v' = T / (gamma r m) - g sin(incline) cos psi
        T = tau_0 (u - w / omega_0) - c_1 w - c_0 tanh(w / 0.5 rad/s)
        u' = (throttle - u) / motor_lag
        d'' = (d_command - d) / tau^2 - 2 d' / tau,  d_command = steering max_steer

    The motor never brakes below rest, and the vehicle never rolls back: the speed stays >= 0.

    The ground is a plane that rises to the east. Position, heading and speed above are those in
    this plane, and the motion is turned with it: the vehicle climbs, pitches and rolls.
    """

    mass: float = positive(5.76436, 'kg', 'Mass.')
    cg_to_front: float = non_negative(
        0.268377, 'm', 'From the centre of gravity to the front axle.'
    )
    cg_to_rear: float = non_negative(0.196863, 'm', 'From the rear axle to the centre of gravity.')
    max_steer: float = non_negative(0.436332, 'rad', 'Largest steering angle.', maximum=1.5)
    wheel_radius: float = positive(0.08451952624, 'm', 'Wheel radius.')
    gear_ratio: float = positive(1.0 / 3.0, '1', 'gamma: wheel rate over motor rate.')
    stall_torque: float = non_negative(0.3, 'N m', 'tau_0 of the motor.')
    no_load_rate: float = positive(30.0, 'rad/s', 'omega_0 of the motor.')
    linear_resistance: float = non_negative(1e-4, 'N m s', 'c_1 at the motor.')
    constant_resistance: float = non_negative(0.02, 'N m', 'c_0 at the motor.')
    motor_lag: float = positive(0.1, 's', 'Time constant of the motor controller.')
    steering_lag: float = positive(0.05, 's', 'tau of the steering servo.')
    incline: float = parameter(
        0.0,
        'rad',
        'Inclination of the ground, which rises to the east.',
        minimum=-0.5,
        maximum=0.5,
    )

    @property
    def ground(self) -> FloatArray:
        """Orientation x y z w `(1, 4)` of the plane of the ground in the world."""
        return rotations.exp(np.array([[0.0, -self.incline, 0.0]]))

    @property
    def wheelbase(self) -> float:
        """Distance of the axles, m."""
        return self.cg_to_front + self.cg_to_rear

    def top_speed(self, throttle: float) -> float:
        """Return the speed at which motor and resistance balance on level ground, m/s."""
        return self._balanced_speed(self.stall_torque * throttle)

    def downhill_speed(self, throttle: float) -> float:
        """Return the speed at which motor, resistance and gravity balance downhill, m/s."""
        return self._balanced_speed(self.stall_torque * throttle + abs(self._gravity_torque))

    def _balanced_speed(self, torque: float) -> float:
        torque_per_rate = self.stall_torque / self.no_load_rate + self.linear_resistance
        rate = (torque - self.constant_resistance) / torque_per_rate
        return max(rate, 0.0) * self.gear_ratio * self.wheel_radius

    @property
    def _gravity_torque(self) -> float:
        """Torque of gravity at the motor against a drive to the east, N m."""
        weight = self.mass * GRAVITY * math.sin(self.incline)
        return self.gear_ratio * self.wheel_radius * weight

    def throttle_at(self, speed: float) -> float:
        """Return the throttle whose top speed on level ground is `speed` m/s, 0 to 1."""
        rate = speed / (self.gear_ratio * self.wheel_radius)
        resistance = self.linear_resistance * rate + self.constant_resistance
        throttle = rate / self.no_load_rate + resistance / self.stall_torque
        return min(throttle, 1.0) if speed > 0.0 else 0.0

    def drive(
        self,
        controller: Controller,
        *,
        duration: float,
        start: VehicleState,
        control_rate: float = 10.0,
        step: float = 1e-3,
    ) -> Trajectory:
        """Drive and return the motion of the centre of gravity, one sample per integration step.

        The integrator is the classical Runge-Kutta method of fourth order. The command is held
        between control times, so no step contains a jump if `control_rate * step` divides 1.
        Accelerations follow from the equations of motion and are continuous. The controller is
        called at 0, 1/control_rate, ... s; at the start the wheels are straight and the motor is
        off.
        """
        count = round(duration / step)
        period = max(1, round(1.0 / (control_rate * step)))
        leverage = self.gear_ratio * self.wheel_radius
        constants = (
            self.wheelbase, leverage, leverage * self.mass, self.stall_torque, self.no_load_rate,
            self.linear_resistance, self.constant_resistance, self.motor_lag, self.steering_lag,
            self._gravity_torque,
        )  # fmt: skip
        time = np.arange(count + 1, dtype=np.float64) * step
        samples = np.empty((count + 1, 7))
        pose = (float(start.x), float(start.y), float(start.heading), float(start.speed))
        state = (*pose, 0.0, 0.0, 0.0)
        for first in range(0, count + 1, period):
            command = controller(first * step, VehicleState(*state[:4]))
            throttle = float(min(max(command.throttle, 0.0), 1.0))
            steering = min(max(command.steering, -1.0), 1.0) * self.max_steer
            rows = samples[first : first + period]
            state = _advance(rows, state, throttle, steering, step, constants)
        return self._trajectory(time, samples)

    def _trajectory(self, time: FloatArray, samples: FloatArray) -> Trajectory:
        x, y, heading, speed, steer, steer_rate, acceleration = samples.T
        curvature = np.tan(steer) / self.wheelbase
        curvature_rate = steer_rate / (np.cos(steer) ** 2 * self.wheelbase)
        yaw_rate = speed * curvature
        rear_axle = Trajectory.level(
            time,
            (x, y),
            heading,
            speed,
            (acceleration, speed * yaw_rate),
            (yaw_rate, acceleration * curvature + speed * curvature_rate),
        )
        motion = rear_axle.at_lever_arm((self.cg_to_rear, 0.0, 0.0))
        return motion.turned(self.ground) if self.incline else motion


@row_loop
def _advance(
    samples: FloatArray,
    state: _State,
    throttle: float,
    steering: float,
    step: float,
    constants: _Constants,
) -> _State:
    """Write a sample per step and return the state after the last; the command is held.

    A sample is x, y, heading, speed, steering angle, its rate, and acceleration.
    """
    half, sixth = 0.5 * step, step / 6.0
    for index in range(len(samples)):
        a = _rates(state, throttle, steering, constants)
        for column in range(6):
            samples[index, column] = state[column]
        samples[index, 6] = a[3]
        b = _rates(_add_step(state, a, half), throttle, steering, constants)
        c = _rates(_add_step(state, b, half), throttle, steering, constants)
        d = _rates(_add_step(state, c, step), throttle, steering, constants)
        state = (
            state[0] + sixth * (a[0] + 2.0 * b[0] + 2.0 * c[0] + d[0]),
            state[1] + sixth * (a[1] + 2.0 * b[1] + 2.0 * c[1] + d[1]),
            state[2] + sixth * (a[2] + 2.0 * b[2] + 2.0 * c[2] + d[2]),
            max(state[3] + sixth * (a[3] + 2.0 * b[3] + 2.0 * c[3] + d[3]), 0.0),
            state[4] + sixth * (a[4] + 2.0 * b[4] + 2.0 * c[4] + d[4]),
            state[5] + sixth * (a[5] + 2.0 * b[5] + 2.0 * c[5] + d[5]),
            state[6] + sixth * (a[6] + 2.0 * b[6] + 2.0 * c[6] + d[6]),
        )
    return state


@scalar_kernel
def _rates(state: _State, throttle: float, steering: float, constants: _Constants) -> _State:
    _, _, heading, speed, steer, steer_rate, drive = state
    wheelbase, leverage, inertia, stall, no_load, linear, constant, lag, tau, gravity = constants
    rate = speed / leverage
    torque = (
        stall * (drive - rate / no_load) - linear * rate - constant * math.tanh(rate / REST_RATE)
    ) - gravity * math.cos(heading)
    if speed <= 0.0:
        torque = max(torque, 0.0)
    return (
        speed * math.cos(heading),
        speed * math.sin(heading),
        speed * math.tan(steer) / wheelbase,
        torque / inertia,
        steer_rate,
        ((steering - steer) / tau - 2.0 * steer_rate) / tau,
        (throttle - drive) / lag,
    )


@scalar_kernel
def _add_step(state: _State, rates: _State, step: float) -> _State:
    return (
        state[0] + step * rates[0],
        state[1] + step * rates[1],
        state[2] + step * rates[2],
        state[3] + step * rates[3],
        state[4] + step * rates[4],
        state[5] + step * rates[5],
        state[6] + step * rates[6],
    )


ART = AckermannVehicle()
"""The vehicle of the paper."""


class WheelRates(NamedTuple):
    """Rates of the two wheels, rad/s, positive forward."""

    left: float
    right: float


class RobotState(NamedTuple):
    """State of a robot at one time.

    `pose` is the pose of the middle between the wheels. `wheels` are the rates of the wheels, with
    or without slip. `speed` and `yaw_rate` are over the ground, m/s and rad/s.
    """

    pose: Pose
    wheels: WheelRates
    speed: float
    yaw_rate: float


@dataclasses.dataclass(frozen=True)
class DifferentialDrive(Parameters):
    """Differential-drive robot on level ground [Cesenek2019].

    R is the wheel radius, L HALF the track, and l and r are the rates of the wheels:

        v = R (l + r) / 2,           w = R (r - l) / (2 L)
        l = (v - L w) / R,           r = (v + L w) / R

    The source prints the second line, (3.18) and (3.19), with both signs of L reversed, which
    contradicts its first line (3.14). Here each line is the inverse of the other.

    A wheel follows its command with a lag, w' = (command - w) / wheel_lag, limited by
    max_wheel_acceleration and max_wheel_rate. The part of the wheel rate that is not lost to slip
    moves the robot, which follows the exponential of SE(2) over each step.

    A robot without lag, limits, slip and noise is perfect. All but the lag are off by default.
    """

    wheel_radius: float = positive(0.1, 'm', 'R, radius of the wheels.')
    half_track: float = positive(0.2, 'm', 'L, half the distance between the wheels.')
    wheel_lag: float = non_negative(
        0.1, 's', 'Time constant of the wheel controllers; 0 means no lag.'
    )
    max_wheel_rate: float = non_negative(
        0.0, 'rad/s', 'Limit of the rate of a wheel; 0 means no limit.'
    )
    max_wheel_acceleration: float = non_negative(
        0.0, 'rad/s^2', 'Limit of the acceleration of a wheel; 0 means no limit.'
    )
    slip: float = non_negative(
        0.0, '1', 'Share of the wheel rates lost to slip.',
        maximum=0.99,
    )  # fmt: skip
    radius_difference: float = parameter(
        0.0,
        '1',
        'Right minus left wheel radius, relative to R; a positive value makes the robot '
        'drift left.',
        minimum=-1.0,
        maximum=1.0,
    )
    slip_noise: float = non_negative(
        0.0, '1/sqrt(Hz)', 'Density of the white relative error of each wheel rate.'
    )

    def forward(self, wheels: WheelRates) -> tuple[float, float]:
        """Return speed, m/s, and yaw rate, rad/s, of a robot whose wheels do not slip."""
        left, right = wheels
        radius = self.wheel_radius
        return 0.5 * radius * (left + right), 0.5 * radius * (right - left) / self.half_track

    def inverse(self, speed: float, yaw_rate: float) -> WheelRates:
        """Return the wheel rates that give a speed, m/s, and a yaw rate, rad/s."""
        swing = self.half_track * yaw_rate
        return WheelRates((speed - swing) / self.wheel_radius, (speed + swing) / self.wheel_radius)

    def at(self, pose: Pose, wheels: WheelRates) -> RobotState:
        """Return the state of a robot with constant wheel rates."""
        return RobotState(pose, wheels, *self.forward(self._apply_slip(wheels, 0.0, 0.0)))

    def step(
        self, state: RobotState, command: WheelRates, dt: float, noise: tuple[float, float]
    ) -> RobotState:
        """Return the state after the command was held for `dt` s.

        `noise` holds the standard normal numbers of the slip noise, left and right.
        """
        left_end, left_mean = self._step_wheel(state.wheels.left, command.left, dt)
        right_end, right_mean = self._step_wheel(state.wheels.right, command.right, dt)
        scale = self.slip_noise / math.sqrt(dt)
        disturbed = (scale * noise[0], scale * noise[1])
        mean = self._apply_slip(WheelRates(left_mean, right_mean), *disturbed)
        speed, yaw_rate = self.forward(mean)
        pose = advance(state.pose, speed * dt, 0.0, yaw_rate * dt)
        wheels = WheelRates(left_end, right_end)
        return RobotState(pose, wheels, *self.forward(self._apply_slip(wheels, *disturbed)))

    def _step_wheel(self, rate: float, command: float, dt: float) -> tuple[float, float]:
        """Return the rate of a wheel after a step, and its mean over the step."""
        if self.max_wheel_rate > 0.0:
            command = min(max(command, -self.max_wheel_rate), self.max_wheel_rate)
        if self.wheel_lag > 0.0:
            decay = math.exp(-dt / self.wheel_lag)
            end = command + (rate - command) * decay
            mean = command + (rate - command) * (1.0 - decay) * self.wheel_lag / dt
        else:
            end = mean = command
        limit = self.max_wheel_acceleration * dt
        if limit > 0.0 and abs(end - rate) > limit:
            end = rate + math.copysign(limit, end - rate)
            mean = 0.5 * (rate + end)
        return end, mean

    def _apply_slip(self, wheels: WheelRates, left_error: float, right_error: float) -> WheelRates:
        grip, half_difference = 1.0 - self.slip, 0.5 * self.radius_difference
        return WheelRates(
            wheels.left * (grip * (1.0 - half_difference) + left_error),
            wheels.right * (grip * (1.0 + half_difference) + right_error),
        )

    def noise(self, rng: np.random.Generator, steps: int) -> list[tuple[float, float]]:
        """Return the random numbers for `steps` calls of `step`; zeros if there is no noise."""
        if self.slip_noise == 0.0:
            return [(0.0, 0.0)] * steps
        return [(float(a), float(b)) for a, b in rng.standard_normal((steps, 2))]


# Forward and inverse kinematics of `m` swerve modules, which each roll and steer; compiled.
#
# A body makes the step (forward, left, turn). Its module at (x, y) then moves by
# (forward - turn y, left + turn x). The step follows from the movements of all modules by least
# squares, as in [WPILib].

# A module that moves by less [m] keeps its angle, since the direction is undefined.
_AT_REST = 1e-9


def module_weights(modules: FloatArray) -> FloatArray:
    """Return the inverse of the normal matrix of the least squares, `(3, 3)`.

    The modules are at `(m, 2)` m; at least two at different places.
    """
    x, y = modules[:, 0], modules[:, 1]
    count = float(len(modules))
    normal = np.array(
        [[count, 0.0, -y.sum()], [0.0, count, x.sum()], [-y.sum(), x.sum(), (x * x + y * y).sum()]]
    )
    return np.asarray(np.linalg.inv(normal))


@compiled
def turn_modules(
    steps: FloatArray, modules: FloatArray, before: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return travels and angles of the modules, `(n, m)` m and rad.

    A module can roll forward or backward; it takes the nearer of the two angles. Angles are not
    wrapped. `steps` `(n, 3)` are forward, left [m] and turn [rad], `modules` `(m, 2)` the
    positions of the modules, m, and `before` `(m,)` their first angles, rad.
    """
    n, m = len(steps), len(modules)
    travels, angles = np.empty((n, m)), np.empty((n, m))
    for i in range(m):
        angle = before[i]
        for k in range(n):
            dx = steps[k, 0] - steps[k, 2] * modules[i, 1]
            dy = steps[k, 1] + steps[k, 2] * modules[i, 0]
            travel = math.sqrt(dx * dx + dy * dy)
            if travel > _AT_REST:
                turn = math.atan2(dy, dx) - angle
                half_turns = round(turn / math.pi)
                angle += turn - half_turns * math.pi
                if half_turns % 2:
                    travel = -travel
            else:
                travel = dx * math.cos(angle) + dy * math.sin(angle)
            travels[k, i], angles[k, i] = travel, angle
    return travels, angles


@compiled
def body_steps_of_modules(
    travels: FloatArray, angles: FloatArray, modules: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return the least-squares steps `(n, 3)` of the body from those of its modules.

    Travels and angles are `(n, m)`, m and rad; modules are at `(m, 2)` m; weights are those of
    `module_weights`.
    """
    out = np.empty((len(travels), 3))
    for k in range(len(travels)):
        forward = left = turn = 0.0
        for i in range(len(modules)):
            dx = travels[k, i] * math.cos(angles[k, i])
            dy = travels[k, i] * math.sin(angles[k, i])
            forward += dx
            left += dy
            turn += modules[i, 0] * dy - modules[i, 1] * dx
        for j in range(3):
            out[k, j] = weights[j, 0] * forward + weights[j, 1] * left + weights[j, 2] * turn
    return out


@compiled
def derivatives_of_modules(
    travels: FloatArray, angles: FloatArray, modules: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return the derivatives of the steps by travels, then angles, `(n, 3, 2 m)`.

    See `body_steps_of_modules` for the arguments.
    """
    m = len(modules)
    out = np.empty((len(travels), 3, 2 * m))
    for k in range(len(travels)):
        for i in range(m):
            c, s = math.cos(angles[k, i]), math.sin(angles[k, i])
            x, y = modules[i, 0], modules[i, 1]
            for j in range(3):
                along = weights[j, 0] * c + weights[j, 1] * s + weights[j, 2] * (x * s - y * c)
                across = weights[j, 1] * c - weights[j, 0] * s + weights[j, 2] * (x * c + y * s)
                out[k, j, i], out[k, j, m + i] = along, travels[k, i] * across
    return out
