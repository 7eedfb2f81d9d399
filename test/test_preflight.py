# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A recording with a planted fault gets its finding and remedy, and no other finding."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from cli_examples import call
from ideal_examples import Shaken, noise_free_imu, recorded, simulated
from preflight_examples import (
    FAULTS,
    Change,
    altered,
    checked_beside_twins,
    correction,
    every_nth,
    good,
    reread,
    rotated_imu,
    selected_messages,
    zeroed,
)
from scipy.interpolate import CubicSpline
from scipy.signal import butter, sosfiltfilt
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding, RecordingError
from sim2real_eval.preflight.checks import check
from sim2real_eval.recording.corrections import CORRECTIONS, correct_recording
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.recording.repairs import check_messages
from sim2real_eval.recording.writing import write_recording
from sim_sensors.core import rotations
from sim_sensors.core.measurements import MagneticFieldArray
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import motion_of
from sim_sensors.world.geodesy import LocalFrame


def codes(recording: Recording) -> set[str]:
    return short(check(recording).findings)


def short(findings: Iterable[Finding]) -> set[str]:
    return {finding.code.partition('.')[2] for finding in findings}


def stated_corrections(finding: Finding) -> dict[str, dict[str, Any]]:
    """Return the corrections that a remedy gives for recording.yaml."""
    line = re.search(r'`(corrections: .*)` in recording', finding.remedy)
    return yaml.safe_load(line[1])['corrections'] if line else {}


def corrected(recording: Recording, corrections: dict[str, dict[str, Any]]) -> Recording:
    parsed = {
        role: CORRECTIONS[role].from_mapping(mapping, 'here')
        for role, mapping in corrections.items()
    }
    return correct_recording(recording, parsed)


@pytest.mark.parametrize('name', FAULTS)
def test_each_fault_causes_one_finding_and_its_remedy_removes_it(name: str) -> None:
    code, plant = FAULTS[name]
    broken = plant(good())
    findings = check(broken).findings
    assert short(findings) == {code}
    assert checked_beside_twins(broken) == findings
    (finding,) = findings
    if 'VALUE' not in finding.remedy and (stated := stated_corrections(finding)):
        assert codes(corrected(broken, stated)) == set()


def as_noise_free(recording: Recording) -> Recording:
    """Move the messages of IMU and GPS to the roles of noise-free sensors."""
    for kind in ('imu', 'gps'):
        array = recording.require(kind)
        recording = recording.with_messages(f'ideal_{kind}', array).with_messages(kind, None)
    return recording


@pytest.mark.parametrize(
    'name',
    [
        'acceleration in g', 'no gravity', 'upside down', 'rates in deg/s', 'IMU late',
        'fixes late', 'latitude and longitude exchanged', 'fix gap', 'truth in NED',
    ],
)  # fmt: skip
def test_a_fault_of_a_noise_free_sensor_is_detected_and_its_remedy_removes_it(name: str) -> None:
    code, plant = FAULTS[name]
    code = {'no_gravity': 'noise_free_no_gravity', 'gap_large': 'noise_free_gap'}.get(code, code)
    broken = as_noise_free(plant(good()))
    run = check(broken)
    (finding,) = run.findings
    assert finding.code == f'check.{code}'
    assert finding.subject.startswith('/ground_truth')
    stated = stated_corrections(finding)
    if stated:
        assert stated.keys() == run.corrections.keys() <= {'ideal_imu', 'ideal_gps', 'truth'}
        assert codes(corrected(broken, stated)) == set()


def test_noise_free_sensors_are_checked_like_real_ones() -> None:
    """They replace the real sensors, and their topics are not offered for other roles."""
    real, exact = check(good()), check(as_noise_free(good()))
    assert exact.findings == ()
    values = {
        (outcome.check, outcome.measure.subject): outcome.measure.value
        for outcome in real.outcomes
    }
    compared = 0
    for outcome in exact.outcomes:
        subject = outcome.measure.subject
        if 'ideal' in subject:
            assert outcome.measure.value == values[outcome.check, subject.replace('ideal_', '')]
            compared += 1
    assert compared > 20
    (missing,) = check(as_noise_free(good()).with_messages('ideal_gps', None)).findings
    assert missing.words == {'role': 'gps', 'topics': '/ground_truth/odometry'}


