# SPDX-License-Identifier: Apache-2.0
"""Squares of innovations and errors, each in units of the covariance that the judge gave it."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from sim2real_eval.judge import JudgedRun
from sim2real_eval.judge.state import TWO_D_STATES
from sim_sensors.measurements import FloatArray, IntArray, OdometryArray
from sim_sensors.rotations import between, conjugate, exp, log, multiply

__all__ = ['QUANTITIES', 'Squares', 'nees', 'nees_at', 'nis', 'truth_at']

QUANTITIES = ('position', 'orientation', 'velocity', 'angular velocity')


@dataclasses.dataclass(frozen=True, eq=False)
class Squares:
    """Normalised squares over time.

    Attributes
    ----------
    name : str
        `NIS` and the part, or `NEES` and the quantity.
    stamp_ns : (n,) int64
    squares : (n,) float
        Chi-square distributed for a consistent filter.
    freedom : (n,) int64
        With so many degrees of freedom.
    correlated : bool
        Whether samples depend on each other even if the filter is consistent: errors do,
        innovations do not.
    """

    name: str
    stamp_ns: IntArray
    squares: FloatArray
    freedom: IntArray
    correlated: bool

    def __len__(self) -> int:
        return len(self.stamp_ns)

    def after(self, stamp_ns: int) -> Squares:
        """Return those at and after a stamp."""
        late = self.stamp_ns >= stamp_ns
        return dataclasses.replace(
            self,
            stamp_ns=self.stamp_ns[late],
            squares=self.squares[late],
            freedom=self.freedom[late],
        )


def nis(judged: JudgedRun, *, two_d: bool = False) -> list[Squares]:
    """Return the normalised innovation squares of each part, refused measurements included.

    Parameters
    ----------
    judged : JudgedRun
    two_d : bool
        Whether the filter ran in two_d_mode. It then measures seven states as 0 with every part.
        They are 0 already and uncorrelated with the others, so they add nothing to the NIS;
        nor do they count as degrees of freedom here.
    """
    corrections = judged.corrections
    found = []
    for number, part in enumerate(judged.parts):
        freedom = corrections.states - (len(TWO_D_STATES) if two_d else 0)
        mine = (corrections.part == number) & (freedom > 0)
        found.append(
            Squares(
                name=f'NIS {part.name}',
                stamp_ns=corrections.stamp_ns[mine],
                squares=corrections.nis[mine],
                freedom=freedom[mine],
                correlated=False,
            )
        )
    return found


def nees(
    judged: JudgedRun,
    truth: OdometryArray,
    axes: tuple[int, ...] = (0, 1, 2),
    turns: tuple[int, ...] | None = None,
) -> list[Squares]:
    """Return the normalised estimation error squares of each quantity where there is truth.

    Parameters
    ----------
    judged : JudgedRun
    truth : OdometryArray
        Of the base frame, in the judge's world frame (`sim2real_eval.judged_world`); see
        `truth_at` for how it is interpolated.
    axes : tuple of int
        Which of x, y, z count.
    turns : tuple of int or None
        Which of roll, pitch, yaw count; None: as `axes`. (0, 1) and (2,) for two_d_mode.

    Returns
    -------
    list of Squares
        Position, orientation, velocity, angular velocity; the last two in the body frame.
        Estimates that are not numbers, or whose covariance is not positive definite, are left out.
    """
    inside = np.flatnonzero(
        judged.finite
        & (judged.stamp_ns >= truth.stamp_ns[0])
        & (judged.stamp_ns <= truth.stamp_ns[-1])
    )
    return nees_at(judged, inside, truth_at(truth, judged.stamp_ns[inside]), axes, turns)


def nees_at(
    judged: JudgedRun,
    inside: NDArray[np.intp],
    true: OdometryArray,
    axes: tuple[int, ...] = (0, 1, 2),
    turns: tuple[int, ...] | None = None,
) -> list[Squares]:
    """Return what `nees` does, of the estimates `inside` whose truth, `true`, is known."""
    turns = axes if turns is None else turns
    stamps = judged.stamp_ns[inside]
    pose, twist = judged.pose_covariance[inside], judged.twist_covariance[inside]
    errors = (
        judged.position[inside] - true.position,
        _turned(judged.orientation[inside], true.orientation, about_axes=judged.about_axes),
        judged.linear_velocity[inside] - true.linear_velocity,
        judged.angular_velocity[inside] - true.angular_velocity,
    )
    blocks = (pose[:, :3, :3], pose[:, 3:, 3:], twist[:, :3, :3], twist[:, 3:, 3:])
    found = []
    for name, error, block, kept in zip(
        QUANTITIES, errors, blocks, (axes, turns, axes, turns), strict=True
    ):
        rows, columns = np.ix_(kept, kept)
        covariance = block[:, rows, columns]
        sound = np.all(np.linalg.eigvalsh(covariance) > 0.0, axis=1)
        squares = _normalised(error[sound][:, kept], covariance[sound])
        freedom = np.full(len(squares), len(kept))
        found.append(Squares(f'NEES {name}', stamps[sound], squares, freedom, correlated=True))
    return found


def _turned(estimate: FloatArray, truth: FloatArray, *, about_axes: bool) -> FloatArray:
    """Return the errors of orientations, (n, 3), in the coordinates of their covariance."""
    if about_axes:
        return log(multiply(estimate, conjugate(truth)))
    if not len(estimate):
        return np.zeros((0, 3))
    angles = Rotation.from_quat(estimate).as_euler('xyz')
    angles -= Rotation.from_quat(truth).as_euler('xyz')
    return np.asarray((angles + np.pi) % (2.0 * np.pi) - np.pi)


def truth_at(truth: OdometryArray, stamps: IntArray) -> OdometryArray:
    """Return the truth at (n,) stamps inside it.

    Linear in position and velocities, by the shortest rotation in orientation.
    """
    at = (stamps - truth.stamp_ns[0]) * 1e-9
    time = (truth.stamp_ns - truth.stamp_ns[0]) * 1e-9

    after = np.clip(np.searchsorted(time, at), 1, len(time) - 1)
    before = after - 1
    share = ((at - time[before]) / (time[after] - time[before]))[:, None]

    def interpolated(values: FloatArray) -> FloatArray:
        return np.asarray(values[before] + share * (values[after] - values[before]))

    first = truth.orientation[before]
    orientation = multiply(first, exp(share * between(first, truth.orientation[after])))
    return dataclasses.replace(
        truth.take(np.zeros(len(stamps), dtype=np.int64)),
        stamp_ns=stamps,
        position=interpolated(truth.position),
        orientation=orientation,
        linear_velocity=interpolated(truth.linear_velocity),
        angular_velocity=interpolated(truth.angular_velocity),
    )


def _normalised(error: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return e' P^-1 e, (n,), of errors, (n, k), and covariances, (n, k, k)."""
    solved = np.linalg.solve(covariance, error[..., None])[..., 0]
    return np.asarray(np.sum(error * solved, axis=1))
