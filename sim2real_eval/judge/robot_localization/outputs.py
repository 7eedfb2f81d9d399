# SPDX-License-Identifier: Apache-2.0
"""What the nodes publish, and how odometry/gps gets from the one to the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim2real_eval.judge.robot_localization.state import N
from sim_sensors.core.compilation import kernel
from sim_sensors.core.measurements import FloatArray, IntArray


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
    # (f, 2) Row of the filtered odometry behind each gps/filtered, and the time of the tick.
    filtered: IntArray


def new_output(
    rows: int, fixes: int, parts: int, corrections: int = 0, filtered: int = 0
) -> Output:
    """Return room for a number of filtered odometries, odometry/gps, corrections, gps/filtered."""
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
        correction=np.zeros((corrections, 3), dtype=np.int64),
        nis=np.zeros(corrections),
        filtered=np.zeros((filtered, 2), dtype=np.int64),
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