def test_a_noise_free_imu_is_the_reference_of_the_simulated_imu() -> None:
    """The motion is shaken by 0.77 m/s^2, faster than its odometry; 0.02 is stated."""
    motion = Shaken(motion_of('figure_eight', duration=30.0))
    bare = recorded(motion, {'ideal_imu': noise_free_imu(motion)}, 50.0)
    run = check(simulated(bare, gps=load_gps('zed_f9p_rtk'), imu=load_imu('xsens_mtx')))
    assert short(run.findings) <= {'no_orientation', 'moving_start'}
    rows = [(outcome.check, outcome.measure.subject) for outcome in run.outcomes]
    assert ('errors over stated', 'imu linear acceleration') in rows
    assert len(rows) == len(set(rows))


def test_slow_or_interrupted_noise_free_magnetometers_are_reported() -> None:
    imu = good().require('imu')
    zero = np.zeros((len(imu), 3, 3))
    field = 5e-6 * imu.linear_acceleration
    mag = MagneticFieldArray(imu.stamp_ns, imu.arrival_ns, imu.frame, field, zero)
    for choose, code in (
        (every_nth(20), 'slow'),
        (lambda t: (t < 12.0) | (t > 14.0), 'noise_free_gap'),
    ):
        assert codes(
            selected_messages('ideal_mag', choose)(good().with_messages('ideal_mag', mag))
        ) == {code}


PAIRS = (
    ('acceleration in g', 'rates in deg/s'),
    ('acceleration in g', 'on its side'),
    ('on its side', 'IMU late'),
    ('on its side', 'rates reversed'),
    ('turned by 90 degrees', 'truth turned'),
    ('upside down', 'truth in NED'),
    ('rate bias', 'turned by 180 degrees'),
    ('IMU late', 'fixes late'),
    ('fixes late', 'fixes jump'),
    ('truth in NED', 'speeds in km/h'),
    ('truth in NED', 'fixes late'),
    ('heading of the truth', 'truth jumps'),
    ('speeds in km/h', 'fix covariance 10^4 too small'),
    ('acceleration in g', 'truth in mm'),
)


@pytest.mark.parametrize(('first', 'second'), PAIRS)
def test_two_faults_cause_exactly_their_two_findings(first: str, second: str) -> None:
    (first_code, plant), (second_code, plant_too) = FAULTS[first], FAULTS[second]
    assert codes(plant_too(plant(good()))) == {first_code, second_code}


def test_an_imu_mounted_sideways_with_a_correct_transform_passes_without_truth() -> None:
    turn = Rotation.from_euler('x', 90.0, degrees=True)
    imu = good().require('imu')
    sideways = dataclasses.replace(
        imu,
        frame='side',
        orientation=(Rotation.from_quat(imu.orientation) * turn).as_quat(),
        angular_velocity=turn.inv().apply(imu.angular_velocity),
        linear_acceleration=turn.inv().apply(imu.linear_acceleration),
    )
    bare = good().with_messages('truth', None).with_messages('imu', sideways)
    transform = StaticTransform('base_link', 'side', (0.0, 0.0, 0.0), tuple(turn.as_quat()))
    assert codes(dataclasses.replace(bare, transforms=(transform,))) == {'missing'}
    assert codes(bare) == {'missing', 'imu_tilted_large'}


