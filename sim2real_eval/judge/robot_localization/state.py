# SPDX-License-Identifier: Apache-2.0
"""The 15 states of the filter, its memory, settings, timing and output in the compiled loops."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sim_sensors.core.compilation import kernel
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.scratch import zeros
from .matrices import WIDTH

X, Y, Z, ROLL, PITCH, YAW, VX, VY, VZ, VROLL, VPITCH, VYAW, AX, AY, AZ = range(15)
N = 15
"""Position and angles in the world frame, velocities and accelerations in base_link."""

TWO_D_STATES = (Z, ROLL, PITCH, VZ, VROLL, VPITCH, AZ)
"""States that `two_d_mode` measures as zero."""

INITIALISED, LAST_NS, CONTROL_NS, POINTS_VALID = range(4)
NO_STAMP = -(2**62)
"""Stamp of what never happened; far enough back for every timeout, near enough not to overflow."""


_LINE = 8  # float64 in 64 bytes


class Filter(NamedTuple):
    """State of one filter; every field is an array that the kernels change in place."""

    # (16,) State, in the order of `sim2real_eval.judge.robot_localization.state`, and a zero.
    x: FloatArray
    # (16, 16) Covariance, symmetric, and a row and a column of zeros; see `matrices`.
    P: FloatArray
    # (4,) Initialised (0 or 1), last measurement time, time of the last command, nanoseconds;
    # whether the points are those of the state (0 or 1).
    times: IntArray
    command: FloatArray  # (6,) Latest velocity command: vx vy vz vroll vpitch vyaw
    work: FloatArray  # (4, 16, 16) Scratch space
    points: FloatArray  # (31, 16) Sigma points of the unscented filter
    roots: FloatArray  # (16, 16) Scratch space of the unscented filter
    # (16,) Squared Mahalanobis distance of the last measurement, accepted or not, NaN for none;
    # and the pivots D of the covariance L D L' of its innovation.
    distance: FloatArray

    @property
    def state(self) -> FloatArray:
        """The 15 states; a view."""
        return self.x[:N]

    @property
    def covariance(self) -> FloatArray:
        """Their covariance, (15, 15); a view."""
        return self.P[:N, :N]


class Dynamics(NamedTuple):
    """What the prediction needs beside the state; constant during a run."""

    Q: FloatArray  # (16, 16) Process noise covariance per second, and a row and a column of zeros
    dynamic: bool  # scale the pose block of Q by the square of the speed
    # (6,) 1 where the control input accelerates vx vy vz vroll vpitch vyaw.
    control_mask: FloatArray
    # (4, 6) Acceleration limits and gains, deceleration limits and gains.
    control_limits: FloatArray
    control_timeout_ns: int  # age at which a command counts as zero
    # (5,) Of the unscented filter (see `sigma_weights`); None for the extended one.
    weights: FloatArray | None
    # Whether the unscented filter is the textbook's instead of robot_localization's.
    textbook: bool = False


class Timing(NamedTuple):
    """Clock and timers, nanoseconds."""

    # First clock step and distance of two; 1 ns is a continuous clock.
    start: int
    step: int
    end: int  # last clock time
    # The filter ticks at origin + n period, n >= 1.
    filter_origin: int
    filter_period: int
    # Likewise; period 0 for no navsat_transform.
    navsat_origin: int
    navsat_period: int
    sensor_timeout: int
    history: int  # how far back a late measurement is put in its place; -1 for not at all
    predict_to_current_time: bool
    permit_corrected_publication: bool
    # (2,) Parts that odometry/gps feeds: pose and twist, -1 where it feeds none.
    navsat_part: IntArray
    # From the tick that publishes an odometry/gps to its arrival at the filter.
    navsat_latency: int = 0


def next_tick(origin: int, period: int, now: int) -> int:
    """Return the first time of a timer's grid after `now`."""
    return origin + ((now - origin) // period + 1) * period


next_due = kernel(next_tick)


def new_filter(initial_state: FloatArray, initial_covariance: FloatArray) -> Filter:
    """Return a filter that waits for its first measurement."""
    x, P = aligned(WIDTH), aligned(WIDTH, WIDTH)
    x[:N], P[:N, :N] = initial_state, initial_covariance
    return Filter(
        x=x,
        P=P,
        times=np.array([0, 0, NO_STAMP, 1], dtype=np.int64),
        command=np.zeros(6),
        work=aligned(4, WIDTH, WIDTH),
        points=aligned(2 * N + 1, WIDTH),
        roots=aligned(WIDTH, WIDTH),
        distance=np.full(1 + N, np.nan),
    )


def aligned(*shape: int) -> FloatArray:
    """Return zeros that begin where a line of the cache does: no vector lies across two."""
    size = math.prod(shape)
    spare = np.zeros(size + _LINE)
    skipped = -(spare.ctypes.data // spare.itemsize) % _LINE
    return spare[skipped : skipped + size].reshape(shape)


def padded(matrix: FloatArray) -> FloatArray:
    """Return a (15, 15) matrix with a row and a column of zeros more."""
    result = aligned(WIDTH, WIDTH)
    result[:N, :N] = matrix
    return result


class Output(NamedTuple):
    """What the nodes publish; rows are filled in place."""

    # (4,) Rows filled: filtered odometry, odometry/gps, corrections (those without room too),
    # gps/filtered.
    n: IntArray
    # (t,) Stamp of each filtered odometry and the time of the tick that published it.
    stamp_ns: IntArray
    tick_ns: IntArray
    x: FloatArray  # (t, 15)
    # (t, 6, 6)
    pose_covariance: FloatArray
    twist_covariance: FloatArray
    # (g,) Number of the fix behind each odometry/gps and the time of the tick.
    gps_fix: IntArray
    gps_tick_ns: IntArray
    gps_position: FloatArray  # (g, 3)
    gps_covariance: FloatArray  # (g, 6, 6)
    # (p, 5) Per part: messages in, refused for an older stamp, yielding no measurement, fused, and
    # refused by the gate.
    counts: IntArray
    # (c, 3) Part, stamp and number of states of each correction; what has no room is left out.
    correction: IntArray
    # (c,) Its normalised innovation squared, that is its squared Mahalanobis distance.
    nis: FloatArray
    # (c,) Determinant of the covariance of its innovation, without what `two_d_mode` holds at
    # zero.
    determinant: FloatArray
    # (f, 2) Row of the filtered odometry behind each gps/filtered, and the time of the tick.
    filtered: IntArray


def new_output(rows: int, fixes: int, parts: int, filtered: int = 0) -> Output:
    """Return room for a number of filtered odometries, odometry/gps and gps/filtered.

    There is none for corrections: see `with_room`.
    """
    return Output(
        n=np.zeros(4, dtype=np.int64),
        stamp_ns=zeros((rows,), np.int64),
        tick_ns=zeros((rows,), np.int64),
        x=zeros((rows, N)),
        pose_covariance=zeros((rows, 6, 6)),
        twist_covariance=zeros((rows, 6, 6)),
        gps_fix=zeros((fixes,), np.int64),
        gps_tick_ns=zeros((fixes,), np.int64),
        gps_position=zeros((fixes, 3)),
        gps_covariance=zeros((fixes, 6, 6)),
        counts=np.zeros((parts, 5), dtype=np.int64),
        correction=np.zeros((0, 3), dtype=np.int64),
        nis=np.zeros(0),
        determinant=np.zeros(0),
        filtered=np.zeros((filtered, 2), dtype=np.int64),
    )


def with_room(out: Output, corrections: int) -> Output:
    """Return the output with room for a number of corrections, in place of those that it has."""
    out.n[2] = 0
    room = np.zeros((corrections, 3), dtype=np.int64)
    return out._replace(
        correction=room, nis=np.zeros(corrections), determinant=np.zeros(corrections)
    )


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
def take_gps(out: Output, row: int, half: int, value: FloatArray, cov: FloatArray) -> None:
    """Copy what the filter gets of an odometry/gps.

    That is first a pose of identity attitude, and then a twist of zero that is certain.
    """
    for i in range(3):
        value[i] = out.gps_position[row, i] if half == 0 else 0.0
        value[3 + i] = 0.0
    value[6] = 1.0
    for i in range(6):
        for j in range(6):
            cov[i, j] = out.gps_covariance[row, i, j] if half == 0 else 0.0


@kernel
def publish_filtered_gps(out: Output, now: int) -> None:
    """Send the latest filtered odometry out as gps/filtered."""
    row = out.n[3]
    out.filtered[row, 0] = out.n[0] - 1
    out.filtered[row, 1] = now
    out.n[3] += 1
