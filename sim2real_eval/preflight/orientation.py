# SPDX-License-Identifier: Apache-2.0
"""The check of the orientation that an IMU publishes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from sim_sensors.core import rotations
from sim_sensors.core.blocks import blocks, sum_by_blocks
from sim_sensors.core.measurements import FloatArray, is_absent
from . import findings
from .evidence import Evidence, Rows
from .outcome import Measure
from .velocities import circular_deviation

_HEADING_DEG = (7.0, 20.0)
# Of the mean of exp(i error): 0.9 is a heading that strays by 26 deg.
_FOLLOWS = 0.9
_TILT_DEG = 15.0


def orientation(evidence: Evidence) -> Iterator[Measure]:
    """The published orientation against gravity and the heading of the truth.

    Of a heading in north-east-down the sum with the true one is steady in place of the difference.
    """
    imu, ideal = evidence.imu, evidence.ideal
    if imu is None:
        return
    topic = evidence.recording.roles['imu']
    there = ~is_absent(imu.orientation_covariance)
    if not there.all():
        yield Measure(None, None, findings.NO_ORIENTATION(topic), 'imu')
        return
    if 'orientation' in evidence.doubtful:
        ideal = None
    orientation = evidence.measured('orientation')
    force = evidence.measured('linear_acceleration')
    if _is_unset(orientation, None if ideal is None else ideal.orientation):
        yield Measure(None, None, findings.ORIENTATION_UNSET(topic), 'imu')
        return
    if ideal is not None:
        (published, vertical), (true, true_vertical) = (
            _evaluate(_heading_and_vertical, rows) for rows in (orientation, ideal.orientation)
        )
        same, opposite = _mean_turn(published, -true), _mean_turn(published, true)
        down, true_down = float(np.mean(vertical)) < 0.0, float(np.mean(true_vertical)) < 0.0
        if (abs(opposite) > 0.95 and abs(same) < 0.8) or down != true_down:
            # Either it is of forward-right-down, or of the axes measured in.
            own = (180.0, 0.0, 0.0) if down == true_down else (0.0, 0.0, 0.0)
            total = evidence.correct('imu', axes='ned', orientation_rotation=own)
            more = ', '.join(f'{one:g}' for one in total.orientation_rotation)
            world = findings.ORIENTATION_NED(topic, axes=total.axes, rotation=more)
            yield Measure(None, None, world, 'imu axes')
            orientation = evidence.measured('orientation')
            same = _mean_turn(_evaluate(rotations.heading, orientation), -true)
        turn = math.degrees(np.angle(same))
        told = None
        if abs(same) <= _FOLLOWS:
            spread, most = map(circular_deviation, (abs(same), _FOLLOWS))
            told = findings.ORIENTATION_STRAYS(topic, spread=spread)
            yield Measure(spread, most, told, 'imu heading')
        else:
            if abs(turn) > _HEADING_DEG[0]:
                large = abs(turn) > _HEADING_DEG[1]
                kind = findings.ORIENTATION_YAW_LARGE if large else findings.ORIENTATION_YAW
                told = kind(topic, turn=turn, set=evidence.correct('imu', heading=turn).heading)
            yield Measure(turn, _HEADING_DEG[0], told, 'imu heading', 'either')
    if 'gravity' not in evidence.doubtful:
        up = sum_by_blocks(rotations.rotate, orientation, force) / len(force)
        cosine = float(up[2]) / max(float(np.linalg.norm(up)), 1e-9)
        tilt = math.degrees(math.acos(float(np.clip(cosine, -1.0, 1.0))))
        wrong = tilt > _TILT_DEG
        told = findings.ORIENTATION_TILT(topic, tilt=tilt) if wrong else None
        yield Measure(tilt, _TILT_DEG, told, 'imu vertical')


def _is_unset(published: FloatArray | Rows, true: Rows | None) -> bool:
    """Return whether an orientation is the identity throughout, and the true heading is not 0."""
    parts = (published[part] for part in blocks(len(published)))
    if not all((part == (0.0, 0.0, 0.0, 1.0)).all() for part in parts):
        return False
    off = math.inf if true is None else float(np.abs(_evaluate(rotations.heading, true)).max())
    return off > math.radians(_HEADING_DEG[0])


def _evaluate(function: Callable[[FloatArray], FloatArray], rows: FloatArray | Rows) -> FloatArray:
    """Return a function of each row, (..., n), evaluated on some thousand rows at a time."""
    values = [function(rows[part]) for part in blocks(len(rows))]
    return np.concatenate(values, axis=-1)


def _mean_turn(first: FloatArray, second: FloatArray) -> complex:
    """Return the mean of exp(i (first + second))."""
    return complex(np.mean(np.exp(1j * (first + second))))


def _heading_and_vertical(orientation: FloatArray) -> FloatArray:
    """Return the heading, rad, and the vertical component of the sensor's z axis, (2, n)."""
    x, y, _, _ = orientation.T
    return np.stack([rotations.heading(orientation), 1.0 - 2.0 * (x * x + y * y)])
