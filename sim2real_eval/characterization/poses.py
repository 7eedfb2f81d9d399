# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Bias, scale and misalignment of an IMU that was held still in many poses, without a rate table.

The method of [Tedaldi2014], on the model of `sim_sensors.imu.chain`. An accelerometer at rest
feels gravity whatever its pose ([IEEE1293], multi-position test): f = S x + b with |x| = g at
every pose gives the biases, scales and three of the misalignments. The other three are a rotation,
which gravity does not tell: the frame has z along the accelerometer's z, and y in the plane of its
y and z. Gravity before and after a move tells how far it turned: the rates of every move,
S^-1 (w - b), integrated, must turn one into the other. They give all nine sensitivities of the
gyroscope in the same frame. Its bias is its mean over the poses: each has the rate of the Earth
along other axes, so that little of it is left.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from sim2real_eval.common.findings import UnusableFitError
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray
from sim_sensors.imu.chain import ImuChain, sensitivity
from .options import PoseOptions
from .screening import StandstillOptions, noise_floor, runs_of, windows_of
from .signals import SignalFileError, Signals, evenly_spaced

_MIN = 12
# Of the singular values of the design, each column of length 1: less is a guess.
_MIN_CONDITION = 0.02
_NAMES = ('scale', 'cross_axis_upper', 'cross_axis_lower', 'constant_bias')


@dataclasses.dataclass(frozen=True)
class TriadCalibration:
    """Errors of three axes and their standard errors, as parameters of `ErrorChain`.

    `values` and `errors` are triples by name: `scale`, `cross_axis_upper`, `cross_axis_lower`, 1,
    and `constant_bias`, in the unit of the axes. `rms` is what is left, m/s^2 of the
    accelerometer and rad of the gyroscope.
    """

    values: dict[str, tuple[float, ...]]
    errors: dict[str, tuple[float, ...]]
    rms: float


@dataclasses.dataclass(frozen=True)
class PoseCalibration:
    """Calibration of an IMU by the poses of a recording."""

    recording: str
    poses: int
    seconds: float
    gravity: float
    gyroscope: TriadCalibration
    accelerometer: TriadCalibration

    @property
    def rows(self) -> list[tuple[str, str, tuple[float, ...], tuple[float, ...]]]:
        """Triad, parameter, its three values and their standard errors."""
        triads = {'gyroscope': self.gyroscope, 'accelerometer': self.accelerometer}
        return [
            (name, key, values, triad.errors[key])
            for name, triad in triads.items()
            for key, values in triad.values.items()
            if any(triad.errors[key])
        ]

    def applied(self, model: ImuChain) -> ImuChain:
        """Return the model with these errors in place of its own."""
        return dataclasses.replace(
            model,
            # The flag of a record in one pose is replaced.
            gyroscope=_with(model.gyroscope, self.gyroscope, earth_in_bias=False),
            accelerometer=_with(model.accelerometer, self.accelerometer),
        )


def _with(part: Any, calibration: TriadCalibration, **flags: bool) -> Any:
    return dataclasses.replace(part, **calibration.values, **flags)


def calibrate_poses(signals: Signals, options: PoseOptions | None = None) -> PoseCalibration:
    """Return the errors of an IMU from a recording of at least 12 poses, with moves between them.

    Standard errors are those of least squares, from what is left of it. SignalFileError when a
    triad is missing, or the poses are too few or too much alike.
    """
    options = options or PoseOptions()
    signals = evenly_spaced(signals)
    if len(signals.axes) != 6 or signals.rate is None:
        raise SignalFileError(f'{signals.name}: poses need a gyroscope and an accelerometer')
    poses = _poses(signals, signals.rate, options)
    if len(poses) < _MIN:
        raise SignalFileError(
            f'{signals.name}: {len(poses)} poses of {options.shortest_pose:g} s or more; must be '
            f'{_MIN} or more, each held still, and turned about all axes between them'
        )
    force = np.array([signals.values[a:b, 3:].mean(axis=0) for a, b in poses])
    rate = np.array([signals.values[a:b, :3].mean(axis=0) for a, b in poses])
    accelerometer, felt = _of_gravity(force, options.gravity, signals.name)
    bias = rate.mean(axis=0)
    moves = [signals.values[a:b, :3] - bias for (_, a), (b, _) in itertools.pairwise(poses)]
    gyroscope = _of_moves(moves, felt / options.gravity, 1.0 / signals.rate, signals.name)
    gyroscope.values['constant_bias'] = tuple(bias.tolist())
    spread = rate.std(axis=0, ddof=1) / np.sqrt(len(rate))
    gyroscope.errors['constant_bias'] = tuple(spread.tolist())
    seconds = sum(b - a for a, b in poses) / signals.rate
    return PoseCalibration(
        signals.name, len(poses), seconds, options.gravity, gyroscope, accelerometer
    )


