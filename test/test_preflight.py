# SPDX-License-Identifier: Apache-2.0
"""A recording with a planted fault is told that fault, its remedy, and no symptom of it."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from cli_examples import call
from scipy.interpolate import CubicSpline
from scipy.signal import butter, sosfiltfilt
from scipy.spatial.transform import Rotation

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.preflight.checks import check
from sim2real_eval.recording.checks import check_messages
from sim2real_eval.recording.corrections import CORRECTIONS, corrected
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import synthetic_recording
from sim_sensors.core import rotations
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import motion_of
from sim_sensors.world.geodesy import LocalFrame

Change = Callable[[Recording], Recording]


@functools.cache
def good(number: int = 1, motion: str = 'figure_eight', gps: str = 'zed_f9p_rtk') -> Recording:
    """Return a recording of 40 s with a receiver and an IMU as they should be."""
    imu = dataclasses.replace(load_imu('xsens_mtx'), orientation=load_imu('ideal').orientation)
    sensors, run = Twin('own', load_gps(gps), imu), f'good_{number}'
    size = {'speed': 4.0, 'heading': 0.5, 'rest_time': 1.0}
    size |= {'length': 60.0, 'width': 30.0} if motion == 'figure_eight' else {}
    driven = motion_of(motion, seed=1, run=run, duration=40.0, parameters=size)
    return synthetic_recording(driven, sensors, seed=1, run=run, scenario=motion)


def altered(role: str, **changes: Callable) -> Change:
    """Return what changes fields of the messages of a role."""

    def change(recording: Recording) -> Recording:
        array = recording.require(role)
        new = {name: make(getattr(array, name)) for name, make in changes.items()}
        return recording.with_messages(role, dataclasses.replace(array, **new))

    return change


def scaled(role: str, field: str, factor: float) -> Change:
    return altered(role, **{field: lambda values: values * factor})


def turned(roll: float, pitch: float, yaw: float) -> Change:
    """Mount the IMU so, without a word in its frame."""

    def change(recording: Recording) -> Recording:
        imu, turn = recording.imu, Rotation.from_euler('xyz', (roll, pitch, yaw), degrees=True)
        array = dataclasses.replace(
            imu,
            angular_velocity=turn.inv().apply(imu.angular_velocity),
            linear_acceleration=turn.inv().apply(imu.linear_acceleration),
            orientation=rotations.multiply(imu.orientation, turn.as_quat()[None]),
        )
        return recording.with_messages('imu', array)

    return change


def late(role: str, seconds: float) -> Change:
    shift = np.int64(seconds * 1e9)
    return altered(role, stamp_ns=lambda t: t + shift, arrival_ns=lambda t: t + shift)


def kept(role: str, choose: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Keep the messages at some times, s since the first."""

    def change(recording: Recording) -> Recording:
        array = recording.require(role)
        time = (array.stamp_ns - array.stamp_ns[0]) * 1e-9
        return recording.with_messages(role, array.take(choose(time)))

    return change


