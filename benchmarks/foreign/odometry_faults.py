# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Faults of wheel odometry, as `odom0` of the judge."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from .faults import fault
from .sensors import ODOMETRY, Log
from .vehicles import Array

WHEELED = ('car', 'truck')


def _values(log: Log) -> dict[str, Array]:
    return log.streams[ODOMETRY].values


@fault('odom', 'input_in_world')
def odometry_in_world(log: Log) -> None:
    values = _values(log)
    heading = log.motion.at(log.streams[ODOMETRY].time).attitude.as_euler('ZYX')[:, :1]
    values['velocity'] = Rotation.from_euler('z', heading).apply(values['velocity'])


@fault('odom', 'input_scale', vehicles=WHEELED)
def odometry_wheel_radius(log: Log) -> None:
    """Wheels that are smaller than configured."""
    for name in ('position', 'velocity'):
        _values(log)[name] *= 1.2


@fault('odom', 'input_reversed', vehicles=WHEELED)
def odometry_reversed(log: Log) -> None:
    for name in ('position', 'velocity'):
        _values(log)[name] *= -1.0


@fault('odom', 'input_scale', 'input_unit')
def odometry_in_kilometres_per_hour(log: Log) -> None:
    _values(log)['velocity'] *= 3.6


@fault('odom', 'input_covariance', 'covariance_small', 'input_covariance_small')
def odometry_covariance_small(log: Log) -> None:
    """Deviations of the twist that are 30 times too small."""
    _values(log)['twist_covariance'] /= 900.0


@fault('odom', 'input_rate_reversed', 'rate_reversed', vehicles=WHEELED)
def odometry_turns_wrong_way(log: Log) -> None:
    _values(log)['rate'] *= -1.0
    heading = Rotation(_values(log)['orientation']).inv()
    _values(log)['orientation'] = np.asarray(heading.as_quat())
