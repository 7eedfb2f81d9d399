# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Measured signals of one recording with their true values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from functools import cached_property, partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from sim2real_eval.common.findings import Finding
from sim2real_eval.recording.fields import complete_messages
from sim2real_eval.recording.recording import DEFAULT_TOPICS, Recording
from sim2real_eval.recording.truth import locate_truth, select_valid_fixes
from sim2real_eval.simulation.twin import Mountings
from sim2real_eval.simulation.twin_maker import TwinMaker, ideal_imu_of_motion, make_twin_maker
from sim_sensors.core import rotations
from sim_sensors.core.blocks import blocks, by_blocks, seconds
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    MagneticFieldArray,
    is_absent,
)
from . import findings
from .agreement import SeriesAgreement, agreements, grid, median_rate, resample, unwrap, wrap
from .features import AXES, FeatureAgreement, FeatureTracks, feature_agreement
from .lag import Lag, lag_of
from .options import SignalComparisonError, SignalOptions
from .quantities import QUANTITIES, Quantity

_MIN_SAMPLES = 32

_TrueAt = Callable[[FloatArray], FloatArray]  # true values at times (n,) s


FEATURE = Quantity('feature', 'px', AXES, 'camera')
"""Pixel of one feature; features are compared by `feature_agreement`, not as a quantity."""


@dataclasses.dataclass(frozen=True, eq=False)
class SensorSeries:
    """Measured quantity of a run, with its truth or the measurement of another sensor.

    `time` `(n,)` is s since the first stamp of the truth, without the lag if it was subtracted.
    Angles of `measured` and `true` `(n, k)` are continuous, not wrapped. `lag` is the delay behind
    the truth, or None if it is unknown.
    """

    quantity: Quantity
    time: FloatArray
    measured: FloatArray
    true: FloatArray
    lag: Lag | None

    @cached_property
    def rate(self) -> float:
        """Median rate of the samples, Hz."""
        return median_rate(self.time)

    @property
    def error(self) -> FloatArray:
        """Measured minus true value, `(n, k)`; angles are in [-pi, pi)."""
        if self.quantity.circular:
            return wrap(self.measured - self.true)
        return self.measured - self.true

    def error_of(self, column: int) -> FloatArray:
        """Return one column of `error`, `(n,)`."""
        error = self.measured[:, column] - self.true[:, column]
        return wrap(error) if self.quantity.circular else error

    @cached_property
    def agreements(self) -> tuple[SeriesAgreement, ...]:
        """Agreement of each column with its truth."""
        return agreements(self.measured, self.true, self.error)

    def on_grid(self, rate: float) -> SensorSeries:
        """Return the series on an even grid of `rate` Hz that starts at the first sample."""
        at = grid(self.time, rate)
        measured, true = (resample(self.time, values, at) for values in (self.measured, self.true))
        if measured is self.measured:
            return self
        return dataclasses.replace(self, time=at, measured=measured, true=true)


@dataclasses.dataclass(frozen=True, eq=False)
class SensorSignals:
    """All quantities of one run, by name.

    A simulated run is paired with the real run that has the same recording name and the same time
    span, from the first to the last stamp of the truth. Time 0 is the first stamp.
    """

    name: str
    start_ns: int
    end_ns: int
    measured: dict[str, SensorSeries]
    notes: tuple[Finding, ...]
    features: FeatureAgreement | None = None
    tracks: FeatureTracks | None = None


