# SPDX-License-Identifier: Apache-2.0
"""Arrays of sensor messages: what the sensor models make, recordings hold and the judge reads.

One class per ROS message type, one array per message field, time first. Stamps are int64
nanoseconds. `arrival_ns` is when a message reached (or would reach) its reader, equal to the stamp
unless a latency was recorded or asked for. Covariances keep the row-major order of the messages,
as `(n, 3, 3)` or `(n, 6, 6)`. What all messages state alike, such as a covariance, may be one row
that is seen n times (`numpy.broadcast_to`), which takes no memory and cannot be written to.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import scratch
from .blocks import blocks, by_blocks, is_steady, rows_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


M = TypeVar('M', bound='MessageArray')
T = TypeVar('T', bound=_Dataclass)


def set_array(owner: object, name: str, kind: type[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Make a field of a frozen dataclass an array of a kind, and return it.

    It is contiguous, or one row that is seen n times. Raises a ValueError when it has another
    shape.
    """
    array: NDArray[Any] = np.asarray(getattr(owner, name), dtype=kind)
    if not is_steady(array):
        array = np.ascontiguousarray(array)
    if array.shape != shape:
        raise ValueError(f'{type(owner).__name__}.{name} has shape {array.shape}, must be {shape}')
    object.__setattr__(owner, name, array)
    return array


def is_absent(covariance: FloatArray) -> NDArray[np.bool_]:
    """Return which messages of sensor_msgs/Imu say by -1 that they do not hold a quantity, (n,).

    Examples
    --------
    >>> is_absent(np.full((1, 3, 3), -1.0))
    array([ True])
    """
    return by_blocks(lambda rows: rows[:, 0, 0] == -1.0, covariance)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class MessageArray:
    """Base of all message arrays: header stamps and times of arrival, `(n,)` int64 ns, and the
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

    def take(self: M, index: ArrayLike | slice) -> M:
        """Return the messages selected by a boolean mask, an index array or a slice object."""
        if isinstance(index, slice) and index.indices(len(self)) == (0, len(self), 1):
            return self
        selection: Any = index if isinstance(index, slice) else np.asarray(index)
        changes: dict[str, Any] = {
            field.name: rows_of(getattr(self, field.name), selection)
            for field in dataclasses.fields(self)
            if isinstance(getattr(self, field.name), np.ndarray)
        }
        return dataclasses.replace(self, **changes)


class Columns(Generic[T]):
    """Messages of one topic and frame, or another dataclass of arrays, that come in parts.

    What is the same in all messages is kept once.

    Examples
    --------
    >>> columns = Columns[MessageArray]()
    >>> for stamps in ([1, 2], [3]):
    ...     columns.add(MessageArray(np.array(stamps), np.array(stamps), 'base_link'))
    >>> columns.joined().stamp_ns
    array([1, 2, 3])
    """

    def __init__(self) -> None:
        self._columns: dict[str, _Column] = {}

    def add(self, part: T) -> None:
        """Append messages."""
        for field in dataclasses.fields(part):
            values = getattr(part, field.name)
            if isinstance(values, np.ndarray):
                column = self._columns.setdefault(field.name, _Column(field.name, values))
                column.add(values)
        self._like = part

    def joined(self) -> T:
        """Return all messages, and begin anew; there must have been a part, which may be empty."""
        found: dict[str, Any] = {name: column.values for name, column in self._columns.items()}
        # A further part would move what has been given away.
        self._columns = {}
        return dataclasses.replace(self._like, **found)


class _Column:
    """A field of messages that come in parts."""

    def __init__(self, name: str, like: NDArray[Any]) -> None:
        self._rows = scratch.Rows(like)
        self._first: NDArray[Any] = like[:0].copy()
        self._is_steady = name == 'orientation' or name.endswith(_STATED)
        self._count = 0

    def add(self, values: NDArray[Any]) -> None:
        """Append rows, (n, ...)."""
        if self._is_steady and not len(self._first):
            self._first = values[:1].copy()
        if self._is_steady and not _all_are(self._first, values):
            for part in blocks(self._count):
                self._rows.append(np.repeat(self._first, part.stop - part.start, axis=0))
            self._is_steady = False
        self._count += len(values)
        if not self._is_steady:
            self._rows.append(values)

    @property
    def values(self) -> NDArray[Any]:
        """The rows added, (n, ...)."""
        if not self._is_steady:
            return self._rows.joined()
        if self._count == len(self._first):
            return self._first
        return np.broadcast_to(self._first[0], (self._count, *self._first.shape[1:]))


def _all_are(row: NDArray[Any], values: NDArray[Any]) -> bool:
    """Return whether all values, (n, ...), are those of a row, (1, ...), to the bit."""
    own = np.ascontiguousarray(values[:1] if is_steady(values) else values)
    return bool((own.view(np.int64) == row.view(np.int64)).all())


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
    """sensor_msgs/MagneticField: T and T^2, sensor frame; a covariance of all zero is unknown."""

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
        -2 unknown, which is the messages' default, -1 no fix, 0 fix, 1 SBAS, 2 GBAS (RTK).
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
        """Whether each has a position, (n,): of unknown status too, as navsat_transform has it."""
        return np.asarray(self.status != NO_FIX)

    @property
    def is_valid(self) -> NDArray[np.bool_]:
        """Whether each has a position, (n,), and its numbers are finite."""
        finite = np.isfinite(self.latitude) & np.isfinite(self.longitude)
        return np.asarray(self.has_fix & finite & np.isfinite(self.altitude))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
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


_STATED = ('covariance', 'status', 'covariance_type')
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
