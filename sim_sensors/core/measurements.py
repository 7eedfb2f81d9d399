# SPDX-License-Identifier: Apache-2.0
"""Arrays of sensor messages: what the sensor models make, recordings hold and the judge reads.

One class per ROS message type, one array per message field, time first. Stamps are int64
nanoseconds. `arrival_ns` is when a message reached (or would reach) its reader, equal to the stamp
unless a latency was recorded or asked for. Covariances keep the row-major order of the messages,
as `(n, 3, 3)` or `(n, 6, 6)`.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

M = TypeVar('M', bound='MessageArray')


def set_array(owner: object, name: str, kind: type[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Make a field of a frozen dataclass a contiguous array of a kind, and return it.

    Raises a ValueError when it has another shape.
    """
    array: NDArray[Any] = np.ascontiguousarray(getattr(owner, name), dtype=kind)
    if array.shape != shape:
        raise ValueError(f'{type(owner).__name__}.{name} has shape {array.shape}, must be {shape}')
    object.__setattr__(owner, name, array)
    return array


@dataclasses.dataclass(frozen=True, eq=False)
class MessageArray:
    """Base of all message arrays.

    Attributes
    ----------
    stamp_ns : (n,) int64
        Header stamps, nanoseconds.
    arrival_ns : (n,) int64
        Times of arrival, nanoseconds.
    frame : str
        `header.frame_id`, the same for all messages.
    """

    stamp_ns: IntArray
    arrival_ns: IntArray
    frame: str

    def __post_init__(self) -> None:
        n = len(np.atleast_1d(self.stamp_ns))
        for field in dataclasses.fields(self):
            if field.name in ('stamp_ns', 'arrival_ns', *_INTEGERS):
                set_array(self, field.name, np.int64, (n,))
            elif field.name in _SHAPES:
                set_array(self, field.name, np.float64, (n, *_SHAPES[field.name]))

    def __len__(self) -> int:
        return len(self.stamp_ns)

    def take(self: M, index: ArrayLike) -> M:
        """Return the messages selected by a boolean mask, an index array or a slice object."""
        selection: Any = index if isinstance(index, slice) else np.asarray(index)
        changes = {
            field.name: getattr(self, field.name)[selection]
            for field in dataclasses.fields(self)
            if isinstance(getattr(self, field.name), np.ndarray)
        }
        return dataclasses.replace(self, **changes)


@dataclasses.dataclass(frozen=True, eq=False)
class ImuArray(MessageArray):
    """sensor_msgs/Imu.

    Attributes
    ----------
    orientation : (n, 4) float
        Quaternion x y z w of the sensor in the world (ENU); identity where absent.
    angular_velocity : (n, 3) float
        rad/s, sensor frame.
    linear_acceleration : (n, 3) float
        Specific force, m/s^2, sensor frame: +9.8 on the axis that points up at rest.
    orientation_covariance, angular_velocity_covariance, linear_acceleration_covariance : (n, 3, 3)
    float
        rad^2, (rad/s)^2, (m/s^2)^2. Element [0, 0] = -1: the quantity is absent; all zero:
        covariance unknown.
    """

    orientation: FloatArray
    angular_velocity: FloatArray
    linear_acceleration: FloatArray
    orientation_covariance: FloatArray
    angular_velocity_covariance: FloatArray
    linear_acceleration_covariance: FloatArray


@dataclasses.dataclass(frozen=True, eq=False)
class MagneticFieldArray(MessageArray):
    """sensor_msgs/MagneticField: T and T^2, sensor frame; a covariance of all zero is unknown."""

    magnetic_field: FloatArray
    magnetic_field_covariance: FloatArray


@dataclasses.dataclass(frozen=True, eq=False)
class FixArray(MessageArray):
    """sensor_msgs/NavSatFix.

    Attributes
    ----------
    latitude, longitude : (n,) float
        Degrees, WGS84.
    altitude : (n,) float
        Metres above the WGS84 ellipsoid.
    status : (n,) int
        -1 no fix, 0 fix, 1 SBAS, 2 GBAS (RTK).
    position_covariance : (n, 3, 3) float
        m^2, ENU at the antenna.
    position_covariance_type : (n,) int
        0 unknown, 1 approximated, 2 diagonal known, 3 known.
    """

    latitude: FloatArray
    longitude: FloatArray
    altitude: FloatArray
    status: IntArray
    position_covariance: FloatArray
    position_covariance_type: IntArray


@dataclasses.dataclass(frozen=True, eq=False)
class OdometryArray(MessageArray):
    """nav_msgs/Odometry; also the ground truth of a recording.

    Attributes
    ----------
    child_frame : str
        Frame of the twist.
    position : (n, 3) float
        Metres, in `frame`.
    orientation : (n, 4) float
        Quaternion x y z w of `child_frame` in `frame`.
    linear_velocity, angular_velocity : (n, 3) float
        m/s and rad/s, in `child_frame`.
    pose_covariance, twist_covariance : (n, 6, 6) float
        Order x y z, rotation about x y z.
    """

    child_frame: str
    position: FloatArray
    orientation: FloatArray
    linear_velocity: FloatArray
    angular_velocity: FloatArray
    pose_covariance: FloatArray
    twist_covariance: FloatArray

    @classmethod
    def exact(cls, stamp_ns: IntArray, **values: FloatArray) -> OdometryArray:
        """Return odometry of zero covariance, map to base_link, that arrives at once."""
        for name in ('pose_covariance', 'twist_covariance'):
            values[name] = np.zeros((len(stamp_ns), 6, 6))
        return cls(stamp_ns, stamp_ns, 'map', 'base_link', **values)


@dataclasses.dataclass(frozen=True, eq=False)
class PoseArray(MessageArray):
    """geometry_msgs/PoseWithCovarianceStamped; fields as in `OdometryArray`."""

    position: FloatArray
    orientation: FloatArray
    pose_covariance: FloatArray


@dataclasses.dataclass(frozen=True, eq=False)
class TwistArray(MessageArray):
    """geometry_msgs/TwistWithCovarianceStamped; geometry_msgs/TwistStamped has zero covariance."""

    linear_velocity: FloatArray
    angular_velocity: FloatArray
    twist_covariance: FloatArray


_INTEGERS = ('status', 'position_covariance_type')
_SHAPES: dict[str, tuple[int, ...]] = {
    'orientation': (4,),
    'position': (3,),
    'angular_velocity': (3,),
    'linear_velocity': (3,),
    'linear_acceleration': (3,),
    'orientation_covariance': (3, 3),
    'angular_velocity_covariance': (3, 3),
    'linear_acceleration_covariance': (3, 3),
    'magnetic_field': (3,),
    'magnetic_field_covariance': (3, 3),
    'position_covariance': (3, 3),
    'pose_covariance': (6, 6),
    'twist_covariance': (6, 6),
    'latitude': (),
    'longitude': (),
    'altitude': (),
}
