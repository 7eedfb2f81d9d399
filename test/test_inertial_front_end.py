# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Inputs of the inertial judges from a recording: frames, covariances, level, heading."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from judge_examples import START_NS, fixes, imu, recording, stamps
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import JudgeError, RecordingError
from sim2real_eval.judge.inertial.alignment import (
    InertialInputs,
    inertial_inputs,
    initial_attitude,
)
from sim2real_eval.judge.inertial.settings import InertialSettings
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FixArray, FloatArray, MessageArray
from sim_sensors.world.geodesy import LocalFrame

G = 9.80665
PLACE = LocalFrame(43.0, -89.4, 260.0)
SETTINGS = InertialSettings()


def placed(stamp_ns: np.ndarray, enu: FloatArray) -> FixArray:
    latitude, longitude, altitude = PLACE.to_geodetic(enu)
    return fixes(stamp_ns, latitude, longitude, altitude=altitude)


def driving(heading: float, speed: float, **imu_options: object) -> InertialInputs:
    """Straight and steady, 4 s; the IMU has an orientation only if asked."""
    clock, sky = stamps(100.0, 4.0), stamps(10.0, 4.0)
    along = np.array([math.cos(heading), math.sin(heading), 0.0])
    enu = speed * (sky - START_NS)[:, None] * 1e-9 * along
    run = recording({
        'imu': imu(clock, **{'attitude': False, **imu_options}), 'gps': placed(sky, enu)
    })  # fmt: skip
    return inertial_inputs(run, SETTINGS)


def test_the_shipped_settings_are_the_declared_defaults() -> None:
    settings, path = InertialSettings.load()
    assert settings == SETTINGS
    assert path.name == 'default.yaml'


@pytest.mark.parametrize(
    ('text', 'key'),
    [
        ('gyroscope_nois: 1', 'gyroscope_nois'),
        ('gate: -1', 'gate'),
        ('start: {heading: compass}', 'start.heading'),
        ('fix_deviation: [1, 2]', 'fix_deviation'),
    ],
)
def test_wrong_settings_are_refused_by_key(tmp_path: Path, text: str, key: str) -> None:
    path = tmp_path / 'mine.yaml'
    path.write_text(text, encoding='utf-8')
    with pytest.raises(ParameterError, match=f'mine.yaml: {key}'):
        InertialSettings.load(path)


