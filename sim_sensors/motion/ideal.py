# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Motion measured by a simulator's own noise-free sensors.

Accelerations derived from odometry lack vibration and contact forces, because differentiation
smooths them. A simulator knows the specific force of its bodies. Its noise-free IMU, GPS and
magnetometer therefore replace the values derived from odometry, and sensor models add their errors
to them. Lever arms and mountings work as on odometry.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core import rotations
from sim_sensors.core.blocks import seconds
from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    IntArray,
    MagneticFieldArray,
)
from .trajectory import Motion, Trajectory, cubic, cubic_between, parabola, times_within

if TYPE_CHECKING:
    from .trajectory import Motion


class Georeference(Protocol):
    """Place of a motion on the Earth; implemented by `sim_sensors.world.LocalFrame`."""

    def to_enu(
        self, latitude_deg: ArrayLike, longitude_deg: ArrayLike, altitude_m: ArrayLike
    ) -> FloatArray:
        """Return positions `(n, 3)` m, east, north, up."""
        ...


class _Stream:
    """Samples of noise-free values, joined by cubics with three-point slopes.

    A value in [t_k, t_k+1) depends on the samples k-1 .. k+2 alone, as `OdometryMotion` does; a
    time that has a sample gets its value unchanged.
    """

    def __init__(self, what: str, stamp_ns: IntArray, values: FloatArray, origin_ns: int) -> None:
        if len(stamp_ns) < 3:
            raise MotionError(f'{what} has {len(stamp_ns)} messages; at least 3 are needed')
        if (np.diff(stamp_ns) <= 0).any():
            index = int(np.argmax(np.diff(stamp_ns) <= 0)) + 1
            raise MotionError(
                f'{what}: stamp {stamp_ns[index]} of message {index} does not come after the one '
                'before it; stamps must increase'
            )
        if not np.isfinite(values).all():
            index = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
            raise MotionError(f'{what}: message {index} has values that are not finite')
        self._time = seconds(stamp_ns, origin_ns)
        self._interval = (np.diff(stamp_ns) * 1e-9)[:, None]
        self._values = values
        h, step = self._interval, np.diff(values, axis=0)
        far = values[2:3] - values[:1], values[-1:] - values[-3:-2]
        # At the ends the sample two steps inside replaces the missing one.
        self._slope, _ = parabola(
            np.concatenate([-(h[:1] + h[1:2]), h]),
            np.concatenate([-far[0], step]),
            np.concatenate([h, -(h[-1:] + h[-2:-1])]),
            np.concatenate([step, -far[1]]),
        )
        self.start, self.end = float(self._time[0]), float(self._time[-1])

    def at(self, times: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return values, derivatives and sample intervals `(n, 1)` s at `times` `(n,)` s."""
        t = times_within(times, self.start, self.end)
        k = np.clip(np.searchsorted(self._time, t, side='right') - 1, 0, len(self._time) - 2)
        h = self._interval[k]
        s = np.clip((t - self._time[k])[:, None] / h, 0.0, 1.0)
        ends = (self._values[k], self._slope[k]), (self._values[k + 1], self._slope[k + 1])
        value, slope, _ = cubic(s, h, cubic_between(h, *ends))
        # The sample itself, since the cubic ends there only up to rounding.
        return np.where(s == 1.0, self._values[k + 1], value), slope, h


@dataclasses.dataclass(frozen=True)
class Mounting:
    """Place and orientation of a sensor on the body.

    Attributes
    ----------
    lever_arm : (3,) float
        m, in the body.
    rotation : (4,) float
        Quaternion x y z w, sensor to body.
    """

    lever_arm: ArrayLike = (0.0, 0.0, 0.0)
    rotation: ArrayLike = (0.0, 0.0, 0.0, 1.0)

    @property
    def arm(self) -> FloatArray:
        """`lever_arm` as an array `(1, 3)`."""
        return np.asarray(self.lever_arm, dtype=np.float64)[None]

    @property
    def turn(self) -> FloatArray:
        """`rotation` as an array `(1, 4)`."""
        return np.asarray(self.rotation, dtype=np.float64)[None]


class _Measured:
    """Base of motions that a noise-free sensor improves, over the time that it measured.

    Between samples further apart than `longest_gap`, s, the original motion is used.
    """

    longest_gap: ClassVar[float]

    def __init__(self, motion: Motion, stream: _Stream, mounting: Mounting) -> None:
        self._motion, self._stream, self._mounting = motion, stream, mounting
        self.start = max(motion.start, stream.start)
        self.end = min(motion.end, stream.end)
        if self.end <= self.start:
            raise MotionError(
                f'the noise-free sensor measures from {stream.start:.9g} to {stream.end:.9g} s, '
                f'the motion is from {motion.start:.9g} to {motion.end:.9g} s; must overlap'
            )

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion at `times` `(n,)` s, in any order; see `Motion.at`."""
        t = times_within(times, self.start, self.end)
        base = self._motion.at(t)
        value, slope, apart = self._stream.at(t)
        improved = self._improve(base, value, slope)
        gap = apart[:, 0] > self.longest_gap
        if not gap.any():
            return improved
        fields = {
            field.name: np.where(
                gap if field.name == 'time' else gap[:, None],
                getattr(base, field.name),
                getattr(improved, field.name),
            )
            for field in dataclasses.fields(base)
        }
        return dataclasses.replace(improved, **fields)

    def _improve(self, base: Trajectory, value: FloatArray, slope: FloatArray) -> Trajectory:
        raise NotImplementedError


class InertialMotion(_Measured):
    """Motion with the accelerations and angular rates that a noise-free IMU measured.

    Position, velocity and orientation are those of `motion`. The IMU measures the rate w and the
    specific force f in the body's axes; l is its lever arm and g the gravity::

        angular velocity w,  angular acceleration w',
        acceleration R (f - w' x l - w x (w x l)) + g

    w' is the derivative of the cubics that join the rates; it matters only with a lever arm. In
    gaps of 0.1 s or more, accelerations are those of `motion`.

    Parameters
    ----------
    motion : Motion
        Motion of the body.
    imu : ImuArray
        Noise-free, at least three messages with increasing stamps; the orientation is not used.
    origin_ns : int
        Stamp of motion time 0.
    gravity : float
        m/s^2, as contained in the specific force; sensors on this motion must use the same.
    mounting : Mounting
        Mounting of that IMU.
    earth : object, optional
        Ignored, since simulators have a flat Earth at rest.

    Raises
    ------
    MotionError
        If there are too few messages, or if they are out of order, not finite, or of another time.

    Examples
    --------
    >>> from sim_sensors import load_imu, motion_of
    >>> from sim_sensors.imu import simulate
    >>> drive = motion_of('circle', duration=2.0)
    >>> exact = simulate(load_imu('ideal'), drive, seed=1, run='1')
    >>> ridden = InertialMotion(drive, exact, origin_ns=0, gravity=9.80665)
    >>> again = simulate(load_imu('ideal'), ridden, seed=1, run='1')
    >>> bool(np.allclose(again.linear_acceleration, exact.linear_acceleration, atol=1e-12))
    True
    """

    longest_gap = 0.1

    def __init__(
        self,
        motion: Motion,
        imu: ImuArray,
        *,
        origin_ns: int,
        gravity: float,
        mounting: Mounting = Mounting(),
        earth: object = None,
    ) -> None:
        values = np.hstack([imu.angular_velocity, imu.linear_acceleration])
        super().__init__(
            motion, _Stream('the noise-free IMU', imu.stamp_ns, values, origin_ns), mounting
        )
        self._gravity = gravity

    def _improve(self, base: Trajectory, value: FloatArray, slope: FloatArray) -> Trajectory:
        turn = self._mounting.turn
        rate, rate_change = (rotations.rotate(turn, part[:, :3]) for part in (value, slope))
        arm = np.broadcast_to(self._mounting.arm, rate.shape)
        pull = rotations.cross(rate_change, arm)
        pull = pull + rotations.cross(rate, rotations.cross(rate, arm))
        force = rotations.rotate(turn, value[:, 3:]) - pull
        acceleration = rotations.rotate(base.orientation, force)
        acceleration[:, 2] -= self._gravity
        return dataclasses.replace(
            base,
            angular_velocity=rate,
            angular_acceleration=rate_change,
            acceleration=acceleration,
        )


class SurveyedMotion(_Measured):
    """Motion with the positions that a noise-free GPS measured.

    Everything else is that of `motion`, as are the positions in gaps of 3 s or more.

    Parameters
    ----------
    motion, origin_ns
        See `InertialMotion`.
    fixes : FixArray
        Noise-free; messages without a fix are ignored.
    frame : Georeference
        Place of the motion on the Earth.
    mounting : Mounting
        Mounting of that antenna.

    Raises
    ------
    MotionError
        See `InertialMotion`.

    Examples
    --------
    >>> from sim_sensors import load_gps, motion_of
    >>> from sim_sensors.gps import simulate
    >>> from sim_sensors.world.geodesy import DEFAULT_ORIGIN
    >>> drive = motion_of('circle', duration=2.0)
    >>> exact = simulate(load_gps('baseline'), drive, seed=1, run='1')
    >>> surveyed = SurveyedMotion(drive, exact, origin_ns=0, frame=DEFAULT_ORIGIN)
    >>> times = exact.stamp_ns * 1e-9
    >>> bool(np.abs(surveyed.at(times).position - drive.at(times).position).max() < 1e-3)
    True
    """

    longest_gap = 3.0

    def __init__(
        self,
        motion: Motion,
        fixes: FixArray,
        *,
        origin_ns: int,
        frame: Georeference,
        mounting: Mounting = Mounting(),
    ) -> None:
        fixes = fixes.take(fixes.has_fix)
        place = frame.to_enu(fixes.latitude, fixes.longitude, fixes.altitude)
        super().__init__(
            motion, _Stream('the noise-free GPS', fixes.stamp_ns, place, origin_ns), mounting
        )

    def _improve(self, base: Trajectory, value: FloatArray, slope: FloatArray) -> Trajectory:
        arm = np.broadcast_to(self._mounting.arm, value.shape)
        return dataclasses.replace(base, position=value - rotations.rotate(base.orientation, arm))


@dataclasses.dataclass(frozen=True, eq=False)
class MagneticTrajectory(Trajectory):
    """Motion with the magnetic field along it.

    Attributes
    ----------
    magnetic_field : (n, 3) float
        T, body.
    """

    magnetic_field: FloatArray


class MagneticMotion(_Measured):
    """Motion through the magnetic field that a noise-free magnetometer measured.

    A magnetometer on it measures that field instead of the field of its world, wherever it is
    mounted. The effect of nearby magnets is thus included.

    For `motion`, `origin_ns`, `mounting` and errors see `InertialMotion`; `field`, T, holds the
    noise-free messages.

    Examples
    --------
    >>> from sim_sensors import load_mag, load_world, motion_of
    >>> from sim_sensors.magnetometer import simulate
    >>> drive = motion_of('circle', duration=2.0)
    >>> room = load_world('dipole_room')
    >>> exact = simulate(load_mag('ideal'), drive, seed=1, run='1', world=room)
    >>> magnetic = MagneticMotion(drive, exact, origin_ns=0)
    >>> again = simulate(load_mag('ideal'), magnetic, seed=1, run='1', world=load_world('default'))
    >>> bool(np.allclose(again.magnetic_field, exact.magnetic_field, rtol=1e-12))
    True
    """

    longest_gap = math.inf

    def __init__(
        self,
        motion: Motion,
        field: MagneticFieldArray,
        *,
        origin_ns: int,
        mounting: Mounting = Mounting(),
    ) -> None:
        values = field.magnetic_field
        super().__init__(
            motion,
            _Stream('the noise-free magnetometer', field.stamp_ns, values, origin_ns),
            mounting,
        )

    def _improve(self, base: Trajectory, value: FloatArray, slope: FloatArray) -> Trajectory:
        fields = {field.name: getattr(base, field.name) for field in dataclasses.fields(base)}
        field = rotations.rotate(self._mounting.turn, value)
        return MagneticTrajectory(**fields, magnetic_field=field)
