# SPDX-License-Identifier: Apache-2.0
"""Innovations and errors in units of the judge's covariance, in the judge's world frame."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.robot_localization.state import TWO_D_STATES
from sim2real_eval.metrics import findings
from sim2real_eval.metrics.options import MetricError
from sim2real_eval.recording.truth import frame_remarks, truth_origin, turn_between, valid_fixes
from sim_sensors.core.measurements import FixArray, FloatArray, IntArray, OdometryArray
from sim_sensors.core.rotations import between, conjugate, exp, from_heading, log, multiply, rotate
from sim_sensors.world.geodesy import LocalFrame

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
        kept = (self.stamp_ns[late], self.squares[late], self.freedom[late])
        return Squares(self.name, *kept, correlated=self.correlated)


def nis(judged: JudgedRun, *, two_d: bool = False) -> list[Squares]:
    """Return the normalised innovation squares of each part, refused measurements included.

    A filter in two_d_mode measures seven states as 0 with every part. They are 0 already and
    uncorrelated with the others, so they add nothing to the NIS; nor do they count as degrees of
    freedom here.
    """
    corrections = judged.corrections
    found = []
    for number, part in enumerate(judged.parts):
        freedom = corrections.states - (len(TWO_D_STATES) if two_d else 0)
        mine = (corrections.part == number) & (freedom > 0)
        squares = (corrections.stamp_ns[mine], corrections.nis[mine], freedom[mine])
        found.append(Squares(f'NIS {part.name}', *squares, correlated=False))
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
    truth : OdometryArray
        Of the base frame, in the judge's world frame (`truth_in_world`); see
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
        finite = np.isfinite(covariance).all(axis=(1, 2)) & np.isfinite(error).all(axis=1)
        known = np.flatnonzero(finite)
        sound = known[np.all(np.linalg.eigvalsh(covariance[known]) > 0.0, axis=1)]
        part = error[sound][:, kept]
        # e' P^-1 e
        solved = np.linalg.solve(covariance[sound], part[..., None])[..., 0]
        squares = np.sum(part * solved, axis=1)
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


# The truth in the world frame of a judge, whose origin and axes are its own.
#
# navsat_transform puts the fixes into the filter's world by a turn about the vertical and a shift.
# Both are read off its result: the turn from the fixes, moved from the antenna to base_link,
# before and after, which is exact; the shift between the world and the truth as the mean over all
# fixes, because no recording says where on the Earth its truth begins. The constant part of the
# fixes' error is therefore not seen. A judge without fixes knows its position from where it began
# only: the truth is then laid through its first estimate.

_LEAST_EXTENT_M = 1.0
_LEAST_ARMS = 10.0


def truth_in_world(
    judged: JudgedRun, truth: OdometryArray, fixes: FixArray | None, antenna: FloatArray
) -> tuple[OdometryArray, tuple[Finding, ...]]:
    """Express the truth in the world frame of a judge; body velocities stay as they were.

    The findings say how it was done, and what follows for the errors. A judge without an estimate
    within the truth is a MetricError.

    Parameters
    ----------
    truth : OdometryArray
        Of the base frame; its axes are taken as east, north and up.
    fixes : FixArray or None
        Those that the judge was given.
    antenna : (3,) float
        Position of the antenna in the base frame, metres.
    """
    known = None
    if fixes is not None:
        fixes = valid_fixes(fixes)
        known = _of_fixes(judged, truth, fixes, antenna)
    if known is not None:
        turn, shift, count, frame = known
        angle = round(math.degrees(turn), 1) + 0.0
        said = findings.TRUTH_ALIGNED(turn=angle, fixes=count)
        remarks = (said, *frame_remarks(truth, fixes, frame))
    else:
        turn, shift = _of_first_estimate(judged, truth)
        remarks = (findings.WORLD_FROM_START(),)
    about = from_heading(np.array([turn]))
    moved = dataclasses.replace(
        truth,
        position=rotate(about, truth.position) + shift,
        orientation=multiply(about, truth.orientation),
    )
    return moved, remarks


def _of_fixes(
    judged: JudgedRun, truth: OdometryArray, fixes: FixArray, antenna: FloatArray
) -> tuple[float, FloatArray, int, LocalFrame] | None:
    """Return turn, shift, how many fixes told, and the truth's frame; None if they do not tell."""
    stamps = judged.gps_stamp_ns
    inside = (stamps >= truth.stamp_ns[0]) & (stamps <= truth.stamp_ns[-1])
    # A position needs the filter's attitude, which may be no number.
    inside &= np.isfinite(judged.gps_position).all(axis=1)
    stamps, world = stamps[inside], judged.gps_position[inside]
    # Of several fixes with one stamp the last is the one that the node keeps.
    number = np.searchsorted(fixes.stamp_ns, stamps, side='right') - 1
    found = (number >= 0) & (fixes.stamp_ns[number] == stamps)
    number, stamps, world = number[found], stamps[found], world[found]
    if len(stamps) < 2:
        return None
    true = truth_at(truth, stamps)
    frame = truth_origin(truth, fixes)
    given = fixes.take(number)
    arms = rotate(true.orientation, antenna[None])
    east = frame.to_enu(given.latitude, given.longitude, given.altitude)
    east -= arms
    before = (east - east.mean(axis=0))[:, :2]
    after = (world - world.mean(axis=0))[:, :2]
    least = max(_LEAST_EXTENT_M, _LEAST_ARMS * float(np.hypot(antenna[0], antenna[1])))
    if np.hypot(*np.ptp(after, axis=0)) < least:
        return None
    turn = turn_between(before, after)
    turned = rotate(from_heading(np.array([turn])), true.position)
    return turn, np.mean(world - turned, axis=0), len(stamps), frame


def _of_first_estimate(judged: JudgedRun, truth: OdometryArray) -> tuple[float, FloatArray]:
    inside = (judged.stamp_ns >= truth.stamp_ns[0]) & (judged.stamp_ns <= truth.stamp_ns[-1])
    inside &= judged.finite
    if not inside.any():
        raise MetricError('consistency: no estimate that is a number lies within the truth')
    first = int(np.argmax(inside))
    true = truth_at(truth, judged.stamp_ns[first : first + 1])
    estimated = Rotation.from_quat(judged.orientation[first]).as_euler('xyz')
    turn = float(estimated[2] - Rotation.from_quat(true.orientation[0]).as_euler('xyz')[2])
    turned = Rotation.from_euler('z', turn).apply(true.position[0])
    return turn, judged.position[first] - turned
