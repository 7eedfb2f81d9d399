# SPDX-License-Identifier: Apache-2.0
"""Kinematics of robots that drive: two wheels, and swerve modules."""

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
    """What a robot does at one time.

    `pose` is that of the middle between the wheels; `wheels` turn so, slipping or not; `speed` and
    `yaw_rate` are over the ground, m/s and rad/s.
    """

    pose: Pose
    wheels: WheelRates
    speed: float
    yaw_rate: float


@dataclasses.dataclass(frozen=True)
class DifferentialDrive(Parameters):
    """Differential-drive robot on level ground [Cesenek2019].

    With wheel radius R and HALF the track L, rates of the wheels l and r:

        v = R (l + r) / 2,           w = R (r - l) / (2 L)
        l = (v - L w) / R,           r = (v + L w) / R

    The source prints the second line, its (3.18) and (3.19), with both signs of L the other way
    round, against its own first line (3.14); here each is the inverse of the other.

    A wheel follows its command with a lag, w' = (command - w) / wheel_lag, but not faster than
    max_wheel_acceleration and not beyond max_wheel_rate. What slip leaves of its rate moves the
    robot, which follows the exponential of SE(2) over each step.

    Without lag, limits, slip and noise the robot is perfect. All but the lag are off by default.
    """

    wheel_radius: float = positive(0.1, 'm', 'R, radius of the wheels.')
    half_track: float = positive(0.2, 'm', 'L, half the distance between the wheels.')
    wheel_lag: float = non_negative(0.1, 's', 'Time constant of the wheel controllers; 0: none.')
    max_wheel_rate: float = non_negative(0.0, 'rad/s', 'Limit of the rate of a wheel; 0: none.')
    max_wheel_acceleration: float = non_negative(
        0.0, 'rad/s^2', 'Limit of the acceleration of a wheel; 0: none.'
    )
    slip: float = non_negative(
        0.0, '1', 'Share of the rate of both wheels that does not move it.',
        maximum=0.99,
    )  # fmt: skip
    radius_difference: float = parameter(
        0.0,
        '1',
        'Right wheel larger than the left, of R: the robot then turns left on the straight.',
        minimum=-1.0,
        maximum=1.0,
    )
    slip_noise: float = non_negative(
        0.0, '1/sqrt(Hz)', 'Density of the white relative noise of the grip of each wheel.'
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
        """Return the state of a robot whose wheels turn steadily."""
        return RobotState(pose, wheels, *self.forward(self._grip(wheels, 0.0, 0.0)))

    def step(
        self, state: RobotState, command: WheelRates, dt: float, noise: tuple[float, float]
    ) -> RobotState:
        """Return the state after `dt` s in which the command was held.

        `noise` are the standard normal numbers of the grip, left and right.
        """
        left = self._wheel(state.wheels.left, command.left, dt)
        right = self._wheel(state.wheels.right, command.right, dt)
        scale = self.slip_noise / math.sqrt(dt)
        disturbed = (scale * noise[0], scale * noise[1])
        mean = self._grip(WheelRates(left[1], right[1]), *disturbed)
        speed, yaw_rate = self.forward(mean)
        pose = advance(state.pose, speed * dt, 0.0, yaw_rate * dt)
        wheels = WheelRates(left[0], right[0])
        return RobotState(pose, wheels, *self.forward(self._grip(wheels, *disturbed)))

    def _wheel(self, rate: float, command: float, dt: float) -> tuple[float, float]:
        """Rate of a wheel after a step, and its mean over the step."""
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

    def _grip(self, wheels: WheelRates, left: float, right: float) -> WheelRates:
        hold, uneven = 1.0 - self.slip, 0.5 * self.radius_difference
        return WheelRates(
            wheels.left * (hold * (1.0 - uneven) + left),
            wheels.right * (hold * (1.0 + uneven) + right),
        )

    def noise(self, rng: np.random.Generator, steps: int) -> list[tuple[float, float]]:
        """Return the numbers that `step` wants, drawn only where there is noise."""
        if self.slip_noise == 0.0:
            return [(0.0, 0.0)] * steps
        return [(float(a), float(b)) for a, b in rng.standard_normal((steps, 2))]


# Swerve kinematics both ways: modules that each roll and steer, `m` of them, compiled.
#
# A module at (x, y) of a body that makes the step (forward, left, turn) moves by (forward - turn
# y, left + turn x). From what the modules measured, the step follows by least squares: over the `2
# m` components, the three numbers that fit best ([WPILib] does the same).

# A module that moves by less [m] keeps its angle: there is no direction to be had.
_AT_REST = 1e-9


def weights_of(modules: FloatArray) -> FloatArray:
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

    A module takes the nearer of the two angles that do, and rolls backward where that is the
    opposite one, as swerve drives do; its angle is not wrapped. `steps` `(n, 3)` are forward, left
    and turn, `modules` `(m, 2)` the places, m, and `before` `(m,)` the first angles, rad.
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
def steps_of_modules(
    travels: FloatArray, angles: FloatArray, modules: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return the steps `(n, 3)` that fit best what the modules measured.

    Travels and angles are `(n, m)`, m and rad, places `(m, 2)` m, weights those of `weights_of`.
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
    """Return the derivatives of the best-fitting steps by travels, then angles, `(n, 3, 2 m)`.

    Arguments are those of `steps_of_modules`.
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
