# SPDX-License-Identifier: Apache-2.0
"""All that happens in a run, merged into one row of times, with the IMU interpolated to them."""

from __future__ import annotations

import math

import numpy as np

from sim2real_eval.inertial.front_end import InertialInputs
from sim2real_eval.inertial.loop import InertialEvents
from sim2real_eval.inertial.settings import InertialSettings
from sim2real_eval.judge.errors import JudgeError
from sim_sensors.measurements import FloatArray, IntArray

__all__ = ['grid', 'merge_events']

_MOST_ESTIMATES = 2_000_000


def grid(origin_ns: int, first_ns: int, last_ns: int, frequency: float) -> IntArray:
    """Return origin + n period, n >= 0, from `first_ns` to `last_ns`; period in whole ns, cut.

    Raises
    ------
    JudgeError
        When there would be too many to hold.
    """
    period = int(1e9 / frequency)
    first = max(-(-(first_ns - origin_ns) // period), 0)
    count = max((last_ns - origin_ns) // period - first + 1, 0)
    if count > _MOST_ESTIMATES:
        raise JudgeError(
            f'{frequency:g} Hz from {first_ns} to {last_ns} ns gives {count} estimates; must be '
            f'at most {_MOST_ESTIMATES}'
        )
    return origin_ns + period * np.arange(first, first + count, dtype=np.int64)


def merge_events(
    inputs: InertialInputs, settings: InertialSettings, out_ns: IntArray, first_fix: int = 0
) -> InertialEvents:
    """Merge IMU messages, fixes, estimates and holds, from the first fix to the last IMU message.

    Parameters
    ----------
    inputs : InertialInputs
    settings : InertialSettings
    out_ns : (o,) int64
        When estimates are due; within that time.
    first_fix : int
        Fixes before this one start the filter and are not among its corrections.
    """
    start_ns, end_ns = int(inputs.fix_ns[0]), int(inputs.imu_ns[-1])
    hold = np.square([settings.lateral_deviation, settings.vertical_deviation])
    hold_ns = np.zeros(0, dtype=np.int64)
    if hold.any():
        hold_ns = grid(start_ns, start_ns, end_ns, settings.vehicle_frequency)
    within = inputs.imu_ns[inputs.imu_ns > start_ns]
    fix_ns = inputs.fix_ns[first_fix:]
    time_ns = np.unique(np.concatenate([[start_ns], within, fix_ns, hold_ns, out_ns]))
    at, known = (time_ns - start_ns) * 1e-9, (inputs.imu_ns - start_ns) * 1e-9

    def interpolated(values: FloatArray) -> FloatArray:
        return np.stack([np.interp(at, known, column) for column in values.T], axis=1)

    return InertialEvents(
        time_ns=time_ns,
        rate=interpolated(inputs.rate),
        force=interpolated(inputs.force),
        noise=_noise(inputs, settings, time_ns),
        fix_at=np.searchsorted(time_ns, fix_ns),
        fix=np.ascontiguousarray(inputs.fix[first_fix:]),
        fix_covariance=np.ascontiguousarray(inputs.fix_covariance[first_fix:]),
        out_at=np.searchsorted(time_ns, out_ns),
        hold_at=np.searchsorted(time_ns, hold_ns),
        antenna=inputs.antenna - inputs.imu_arm,
        base=-inputs.imu_arm,
        gravity=settings.gravity,
        gate=settings.gate**2 if settings.gate > 0.0 else math.inf,
        gate_timeout_ns=round(settings.gate_timeout * 1e9),
        doubt=settings.start.moving_tilt_deviation**2,
        still=settings.start.still_speed,
        hold=hold,
    )


def _noise(inputs: InertialInputs, settings: InertialSettings, time_ns: IntArray) -> FloatArray:
    """Return the squared densities over the interval that ends at each time, (k, 4)."""
    noise = np.tile(
        np.square([
            settings.gyroscope_noise, settings.accelerometer_noise,
            settings.gyroscope_bias_walk, settings.accelerometer_bias_walk,
        ]),
        (len(time_ns), 1),
    )  # fmt: skip
    # An error s that is constant over a gap of length T comes to s T, as does white noise of the
    # density s sqrt(T).
    span = np.diff(inputs.imu_ns) * 1e-9
    after = np.clip(np.searchsorted(inputs.imu_ns, time_ns), 1, len(inputs.imu_ns) - 1)
    gap = np.where(span[after - 1] > settings.longest_gap, span[after - 1], 0.0)
    noise[:, 0] += settings.gap_rate**2 * gap
    noise[:, 1] += settings.gap_acceleration**2 * gap
    return noise
