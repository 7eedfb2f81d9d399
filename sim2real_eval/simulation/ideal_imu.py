# SPDX-License-Identifier: Apache-2.0
"""What an IMU should have measured on the true motion of a recording."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from scipy.spatial.transform import Rotation

from sim_sensors.core.blocks import blocks
from sim_sensors.core.measurements import Columns, FloatArray
from sim_sensors.imu.imu import ExactKinematics, IdealMeasurement
from sim_sensors.motion.trajectory import Motion
from sim_sensors.world.geodesy import STANDARD_GRAVITY
from .twin_maker import TwinMaker

_Place = tuple[FloatArray, FloatArray]

_latest: WeakKeyDictionary[TwinMaker, tuple[list[float], FloatArray, IdealMeasurement]]
_latest = WeakKeyDictionary()  # where and when, and what; kept as long as the maker


def ideal_imu(
    maker: TwinMaker, place: _Place, times: FloatArray, gravity: float = STANDARD_GRAVITY
) -> IdealMeasurement:
    """Return what an IMU should have measured on the truth of a recording.

    The latest answer is kept for the next question, which is often the same, as checks, the real
    sensor and simulated ones ask for the same stamps: until the maker goes, or `forget`.

    Parameters
    ----------
    maker : TwinMaker
        Of the recording.
    place : (3,) and (4,) float
        Lever arm, m, and mounting, quaternion x y z w, in the body; see `TwinMaker.mounting`.
    times : (n,) float
        s since the truth began.
    gravity : float
        m/s^2.
    """
    about = [*place[0].tolist(), *place[1].tolist(), gravity]
    known = _latest.get(maker)
    if (
        known is None
        or known[0] != about
        or not (known[1] is times or np.array_equal(known[1], times))
    ):
        found = ideal_on(maker.motion, place, times, gravity)
        known = _latest[maker] = about, times, found
    return known[2]


def forget(maker: TwinMaker) -> None:
    """Let go of what `ideal_imu` keeps, 80 bytes of each message, where nobody asks again."""
    _latest.pop(maker, None)


def ideal_on(
    motion: Motion, place: _Place, times: FloatArray, gravity: float = STANDARD_GRAVITY
) -> IdealMeasurement:
    """Return the same of any motion, a block at a time."""
    arm, turn = place
    kinematics = ExactKinematics(arm, Rotation.from_quat(turn).as_euler('xyz'), gravity)
    found = Columns[IdealMeasurement]()
    for part in blocks(len(times)):
        found.add(kinematics.ideal_measurement(motion.at(times[part]), np.empty(0)))
    return found.joined()
