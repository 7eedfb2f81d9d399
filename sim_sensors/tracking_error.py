# SPDX-License-Identifier: Apache-2.0
"""How far a robot is from where it should be: distance, along and across the track, yaw."""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from sim_sensors.measurements import FloatArray
from sim_sensors.planar import Pose, relative
from sim_sensors.reference import ReferenceMotion

__all__ = ['ErrorStatistics', 'TrackingError', 'TrackingErrors', 'tracking_error']


class TrackingError(NamedTuple):
    """Errors of one pose.

    Attributes
    ----------
    along, across : float
        Robot minus reference along the reference's heading (negative: late) and to its left, m.
    yaw : float
        REFERENCE MINUS ROBOT, as in [Cesenek2019], wrapped to [-pi, pi], rad.
    """

    along: float
    across: float
    yaw: float

    @property
    def distance(self) -> float:
        """From the reference to the robot, m."""
        return math.hypot(self.along, self.across)


def tracking_error(wanted: Pose, actual: Pose) -> TrackingError:
    """Return the error of one pose."""
    seen = relative(wanted, actual)
    return TrackingError(seen.x, seen.y, -seen.heading)


@dataclasses.dataclass(frozen=True)
class ErrorStatistics:
    """Of the magnitude of one error: mean, root of the mean square, and maximum."""

    mean: float
    rms: float
    maximum: float

    @classmethod
    def of(cls, values: FloatArray) -> ErrorStatistics:
        """Return the statistics of `values` `(n,)`."""
        size = np.abs(values)
        return cls(float(size.mean()), float(np.sqrt(np.mean(size**2))), float(size.max()))


@dataclasses.dataclass(frozen=True, eq=False)
class TrackingErrors:
    """Errors over a drive, signs as in `TrackingError`.

    Attributes
    ----------
    time : (n,) s
    along, across, distance : (n,) m
    yaw : (n,) rad
    """

    time: FloatArray
    along: FloatArray
    across: FloatArray
    distance: FloatArray
    yaw: FloatArray

    @classmethod
    def of(cls, reference: ReferenceMotion, time: FloatArray, poses: FloatArray) -> TrackingErrors:
        """Return the errors of poses `(n, 3)` (x, y, heading) at `time` `(n,)` s."""
        wanted = reference.poses(time)
        rows = [
            tracking_error(Pose(*should), Pose(*is_))
            for should, is_ in zip(wanted.tolist(), poses.tolist(), strict=True)
        ]
        table = np.array(rows).reshape(-1, 3)
        distance = np.hypot(table[:, 0], table[:, 1])
        return cls(time, table[:, 0], table[:, 1], distance, table[:, 2])

    def statistics(self) -> dict[str, ErrorStatistics]:
        """Return the statistics of distance, along and across [m] and yaw [rad]."""
        names = ('distance', 'along', 'across', 'yaw')
        return {name: ErrorStatistics.of(getattr(self, name)) for name in names}
