# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Lever arms of recording.yaml are used or refused, whatever frame the messages name."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from recording_examples import drive

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording


def read_with(folder: Path, settings: str, frames: dict[str, str] | None = None) -> Recording:
    """Recording without transforms whose messages name some frames, with a recording.yaml."""
    run = dataclasses.replace(drive(), transforms=())
    for role, frame in (frames or {}).items():
        run = run.with_messages(role, dataclasses.replace(run.require(role), frame=frame))
    write_recording(run, folder / 'line_3')
    (folder / 'line_3/recording.yaml').write_text(settings, encoding='utf-8')
    return read_recording(folder / 'line_3')


def place(run: Recording, role: str) -> list[float]:
    _, offset = FrameTree(run.transforms).lookup('base_link', run.require(role).frame, role)
    return offset.tolist()


def new_frames(run: Recording) -> dict[str, str]:
    return {
        note.subject: note.words['new']
        for note in run.notes
        if note.code == 'recording.separate_frame'
    }


@pytest.mark.parametrize('name', ['base_link', '/base_link'])
def test_a_sensor_stamped_with_the_base_frame_has_its_lever_arm(tmp_path: Path, name: str) -> None:
    run = read_with(tmp_path, 'lever_arms: {gps: [1.5, 0, 2.5]}\n', {'gps': name})
    assert place(run, 'gps') == [1.5, 0.0, 2.5]
    assert place(run, 'imu') == [0.0, 0.0, 0.0]
    assert new_frames(run) == {'/gps/fix': 'gps_link'}


def test_two_sensors_of_one_frame_have_their_own_lever_arms(tmp_path: Path) -> None:
    arms = 'lever_arms: {imu: [0.1, 0, 0], gps: [0, 0.2, 1]}\n'
    run = read_with(tmp_path, arms, {'gps': 'unit', 'imu': 'unit'})
    assert (place(run, 'imu'), place(run, 'gps')) == ([0.1, 0.0, 0.0], [0.0, 0.2, 1.0])
    assert len(new_frames(run)) == 1


def test_equal_lever_arms_of_one_frame_and_arms_of_zero_change_no_frame(tmp_path: Path) -> None:
    arms = 'lever_arms: {imu: [1, 0, 0], gps: [1, 0, 0], mag: [0, 0, 0]}\n'
    run = read_with(tmp_path, arms, {'gps': 'unit', 'imu': 'unit', 'mag': 'base_link'})
    assert new_frames(run) == {}
    assert (place(run, 'gps'), place(run, 'mag')) == ([1.0, 0.0, 0.0], [0.0, 0.0, 0.0])


def test_the_judge_uses_the_lever_arm_as_if_the_frame_were_another(tmp_path: Path) -> None:
    settings = 'lever_arms: {gps: [1.5, 0, 2.5]}\n'
    runs = [
        read_with(tmp_path / frame, settings, {'gps': frame, 'imu': 'base_link'})
        for frame in ('base_link', 'antenna')
    ]
    setup = JudgeSetup.load('clean')
    first, second = (setup.judge(run).position for run in runs)
    np.testing.assert_array_equal(first, second)
    plain = read_with(tmp_path / 'none', '{}\n', {'gps': 'base_link', 'imu': 'base_link'})
    assert np.abs(setup.judge(plain).position - first).max() > 0.1


@pytest.mark.parametrize(
    ('settings', 'key'),
    [
        ('lever_arms: {gps: [1.5, 0, 2.5]}\nframes: {gps: base_link}\n', 'lever_arms.gps'),
        ('lever_arms: {truth: [1.5, 0, 2.5]}\n', 'lever_arms.truth'),
        ('lever_arms: {features: [1.5, 0, 2.5]}\n', 'lever_arms.features'),
        (
            'transforms: [{parent: base_link, child: /base_link, translation: [1, 0, 0]}]\n',
            r'transforms\[0\].child',
        ),
    ],
)
def test_places_that_could_not_be_used_are_refused(
    tmp_path: Path, settings: str, key: str
) -> None:
    with pytest.raises(RecordingError, match=key):
        read_with(tmp_path, settings, {'gps': 'base_link'})