def _poses(signals: Signals, rate: float, options: PoseOptions) -> list[tuple[int, int]]:
    """Return first and one after the last sample of each standstill."""
    limits = StandstillOptions()
    size = max(round(0.5 * rate), 8)
    count = len(signals) // size
    if count < _MIN:
        return []
    noises, means, steps = windows_of(signals, size, count)
    still = np.ones(count, dtype=np.bool_)
    for quantity, noise in noises.items():
        still &= noise <= limits.noise_ratio * noise_floor(noise, steps[quantity])
    turn = means['gyroscope'] - np.median(means['gyroscope'][still], axis=0)
    still &= np.linalg.norm(turn, axis=1) <= limits.rate_limit
    least = options.shortest_pose * rate
    # The first and the last window of a pose may hold the end of a move.
    standstills = [((first + 1) * size, (last - 1) * size) for first, last in runs_of(still)]
    return [(a, b) for a, b in standstills if b - a >= least]


def _of_gravity(
    force: FloatArray, gravity: float, name: str
) -> tuple[TriadCalibration, FloatArray]:
    """Return the errors of an accelerometer, and the specific force at every pose, `(n, 3)`."""

    def felt(x: FloatArray) -> FloatArray:
        matrix = sensitivity(x[:3], x[3:6], np.zeros(3))
        force_at_rest: FloatArray = np.linalg.solve(matrix, (force - x[6:]).T).T
        return force_at_rest

    def residuals(x: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.norm(felt(x), axis=1) - gravity)

    x, errors, rms = _fitted(residuals, 9, len(force), name)
    zero = (0.0, 0.0, 0.0)
    values = (x[:3], x[3:6], zero, x[6:])
    return _triad(values, (errors[:3], errors[3:6], zero, errors[6:]), rms), felt(x)


def _of_moves(
    moves: list[FloatArray], gravity: FloatArray, dt: float, name: str
) -> TriadCalibration:
    """Return the errors of a gyroscope: rates of each move, their bias taken off, must turn the
    direction of gravity before it, `(n, 3)`, into that after it.
    """
    longest = max(map(len, moves)) - 1
    mean = np.zeros((len(moves), 1 << (longest - 1).bit_length(), 3))
    for row, rate in zip(mean, moves, strict=True):
        row[: len(rate) - 1] = 0.5 * (rate[1:] + rate[:-1]) * dt

    def residuals(x: FloatArray) -> FloatArray:
        turns = _turns(mean @ np.linalg.inv(sensitivity(x[:3], x[3:6], x[6:])).T)
        return np.asarray(rotations.rotate(turns, gravity[1:]) - gravity[:-1]).ravel()

    # Residuals along gravity do not come from the turn.
    x, errors, rms = _fitted(residuals, 9, 2 * len(moves), name)
    return _triad((x[:3], x[3:6], x[6:]), (errors[:3], errors[3:6], errors[6:]), rms)


def _turns(steps: FloatArray) -> FloatArray:
    """Return the quaternions, `(moves, 4)`, of small turns one after the other, `(moves, n, 3)`
    rad, with n a power of 2: pair by pair.
    """
    turns = rotations.exp(steps.reshape(-1, 3))
    while len(turns) > len(steps):
        turns = rotations.multiply(turns[::2], turns[1::2])
    return turns


def _fitted(
    residuals: Any, unknowns: int, equations: int, name: str
) -> tuple[FloatArray, FloatArray, float]:
    """Return the fit from zero, its standard errors, and the root mean square of the rest."""
    fit = least_squares(residuals, np.zeros(unknowns), x_scale='jac', method='lm')
    if not fit.success:
        raise UnusableFitError(f'{name}: the fit to the poses did not converge: {fit.message}')
    slopes: FloatArray = np.asarray(fit.jac)
    scale = np.linalg.norm(slopes, axis=0)
    values = np.linalg.svd(slopes / np.where(scale > 0.0, scale, np.inf), compute_uv=False)
    if values[-1] < _MIN_CONDITION * values[0]:
        raise SignalFileError(
            f'{name}: the poses are too much alike to tell bias, scale and misalignment apart; '
            'must have every axis up, down and between'
        )
    square = float(fit.fun @ fit.fun)
    covariance = np.linalg.inv(slopes.T @ slopes) * square / max(equations - unknowns, 1)
    return fit.x, np.sqrt(np.diag(covariance)), float(np.sqrt(square / equations))


def _triad(values: Any, errors: Any, rms: float) -> TriadCalibration:
    def named(triples: Any) -> dict[str, tuple[float, ...]]:
        return {name: tuple(map(float, v)) for name, v in zip(_NAMES, triples, strict=False)}

    return TriadCalibration(named(values), named(errors), rms)
