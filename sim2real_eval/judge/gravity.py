# SPDX-License-Identifier: Apache-2.0
"""Gravity in an accelerometer's reading, compiled.

At rest an accelerometer reads g up. In the sensor's axes that is g A' e, A the attitude of the
sensor in the world and e the third unit vector; in base_link it is g M A' e, M the mounting.
Without an orientation in the message A = B M with B the filter's attitude of base_link, and so
g B' e. robot_localization subtracts g A' e from the acceleration that has already been turned into
base_link, which is right when M does not turn A' e: M = I, or about z on level ground.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim2real_eval.judge.rotations import matrix_from_angles, matrix_from_quaternion
from sim2real_eval.judge.state import ROLL
from sim_sensors.compilation import kernel
from sim_sensors.measurements import FloatArray

if TYPE_CHECKING:
    from sim2real_eval.judge.preparation import Parts, PartState

__all__ = ['take_off_gravity']


@kernel
def take_off_gravity(
    parts: Parts, memory: PartState, x: FloatArray, p: int, quaternion: FloatArray,
    has_attitude: bool, z: FloatArray,
) -> None:  # fmt: skip
    """Subtract gravity from an acceleration.

    Parameters
    ----------
    parts, memory : Parts, PartState
        Configuration and memory of all parts; work[:2] is scratch space.
    x : (15,) float
        State of the filter at the time of arrival.
    p : int
        Number of the part.
    quaternion : (4,) float
        x y z w, attitude of the sensor in the world. Whatever its heading refers to, its roll and
        pitch refer to gravity, so that `relative` does not matter once gravity is right.
    has_attitude : bool
        Whether the message gives one.
    z : (>= 3,) float
        Acceleration in base_link, m/s^2; changed.
    """
    rotation = parts.rotation[p]
    # Up, seen from a body, is the third row of its attitude.
    attitude, up, sensed = memory.work[0, :3, :3], memory.work[1, 0, :3], memory.work[1, 1, :3]
    if has_attitude:
        matrix_from_quaternion(quaternion, attitude)
    else:
        matrix_from_angles(x[ROLL], x[ROLL + 1], x[ROLL + 2], attitude)
    for i in range(3):
        up[i] = sensed[i] = attitude[2, i]
    if parts.correct_gravity:
        if has_attitude:
            for i in range(3):
                up[i] = 0.0
                for k in range(3):
                    up[i] += rotation[i, k] * sensed[k]
    elif not has_attitude or parts.relative[p]:
        for i in range(3):
            up[i] = 0.0
            for k in range(3):
                up[i] += sensed[k] * rotation[k, i]
    for i in range(3):
        z[i] -= parts.gravity * up[i]