def run_signals(
    recording: Recording,
    options: SignalOptions,
    *,
    sensors: Collection[str] = ('imu', 'gps', 'mag', 'camera'),
    maker: TwinMaker | None = None,
) -> SensorSignals:
    """Compare the sensors of a recording with its own truth.

    The truth of an IMU is that at its mounting, given by the static transforms: angular rate and
    specific force R^T (a - g) at the lever arm, from the interpolated truth
    (docs/explanation/motion.md). The truth of a magnetometer is the field of the world
    without its dipoles, in the frame of the sensor.

    The recording must have a truth, and an IMU, a GPS receiver or a magnetometer with at least 32
    measurements; otherwise a Sim2RealError is raised. `sensors` are the roles that are compared.
    The true magnetic field is that of the world of the `maker`. Without a maker it is measured in
    the first two seconds, as in [Ligorio2015]; see `early_field`.
    """
    if maker is None:
        maker = make_twin_maker(recording, None, seed=options.seed, base_frame=options.base_frame)
        recording = maker.real
    # A twin may have sensors that the recording of the maker lacks.
    mountings = Mountings(recording.transforms, options.base_frame)
    quantities: list[SensorSeries] = []
    # Findings about sensors that are not compared are left out.
    unused_topics = {
        recording.roles.get(kind) for kind in {'imu', 'gps', 'mag'}.difference(sensors)
    }
    notes = [
        *(finding for finding in recording.notes if finding.subject not in unused_topics),
        *maker.remarks,
    ]
    if recording.imu is not None and 'imu' in sensors:
        _check(recording, 'imu', len(recording.imu))
        notes += _truth_notes(maker, recording.imu)
        quantities += _imu(recording.imu, maker, mountings, options, notes)
    if recording.gps is not None and 'gps' in sensors:
        quantities.append(_position(recording, recording.gps, maker, mountings, options))
    if recording.mag is not None and 'mag' in sensors:
        count = len(recording.mag)
        if count < _MIN_SAMPLES:
            # A magnetometer is optional, so this is no error.
            topic = recording.roles['mag']
            notes.append(findings.TOO_FEW_SAMPLES(topic, count=count, least=_MIN_SAMPLES))
        else:
            quantities.append(_field(recording.mag, maker, mountings, options))
    series_by_name = {series.quantity.name: series for series in quantities}
    features = tracks = None
    if 'camera' in sensors:
        compared = feature_agreement(recording, maker, options.base_frame)
        features, tracks = compared or (None, None)
    if not series_by_name and features is None:
        sensor_names = ' or '.join(sensors).replace(
            'camera', 'camera that finds landmarks of the world'
        )
        why = ''.join(
            recording.why_missing(DEFAULT_TOPICS.get(role, ''), role) for role in sensors
        )
        raise SignalComparisonError(
            f'{recording.path or recording.name}: has no {sensor_names}{why}; '
            'name its topic with --topic'
        )
    span = maker.start_ns, maker.end_ns
    return SensorSignals(recording.name, *span, series_by_name, tuple(notes), features, tracks)


def _check(recording: Recording, role: str, count: int) -> None:
    if count < _MIN_SAMPLES:
        raise SignalComparisonError(
            f'{recording.path or recording.name}: {recording.roles[role]} has {count} '
            f'measurements within the truth; must have {_MIN_SAMPLES} or more'
        )


def _truth_notes(maker: TwinMaker, imu: ImuArray) -> list[Finding]:
    notes = []
    rate = median_rate(seconds(maker.truth.stamp_ns, maker.start_ns))
    imu_rate = median_rate(seconds(imu.stamp_ns, maker.start_ns))
    if rate < 0.5 * imu_rate:
        notes.append(findings.TRUTH_SLOWER(truth=rate, imu=imu_rate, half=0.5 * rate))
    if not maker.truth.orientation[:, :2].any():
        notes.append(findings.TRUTH_LEVEL())
    return notes


def _imu(
    imu: ImuArray,
    maker: TwinMaker,
    mountings: Mountings,
    options: SignalOptions,
    notes: list[Finding],
) -> list[SensorSeries]:
    imu = complete_messages(imu)
    stamps = seconds(imu.stamp_ns, maker.start_ns)
    place = mountings.pose(imu.frame)
    turn = place[1]
    back = rotations.conjugate(turn[None])

    def true_at(times: FloatArray) -> _TrueImu:
        return _true_imu(maker, place, times, options.gravity)

    start = true_at(stamps).yaw[0, 0]
    # A covariance of -1 marks an absent quantity (sensor_msgs/Imu).
    no_rate = bool(is_absent(imu.angular_velocity_covariance).all())
    published = ~is_absent(imu.orientation_covariance)
    oriented = bool(published.all()) and options.yaw == 'auto'
    if oriented:
        yaw = unwrap(
            by_blocks(lambda q: rotations.heading(rotations.multiply(q, back)), imu.orientation)
        )
        # Choose the multiple of a whole turn that is nearest to the true heading.
        yaw += 2.0 * np.pi * np.round((start - yaw[0]) / (2.0 * np.pi))
        notes.append(findings.YAW_PUBLISHED())
    else:
        rate = by_blocks(
            lambda rates: rotations.rotate(turn[None], rates)[:, 2], imu.angular_velocity
        )
        steps = 0.5 * (rate[1:] + rate[:-1]) * np.diff(stamps)
        yaw = start + np.append(0.0, np.cumsum(steps))
        if not no_rate:
            notes.append(findings.YAW_INTEGRATED())
    quantities = QUANTITIES[:3]
    values = (imu.angular_velocity, imu.linear_acceleration, yaw[:, None])
    truths: tuple[_TrueAt, ...] = (
        lambda times: true_at(times).rate,
        lambda times: true_at(times).force,
        lambda times: true_at(times).yaw,
    )
    no_force = bool(is_absent(imu.linear_acceleration_covariance).all())
    absent = (no_rate, no_force, no_rate and not oriented)
    return [
        _against_truth(quantity, stamps, value, true, maker, options)
        for quantity, value, true, gone in zip(quantities, values, truths, absent, strict=True)
        if not gone
    ]


