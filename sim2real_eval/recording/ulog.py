# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Messages of a PX4 log (ULog), read by pyulog.

PX4 counts microseconds since boot; its world is north-east-down and its body forward-right-down.
Topics: https://docs.px4.io/main/en/msg_docs, format: docs.px4.io/main/en/dev_log/ulog_file_format.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_eval.common.findings import RecordingError
from sim_sensors.core import rotations
from sim_sensors.core.errors import Remark
from sim_sensors.core.input_files import check_input
from sim_sensors.core.installation import pip_install
from sim_sensors.core.measurements import (
    NO_FIX,
    FixArray,
    FloatArray,
    ImuArray,
    IntArray,
    MessageArray,
    OdometryArray,
)
from .checks import CUT_SHORT, REFERENCE
from .corrections import TruthCorrection
from .fields import ABSENT_COVARIANCE, IDENTITY
from .message_types import default_type
from .poses import odometry_from_arrays
from .recording import DEFAULT_TOPICS, Content, StaticTransform
from .truth import interpolate_truth

ULOG_SUFFIX = '.ulg'
_IMU, _GPS = 'sensor_combined', ('vehicle_gps_position', 'sensor_gps')
_TRUTHS = ('_groundtruth', '')
"""Suffixes of the topics of the motion: that of a simulator, and the estimate of the autopilot."""
_POSITION, _ATTITUDE, _RATE = (
    'vehicle_local_position',
    'vehicle_attitude',
    'vehicle_angular_velocity',
)
_FLU = np.array([1.0, -1.0, -1.0])
"""Signs of forward-left-up axes in forward-right-down axes."""
_APPROXIMATED = 1
_GBAS, _SBAS, _FIX = 2, 1, 0
_STATUSES = {0: NO_FIX, 1: NO_FIX, 4: _SBAS, 5: _GBAS, 6: _GBAS}
"""Status of NavSatFix by `fix_type` of PX4; the other types are fixes."""
_LEVERS = {'imu_link': 'EKF2_IMU_POS', 'gps_link': 'EKF2_GPS_POS'}
"""Parameters of the position of a sensor in the body by its frame."""

_Columns = Mapping[str, Any]


def read_ulog(path: Path) -> Content:
    """Read IMU, fixes and motion of a PX4 log as the default topics of their roles.

    The truth is the true motion of a simulator, else the estimate of the autopilot with a
    finding. A log that is damaged or has none of these topics, and missing pyulog, are a
    RecordingError.
    """
    try:
        from pyulog import ULog
    except ImportError:
        raise RecordingError(f'{path}: ULog files need pyulog: {pip_install("pyulog")}') from None
    check_input(path)
    try:
        # It prints what it finds damaged.
        with contextlib.redirect_stdout(io.StringIO()):
            log = ULog(str(path))
    except Exception as error:
        # Damaged bytes make the parser raise exceptions of many types.
        raise RecordingError(f'{path}: not a readable ULog file: {error}') from error
    tables = {data.name: data.data for data in reversed(log.data_list)}
    content = Content()
    if log.file_corruption:
        content.notes.append(CUT_SHORT(path.name, problem='some of its bytes are damaged'))
    if log.dropouts:
        lost = 1e-3 * sum(dropout.duration for dropout in log.dropouts)
        problem = Remark('the logger lost {lost:.2f s} of messages', lost=lost)
        content.notes.append(CUT_SHORT(path.name, problem=problem))
    try:
        used = _read_tables(content, tables)
    except (KeyError, IndexError) as error:
        raise RecordingError(f'{path}: a topic of PX4 lacks the field {error}') from None
    if not used:
        raise RecordingError(
            f'{path}: has no topic that is read; must have {_IMU}, {" or ".join(_GPS)}, or '
            f'{_POSITION} with {_ATTITUDE}'
        )
    content.transforms += _read_lever_arms(log.initial_parameters)
    content.ignored += [f'{name} (of PX4)' for name in tables if name not in used]
    return content


def _read_tables(content: Content, tables: Mapping[str, _Columns]) -> set[str]:
    """Add the messages of each role, and return the names of the topics that were used."""
    used = set()
    if _IMU in tables:
        used.add(_IMU)
        _add(content, 'imu', _read_imu(tables[_IMU]))
    gps = next((name for name in _GPS if name in tables), None)
    if gps is not None:
        used.add(gps)
        _add(content, 'gps', _read_fixes(tables[gps]))
    for suffix in _TRUTHS:
        if f'{_POSITION}{suffix}' in tables and f'{_ATTITUDE}{suffix}' in tables:
            used |= {f'{name}{suffix}' for name in (_POSITION, _ATTITUDE, _RATE)}
            _add(content, 'truth', _read_truth(tables, suffix))
            if not suffix:
                words = {'made_by': 'the autopilot', 'sensors': 'its sensors'}
                content.notes.append(REFERENCE(DEFAULT_TOPICS['truth'], **words))
            break
    return used


def _add(content: Content, role: str, array: MessageArray) -> None:
    topic = DEFAULT_TOPICS[role]
    content.messages[topic] = array
    content.ros_types[topic] = default_type(array).name