def test_an_imu_with_its_x_axis_up_that_is_upside_down_fails_without_truth() -> None:
    turn = Rotation.from_euler('y', -90.0, degrees=True)
    stated = StaticTransform('base_link', 'side', (0.0, 0.0, 0.0), tuple(turn.as_quat()))
    imu = good().require('imu')
    upright = dataclasses.replace(
        imu,
        frame='side',
        angular_velocity=turn.inv().apply(imu.angular_velocity),
        linear_acceleration=turn.inv().apply(imu.linear_acceleration),
    )
    assert upright.linear_acceleration.mean(axis=0) == pytest.approx([9.81, 0.0, 0.0], abs=0.3)
    reversed_imu = dataclasses.replace(
        upright, linear_acceleration=upright.linear_acceleration * [-1.0, 1.0, 1.0]
    )
    bare = dataclasses.replace(good().with_messages('truth', None), transforms=(stated,))
    assert 'imu_tilted_large' not in codes(bare.with_messages('imu', upright))
    assert 'imu_tilted_large' in codes(bare.with_messages('imu', reversed_imu))


@pytest.mark.parametrize('number', range(18))
def test_recordings_without_faults_pass(number: int) -> None:
    """None of 200 such recordings fails; these are a sample of them."""
    gps = ('zed_f9p_rtk', 'gnss_ins_sim_gps', 'px4_gz_bridge_gps')[number % 3]
    motions = ('figure_eight', 'half_sine', 'line', 'circle', 'swaying', 'standstill')
    assert check(good(number, motions[number // 3], gps)).status != 'fail'


def test_the_twelve_good_drives_pass(real_dir: Path) -> None:
    bags = sorted((real_dir / 'drive0708/segments').glob('*/bag'))
    runs = [check(read_recording(path)) for path in bags]
    codes = [{finding.code for finding in run.findings} for run in runs]
    assert len(codes) == 12
    assert all(run.status == 'warn' for run in runs)
    # Its truth is a spline through the fixes, read halfway between them.
    assert set.intersection(*codes) == {'check.no_orientation', 'check.truth_of_smoothed_fixes'}
    assert set.union(*codes) == set.intersection(*codes) | {'check.moving_start'}


def test_a_truth_computed_from_the_fixes_is_reported() -> None:
    """Fixes without any error agree with the truth as if it had been computed from them."""
    assert 'truth_of_fixes' in codes(good(gps='baseline'))


def moved(recording: Recording, position: np.ndarray) -> Recording:
    truth = dataclasses.replace(recording.truth, position=position)
    return recording.with_messages('truth', truth)


def test_a_truth_is_reported_only_if_it_shares_the_slow_errors_of_the_fixes() -> None:
    """A truth with its own white or wandering noise is independent of the fixes."""
    run, random = good(), np.random.default_rng(0)
    truth, fixes = run.truth, run.gps
    frame = LocalFrame(fixes.latitude[0], fixes.longitude[0], fixes.altitude[0])
    places = frame.to_enu(fixes.latitude, fixes.longitude, fixes.altitude)
    places += truth.position[0] - places[0]
    low = sosfiltfilt(butter(2, 0.3, output='sos'), places, axis=0)
    time, fix_time = truth.stamp_ns * 1e-9, fixes.stamp_ns * 1e-9
    smoothed = moved(run, CubicSpline(fix_time - fix_time[0], low)(time - fix_time[0]))
    assert 'truth_of_smoothed_fixes' in codes(smoothed)
    white = random.normal(0.0, 0.005, truth.position.shape)
    assert codes(moved(run, truth.position + white)) == set()
    wander = np.cumsum(random.normal(0.0, 1e-4, truth.position.shape), axis=0)
    assert codes(moved(run, truth.position + wander)) == set()


@pytest.mark.parametrize(
    ('role', 'given'),
    [
        ('gps', {'delay': 0.6}),
        ('gps', {'swapped': True}),
        ('imu', {'acceleration_scale': 1.3, 'rate_scale': -1.0, 'rotation': (90.0, 0.0, 0.0)}),
        ('truth', {'axes': 'ned', 'speed_scale': 2.0}),
    ],
)
def test_remedies_undo_a_wrong_correction(role: str, given: dict[str, Any]) -> None:
    run = check(correct_recording(good(), {role: CORRECTIONS[role](**given)}))
    printed: dict[str, Any] = {}
    for finding in run.findings:
        printed |= stated_corrections(finding).get(role, {})
    assert printed.keys() == given.keys()
    merged = run.corrections.get(role, {})
    for corrections in (printed, *([] if merged == printed else [merged])):
        assert codes(correct_recording(good(), {role: CORRECTIONS[role](**corrections)})) == set()


def test_two_corrections_of_an_imu_combine_into_one() -> None:
    kind, random, imu = CORRECTIONS['imu'], np.random.default_rng(11), good().require('imu')

    def drawn() -> Any:
        return kind(
            axes=str(random.choice(['enu', 'ned'])),
            heading=random.uniform(-180.0, 180.0),
            rotation=tuple(random.uniform(-80.0, 80.0, 3)),
            orientation_rotation=tuple(random.uniform(-80.0, 80.0, 3)),
            rate_scale=random.uniform(0.5, 2.0),
            rate_bias=tuple(random.uniform(-0.1, 0.1, 3)),
        )

    pairs = [(drawn(), drawn()) for _ in range(20)]
    pairs.append((
        kind(acceleration_std=0.1, rate_std=0.2), kind(acceleration_scale=-9.8, rate_std=0.3)
    ))  # fmt: skip
    for first, later in pairs:
        twice, once = later.apply(first.apply(imu)), first.followed_by(later).apply(imu)
        assert rotations.rotation_between(twice.orientation, once.orientation).max() < 1e-6
        for name in ('angular_velocity', 'linear_acceleration'):
            np.testing.assert_allclose(getattr(once, name), getattr(twice, name), atol=1e-6)
    for name in ('linear_acceleration_covariance', 'angular_velocity_covariance'):
        np.testing.assert_allclose(getattr(once, name), getattr(twice, name))


@pytest.mark.parametrize('frd', [('orientation',), ('orientation', 'measurements')])
def test_the_axes_of_a_north_east_down_imu_are_corrected(frd: tuple[str, ...]) -> None:
    """All of it, or the orientation alone, is forward-right-down."""
    half = (180.0, 0.0, 0.0)
    rotation = half if 'measurements' in frd else (0.0, 0.0, 0.0)
    orientation_rpy = (0.0, 0.0, 0.0) if 'measurements' in frd else half
    wrong = CORRECTIONS['imu'](axes='ned', rotation=rotation, orientation_rotation=orientation_rpy)
    run = check(correct_recording(good(), {'imu': wrong}))
    correction = CORRECTIONS['imu'](**run.corrections.get('imu', {}))
    put_right = correction.apply(good().require('imu'))
    assert rotations.rotation_between(
        put_right.orientation, good().imu.orientation
    ).max() < math.radians(3)
    assert 'orientation_tilt' not in codes(correct_recording(good(), {'imu': correction}))


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        ('gps: {swapped: true}', '/gps/fix'),
        ('imu: {acceleration_scale: 0}', 'acceleration_scale: 0'),
        ('imu: {delya: 0.6}', 'delya'),
        ('truth: {turn: 3}', 'truth'),
    ],
)
def test_an_impossible_correction_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    far = altered('gps', longitude=lambda degrees: degrees * 0.0 + 103.8)(good())
    write_recording(far.with_messages('truth', None), tmp_path / 'run', storage='csv')
    (tmp_path / 'run/recording.yaml').write_text(f'corrections: {{{text}}}\n')
    with pytest.raises(RecordingError, match=re.escape(problem)):
        read_recording(tmp_path / 'run')


def test_exchanged_coordinates_of_another_topic_do_not_refuse_a_correction(tmp_path: Path) -> None:
    fixes = good().gps
    swapped = dataclasses.replace(fixes, latitude=fixes.longitude, longitude=fixes.latitude)
    far = dataclasses.replace(fixes, latitude=0.0 * fixes.latitude + 103.8)
    run = good().with_messages('gps', swapped).with_messages('ideal_gps', far)
    write_recording(run, tmp_path / 'run', storage='csv')
    (tmp_path / 'run/recording.yaml').write_text('corrections: {gps: {swapped: true}}\n')
    read = read_recording(tmp_path / 'run')
    assert np.array_equal(read.gps.latitude, fixes.latitude)
    assert 'recording.fixes_exchanged' in [note.code for note in read.notes]


def test_latitude_and_longitude_are_exchanged_if_a_latitude_exceeds_90_degrees() -> None:
    far = altered('gps', longitude=lambda degrees: degrees * 0.0 + 103.8)(good()).gps
    swapped = dataclasses.replace(far, latitude=far.longitude, longitude=far.latitude)
    read, (note,) = check_messages('x', '/fix', swapped)
    assert np.array_equal(read.latitude, far.latitude)
    assert note.code == 'recording.fixes_exchanged'


def without_altitude(recording: Recording) -> Recording:
    return reread('gps', altitude=lambda h: np.where(np.arange(len(h)) < 150, np.nan, h))(
        recording
    )


def frozen_truth(recording: Recording) -> Recording:
    still = {'position': zeroed, 'linear_velocity': zeroed, 'angular_velocity': zeroed}
    return altered('truth', **still)(recording)


@pytest.mark.parametrize(
    ('plant', 'code'),
    [
        (without_altitude, 'recording.no_altitude_dropped'),
        (selected_messages('imu', every_nth(100)), 'check.few_messages'),
        (selected_messages('gps', every_nth(80)), 'check.few_messages'),
        (frozen_truth, 'check.frozen'),
    ],
)
def test_missing_information_is_reported(plant: Change, code: str) -> None:
    assert code in {finding.code for finding in check(plant(good())).findings}


def test_equal_rotations_of_truth_and_imu_are_reported_as_a_rotated_base_link() -> None:
    """This is reported and never corrected."""
    run = rotated_imu(0.0, 0.0, 84.0)(correction('truth', body_yaw=84.0)(good()))
    run_check = check(run)
    assert short(run_check.findings) == {'base_sideways'}
    assert not run_check.corrections


def test_a_correction_in_recording_yaml_causes_a_finding(tmp_path: Path) -> None:
    write_recording(FAULTS['fixes late'][1](good()), tmp_path / 'late', storage='csv')
    with (tmp_path / 'late/recording.yaml').open('a') as stream:
        stream.write('corrections: {gps: {delay: 0.6}}\n')
    read = read_recording(tmp_path / 'late')
    assert read.gps.stamp_ns.tolist() == good().gps.stamp_ns.tolist()
    assert 'recording.corrected' in {finding.code for finding in read.notes}


@pytest.mark.usefixtures('blank_pictures')
def test_check_exits_with_0_if_good_1_if_faulty_and_2_if_unreadable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_recording(good(), tmp_path / 'good', storage='mcap')
    write_recording(FAULTS['on its side'][1](good()), tmp_path / 'side', storage='mcap')
    picture = tmp_path / 'check.png'
    assert call(capsys, 'check', tmp_path / 'good', '--plot', picture).status == 0
    before = picture.read_bytes()
    assert call(capsys, 'check', tmp_path / 'side', '--plot', picture).status == 2
    assert picture.read_bytes() == before
    assert call(capsys, 'check', tmp_path / 'good', '--plot', tmp_path / 'check.txt').status == 2
    os.mkfifo(tmp_path / 'pipe')
    assert call(capsys, 'check', tmp_path / 'pipe').status == 2
    assert call(capsys, 'check', tmp_path / 'gone').status == 2
    done = call(capsys, 'check', tmp_path / 'good', tmp_path / 'side')
    assert done.status == 1
    assert '`corrections: {imu: {rotation: [90, 0, 0]}}`' in done.out
    record = json.loads(call(capsys, 'check', tmp_path / 'side', '--json').out)
    assert record['status'] == 'fail'
    (worst,) = (row for row in record['recordings'][0]['checks'] if row['status'] == 'fail')
    assert worst['finding']['numbers']['tilt']['value'] == pytest.approx(90.0, abs=2.0)
