# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Faults of the ground truth."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from .faults import add_fault, fault
from .imu_faults import FRD_TO_FLU, NED_TO_ENU, shift
from .sensors import TRUTH, Log, Stream
from .vehicles import VEHICLES

_NO_ROTATION = Rotation.identity()


def _truth(log: Log) -> Stream:
    return log.streams[TRUTH]


def _turn(log: Log, world: Rotation, body: Rotation) -> None:
    """Turn pose and twist by rotations of world axes and, from new to old, of body axes."""
    values = _truth(log).values
    values['position'] = world.apply(values['position'])
    values['orientation'] = (world * Rotation(values['orientation']) * body).as_quat()
    for name in ('velocity', 'rate'):
        values[name] = body.inv().apply(values[name])


@fault('truth', 'truth_ned', correction='axes: ned')
def truth_ned(log: Log) -> None:
    _turn(log, NED_TO_ENU.inv(), FRD_TO_FLU)


def _turned(degrees: float) -> None:
    def plant(log: Log) -> None:
        _turn(log, Rotation.from_euler('z', degrees, degrees=True), _NO_ROTATION)

    # A slow boat near an ordinary receiver does not show 2 degrees.
    needs = {'gps': 'rtk'} if degrees < 10.0 else {}
    add_fault(f'truth_turned_{degrees:.0f}', 'truth', plant, ('truth_turned',),
              f'turn: {degrees:g}', ('car', 'truck', 'drone', 'boat'), needs)  # fmt: skip


for _degrees in (2.0, 4.0, 30.0):
    _turned(_degrees)


@fault('truth', 'truth_quaternion', 'truth_quaternion_order', 'quaternion_order', 'truth_wxyz')
def truth_wxyz(log: Log) -> None:
    values = _truth(log).values
    values['orientation'] = np.roll(values['orientation'], 1, axis=1)


def _speed(factor: float) -> None:
    def plant(log: Log) -> None:
        _truth(log).values['velocity'] *= factor

    names = ('speed_scale', 'truth_speed', 'speed_or_positions')
    add_fault(f'truth_speed_{factor:g}', 'truth', plant, names,
              f'speed_scale: {1.0 / factor:.6g}', VEHICLES, {})  # fmt: skip


for _factor in (1.03, 0.9, 1.14, 3.6):
    _speed(_factor)


@fault('truth', 'twist_in_world', correction='twist: world')
def truth_twist_in_world(log: Log) -> None:
    values = _truth(log).values
    values['velocity'] = Rotation(values['orientation']).apply(values['velocity'])


@fault('truth', 'truth_no_twist', 'truth_twist_absent', 'twist_absent', 'twist_zero',
       'speed_scale', correction='twist: positions')  # fmt: skip
def truth_without_twist(log: Log) -> None:
    """Odometry whose twist nobody has filled in."""
    for name in ('velocity', 'rate'):
        _truth(log).values[name][:] = 0.0


@fault('truth', 'truth_late', 'truth_clock', ('imu:imu_late', 'gps:fixes_late'),
       ('imu:other_clock', 'gps:other_clock'), vehicles=('car', 'truck', 'drone'))  # fmt: skip
def truth_late(log: Log) -> None:
    shift(_truth(log), 0.35)


@fault('truth', 'twist_late', correction='twist: positions')
def truth_twist_late(log: Log) -> None:
    """Velocities of a filter that lags by 0.3 s, beside exact positions."""
    truth = _truth(log)
    lag = round(0.3 * log.setup.truth_rate)
    rows = np.maximum(np.arange(len(truth)) - lag, 0)
    for name in ('velocity', 'rate'):
        truth.values[name] = truth.values[name][rows]


@fault('truth', 'truth_scale', correction='position_scale: 0.3048')
def truth_in_feet(log: Log) -> None:
    _truth(log).values['position'] /= 0.3048


@fault('truth', 'truth_heading', correction='heading: 10')
def truth_heading_off(log: Log) -> None:
    values = _truth(log).values
    turn = Rotation.from_euler('z', 10.0, degrees=True)
    values['orientation'] = (turn * Rotation(values['orientation'])).as_quat()


@fault('truth', 'truth_sideways', 'truth_body', correction='body_yaw: 90',
       vehicles=('car', 'truck'))  # fmt: skip
def truth_body_turned(log: Log) -> None:
    """Axes of the body with y ahead, as some INS have them."""
    _turn(log, _NO_ROTATION, Rotation.from_euler('z', -90.0, degrees=True))


@fault('truth', 'frozen', 'truth_frozen', vehicles=('car', 'truck'))
def truth_frozen(log: Log) -> None:
    """All values stand still for 5 s while the vehicle moves."""
    truth = _truth(log)
    speed = np.linalg.norm(truth.values['velocity'], axis=1)
    count = round(5.0 * log.setup.truth_rate)
    moving = np.convolve(speed > 1.0, np.ones(count), 'valid') > count - 1
    begin = int(np.flatnonzero(moving)[np.count_nonzero(moving) // 2])
    for value in truth.values.values():
        value[begin : begin + count] = value[begin]


@fault('truth', 'truth_jumps')
def truth_jumps(log: Log) -> None:
    """Four jumps between two solutions that are 2.5 m apart."""
    truth = _truth(log)
    part = np.floor(5.0 * truth.time / log.setup.duration)
    truth.values['position'] += (part % 2)[:, None] * [2.0, -1.4, 0.4]


@fault('truth', 'truth_no_heading', 'truth_identity')
def truth_without_orientation(log: Log) -> None:
    _truth(log).values['orientation'][:] = [0.0, 0.0, 0.0, 1.0]


@fault('truth', 'truth_flat', 'truth_no_attitude', 'truth_tilt', 'truth_no_tilt', hills=0.16,
       vehicles=('car', 'drone', 'boat'))  # fmt: skip
def truth_without_attitude(log: Log) -> None:
    """Yaw alone while the vehicle rolls and pitches."""
    values = _truth(log).values
    yaw = Rotation(values['orientation']).as_euler('ZYX')[:, :1]
    values['orientation'] = Rotation.from_euler('z', yaw).as_quat()