def _stamps(table: _Columns) -> IntArray:
    """Return the times of measurement, ns; older versions only log the time of publication."""
    sampled = np.asarray(table.get('timestamp_sample', table['timestamp'])).astype(np.int64)
    published = np.asarray(table['timestamp']).astype(np.int64)
    return 1000 * np.where(sampled > 0, sampled, published)


def _vectors(table: _Columns, name: str, count: int = 3) -> FloatArray:
    columns = [np.asarray(table[f'{name}[{k}]'], np.float64) for k in range(count)]
    return np.stack(columns, axis=1)


def _read_imu(table: _Columns) -> ImuArray:
    stamps = _stamps(table)
    unknown = np.broadcast_to(np.nan, (len(stamps), 3, 3))
    return ImuArray(
        stamp_ns=stamps,
        arrival_ns=stamps,
        frame='imu_link',
        orientation=np.broadcast_to(IDENTITY, (len(stamps), 4)),
        angular_velocity=_FLU * _vectors(table, 'gyro_rad'),
        linear_acceleration=_FLU * _vectors(table, 'accelerometer_m_s2'),
        orientation_covariance=np.broadcast_to(ABSENT_COVARIANCE, unknown.shape),
        angular_velocity_covariance=unknown,
        linear_acceleration_covariance=unknown,
    )


def _read_fixes(table: _Columns) -> FixArray:
    """Return fixes; version 1.14 of PX4 replaced scaled integers by degrees and metres."""
    stamps = _stamps(table)
    if 'latitude_deg' in table:
        names = ('latitude_deg', 'longitude_deg', 'altitude_ellipsoid_m')
        scales = (1.0, 1.0, 1.0)
    else:
        names = ('lat', 'lon', 'alt_ellipsoid' if 'alt_ellipsoid' in table else 'alt')
        scales = (1e-7, 1e-7, 1e-3)
    latitude, longitude, altitude = (
        scale * np.asarray(table[name], np.float64)
        for name, scale in zip(names, scales, strict=True)
    )
    deviations = [np.asarray(table[name], np.float64) for name in ('eph', 'eph', 'epv')]
    kinds = np.asarray(table['fix_type']).tolist()
    return FixArray(
        stamp_ns=stamps,
        arrival_ns=stamps,
        frame='gps_link',
        latitude=latitude,
        longitude=longitude,
        altitude=altitude,
        status=np.array([_STATUSES.get(kind, _FIX) for kind in kinds], np.int64),
        position_covariance=np.eye(3) * np.square(np.stack(deviations, axis=1))[:, None, :],
        position_covariance_type=np.full(len(stamps), _APPROXIMATED),
    )


def _read_truth(tables: Mapping[str, _Columns], suffix: str) -> OdometryArray:
    """Return the motion in the axes of ROS at the stamps of the positions within the attitudes.

    The twist is NaN if the log has no rates; the reader then derives it from the poses.
    """
    local, attitude = tables[f'{_POSITION}{suffix}'], tables[f'{_ATTITUDE}{suffix}']
    stamps, attitude_stamps = _stamps(local), _stamps(attitude)
    inside = (stamps >= attitude_stamps[0]) & (stamps <= attitude_stamps[-1])
    is_valid = np.logical_and(local.get('xy_valid', 0), local.get('z_valid', 0))
    if is_valid.any():
        inside &= is_valid
    stamps = stamps[inside]
    rates = np.full((len(attitude_stamps), 3), np.nan)
    if (gyro := tables.get(f'{_RATE}{suffix}')) is not None:
        times, values = _stamps(gyro), _vectors(gyro, 'xyz')
        rates = np.stack([np.interp(attitude_stamps, times, axis) for axis in values.T], axis=1)
    # PX4 states w first.
    quaternions = np.roll(_vectors(attitude, 'q', 4), -1, axis=1)
    ned = odometry_from_arrays(attitude_stamps, np.zeros_like(rates), quaternions, 'map')
    ned = interpolate_truth(dataclasses.replace(ned, angular_velocity=rates), stamps)
    position, velocity = (
        np.stack([np.asarray(local[f'{prefix}{axis}'], np.float64) for axis in 'xyz'], axis=1)
        for prefix in ('', 'v')
    )
    ned = dataclasses.replace(
        ned,
        child_frame='base_link',
        arrival_ns=stamps,
        position=position[inside],
        linear_velocity=rotations.rotate_back(ned.orientation, velocity[inside]),
    )
    return TruthCorrection(axes='ned').apply(ned)


def _read_lever_arms(parameters: Mapping[str, Any]) -> list[StaticTransform]:
    """Return the positions of the sensors that the parameters of the autopilot state."""
    transforms = []
    for frame, name in _LEVERS.items():
        arm = [float(parameters.get(f'{name}_{axis}', 0.0)) for axis in 'XYZ']
        x, y, z = (_FLU * arm + 0.0).tolist()
        transforms.append(StaticTransform('base_link', frame, (x, y, z)))
    return transforms
