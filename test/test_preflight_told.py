# SPDX-License-Identifier: Apache-2.0
"""What `check` says names the recording, the cause and the numbers that mend it."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from cli_examples import call
from preflight_examples import FAULTS, altered, correction, good, kept, late, world_twist

from sim2real_eval.preflight.checks import check
from sim2real_eval.preflight.delays import find_delay
from sim2real_eval.recording.corrections import TruthCorrection, corrected
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.report.preflight import correction_line

OF_CORRECTIONS = [
    'acceleration in g', 'rates in deg/s', 'upside down', 'rate bias', 'IMU late', 'fixes late',
    'truth turned', 'speeds in km/h', 'heading of the truth', 'fix covariance 10^4 too small',
]  # fmt: skip


@pytest.mark.parametrize('name', OF_CORRECTIONS)
def test_a_remedy_and_all_of_it_say_the_same_number(name: str) -> None:
    run = check(FAULTS[name][1](good()))
    (found,) = [one for one in run.findings if 'corrections' in one.remedy]
    said = re.search(r'`(corrections: .*)` in recording', found.remedy)
    assert said is not None
    assert yaml.safe_load(said[1]) == yaml.safe_load(correction_line(run.corrections))


def test_of_several_recordings_each_is_named_with_its_own_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody sets the mean of two delays."""
    for name, seconds in (('good', 0.0), ('late', 0.4), ('later', 0.8)):
        run = dataclasses.replace(late('imu', seconds)(good()), name=name)
        write_recording(run, tmp_path / name)
    done = call(capsys, 'check', *(tmp_path / name for name in ('good', 'late', 'later')))
    assert done.status == 1
    told = ' '.join(done.out.split())
    assert 'fail (2 of 3: late, later): /imu/data: stamps are +0.40 to +0.80 s off' in told
    own = dict(re.findall(r'(late\w*): corrections: \{imu: \{delay: (\S+)\}\}', told))
    assert {name: float(value) for name, value in own.items()} == pytest.approx(
        {'late': 0.4, 'later': 0.8}, abs=0.02
    )
    both = re.search(r'-> set `corrections: (.*?)` in recording.yaml, each recording', told)
    assert both is not None
    assert ' to ' in both[1]


def test_a_single_recording_is_told_which_file_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is written there as it is printed mends the recording."""
    broken = FAULTS['rates in deg/s'][1](late('gps', 0.6)(good()))
    write_recording(broken, tmp_path / 'bag')
    done = call(capsys, 'check', tmp_path / 'bag')
    place = re.search(
        r'Write into (\S+), in place of other corrections:\s+(corrections: .*)', done.out
    )
    assert place is not None
    file = Path(place[1])
    content = yaml.safe_load(file.read_text('utf-8')) if file.is_file() else {}
    file.write_text(yaml.safe_dump({**content, **yaml.safe_load(place[2])}), 'utf-8')
    mended = call(capsys, 'check', tmp_path / 'bag', '--json')
    assert mended.status == 0
    assert json.loads(mended.out)['status'] == 'pass'


@pytest.mark.parametrize('seconds', [-7.0, -4.0, 3.0, 5.0])
@pytest.mark.parametrize('role', ['imu', 'gps'])
def test_a_delay_of_many_seconds_is_told_as_it_is(role: str, seconds: float) -> None:
    """Also where the recording is cut to one time, so that its ends say nothing."""
    run = late(role, seconds)(good())
    run = kept(role, lambda t: (t >= max(-seconds, 0.0)) & (t <= t[-1] - max(seconds, 0.0)))(run)
    (found,) = check(run).findings
    assert found.kind.code in ('check.imu_late_large', 'check.fixes_late_large')
    assert found.numbers['delay'] == pytest.approx(seconds, abs=0.1)


def test_a_delay_is_not_made_of_noise() -> None:
    """Of 200 signals that follow nothing none has an explained delay; the seed is fixed."""
    time = np.arange(0.0, 120.0, 0.1)
    smooth = np.hanning(21) / np.hanning(21).sum()
    told = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        own, other = (np.convolve(random.normal(size=len(time)), smooth, 'same') for _ in '12')
        found = find_delay(
            own, lambda delay, to=other: np.interp(time - delay, time, to), 120.0, 1.0
        )
        told += found.explained > 0.5
    assert told == 0


def test_a_reversed_heading_of_a_straight_drive_is_no_twist_in_the_world() -> None:
    """Both explain the twist; that a vehicle moves ahead tells them apart."""
    line = good(1, 'line').with_messages('gps', None).with_messages('imu', None)
    east = correction('truth', turn=np.degrees(0.5))(line)
    reversed_heading = check(correction('truth', heading=180.0)(east))
    assert [one.code for one in reversed_heading.findings][-1:] == ['check.truth_heading_large']
    assert abs(reversed_heading.corrections['truth']['heading']) == pytest.approx(180.0, abs=1.0)
    north = correction('truth', turn=np.degrees(0.5) - 90.0)(line)
    assert 'check.twist_in_world' in {one.code for one in check(world_twist(north)).findings}


def test_a_twist_that_follows_nothing_is_told_and_may_be_made_of_positions() -> None:
    def spun(velocity: np.ndarray) -> np.ndarray:
        turn = np.linspace(0.0, 9.0, len(velocity))
        x, y = velocity[:, 0], velocity[:, 1]
        return np.stack(
            [
                x * np.cos(turn) - y * np.sin(turn),
                x * np.sin(turn) + y * np.cos(turn),
                velocity[:, 2],
            ],
            axis=1,
        )

    run = check(altered('truth', linear_velocity=spun)(good()))
    (found,) = run.findings
    assert found.code == 'check.twist_strays'
    assert run.corrections == {'truth': {'twist': 'positions'}}


def test_no_remedy_repeats_what_is_set() -> None:
    """Of a twist that is in world axes, and still wrong when it is said to be."""
    wrong = altered('truth', linear_velocity=lambda v: v[:, [1, 0, 2]])(world_twist(good()))
    said = corrected(wrong, {'truth': TruthCorrection(twist='world')})
    for one in check(said).findings:
        assert 'twist: world' not in one.remedy
    assert check(said).corrections['truth']['twist'] == 'positions'
