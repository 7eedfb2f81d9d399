# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the messages of a recording and can be put right by a number: units, axes,
delays; `corrections` in recording.yaml.
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
)
from sim_sensors.core.parameters import Parameters, non_negative, parameter, positive
from .poses import with_velocities
from .recording import Recording

_M = TypeVar('_M', bound=MessageArray)
_NO_TURN = (0.0, 0.0, 0.0)

_AXES = ('enu', 'ned')
# North-east-down to east-north-up, and forward-right-down to forward-left-up.
_WORLD = Rotation.from_matrix([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
_BODY = Rotation.from_matrix(np.diag([1.0, -1.0, -1.0]))
# Right-down-forward to forward-left-up.
_CAMERA = Rotation.from_matrix([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
_TURNS = {'ned': (_WORLD, _BODY), 'camera': (_CAMERA, _CAMERA)}


@dataclasses.dataclass(frozen=True)
class _Correction(Parameters):
    """What all corrections share."""

    def changed(self) -> list[str]:
        """Return what it changes, as `key value`."""
        return [f'{key} {one}' for key, one in self.changes.items()]

    @property
    def changes(self) -> dict[str, Any]:
        """The keys that change something, and their values."""
        given, default = self.to_mapping(), type(self)().to_mapping()
        return {key: one for key, one in given.items() if one != default[key]}

    def _check(self) -> None:
        for key, one in vars(self).items():
            if key.endswith('_scale') and one == 0.0:
                problem = f'{one:g} is not allowed; must be a number other than 0'
                raise ParameterError(type(self).__name__, key, problem)


@dataclasses.dataclass(frozen=True)
class ImuCorrection(_Correction):
    """What puts the messages of an IMU right; by default they stay as they are."""

    delay: float = parameter(0.0, 's', 'How late the stamps are; taken off.')
    acceleration_scale: float = parameter(
        1.0, '1', 'Factor to m/s^2: 9.80665 for g, -1 for an accelerometer of the other sign.'
    )
    rate_scale: float = parameter(
        1.0, '1', 'Factor to rad/s: 0.0174533 for degrees, -1 for a gyroscope of the other sign.'
    )
    rate_bias: tuple[float, ...] = parameter(
        _NO_TURN, 'rad/s', 'Bias of the rates after the rotation; taken off.'
    )
    rotation: tuple[float, ...] = parameter(
        _NO_TURN, 'deg', 'Roll, pitch, yaw of the axes measured in, in the frame of the messages.'
    )
    axes: str = parameter('enu', '', 'World of the published orientation.', choices=_AXES)
    orientation_rotation: tuple[float, ...] = parameter(
        _NO_TURN,
        'deg',
        'Roll, pitch, yaw from the axes of the orientation to those of gyroscope and '
        'accelerometer: 180, 0, 0 if only the orientation has forward-right-down axes.',
    )
    heading: float = parameter(0.0, 'deg', 'Error of the published heading; taken off.')
    acceleration_std: float | None = non_negative(
        None, 'm/s^2', 'Stated instead of the covariance.', optional=float
    )
    rate_std: float | None = non_negative(
        None, 'rad/s', 'Stated instead of the covariance.', optional=float
    )

    def applied(self, imu: ImuArray) -> ImuArray:
        """Return the messages put right."""
        turn, own = _rotation(self.rotation), _rotation(self.orientation_rotation)
        world = Rotation.from_euler('z', -self.heading, degrees=True)
        if self.axes == 'ned':
            world = world * _WORLD
        rate = _rotated(turn, _times(self.rate_scale, imu.angular_velocity))
        bias = np.asarray(self.rate_bias)
        if bias.any():
            rate = by_blocks(lambda rows: rows - bias, rate)
        changes: dict[str, Any] = {
            'orientation': _turned(imu.orientation, world, own * turn.inv()),
            'angular_velocity': rate,
            'linear_acceleration': _rotated(
                turn, _times(self.acceleration_scale, imu.linear_acceleration)
            ),
        }
        for quantity, scale, std in (
            ('linear_acceleration', self.acceleration_scale, self.acceleration_std),
            ('angular_velocity', self.rate_scale, self.rate_std),
        ):
            name = f'{quantity}_covariance'
            if std is not None:
                changes[name] = _diagonal(len(imu), std)
            elif scale != 1.0:
                one = partial(_scaled_covariance, factor=scale**2)
                changes[name] = by_blocks(one, getattr(imu, name))
        return dataclasses.replace(_earlier(imu, self.delay), **changes)

    def followed_by(self, later: ImuCorrection) -> ImuCorrection:
        """Return the one correction that does what this one and then a later one do."""
        axes, sign = _combined_axes(self.axes, later.axes)
        first, turn = _rotation(self.rotation), _rotation(later.rotation)
        # What comes later turns the orientation behind the first rotation.
        own = first.inv() * _rotation(later.orientation_rotation) * first
        bias = later.rate_scale * turn.apply(self.rate_bias) + later.rate_bias
        return ImuCorrection(
            delay=round(self.delay + later.delay, 9),
            acceleration_scale=self.acceleration_scale * later.acceleration_scale,
            rate_scale=self.rate_scale * later.rate_scale,
            rate_bias=tuple(bias.tolist()),
            rotation=_angles(turn * first),
            axes=axes,
            orientation_rotation=_angles(_rotation(self.orientation_rotation) * own),
            heading=sign * self.heading + later.heading,
            acceleration_std=_latest(
                _scaled(self.acceleration_std, later.acceleration_scale), later.acceleration_std
            ),
            rate_std=_latest(_scaled(self.rate_std, later.rate_scale), later.rate_std),
        )


@dataclasses.dataclass(frozen=True)
class FixCorrection(_Correction):
    """What puts the messages of a GPS receiver right; by default they stay as they are."""

    delay: float = parameter(0.0, 's', 'How late the stamps are; taken off.')
    swapped: bool = parameter(False, '', 'Whether latitude and longitude are exchanged.')
    std: float | None = non_negative(
        None, 'm', 'Stated for each axis instead of the covariance.', optional=float
    )

    def applied(self, fixes: FixArray) -> FixArray:
        """Return the messages put right."""
        changes: dict[str, Any] = {}
        if self.swapped:
            changes |= {'latitude': fixes.longitude, 'longitude': fixes.latitude}
        if self.std is not None:
            changes['position_covariance'] = _diagonal(len(fixes), self.std)
            changes['position_covariance_type'] = np.ones_like(fixes.status)
        return dataclasses.replace(_earlier(fixes, self.delay), **changes)

    def followed_by(self, later: FixCorrection) -> FixCorrection:
        """Return the one correction that does what this one and then a later one do.

        Examples
        --------
        >>> FixCorrection(delay=0.6, std=0.1).followed_by(FixCorrection(delay=-0.5)).changed()
        ['delay 0.1', 'std 0.1']
        """
        return FixCorrection(
            delay=round(self.delay + later.delay, 9),
            swapped=self.swapped != later.swapped,
            std=_latest(self.std, later.std),
        )


@dataclasses.dataclass(frozen=True)
class TruthCorrection(_Correction):
    """What puts a truth right; by default it stays as it is.

    The axes come first, then scales, then turns.
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
        'Axes of the linear velocity; positions: velocities and rates follow from the poses '
        'instead, as of a twist that is late.',
        choices=('body', 'world', 'positions'),
    )
    position_scale: float = positive(1.0, '1', 'Factor to m: 0.001 for mm.')
    speed_scale: float = positive(1.0, '1', 'Factor to m/s: 0.277778 for km/h.')
    turn: float = parameter(
        0.0, 'deg', 'Yaw of the world axes against east and north; taken off the whole motion.'
    )
    heading: float = parameter(0.0, 'deg', 'Error of the orientation alone; taken off.')
    body_yaw: float = parameter(
        0.0, 'deg', 'Yaw of base_link in the body axes of orientation and twist.'
    )

    def applied(self, truth: OdometryArray) -> OdometryArray:
        """Return the motion put right."""
        position = _times(self.position_scale, truth.position)
        orientation, rate = truth.orientation, truth.angular_velocity
        velocity = _times(self.speed_scale, truth.linear_velocity)
        if self.twist == 'world':
            velocity = by_blocks(rotations.rotate_back, orientation, velocity)
        if self.axes != 'enu':
            world, body = _TURNS[self.axes]
            position, orientation = (
                _rotated(world, position),
                _turned(orientation, world, body.inv()),
            )
            velocity, rate = _rotated(body, velocity), _rotated(body, rate)
        back = Rotation.from_euler('z', -self.turn, degrees=True)
        own = Rotation.from_euler('z', -self.heading, degrees=True)
        yaw = Rotation.from_euler('z', self.body_yaw, degrees=True)
        right = dataclasses.replace(
            truth,
            position=_rotated(back, position),
            orientation=_turned(orientation, own * back, yaw),
            linear_velocity=_rotated(yaw.inv(), velocity),
            angular_velocity=_rotated(yaw.inv(), rate),
        )
        return with_velocities('', 'truth', right)[0] if self.twist == 'positions' else right

    def followed_by(self, later: TruthCorrection) -> TruthCorrection:
        """Return the one correction that does what this one and then a later one do.

        A twist in world axes is a fact of the messages as they are; one that follows from the
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


def corrected(recording: Recording, corrections: Mapping[str, Any]) -> Recording:
    """Return the recording with the corrections of roles that it has, which it then names.

    Examples
    --------
    >>> from sim2real_eval import simulate
    >>> from sim_sensors import motion_of
    >>> drive = simulate(motion_of('line', duration=2.0), gps='baseline', imu='ideal')
    >>> late = corrected(drive, {'gps': FixCorrection(delay=-0.5)})
    >>> int(late.gps.stamp_ns[0] - drive.gps.stamp_ns[0])
    500000000
    """
    for role, correction in corrections.items():
        if role in recording.roles:
            array = correction.applied(recording.require(role))
            known = recording.corrections.get(role, type(correction)())
            total = {**recording.corrections, role: known.followed_by(correction)}
            recording = dataclasses.replace(
                recording.with_messages(role, array), corrections=total
            )
    return recording


def _combined_axes(first: str, later: str) -> tuple[str, float]:
    """Return both axes as one, and the sign that a turn before has after the later ones.

    North-east-down twice is what it was, and what turns to the left about up turns to the right
    about down.
    """
    known = {('enu', later): later, (first, 'enu'): first, ('ned', 'ned'): 'enu'}
    return known.get((first, later), later), (-1.0 if later == 'ned' else 1.0)


def _rotation(angles: tuple[float, ...]) -> Rotation:
    return Rotation.from_euler('xyz', angles, degrees=True)


def _angles(rotation: Rotation) -> tuple[float, ...]:
    """Return roll, pitch, yaw, deg."""
    angles = np.degrees(rotations.euler_from_quaternion(rotation.as_quat().tolist()))
    return tuple((np.round(angles, 6) + 0.0).tolist())


def _scaled(std: float | None, scale: float) -> float | None:
    return None if std is None else abs(scale) * std


def _latest(first: float | None, later: float | None) -> float | None:
    return first if later is None else later


def _earlier(array: _M, delay: float) -> _M:
    if delay == 0.0:
        return array
    late = np.int64(round(delay * 1e9))
    earlier = partial(by_blocks, lambda stamps: stamps - late)
    return dataclasses.replace(
        array, stamp_ns=earlier(array.stamp_ns), arrival_ns=earlier(array.arrival_ns)
    )


def _times(factor: float, values: FloatArray) -> FloatArray:
    return values if factor == 1.0 else by_blocks(partial(np.multiply, factor), values)


def _rotated(rotation: Rotation, vectors: FloatArray) -> FloatArray:
    if rotation.magnitude() == 0.0:
        return vectors
    # A copy, as scipy takes nothing that is read-only.
    return by_blocks(lambda rows: rotation.apply(np.array(rows)), vectors)


def _turned(orientation: FloatArray, world: Rotation, body: Rotation) -> FloatArray:
    """Return quaternions turned in the world and in the body; a zero one stays."""
    p, q = world.as_quat()[None], body.as_quat()[None]
    if math.isclose(abs(p[0, 3]), 1.0) and math.isclose(abs(q[0, 3]), 1.0):
        return orientation
    return by_blocks(lambda own: rotations.multiply(rotations.multiply(p, own), q), orientation)


def _scaled_covariance(stated: FloatArray, factor: float) -> FloatArray:
    # -1 in the first place says that the quantity is absent.
    there = (stated[:, 0, 0] != -1.0)[:, None, None]
    return np.asarray(np.where(there, factor * stated, stated))


def _diagonal(count: int, std: float) -> FloatArray:
    return np.broadcast_to(np.eye(3) * std**2, (count, 3, 3))
