# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Signals of inertial sensors as columns, evenly spaced in time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.findings import Finding, RecordingError
from sim2real_eval.recording.fields import complete_messages
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray, IntArray, is_absent
from . import findings
from .stamps import StampError, order_samples

AXES = tuple(f'{quantity}_{axis}' for quantity in ('gyroscope', 'accelerometer') for axis in 'xyz')
"""Names of the columns: rad/s and m/s^2 (specific force), sensor frame."""

_UNITS = {'gyroscope': 'rad/s', 'accelerometer': 'm/s^2'}

UNIT_OPTIONS = {'gyroscope': '--gyro-unit', 'accelerometer': '--accel-unit'}
"""Command-line options that set the unit of each sensor."""
# Resolution, SI units, from which whole numbers must be converter counts: no inertial sensor has
# steps of 1 deg/s or 0.05 g.
_COARSEST = {'gyroscope': 0.999 * math.radians(1.0), 'accelerometer': 0.5}
# Fewer samples may all be whole numbers by chance.
_MIN_COUNTS = 50
_SCALE_OPTIONS = {
    'gyroscope': '--gyro-unit deg/s --gyro-scale 16.4',
    'accelerometer': '--accel-unit g --accel-scale 16384',
}


class SignalFileError(Sim2RealError):
    """Raised for a file without signals that can be characterised."""


@dataclasses.dataclass(frozen=True, eq=False)
class Signals:
    """Samples of the axes of inertial sensors, one column per axis.

    Attributes
    ----------
    axes : tuple of str
        Names of the columns, a subset of `AXES`.
    values : (n, axes) float
        SI units; of any floating type, in memory or mapped.
    stamp_ns : (n,) int64 or None
        None: the samples are evenly spaced at `rate`.
    rate : float or None
        Hz. If there are stamps, the rate that the user or the file states, or None.
    notes : tuple of Finding
        Repairs and conversions of the samples.
    motion : (n, 2) float or None
        True speed, m/s, and true angular speed, rad/s, if the recording has ground truth. Rates
        and accelerations alone cannot distinguish steady motion from rest with a bias.
    left_out : mapping of str to float
        Medians of the axes that are not analysed, which help to identify the unit.
    """

    name: str
    axes: tuple[str, ...]
    values: NDArray[np.floating[Any]]
    stamp_ns: IntArray | None
    rate: float | None
    notes: tuple[Finding, ...] = ()
    motion: FloatArray | None = None
    left_out: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def column(self, axis: str) -> FloatArray:
        """Return one column, `(n,)` float64, contiguous."""
        index = self.axes.index(axis)
        return np.ascontiguousarray(self.values[:, index], dtype=np.float64)

    def take(self, start: int, stop: int) -> Signals:
        """Return the samples from `start` to before `stop`."""
        stamps = None if self.stamp_ns is None else self.stamp_ns[start:stop]
        motion = None if self.motion is None else self.motion[start:stop]
        return dataclasses.replace(
            self, values=self.values[start:stop], stamp_ns=stamps, motion=motion
        )

    def with_notes(self, *notes: Finding) -> Signals:
        """Return the signals with further notes."""
        return dataclasses.replace(self, notes=(*self.notes, *notes))

    def converted(self, si_factors: Mapping[str, float]) -> Signals:
        """Return the signals in SI units; `si_factors` has the factor of each quantity.

        Raises SignalFileError if the values are raw converter counts, but the factors are those of
        physical units.
        """
        factors = np.array([si_factors.get(quantity_of(axis), 1.0) for axis in self.axes])
        self._refuse_counts(factors)
        if (factors == 1.0).all():
            return self
        return dataclasses.replace(self, values=self.values * factors)

    def _refuse_counts(self, factors: FloatArray) -> None:
        """Raise SignalFileError if all values of a sensor are whole numbers of a coarse unit."""
        if len(self) < _MIN_COUNTS:
            return
        counts = {}
        for quantity, coarsest in _COARSEST.items():
            index = [k for k, axis in enumerate(self.axes) if quantity_of(axis) == quantity]
            columns = self.values[:, index]
            if not len(index) or factors[index[0]] < coarsest or not _are_whole(columns):
                continue
            if (columns != columns[0]).any():
                counts[quantity] = float(np.linalg.norm(np.median(columns, axis=0)))
        if counts:
            force = counts.get('accelerometer', 0.0)
            size = f', and the specific force is {force:.6g}' if force else ''
            milli_g_option = ', or --accel-unit mg' if 800.0 < force < 1200.0 else ''
            raise SignalFileError(
                f'{self.name}: all values of the {" and ".join(counts)} are whole numbers{size}: '
                'raw converter counts. Give the LSB per unit from the data sheet, such as '
                + ' '.join(_SCALE_OPTIONS[quantity] for quantity in counts)
                + milli_g_option
            )

    def only(self, axes: tuple[str, ...]) -> Signals:
        """Return the signals of some axes; SignalFileError if one is missing."""
        for axis in axes:
            if axis not in self.axes:
                names = ', '.join(self.axes)
                raise SignalFileError(f'{self.name}: axis {axis} is missing; available: {names}')
        index = [self.axes.index(axis) for axis in axes]
        medians = {}
        for axis in self.axes:
            column = self.column(axis)
            if axis not in axes and np.isfinite(column).all():
                medians[axis] = float(np.median(column))
        return dataclasses.replace(
            self, axes=axes, values=self.values[:, index], left_out={**self.left_out, **medians}
        )


