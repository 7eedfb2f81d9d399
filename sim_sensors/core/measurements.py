# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Arrays of sensor messages: output of the sensor models, content of recordings, judge input.

One class per ROS message type, one array per message field, time first. Stamps are int64
nanoseconds. `arrival_ns` is the time at which a message reached its reader; it equals the stamp
unless a latency was recorded or requested. Covariances keep the row-major order of the messages,
as `(n, 3, 3)` or `(n, 6, 6)`. A field that is equal in all messages, such as a covariance, may be
one row that is repeated n times by `numpy.broadcast_to`; it takes no memory and is read-only.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .blocks import is_steady

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


MessageArrayT = TypeVar('MessageArrayT', bound='MessageArray')
DataclassT = TypeVar('DataclassT', bound=_Dataclass)


def set_array(owner: object, name: str, kind: type[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Convert a field of a frozen dataclass to an array of type `kind`, and return the array.

    The array is contiguous, or one row that is repeated n times. Another shape than `shape` is a
    ValueError.
    """
    array: NDArray[Any] = np.asarray(getattr(owner, name), dtype=kind)
    if not is_steady(array):
        array = np.ascontiguousarray(array)
    if array.shape != shape:
        raise ValueError(f'{type(owner).__name__}.{name} has shape {array.shape}, must be {shape}')
    object.__setattr__(owner, name, array)
    return array


def is_absent(covariance: FloatArray) -> NDArray[np.bool_]:
    """Return True for each covariance (n, 3, 3) of sensor_msgs/Imu that marks its quantity absent.

    The mark is -1 in the first element.

    Examples
    --------
    >>> is_absent(np.full((1, 3, 3), -1.0))
    array([ True])
    """
    return np.asarray(covariance[:, 0, 0] == -1.0)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class MessageArray:
    """Base of all message arrays.

    Attributes
    ----------
    stamp_ns, arrival_ns : (n,) int64
        Header stamps and times of arrival, ns.
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

    def __repr__(self) -> str:
        span = (int(self.stamp_ns[-1]) - int(self.stamp_ns[0])) * 1e-9 if len(self) else 0.0
        return f'<{type(self).__name__}: {len(self)} messages of {self.frame!r} in {span:.4g} s>'

    def take(self: MessageArrayT, index: ArrayLike | slice) -> MessageArrayT:
        """Return the messages selected by a boolean mask, an index array or a slice object."""
        if isinstance(index, slice) and index.indices(len(self)) == (0, len(self), 1):
            return self
        selection: Any = index if isinstance(index, slice) else np.asarray(index)
        count = len(self.stamp_ns[selection])
        changes: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            values = getattr(self, field.name)
            if not isinstance(values, np.ndarray):
                continue
            if is_steady(values):
                changes[field.name] = np.broadcast_to(values[0], (count, *values.shape[1:]))
            else:
                changes[field.name] = values[selection]
        return dataclasses.replace(self, **changes)


class MessageParts(Generic[DataclassT]):
    """Parts of a message array, or of another dataclass of arrays, to be concatenated.

    A covariance, status or orientation that is equal in all messages is kept as one row: for two
    hours at 1 kHz the covariances of an IMU would take 1.5 GB.

    Examples
    --------
    >>> parts = MessageParts[MessageArray]()
    >>> for stamps in ([1, 2], [3]):
    ...     parts.add(MessageArray(np.array(stamps), np.array(stamps), 'base_link'))
    >>> parts.concatenate().stamp_ns
    array([1, 2, 3])
    """

    def __init__(self) -> None:
        self._columns: dict[str, _GrowingColumn] = {}

    def add(self, part: DataclassT) -> None:
        """Append a copy of messages, as a sensor may reuse its arrays for the next part."""
        for field in dataclasses.fields(part):
            values = getattr(part, field.name)
            if isinstance(values, np.ndarray):
                is_often_constant = field.name.endswith(_OFTEN_CONSTANT)
                column = self._columns.setdefault(
                    field.name, _GrowingColumn(values[:0], is_often_constant)
                )
                column.append(values)
        self._last_part = part

    def concatenate(self) -> DataclassT:
        """Return all messages and forget the parts; there must be one, which may be empty."""
        arrays: dict[str, Any] = {name: column.array for name, column in self._columns.items()}
        self._columns = {}
        return dataclasses.replace(self._last_part, **arrays)


class _GrowingColumn:
    """Array (n, ...) that grows by appended rows; equal rows may be kept as one.

    A list of parts would double the memory when they are concatenated. The system moves pages
    instead of bytes when a large array is resized.
    """

    def __init__(self, like: NDArray[Any], is_constant: bool) -> None:
        self._rows = np.empty(like.shape, like.dtype)
        self._first = self._rows
        self._is_constant, self._count = is_constant, 0

    def append(self, values: NDArray[Any]) -> None:
        """Append a copy of rows (m, ...)."""
        start, self._count = self._count, self._count + len(values)
        if self._is_constant and len(values):
            if not start:
                self._first = values[:1].copy()
            if _are_equal_rows(values, self._first):
                return
            self._is_constant = False
            self._rows = np.repeat(self._first, start, axis=0)
        self._rows.resize((self._count, *values.shape[1:]), refcheck=False)
        self._rows[start:] = values

    @property
    def array(self) -> NDArray[Any]:
        """All rows, (n, ...)."""
        if not self._is_constant:
            return self._rows
        if self._count < 2:
            return self._first
        return np.broadcast_to(self._first[0], (self._count, *self._first.shape[1:]))


def _are_equal_rows(values: NDArray[Any], row: NDArray[Any]) -> bool:
    """Return True if all rows of values (n, ...) equal `row` (1, ...) to the bit."""
    rows = np.ascontiguousarray(values[:1] if is_steady(values) else values)
    return bool((rows.view(np.int64) == row.view(np.int64)).all())


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
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


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class MagneticFieldArray(MessageArray):
    """sensor_msgs/MagneticField in T and T^2, sensor frame; an all-zero covariance is unknown."""

    magnetic_field: FloatArray
    magnetic_field_covariance: FloatArray


NO_FIX = -1
"""Status of a NavSatFix without a position."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class FixArray(MessageArray):
    """sensor_msgs/NavSatFix.

    Attributes
    ----------
    latitude, longitude : (n,) float
        Degrees, WGS84.
    altitude : (n,) float
        Metres above the WGS84 ellipsoid.
    status : (n,) int
        -2 unknown (the default of the message), -1 no fix, 0 fix, 1 SBAS, 2 GBAS (RTK).
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

    @property
    def has_fix(self) -> NDArray[np.bool_]:
        """Whether each message has a position, (n,).

        An unknown status counts as a fix, as in navsat_transform.
        """
        return np.asarray(self.status != NO_FIX)

    @property
    def is_valid(self) -> NDArray[np.bool_]:
        """Whether each message has a position, (n,), whose numbers are finite."""
        is_finite = np.isfinite(self.latitude) & np.isfinite(self.longitude)
        return np.asarray(self.has_fix & is_finite & np.isfinite(self.altitude))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class OdometryArray(MessageArray):
    """nav_msgs/Odometry, which is also the type of a recording's ground truth.

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
        """Return odometry from map to base_link with zero covariance and without latency."""
        for name in ('pose_covariance', 'twist_covariance'):
            values[name] = np.broadcast_to(0.0, (len(stamp_ns), 6, 6))
        return cls(stamp_ns, stamp_ns, 'map', 'base_link', **values)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PoseArray(MessageArray):
    """geometry_msgs/PoseWithCovarianceStamped; fields as in `OdometryArray`."""

    position: FloatArray
    orientation: FloatArray
    pose_covariance: FloatArray


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TwistArray(MessageArray):
    """geometry_msgs/TwistWithCovarianceStamped; geometry_msgs/TwistStamped has zero covariance."""

    linear_velocity: FloatArray
    angular_velocity: FloatArray
    twist_covariance: FloatArray


_OFTEN_CONSTANT = ('covariance', 'status', 'covariance_type', 'orientation')
_INTEGERS = ('status', 'position_covariance_type')
_VECTORS = (
    'position', 'angular_velocity', 'linear_velocity', 'linear_acceleration', 'magnetic_field'
)  # fmt: skip
_SHAPES: dict[str, tuple[int, ...]] = {
    'orientation': (4,),
    **dict.fromkeys(_VECTORS, (3,)),
    **dict.fromkeys((f'{name}_covariance' for name in ('orientation', *_VECTORS)), (3, 3)),
    'pose_covariance': (6, 6),
    'twist_covariance': (6, 6),
    'latitude': (),
    'longitude': (),
    'altitude': (),
}
