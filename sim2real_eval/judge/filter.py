# SPDX-License-Identifier: Apache-2.0
"""State and settings of one filter, as the compiled loops see them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim2real_eval.judge.configuration import FilterConfig
from sim2real_eval.judge.rows import WIDTH
from sim2real_eval.judge.state import N
from sim_sensors.measurements import FloatArray, IntArray

__all__ = [
    'CONTROL_NS', 'INITIALISED', 'LAST_NS', 'NO_STAMP', 'Dynamics', 'Filter', 'dynamics_of',
    'new_filter', 'padded',
]  # fmt: skip

INITIALISED = 0
LAST_NS = 1
CONTROL_NS = 2
NO_STAMP = -(2**62)
"""Stamp of what never happened; far enough back for every timeout, near enough not to overflow."""


class Filter(NamedTuple):
    """State of one filter; every field is an array that the kernels change in place.

    Attributes
    ----------
    x : (16,) float
        State, in the order of `sim2real_eval.judge.state`, and a zero.
    P : (16, 16) float
        Covariance, symmetric, and a row and a column of zeros; see `sim2real_eval.judge.rows`.
    times : (3,) int64
        Initialised (0 or 1), last measurement time, time of the last command; nanoseconds.
    command : (6,) float
        Latest velocity command: vx vy vz vroll vpitch vyaw.
    work : (4, 16, 16) float
        Scratch space.
    """

    x: FloatArray
    P: FloatArray
    times: IntArray
    command: FloatArray
    work: FloatArray

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
    """

    Q: FloatArray
    dynamic: bool
    control_mask: FloatArray
    control_limits: FloatArray
    control_timeout_ns: int


def dynamics_of(config: FilterConfig) -> Dynamics:
    """Return what the prediction takes from a configuration."""
    return Dynamics(
        Q=padded(config.process_noise),
        dynamic=config.dynamic_process_noise,
        control_mask=config.control_mask,
        control_limits=config.control_limits,
        control_timeout_ns=round(config.control_timeout * 1e9),
    )


def new_filter(initial_state: FloatArray, initial_covariance: FloatArray) -> Filter:
    """Return a filter that waits for its first measurement."""
    return Filter(
        x=np.append(initial_state, 0.0),
        P=padded(initial_covariance),
        times=np.array([0, 0, NO_STAMP], dtype=np.int64),
        command=np.zeros(6),
        work=np.zeros((4, WIDTH, WIDTH)),
    )


def padded(matrix: FloatArray) -> FloatArray:
    """Return a (15, 15) matrix with a row and a column of zeros more."""
    result = np.zeros((WIDTH, WIDTH))
    result[:N, :N] = matrix
    return result
