# SPDX-License-Identifier: Apache-2.0
"""Is the filter as sure of itself as it may be? Chi-square tests of innovations and errors.

A consistent filter has a normalised innovation squared (NIS) that is chi-square distributed with
as many degrees of freedom as states are measured, and a normalised estimation error squared (NEES)
with as many as are compared (Bar-Shalom, Li and Kirubarajan, Estimation with Applications to
Tracking and Navigation, 2001, section 5.4). Above the bounds it is too sure of itself, below
them not sure enough. The bounds hold for independent samples, which the NEES of one run are not;
they are then too narrow, and are given for the number of samples that is stated.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

from sim2real_eval.judge import JudgedRun
from sim_sensors.measurements import FloatArray, IntArray, OdometryArray

__all__ = ['Consistency', 'consistency', 'nees', 'nees_consistency', 'nis_consistency']

_QUANTITIES = ('position', 'orientation', 'velocity', 'angular velocity')


@dataclasses.dataclass(frozen=True)
class Consistency:
    """A mean of normalised squares against its bounds.

    Attributes
    ----------
    name : str
        What was normalised.
    samples : int
    freedom : float
        Mean degrees of freedom of a sample.
    ratio : float
        Mean of the squares over the mean of the degrees of freedom; 1 is consistent.
    lower, upper : float
        Bounds of the ratio that a consistent filter keeps with `probability`.
    probability : float
    inside : float
        Share of the samples inside their own two-sided bounds, `probability` if consistent.
    """

    name: str
    samples: int
    freedom: float
    ratio: float
    lower: float
    upper: float
    probability: float
    inside: float

    @property
    def verdict(self) -> str:
        """`consistent`, `too sure`, `not sure enough`, or `no samples`."""
        if not self.samples:
            return 'no samples'
        if self.ratio > self.upper:
            return 'too sure'
        return 'not sure enough' if self.ratio < self.lower else 'consistent'


def consistency(
    name: str, squares: FloatArray, freedom: IntArray, probability: float = 0.95
) -> Consistency:
    """Hold normalised squares against the chi-square distribution.

    Parameters
    ----------
    name : str
    squares : (n,) float
        Normalised squares.
    freedom : (n,) int
        Degrees of freedom of each.
    probability : float
        Of the two-sided bounds.

    Returns
    -------
    Consistency
        With NaN for no samples.
    """
    n, total = len(squares), int(np.sum(freedom))
    tails = np.array([0.5 * (1.0 - probability), 0.5 * (1.0 + probability)])
    if total == 0:
        return Consistency(name, n, np.nan, np.nan, np.nan, np.nan, probability, np.nan)
    bounds = np.asarray(chi2.ppf(tails, total)) / total
    low, high = np.asarray(chi2.ppf(tails[:, None], freedom[None, :]))
    return Consistency(
        name=name,
        samples=n,
        freedom=total / n,
        ratio=float(np.sum(squares) / total),
        lower=float(bounds[0]),
        upper=float(bounds[1]),
        probability=probability,
        inside=float(np.mean((squares >= low) & (squares <= high))),
    )


def nis_consistency(judged: JudgedRun, probability: float = 0.95) -> list[Consistency]:
    """Test the innovations of each part of each input, refused measurements included."""
    found = []
    for number, part in enumerate(judged.parts):
        mine = judged.corrections.part == number
        nis, states = judged.corrections.nis[mine], judged.corrections.states[mine]
        found.append(consistency(f'NIS {part.name}', nis, states, probability))
    return found


def nees(
    judged: JudgedRun, truth: OdometryArray, axes: tuple[int, ...] = (0, 1, 2)
) -> dict[str, FloatArray]:
    """Return the NEES of each estimate with truth around it.

    Parameters
    ----------
    judged : JudgedRun
    truth : OdometryArray
        Of the base frame; interpolated to the stamps of the estimates, linearly and for the
        orientation by the shortest rotation. Position is compared as it stands: the judge's world
        frame must be that of the truth.
    axes : tuple of int
        Which of x, y, z (and, for angles, roll, pitch, yaw) count: (0, 1) and (2,) for a vehicle
        that a filter holds in the plane.

    Returns
    -------
    dict of (n,) float
        By quantity: position, orientation, velocity, angular velocity; velocities are of the body.
    """
    inside = (judged.stamp_ns >= truth.stamp_ns[0]) & (judged.stamp_ns <= truth.stamp_ns[-1])
    stamps = judged.stamp_ns[inside]
    at = (stamps - truth.stamp_ns[0]) * 1e-9
    time = (truth.stamp_ns - truth.stamp_ns[0]) * 1e-9

    def interpolated(values: FloatArray) -> FloatArray:
        return np.stack([np.interp(at, time, column) for column in values.T], axis=1)

    after = np.clip(np.searchsorted(time, at), 1, len(time) - 1)
    before = after - 1
    span = time[after] - time[before]
    share = np.where(span > 0.0, (at - time[before]) / np.where(span > 0.0, span, 1.0), 0.0)
    first = Rotation.from_quat(truth.orientation[before])
    last = Rotation.from_quat(truth.orientation[after])
    attitude = first * Rotation.from_rotvec(share[:, None] * (first.inv() * last).as_rotvec())
    # Small rotations about the fixed axes: what roll, pitch and yaw differ by where both are flat.
    estimated = Rotation.from_quat(judged.orientation[inside])
    turned = estimated.as_euler('xyz') - attitude.as_euler('xyz')
    turned = (turned + np.pi) % (2.0 * np.pi) - np.pi
    pose, twist = judged.pose_covariance[inside], judged.twist_covariance[inside]
    errors = (
        judged.position[inside] - interpolated(truth.position),
        turned,
        judged.linear_velocity[inside] - interpolated(truth.linear_velocity),
        judged.angular_velocity[inside] - interpolated(truth.angular_velocity),
    )
    blocks = (pose[:, :3, :3], pose[:, 3:, 3:], twist[:, :3, :3], twist[:, 3:, 3:])
    rows, columns = np.ix_(axes, axes)
    return {
        name: _normalised(error[:, axes], block[:, rows, columns])
        for name, error, block in zip(_QUANTITIES, errors, blocks, strict=True)
    }


def _normalised(error: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return e' P^-1 e, (n,), of errors, (n, k), and covariances, (n, k, k)."""
    solved = np.linalg.solve(covariance, error[..., None])[..., 0]
    return np.asarray(np.sum(error * solved, axis=1))


def nees_consistency(
    judged: JudgedRun,
    truth: OdometryArray,
    axes: tuple[int, ...] = (0, 1, 2),
    probability: float = 0.95,
) -> list[Consistency]:
    """Test the errors of the estimates against truth; see `nees`."""
    return [
        consistency(f'NEES {name}', squares, np.full(len(squares), len(axes)), probability)
        for name, squares in nees(judged, truth, axes).items()
    ]
