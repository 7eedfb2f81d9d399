# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Errors of `judge` in metres and m/s, and its TUM files, against evo and numpy."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, check_refused, write_runs
from scipy.spatial.transform import Rotation

from sim2real_eval.metrics.trajectory_errors import align, write_tum
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.writing import write_recording

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (path,) = write_runs(tmp_path_factory.mktemp('bags'), ('drive_circle', 1))
    return path


def _judge(bag: Path, folder: Path, capsys: Capture) -> dict[str, dict[str, float]]:
    """Judge a bag with TUM files into a folder; return the errors by quantity."""
    words = ('--config', 'clean', '--tum', '--out', folder, '--json')
    outcome = call(capsys, 'judge', bag, *words)
    assert outcome.status == 0, outcome.err
    (summary,) = json.loads(outcome.out)
    return {error['quantity']: error for error in summary['errors']}


def test_position_errors_follow_from_the_written_trajectories(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    """numpy reads both files; x and y count, as the judge is in two_d_mode."""
    errors = _judge(bag, tmp_path, capsys)
    truth, estimate = (
        np.loadtxt(tmp_path / f'{bag.name}_{part}.tum') for part in ('truth', 'estimate')
    )
    assert np.array_equal(truth[:, 0], estimate[:, 0])
    distance = np.linalg.norm((estimate - truth)[:, 1:3], axis=1)
    assert errors['position']['rmse'] == pytest.approx(np.sqrt(np.mean(distance**2)), abs=1e-8)
    assert errors['position']['maximum'] == pytest.approx(distance.max(), abs=1e-8)
    turned = Rotation.from_quat(truth[:, 4:]).inv() * Rotation.from_quat(estimate[:, 4:])
    degrees = np.degrees(turned.magnitude())
    assert errors['orientation']['mean'] == pytest.approx(degrees.mean(), abs=1e-5)


def test_velocity_errors_are_those_of_the_written_estimate(
    bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    """The body velocity of the CSV against the truth of the bag, interpolated by numpy."""
    errors = _judge(bag, tmp_path, capsys)
    rows = np.genfromtxt(tmp_path / f'{bag.name}.csv', delimiter=',', names=True)
    truth = read_recording(bag).truth
    assert truth is not None
    stamps = np.loadtxt(
        tmp_path / f'{bag.name}.csv', delimiter=',', skiprows=1, usecols=0, dtype=np.int64
    )
    inside = (stamps >= truth.stamp_ns[0]) & (stamps <= truth.stamp_ns[-1])
    time, true_time = (stamps[inside] - stamps[0], truth.stamp_ns - stamps[0])
    difference = [
        rows[name][inside] - np.interp(time, true_time, truth.linear_velocity[:, axis])
        for axis, name in enumerate(('vx', 'vy'))
    ]
    rmse = np.sqrt(np.mean(np.sum(np.square(difference), axis=0)))
    assert errors['velocity']['rmse'] == pytest.approx(rmse, rel=1e-6)
    assert errors['velocity']['samples'] == inside.sum()


@pytest.mark.parametrize('aligned', [False, True])
def test_position_errors_are_the_ape_of_evo(
    aligned: bool, bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    """`evo_ape tum truth.tum estimate.tum --project_to_plane xy`, with and without -a."""
    pytest.importorskip('evo', reason='evo is the oracle')
    from evo.core import metrics, sync
    from evo.core.trajectory import Plane
    from evo.tools import file_interface

    errors = _judge(bag, tmp_path, capsys)
    pair = [
        file_interface.read_tum_trajectory_file(str(tmp_path / f'{bag.name}_{part}.tum'))
        for part in ('truth', 'estimate')
    ]
    truth, estimate = sync.associate_trajectories(*pair)
    if aligned:
        estimate.align(truth)
    for trajectory in (truth, estimate):
        trajectory.project(Plane.XY)
    ape = metrics.APE(metrics.PoseRelation.translation_part)
    ape.process_data((truth, estimate))
    ours = errors['position, aligned' if aligned else 'position']
    for name, statistic in (('rmse', 'rmse'), ('mean', 'mean'), ('maximum', 'max')):
        assert ours[name] == pytest.approx(ape.get_all_statistics()[statistic], rel=1e-6), name


@pytest.mark.parametrize('dimensions', [2, 3])
def test_alignment_removes_a_rotation_and_a_shift(dimensions: int) -> None:
    """The rotation of scipy: exact positions return to the true ones, mirrored ones do not."""
    rng = np.random.default_rng(3)
    true = rng.normal(size=(20, dimensions))
    turn = Rotation.from_rotvec([0.0, 0.0, 2.0]).as_matrix()[:dimensions, :dimensions]
    assert align(true @ turn.T + 5.0, true) == pytest.approx(true, abs=1e-12)
    mirrored = true * np.r_[-1.0, np.ones(dimensions - 1)]
    assert np.abs(align(mirrored, true) - true).max() > 0.5


def test_stamps_of_tum_files_keep_their_nanoseconds(tmp_path: Path) -> None:
    stamp = 1_700_000_000_000_000_001
    write_tum(tmp_path / 'x.tum', np.array([stamp]), np.zeros((1, 3)), np.array([[0, 0, 0, 1.0]]))
    assert (tmp_path / 'x.tum').read_text().split()[0] == '1700000000.000000001'


def test_tum_files_need_a_truth(
    bag: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recording = read_recording(bag)
    messages = {
        topic: rows for topic, rows in recording.messages.items() if rows is not recording.truth
    }
    roles = {role: topic for role, topic in recording.roles.items() if role != 'truth'}
    recording = dataclasses.replace(recording, messages=messages, roles=roles)
    write_recording(recording, Path('blind'))
    check_refused(capsys, '--tum', 'judge', 'blind', '--tum', '--out', 'estimates')


FIXES_ONLY = """
import numpy as np
from sim2real_eval.judge import Estimate
from sim_sensors.world.geodesy import LocalFrame


class FixesOnly:
    def judge(self, recording):
        fixes = recording.gps
        frame = LocalFrame(fixes.latitude[0], fixes.longitude[0], fixes.altitude[0])
        position = np.asarray(frame.to_enu(fixes.latitude, fixes.longitude, fixes.altitude))
        velocity = np.gradient(position, fixes.stamp_ns / 1e9, axis=0)
        return Estimate(fixes.stamp_ns, velocity, position=position)
"""


def test_a_judge_without_orientation_has_the_axes_of_the_world(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first velocity, at rest, is noise: the truth must not be turned by its direction.

    Fixes of 1 cm: the error without alignment is at most that of the first fix and some
    centimetres; turned by a random angle it was metres.
    """
    monkeypatch.chdir(tmp_path)
    Path('fixes.py').write_text(FIXES_ONLY)
    motion = ('--motion', 'circle', '--set', 'heading=1.57', '--duration', '12')
    sensors = ('--gps', 'zed_f9p_rtk', '--imu', 'airsim')
    assert call(capsys, 'simulate', *motion, *sensors, '--out', 'bags').status == 0
    words = ('--judge', 'fixes.py:FixesOnly', '--json', '--out', 'estimates')
    outcome = call(capsys, 'judge', 'bags/circle_1', *words)
    assert outcome.status == 0, outcome.err
    (summary,) = json.loads(outcome.out)
    errors = {error['quantity']: error['rmse'] for error in summary['errors']}
    assert set(errors) == {'horizontal speed', 'position', 'position, aligned', 'velocity'}
    assert errors['horizontal speed'] < errors['velocity']
    assert errors['position, aligned'] < errors['position'] < 0.08
    assert errors['velocity'] < 0.5