def every(step: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda time: np.arange(len(time)) % step == 0


def correction(role: str, **values: object) -> Change:
    """Apply a correction to what needs none, without a word: the inverse fault."""

    def change(recording: Recording) -> Recording:
        wrong = corrected(recording, {role: CORRECTIONS[role](**values)})
        return dataclasses.replace(wrong, corrections={})

    return change


def held(role: str, *fields: str) -> Change:
    """Repeat one measurement from 10 to 16 s."""

    def hold(values: np.ndarray) -> np.ndarray:
        first, last = len(values) // 4, len(values) * 2 // 5
        values = values.copy()
        values[first:last] = values[first]
        return values

    return altered(role, **dict.fromkeys(fields, hold))


def stepped(role: str, field: str, at: int, size: float) -> Change:
    def step(values: np.ndarray) -> np.ndarray:
        values = values.copy()
        values[at : at + 3] += size
        return values

    return altered(role, **{field: step})


def reread(role: str, **changes: Callable) -> Change:
    """Change messages, and read them as from a file."""

    def change(recording: Recording) -> Recording:
        broken = altered(role, **changes)(recording)
        topic = recording.roles[role]
        array, notes = check_messages('x', topic, broken.require(role), is_truth=role == 'truth')
        whole = broken.with_messages(role, array)
        return dataclasses.replace(whole, notes=(*whole.notes, *notes))

    return change


def swapped_stamps(stamp: np.ndarray) -> np.ndarray:
    stamp = stamp.copy()
    stamp[5::20], stamp[4::20] = stamp[4::20].copy(), stamp[5::20].copy()
    return stamp


def zeroed(values: np.ndarray) -> np.ndarray:
    return np.zeros_like(values)


def in_bursts(stamp: np.ndarray) -> np.ndarray:
    """Five messages wait for each other, and follow one another within a millisecond."""
    count = np.arange(len(stamp))
    return stamp[np.minimum(count - count % 5 + 4, len(stamp) - 1)] + (count % 5) * 1_000_000


def world_twist(recording: Recording) -> Recording:
    truth = recording.truth
    twist = rotations.rotate(truth.orientation, truth.linear_velocity)
    return recording.with_messages('truth', dataclasses.replace(truth, linear_velocity=twist))


def of_camera(recording: Recording) -> Recording:
    """Give the truth the axes of a camera: x right, y down, z forward."""
    truth, axes = recording.truth, Rotation.from_matrix([[0, -1, 0], [0, 0, -1], [1, 0, 0]])
    turn = axes * Rotation.from_quat(truth.orientation) * axes.inv()
    fields = ('position', 'linear_velocity', 'angular_velocity')
    vectors = {name: axes.apply(getattr(truth, name)) for name in fields}
    made = dataclasses.replace(truth, orientation=turn.as_quat(), **vectors)
    return recording.with_messages('truth', made)


def of_status(share: float) -> Change:
    def lost(status: np.ndarray) -> np.ndarray:
        return np.where(np.arange(len(status)) % 10 < 10 * share, -1, status)

    return reread('gps', status=lost)


def ned_orientation(recording: Recording) -> Recording:
    return correction('imu', axes='ned')(recording)


def clipped(values: np.ndarray) -> np.ndarray:
    """Beyond the range of the sensor there are two pushes."""
    values = values.copy()
    values[500:520, 0] = values[900:930, 0] = 4.36
    return values


FAULTS: dict[str, tuple[str, Change]] = {
    'acceleration in g': (
        'acceleration_unit', correction('imu', acceleration_scale=1 / 9.80665)
    ),
    'acceleration in mg': ('acceleration_unit', correction('imu', acceleration_scale=101.97)),
    'no gravity': (
        'no_gravity', altered('imu', linear_acceleration=lambda f: f - f.mean(axis=0))
    ),
    'accelerometer 20 % off': ('gravity_scale_large', scaled('imu', 'linear_acceleration', 1.2)),
    'accelerometer reversed': ('force_reversed', scaled('imu', 'linear_acceleration', -1.0)),
    'on its side': ('imu_tilted_large', turned(90.0, 0.0, 0.0)),
    'on its nose': ('imu_tilted_large', turned(0.0, 90.0, 0.0)),
    'upside down': ('imu_tilted_large', turned(180.0, 0.0, 0.0)),
    'tilted by 12 degrees': ('imu_tilted', turned(0.0, 12.0, 0.0)),
    'turned by 90 degrees': ('imu_yaw_large', turned(0.0, 0.0, 90.0)),
    'turned by 180 degrees': ('imu_yaw_large', turned(0.0, 0.0, 180.0)),
    'rates in deg/s': ('rate_unit', correction('imu', rate_scale=57.29578)),
    'rates reversed': ('rate_reversed', scaled('imu', 'angular_velocity', -1.0)),
    'rates 30 % off': ('rate_scale_large', scaled('imu', 'angular_velocity', 1.3)),
    'rate bias': (
        'rate_bias_large', altered('imu', angular_velocity=lambda w: w + np.array([0, 0, 0.1]))
    ),
    'IMU late': ('imu_late_large', late('imu', 0.4)),
    'IMU early': ('imu_late_large', late('imu', -0.4)),
    'IMU slow': ('slow', kept('imu', every(10))),
    'IMU gap': ('gap_large', kept('imu', lambda t: (t < 12.0) | (t > 14.0))),
    'IMU frozen': ('frozen', held('imu', 'angular_velocity', 'linear_acceleration')),
    'IMU saturated': ('saturated', altered('imu', angular_velocity=clipped)),
    'IMU without orientation': (
        'no_orientation', altered('imu', orientation_covariance=lambda c: c * 0.0 - 1.0)
    ),
    'stamps in bursts': ('uneven_stamps', altered('imu', stamp_ns=in_bursts)),
    'stamps out of order': ('stamp_back', reread('imu', stamp_ns=swapped_stamps)),
    'stamps zero': ('stamp_zero', reread('imu', stamp_ns=zeroed)),
    'rate covariance zero': ('no_covariance', altered('imu', angular_velocity_covariance=zeroed)),
    'force covariance 10^6 too small': (
        'covariance_small_large', scaled('imu', 'linear_acceleration_covariance', 1e-6)
    ),
    'heading from north': ('orientation_ned', ned_orientation),
    'heading off by 40 degrees': ('orientation_yaw_large', correction('imu', heading=40.0)),
    'fixes late': ('fixes_late_large', late('gps', 0.6)),
    'fix covariance 10^4 too small': (
        'covariance_small_large', scaled('gps', 'position_covariance', 1e-4)
    ),
    'fix covariance 10^4 too large': (
        'covariance_great', scaled('gps', 'position_covariance', 1e4)
    ),
    'fix covariance zero': ('no_covariance', altered('gps', position_covariance=zeroed)),
    'latitude and longitude exchanged': ('fixes_swapped', correction('gps', swapped=True)),
    'fixes jump': ('fix_jumps', stepped('gps', 'latitude', 60, 2e-4)),
    'fixes frozen': ('frozen', held('gps', 'latitude', 'longitude')),
    'fixes lost': ('no_fix_large', of_status(0.6)),
    'fix gap': ('gap_large', kept('gps', lambda t: (t < 12.0) | (t > 24.0))),
    'kinds of fix': (
        'fix_kinds', altered('gps', status=lambda s: np.where(np.arange(len(s)) % 3, 2, 0))
    ),
    'truth in NED': ('truth_ned', correction('truth', axes='ned')),
    'truth of a camera': ('truth_camera', of_camera),
    'truth turned': ('truth_turned_large', correction('truth', turn=40.0)),
    'truth in mm': ('truth_scale', correction('truth', position_scale=1e3, speed_scale=1e3)),
    'positions in mm': ('truth_scale', correction('truth', position_scale=1e3)),
    'positions in km': ('truth_scale', correction('truth', position_scale=1e-3)),
    'speeds in km/h': ('speed_scale', correction('truth', speed_scale=3.6)),
    'twist in the world': ('twist_in_world', world_twist),
    'truth without orientation': (
        'truth_no_heading', altered('truth', orientation=lambda q: q * 0.0 + [0, 0, 0, 1])
    ),
    'heading of the truth': ('truth_heading_large', correction('truth', heading=60.0)),
    'axes of the body': ('truth_sideways', correction('truth', body_yaw=84.0)),
    'truth jumps': ('truth_jumps', stepped('truth', 'position', 1500, 4.0)),
    'truth frozen': (
        'frozen',
        held('truth', 'position', 'orientation', 'linear_velocity', 'angular_velocity'),
    ),
    'truth gap': ('gap_large', kept('truth', lambda t: (t < 12.0) | (t > 17.0))),
    'truth slow': ('slow', kept('truth', every(100))),
    'no truth': ('missing', lambda recording: recording.with_messages('truth', None)),
    'short': (
        'short',
        lambda r: functools.reduce(
            lambda one, role: kept(role, lambda t: t < 8.0)(one), r.roles, r
        ),
    ),
}  # fmt: skip


def codes(recording: Recording) -> set[str]:
    return {one.code.partition('.')[2] for one in check(recording).findings}


@pytest.mark.parametrize('name', FAULTS)
def test_a_planted_fault_is_told_alone_and_its_remedy_mends_it(name: str) -> None:
    code, plant = FAULTS[name]
    broken = plant(good())
    assert codes(broken) == {code}
    (found,) = check(broken).findings
    line = re.search(r'`(corrections: .*)` in recording', found.remedy)
    if line and 'VALUE' not in found.remedy:
        given = yaml.safe_load(line[1])['corrections']
        made = {role: CORRECTIONS[role].from_mapping(one, 'here') for role, one in given.items()}
        assert codes(corrected(broken, made)) == set()


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
def test_two_faults_are_told_and_nothing_else(first: str, second: str) -> None:
    (one, plant), (other, plant_too) = FAULTS[first], FAULTS[second]
    assert codes(plant_too(plant(good()))) == {one, other}


def test_an_imu_on_its_side_as_its_transform_says_is_right_without_truth_too() -> None:
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
    known = StaticTransform('base_link', 'side', (0.0, 0.0, 0.0), tuple(turn.as_quat()))
    assert codes(dataclasses.replace(bare, transforms=(known,))) == {'missing'}
    assert codes(bare) == {'missing', 'imu_tilted_large'}


@pytest.mark.parametrize('number', range(12))
def test_good_recordings_pass(number: int) -> None:
    """Of 200 such recordings none fails; these are among them."""
    gps = ('zed_f9p_rtk', 'gnss_ins_sim_gps', 'px4_gz_bridge_gps')[number % 3]
    motion = ('figure_eight', 'half_sine', 'line', 'circle')[number // 3]
    assert check(good(number, motion, gps)).status != 'fail'


def test_the_twelve_good_drives_pass(real_dir: Path) -> None:
    bags = sorted((real_dir / 'drive0708/segments').glob('*/bag'))
    found = [check(read_recording(path)) for path in bags]
    told = [{one.code for one in run.findings} for run in found]
    assert len(told) == 12
    assert all(run.status == 'warn' for run in found)
    # Its truth is a spline through the fixes, read halfway between them.
    assert set.intersection(*told) == {'check.no_orientation', 'check.truth_of_smoothed_fixes'}
    assert set.union(*told) == set.intersection(*told) | {'check.moving_start'}


def test_a_truth_that_was_made_of_the_fixes_is_named() -> None:
    """As fixes without any error are."""
    run = check(good(gps='baseline'))
    assert 'check.truth_of_fixes' in {one.code for one in run.findings}


def moved(recording: Recording, position: np.ndarray) -> Recording:
    truth = dataclasses.replace(recording.truth, position=position)
    return recording.with_messages('truth', truth)


def test_a_truth_that_follows_the_slow_errors_of_the_fixes_is_named_and_no_other() -> None:
    """One with noise of its own, white or wandering, is independent of them."""
    run, random = good(), np.random.default_rng(0)
    truth, fixes = run.truth, run.gps
    frame = LocalFrame(fixes.latitude[0], fixes.longitude[0], fixes.altitude[0])
    places = frame.to_enu(fixes.latitude, fixes.longitude, fixes.altitude)
    places += truth.position[0] - places[0]
    low = sosfiltfilt(butter(2, 0.3, output='sos'), places, axis=0)
    time, own = truth.stamp_ns * 1e-9, fixes.stamp_ns * 1e-9
    smoothed = moved(run, CubicSpline(own - own[0], low)(time - own[0]))
    assert 'truth_of_smoothed_fixes' in codes(smoothed)
    white = random.normal(0.0, 0.005, truth.position.shape)
    assert codes(moved(run, truth.position + white)) == set()
    wander = np.cumsum(random.normal(0.0, 1e-4, truth.position.shape), axis=0)
    assert codes(moved(run, truth.position + wander)) == set()


WRONG: dict[str, dict[str, object]] = {
    'gps': {'delay': 0.6},
    'imu': {'acceleration_scale': 1.3, 'rate_scale': -1.0, 'rotation': (90.0, 0.0, 0.0)},
    'truth': {'axes': 'ned', 'speed_scale': 2.0},
}


@pytest.mark.parametrize(('role', 'given'), [*WRONG.items(), ('gps', {'swapped': True})])
def test_what_is_to_be_set_counts_what_is_set_already(role: str, given: dict[str, Any]) -> None:
    """A correction that was wrong is taken back by its remedies."""
    run = check(corrected(good(), {role: CORRECTIONS[role](**given)}))
    lines = [re.search(r'`(corrections: .*)` in recording', one.remedy) for one in run.findings]
    shown: dict[str, Any] = {}
    for line in lines:
        if line:
            shown |= yaml.safe_load(line[1])['corrections'][role]
    assert shown.keys() == given.keys()
    for made in (shown, run.corrections.get(role, {})):
        assert codes(corrected(good(), {role: CORRECTIONS[role](**made)})) == set()


def test_a_factor_is_one_of_what_is_stated_too() -> None:
    imu = corrected(good(), {'imu': CORRECTIONS['imu'](acceleration_scale=2.0)}).imu
    np.testing.assert_allclose(
        imu.linear_acceleration_covariance, 4.0 * good().imu.linear_acceleration_covariance
    )


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        ('gps: {swapped: true}', 'longitudes of /gps/fix are no latitudes'),
        ('imu: {acceleration_scale: 0}', 'acceleration_scale: 0 is not allowed'),
        ('truth: {turn: 3}', 'has no truth topic; must be one of its roles: imu, gps'),
    ],
)
def test_a_correction_that_cannot_be_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    far = altered('gps', longitude=lambda degrees: degrees * 0.0 + 103.8)(good())
    write_recording(far.with_messages('truth', None), tmp_path / 'run', storage='csv')
    (tmp_path / 'run/recording.yaml').write_text(f'corrections: {{{text}}}\n')
    with pytest.raises(RecordingError, match=re.escape(problem)):
        read_recording(tmp_path / 'run')


