# SPDX-License-Identifier: Apache-2.0
"""What the error-state filter sees of its state: the antenna, held speeds, at rest no heading."""

from __future__ import annotations

from sim2real_eval.inertial.strapdown import (
    ATTITUDE,
    ERRORS,
    GYROSCOPE_BIAS,
    POSITION,
    VELOCITY,
)
from sim2real_eval.judge.rotations import matrix_from_quaternion
from sim_sensors.compilation import kernel
from sim_sensors.measurements import FloatArray

__all__ = ['antenna_measurement', 'heading_unobservable_at_rest', 'speed_measurement']


@kernel
def antenna_measurement(x: FloatArray, arm: FloatArray, H: FloatArray, R: FloatArray) -> None:
    """Fill H, (3, 15), with the derivative of the antenna's position, and H[3, :3] with it."""
    matrix_from_quaternion(x[6:10], R)
    for i in range(3):
        for j in range(ERRORS):
            H[i, j] = 0.0
        H[i, POSITION + i] = 1.0
        H[3, i] = R[i, 0] * arm[0] + R[i, 1] * arm[1] + R[i, 2] * arm[2]
    a0, a1, a2 = H[3, 0], H[3, 1], H[3, 2]
    # Exp(e) R arm = R arm - [R arm] e.
    H[0, ATTITUDE + 1], H[0, ATTITUDE + 2] = a2, -a1
    H[1, ATTITUDE], H[1, ATTITUDE + 2] = -a2, a0
    H[2, ATTITUDE], H[2, ATTITUDE + 1] = a1, -a0
    for i in range(3):
        H[3, i] += x[i]


@kernel
def speed_measurement(
    x: FloatArray,
    rate: FloatArray,
    base: FloatArray,
    hold: FloatArray,
    H: FloatArray,
    nu: FloatArray,
    V: FloatArray,
    R: FloatArray,
) -> int:
    """Fill H, nu and V for the held speeds of base_link; return how many there are.

    The velocity of base_link in the body is R' v + (w - b) x base.
    """
    matrix_from_quaternion(x[6:10], R)
    v0, v1, v2 = x[3], x[4], x[5]
    w0, w1, w2 = rate[0] - x[10], rate[1] - x[11], rate[2] - x[12]
    m = 0
    for axis in range(1, 3):
        if hold[axis - 1] > 0.0:
            for j in range(ERRORS):
                H[m, j] = 0.0
            r0, r1, r2 = R[0, axis], R[1, axis], R[2, axis]
            H[m, VELOCITY], H[m, VELOCITY + 1], H[m, VELOCITY + 2] = r0, r1, r2
            # R' Exp(-e) v = R' v + R' [v] e.
            H[m, ATTITUDE] = r1 * v2 - r2 * v1
            H[m, ATTITUDE + 1] = r2 * v0 - r0 * v2
            H[m, ATTITUDE + 2] = r0 * v1 - r1 * v0
            if axis == 1:
                speed = w2 * base[0] - w0 * base[2]
                H[m, GYROSCOPE_BIAS], H[m, GYROSCOPE_BIAS + 2] = base[2], -base[0]
            else:
                speed = w0 * base[1] - w1 * base[0]
                H[m, GYROSCOPE_BIAS], H[m, GYROSCOPE_BIAS + 1] = -base[1], base[0]
            nu[m] = -(speed + r0 * v0 + r1 * v1 + r2 * v2)
            V[m, 0] = V[m, 1] = 0.0
            V[m, m] = hold[axis - 1]
            m += 1
    return m


@kernel
def heading_unobservable_at_rest(
    x: FloatArray, P: FloatArray, still: float, blind: FloatArray, R: FloatArray
) -> None:
    """Fill the directions of `update` that fixes of a standing vehicle tell nothing of: the turn
    about the vertical, and the bias of its rate.

    The noise of the force, turned by a wrong heading, would move the vehicle sideways; that it
    does not seems to tell the heading. But the whole noise, not only its sideways part, is
    missing from the motion, of which a linear filter knows nothing. A vehicle stands as long as
    its horizontal speed is below `still` and two of its deviations.
    """
    doubt = P[VELOCITY, VELOCITY] + P[VELOCITY + 1, VELOCITY + 1]
    one = 1.0 if x[3] * x[3] + x[4] * x[4] < still * still + 4.0 * doubt else 0.0
    matrix_from_quaternion(x[6:10], R)
    blind[0, 2] = one
    for i in range(3):
        blind[1, i] = one * R[2, i]
