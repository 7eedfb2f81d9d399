# SPDX-License-Identifier: Apache-2.0
"""Drives as wheel odometry sees them: from the body's motion to wheels and back.

Steps are those of the drive's centre over one interval: forward and left path in m and turn in
rad, the logarithm of the relative pose. A step of constant twist is what the inverse takes apart
and the forward kinematics put together, so that wheels without error lose nothing.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from sim_sensors.core.compilation import compiled
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, parameter, positive, variants
from sim_sensors.motion.drive_kinematics import (
    derivatives_of_modules,
    steps_of_modules,
    turn_modules,
    weights_of,
)

# Kinematics of a pair of wheels, with and without front steering, over steps, compiled.
#
# Steps are forward and left path in m and turn in rad of the middle between the two wheels. Source
# of the differential drive: [Cesenek2019]; of the steered one: the kinematic bicycle.

# No vehicle steers further [rad]; nearer to a right angle the turn would be all rounding.
_STEEPEST = 1.4
# A vehicle that moves by less [m] keeps its steering: there is no direction to be had.
_AT_REST = 1e-9


def turn_pair(steps: FloatArray, half_track: float) -> FloatArray:
    """Return travels of the left and right wheel, `(n, 2)` m."""
    swing = half_track * steps[:, 2]
    return np.column_stack([steps[:, 0] - swing, steps[:, 0] + swing])


@compiled
def steer(steps: FloatArray, wheelbase: float, before: FloatArray) -> FloatArray:
    """Return the steering angle of the bicycle, `(n, 1)` rad, atan(L turn / forward).

    It is `before` `(1,)` before the first of the steps `(n, 3)`; L is the wheelbase, m.
    """
    out = np.empty((len(steps), 1))
    angle = before[0]
    for k in range(len(steps)):
        if abs(steps[k, 0]) > _AT_REST:
            angle = math.atan(wheelbase * steps[k, 2] / steps[k, 0])
            angle = min(max(angle, -_STEEPEST), _STEEPEST)
        out[k, 0] = angle
    return out


@compiled
def steps_of_steered(travels: FloatArray, angles: FloatArray, wheelbase: float) -> FloatArray:
    """Return the steps `(n, 3)` of travels `(n, 2)` m and steering `(n, 1)` rad."""
    out = np.zeros((len(travels), 3))
    for k in range(len(travels)):
        out[k, 0] = 0.5 * (travels[k, 0] + travels[k, 1])
        out[k, 2] = out[k, 0] * math.tan(angles[k, 0]) / wheelbase
    return out


@compiled
def derivatives_of_steered(
    travels: FloatArray, angles: FloatArray, wheelbase: float
) -> FloatArray:
    """Return the derivatives of the steps by both travels and the angle, `(n, 3, 3)`."""
    out = np.zeros((len(travels), 3, 3))
    for k in range(len(travels)):
        path = 0.5 * (travels[k, 0] + travels[k, 1])
        tangent = math.tan(angles[k, 0])
        out[k, 0, 0] = out[k, 0, 1] = 0.5
        out[k, 2, 0] = out[k, 2, 1] = 0.5 * tangent / wheelbase
        out[k, 2, 2] = path * (1.0 + tangent * tangent) / wheelbase
    return out


def _length(default: float, doc: str) -> Any:
    return positive(default, 'm', doc)


@dataclasses.dataclass(frozen=True)
class WheelDrive(Parameters, abc.ABC):
    """Wheels with encoders, and how they are steered."""

    wheels: ClassVar[int]
    """Wheels with an encoder."""

    steered: ClassVar[int]
    """Measured steering angles."""

    names: ClassVar[tuple[str, ...]]
    """Joints: the wheels, then the steering."""

    wheel_radius: float = positive(0.1, 'm', 'Radius of the wheels.')

    @abc.abstractmethod
    def inverse(self, steps: FloatArray, angles: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how wheels roll and are steered while the centre makes steps `(n, 3)`: forward,
        left, turn.

        Steering angles `(steered,)` are those before the first, rad; wheels that do not roll keep
        them. Returned are travels `(n, wheels)` m over the ground, along the wheel, and angles
        `(n, steered)` rad, to the left of forward.
        """

    @abc.abstractmethod
    def forward(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the steps `(n, 3)` that travels and angles tell of; see `inverse`."""

    @abc.abstractmethod
    def derivatives(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return those of `forward`'s steps by travels, then angles, `(n, 3, wheels + steered)`.

        At `travels` and `angles` as measured; per m and per rad.
        """


@dataclasses.dataclass(frozen=True)
class DifferentialWheels(WheelDrive):
    """Two driven wheels; the centre is midway between them [Cesenek2019].

    v = R (l + r) / 2 and w = R (r - l) / (2 L). Sideways motion of the centre is slip that the
    wheels do not see.
    """

    kind: ClassVar[str] = 'differential'
    wheels: ClassVar[int] = 2
    steered: ClassVar[int] = 0
    names: ClassVar[tuple[str, ...]] = ('left_wheel', 'right_wheel')

    half_track: float = _length(0.2, 'Half the distance between the wheels.')

    def inverse(self, steps: FloatArray, angles: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return travels; no angle is measured."""
        return turn_pair(steps, self.half_track), np.zeros((len(steps), 0))

    def forward(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the steps; none goes sideways."""
        left, right = travels.T
        path, turn = 0.5 * (left + right), 0.5 * (right - left) / self.half_track
        return np.column_stack([path, np.zeros(len(path)), turn])

    def derivatives(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the derivatives of the steps, which are the same everywhere."""
        turn = 0.5 / self.half_track
        return np.tile([[0.5, 0.5], [0.0, 0.0], [-turn, turn]], (len(travels), 1, 1))


@dataclasses.dataclass(frozen=True)
class AckermannWheels(WheelDrive):
    """Two driven rear wheels and front steering; the centre is the middle of the rear axle.

    Encoders are at the rear wheels. The steering angle is that of the bicycle model: with the path
    s of the centre, wheelbase L and steering d, turn = s tan(d) / L. It is at most 1.4 rad.
    Turning without rolling is impossible for such a vehicle and is not seen.
    """

    kind: ClassVar[str] = 'ackermann'
    wheels: ClassVar[int] = 2
    steered: ClassVar[int] = 1
    names: ClassVar[tuple[str, ...]] = ('rear_left_wheel', 'rear_right_wheel', 'front_steering')

    half_track: float = _length(0.2, 'Half the distance between the rear wheels.')
    wheelbase: float = _length(0.5, 'Distance of the axles.')

    def inverse(self, steps: FloatArray, angles: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return travels of the rear wheels and the steering angle."""
        return turn_pair(steps, self.half_track), steer(steps, self.wheelbase, angles)

    def forward(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the steps; the turn is that of the steering, not of the two wheels."""
        return steps_of_steered(travels, angles, self.wheelbase)

    def derivatives(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the derivatives of the steps."""
        return derivatives_of_steered(travels, angles, self.wheelbase)


@dataclasses.dataclass(frozen=True)
class SwerveWheels(WheelDrive):
    """Four modules that each roll and steer [FRC3176]; see `sim_sensors.motion.drive_kinematics`.

    The centre is the origin of the modules' positions. Least squares over the eight measured
    numbers gives the three of the motion. A module turns by at most 90 degrees and rolls backward
    instead.
    """

    kind: ClassVar[str] = 'swerve'
    wheels: ClassVar[int] = 4
    steered: ClassVar[int] = 4
    names: ClassVar[tuple[str, ...]] = tuple(
        f'{place}_{part}'
        for part in ('wheel', 'steering')
        for place in ('front_left', 'front_right', 'rear_left', 'rear_right')
    )

    wheel_radius: float = positive(0.0508, 'm', 'Radius of the wheels.')
    module_x: tuple[float, float, float, float] = parameter(
        (0.27, 0.27, -0.27, -0.27),
        'm',
        'Forward of the centre: front left, front right, rear left, rear right.',
    )
    module_y: tuple[float, float, float, float] = parameter(
        (0.27, -0.27, 0.27, -0.27), 'm', 'Left of the centre, in the same order.'
    )

    def _check(self) -> None:
        places = set(zip(self.module_x, self.module_y, strict=True))
        if len(places) < 2:
            raise ParameterError(
                'SwerveWheels', 'module_x', 'all modules are at one place; must be at least two'
            )

    @property
    def modules(self) -> FloatArray:
        """Places of the modules, `(4, 2)` m."""
        return np.column_stack([self.module_x, self.module_y])

    def inverse(self, steps: FloatArray, angles: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return travels and angles of the modules, which turn by at most a right angle."""
        return turn_modules(steps, self.modules, angles)

    def forward(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the steps that fit best."""
        return steps_of_modules(travels, angles, self.modules, weights_of(self.modules))

    def derivatives(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the derivatives of the steps."""
        return derivatives_of_modules(travels, angles, self.modules, weights_of(self.modules))


WHEEL_DRIVES = variants('a drive', WheelDrive)