def test_a_latitude_beyond_the_pole_is_a_longitude() -> None:
    far = altered('gps', longitude=lambda degrees: degrees * 0.0 + 103.8)(good()).gps
    swapped = dataclasses.replace(far, latitude=far.longitude, longitude=far.latitude)
    read, (note,) = check_messages('x', '/fix', swapped)
    assert np.array_equal(read.latitude, far.latitude)
    assert note.code == 'recording.fixes_exchanged'


def without_altitude(recording: Recording) -> Recording:
    return reread('gps', altitude=lambda h: np.where(np.arange(len(h)) < 150, np.nan, h))(
        recording
    )


def at_rest_unseen(recording: Recording) -> Recording:
    """The truth stands still, without a twist, while the vehicle drives."""
    still = {'position': zeroed, 'linear_velocity': zeroed, 'angular_velocity': zeroed}
    return altered('truth', **still)(recording)


@pytest.mark.parametrize(
    ('plant', 'code'),
    [
        (without_altitude, 'recording.no_altitude_dropped'),
        (kept('imu', every(100)), 'check.few_messages'),
        (kept('gps', every(80)), 'check.few_messages'),
        (at_rest_unseen, 'check.frozen'),
    ],
)
def test_what_would_pass_unseen_is_told(plant: Change, code: str) -> None:
    assert code in {one.code for one in check(plant(good())).findings}