def _are_whole(values: NDArray[Any]) -> bool:
    """Return whether all values are whole numbers."""
    head = values[:_MIN_COUNTS]
    return bool((head == np.rint(head)).all() and (values == np.rint(values)).all())


def quantity_of(axis: str) -> str:
    """Return `gyroscope` or `accelerometer`."""
    return axis.rpartition('_')[0]


def unit_of(axis: str) -> str:
    """Return the SI unit of an axis."""
    return _UNITS[quantity_of(axis)]


def signals_of(recording: Recording) -> Signals:
    """Return the IMU signals of a recording, without quantities that it marks as absent.

    Raises SignalFileError if it has no IMU, or one with neither rates nor accelerations.
    """
    try:
        recording.require('imu')
    except RecordingError as error:
        raise SignalFileError(str(error)) from None
    assert recording.imu is not None
    imu = complete_messages(recording.imu)
    columns, axes = [], []
    for quantity, values, covariance in (
        ('gyroscope', imu.angular_velocity, imu.angular_velocity_covariance),
        ('accelerometer', imu.linear_acceleration, imu.linear_acceleration_covariance),
    ):
        if not is_absent(covariance).all():
            columns.append(values)
            axes += [f'{quantity}_{axis}' for axis in 'xyz']
    if not axes:
        raise SignalFileError(f'{recording.path}: the IMU marks rates and accelerations as absent')
    return Signals(
        name=recording.name,
        axes=tuple(axes),
        values=np.hstack(columns),
        stamp_ns=imu.stamp_ns,
        rate=None,
        notes=tuple(note for note in recording.notes if note.subject == recording.roles['imu']),
        motion=_motion(recording, imu.stamp_ns),
    )


def _motion(recording: Recording, stamp_ns: IntArray) -> FloatArray | None:
    """Return true speed, m/s, and angular speed, rad/s, at the stamps, `(n, 2)`, or None without
    ground truth.
    """
    truth = recording.truth
    if truth is None:
        return None
    vectors = truth.linear_velocity, truth.angular_velocity
    norms = np.stack([np.linalg.norm(rows, axis=1) for rows in vectors])
    are_finite = np.isfinite(norms).all(axis=0)
    if not are_finite.any():
        return None
    origin = truth.stamp_ns[0]
    norms = norms[:, are_finite]
    truth_ns = (truth.stamp_ns[are_finite] - origin).astype(np.float64)
    return np.stack([np.interp(stamp_ns - origin, truth_ns, norm) for norm in norms], axis=1)


_MIN = 8
# Largest relative difference between a stated rate and that of the stamps.
_SAME_RATE = 0.01


def evenly_spaced(signals: Signals) -> Signals:
    """Return signals without stamps, at a known rate, as an Allan analysis needs them.

    Duplicate samples are dropped; all others are kept, whatever their stamps. Up to
    `stamps.LONGEST_FILLED` missing samples are interpolated linearly. A longer gap or a restart of
    the clock splits the record, and the longest part is kept. It is treated as evenly spaced at
    its mean rate, since jitter of the stamps comes from the driver, not from the sensor. Each of
    these steps adds a note.

    Raises SignalFileError if fewer than 8 samples are left, or the stamps do not determine the
    rate.
    """
    if signals.stamp_ns is None:
        if len(signals) < _MIN:
            raise _too_few(signals, len(signals))
        return signals
    values = signals.values
    if signals.motion is not None:
        # The motion is repaired with the samples.
        values = np.hstack([values, signals.motion])
    if len(values) < _MIN:
        raise _too_few(signals, len(values))
    try:
        samples = order_samples(signals.stamp_ns, values)
    except StampError as error:
        raise SignalFileError(
            f'{signals.name}: the stamps do not determine the rate: {error}; for a table, write - '
            'for the time column in --columns and set --sample-rate'
        ) from None
    notes = list(samples.notes)
    values, place = samples.values, samples.place
    if len(values) < _MIN:
        raise _too_few(signals.with_notes(*notes), len(values))
    count = int(place[-1]) + 1 - len(values)
    if count:
        share = count / (len(values) + count)
        notes.append(findings.INTERPOLATED(count=count, share=share, lower=share / 2))
        at, measured_at = np.arange(place[-1] + 1), place.astype(np.float64)
        values = np.stack([np.interp(at, measured_at, column) for column in values.T], axis=1)
    rate = samples.rate
    if signals.rate is not None and abs(signals.rate / rate - 1.0) > _SAME_RATE:
        notes.append(findings.STAMPS_USED(found=rate, given=signals.rate))
    # Deviation of the stamps from an even grid, ns.
    jitter = (samples.stamp_ns - samples.stamp_ns[0]) - place * (1e9 / rate)
    jitter -= jitter.mean()
    if jitter.std() > 0.01e9 / rate:
        std_ms, max_ms = jitter.std() * 1e-6, np.abs(jitter).max() * 1e-6
        notes.append(findings.JITTER(size=std_ms, most=max_ms, rate=rate))
    motion, width = None, len(signals.axes)
    if signals.motion is not None:
        # Separate arrays: reading one does not load the other.
        motion, values = values[:, width:].copy(), values[:, :width].copy()
    return dataclasses.replace(
        signals,
        values=values,
        stamp_ns=None,
        rate=rate,
        notes=(*signals.notes, *notes),
        motion=motion,
    )


def _too_few(signals: Signals, count: int) -> SignalFileError:
    repairs = f' ({"; ".join(map(str, signals.notes))})' if signals.notes else ''
    return SignalFileError(
        f'{signals.name}: {count} samples are too few{repairs}; must be {_MIN} or more'
    )
