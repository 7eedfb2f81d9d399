# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Corrections of recorded messages by numbers: units, axes and delays.

recording.yaml states them under `corrections`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np
from scipy.spatial.transform import Rotation

from sim_sensors.core import rotations
from sim_sensors.core.blocks import by_blocks
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    MessageArray,
    OdometryArray,
    is_absent,
)
from sim_sensors.core.parameters import Parameters, non_negative, parameter, positive
from .poses import derive_velocities
from .recording import Recording

MessageArrayT = TypeVar('MessageArrayT', bound=MessageArray)
_NO_ROTATION = (0.0, 0.0, 0.0)

_AXES = ('enu', 'ned')
NED_TO_ENU = Rotation.from_matrix([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
_FRD_TO_FLU = Rotation.from_matrix(np.diag([1.0, -1.0, -1.0]))
_RDF_TO_FLU = Rotation.from_matrix([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
_AXES_ROTATIONS = {'ned': (NED_TO_ENU, _FRD_TO_FLU), 'camera': (_RDF_TO_FLU, _RDF_TO_FLU)}
"""Rotations of world and body axes to those of ROS, by name of the axes."""


@dataclasses.dataclass(frozen=True)
class _Correction(Parameters):
    """Base of all corrections."""

    def changed_parameters(self) -> list[str]:
        """Return the parameters that change something, as `key value`."""
        return [f'{key} {value}' for key, value in self.changes.items()]

    @property
    def changes(self) -> dict[str, Any]:
        """Parameters that differ from the default, by key."""
        defaults = type(self)().to_mapping()
        return {key: value for key, value in self.to_mapping().items() if value != defaults[key]}

    def _check(self) -> None:
        for key, value in vars(self).items():
            if key.endswith('_scale') and value == 0.0:
                problem = f'{value:g} is not allowed; must be a number other than 0'
                raise ParameterError(type(self).__name__, key, problem)


@dataclasses.dataclass(frozen=True)
class ImuCorrection(_Correction):
    """Correction of the messages of an IMU; by default they stay unchanged."""

    delay: float = parameter(0.0, 's', 'Delay of the stamps, which is subtracted.')
    acceleration_scale: float = parameter(
        1.0, '1', 'Factor to m/s^2: 9.80665 for g, -1 for an accelerometer of opposite sign.'
    )
    rate_scale: float = parameter(
        1.0,
        '1',
        'Factor to rad/s: 0.0174533 for degrees per second, -1 for a gyroscope of opposite sign.',
    )
    rate_bias: tuple[float, ...] = parameter(
        _NO_ROTATION, 'rad/s', 'Bias of the rates after the rotation, which is subtracted.'
    )
    rotation: tuple[float, ...] = parameter(
        _NO_ROTATION, 'deg', 'Roll, pitch, yaw of the sensor axes in the frame of the messages.'
    )
    axes: str = parameter('enu', '', 'World frame of the published orientation.', choices=_AXES)
    orientation_rotation: tuple[float, ...] = parameter(
        _NO_ROTATION,
        'deg',
        'Roll, pitch, yaw from the axes of the orientation to those of gyroscope and '
        'accelerometer: 180, 0, 0 if only the orientation has forward-right-down axes.',
    )
    heading: float = parameter(0.0, 'deg', 'Error of the published heading, which is subtracted.')
    acceleration_std: float | None = non_negative(
        None, 'm/s^2', 'Standard deviation that replaces the covariance.', optional=float
    )
    rate_std: float | None = non_negative(
        None, 'rad/s', 'Standard deviation that replaces the covariance.', optional=float
    )
    orientation_std: float | None = non_negative(
        None, 'rad', 'Standard deviation that replaces the covariance.', optional=float
    )

    def apply(self, imu: ImuArray) -> ImuArray:
        """Return the corrected messages."""
        turn = _rotation(self.rotation)
        orientation_turn = _rotation(self.orientation_rotation)
        world = Rotation.from_euler('z', -self.heading, degrees=True)
        if self.axes == 'ned':
            world = world * NED_TO_ENU
        rate = _rotate(turn, _scale(self.rate_scale, imu.angular_velocity))
        bias = np.asarray(self.rate_bias)
        if bias.any():
            rate = rate - bias
        changes: dict[str, Any] = {
            'orientation': _rotate_quaternions(
                imu.orientation, world, orientation_turn * turn.inv()
            ),
            'angular_velocity': rate,
            'linear_acceleration': _rotate(
                turn, _scale(self.acceleration_scale, imu.linear_acceleration)
            ),
        }
        for quantity, scale, std in (
            ('linear_acceleration', self.acceleration_scale, self.acceleration_std),
            ('angular_velocity', self.rate_scale, self.rate_std),
            ('orientation', 1.0, self.orientation_std),
        ):
            name = f'{quantity}_covariance'
            if std is not None:
                changes[name] = _diagonal_covariance(len(imu), std)
            elif scale != 1.0:
                scale_rows = partial(_scale_covariance, factor=scale**2)
                changes[name] = by_blocks(scale_rows, getattr(imu, name))
        return dataclasses.replace(_subtract_delay(imu, self.delay), **changes)

    def followed_by(self, later: ImuCorrection) -> ImuCorrection:
        """Return the correction that is equivalent to this one followed by `later`."""
        axes, sign = _combined_axes(self.axes, later.axes)
        first, turn = _rotation(self.rotation), _rotation(later.rotation)
        # The later rotation of the orientation applies in the axes after the first rotation.
        later_turn = first.inv() * _rotation(later.orientation_rotation) * first
        bias = later.rate_scale * turn.apply(self.rate_bias) + later.rate_bias
        return ImuCorrection(
            delay=round(self.delay + later.delay, 9),
            acceleration_scale=self.acceleration_scale * later.acceleration_scale,
            rate_scale=self.rate_scale * later.rate_scale,
            rate_bias=tuple(bias.tolist()),
            rotation=_angles(turn * first),
            axes=axes,
            orientation_rotation=_angles(_rotation(self.orientation_rotation) * later_turn),
            heading=sign * self.heading + later.heading,
            acceleration_std=_latest(
                _scale_std(self.acceleration_std, later.acceleration_scale), later.acceleration_std
            ),
            rate_std=_latest(_scale_std(self.rate_std, later.rate_scale), later.rate_std),
            orientation_std=_latest(self.orientation_std, later.orientation_std),
        )


@dataclasses.dataclass(frozen=True)
class FixCorrection(_Correction):
    """Correction of the messages of a GPS receiver; by default they stay unchanged."""

    delay: float = parameter(0.0, 's', 'Delay of the stamps, which is subtracted.')
    swapped: bool = parameter(False, '', 'Whether latitude and longitude are exchanged.')
    std: float | None = non_negative(
        None, 'm', 'Standard deviation of each axis that replaces the covariance.', optional=float
    )

    def apply(self, fixes: FixArray) -> FixArray:
        """Return the corrected messages."""
        changes: dict[str, Any] = {}
        if self.swapped:
            changes |= {'latitude': fixes.longitude, 'longitude': fixes.latitude}
        if self.std is not None:
            changes['position_covariance'] = _diagonal_covariance(len(fixes), self.std)
            changes['position_covariance_type'] = np.ones_like(fixes.status)
        return dataclasses.replace(_subtract_delay(fixes, self.delay), **changes)

    def followed_by(self, later: FixCorrection) -> FixCorrection:
        """Return the correction that is equivalent to this one followed by `later`.

        Examples
        --------
        >>> first, second = FixCorrection(delay=0.6, std=0.1), FixCorrection(delay=-0.5)
        >>> first.followed_by(second).changed_parameters()
        ['delay 0.1', 'std 0.1']
        """
        return FixCorrection(
            delay=round(self.delay + later.delay, 9),
            swapped=self.swapped != later.swapped,
            std=_latest(self.std, later.std),
        )


@dataclasses.dataclass(frozen=True)
class TruthCorrection(_Correction):
    """Correction of a truth; by default it stays unchanged.

    Axes are corrected first, then scales, then rotations.
    """

    axes: str = parameter(
        'enu',
        '',
        'ned: north-east-down, and forward-right-down in the body. camera: right-down-forward in '
        'both, as in KITTI.',
        choices=(*_AXES, 'camera'),
    )
    twist: str = parameter(
        'body',
        '',
        'Axes of the linear velocity. positions: velocities and rates are derived from the '
        'poses, for a delayed twist.',
        choices=('body', 'world', 'positions'),
    )
    position_scale: float = positive(1.0, '1', 'Factor to m: 0.001 for mm.')
    speed_scale: float = positive(1.0, '1', 'Factor to m/s: 0.277778 for km/h.')
    turn: float = parameter(
        0.0,
        'deg',
        'Yaw of the world axes relative to east and north, which is subtracted from the motion.',
    )
    heading: float = parameter(0.0, 'deg', 'Error of the orientation only, which is subtracted.')
    body_yaw: float = parameter(
        0.0, 'deg', 'Yaw of base_link in the body axes of orientation and twist.'
    )

    def apply(self, truth: OdometryArray) -> OdometryArray:
        """Return the corrected motion."""
        position = _scale(self.position_scale, truth.position)
        orientation, rate = truth.orientation, truth.angular_velocity
        velocity = _scale(self.speed_scale, truth.linear_velocity)
        if self.twist == 'world':
            velocity = by_blocks(rotations.rotate_back, orientation, velocity)
        if self.axes != 'enu':
            world, body = _AXES_ROTATIONS[self.axes]
            position = _rotate(world, position)
            orientation = _rotate_quaternions(orientation, world, body.inv())
            velocity, rate = _rotate(body, velocity), _rotate(body, rate)
        back = Rotation.from_euler('z', -self.turn, degrees=True)
        heading = Rotation.from_euler('z', -self.heading, degrees=True)
        yaw = Rotation.from_euler('z', self.body_yaw, degrees=True)
        corrected = dataclasses.replace(
            truth,
            position=_rotate(back, position),
            orientation=_rotate_quaternions(orientation, heading * back, yaw),
            linear_velocity=_rotate(yaw.inv(), velocity),
            angular_velocity=_rotate(yaw.inv(), rate),
        )
        if self.twist == 'positions':
            return derive_velocities('', 'truth', corrected)[0]
        return corrected

    def followed_by(self, later: TruthCorrection) -> TruthCorrection:
        """Return the correction that is equivalent to this one followed by `later`.

        A twist in world axes is a property of the original messages. A twist derived from the
        poses does not depend on it.
        """
        axes, sign = _combined_axes(self.axes, later.axes)
        return TruthCorrection(
            axes=axes,
            twist=max(self.twist, later.twist, key=('body', 'world', 'positions').index),
            position_scale=self.position_scale * later.position_scale,
            speed_scale=self.speed_scale * later.speed_scale,
            turn=sign * self.turn + later.turn,
            heading=sign * self.heading + later.heading,
            body_yaw=sign * self.body_yaw + later.body_yaw,
        )


CORRECTIONS: Mapping[str, type[Any]] = {
    'imu': ImuCorrection,
    'gps': FixCorrection,
    'truth': TruthCorrection,
    'ideal_imu': ImuCorrection,
    'ideal_gps': FixCorrection,
}
"""Corrections by role."""


def correct_recording(recording: Recording, corrections: Mapping[str, Any]) -> Recording:
    """Return the recording with corrected messages, and the corrections noted in it.

    Corrections of roles that it lacks are ignored.

    Examples
    --------
    >>> from sim2real_eval import simulate
    >>> from sim_sensors import motion_of
    >>> drive = simulate(motion_of('line', duration=2.0), gps='baseline', imu='ideal')
    >>> late = correct_recording(drive, {'gps': FixCorrection(delay=-0.5)})
    >>> int(late.gps.stamp_ns[0] - drive.gps.stamp_ns[0])
    500000000
    """
    for role, correction in corrections.items():
        if role in recording.roles:
            array = correction.apply(recording.require(role))
            earlier = recording.corrections.get(role, type(correction)())
            corrections_so_far = {**recording.corrections, role: earlier.followed_by(correction)}
            recording = dataclasses.replace(
                recording.with_messages(role, array), corrections=corrections_so_far
            )
    return recording


def _combined_axes(first: str, later: str) -> tuple[str, float]:
    """Return the axes of two corrections as one, and the sign of earlier rotations after them.

    North-east-down twice is east-north-up. A rotation to the left about up is one to the right
    about down.
    """
    combined = {('enu', later): later, (first, 'enu'): first, ('ned', 'ned'): 'enu'}
    return combined.get((first, later), later), (-1.0 if later == 'ned' else 1.0)


def _rotation(angles: tuple[float, ...]) -> Rotation:
    """Return the rotation of roll, pitch, yaw, deg."""
    return Rotation.from_euler('xyz', angles, degrees=True)


def _angles(rotation: Rotation) -> tuple[float, ...]:
    """Return roll, pitch, yaw, deg."""
    angles = np.degrees(rotations.euler_from_quaternion(rotation.as_quat().tolist()))
    return tuple((np.round(angles, 6) + 0.0).tolist())


def _scale_std(std: float | None, scale: float) -> float | None:
    return None if std is None else abs(scale) * std


def _latest(first: float | None, later: float | None) -> float | None:
    return first if later is None else later


def _subtract_delay(array: MessageArrayT, delay: float) -> MessageArrayT:
    if delay == 0.0:
        return array
    delay_ns = np.int64(round(delay * 1e9))
    return dataclasses.replace(
        array, stamp_ns=array.stamp_ns - delay_ns, arrival_ns=array.arrival_ns - delay_ns
    )


def _scale(factor: float, values: FloatArray) -> FloatArray:
    return values if factor == 1.0 else factor * values


def _rotate(rotation: Rotation, vectors: FloatArray) -> FloatArray:
    if rotation.magnitude() == 0.0:
        return vectors
    # SciPy does not accept read-only arrays, so the rows are copied.
    return by_blocks(lambda rows: rotation.apply(np.array(rows)), vectors)


def _rotate_quaternions(orientation: FloatArray, world: Rotation, body: Rotation) -> FloatArray:
    """Return quaternions rotated in world and body axes; a zero quaternion stays zero."""
    p, q = world.as_quat()[None], body.as_quat()[None]
    if math.isclose(abs(p[0, 3]), 1.0) and math.isclose(abs(q[0, 3]), 1.0):
        return orientation
    return by_blocks(lambda rows: rotations.multiply(rotations.multiply(p, rows), q), orientation)


def _scale_covariance(covariance: FloatArray, factor: float) -> FloatArray:
    """Return scaled covariances (n, 3, 3), except those that mark an absent quantity."""
    is_present = ~is_absent(covariance)[:, None, None]
    return np.asarray(np.where(is_present, factor * covariance, covariance))


def _diagonal_covariance(count: int, std: float) -> FloatArray:
    return np.broadcast_to(np.eye(3) * std**2, (count, 3, 3))
