# SPDX-License-Identifier: Apache-2.0
"""What of a judged run is kept beside its score: signals, and numbers that VEPD does not see."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.judge.estimate import JudgedRun, PartCount
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.judge.robot_localization.configuration import NAVSAT_TOPIC
from sim2real_eval.metrics.consistency import inside_share, judged_world, known_axes, planar
from sim2real_eval.metrics.error_curves import correlation_time
from sim2real_eval.metrics.judged_world import within
from sim2real_eval.metrics.normalised_squares import QUANTITIES, Squares, nees_at, nis
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.scores import resample
from sim2real_eval.metrics.series import VelocitySeries
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import truth_at
from sim2real_eval.signals.agreement import wrap
from sim_sensors.core.blocks import blocks, by_blocks, column_of, rows_of, seconds
from sim_sensors.core.measurements import FloatArray, OdometryArray
from sim_sensors.core.rotations import between, heading
from sim_sensors.core.scratch import release, zeros
from .run import EstimateSignals

_PROBABILITY = 0.95


def observe(
    judge: Judge,
    recording: Recording,
    judged: JudgedRun,
    series: VelocitySeries,
    metric: MetricOptions,
) -> tuple[EstimateSignals, dict[str, float]]:
    """Return what is kept of a run, and values for `StudyRun.values`.

    `recording` was judged, with the truth of the base frame, as `RunPlan.recording` returns it;
    `judged` came of it, finite, as `RunPlan.score` makes sure of; `series` was scored with
    `metric`, whose warm-up all values leave out. Speed values are of the component and on the grid
    of the score, so that `rmse`^2 = `speed_bias`^2 + `speed_std`^2. Sim2RealError when the truth
    is not of the time of the estimates.

    Values, without what could not be had: `speed_bias`, `speed_std` (m/s),
    `speed_correlation_time` (s: integrated autocorrelation time of the speed error), `nis_gps`,
    `nis_imu`, `nis_other` (mean NIS over degrees of freedom of the parts of one sensor),
    `nis_inside`, and of estimates within the truth `position_rmse`, `position_end` (m, horizontal,
    all and last), `position_covariance_consistency` (stated horizontal sigma over RMSE),
    `orientation_rmse`, `yaw_rmse` (rad), `velocity_rmse` (m/s, of the body's horizontal velocity
    vector), `velocity_covariance_consistency`, `nees_position`, `nees_orientation`,
    `nees_velocity`, `nees_angular_velocity` (mean NEES over degrees of freedom) and
    `nees_velocity_inside`; shares `..._inside` are of samples within their own two-sided 95 %
    bounds.
    """
    truth = recording.require('truth')
    assert isinstance(truth, OdometryArray)
    origin_ns = int(truth.stamp_ns[0])
    world, _, alignment = judged_world(judge, recording, truth, judged)
    inside = np.flatnonzero(within(world, judged.stamp_ns))
    true = truth_at(world, rows_of(judged.stamp_ns, inside))
    true_position = zeros(judged.position.shape)
    for part in blocks(len(true_position)):
        true_position[part] = np.nan
    for part in blocks(len(inside)):
        true_position[inside[part]] = true.position[part]
    time, true_time = (seconds(one.stamp_ns, origin_ns) for one in (judged, truth))
    signals = EstimateSignals(
        time=time,
        position=judged.position,
        true_position=true_position,
        orientation=judged.orientation,
        velocity=judged.linear_velocity,
        position_sigma=by_blocks(_sigma, judged.pose_covariance),
        velocity_sigma=by_blocks(_sigma, judged.twist_covariance),
        true_time=true_time,
        true_velocity=truth.linear_velocity,
        true_orientation=truth.orientation,
    )
    since_ns = origin_ns + round(metric.warmup * 1e9)
    late = true.stamp_ns >= since_ns
    inside, true = rows_of(inside, late), true.take(late)
    values = _speed_values(series, metric)
    innovations = nis(judged, two_d=planar(judge))
    values |= _nis_values(judged, recording, innovations, since_ns)
    release()
    if len(inside):
        values |= _error_values(signals, inside, true)
        values |= _nees_values(nees_at(judged, inside, true, *known_axes(judge), alignment))
    return signals, {name: value for name, value in values.items() if value == value}


def _sigma(covariance: FloatArray) -> FloatArray:
    """Return the first three standard deviations, (n, 3), of covariances (n, 6, 6)."""
    variance = covariance[:, (0, 1, 2), (0, 1, 2)]
    # The faithful UKF can state a negative variance, which has no standard deviation.
    return np.sqrt(np.where(variance >= 0.0, variance, np.nan))


def _speed_values(series: VelocitySeries, metric: MetricOptions) -> dict[str, float]:
    # The series of a score has been re-zeroed and cut already.
    rest = dataclasses.replace(metric, warmup=0.0, rezero='none')
    run = resample(series, rest)
    error = run.se_vel - run.gt_vel
    return {
        'speed_bias': float(np.mean(error)),
        'speed_std': float(np.std(error)),
        'speed_correlation_time': correlation_time(error) / metric.rate,
    }


def _error_values(
    signals: EstimateSignals, kept: NDArray[np.intp], true: OdometryArray
) -> dict[str, float]:
    def squares(
        some: NDArray[np.intp], position: FloatArray, orientation: FloatArray, velocity: FloatArray
    ) -> FloatArray:
        estimate = signals.orientation[some]
        turned = between(orientation, estimate)
        return np.stack([
            _squares((signals.position[some] - position)[:, :2]),
            _squares(turned),
            wrap(heading(estimate) - heading(orientation)) ** 2,
            _squares((signals.velocity[some] - velocity)[:, :2]),
            _squares(signals.position_sigma[some, :2]),
            _squares(signals.velocity_sigma[some, :2]),
        ], axis=1)  # fmt: skip

    found = by_blocks(squares, kept, true.position, true.orientation, true.linear_velocity)
    position, turned, yaw, velocity, stated_position, stated_velocity = (
        float(np.sqrt(np.mean(column_of(found, number)))) for number in range(6)
    )
    end = signals.position[kept[-1], :2] - true.position[-1, :2]
    values = {
        'position_rmse': position,
        'position_end': float(np.hypot(*end)),
        'orientation_rmse': turned,
        'yaw_rmse': yaw,
        'velocity_rmse': velocity,
    }
    if position > 0.0:
        values['position_covariance_consistency'] = stated_position / position
    if velocity > 0.0:
        values['velocity_covariance_consistency'] = stated_velocity / velocity
    return values


def _squares(vectors: FloatArray) -> FloatArray:
    """Squared lengths, (n,), of vectors, (n, k)."""
    return np.asarray(np.sum(vectors**2, axis=1))


def _nis_values(
    judged: JudgedRun, recording: Recording, squares: Sequence[Squares], since_ns: int
) -> dict[str, float]:
    sensors: dict[str, list[Squares]] = {}
    for part, one in zip(judged.parts, squares, strict=True):
        late = one.after(since_ns)
        if len(late):
            sensors.setdefault(_sensor(part, recording), []).append(late)
    values = {f'nis_{sensor}': _ratio(parts) for sensor, parts in sensors.items()}
    if sensors:
        values['nis_inside'] = _inside([one for parts in sensors.values() for one in parts])
    return values


def _sensor(part: PartCount, recording: Recording) -> str:
    topic = part.topic.strip('/')
    if topic == NAVSAT_TOPIC:
        return 'gps'
    for sensor in ('gps', 'imu'):
        if topic == recording.roles.get(sensor, '').strip('/'):
            return sensor
    # In place of one that the recording lacks, a filter hears the recording's own IMU.
    return 'other' if topic in {name.strip('/') for name in recording.messages} else 'imu'


def _nees_values(squares: Sequence[Squares]) -> dict[str, float]:
    values = {}
    for quantity, one in zip(QUANTITIES, squares, strict=True):
        if len(one):
            values[f'nees_{quantity.replace(" ", "_")}'] = _ratio([one])
            if quantity == 'velocity':
                values['nees_velocity_inside'] = _inside([one])
    return values


def _ratio(parts: Sequence[Squares]) -> float:
    total = sum(float(np.sum(one.squares)) for one in parts)
    return total / sum(int(np.sum(one.freedom)) for one in parts)


def _inside(parts: Sequence[Squares]) -> float:
    count = sum(len(one) for one in parts)
    return sum(inside_share(one, _PROBABILITY) * len(one) for one in parts) / count
