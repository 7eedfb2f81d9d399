# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""States, settings, timing and output of the filter as the compiled loops use them.

Most of them are NumPy records: numba passes a record as one pointer, and counts no references of
its arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.compilation import kernel
from sim_sensors.core.measurements import FloatArray, IntArray

X, Y, Z, ROLL, PITCH, YAW, VX, VY, VZ, VROLL, VPITCH, VYAW, AX, AY, AZ = range(15)
N = 15
"""Number of states: pose in the world, velocities and accelerations in base_link."""

WIDTH = 16
"""Length of padded rows: the 15 states and a zero, so that a row fills the vector registers."""

TWO_D_STATES = (Z, ROLL, PITCH, VZ, VROLL, VPITCH, AZ)
"""States that `two_d_mode` measures as zero."""

FLAT = np.array([state in TWO_D_STATES for state in range(N)])
"""(15,) Whether `two_d_mode` measures each state as zero."""

INITIALISED, LAST_NS, CONTROL_NS, POINTS_VALID = range(4)
NO_STAMP = -(2**62)
"""Stamp before every message; far enough back for every timeout, without integer overflow."""

RecordArray = NDArray[np.record]


def record_type(*fields: tuple[str, str] | tuple[str, str, tuple[int, ...]]) -> np.dtype[Any]:
    """Return the type of a record whose fields are attributes in Python and in kernels."""
    return np.dtype((np.record, list(fields)))


FILTER = record_type(
    ('x', 'f8', (WIDTH,)),
    # Symmetric covariance, padded with zeros.
    ('P', 'f8', (WIDTH, WIDTH)),
    # Initialised (0 or 1), last measurement time, time of the last command, ns; whether
    # the sigma points belong to the state (0 or 1).
    ('times', 'i8', (4,)),
    # Latest velocity command: vx vy vz vroll vpitch vyaw.
    ('command', 'f8', (6,)),
    # Squared Mahalanobis distance of the last measurement, accepted or not, NaN without
    # one; then the pivots D of the factorised covariance L D L' of its innovation.
    ('distance', 'f8', (1 + N,)),
    ('points', 'f8', (2 * N + 1, WIDTH)),  # sigma points of the unscented filter
    # Scratch space.
    ('innovation_covariance', 'f8', (WIDTH, WIDTH)),
    ('factor', 'f8', (WIDTH, WIDTH)),
    ('factor_row', 'f8', (WIDTH,)),
    ('rows', 'f8', (WIDTH, WIDTH)),
    ('gain', 'f8', (WIDTH, WIDTH)),
    ('roots', 'f8', (WIDTH, WIDTH)),
)
"""Memory of one filter, changed in place by the kernels."""

SETTINGS = record_type(
    ('Q', 'f8', (WIDTH, WIDTH)),  # process noise covariance per second, padded
    ('dynamic', 'i8'),  # scale the pose block of Q by the squared speed
    # 1 where the control input accelerates vx vy vz vroll vpitch vyaw.
    ('control_mask', 'f8', (6,)),
    # Acceleration limits and gains, deceleration limits and gains.
    ('control_limits', 'f8', (4, 6)),
    ('control_timeout_ns', 'i8'),  # age at which a command counts as zero
    ('textbook', 'i8'),  # unscented filter of the textbook, not of robot_localization
)
"""Settings of the prediction, constant during a run."""

Filter = np.record
"""Record of type FILTER."""


class Dynamics(NamedTuple):
    """Settings of the prediction, constant during a run."""

    settings: np.record  # of type SETTINGS
    # (5,) Weights of the unscented transform (see `sigma_weights`); None for the extended filter.
    weights: FloatArray | None


class Timing(NamedTuple):
    """Clock and timers, nanoseconds."""

    # First clock step and distance of two steps; 1 ns is a continuous clock.
    start: int
    step: int
    end: int  # last clock time
    # The filter ticks at origin + n period, n >= 1.
    filter_origin: int
    filter_period: int
    # Likewise; the period is 0 without navsat_transform.
    navsat_origin: int
    navsat_period: int
    sensor_timeout: int
    history: int  # how far back late measurements are inserted; -1 if they are not
    predict_to_current_time: bool
    permit_corrected_publication: bool
    # (2,) Parts that odometry/gps feeds: pose and twist, -1 for a part that it does not feed.
    navsat_part: IntArray
    # From the tick that publishes an odometry/gps to its arrival at the filter.
    navsat_latency: int = 0