class _TrueImu(NamedTuple):
    """Ideal measurements of an IMU, and the heading of the body without jumps."""

    rate: FloatArray  # (n, 3) rad/s
    force: FloatArray  # (n, 3) m/s^2
    yaw: FloatArray  # (n, 1) rad


_latest_true: WeakKeyDictionary[TwinMaker, tuple[list[float], FloatArray, _TrueImu]]
_latest_true = WeakKeyDictionary()
"""Mounting, times and result of the latest `_true_imu` of each maker."""


def _true_imu(
    maker: TwinMaker, place: tuple[FloatArray, FloatArray], times: FloatArray, gravity: float
) -> _TrueImu:
    """Return the true signals of an IMU at its mounting.

    The latest result is kept: real and simulated sensors often have the same stamps. The
    orientation is not kept: it needs 230 MB for two hours at 1 kHz.
    """
    settings = [*place[0].tolist(), *place[1].tolist(), gravity]
    latest = _latest_true.pop(maker, None)
    if latest is None or latest[0] != settings or not np.array_equal(latest[1], times):
        latest = None
        back, count = rotations.conjugate(place[1][None]), len(times)
        rate, force, yaw = np.empty((count, 3)), np.empty((count, 3)), np.empty(count)
        for part in blocks(count):
            ideal = ideal_imu_of_motion(maker.motion, place, times[part], gravity)
            rate[part], force[part] = ideal.rate, ideal.force
            yaw[part] = rotations.heading(rotations.multiply(ideal.orientation, back))
        latest = settings, times, _TrueImu(rate, force, unwrap(yaw)[:, None])
    _latest_true[maker] = latest
    return latest[2]


def _position(
    recording: Recording,
    gps_fixes: FixArray,
    maker: TwinMaker,
    mountings: Mountings,
    options: SignalOptions,
) -> SensorSeries:
    fixes = select_valid_fixes(gps_fixes)
    _check(recording, 'gps', len(fixes))
    frame = locate_truth(maker.truth, fixes)
    arm, _ = mountings.pose(fixes.frame)
    measured = frame.to_enu(fixes.latitude, fixes.longitude, fixes.altitude)
    stamps = seconds(fixes.stamp_ns, maker.start_ns)

    def true(times: FloatArray) -> FloatArray:
        return by_blocks(lambda some: maker.motion.at(some).at_lever_arm(arm).position, times)

    position = _against_truth(QUANTITIES[3], stamps, measured, true, maker, options)
    # Only the fixes locate the frame of the truth on the Earth, so their mean error is removed.
    return dataclasses.replace(position, measured=position.measured - position.error.mean(axis=0))


def _field(
    mag: MagneticFieldArray, maker: TwinMaker, mountings: Mountings, options: SignalOptions
) -> SensorSeries:
    turn = mountings.pose(mag.frame)[1][None]
    earth = maker.world.undisturbed_field

    def ideal_signal(times: FloatArray) -> FloatArray:
        sensor = rotations.multiply(maker.motion.at(times).orientation, turn)
        return rotations.rotate_back(sensor, np.tile(earth, (len(sensor), 1)))

    stamps = seconds(mag.stamp_ns, maker.start_ns)
    true = partial(by_blocks, ideal_signal)
    return _against_truth(QUANTITIES[4], stamps, mag.magnetic_field, true, maker, options)


def _against_truth(
    quantity: Quantity,
    stamps: FloatArray,
    measured: FloatArray,
    true_of: _TrueAt,
    maker: TwinMaker,
    options: SignalOptions,
) -> SensorSeries:
    """Return a quantity with its truth, and with its lag reported or subtracted."""
    if not np.isfinite(measured).all():
        bad = int(np.argmin(np.isfinite(measured).all(axis=1)))
        raise SignalComparisonError(f'{quantity.name}: measurement {bad} is not finite')
    series = SensorSeries(quantity, stamps, measured, true_of(stamps), None)
    if options.align == 'none':
        return series
    even = series.on_grid(series.rate)
    lag, late = lag_of(even.measured, even.true, series.rate, options)
    if not late:
        return dataclasses.replace(series, lag=lag)
    moved = stamps - late
    inside = (moved >= maker.motion.start) & (moved <= maker.motion.end)
    moved, measured = moved[inside], measured[inside]
    return SensorSeries(quantity, moved, measured, true_of(moved), lag)