def test_rates_and_forces_are_rotated_into_the_body() -> None:
    """An IMU mounted upside down and turned, at a lever arm, and an antenna on the roof."""
    mounting = Rotation.from_euler('xyz', [math.pi, 0.2, 0.7])
    truth_force = np.array([0.4, -0.3, G])
    truth_rate = np.array([0.1, 0.2, 0.3])
    clock, sky = stamps(100.0, 1.0), stamps(10.0, 1.0)
    n = len(clock)
    rate, force = (mounting.inv().apply(vector) for vector in (truth_rate, truth_force))
    sensed = imu(clock, rate=np.tile(rate, (n, 1)), force=np.tile(force, (n, 1)), attitude=False)
    places = (
        StaticTransform('base_link', 'imu_link', (0.1, 0.2, 0.3), tuple(mounting.as_quat())),
        StaticTransform('base_link', 'gps_link', (1.0, 0.0, 2.0)),
    )
    run = recording({'imu': sensed, 'gps': placed(sky, np.zeros((len(sky), 3)))}, places)
    inputs = inertial_inputs(run, SETTINGS)
    np.testing.assert_allclose(inputs.rate, np.tile(truth_rate, (n, 1)), atol=1e-14)
    np.testing.assert_allclose(inputs.force, np.tile(truth_force, (n, 1)), atol=1e-14)
    np.testing.assert_array_equal(inputs.imu_arm, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(inputs.antenna, [1.0, 0.0, 2.0])


def test_an_unconnected_frame_is_refused_by_name() -> None:
    messages = {'imu': imu(stamps(100.0, 1.0)), 'gps': fixes(stamps(10.0, 1.0))}
    run = recording(messages, (StaticTransform('base_link', 'imu_link'),))
    with pytest.raises(JudgeError, match=r"gps: .*'gps_link' to 'base_link'"):
        inertial_inputs(run, SETTINGS)


def test_fixes_are_in_metres_relative_to_the_first_valid_fix() -> None:
    sky = stamps(10.0, 1.0)
    enu = np.arange(30.0).reshape(10, 3)
    good = placed(sky, enu)
    status = good.status.copy()
    status[0] = -1
    gps = dataclasses.replace(good, status=status)
    run = recording({'imu': imu(stamps(100.0, 1.0)), 'gps': gps})
    inputs = inertial_inputs(run, SETTINGS)
    # The tangent planes of two points 4 m apart differ by 1e-6 rad.
    np.testing.assert_allclose(inputs.fix, enu[1:] - enu[1], atol=1e-4)
    assert inputs.fixes_received == 10
    assert any(note.code == 'inertial.messages_without_fix' for note in inputs.notes)


def test_unusable_covariances_are_replaced_raised_or_lowered() -> None:
    sky = stamps(10.0, 0.7)
    covariance = np.tile(np.diag([4.0, 9.0, 16.0]), (7, 1, 1))
    covariance[6] *= 1e18
    covariance[1] = 0.0
    covariance[2] = np.diag([-1.0, 1.0, 1.0])
    covariance[3] = np.diag([1e-6, 4.0, 0.0])
    covariance[4, 0, 1] = covariance[4, 1, 0] = 7.0
    covariance[5, 0, 1] = covariance[5, 1, 0] = 3.0
    stated = dataclasses.replace(placed(sky, np.zeros((7, 3))), position_covariance=covariance)
    inputs = inertial_inputs(recording({'imu': imu(stamps(100.0, 1.0)), 'gps': stated}), SETTINGS)
    expected = np.tile(np.diag([4.0, 9.0, 16.0]), (7, 1, 1))
    expected[6] *= 1e12 / 16.0
    expected[1] = expected[2] = np.diag([1.0, 1.0, 4.0])
    expected[3] = np.diag([1e-4, 4.0, 4.0])
    expected[5, 0, 1] = expected[5, 1, 0] = 3.0
    np.testing.assert_allclose(inputs.fix_covariance, expected, rtol=1e-12)
    codes = [note.code for note in inputs.notes]
    assert codes.count('inertial.covariance_limited') == 2
    assert codes.count('inertial.no_covariance') == 1


def test_gaps_and_repeated_stamps_of_the_imu_cause_findings() -> None:
    clock = stamps(100.0, 2.0)
    clock = np.concatenate([clock[:80], clock[79:80], clock[130:]])
    run = recording({'imu': imu(clock), 'gps': fixes(stamps(10.0, 2.0))})
    inputs = inertial_inputs(run, SETTINGS)
    assert (np.diff(inputs.imu_ns) > 0).all()
    codes = {note.code for note in inputs.notes}
    assert {'inertial.left_out', 'inertial.imu_gaps'} <= codes


CLOCK, SKY = stamps(100.0, 1.0), stamps(10.0, 1.0)
ABSENT = np.tile(np.diag([-1.0, 0.0, 0.0]), (len(CLOCK), 1, 1))
DEAF = dataclasses.replace(imu(CLOCK), linear_acceleration_covariance=ABSENT)


@pytest.mark.parametrize(
    ('messages', 'named'),
    [
        ({'imu': imu(CLOCK)}, 'gps'),
        ({'imu': DEAF, 'gps': fixes(SKY)}, 'linear_acceleration'),
        ({'imu': imu(CLOCK), 'gps': fixes(SKY + 5_000_000_000)}, 'no valid fix'),
        ({'imu': imu(CLOCK[:1]), 'gps': fixes(SKY)}, '1 usable'),
    ],
)
def test_unusable_recordings_are_refused(messages: dict[str, MessageArray], named: str) -> None:
    with pytest.raises((JudgeError, RecordingError), match=named):
        inertial_inputs(recording(messages), SETTINGS)


@pytest.mark.parametrize('heading', [0.0, 1.0, 2.5, -2.0])
def test_the_tilt_at_rest_is_estimated_at_any_heading(heading: float) -> None:
    """Gravity measured by a body with known roll and pitch, at a given heading."""
    roll, pitch = 0.2, -0.3
    attitude = Rotation.from_euler('xyz', [roll, pitch, heading])
    force = np.tile(attitude.inv().apply([0.0, 0.0, G]), (400, 1))
    estimate = initial_attitude(driving(0.0, 0.0, force=force), SETTINGS, heading)
    assert estimate.is_still
    assert (Rotation.from_quat(estimate.orientation).inv() * attitude).magnitude() < 1e-12
    assert math.sqrt(estimate.covariance[2, 2]) == pytest.approx(0.1, rel=0.01)


def test_an_accelerometer_bias_causes_the_stated_error_of_levelling() -> None:
    """Small biases along each axis in turn, at a tilted rest: the stated linear error."""
    attitude = Rotation.from_euler('xyz', [0.1, 0.05, 0.8])
    for axis in range(3):
        bias = np.zeros(3)
        bias[axis] = 1e-4
        force = np.tile(attitude.inv().apply([0.0, 0.0, G]) + bias, (400, 1))
        estimate = initial_attitude(driving(0.0, 0.0, force=force), SETTINGS, 0.8)
        error = (attitude * Rotation.from_quat(estimate.orientation).inv()).as_rotvec()
        np.testing.assert_allclose(error[:2], (estimate.bias_coupling @ bias)[:2], atol=1e-9)


@pytest.mark.parametrize('heading', [0.0, 2.0, 3.1, -1.2])
def test_the_heading_of_a_drive_is_initialised_from_the_course(heading: float) -> None:
    estimate = initial_attitude(driving(heading, 5.0), SETTINGS)
    yaw = Rotation.from_quat(estimate.orientation).as_euler('xyz')[2]
    assert abs(math.remainder(yaw - heading, 2.0 * math.pi)) < 1e-4
    assert not estimate.is_still
    assert estimate.notes[1].code == 'inertial.heading_by_course'


def test_the_course_in_a_turn_is_corrected_by_the_gyroscope() -> None:
    """Circle of 10 m at 5 m/s, begun northwards: half a second of rate 0.5 rad/s is undone."""
    clock, sky = stamps(100.0, 4.0), stamps(10.0, 4.0)
    angle = 0.5 * (sky - START_NS) * 1e-9
    enu = 10.0 * np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
    rate = np.tile([0.0, 0.0, 0.5], (len(clock), 1))
    run = recording({'imu': imu(clock, rate=rate, attitude=False), 'gps': placed(sky, enu)})
    estimate = initial_attitude(inertial_inputs(run, SETTINGS), SETTINGS)
    yaw = Rotation.from_quat(estimate.orientation).as_euler('xyz')[2]
    assert yaw == pytest.approx(0.5 * math.pi, abs=1e-4)


def test_the_heading_of_a_slow_vehicle_is_taken_from_a_longer_path() -> None:
    """1 m/s, fixes good to 0.5 m, a biased gyroscope: within three stated deviations."""
    clock, sky = stamps(100.0, 20.0), stamps(5.0, 20.0)
    rng = np.random.default_rng(11)
    angle = (sky - START_NS) * 1e-9 / 20.0
    enu = 20.0 * np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
    noisy_fixes = placed(sky, enu + rng.normal(scale=0.5, size=enu.shape))
    noisy_fixes = dataclasses.replace(
        noisy_fixes, position_covariance=np.tile(0.25 * np.eye(3), (len(sky), 1, 1))
    )
    rate = np.tile([0.0, 0.0, 0.05 + 0.005], (len(clock), 1))
    run = recording({'imu': imu(clock, rate=rate, attitude=False), 'gps': noisy_fixes})
    estimate = initial_attitude(inertial_inputs(run, SETTINGS), SETTINGS)
    yaw = Rotation.from_quat(estimate.orientation).as_euler('xyz')[2]
    deviation = math.sqrt(estimate.covariance[2, 2])
    assert deviation < 0.3
    assert abs(yaw - 0.5 * math.pi) < 3.0 * deviation


def test_a_given_heading_precedes_a_measured_one_and_that_precedes_the_course() -> None:
    moving = driving(1.0, 5.0, attitude=True, yaw=0.7)

    def yaw(inputs: InertialInputs, settings: InertialSettings, start: float | None) -> float:
        estimate = initial_attitude(inputs, settings, start)
        return float(Rotation.from_quat(estimate.orientation).as_euler('xyz')[2])

    assert yaw(moving, SETTINGS, 0.3) == pytest.approx(0.3)
    assert yaw(moving, SETTINGS, None) == pytest.approx(0.7)
    start = dataclasses.replace(SETTINGS.start, heading='course')
    by_course = dataclasses.replace(SETTINGS, start=start)
    assert yaw(moving, by_course, None) == pytest.approx(1.0, abs=1e-4)


def test_without_a_source_the_heading_at_rest_is_unknown() -> None:
    resting = initial_attitude(driving(0.0, 0.0), SETTINGS)
    assert not resting.is_heading_known
    assert resting.covariance[2, 2] == pytest.approx(math.pi**2 / 3.0)
    assert resting.notes[1].code == 'inertial.heading_unknown'
