# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Magnetometers in recordings and their simulated twins, and `sim2real simulate --mag`."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, check_refused
from recording_examples import drive
from scipy.spatial.transform import Rotation

from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.simulation.twin import Twin, cut_to_span
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.magnetometer.magnetometer import load_mag
from sim_sensors.world.geodesy import LocalFrame
from sim_sensors.world.world import World, load_world

Capture = pytest.CaptureFixture[str]
MOTION = ('simulate', '--motion', 'circle', '--duration', '4', '--gps', 'baseline')


def test_a_broken_or_ambiguous_magnetometer_is_left_out(tmp_path: Path) -> None:
    """No judge reads it, so the recording is read without it."""
    good = drive()
    field = good.mag
    nothing = dataclasses.replace(field, magnetic_field=field.magnetic_field * np.nan)
    write_recording(good.with_messages('mag', nothing), tmp_path / 'broken')
    read = read_recording(tmp_path / 'broken')
    assert (read.mag, read.roles) == (None, {k: v for k, v in good.roles.items() if k != 'mag'})
    notes = [note for note in read.notes if note.subject == '/imu/mag']
    assert [note.code for note in notes] == ['recording.topic_left_out']
    late = dataclasses.replace(
        field, stamp_ns=field.stamp_ns + 10**12, arrival_ns=field.arrival_ns + 10**12
    )
    write_recording(good.with_messages('mag', late), tmp_path / 'late')
    assert len(read_recording(tmp_path / 'late').mag) == len(field)
    messages = {**good.messages, '/a': field, '/b': field}
    del messages['/imu/mag']
    roles = {role: topic for role, topic in good.roles.items() if role != 'mag'}
    write_recording(dataclasses.replace(good, messages=messages, roles=roles), tmp_path / 'two')
    assert read_recording(tmp_path / 'two').mag is None
    chosen = read_recording(tmp_path / 'two', topics={'mag': '/b'})
    assert chosen.roles['mag'] == '/b'


def test_a_magnetometer_in_the_frame_of_the_imu_has_its_lever_arm(tmp_path: Path) -> None:
    good = dataclasses.replace(drive(), transforms=())
    write_recording(good, tmp_path / 'line_3')
    path = tmp_path / 'line_3/recording.yaml'
    path.write_text(path.read_text() + 'lever_arms: {imu: [0.1, 0.2, 0.3]}\n')
    arms = {t.child: t.translation for t in read_recording(tmp_path / 'line_3').transforms}
    assert arms['imu_link'] == (0.1, 0.2, 0.3)


def fields(recording, world: World) -> np.ndarray:
    """The field of the world at the true poses of a recording whose truth has the same stamps."""
    truth = recording.truth
    assert recording.mag.stamp_ns.tolist() == truth.stamp_ns.tolist()
    return Rotation.from_quat(truth.orientation).inv().apply(world.magnetic_field(truth.position))


@pytest.mark.parametrize('storage', ['mcap', 'csv'])
def test_simulate_writes_the_field_of_the_world_along_the_motion(
    tmp_path: Path, capsys: Capture, storage: str
) -> None:
    line = (*MOTION, '--imu', 'ideal', '--mag', 'ideal', '--world', 'dipole_room')
    assert call(capsys, *line, '--storage', storage, '--out', tmp_path / storage).status == 0
    run = read_recording(tmp_path / storage / 'circle_1')
    world = load_world('dipole_room')
    assert run.roles['mag'] == '/imu/mag'
    np.testing.assert_allclose(run.mag.magnetic_field, fields(run, world), atol=1e-11)
    # The room is in Milan, with the gravity of Milan.
    assert run.gps.latitude[0] == pytest.approx(world.frame.latitude_deg, abs=1e-3)
    up = run.imu.linear_acceleration[:, 2]
    np.testing.assert_allclose(up, world.gravity, atol=1e-9)


def test_without_a_world_the_field_is_that_of_the_earth(tmp_path: Path, capsys: Capture) -> None:
    """--origin, then the place of the fixes, then the origin of a world file."""
    sydney = LocalFrame(-33.8568, 151.2153, 24.0)
    line = (*MOTION, '--imu', 'ideal', '--origin=-33.8568,151.2153,24')
    assert call(capsys, *line, '--mag', 'ideal', '--out', tmp_path / 'a').status == 0
    first = read_recording(tmp_path / 'a/circle_1')
    expected = fields(first, World(frame=sydney))
    np.testing.assert_allclose(first.mag.magnetic_field, expected, atol=1e-11)
    twin = ('simulate', tmp_path / 'a/circle_1', '--mag', 'ideal', '--world', 'default')
    assert call(capsys, *twin, '--out', tmp_path / 'b').status == 0
    again = read_recording(tmp_path / 'b/circle_1')
    np.testing.assert_allclose(again.mag.magnetic_field, expected, atol=1e-10)


def test_a_magnetometer_twin_has_the_mounting_and_start_of_the_real_one() -> None:
    """Mounted as the static transform of its frame says, and from its first stamp on."""
    good = drive(100)
    position = np.cumsum(np.full((50, 3), 0.01), axis=0)
    truth = dataclasses.replace(
        good.truth, position=position, orientation=np.tile([0.0, 0.0, 0.0, 1.0], (50, 1))
    )
    late = good.mag.take(slice(3, None))
    good = good.with_messages('truth', truth).with_messages('mag', late)
    world = load_world('dipole_room')
    maker = TwinMaker(good, seed=1, origin=world.frame, world=world)
    twin_recording = maker.make(Twin('a', None, None, {'mag': load_mag('ideal')}))
    assert twin_recording.mag.stamp_ns[0] == late.stamp_ns[0]
    assert twin_recording.mag.frame == 'imu_link'
    # Half of the stamps of 100 Hz are those of the truth.
    turn = Rotation.from_quat([0.0, 0.0, 0.6, 0.8])
    places = maker.truth.position[3:] + np.array([0.1, -0.2, 0.3])
    expected = turn.inv().apply(world.magnetic_field(places))
    same = np.isin(twin_recording.mag.stamp_ns, maker.truth.stamp_ns)
    np.testing.assert_allclose(twin_recording.mag.magnetic_field[same], expected, atol=1e-11)
    assert maker.make(Twin('b', None, None)).mag is maker.real.mag


def test_a_cut_without_field_measurements_has_no_magnetometer() -> None:
    good = drive(100)
    end = int(good.mag.stamp_ns[0])
    cut = cut_to_span(
        good.with_messages('mag', good.mag.take(slice(40, None))), 0, end + 300_000_000
    )
    assert cut.mag is None
    assert '/imu/mag' not in cut.messages


@pytest.mark.parametrize(
    'words',
    [('--mag', 'bmm15'), ('--mag', 'chrono'), ('--world', 'rom'), ('--world', 'gone.yaml')],
)
def test_a_wrong_magnetometer_or_world_is_refused(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, words: tuple[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    check_refused(capsys, words[1], *MOTION, *words, '--out', 'out')
