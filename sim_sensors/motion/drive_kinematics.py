# SPDX-License-Identifier: Apache-2.0
"""Kinematics of wheeled robots: differential drive and swerve modules."""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from sim_sensors.core.compilation import compiled
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter, positive
from .planar import Pose, advance


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
        0.0, '1', 'Share of the wheel rates that is lost to slip.',
        maximum=0.99,
    )  # fmt: skip
    radius_difference: float = parameter(
        0.0,
        '1',
        'Radius of the right minus the left wheel, relative to R; drifts to the left.',
        minimum=-1.0,
        maximum=1.0,
    )
    slip_noise: float = non_negative(
        0.0, '1/sqrt(Hz)', 'Noise density of the white relative error of each wheel.'
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

        `noise` holds the standard normal numbers of the grip, left and right.
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
        hold, uneven = 1.0 - self.slip, 0.5 * self.radius_difference
        return WheelRates(
            wheels.left * (hold * (1.0 - uneven) + left_error),
            wheels.right * (hold * (1.0 + uneven) + right_error),
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
    `weights_of`.
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

    See `steps_of_modules` for the arguments.
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
