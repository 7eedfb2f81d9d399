# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Faults of a satellite receiver."""

from __future__ import annotations

import numpy as np

from . import earth
from .faults import add_fault, fault
from .imu_faults import shift
from .sensors import GPS, Log, Stream, markov
from .vehicles import VEHICLES, Array

MOVING = ('car', 'truck', 'drone')


def _fixes(log: Log) -> Stream:
    return log.streams[GPS]


def _move(log: Log, offsets: Array) -> None:
    """Move all fixes by offsets in east, north, up."""
    values = _fixes(log).values
    names = ('latitude', 'longitude', 'altitude')
    latitude, longitude, altitude = (values[name] for name in names)
    enu = earth.to_enu(latitude, longitude, altitude, log.setup.place)
    for name, value in zip(names, earth.to_geodetic(enu + offsets, log.setup.place), strict=True):
        values[name] = value


def _state(log: Log, deviation: float) -> None:
    """State a deviation for all axes."""
    count = len(_fixes(log))
    _fixes(log).values['covariance'] = np.tile(deviation**2 * np.eye(3).ravel(), (count, 1))


@fault('gps', 'fixes_swapped', 'recording.fixes_exchanged', correction='swapped: true')
def fixes_swapped(log: Log) -> None:
    values = _fixes(log).values
    values['latitude'], values['longitude'] = values['longitude'], values['latitude']


@fault('gps', 'fixes_unit', 'fixes_in_radians', 'fix_unit')
def fixes_in_radians(log: Log) -> None:
    values = _fixes(log).values
    for name in ('latitude', 'longitude'):
        values[name] = np.radians(values[name])


@fault('gps', 'fixes_mirrored', 'fixes_sign', 'fixes_unsigned', place=(37.77, -122.42, 16.0))
def fixes_without_hemisphere(log: Log) -> None:
    """West longitudes without their sign, as a parser of NMEA makes them that drops W."""
    _fixes(log).values['longitude'] = np.abs(_fixes(log).values['longitude'])


def _late(seconds: float) -> None:
    def plant(log: Log) -> None:
        shift(_fixes(log), seconds)

    name = f'fixes_late_{1e3 * seconds:.0f}_ms'
    add_fault(name, 'gps', plant, ('fixes_late', 'other_clock'), f'delay: {seconds:g}', MOVING,
              {'gps': 'rtk', 'gps_rate': 10.0} if seconds < 0.5 else {})  # fmt: skip


for _seconds in (0.3, 1.0, 18.0):
    _late(_seconds)


def _overconfident(error: float) -> None:
    def plant(log: Log) -> None:
        fixes = _fixes(log)
        step = 1.0 / log.setup.gps_rate
        if error < 10.0:
            _move(log, markov(log.rng, len(fixes), step, 60.0, error))
        else:
            # White, as the plugin of Gazebo makes it of a deviation that is meant in metres.
            _move(log, log.rng.normal(0.0, error, (len(fixes), 3)) * [1.0, 1.0, 0.01])
        _state(log, 0.01)

    names = ('covariance_small', 'fixes_far', 'fix_errors', 'fix_error', 'fixes_wrong')
    add_fault(f'fixes_err_by_{error:.0f}_m', 'gps', plant, names, 'std: ...', VEHICLES, {})


for _error in (2.0, 111.0, 1113.0):
    _overconfident(_error)


@fault('gps', 'fixes_at_zero', 'no_fix', 'fix_jumps', 'recording.bad_value')  # fmt: skip
def fixes_at_zero(log: Log) -> None:
    """A tenth of the fixes at latitude and longitude 0 while the receiver has none."""
    fixes = _fixes(log)
    begin = 0.5 * log.setup.duration
    lost = (fixes.time > begin) & (fixes.time < begin + 0.1 * log.setup.duration)
    for name in ('latitude', 'longitude', 'altitude'):
        fixes.values[name] = np.where(lost, 0.0, fixes.values[name])


@fault('gps', 'no_covariance', 'recording.covariance_assumed', correction='std: ...')
def fixes_covariance_nan(log: Log) -> None:
    _fixes(log).values['covariance'][:] = np.nan


@fault('gps', 'no_covariance', 'recording.covariance_zero', correction='std: ...')
def fixes_covariance_zero(log: Log) -> None:
    _fixes(log).values['covariance'][:] = 0.0


@fault('gps', 'altitude_unit', 'altitude_scale', 'fixes_altitude', 'fix_unit', 'fixes_unit',
       vehicles=MOVING, hills=0.12, gps='rtk')  # fmt: skip
def altitude_in_millimetres(log: Log) -> None:
    """As UBX-NAV-PVT has it."""
    _fixes(log).values['altitude'] *= 1000.0


@fault('gps', 'altitude_unit', 'altitude_scale', 'fixes_altitude', 'fix_unit', 'fixes_unit',
       vehicles=MOVING, hills=0.12, gps='rtk')  # fmt: skip
def altitude_in_feet(log: Log) -> None:
    _fixes(log).values['altitude'] /= 0.3048


@fault('gps', 'fix_jumps')
def fixes_jump(log: Log) -> None:
    """Three stretches of multipath of 2.5 s, each 20 m off."""
    fixes = _fixes(log)
    offsets = np.zeros((len(fixes), 3))
    for share in (0.3, 0.55, 0.8):
        begin, course = share * log.setup.duration, log.rng.uniform(0.0, 2.0 * np.pi)
        rows = (fixes.time >= begin) & (fixes.time < begin + 2.5)
        offsets[rows] = 20.0 * np.array([np.cos(course), np.sin(course), 0.5])
    _move(log, offsets)


@fault('gps', 'frozen', 'fixes_frozen', vehicles=('car', 'truck', 'boat'))
def fixes_frozen(log: Log) -> None:
    """The driver repeats its last fix for 12 s."""
    fixes = _fixes(log)
    begin = 0.45 * log.setup.duration
    rows = np.arange(len(fixes))
    held = (fixes.time > begin) & (fixes.time < begin + 12.0)
    rows[held] = rows[held][0]
    for name in ('latitude', 'longitude', 'altitude'):
        fixes.values[name] = fixes.values[name][rows]


@fault('gps', 'lever_arm', 'gps_lever_arm', 'fix_lever_arm', vehicles=('car', 'truck'),
       correction='the translation of gps_link', gps='rtk', gps_rate=10.0,
       lever_gps=(2.0, 0.4, 1.8))  # fmt: skip
def lever_arm_undeclared(log: Log) -> None:
    if 'gps_link' in log.transforms:
        log.transforms['gps_link'] = (np.zeros(3), log.transforms['gps_link'][1])