def next_tick(origin: int, period: int, now: int) -> int:
    """Return the first time of a timer's grid after `now`."""
    return origin + ((now - origin) // period + 1) * period


next_due = kernel(next_tick)


def new_filter(initial_state: FloatArray, initial_covariance: FloatArray) -> Filter:
    """Return a filter that waits for its first measurement."""
    flt: Filter = np.zeros(1, FILTER)[0]
    flt.x[:N], flt.P[:N, :N] = initial_state, initial_covariance
    flt.times[:] = 0, 0, NO_STAMP, 1
    flt.distance[:] = np.nan
    return flt


CORRECTION = record_type(
    ('part', 'i8'),
    ('stamp_ns', 'i8'),
    ('states', 'i8'),  # number of measured states
    ('nis', 'f8'),  # normalised innovation squared: the squared Mahalanobis distance
    # Determinant of the innovation covariance, without the states held by `two_d_mode`.
    ('determinant', 'f8'),
)
"""A correction of the filter."""


class Output(NamedTuple):
    """Messages that the nodes publish; rows are filled in place."""

    # (4,) Number of filtered odometries, odometry/gps, corrections (including those for which
    # there was no space), gps/filtered.
    n: IntArray
    # (t,) Stamp of each filtered odometry and time of the tick that published it.
    stamp_ns: IntArray
    tick_ns: IntArray
    x: FloatArray  # (t, 15)
    # (t, 6, 6)
    pose_covariance: FloatArray
    twist_covariance: FloatArray
    # (g,) Number of the fix behind each odometry/gps and time of the tick.
    gps_fix: IntArray
    gps_tick_ns: IntArray
    gps_position: FloatArray  # (g, 3)
    gps_covariance: FloatArray  # (g, 6, 6)
    # (p, 5) Per part: messages received, refused for an older stamp, without measurement, fused,
    # refused by the gate.
    counts: IntArray
    corrections: RecordArray  # (c,) of type CORRECTION
    # (f, 2) Row of the filtered odometry behind each gps/filtered, and time of the tick.
    filtered: IntArray


def new_output(rows: int, fixes: int, parts: int, filtered: int = 0) -> Output:
    """Return empty output for a number of filtered odometries, odometry/gps and gps/filtered.

    Space for corrections is added by `with_room`.
    """
    return Output(
        n=np.zeros(4, dtype=np.int64),
        stamp_ns=np.zeros(rows, dtype=np.int64),
        tick_ns=np.zeros(rows, dtype=np.int64),
        x=np.zeros((rows, N)),
        pose_covariance=np.zeros((rows, 6, 6)),
        twist_covariance=np.zeros((rows, 6, 6)),
        gps_fix=np.zeros(fixes, dtype=np.int64),
        gps_tick_ns=np.zeros(fixes, dtype=np.int64),
        gps_position=np.zeros((fixes, 3)),
        gps_covariance=np.zeros((fixes, 6, 6)),
        counts=np.zeros((parts, 5), dtype=np.int64),
        corrections=np.zeros(0, CORRECTION),
        filtered=np.zeros((filtered, 2), dtype=np.int64),
    )


def with_room(out: Output, corrections: int) -> Output:
    """Return the output with empty space for a number of corrections."""
    out.n[2] = 0
    return out._replace(corrections=np.zeros(corrections, CORRECTION))


@kernel
def publish_gps(out: Output, fix: int, now: int, position: FloatArray, cov: FloatArray) -> None:
    """Publish an odometry/gps."""
    row = out.n[1]
    out.gps_fix[row] = fix
    out.gps_tick_ns[row] = now
    for i in range(3):
        out.gps_position[row, i] = position[i]
    for i in range(6):
        for j in range(6):
            out.gps_covariance[row, i, j] = cov[i, j]
    out.n[1] += 1


@kernel
def read_gps(out: Output, row: int, half: int, values: FloatArray, cov: FloatArray) -> None:
    """Copy the pose (half 0) or the twist (half 1) of an odometry/gps.

    The pose has the identity as attitude; the twist is zero and so is its covariance.
    """
    for i in range(3):
        values[i] = out.gps_position[row, i] if half == 0 else 0.0
        values[3 + i] = 0.0
    values[6] = 1.0
    for i in range(6):
        for j in range(6):
            cov[i, j] = out.gps_covariance[row, i, j] if half == 0 else 0.0


@kernel
def publish_odometry(out: Output, flt: Filter, stamp_ns: int, now: int) -> None:
    """Publish the state as a filtered odometry."""
    row = out.n[0]
    out.stamp_ns[row] = stamp_ns
    out.tick_ns[row] = now
    for i in range(N):
        out.x[row, i] = flt.x[i]
    for i in range(6):
        for j in range(6):
            out.pose_covariance[row, i, j] = flt.P[i, j]
            out.twist_covariance[row, i, j] = flt.P[VX + i, VX + j]
    out.n[0] += 1


@kernel
def publish_filtered_gps(out: Output, now: int) -> None:
    """Publish the latest filtered odometry as gps/filtered."""
    row = out.n[3]
    out.filtered[row, 0] = out.n[0] - 1
    out.filtered[row, 1] = now
    out.n[3] += 1
