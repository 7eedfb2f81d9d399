# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Fields of messages that are not finite, and what stands in for them."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.blocks import by_blocks, is_steady
from sim_sensors.core.measurements import (
    FloatArray,
    ImuArray,
    MessageArray,
    OdometryArray,
    PoseArray,
    TwistArray,
    is_absent,
)
from sim_sensors.core.parameters import LARGEST

ABSENT_COVARIANCE: FloatArray = np.diag([-1.0, 0.0, 0.0])
"""Covariance of a quantity of sensor_msgs/Imu that is absent."""
IDENTITY: FloatArray = np.array([0.0, 0.0, 0.0, 1.0])
"""Quaternion of no rotation."""
IMU_QUANTITIES = ('orientation', 'angular_velocity', 'linear_acceleration')
ASSUMED_DEVIATIONS = {
    'position': '1 m',
    'angular_velocity': '0.01 rad/s',
    'linear_acceleration': '0.1 m/s^2',
    'orientation': '0.05 rad',
    'pose': '0.1 m and 0.1 rad',
    'twist': '0.1 m/s and 0.1 rad/s',
    'magnetic_field': '1e-06 T',
}
"""Standard deviation of every axis that stands in for an unknown covariance, by quantity."""
STD_KEYS = {
    ('gps', 'position'): 'std',
    ('imu', 'angular_velocity'): 'rate_std',
    ('imu', 'linear_acceleration'): 'acceleration_std',
    ('imu', 'orientation'): 'orientation_std',
}
"""Keys in `corrections` of recording.yaml that replace a covariance, by role and quantity."""


def assumed_deviation(quantity: str) -> float:
    """Return the number of `ASSUMED_DEVIATIONS`, in SI units."""
    return float(ASSUMED_DEVIATIONS[quantity].split()[0])


def assumed_covariance(quantity: str, count: int) -> FloatArray:
    """Return n equal covariances of `ASSUMED_DEVIATIONS`, (n, 3, 3) or (n, 6, 6)."""
    size = 6 if quantity in ('pose', 'twist') else 3
    variance = assumed_deviation(quantity) ** 2
    return np.broadcast_to(variance * np.eye(size), (count, size, size))


def remedy_of(role: str, quantities: Sequence[str]) -> str:
    """Return what a user can do about unknown covariances of some quantities."""
    keys = {STD_KEYS.get((role, quantity)): quantity for quantity in quantities}
    if None in keys:
        return 'correct the driver or the converter'
    values = ', '.join(f'{key}: {assumed_deviation(name):g}' for key, name in keys.items())
    return (
        f'set `corrections: {{{role}: {{{values}}}}}` in recording.yaml, with the deviations of '
        'your sensor'
    )


def stated_covariances(role: str, correction: object) -> tuple[str, ...]:
    """Return the covariances that a correction of recording.yaml replaces."""
    return tuple(
        f'{quantity}_covariance'
        for (key_role, quantity), key in STD_KEYS.items()
        if key_role == role and getattr(correction, key, None) is not None
    )


def optional_fields(array: MessageArray, is_truth: bool) -> tuple[str, ...]:
    """Return the fields without which the rest of a message can still be used.

    sensor_msgs/Imu marks them by a covariance of -1. robot_localization ignores the values of the
    other types that are NaN. A truth needs all of its fields.
    """
    if isinstance(array, ImuArray):
        return IMU_QUANTITIES
    if is_truth or not isinstance(array, (OdometryArray, PoseArray, TwistArray)):
        return ()
    names = ('position', 'orientation', 'linear_velocity', 'angular_velocity')
    return tuple(name for name in names if hasattr(array, name))


def float_fields(array: MessageArray) -> dict[str, FloatArray]:
    """Return the fields of real numbers by name."""
    fields = {field.name: getattr(array, field.name) for field in dataclasses.fields(array)}
    return {
        name: values
        for name, values in fields.items()
        if isinstance(values, np.ndarray) and values.dtype == np.float64
    }


def find_finite(name: str, values: FloatArray) -> NDArray[np.bool_]:
    """Return True for each row (n, ...) of a field whose numbers are finite and of sane size."""
    # Drivers write the largest number there is for a covariance that they do not know.
    largest = sys.float_info.max if name.endswith('covariance') else LARGEST
    return by_blocks(
        lambda rows: (np.abs(rows) <= largest).all(axis=tuple(range(1, rows.ndim))), values
    )


def find_absent(array: MessageArray, name: str) -> NDArray[np.bool_]:
    """Return True for each message that marks a quantity as absent."""
    if isinstance(array, ImuArray):
        return is_absent(getattr(array, f'{name.removesuffix("_covariance")}_covariance'))
    return np.zeros(len(array), np.bool_)


def complete_messages(imu: ImuArray) -> ImuArray:
    """Return the messages with rates and forces, unless no message has the one or the other."""
    is_complete = np.ones(len(imu), np.bool_)
    for name in ('angular_velocity', 'linear_acceleration'):
        absent = find_absent(imu, name)
        if not absent.all():
            is_complete &= ~absent
    return imu if is_complete.all() else imu.take(is_complete)


def replace_rows(values: FloatArray, mask: NDArray[np.bool_], row: FloatArray) -> FloatArray:
    """Return values with the rows of a mask replaced; one repeated row where the mask is full."""
    if mask.all():
        return np.broadcast_to(row, values.shape)
    replaced: FloatArray = values.copy()
    replaced[mask] = row
    return replaced


def hold_rows(values: FloatArray, mask: NDArray[np.bool_]) -> FloatArray:
    """Return values in which the row before replaces each row of a mask; zero if all are masked.

    The first row that is not masked replaces those before it.
    """
    if mask.all():
        return np.zeros_like(values)
    return np.asarray(values[_latest_rows(~mask)])


def fill_covariance(covariance: FloatArray, assumed: FloatArray) -> FloatArray:
    """Return finite covariances (n, k, k).

    A variance that is NaN is replaced by that of the message before, else of the next one, else of
    `assumed` (k, k). Infinity becomes `LARGEST`. Its row and column, and any other element that is
    not finite, become zero.
    """
    if is_steady(covariance):
        return np.broadcast_to(fill_covariance(covariance[:1], assumed), covariance.shape)
    filled = np.array(covariance)
    diagonal: FloatArray = np.einsum('nii->ni', filled).copy()
    diagonal[diagonal == np.inf] = LARGEST
    for axis, variances in enumerate(diagonal.T):
        is_known = np.isfinite(variances)
        known_before = variances[_latest_rows(is_known)] if is_known.any() else assumed[axis, axis]
        variances[:] = np.where(is_known, variances, known_before)
    is_kept = np.isfinite(np.einsum('nii->ni', filled))
    filled[~(np.isfinite(filled) & is_kept[:, :, None] & is_kept[:, None, :])] = 0.0
    np.einsum('nii->ni', filled)[...] = diagonal
    return filled


def has_variances(covariance: FloatArray) -> bool:
    """Return whether each axis of covariances (n, k, k) has a variance in some message."""
    diagonal = np.diagonal(covariance, axis1=1, axis2=2)
    return bool((np.isfinite(diagonal) | (diagonal == np.inf)).any(axis=0).all())


def _latest_rows(is_known: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the index of the latest known row at each row, else of the first known one."""
    latest = np.maximum.accumulate(np.where(is_known, np.arange(len(is_known)), -1))
    return np.where(latest < 0, int(np.argmax(is_known)), latest)
