# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Roles of topics, and findings about roles without a topic."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recording_examples import drive

from sim2real_eval import run_judge, simulate
from sim2real_eval.benches.following import waypoints_of
from sim2real_eval.characterization.standstill_fixes import standing_runs
from sim2real_eval.common.findings import JudgeError, RecordingError
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.preflight.checks import check
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.signals.comparison import compare_signals
from sim2real_eval.study.run import RunKey
from sim2real_eval.study.run_plan import Judging, RunPlan
from sim_sensors import motion_of


def reread(recording: Recording, folder: Path) -> Recording:
    write_recording(recording, folder / 'run', storage='mcap')
    # It would name the topics.
    (folder / 'run' / 'recording.yaml').unlink(missing_ok=True)
    return read_recording(folder / 'run')


def without_fixes() -> Recording:
    good = drive()
    return good.with_messages('gps', good.require('gps').take(slice(0)))


def test_an_empty_fix_topic_is_refused_by_name(tmp_path: Path) -> None:
    """The rest of the recording is used; a judge of fixes names the topic and the reason."""
    recording = reread(without_fixes(), tmp_path)
    empty = [note.subject for note in recording.notes if note.code == 'recording.role_left_out']
    assert empty == ['/gps/fix']
    with pytest.raises(JudgeError, match='/gps/fix'):
        run_judge(recording)


def test_the_role_of_an_empty_topic_is_given_to_the_only_other_candidate(tmp_path: Path) -> None:
    """Unless it is asked for by name."""
    bare = without_fixes()
    messages = {**bare.messages, '/ublox/fix': drive().require('gps')}
    roles = {role: topic for role, topic in bare.roles.items() if role != 'gps'}
    both = dataclasses.replace(bare, messages=messages, roles=roles)
    recording = reread(both, tmp_path)
    assert recording.roles['gps'] == '/ublox/fix'
    with pytest.raises(RecordingError, match='/gps/fix: no messages'):
        read_recording(recording.path, topics={'gps': '/gps/fix'})


def test_the_error_about_a_missing_truth_names_candidates(tmp_path: Path) -> None:
    good = drive()
    poses = dataclasses.replace(good, notes=(), ignored=('/tf (tf2_msgs/msg/TFMessage)',))
    bare = poses.with_messages('truth', None)
    (tmp_path / 'run.tum').write_text('1 0 0 0 0 0 0 1\n2 0 0 0 0 0 0 1\n')
    bare = dataclasses.replace(bare, path=str(tmp_path / 'run'))
    with pytest.raises(RecordingError, match=r'/pose, /tf:PARENT\.CHILD, run\.tum'):
        bare.require('truth')


def test_results_of_a_run_do_not_depend_on_topic_names() -> None:
    """A filter that subscribes to imu/data hears the only IMU, whatever it is called."""
    values = []
    for name in ('/imu/data', '/vectornav/imu'):
        good = drive()
        topics = {'/imu/data': name}
        messages = {topics.get(key, key): array for key, array in good.messages.items()}
        roles = {**good.roles, 'imu': name}
        renamed = dataclasses.replace(good, messages=messages, roles=roles, ros_types={})
        plan = RunPlan(renamed, (), Judging(judge := JudgeSetup.load('clean')))
        judged = plan.judge(plan.real)
        key = RunKey('clean', 'run', 'real', 1)
        run, _ = plan.evaluate(plan.real, judge, plan.maker.real, judged, key, '')
        values.append(run.values)
    assert 'nis_imu' in values[0]
    assert values[0] == values[1]


def test_a_truth_of_tf_needs_two_frames(tmp_path: Path) -> None:
    write_recording(drive(), tmp_path / 'run', storage='mcap')
    with pytest.raises(RecordingError, match='truth: /tf'):
        read_recording(tmp_path / 'run', topics={'truth': '/tf'})


USERS: dict[str, Callable[[Recording], Any]] = {
    'judge': lambda run: run_judge(run, 'clean').score.rmse,
    'waypoints': lambda run: waypoints_of(run, 'gps')[0].x.tolist(),
    'compare': lambda run: [row.real.rmse for row in compare_signals([run], [run]).rows],
    'check': lambda run: [finding.code for finding in check(run).findings],
}


def _of_status(recording: Recording, status: int) -> Recording:
    states = np.full(len(recording.gps), status)
    return recording.with_messages('gps', dataclasses.replace(recording.gps, status=states))


@pytest.mark.parametrize('name', USERS)
def test_fixes_of_unknown_status_count_as_valid(name: str) -> None:
    drive = simulate(motion_of('circle', duration=60.0), gps='ch_gauss', imu='ideal', seed=1)
    unknown, valid = (USERS[name](_of_status(drive, status)) for status in (-2, 0))
    assert unknown == valid


def test_a_receiver_is_characterised_from_fixes_of_unknown_status() -> None:
    motion = motion_of('standstill', duration=120.0)
    standstill = simulate(motion, gps='ch_gauss', imu='ideal', seed=1)
    unknown, valid = (standing_runs(_of_status(standstill, status))[0][0] for status in (-2, 0))
    np.testing.assert_array_equal(unknown.error, valid.error)
