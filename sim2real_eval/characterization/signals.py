# SPDX-License-Identifier: Apache-2.0
"""Signals of inertial sensors as columns: what an Allan analysis reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.recording import Recording
from sim_sensors.errors import Sim2RealError
from sim_sensors.measurements import FloatArray, ImuArray, IntArray, OdometryArray

__all__ = ['AXES', 'SignalFileError', 'Signals', 'quantity_of', 'signals_of', 'unit_of']

AXES = tuple(f'{quantity}_{axis}' for quantity in ('gyroscope', 'accelerometer') for axis in 'xyz')
"""Names of the columns: rad/s and m/s^2 (specific force), sensor frame."""

_UNITS = {'gyroscope': 'rad/s', 'accelerometer': 'm/s^2'}


class SignalFileError(Sim2RealError):
    """A file holds no signals that can be characterised."""


@dataclasses.dataclass(frozen=True, eq=False)
class Signals:
    """Columns of samples.

    Attributes
    ----------
    name : str
        Label of the recording.
    axes : tuple of str
        Names of the columns, of `AXES`.
    values : (n, axes) float
        SI units; of any floating type, in memory or mapped.
    stamp_ns : (n,) int64 or None
        None: the samples are evenly spaced, `rate` apart.
    rate : float or None
        Hz; None where there are stamps and no rate has been found yet.
    notes : tuple of str
        What was done to them.
    motion : (n, 2) float or None
        True speed, m/s, and true rate of turn, rad/s, where the recording tells them: rates and
        accelerations alone do not tell a smooth steady drive or turn from rest with a bias.
    """

    name: str
    axes: tuple[str, ...]
    values: NDArray[np.floating[Any]]
    stamp_ns: IntArray | None
    rate: float | None
    notes: tuple[str, ...] = ()
    motion: FloatArray | None = None

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

    def with_notes(self, *notes: str) -> Signals:
        """Return the same with further notes."""
        return dataclasses.replace(self, notes=(*self.notes, *notes))

    def converted(self, sizes: Mapping[str, float]) -> Signals:
        """Return the same in SI, where 1 of the gyroscope or accelerometer is so much in SI."""
        factors = np.array([sizes.get(quantity_of(axis), 1.0) for axis in self.axes])
        if (factors == 1.0).all():
            return self
        return dataclasses.replace(self, values=self.values * factors)

    def only(self, axes: tuple[str, ...]) -> Signals:
        """Return some of the columns.

        Raises
        ------
        SignalFileError
            When one is not there.
        """
        for axis in axes:
            if axis not in self.axes:
                there = ', '.join(self.axes)
                raise SignalFileError(f'{self.name}: no axis {axis}; there are {there}')
        index = [self.axes.index(axis) for axis in axes]
        return dataclasses.replace(self, axes=axes, values=self.values[:, index])


def quantity_of(axis: str) -> str:
    """Return `gyroscope` or `accelerometer`."""
    return axis.rpartition('_')[0]


def unit_of(axis: str) -> str:
    """Return the SI unit of an axis."""
    return _UNITS[quantity_of(axis)]


def signals_of(recording: Recording) -> Signals:
    """Return the signals of the IMU of a recording; quantities that it marks absent are left out.

    Raises
    ------
    SignalFileError
        When it has no IMU, or one without rates and accelerations.
    """
    if 'imu' not in recording.roles:
        raise SignalFileError(
            f'{recording.path or recording.name}: no topic of an IMU; name one with --topic imu='
        )
    imu = recording.messages[recording.roles['imu']]
    assert isinstance(imu, ImuArray)
    columns, axes = [], []
    for quantity, values, covariance in (
        ('gyroscope', imu.angular_velocity, imu.angular_velocity_covariance),
        ('accelerometer', imu.linear_acceleration, imu.linear_acceleration_covariance),
    ):
        if not (covariance[:, 0, 0] == -1.0).all():
            columns.append(values)
            axes += [f'{quantity}_{axis}' for axis in 'xyz']
    if not axes:
        raise SignalFileError(f'{recording.path}: the IMU marks rates and accelerations as absent')
    return Signals(
        name=recording.name,
        axes=tuple(axes),
        values=np.concatenate(columns, axis=1),
        stamp_ns=imu.stamp_ns,
        rate=None,
        notes=tuple(str(note) for note in recording.notes if note.topic == recording.roles['imu']),
        motion=_motion(recording, imu.stamp_ns),
    )


def _motion(recording: Recording, stamp_ns: IntArray) -> FloatArray | None:
    """Return true speed and rate of turn at stamps, m/s and rad/s, (n, 2); None where the
    recording has no truth.
    """
    if 'truth' not in recording.roles:
        return None
    truth = recording.messages[recording.roles['truth']]
    assert isinstance(truth, OdometryArray)
    norms = [np.linalg.norm(v, axis=1) for v in (truth.linear_velocity, truth.angular_velocity)]
    known = np.isfinite(norms).all(axis=0)
    if not known.any():
        return None
    origin = truth.stamp_ns[0]
    at, there = stamp_ns - origin, truth.stamp_ns[known] - origin
    return np.stack([np.interp(at, there, norm[known]) for norm in norms], axis=1)
