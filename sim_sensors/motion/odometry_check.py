# SPDX-License-Identifier: Apache-2.0
"""What recorded odometry gets wrong about itself, in figures and sentences for the user."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim_sensors.core import rotations
from sim_sensors.core.errors import Remark
from sim_sensors.core.measurements import FloatArray, OdometryArray

# Below this extent [m] a record with zero twist is taken for one that stands still: five standard
# deviations of RTK noise (1 cm) either way.
_STANDSTILL_EXTENT = 0.1
# Disagreements are worth a sentence when above both of these: absolute, and relative to the rms.
_VELOCITY_THRESHOLD, _RATE_THRESHOLD, _RELATIVE_THRESHOLD = 0.05, 0.02, 0.05
# The twist is suspected to be in the world frame when it then agrees this much better.
_FRAME_FACTOR = 0.5
# Intervals longer than this many medians are gaps; turns above this angle [rad] are ambiguous.
_GAP_FACTOR, _TURN_THRESHOLD = 5.0, 1.0


@dataclasses.dataclass(frozen=True)
class OdometryCheck:
    """Agreement of the parts of an odometry record with each other.

    Attributes
    ----------
    velocity_disagreement : float
        Rms over the intervals of the mean of both recorded velocities (rotated to the world)
        less the position difference over the interval, norm, m/s.
    rate_disagreement : float
        The same of the recorded angular velocity and the relative rotation vector, rad/s.
    remarks : tuple of Remark
        One sentence per finding.
    """

    velocity_disagreement: float
    rate_disagreement: float
    remarks: tuple[Remark, ...]


def velocity_is_absent(position: FloatArray, linear_velocity: FloatArray) -> bool:
    """True when every recorded velocity is exactly zero although the position moves."""
    moves = bool(np.ptp(position, axis=0).max() > _STANDSTILL_EXTENT)
    return moves and not linear_velocity.any()


def check_odometry(
    odometry: OdometryArray, orientation: FloatArray, interval: FloatArray, turn: FloatArray
) -> OdometryCheck:
    """Check a record.

    Parameters
    ----------
    odometry : OdometryArray
        The record.
    orientation : (n, 4)
        Its orientations, of unit norm.
    interval : (n-1, 1)
        Seconds between the samples.
    turn : (n-1, 3)
        Relative rotation vectors between the samples, rad.
    """
    displacement = np.diff(odometry.position, axis=0) / interval
    recorded = rotations.rotate(orientation, odometry.linear_velocity)
    velocity = _rms(_mean(recorded) - displacement)
    rate = _rms(_mean(odometry.angular_velocity) - turn / interval)
    found = [
        *_about_time(interval[:, 0]),
        *_about_velocity(odometry, displacement, velocity),
        *_about_orientation(odometry, turn, interval, displacement, rate),
    ]
    return OdometryCheck(velocity, rate, tuple(found))


def _about_time(interval: FloatArray) -> list[Remark]:
    median = float(np.median(interval))
    gaps = interval[interval > _GAP_FACTOR * median]
    if not len(gaps):
        return []
    text = (
        'odometry has {gaps:d} gaps, the longest {longest:.3g} s where {median:.3g} s is usual; '
        'motion inside them is interpolated'
    )
    return [Remark(text, gaps=len(gaps), longest=gaps.max(), median=median)]


def _about_velocity(odometry: OdometryArray, displacement: FloatArray, rms: float) -> list[Remark]:
    if velocity_is_absent(odometry.position, odometry.linear_velocity):
        text = (
            'recorded linear velocity is all zero while the position moves: velocity and '
            'acceleration are derived from the positions, with their noise'
        )
        return [Remark(text)]
    speed = _rms(displacement)
    if rms <= max(_VELOCITY_THRESHOLD, _RELATIVE_THRESHOLD * speed):
        return []
    unrotated = _rms(_mean(odometry.linear_velocity) - displacement)
    if unrotated < _FRAME_FACTOR * rms:
        frames = (odometry.frame or 'the world frame', odometry.child_frame or 'the body frame')
        world, body = (name.replace('{', '{{').replace('}', '}}') for name in frames)
        text = (
            f'recorded linear velocity seems to be in {world}, not in {body} as nav_msgs/Odometry '
            'asks: it differs '
            'from position differences by {unrotated:.3g} m/s rms unrotated, but {rms:.3g} m/s '
            'rotated to the world, which is what is used'
        )
        return [Remark(text, unrotated=unrotated, rms=rms)]
    text = (
        'recorded linear velocity differs from position differences by {rms:.3g} m/s rms '
        '(rms speed {speed:.3g} m/s)'
    )
    return [Remark(text, rms=rms, speed=speed)]


def _about_orientation(
    odometry: OdometryArray,
    turn: FloatArray,
    interval: FloatArray,
    displacement: FloatArray,
    rms: float,
) -> list[Remark]:
    found = []
    largest = float(np.sqrt((turn**2).sum(axis=1)).max())
    if largest > _TURN_THRESHOLD:
        text = (
            'orientation turns by up to {largest:.0f} degrees between two samples: angular '
            'velocity in between is a guess'
        )
        found.append(Remark(text, largest=np.degrees(largest)))
    if largest < 1e-9 and _course_change(displacement) > np.radians(30.0):
        text = (
            'orientation never changes although the direction of travel does: the record seems '
            'to hold no orientation, so body-frame velocity, specific force and rates are wrong'
        )
        found.append(Remark(text))
    turning = _rms(turn / interval)
    if not odometry.angular_velocity.any() and turning > _RATE_THRESHOLD:
        text = (
            'recorded angular velocity is all zero; rates come from the orientations in any case'
        )
        found.append(Remark(text))
    elif rms > max(_RATE_THRESHOLD, _RELATIVE_THRESHOLD * turning):
        text = (
            'recorded angular velocity differs from orientation differences by {rms:.3g} rad/s '
            'rms (rms rate {rate:.3g} rad/s); the rates used are those of the orientations'
        )
        found.append(Remark(text, rms=rms, rate=turning))
    return found


def _course_change(displacement: FloatArray) -> float:
    """Largest angle between the first and any later direction of travel, rad, above 0.5 m/s."""
    moving = displacement[np.hypot(displacement[:, 0], displacement[:, 1]) > 0.5]
    if not len(moving):
        return 0.0
    course = np.arctan2(moving[:, 1], moving[:, 0]) - np.arctan2(moving[0, 1], moving[0, 0])
    return float(np.abs(np.arctan2(np.sin(course), np.cos(course))).max())


def _mean(values: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (values[1:] + values[:-1]))


def _rms(values: FloatArray) -> float:
    return float(np.sqrt((values**2).sum(axis=1).mean()))
