# SPDX-License-Identifier: Apache-2.0
"""The plain front end: a fix becomes a position in the local frame when it arrives, compiled.

No timer, no guess of a heading, no fix that another overtakes. The world is east-north-up about
the first fix, or about the datum, and the attitude of the filter must be given in it.
"""

from __future__ import annotations

from sim2real_eval.judge.navsat import Navsat, NavsatState
from sim2real_eval.judge.rotations import matrix_from_angles
from sim2real_eval.judge.state import PITCH, ROLL, YAW
from sim_sensors.compilation import kernel
from sim_sensors.measurements import FloatArray

__all__ = ['locate']


@kernel
def locate(
    navsat: Navsat, memory: NavsatState, x: FloatArray, number: int, position: FloatArray,
    cov: FloatArray,
) -> None:  # fmt: skip
    """Give the position of base_link that a fix says: fix - R antenna.

    Parameters
    ----------
    navsat : Navsat
        Whose fixes are east, north, up, metres.
    memory : NavsatState
        For its scratch space.
    x : (15,) float
        State of the filter at the arrival of the fix, whose attitude R turns the lever arm.
    number : int
        Of the fix.
    position : (>= 3,) float
        Filled with the position, world frame.
    cov : (6, 6) float
        Filled with its pose covariance, that of the fix.
    """
    R, C = memory.work[:3], navsat.covariance[number]
    matrix_from_angles(x[ROLL], x[PITCH], x[YAW], R)
    position[0] = navsat.easting[number]
    position[1] = navsat.northing[number]
    position[2] = navsat.altitude[number]
    for i in range(6):
        for j in range(6):
            cov[i, j] = C[i, j] if i < 3 and j < 3 else 0.0
    for i in range(3):
        for j in range(3):
            position[i] -= R[i, j] * navsat.antenna[j]
    if navsat.zero_altitude:
        position[2] = 0.0
