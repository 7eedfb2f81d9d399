# SPDX-License-Identifier: Apache-2.0
"""Errors of wheel odometry that are drawn once: radii of the wheels, zeros of their steering.

What stays adds up along the way, not as white noise does: after n equal steps on a line it is off
by n times that of one, white noise by sqrt(n) times. It also bends the way: one wrong zero of the
steering spreads the poses that are possible over an arc, whose sagitta, of second order, is soon
larger than all that changes from step to step. First order would call it zero.

So poses are walked for some robots that differ in their constants. To one who knows the law alone,
each may be the true one. With a step as told s, less its means, and c_i its derivative by constant
i times the standard deviation of that, robot j makes the steps

    s + sum of c_i x_ij

x_j being points with weights w_j that have the moments of the constants to the fourth
(`sim_sensors.wheels.constants`). What the pose as told, p, is off by, squared, is on average

    sum of w_j (p - p_j) (p - p_j)'

which holds the means and the second order of the bends. In a single step it is the sum of
c_i c_i', constant or not.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream
from sim_sensors.motion.planar import squares_about
from .drives import WheelDrive
from .noise import SteeringOffset

# Points that stand for independent random numbers: a weighted few with the same moments.

# Where all combinations of signs become many, some are products of others.
_MOST = 6
_PRODUCTS = ([0, 1, 2, 3], [0, 1, 4, 5])


def points_of(kurtosis: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Return points and weights with the moments of independent numbers, to the fourth.

    Of mean 0, variance 1 and symmetric laws, so that the mean of every polynomial of degree four
    is right, and so that of the square of whatever is quadratic in them. It is a central composite
    design (G. E. P. Box and K. B. Wilson, 1951): corners (+-a, .., +-a) of total weight r^2, a
    pair +-b_i on each axis, and the centre. Moments x_i^2, x_i^4 and x_i^2 x_j^2 of 1, k_i and 1
    ask for a^2 = 1/r, b_i^2 = (k_i - 1)/(1 - r) and weights (1 - r)^2 / (2 (k_i - 1)) of each of a
    pair. No weight is negative where r >= (s - 1)/(s + 1), s the sum of 1/(k_i - 1).

    `kurtosis` are the fourth moments k_i of at most 8 numbers, above 1: 3 of a normal one, 1.8 of
    a uniform one. There are 81 points of eight numbers, 25 of four, 1 of none, `(p, m)`; the sum
    of their weights is 1.
    """
    m = len(kurtosis)
    if not m:
        return np.zeros((1, 0)), np.ones(1)
    excess = np.asarray(kurtosis, dtype=float) - 1.0
    total = float((1.0 / excess).sum())
    r = max(0.5, (total - 1.0) / (total + 1.0))
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=min(m, _MOST))))
    # Of four each: no product of four columns or fewer is then the same at all corners.
    made = [signs[:, of].prod(axis=1) for of in _PRODUCTS[: max(m - _MOST, 0)]]
    corners = np.column_stack([signs, *made])
    axes = np.diag(np.sqrt(excess / (1.0 - r)))
    of_axes = (1.0 - r) ** 2 / (2.0 * excess)
    points = np.concatenate([corners / np.sqrt(r), axes, -axes, np.zeros((1, m))])
    of_corners = np.full(len(corners), r * r / len(corners))
    centre = max(1.0 - r * r - 2.0 * of_axes.sum(), 0.0)
    return points, np.concatenate([of_corners, of_axes, of_axes, [centre]])


# Fourth moments of laws of variance 1; that of whole degrees within 4 is 1.76.
_NORMAL, _UNIFORM = 3.0, 1.8


class WheelConstants:
    """The errors of one robot's wheels that stay, and what they have done to its pose.

    `radius_error` is the standard deviation of the relative errors of the radii, `steering_offset`
    the law of the zeros of the steering. Drawn are the relative errors of the radii, `(wheels,)`
    `radius_errors`, and those of the measured steering angles, `(steered,)` rad
    `steering_offsets`.
    """

    def __init__(
        self,
        drive: WheelDrive,
        radius_error: float,
        steering_offset: SteeringOffset,
        seed: int,
        run: str,
        sensor: str,
    ) -> None:
        normals = stream(seed, run, sensor, 'wheel_radius').standard_normal(drive.wheels)
        self.radius_errors: FloatArray = radius_error * normals
        self.steering_offsets = steering_offset.draw(seed, run, sensor, drive.steered)
        # Those that are not zero by their law: first the radii, then the steering.
        radii = drive.wheels if radius_error > 0.0 else 0
        angles = drive.steered if steering_offset.bound > 0.0 else 0
        self._radii = radii
        self._drawn = slice(drive.wheels - radii, drive.wheels + angles)
        self._deviations: FloatArray = np.repeat(
            [radius_error, np.sqrt(steering_offset.variance)], [radii, angles]
        )
        self._points, self._weights = points_of([_NORMAL] * radii + [_UNIFORM] * angles)
        # Of robots with constants of these points.
        self._poses: FloatArray = np.zeros((len(self._weights), 3))

    def start_at(self, pose: FloatArray) -> None:
        """Begin at `pose`, `(3,)`, whatever the constants."""
        self._poses[:] = pose

    def step_changes(self, travels: FloatArray, derivatives: FloatArray) -> FloatArray:
        """Return what a standard deviation of each of the `m` not zero does to steps, `(n, 3, m)`.

        A radius is the factor of `travels` `(n, wheels)` m, as told; `derivatives`
        `(n, 3, wheels + steered)` are those of the steps by travels, then angles.
        """
        changes: FloatArray = derivatives[:, :, self._drawn] * self._deviations
        if self._radii:
            changes[:, :, : self._radii] *= travels[:, None, :]
        return changes

    def squares(self, poses: FloatArray, steps: FloatArray, changes: FloatArray) -> FloatArray:
        """Return the mean squares of the errors that stay in the next poses, `(n, 3, 3)`.

        `poses` `(n, 3)` are those told after each step, `steps` `(n, 3)` those told, less the
        means, and `changes` `(n, 3, m)` theirs; see `step_changes`.
        """
        found, self._poses = squares_about(
            poses, steps, changes, self._points, self._weights, self._poses
        )
        return found
