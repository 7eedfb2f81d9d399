# SPDX-License-Identifier: Apache-2.0
"""Drives of wheel odometry: kinematics from the motion of the body to the wheels and back.

A step is the motion of the centre of the drive over one interval: forward and left path in m and
turn in rad, the logarithm of the relative pose. Inverse and forward kinematics both assume a
constant twist within a step, so wheels without error reproduce it.
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
from sim_sensors.motion.vehicles import (
    body_steps_of_modules,
    derivatives_of_modules,
    module_weights,
    turn_modules,
)

# Largest steering angle, rad; closer to a right angle the turn would consist of rounding errors.
_LARGEST_STEERING = 1.4
# Path, m, below which a vehicle keeps its steering angle, because the direction is undefined.
_AT_REST = 1e-9


def travels_of_pair(steps: FloatArray, half_track: float) -> FloatArray:
    """Return the travels of the left and right wheel, `(n, 2)` m, for steps `(n, 3)`."""
    difference = half_track * steps[:, 2]
    return np.column_stack([steps[:, 0] - difference, steps[:, 0] + difference])


@compiled
def steering_angles(steps: FloatArray, wheelbase: float, before: FloatArray) -> FloatArray:
    """Return the steering angles of the kinematic bicycle, `(n, 1)` rad, for steps `(n, 3)`.

    The angle is atan(L turn / forward) with the wheelbase L, m; `before` `(1,)` is the angle
    before the first step.
    """
    out = np.empty((len(steps), 1))
    angle = before[0]
    for k in range(len(steps)):
        if abs(steps[k, 0]) > _AT_REST:
            angle = math.atan(wheelbase * steps[k, 2] / steps[k, 0])
            angle = min(max(angle, -_LARGEST_STEERING), _LARGEST_STEERING)
        out[k, 0] = angle
    return out


@compiled
def steps_of_steered(travels: FloatArray, angles: FloatArray, wheelbase: float) -> FloatArray:
    """Return the steps `(n, 3)` for travels `(n, 2)` m and steering angles `(n, 1)` rad."""
    out = np.zeros((len(travels), 3))
    for k in range(len(travels)):
        out[k, 0] = 0.5 * (travels[k, 0] + travels[k, 1])
        out[k, 2] = out[k, 0] * math.tan(angles[k, 0]) / wheelbase
    return out


@compiled
def derivatives_of_steered(
    travels: FloatArray, angles: FloatArray, wheelbase: float
) -> FloatArray:
    """Return the derivatives of the steps by both travels and by the angle, `(n, 3, 3)`."""
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
    """Base of all drives: wheels with encoders and steering."""

    wheels: ClassVar[int]
    """Number of wheels with an encoder."""

    steered: ClassVar[int]
    """Number of measured steering angles."""

    names: ClassVar[tuple[str, ...]]
    """Names of the joints: the wheels, then the steering."""

    wheel_radius: float = positive(0.1, 'm', 'Radius of the wheels.')

    @abc.abstractmethod
    def inverse(self, steps: FloatArray, angles: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the travels and steering angles of the wheels for steps of the centre.

        Parameters
        ----------
        steps : (n, 3)
            Forward path, left path, m, and turn, rad.
        angles : (steered,)
            Steering angles before the first step, rad; wheels that do not roll keep them.

        Returns
        -------
        travels : (n, wheels)
            Distances over the ground along each wheel, m.
        angles : (n, steered)
            Steering angles to the left of forward, rad.
        """

    @abc.abstractmethod
    def forward(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the steps `(n, 3)` for travels and angles; see `inverse`."""

    @abc.abstractmethod
    def derivatives(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the derivatives of the steps of `forward`, `(n, 3, wheels + steered)`.

        They are by the travels, per m, then by the angles, per rad.
        """


@dataclasses.dataclass(frozen=True)
class DifferentialWheels(WheelDrive):
    """Two driven wheels; the centre is midway between them [Cesenek2019].

    v = R (l + r) / 2 and w = R (r - l) / (2 L). The wheels do not measure sideways motion of the
    centre.
    """

    kind: ClassVar[str] = 'differential'
    wheels: ClassVar[int] = 2
    steered: ClassVar[int] = 0
    names: ClassVar[tuple[str, ...]] = ('left_wheel', 'right_wheel')

    half_track: float = _length(0.2, 'Half the distance between the wheels.')

    def inverse(self, steps: FloatArray, angles: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the travels; no angle is measured."""
        return travels_of_pair(steps, self.half_track), np.zeros((len(steps), 0))

    def forward(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the steps, which have no sideways path."""
        left, right = travels.T
        path, turn = 0.5 * (left + right), 0.5 * (right - left) / self.half_track
        return np.column_stack([path, np.zeros(len(path)), turn])

    def derivatives(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the derivatives of the steps, which are constant."""
        turn = 0.5 / self.half_track
        return np.tile([[0.5, 0.5], [0.0, 0.0], [-turn, turn]], (len(travels), 1, 1))


@dataclasses.dataclass(frozen=True)
class AckermannWheels(WheelDrive):
    """Two driven rear wheels and front steering; the centre is the middle of the rear axle.

    Encoders are at the rear wheels. The steering angle is that of the bicycle model: for the path
    s of the centre, wheelbase L and steering d, turn = s tan(d) / L. It is at most 1.4 rad.
    Turning without rolling is impossible for such a vehicle and is not measured.
    """

    kind: ClassVar[str] = 'ackermann'
    wheels: ClassVar[int] = 2
    steered: ClassVar[int] = 1
    names: ClassVar[tuple[str, ...]] = ('rear_left_wheel', 'rear_right_wheel', 'front_steering')

    half_track: float = _length(0.2, 'Half the distance between the rear wheels.')
    wheelbase: float = _length(0.5, 'Distance of the axles.')

    def inverse(self, steps: FloatArray, angles: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the travels of the rear wheels and the steering angle."""
        return travels_of_pair(steps, self.half_track), steering_angles(
            steps, self.wheelbase, angles
        )

    def forward(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the steps; the turn follows from the steering, not from the two wheels."""
        return steps_of_steered(travels, angles, self.wheelbase)

    def derivatives(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the derivatives of the steps."""
        return derivatives_of_steered(travels, angles, self.wheelbase)


@dataclasses.dataclass(frozen=True)
class SwerveWheels(WheelDrive):
    """Four modules that each roll and steer [FRC3176]; see `sim_sensors.motion.vehicles`.

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
        'Position forward of the centre: front left, front right, rear left, rear right.',
    )
    module_y: tuple[float, float, float, float] = parameter(
        (0.27, -0.27, 0.27, -0.27), 'm', 'Position left of the centre, in the same order.'
    )

    def _check(self) -> None:
        if len(set(zip(self.module_x, self.module_y, strict=True))) < 2:
            raise ParameterError(
                'SwerveWheels',
                'module_x',
                'all modules have the same position; must have at least two positions',
            )

    @property
    def modules(self) -> FloatArray:
        """Positions of the modules, `(4, 2)` m."""
        return np.column_stack([self.module_x, self.module_y])

    def inverse(self, steps: FloatArray, angles: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return travels and angles of the modules, which turn by at most 90 degrees."""
        return turn_modules(steps, self.modules, angles)

    def forward(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the least-squares steps."""
        return body_steps_of_modules(travels, angles, self.modules, module_weights(self.modules))

    def derivatives(self, travels: FloatArray, angles: FloatArray) -> FloatArray:
        """Return the derivatives of the steps."""
        return derivatives_of_modules(travels, angles, self.modules, module_weights(self.modules))


WHEEL_DRIVES = variants('a drive', WheelDrive)
