# SPDX-License-Identifier: Apache-2.0
"""What the nodes publish in a run, as tables that the compiled loop fills."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from sim2real_eval.judge.robot_localization.fixes import Plane
from sim2real_eval.judge.robot_localization.navsat import NavsatState
from sim2real_eval.judge.robot_localization.state import N
from sim_sensors.core.compilation import kernel
from sim_sensors.core.measurements import FixArray, FloatArray, IntArray

__all__ = [
    'FilteredGps',
    'Output',
    'new_output',
    'no_fixes',
    'publish_filtered_gps',
    'publish_gps',
]


class Output(NamedTuple):
    """What the nodes publish; rows are filled in place.

    Attributes
    ----------
    n : (4,) int64
        Rows filled: filtered odometry, odometry/gps, corrections (those without room too),
        gps/filtered.
    stamp_ns, tick_ns : (t,) int64
        Stamp of each filtered odometry and the time of the tick that published it.
    x : (t, 15) float
    pose_covariance, twist_covariance : (t, 6, 6) float
    gps_fix, gps_tick_ns : (g,) int64
        Number of the fix behind each odometry/gps and the time of the tick.
    gps_position : (g, 3) float
    gps_covariance : (g, 6, 6) float
    counts : (p, 5) int64
        Per part, the columns COUNTS.
    correction : (c, 3) int64
        Part, stamp and number of states of each correction; what has no room is left out.
    nis : (c,) float
        Its normalised innovation squared, that is its squared Mahalanobis distance.
    filtered : (f, 2) int64
        Row of the filtered odometry behind each gps/filtered, and the time of the tick.
    """

    n: IntArray
    stamp_ns: IntArray
    tick_ns: IntArray
    x: FloatArray
    pose_covariance: FloatArray
    twist_covariance: FloatArray
    gps_fix: IntArray
    gps_tick_ns: IntArray
    gps_position: FloatArray
    gps_covariance: FloatArray
    counts: IntArray
    correction: IntArray
    nis: FloatArray
    filtered: IntArray


def new_output(
    rows: int, fixes: int, parts: int, corrections: int = 0, filtered: int = 0
) -> Output:
    """Return room for a number of filtered odometries, odometry/gps, corrections, gps/filtered."""
    return Output(
        n=np.zeros(4, dtype=np.int64),
        stamp_ns=np.zeros(rows, dtype=np.int64),
        tick_ns=np.zeros(rows, dtype=np.int64),
        x=np.zeros((rows, N)),
        pose_covariance=np.zeros((rows, 6, 6)),
        twist_covariance=np.zeros((rows, 6, 6)),
        gps_fix=np.zeros(fixes, dtype=np.int64),
        gps_tick_ns=np.zeros(fixes, dtype=np.int64),
        gps_position=np.zeros((fixes, 3)),
        gps_covariance=np.zeros((fixes, 6, 6)),
        counts=np.zeros((parts, 5), dtype=np.int64),
        correction=np.zeros((corrections, 3), dtype=np.int64),
        nis=np.zeros(corrections),
        filtered=np.zeros((filtered, 2), dtype=np.int64),
    )


@kernel
def publish_gps(out: Output, fix: int, now: int, position: FloatArray, cov: FloatArray) -> None:
    """Publish an odometry/gps."""
    row = out.n[1]
    out.gps_fix[row] = fix
    out.gps_tick_ns[row] = now
    for i in range(3):
        out.gps_position[row, i] = position[i]
    for i in range(6):
        for j in range(6):
            out.gps_covariance[row, i, j] = cov[i, j]
    out.n[1] += 1


@kernel
def publish_filtered_gps(out: Output, now: int) -> None:
    """Send the latest filtered odometry out as gps/filtered."""
    row = out.n[3]
    out.filtered[row, 0] = out.n[0] - 1
    out.filtered[row, 1] = now
    out.n[3] += 1


# -------- gps/filtered of navsat_transform: the filter's position back on the Earth.

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