def test_axes_that_the_imu_shares_are_those_of_the_robot() -> None:
    """They are named, and never put right."""
    run = turned(0.0, 0.0, 84.0)(correction('truth', body_yaw=84.0)(good()))
    assert codes(run) == {'base_sideways'}
    assert not check(run).corrections


def test_one_corrected_recording_is_read_so(tmp_path: Path) -> None:
    write_recording(FAULTS['fixes late'][1](good()), tmp_path / 'late', storage='csv')
    with (tmp_path / 'late/recording.yaml').open('a') as stream:
        stream.write('corrections: {gps: {delay: 0.6}}\n')
    read = read_recording(tmp_path / 'late')
    assert read.gps.stamp_ns.tolist() == good().gps.stamp_ns.tolist()
    assert 'recording.corrected' in {one.code for one in read.notes}
    (tmp_path / 'late/recording.yaml').write_text('corrections: {gps: {delya: 0.6}}\n')
    with pytest.raises(RecordingError, match=r'corrections\.gps\.delya: .*did you mean delay'):
        read_recording(tmp_path / 'late')


def test_the_verb_says_what_mends_it_and_its_status_is_for_ci(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_recording(good(), tmp_path / 'good', storage='mcap')
    write_recording(FAULTS['on its side'][1](good()), tmp_path / 'side', storage='mcap')
    assert call(capsys, 'check', tmp_path / 'good', '--plot', tmp_path / 'check.png').status == 0
    assert (tmp_path / 'check.png').read_bytes()[:4] == b'\x89PNG'
    done = call(capsys, 'check', tmp_path / 'good', tmp_path / 'side')
    assert done.status == 1
    assert '-> set `corrections: {imu: {rotation: [90, 0, 0]}}` in recording.yaml' in done.out
    done = call(capsys, 'check', tmp_path / 'side', '--json')
    record = json.loads(done.out)
    assert record['status'] == 'fail'
    (worst,) = (one for one in record['recordings'][0]['checks'] if one['status'] == 'fail')
    assert worst['finding']['numbers']['tilt']['value'] == pytest.approx(90.0, abs=2.0)
    assert call(capsys, 'check', tmp_path / 'gone').status == 2
