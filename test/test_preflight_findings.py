# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Findings and corrections of `check`: delays, twists, headings and frozen samples."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from cli_examples import call
from ideal_examples import Shaken, noise_free_imu, recorded, simulated
from preflight_examples import (
    AHRS,
    FAULTS,
    altered,
    correction,
    every_nth,
    frozen_fields,
    good,
    late,
    scaled,
    selected_messages,
    white,
    world_twist,
)
from scipy.signal import butter, sosfiltfilt

from sim2real_eval import simulate
from sim2real_eval.preflight import delays, findings
from sim2real_eval.preflight.checks import check
from sim2real_eval.preflight.delays import effective_counts, fit_delay
from sim2real_eval.preflight.remedies import corrected_constants
from sim2real_eval.recording.corrections import FixCorrection, ImuCorrection, correct_recording
from sim2real_eval.recording.metadata import find_own_metadata
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.core import rotations
from sim_sensors.core.measurements import OdometryArray
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import motion_of
from sim_sensors.world.world import Gravity, World


def test_each_of_several_recordings_gets_its_own_delay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The mean of two delays would correct neither recording."""
    expected = {'good': 0.0, 'late': 0.4, 'later': 0.8}
    for name, seconds in expected.items():
        run = dataclasses.replace(late('imu', seconds)(good()), name=name)
        write_recording(run, tmp_path / name)
    done = call(capsys, 'check', '-v', *(tmp_path / name for name in expected))
    assert done.status == 1
    delays = re.findall(
        r'(late\w*)/recording.yaml: corrections: \{imu: \{delay: (\S+)\}\}',
        ' '.join(done.out.split()),
    )
    assert {name: float(delay) for name, delay in delays} == pytest.approx(
        {'late': 0.4, 'later': 0.8}, abs=0.02
    )


def test_each_file_has_its_own_metadata(tmp_path: Path) -> None:
    """Also beside a recording.yaml that several files share."""
    folder, files = tmp_path / 'bag', [tmp_path / 'a.mcap', tmp_path / 'b.mcap']
    folder.mkdir()
    for file in files:
        file.touch()
    assert find_own_metadata(folder) == (folder / 'recording.yaml', None)
    assert find_own_metadata(files[0]) == (tmp_path / 'a.recording.yaml', None)
    shared = tmp_path / 'recording.yaml'
    for place in (tmp_path / 'bag.recording.yaml', tmp_path / 'b.recording.yaml', shared):
        place.touch()
    assert find_own_metadata(folder) == (tmp_path / 'bag.recording.yaml', None)
    assert find_own_metadata(files[0]) == (tmp_path / 'a.recording.yaml', shared)
    assert find_own_metadata(files[1]) == (tmp_path / 'b.recording.yaml', None)


def test_a_correction_set_by_hand_is_not_rounded() -> None:
    corrections = {
        'gps': FixCorrection(std=0.0234),
        'imu': ImuCorrection(rate_bias=(0.00004, 0.0, 0.0)),
    }
    run = check(correct_recording(late('imu', 0.4)(good()), corrections))
    assert run.corrections['gps'] == {'std': 0.0234}
    assert run.corrections['imu']['rate_bias'] == [0.00004, 0.0, 0.0]
    assert run.corrections['imu']['delay'] == pytest.approx(0.4, abs=0.02)


def test_the_printed_correction_works_in_the_named_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = FAULTS['rates in deg/s'][1](late('gps', 0.6)(good()))
    write_recording(broken, tmp_path / 'bag')
    done = call(capsys, 'check', '-v', tmp_path / 'bag')
    place = re.search(r'existing ones, to\s+(\S+):\s+(corrections: .*)', done.out)
    file = Path(place[1])
    content = yaml.safe_load(file.read_text('utf-8')) if file.is_file() else {}
    file.write_text(yaml.safe_dump({**content, **yaml.safe_load(place[2])}), 'utf-8')
    mended = call(capsys, 'check', tmp_path / 'bag', '--json')
    assert mended.status == 0
    assert json.loads(mended.out)['status'] == 'pass'


@pytest.mark.parametrize('seconds', [-3.23, 2.0, 3.25])
@pytest.mark.parametrize('role', ['imu', 'gps'])
def test_a_delay_of_several_seconds_is_measured(role: str, seconds: float) -> None:
    """The messages are cut to a common time span, so that their ends do not show the delay."""
    run = late(role, seconds)(good())
    run = selected_messages(
        role, lambda t: (t >= max(-seconds, 0.0)) & (t <= t[-1] - max(seconds, 0.0))
    )(run)
    findings = check(run).findings
    code = 'check.imu_late_large' if role == 'imu' else 'check.fixes_late_large'
    assert [finding.code for finding in findings] == [code]
    assert findings[0].numbers['delay'] == pytest.approx(seconds, abs=0.1)


def shift_signal(time: np.ndarray, values: np.ndarray, delay: float) -> np.ndarray:
    return np.interp(time - delay, time, values)


@pytest.mark.parametrize('seconds', [-7.13, 5.25, 11.9])
def test_a_long_delay_is_detected_in_fast_motion(seconds: float) -> None:
    """The motion has frequencies up to 3 Hz, so it decorrelates in a tenth of a second."""
    time, random = np.arange(0.0, 120.0, 0.02), np.random.default_rng(1)
    motion = sosfiltfilt(butter(4, 3.0, fs=50.0, output='sos'), random.normal(size=len(time)))
    measured = np.interp(time - seconds, time, motion) + 0.1 * random.normal(size=len(time))
    shifted = functools.partial(shift_signal, time, motion)
    delay_fit = fit_delay(measured, shifted, 120.0, 1.0, longer=True)
    assert delay_fit.seconds == pytest.approx(seconds, abs=0.02)


@pytest.mark.parametrize('is_complex', [False, True])
def test_a_fit_does_not_depend_on_how_many_delays_are_tried_at_once(
    is_complex: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    time, random = np.arange(0.0, 40.0, 0.1), np.random.default_rng(3)
    motion = np.convolve(random.normal(size=len(time)), np.hanning(31), 'same')
    motion = motion + 1j * np.roll(motion, 50) if is_complex else motion
    measured = 0.9 * np.interp(time - 0.33, time, motion) + 0.1 * random.normal(size=len(time))
    shifted = functools.partial(shift_signal, time, motion)
    together = fit_delay(measured, shifted, 40.0, 1.0, longer=True)
    monkeypatch.setattr(delays, '_SAMPLES_AT_ONCE', 1)
    assert fit_delay(measured, shifted, 40.0, 1.0, longer=True) == together
    assert together.seconds == pytest.approx(0.33, abs=0.02)


def test_residuals_are_counted_together_as_each_alone() -> None:
    """The oracle adds up autocorrelations until the first negative one."""
    random = np.random.default_rng(4)
    residuals = np.stack(
        [np.convolve(random.normal(size=300), np.ones(width), 'same') for width in (1, 5, 40)]
        + [np.full(300, 2.0)]
    )
    expected = []
    for row in residuals:
        centred = row - row.mean()
        power, total = float(np.mean(centred**2)), 1.0
        for lag in range(1, 75):
            product = float(np.mean(centred[lag:] * centred[:-lag]))
            if product <= 0.0:
                break
            total += 2.0 * product / power
        expected.append(300 / total)
    assert effective_counts(residuals).tolist() == expected
    assert expected[0] > 5 * expected[2]


@pytest.mark.parametrize('period', [0.5, 0.8, 1.5, 1.9, 3.0])
def test_a_delay_of_periodic_motion_is_not_off_by_a_period(period: float) -> None:
    """As of a walking robot: one of n periods, or of n and a half reversed, explains as much."""
    time = np.arange(0.0, 60.0, 0.02)
    for seed in range(10):
        random = np.random.default_rng(seed)
        phase = random.uniform(0.0, 2.0 * np.pi)

        def motion(at: np.ndarray, phase: float = phase) -> np.ndarray:
            return np.sin(2.0 * np.pi * at / period + phase)

        measured = motion(time - 0.1) + 0.1 * random.normal(size=len(time))
        delay_fit = fit_delay(measured, lambda delay, of=motion: of(time - delay), 60.0, 0.1)
        assert delay_fit.seconds == pytest.approx(0.1, abs=0.02)
        assert delay_fit.gain.real > 0.9


@pytest.mark.parametrize(('span', 'width'), [(20.0, 101), (40.0, 101), (120.0, 21)])
def test_noise_is_not_reported_as_a_long_delay(span: float, width: int) -> None:
    """Unrelated signals, smooth over 2 or 10 s: at most 1 of 60 has a delay beyond the usual
    search. The seeds are fixed.
    """
    time = np.arange(0.0, span, 0.1)
    smooth, long_delays = np.hanning(width), 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        measured, other = (
            np.convolve(random.normal(size=len(time) + width), smooth, 'same')[: len(time)]
            for _ in range(2)
        )
        shifted = functools.partial(shift_signal, time, other)
        delay_fit = fit_delay(measured, shifted, span, 1.0, longer=True)
        long_delays += abs(delay_fit.seconds) > 2.2 and delay_fit.explained > 0.5
    assert long_delays <= 1


def test_a_mirrored_track_is_not_reported_as_half_a_lap_late() -> None:
    """Both explain laps of a figure eight, seen by a receiver that is 0.6 m off."""
    lap = {'speed': 4.0, 'length': 40.0, 'width': 20.0}
    motion = motion_of('figure_eight', duration=240.0, parameters=lap)
    drive = simulate(motion, gps='ch_gauss', imu='xsens_mtx', seed=1)
    codes = codes_of(correction('truth', axes='ned')(drive))
    assert 'check.truth_ned' in codes
    assert not codes & {'check.fixes_late_large', 'check.truth_turned_large'}


def test_a_reversed_heading_is_not_reported_as_a_twist_in_world_axes() -> None:
    """Both explain the twist; only a vehicle that moves forward distinguishes them."""
    line = good(1, 'line').with_messages('gps', None).with_messages('imu', None)
    east = correction('truth', turn=np.degrees(0.5))(line)
    reversed_heading = check(correction('truth', heading=180.0)(east))
    assert [finding.code for finding in reversed_heading.findings] == [
        'check.missing', 'check.missing', 'check.truth_heading_large'
    ]  # fmt: skip
    assert abs(reversed_heading.corrections['truth']['heading']) == pytest.approx(180.0, abs=1.0)
    north = correction('truth', turn=np.degrees(0.5) - 90.0)(line)
    assert 'check.twist_in_world' in codes_of(world_twist(north))


def flown(course: np.ndarray, yaw: float, twist: str, step: float = 0.05) -> Recording:
    """Return a truth that moves at 2 m/s on a course while its yaw stays within 2 deg, with its
    twist in the `body` or in the `world`; angles in rad.
    """
    velocity = 2.0 * np.stack([np.cos(course), np.sin(course), 0.0 * course], axis=1)
    heading = yaw + 0.03 * np.sin(np.arange(len(course)))
    turn = rotations.from_heading(heading)
    stamps = (np.arange(len(course)) * step * 1e9).astype(np.int64)
    truth = OdometryArray.exact(
        stamps,
        position=np.cumsum(velocity, axis=0) * step,
        orientation=turn,
        linear_velocity=velocity if twist == 'world' else rotations.rotate_back(turn, velocity),
        angular_velocity=np.zeros((len(course), 3)),
    )
    return Recording.of_truth(truth, 'flown', 'default')


def test_a_drone_of_constant_yaw_may_have_its_twist_in_world_axes() -> None:
    """East first, so that its way is eastward as a whole."""
    legs = np.repeat([0.0, 1.0, 2.0, 3.0, 0.0], 160) * np.pi / 2.0
    assert 'check.twist_in_world' in codes_of(flown(legs, np.pi / 2.0, 'world'))
    assert not codes_of(flown(legs, np.pi / 2.0, 'body')) & WRONG


WRONG = {f'check.{name}' for name in (
    'twist_strays', 'twist_in_world', 'truth_heading', 'truth_heading_large',
)}  # fmt: skip


@pytest.mark.parametrize('rate', [1, 10, 100])
@pytest.mark.parametrize(('speed', 'rests'), [(0.3, 0.0), (1.0, 0.5), (3.0, 0.75)])
def test_noise_of_positions_is_not_reported_as_an_inconsistent_twist(
    rate: int, speed: float, rests: float
) -> None:
    """5 cm per axis, of a vehicle that is slow or rests most of the time; ten runs of each."""
    for seed in range(10):
        random, step = np.random.default_rng(seed), 1.0 / rate
        time = np.arange(0.0, 60.0, step)
        fast = speed * (time % 20.0 >= 20.0 * rests)
        course = 0.05 * time
        velocity = fast[:, None] * np.stack([np.cos(course), np.sin(course), 0.0 * time], axis=1)
        flown_truth = flown(course, 0.0, 'world', step).truth
        assert flown_truth is not None
        turn = rotations.from_heading(course)
        noisy = dataclasses.replace(
            flown_truth,
            position=np.cumsum(velocity, axis=0) * step + random.normal(0.0, 0.05, velocity.shape),
            orientation=turn,
            linear_velocity=rotations.rotate_back(turn, velocity),
        )
        codes = codes_of(Recording.of_truth(noisy, 'noisy', 'default'))
        assert not codes & WRONG, (seed, codes)


@pytest.mark.parametrize(
    ('lasts', 'speed', 'noise'),
    [
        (20.0, 0.5, 0.02),
        (20.0, 1.0, 0.003),
        (20.0, 1.0, 0.02),
        (3.0, 1.0, 0.003),
        (3.0, 0.5, 0.02),
    ],
)
def test_a_robot_mostly_at_rest_with_a_noisy_truth_passes(
    lasts: float, speed: float, noise: float
) -> None:
    """It drives for some of 120 s: nothing of its truth is wrong, and where the heading is, its
    IMU and the direction in which it travels are not blamed. Four runs of each.
    """
    imu = dataclasses.replace(load_imu('xsens_mtx'), orientation=AHRS)
    for seed in range(4):
        random, time = np.random.default_rng(seed), np.arange(0.0, 120.0, 0.05)
        drives = (time > 50.0) & (time < 50.0 + lasts)
        course = 0.4 + np.clip(0.06 * (time - 50.0), 0.0, 0.06 * lasts)
        velocity = (speed * drives)[:, None] * np.stack(
            [np.cos(course), np.sin(course), 0.0 * time], axis=1
        )
        turn = rotations.from_heading(course)
        exact = OdometryArray.exact(
            (time * 1e9).round().astype(np.int64),
            position=np.cumsum(velocity, axis=0) * 0.05,
            orientation=turn,
            linear_velocity=rotations.rotate_back(turn, velocity),
            angular_velocity=np.stack([0 * time, 0 * time, 0.06 * drives], axis=1),
        )
        bare = Recording.of_truth(exact, f'stands{seed}', 'default')
        drive = simulate(bare, gps='zed_f9p_rtk', imu=imu, seed=seed)
        position = exact.position + random.normal(0.0, noise, exact.position.shape)
        for off, expected in ((0.0, set()), (30.0, {'check.truth_heading_large'})):
            rotated = rotations.from_heading(course + np.radians(off))
            noisy = dataclasses.replace(exact, position=position, orientation=rotated)
            assert codes_of(drive.with_messages('truth', noisy)) == expected, (seed, off)


def test_a_position_step_at_rest_is_not_used_as_a_heading() -> None:
    """The truth is motion capture at 200 Hz with errors of 1 mm."""
    for seed in range(10):
        random = np.random.default_rng(seed)
        flown_truth = flown(np.zeros(6000), 0.0, 'body', 0.005).truth
        place = random.normal(0.0, 0.001, flown_truth.position.shape)
        place[3000:, 0] += 0.2
        speed = random.normal(0.0, 0.01, flown_truth.position.shape)
        still = dataclasses.replace(flown_truth, position=place, linear_velocity=speed)
        assert not codes_of(Recording.of_truth(still, 'still', 'default')) & WRONG


def test_for_an_inconsistent_twist_deriving_it_from_positions_is_proposed() -> None:
    def spun(velocity: np.ndarray) -> np.ndarray:
        turn = np.linspace(0.0, 9.0, len(velocity))
        return rotations.rotate(rotations.from_heading(turn), velocity)

    run = check(altered('truth', linear_velocity=spun)(good()))
    assert [finding.code for finding in run.findings] == ['check.twist_strays']
    assert run.corrections == {'truth': {'twist': 'positions'}}


def test_an_inconsistent_orientation_is_not_corrected_from_positions() -> None:
    """The twist of what has wheels points ahead, so it is right."""
    run = altered('truth', orientation=lambda q: rotations.multiply(q, rotations.multiply(q, q)))
    result = check(run(good().with_messages('imu', None)))
    assert [finding.code for finding in result.findings[1:]] == ['check.twist_strays']
    assert result.findings[1].words['what'] == 'orientation'
    assert 'twist' not in result.corrections.get('truth', {})


POSE = ('position', 'orientation', 'linear_velocity', 'angular_velocity')


def codes_of(recording: Recording, **options: Any) -> set[str]:
    return {finding.code for finding in check(recording, **options).findings}


def frozen(recording: Recording) -> bool:
    return 'check.frozen' in codes_of(recording)


def test_a_constant_pose_during_rotation_is_reported_as_frozen() -> None:
    """Neither fixes nor twist show the motion; a body that turns in place has one position."""

    def hanging(values: np.ndarray) -> np.ndarray:
        values = values.copy()
        values[1200:1800] = values[1200]
        return values

    swaying, driving = good(1, 'swaying'), good().with_messages('gps', None)
    still = altered('truth', linear_velocity=lambda v: 0.0 * v, position=hanging)(driving)
    assert not frozen(swaying)
    assert frozen(frozen_fields('truth', *POSE)(swaying))
    assert not frozen(still)
    assert frozen(altered('truth', orientation=hanging)(still))


def test_noise_free_sensors_are_compared_with_the_gravity_of_their_simulation() -> None:
    motion = Shaken(motion_of('swaying', duration=30.0))  # which the truth alone does not know
    drive = recorded(motion, {'ideal_imu': noise_free_imu(motion)})
    drive = simulated(drive, imu=load_imu('xsens_mtx'), gps=load_gps('zed_f9p_rtk'))
    weak = World(gravity_model=Gravity(model='constant', value=3.7))
    codes = codes_of(drive, maker=TwinMaker(drive, seed=1, world=weak))
    assert codes == codes_of(drive)
    assert 'check.covariance_small' not in codes


def test_a_twist_in_world_axes_is_detected_in_each_real_drive(real_dir: Path) -> None:
    """Also of those that go straight ahead, eastward, most of the time."""
    for path in sorted((real_dir / 'drive0708/segments').glob('*/bag')):
        codes = codes_of(world_twist(read_recording(path)))
        assert 'check.twist_in_world' in codes, path
        assert 'check.truth_jumps' not in codes, path


@pytest.mark.parametrize(('twist', 'place'), [(0.005, 0.0), (0.01, 0.001), (0.2, 0.02)])
def test_a_noisy_truth_is_not_reported_as_a_fault_of_the_imu(twist: float, place: float) -> None:
    """Neither beside positions that are exact nor beside such as are worse than the twist; but
    for the covariance that it states 10^6 too small.
    """
    rough = altered(
        'truth',
        linear_velocity=lambda v: v + white(v.shape, twist),
        position=lambda p: p + white(p.shape, place),
    )
    assert codes_of(rough(good())) == {'check.truth_rough'}
    small = scaled('imu', 'linear_acceleration_covariance', 1e-6)(good())
    assert codes_of(small) == {'check.covariance_small_large'}


@pytest.mark.parametrize('rate', [1, 5])
@pytest.mark.parametrize('share', [0.05, 0.15])
def test_wrong_positions_do_not_hide_a_twist_in_world_axes(share: float, rate: int) -> None:
    """The truth has 100 or 20 Hz and errors of some 0.3 m."""
    random = np.random.default_rng(3)

    def off(position: np.ndarray) -> np.ndarray:
        is_off = random.random((len(position), 1)) < share
        return position + 0.3 * is_off * random.normal(size=position.shape)

    twisted = world_twist(selected_messages('truth', every_nth(rate))(good()))
    codes = codes_of(altered('truth', position=off)(twisted))
    assert 'check.twist_in_world' in codes
    assert 'check.twist_strays' not in codes


@pytest.mark.parametrize('delay', [-0.5, 0.3])
@pytest.mark.parametrize('rate', [1, 5, 25])
def test_the_delay_of_a_twist_is_measured_despite_noise(delay: float, rate: int) -> None:
    """The truth has 100, 20 or 4 Hz, and noise of 2 cm and 0.1 m/s."""
    sparse = selected_messages('truth', every_nth(rate))(good())
    time = sparse.truth.stamp_ns * 1e-9

    def shifted(values: np.ndarray) -> np.ndarray:
        late = [np.interp(time - delay, time, column) for column in values.T]
        return np.stack(late, axis=1) + white(values.shape, 0.1)

    noisy = altered('truth', linear_velocity=shifted, position=lambda p: p + white(p.shape, 0.02))
    outcomes = [outcome.measure for outcome in check(noisy(sparse)).outcomes]
    (delay_measure,) = (outcome for outcome in outcomes if outcome.subject == 'truth twist delay')
    assert delay_measure.value == pytest.approx(delay, abs=0.1)
    assert delay_measure.finding is not None


def test_a_value_that_the_user_has_to_find_is_no_correction() -> None:
    """Only a value that the check states is applied, and withheld if it does not work."""
    words = {'quantity': 'position', 'role': 'gps', 'key': 'std'}
    unknown = findings.PESSIMISTIC('/fix', error=0.1, stated=4.0, unit='m', **words)
    known = findings.COVARIANCE('/fix', error=0.5, stated=0.1, **words)
    assert corrected_constants(unknown) == {}
    assert corrected_constants(known) == {('gps', 'std'): 0.5}
