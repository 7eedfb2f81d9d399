# SPDX-License-Identifier: Apache-2.0
"""What navsat_transform knows of its fixes and sensors, laid out for the compiled loop."""

from __future__ import annotations

import dataclasses
import functools
import threading

import numpy as np
import pyproj
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.robot_localization.configuration import NavsatConfig
from sim2real_eval.judge.robot_localization.navsat import Navsat, NavsatState
from sim2real_eval.recording.frames import FrameTree
from sim_sensors.core.measurements import FixArray, FloatArray, IntArray
from sim_sensors.world.geodesy import LocalFrame

# Universal Transverse Mercator: the plane in which navsat_transform works.


def utm_zone(latitude: float, longitude: float) -> int:
    """Return the zone of a position in degrees, with the exceptions for Norway and Svalbard."""
    longitude = (longitude + 180.0) % 360.0 - 180.0
    if 56.0 <= latitude < 64.0 and 3.0 <= longitude < 12.0:
        return 32
    if 72.0 <= latitude < 84.0 and 0.0 <= longitude < 42.0:
        return 31 + 2 * int((longitude + 3.0) // 12.0)
    return int((longitude + 180.0) // 6.0) + 1


@functools.lru_cache(maxsize=32)
def _projection_of(zone: int, south: bool, _thread: int) -> pyproj.Proj:
    return pyproj.Proj(proj='utm', zone=zone, south=south, ellps='WGS84')


def _projection(zone: int, south: bool) -> pyproj.Proj:
    """Return a projection for this thread alone: pyproj promises no more."""
    return _projection_of(zone, south, threading.get_ident())


def to_utm(
    latitude: FloatArray, longitude: FloatArray, datum: tuple[float, float] | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Project positions into one zone.

    Parameters
    ----------
    latitude, longitude : (n,) float
        Degrees, WGS84.
    datum : tuple of float or None
        Latitude and longitude of the position whose zone it is; None for the first.

    Returns
    -------
    easting, northing : (n,) float
        Metres on the plane, whose scale is 0.9996 at the zone's central meridian.
    convergence : (n,) float
        Angle from grid north to true north, radians, positive east of the central meridian on
        the northern hemisphere.
    """
    if len(latitude) == 0:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    first = datum or (float(latitude[0]), float(longitude[0]))
    projection = _projection(utm_zone(*first), first[0] < 0.0)
    easting, northing = projection(longitude, latitude)
    factors = projection.get_factors(longitude, latitude)
    convergence = np.radians(np.asarray(factors.meridian_convergence, dtype=np.float64))
    return np.asarray(easting), np.asarray(northing), convergence


def from_utm(
    easting: FloatArray, northing: FloatArray, datum: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Return latitude and longitude in degrees, (n,) each, of positions in the datum's zone."""
    if len(easting) == 0:
        return np.zeros(0), np.zeros(0)
    projection = _projection(utm_zone(*datum), datum[0] < 0.0)
    longitude, latitude = projection(easting, northing, inverse=True)
    return np.asarray(latitude), np.asarray(longitude)


def new_navsat(config: NavsatConfig | None, fixes: int) -> Navsat:
    """Return the node's settings with room for a number of fixes; None for no such node."""
    return Navsat(
        easting=np.zeros(fixes),
        northing=np.zeros(fixes),
        altitude=np.zeros(fixes),
        convergence=np.zeros(fixes),
        covariance=np.zeros((fixes, 3, 3)),
        stamp_ns=np.zeros(fixes, dtype=np.int64),
        declination=0.0 if config is None else config.magnetic_declination,
        yaw_offset=0.0 if config is None else config.yaw_offset,
        mounting=np.zeros(3),
        antenna=np.zeros(3),
        datum=_datum(config),
        use_odometry_yaw=config is not None and config.use_odometry_yaw,
        zero_altitude=config is not None and config.zero_altitude,
        publish_filtered_gps=config is not None and config.publish_filtered_gps,
        at_arrival=config is not None and not config.timed,
    )


@dataclasses.dataclass(frozen=True)
class Plane:
    """Plane in which a front end works: that of UTM, or the tangent plane of a position.

    Attributes
    ----------
    latitude, longitude : float
        Degrees; the position that chooses the zone, or where the plane touches the ellipsoid.
    tangent : bool
    height : float or None
        Height at which it touches; the third coordinate is then the distance from it. None: it is
        the altitude, and a tangent plane touches at height 0, as in robot_localization.
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

    def unproject(
        self, easting: FloatArray, northing: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return latitude and longitude in degrees, (n,) each, of positions in the plane.

        Of those in a tangent plane it is not quite the inverse, as in robot_localization: height
        0 is taken, which at an altitude of 260 m stretches distances by 4e-5.
        """
        if not self.tangent:
            return from_utm(easting, northing, (self.latitude, self.longitude))
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
    if not config.timed:
        return Plane(latitude, longitude, True, height)
    return Plane(latitude, longitude, config.use_local_cartesian)


def enter_fixes(navsat: Navsat, fixes: FixArray, plane: Plane) -> None:
    """Fill the room for fixes."""
    if len(fixes) == 0:
        return
    navsat.easting[:], navsat.northing[:], navsat.altitude[:], navsat.convergence[:] = (
        plane.project(fixes.latitude, fixes.longitude, fixes.altitude)
    )
    navsat.covariance[:] = fixes.position_covariance
    navsat.stamp_ns[:] = fixes.stamp_ns


def _datum(config: NavsatConfig | None) -> FloatArray:
    if config is None or config.datum is None or not config.timed:
        return np.zeros(5)
    latitude, longitude, yaw = config.datum
    plane = Plane(latitude, longitude, config.use_local_cartesian)
    east, north, _, convergence = plane.project(
        np.array([latitude]), np.array([longitude]), np.zeros(1)
    )
    return np.array([1.0, east[0], north[0], convergence[0], yaw])


def place_antenna(
    navsat: Navsat, config: NavsatConfig, frame: str, base: str, frames: FrameTree
) -> None:
    """Enter where the antenna sits; raises JudgeError when nothing connects its frame."""
    _, navsat.antenna[:] = frames.lookup(base, frame, f'{config.title} (fix)')


def place_heading(navsat: Navsat, frame: str, base: str, frames: FrameTree) -> None:
    """Enter how the heading's IMU is mounted; raises JudgeError when nothing connects it."""
    rotation, _ = frames.lookup(base, frame, 'navsat_transform (imu)')
    navsat.mounting[:] = Rotation.from_matrix(rotation).as_euler('xyz')


# gps/filtered of navsat_transform: the filter's position back on the Earth.

# What the node writes: GBAS, whatever the receiver, and a covariance that is known.
_STATUS = 2
_COVARIANCE_TYPE = 3


def no_fixes() -> FixArray:
    """Return no fixes."""
    none = np.zeros(0, dtype=np.int64)
    return FixArray(
        stamp_ns=none, arrival_ns=none, frame='', latitude=np.zeros(0), longitude=np.zeros(0),
        altitude=np.zeros(0), status=none, position_covariance=np.zeros((0, 3, 3)),
        position_covariance_type=none,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class FilteredGps:
    """Filtered odometries that navsat_transform sends out as gps/filtered, not yet turned back.

    Attributes
    ----------
    memory : NavsatState
        Of a node whose transform is fixed.
    plane : Plane
        In which it works.
    frame : str
        base_link.
    stamp_ns, tick_ns : (n,) int64
        Stamps of the odometries, and of the ticks that send them out.
    position : (n, 3) float
        World frame, metres.
    covariance : (n, 3, 3) float
        Of the positions, world frame.
    """

    memory: NavsatState
    plane: Plane
    frame: str
    stamp_ns: IntArray
    tick_ns: IntArray
    position: FloatArray
    covariance: FloatArray

    def fixes(self) -> FixArray:
        """Turn the odometries into fixes, as the node does after it has fixed its transform.

        With W the turn of the transform, from the plane to the world: plane position = datum +
        W' (position - position of the datum in the world), covariance = W' P W. It is the position
        of base_link, not of the antenna; the third coordinate is the altitude itself.
        """
        W, origin, n = self.memory.turn, self.memory.origin, len(self.stamp_ns)
        offset = self.position - origin[3:]
        # Sums written out, so that one row gives the bits that it gives among many.
        x, y, z = (
            origin[i] + (W[0, i] * offset[:, 0] + W[1, i] * offset[:, 1] + W[2, i] * offset[:, 2])
            for i in range(3)
        )
        turned = np.zeros((n, 3, 3))
        for i in range(3):
            for j in range(3):
                for k in range(3):
                    for m in range(3):
                        turned[:, i, j] += W[k, i] * self.covariance[:, k, m] * W[m, j]
        latitude, longitude = self.plane.unproject(x, y)
        return FixArray(
            stamp_ns=self.stamp_ns,
            arrival_ns=self.tick_ns,
            frame=self.frame,
            latitude=latitude,
            longitude=longitude,
            altitude=z,
            status=np.full(n, _STATUS),
            position_covariance=turned,
            position_covariance_type=np.full(n, _COVARIANCE_TYPE),
        )
