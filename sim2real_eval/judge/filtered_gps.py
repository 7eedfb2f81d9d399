# SPDX-License-Identifier: Apache-2.0
"""gps/filtered of navsat_transform: the filter's position back on the Earth."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim2real_eval.judge.fixes import Plane
from sim2real_eval.judge.navsat import NavsatState
from sim_sensors.measurements import FixArray, FloatArray, IntArray

__all__ = ['FilteredGps', 'no_fixes']

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
