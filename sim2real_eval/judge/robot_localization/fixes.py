# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Front ends around the kernels of `navsat`: projection of fixes, mounting, live operation."""

from __future__ import annotations

import dataclasses
import functools
import threading

import numpy as np
import pyproj
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.truth import select_valid_fixes
from sim_sensors.core.measurements import FixArray, FloatArray, ImuArray, IntArray, OdometryArray
from sim_sensors.world.geodesy import LocalFrame
from . import navsat as kernels
from .configuration import FilterConfig, NavsatConfig
from .navsat import FIX, NAVSAT_SETTINGS, Navsat, NavsatState


def utm_zone(latitude: float, longitude: float) -> int:
    """Return the zone of a position in degrees, with the exceptions for Norway and Svalbard."""
    longitude = (longitude + 180.0) % 360.0 - 180.0
    if 56.0 <= latitude < 64.0 and 3.0 <= longitude < 12.0:
        return 32
    if 72.0 <= latitude < 84.0 and 0.0 <= longitude < 42.0:
        return 31 + 2 * int((longitude + 3.0) // 12.0)
    return int((longitude + 180.0) // 6.0) + 1


@functools.lru_cache(maxsize=32)
def _projection(zone: int, south: bool, _thread: int) -> pyproj.Proj:
    """Return a projection for one thread; pyproj objects must not be shared."""
    return pyproj.Proj(proj='utm', zone=zone, south=south, ellps='WGS84')


def _projection_at(latitude: float, longitude: float) -> pyproj.Proj:
    return _projection(utm_zone(latitude, longitude), latitude < 0.0, threading.get_ident())


def to_utm(
    latitude: FloatArray, longitude: FloatArray, datum: tuple[float, float] | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Project positions, (n,) degrees, WGS84, into the UTM zone of the datum or first position.

    Returns easting and northing, m, and the convergence, rad, (n,) each. The scale is 0.9996 at
    the central meridian. The convergence is the angle from grid north to true north, positive east
    of the central meridian on the northern hemisphere.
    """
    if len(latitude) == 0:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    projection = _projection_at(*(datum or (float(latitude[0]), float(longitude[0]))))
    easting, northing = projection(longitude, latitude)
    factors = projection.get_factors(longitude, latitude)
    convergence = np.radians(np.asarray(factors.meridian_convergence, dtype=np.float64))
    return np.asarray(easting), np.asarray(northing), convergence


@dataclasses.dataclass(frozen=True)
class Plane:
    """Plane of a front end: UTM, or the tangent plane of a position.

    Latitude and longitude, degrees, select the UTM zone or are the tangent point. `height` is that
    of the tangent point, and the third coordinate is the distance from the plane. If it is None,
    the third coordinate is the altitude and the tangent point has height 0, as in
    robot_localization.
    """

    latitude: float
    longitude: float
    tangent: bool
    height: float | None = None

    def project(
        self, latitude: FloatArray, longitude: FloatArray, altitude: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return easting, northing, third coordinate in m, meridian convergence in rad, (n,)."""
        if not self.tangent:
            east, north, turn = to_utm(latitude, longitude, (self.latitude, self.longitude))
            return east, north, altitude, turn
        enu = self._tangent.to_enu(latitude, longitude, altitude)
        up = altitude if self.height is None else enu[:, 2]
        return enu[:, 0], enu[:, 1], up, np.zeros(len(enu))

    def contains(self, latitude: FloatArray, longitude: FloatArray) -> NDArray[np.bool_]:
        """Return which positions, (n,) degrees, robot_localization can project.

        A UTM zone ends 60 degrees from its central meridian, and 100 km beyond its nominal
        eastings, 100 to 900 km, and northings: limits of GeographicLib. A tangent plane has none.
        """
        is_finite = np.isfinite(latitude) & np.isfinite(longitude)
        if self.tangent or not len(latitude):
            return is_finite
        easting, northing, _ = to_utm(latitude, longitude, (self.latitude, self.longitude))
        central = 6.0 * utm_zone(self.latitude, self.longitude) - 183.0
        away = np.abs((longitude - central + 180.0) % 360.0 - 180.0)
        south = self.latitude < 0.0
        lowest, highest = (900e3, 19600e3) if south else (-9100e3, 9600e3)
        is_inside = (easting >= 0.0) & (easting <= 1000e3) & (away <= 60.0)
        return np.asarray(is_finite & is_inside & (northing >= lowest) & (northing <= highest))

    def unproject(
        self, easting: FloatArray, northing: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return latitude and longitude in degrees, (n,) each, of positions in the plane.

        As in robot_localization, a tangent plane is not inverted exactly: height 0 is assumed,
        which stretches distances by 4e-5 at an altitude of 260 m.
        """
        if not self.tangent:
            if len(easting) == 0:
                return np.zeros(0), np.zeros(0)
            projection = _projection_at(self.latitude, self.longitude)
            longitude, latitude = projection(easting, northing, inverse=True)
            return np.asarray(latitude), np.asarray(longitude)
        points = np.stack([easting, northing, np.zeros(len(easting))], axis=1)
        latitude, longitude, _ = self._tangent.to_geodetic(points)
        return latitude, longitude

    @property
    def _tangent(self) -> LocalFrame:
        return LocalFrame(
            latitude_deg=self.latitude, longitude_deg=self.longitude, altitude_m=self.height or 0.0
        )


def plane_of(config: NavsatConfig, fixes: FixArray) -> Plane:
    """Return the plane of the datum or, without one, of the first fix."""
    if config.datum is not None:
        (latitude, longitude), height = config.datum[:2], 0.0
    elif len(fixes):
        latitude, longitude = float(fixes.latitude[0]), float(fixes.longitude[0])
        height = float(fixes.altitude[0])
    else:
        latitude = longitude = height = 0.0
    if not config.has_timer:
        return Plane(latitude, longitude, True, height)
    if not config.use_local_cartesian and not -80.0 <= latitude < 84.0:
        raise JudgeError(
            f'{config.title}: latitude {latitude:.5g} deg has no UTM zone; use_local_cartesian or '
            'the front end enu do without'
        )
    return Plane(latitude, longitude, config.use_local_cartesian)


def new_navsat(config: NavsatConfig, fixes: int) -> Navsat:
    """Return the settings of the node and an empty table of fixes."""
    datum = np.zeros(5)
    if config.datum is not None and config.has_timer:
        latitude, longitude, yaw = config.datum
        plane = Plane(latitude, longitude, config.use_local_cartesian)
        east, north, _, convergence = plane.project(
            np.array([latitude]), np.array([longitude]), np.zeros(1)
        )
        datum = np.array([1.0, east[0], north[0], convergence[0], yaw])
    settings: np.record = np.zeros(1, NAVSAT_SETTINGS)[0]
    settings.declination, settings.yaw_offset = config.magnetic_declination, config.yaw_offset
    settings.datum[:] = datum
    settings.use_odometry_yaw = config.use_odometry_yaw
    settings.zero_altitude = config.zero_altitude
    settings.publish_filtered_gps = config.publish_filtered_gps
    settings.at_arrival = not config.has_timer
    return Navsat(np.zeros(fixes, FIX), settings)


def navsat_of(
    config: NavsatConfig | None,
    fixes: FixArray | None,
    headings: ImuArray | None,
    base: str,
    frames: FrameTree,
) -> Navsat:
    """Return the settings of the node, its fixes and the mounting of its sensors on `base`.

    `config` is None without such a node. JudgeError when no transform connects a sensor.
    """
    if config is None or fixes is None:
        return new_navsat(NavsatConfig(), 0)
    navsat = new_navsat(config, len(fixes))
    _place_antenna(navsat, config, fixes.frame, base, frames)
    if headings is not None and config.needs_heading:
        _place_heading(navsat, headings.frame, base, frames)
    _enter_fixes(navsat, fixes, plane_of(config, fixes))
    return navsat


def _enter_fixes(navsat: Navsat, fixes: FixArray, plane: Plane) -> None:
    """Fill the table of fixes."""
    if len(fixes) == 0:
        return
    positions = plane.project(fixes.latitude, fixes.longitude, fixes.altitude)
    for name, column in zip(
        ('easting', 'northing', 'altitude', 'convergence'), positions, strict=True
    ):
        navsat.fixes[name] = column
    navsat.fixes['covariance'] = fixes.position_covariance
    navsat.fixes['stamp_ns'] = fixes.stamp_ns


def _place_antenna(
    navsat: Navsat, config: NavsatConfig, frame: str, base: str, frames: FrameTree
) -> None:
    _, navsat.settings.antenna[:] = frames.lookup(base, frame, f'{config.title} (fix)')


def _place_heading(navsat: Navsat, frame: str, base: str, frames: FrameTree) -> None:
    rotation, _ = frames.lookup(base, frame, 'navsat_transform (imu)')
    navsat.settings.mounting[:] = Rotation.from_matrix(rotation).as_euler('xyz')


# Constants of the node: status GBAS, whatever the receiver, and a known covariance.
_STATUS = 2
_COVARIANCE_TYPE = 3


def no_fixes() -> FixArray:
    """Return an empty array of fixes."""
    empty = np.zeros(0, dtype=np.int64)
    return FixArray(
        stamp_ns=empty, arrival_ns=empty, frame='', latitude=np.zeros(0), longitude=np.zeros(0),
        altitude=np.zeros(0), status=empty, position_covariance=np.zeros((0, 3, 3)),
        position_covariance_type=empty,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class FilteredGps:
    """Filtered odometries that navsat_transform publishes as gps/filtered, before conversion."""

    memory: NavsatState  # of a node whose transform is fixed
    plane: Plane
    frame: str  # base_link
    # (n,) Stamps of the odometries and times of the ticks that publish them.
    stamp_ns: IntArray
    tick_ns: IntArray
    position: FloatArray  # (n, 3) World frame, metres
    covariance: FloatArray  # (n, 3, 3) Of the positions, world frame

    def fixes(self) -> FixArray:
        """Convert the odometries to fixes, as the node does after it has fixed its transform.

        The plane position is datum + W' (position - position of the datum in the world) and the
        covariance W' P W, with W the rotation from the plane to the world. The position is that of
        base_link, not of the antenna. The third coordinate is the altitude.
        """
        W, origin, n = self.memory.turn, self.memory.origin, len(self.stamp_ns)
        offset = self.position - origin[3:]
        # The sums are explicit so that one row has the same bits as among many rows.
        x, y, z = (
            origin[i] + (W[0, i] * offset[:, 0] + W[1, i] * offset[:, 1] + W[2, i] * offset[:, 2])
            for i in range(3)
        )
        rotated = np.zeros((n, 3, 3))
        for i in range(3):
            for j in range(3):
                for k in range(3):
                    for m in range(3):
                        rotated[:, i, j] += W[k, i] * self.covariance[:, k, m] * W[m, j]
        latitude, longitude = self.plane.unproject(x, y)
        return FixArray(
            stamp_ns=self.stamp_ns,
            arrival_ns=self.tick_ns,
            frame=self.frame,
            latitude=latitude,
            longitude=longitude,
            altitude=z,
            status=np.full(n, _STATUS),
            position_covariance=rotated,
            position_covariance_type=np.full(n, _COVARIANCE_TYPE),
        )


class LiveNavsat:
    """navsat_transform_node or the immediate front end, without clock and transport.

    It runs the kernels of the batch loop on single fixes. The parameters of the filter name
    base_link and the world. `set_frames` replaces the static transforms.
    """

    def __init__(self, config: NavsatConfig, ekf: FilterConfig, frames: FrameTree) -> None:
        self.config, self._frames = config, frames
        self._base, self._world = ekf.base_link_frame, ekf.world_frame
        self.reset()

    def reset(self) -> None:
        """Forget all messages, like a restarted node."""
        self._navsat, self.memory = new_navsat(self.config, 1), kernels.new_navsat_state()
        # The first fix defines the plane if there is no datum.
        self._plane = None if self.config.datum is None else plane_of(self.config, no_fixes())
        self._placed: dict[str, str] = {}
        # Number of valid fixes, of those passed on, and of those outside the UTM zone.
        self.fixes_seen = self.fixes_used = self.fixes_beyond = 0

    def set_frames(self, frames: FrameTree) -> None:
        """Replace the static transforms for later messages."""
        self._frames = frames
        self._placed.clear()

    def receive_fix(self, fixes: FixArray, x: FloatArray | None = None) -> list[OdometryArray]:
        """Receive fixes; return the odometry/gps that the immediate front end publishes.

        The immediate front end needs the current state of the filter, x. JudgeError when no
        transform connects the frame of the fixes to base_link.
        """
        published, valid = [], select_valid_fixes(fixes)
        if len(valid) and self._placed.get('fix') != fixes.frame:
            _place_antenna(self._navsat, self.config, fixes.frame, self._base, self._frames)
            self._placed['fix'] = fixes.frame
        for number in range(len(valid)):
            fix = valid.take([number])
            self._plane = self._plane or plane_of(self.config, fix)
            if not self._plane.contains(fix.latitude, fix.longitude)[0]:
                self.fixes_beyond += 1
                continue
            _enter_fixes(self._navsat, fix, self._plane)
            self.fixes_seen += 1
            if self.config.has_timer:
                kernels.receive_fix(self._navsat, self.memory, 0)
            elif x is not None:
                published.append(self._locate(x))
        return published

    def receive_heading(self, imu: ImuArray) -> None:
        """Receive orientations; JudgeError when no transform connects their frame to base_link."""
        if self._placed.get('imu') != imu.frame:
            _place_heading(self._navsat, imu.frame, self._base, self._frames)
            self._placed['imu'] = imu.frame
        for q in imu.orientation:
            # A copy: compiled code for read-only arrays would be another function.
            kernels.receive_heading(self._navsat, self.memory, q.copy())

    def receive_odometry(self, pose: FloatArray) -> None:
        """Receive a filtered odometry: position with roll, pitch, yaw, (6,)."""
        kernels.receive_odometry(self._navsat, self.memory, pose)

    def tick(self) -> OdometryArray | None:
        """Run the timer once; return the published odometry/gps."""
        position, covariance = np.zeros(3), np.zeros((6, 6))
        if kernels.tick(self._navsat, self.memory, position, covariance) < 0:
            return None
        return self._odometry(position, covariance)

    def _locate(self, x: FloatArray) -> OdometryArray:
        position, covariance = np.zeros(3), np.zeros((6, 6))
        kernels.locate(self._navsat, self.memory, x, 0, position, covariance)
        return self._odometry(position, covariance)

    def _odometry(self, position: FloatArray, covariance: FloatArray) -> OdometryArray:
        """Return the odometry/gps: identity attitude, no motion."""
        self.fixes_used += 1
        return OdometryArray(
            stamp_ns=self._navsat.fixes['stamp_ns'].copy(),
            arrival_ns=self._navsat.fixes['stamp_ns'].copy(),
            frame=self._world,
            child_frame='',
            position=position[None],
            orientation=np.array([[0.0, 0.0, 0.0, 1.0]]),
            linear_velocity=np.zeros((1, 3)),
            angular_velocity=np.zeros((1, 3)),
            pose_covariance=covariance[None],
            twist_covariance=np.zeros((1, 6, 6)),
        )

    def filtered_fix(self, odometry: OdometryArray, tick_ns: int) -> FixArray | None:
        """Return the gps/filtered of the last tick, of the latest filtered odometry, if any."""
        if self._plane is None or not self.config.publish_filtered_gps:
            return None
        if not kernels.publishes_filtered_gps(self.memory):
            return None
        return FilteredGps(
            self.memory, self._plane, self._base, odometry.stamp_ns, np.array([tick_ns]),
            odometry.position, odometry.pose_covariance[:, :3, :3],
        ).fixes()  # fmt: skip
