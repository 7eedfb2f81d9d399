# SPDX-License-Identifier: Apache-2.0
"""The zero-rate offset of a gyroscope, from the rest that a run begins with."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim2real_eval.attitude.settings import AttitudeError
from sim2real_eval.characterization.standstill import StandstillOptions
from sim_sensors.measurements import FloatArray, ImuArray

__all__ = ['without_zero_rate']

_PARTS = 10
_LIMITS = StandstillOptions()


def without_zero_rate(imu: ImuArray, rest: float) -> ImuArray:
    """Return the IMU with the mean rate of its first seconds taken off all rates.

    A turn that is steady through all of them cannot be told from an offset.

    Parameters
    ----------
    imu : ImuArray
    rest : float
        Seconds that the body rests.

    Raises
    ------
    AttitudeError
        When the time holds fewer than 10 samples, or tenths of it differ in their mean rate or
        specific force by more than those of a body at rest (`StandstillOptions`).
    """
    early = imu.stamp_ns - imu.stamp_ns[0] < rest * 1e9
    rates = imu.angular_velocity[early]
    if len(rates) < _PARTS:
        raise AttitudeError(
            f'the IMU has {len(rates)} samples in its first {rest:g} s; --rest must cover '
            f'{_PARTS} or more'
        )
    for values, what, limit, unit in (
        (rates, 'rate', _LIMITS.rate_limit, 'rad/s'),
        (imu.linear_acceleration[early], 'specific force', _LIMITS.acceleration_limit, 'm/s^2'),
    ):
        away = _away(values)
        # Written so that NaN of a specific force that is absent is no motion.
        if away > limit:
            raise AttitudeError(
                f'the IMU does not rest in its first {rest:g} s: the mean {what} of a tenth of '
                f'them is {away:.3g} {unit} off their median; must be {limit:g} or less; choose '
                'another --rest'
            )
    return dataclasses.replace(imu, angular_velocity=imu.angular_velocity - rates.mean(axis=0))


def _away(values: FloatArray) -> float:
    means = np.stack([part.mean(axis=0) for part in np.array_split(values, _PARTS)])
    return float(np.linalg.norm(means - np.median(means, axis=0), axis=1).max())
