# SPDX-License-Identifier: Apache-2.0
"""The 15 states of the filter, its memory, settings and timing as the compiled loops see them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sim2real_eval.judge.robot_localization.matrices import WIDTH
from sim_sensors.core.compilation import kernel
from sim_sensors.core.measurements import FloatArray, IntArray

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
    """State of one filter; every field is an array that the kernels change in place.

    Attributes
    ----------
    x : (16,) float
        State, in the order of `sim2real_eval.judge.robot_localization.state`, and a zero.
    P : (16, 16) float
        Covariance, symmetric, and a row and a column of zeros; see `matrices`.
    times : (4,) int64
        Initialised (0 or 1), last measurement time, time of the last command, nanoseconds; whether
        the points are those of the state (0 or 1).
    command : (6,) float
        Latest velocity command: vx vy vz vroll vpitch vyaw.
    work : (4, 16, 16) float
        Scratch space.
    points : (31, 16) float
        Sigma points of the unscented filter.
    roots : (16, 16) float
        Scratch space of the unscented filter.
    distance : (1,) float
        Squared Mahalanobis distance of the last measurement, accepted or not; NaN for none.
    """

    x: FloatArray
    P: FloatArray
    times: IntArray
    command: FloatArray
    work: FloatArray
    points: FloatArray
    roots: FloatArray
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
    """What the prediction needs beside the state; constant during a run.

    Attributes
    ----------
    Q : (16, 16) float
        Process noise covariance per second, and a row and a column of zeros.
    dynamic : bool
        Scale the pose block of Q by the square of the speed.
    control_mask : (6,) float
        1 where the control input accelerates vx vy vz vroll vpitch vyaw.
    control_limits : (4, 6) float
        Acceleration limits and gains, deceleration limits and gains.
    control_timeout_ns : int
        Age at which a command counts as zero.
    weights : (5,) float or None
        Of the unscented filter (see `sigma_weights`); None for the extended one.
    textbook : bool
        Whether the unscented filter is the textbook's instead of robot_localization's.
    """

    Q: FloatArray
    dynamic: bool
    control_mask: FloatArray
    control_limits: FloatArray
    control_timeout_ns: int
    weights: FloatArray | None
    textbook: bool = False


class Timing(NamedTuple):
    """Clock and timers, nanoseconds.

    Attributes
    ----------
    start, step : int
        First clock step and distance of two; 1 ns is a continuous clock.
    end : int
        Last clock time.
    filter_origin, filter_period : int
        The filter ticks at origin + n period, n >= 1.
    navsat_origin, navsat_period : int
        Likewise; period 0 for no navsat_transform.
    sensor_timeout : int
    history : int
        How far back a late measurement is put in its place; -1 for not at all.
    predict_to_current_time, permit_corrected_publication : bool
    navsat_part : (2,) int64
        Parts that odometry/gps feeds: pose and twist, -1 where it feeds none.
    navsat_latency : int
        From the tick that publishes an odometry/gps to its arrival at the filter.
    """

    start: int
    step: int
    end: int
    filter_origin: int
    filter_period: int
    navsat_origin: int
    navsat_period: int
    sensor_timeout: int
    history: int
    predict_to_current_time: bool
    permit_corrected_publication: bool
    navsat_part: IntArray
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
        distance=np.full(1, np.nan),
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
