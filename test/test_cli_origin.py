# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`--origin`: place of simulated and driven recordings on the Earth."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, check_refused

from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim_sensors.world.geodesy import LocalFrame

Capture = pytest.CaptureFixture[str]
pytestmark = pytest.mark.usefixtures('blank_pictures')
SYDNEY = LocalFrame(-33.8568, 151.2153, 24.0)
TEXT = '--origin=-33.8568,151.2153,24'
EXACT = ('--gps', 'baseline', '--imu', 'ideal')


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A drive in Sydney with exact fixes; the robot does not start at the map origin."""
    from sim2real_eval.cli.main import main

    out = tmp_path_factory.mktemp('bags')
    line = ['simulate', '--motion', 'circle', '--set', 'radius=40', '--set', 'speed=8']
    assert main([*line, '--duration', '8', *EXACT, TEXT, '--out', str(out)]) == 0
    return out / 'circle_1'


def fixes_in(recording: Recording, frame: LocalFrame) -> np.ndarray:
    gps = recording.require('gps')
    return frame.to_enu(gps.latitude, gps.longitude, gps.altitude)


def true_positions(recording: Recording) -> np.ndarray:
    truth, gps = recording.require('truth'), recording.require('gps')
    at = [np.interp(gps.stamp_ns, truth.stamp_ns, axis) for axis in truth.position.T]
    return np.stack(at, axis=1)


def test_error_free_fixes_equal_the_true_positions_about_the_origin(bag: Path) -> None:
    run = read_recording(bag)
    np.testing.assert_allclose(fixes_in(run, SYDNEY), true_positions(run), atol=2e-3)


def test_a_recorded_truth_is_placed_at_the_recorded_origin_or_that_of_the_option(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    line = ['simulate', bag, *EXACT]
    assert call(capsys, *line, '--out', tmp_path / 'there').status == 0
    away_at = '-33.137,11.575'
    assert call(capsys, *line, '--origin', away_at, '--out', tmp_path / 'away').status == 0
    unmoved = read_recording(tmp_path / 'there' / 'circle_1')
    moved = read_recording(tmp_path / 'away' / 'circle_1')
    np.testing.assert_allclose(fixes_in(unmoved, SYDNEY), true_positions(unmoved), atol=2e-3)
    at_sea = LocalFrame(-33.137, 11.575, 0.0)
    np.testing.assert_allclose(fixes_in(moved, at_sea), true_positions(moved), atol=2e-3)


@pytest.mark.parametrize('waypoints', ['truth', 'gps'])
def test_a_drive_along_a_recording_has_the_origin_of_that_recording(
    bag: Path, tmp_path: Path, capsys: Capture, waypoints: str
) -> None:
    """A part of the drive is followed; the tracker stays within 0.3 m of the exact fixes."""
    line = ['follow', bag, '--controllers', 'nonlinear', '--waypoints', waypoints, '--start', 3]
    line += [*EXACT, '--set', 'robot.wheel_lag=0', '--out', tmp_path / 'o']
    assert call(capsys, *line).status == 0
    real = read_recording(bag)
    driven = read_recording(tmp_path / 'o' / 'circle_1_nonlinear')
    recorded_fixes, driven_fixes = fixes_in(real, SYDNEY), fixes_in(driven, SYDNEY)
    stamps = real.require('gps').stamp_ns
    expected = np.stack(
        [np.interp(driven.require('gps').stamp_ns, stamps, axis) for axis in recorded_fixes.T],
        axis=1,
    )
    assert np.ptp(driven_fixes[:, 0]) > 10.0
    assert np.linalg.norm(driven_fixes - expected, axis=1).max() < 0.3


def test_a_drive_along_a_recording_is_moved_to_a_given_origin(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    line = ['follow', bag, '--controllers', 'nonlinear', *EXACT, '--out', tmp_path / 'o']
    assert call(capsys, *line, '--origin', '48.137,11.575,520').status == 0
    driven = read_recording(tmp_path / 'o' / 'circle_1_nonlinear')
    munich = LocalFrame(48.137, 11.575, 520.0)
    np.testing.assert_allclose(fixes_in(driven, munich), true_positions(driven), atol=2e-3)
    record = json.loads((tmp_path / 'o' / 'follow.json').read_text())
    assert record['runs'][0]['origin'] == munich.to_mapping()


# Lines that are refused, and what the error names.
WRONG = (
    ('simulate --motion line --out o --origin 48', "'48'"),
    ('simulate --motion line --out o --origin a,b', "'a,b'"),
    ('simulate --motion line --out o --origin 1,2,3,4', "'1,2,3,4'"),
    ('simulate --motion line --out o --origin 91,0', 'latitude_deg: 91.0'),
    ('simulate --motion line --out o --origin nan,0', "'nan,0'"),
    ('simulate {bag} --gps real --out o --origin 1,2', '--gps real'),
    ('follow {bag} --origin 1,2', '--origin'),
)


@pytest.mark.parametrize(('line', 'named'), WRONG)
def test_a_wrong_origin_is_refused_in_one_line(
    line: str, named: str, bag: Path, tmp_path: Path, capsys: Capture, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_refused(capsys, named, *line.format(bag=bag).split())
