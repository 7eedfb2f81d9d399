# SPDX-License-Identifier: Apache-2.0
"""Roles of topics, and findings about roles without a topic."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from recording_examples import drive

from sim2real_eval import run_judge
from sim2real_eval.common.findings import JudgeError, RecordingError
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.preflight.checks import check
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.study.outcome import RunKey
from sim2real_eval.study.run_plan import Judging, RunPlan


def reread(recording: Recording, folder: Path) -> Recording:
    write_recording(recording, folder / 'run', storage='mcap')
    # It would name the topics.
    (folder / 'run' / 'recording.yaml').unlink(missing_ok=True)
    return read_recording(folder / 'run')


def without_fixes() -> Recording:
    good = drive()
    return good.with_messages('gps', good.require('gps').take(slice(0)))


def test_what_needs_a_topic_without_messages_says_so(tmp_path: Path) -> None:
    """The rest of the recording is used; a judge of fixes names the topic and the reason."""
    recording = reread(without_fixes(), tmp_path)
    empty = [note.subject for note in recording.notes if note.code == 'recording.role_left_out']
    assert empty == ['/gps/fix']
    with pytest.raises(JudgeError, match=r'none: /gps/fix \(no messages\)'):
        run_judge(recording)
    missing = [finding for finding in check(recording).findings if finding.code == 'check.missing']
    assert ['/gps/fix (no messages)' in finding.problem for finding in missing] == [True]


def test_an_empty_topic_leaves_its_role_to_the_only_other_one(tmp_path: Path) -> None:
    """Unless it is asked for by name."""
    bare = without_fixes()
    messages = {**bare.messages, '/ublox/fix': drive().require('gps')}
    roles = {role: topic for role, topic in bare.roles.items() if role != 'gps'}
    both = dataclasses.replace(bare, messages=messages, roles=roles)
    recording = reread(both, tmp_path)
    assert recording.roles['gps'] == '/ublox/fix'
    with pytest.raises(RecordingError, match='/gps/fix: no messages'):
        read_recording(recording.path, topics={'gps': '/gps/fix'})


def test_what_may_be_the_truth_is_named_where_there_is_none(tmp_path: Path) -> None:
    good = drive()
    poses = dataclasses.replace(good, notes=(), ignored=('/tf (tf2_msgs/msg/TFMessage)',))
    bare = poses.with_messages('truth', None)
    (tmp_path / 'run.tum').write_text('1 0 0 0 0 0 0 1\n2 0 0 0 0 0 0 1\n')
    bare = dataclasses.replace(bare, path=str(tmp_path / 'run'))
    pattern = r'/pose, /tf:PARENT\.CHILD, run\.tum may be it\); name one by --topic truth='
    with pytest.raises(RecordingError, match=pattern):
        bare.require('truth')
    (missing,) = [finding for finding in check(bare).findings if finding.code == 'check.missing']
    assert missing.problem.endswith('/tf:PARENT.CHILD, run.tum')


def test_numbers_of_a_run_do_not_depend_on_the_name_of_a_topic() -> None:
    """A filter that subscribes to imu/data hears the only IMU, whatever it is called."""
    values = []
    for name in ('/imu/data', '/vectornav/imu'):
        good = drive()
        messages = {
            name if key == '/imu/data' else key: array for key, array in good.messages.items()
        }
        renamed = dataclasses.replace(
            good, messages=messages, roles={**good.roles, 'imu': name}, ros_types={}
        )
        plan = RunPlan(renamed, (), Judging(judge := JudgeSetup.load('clean')))
        judged = plan.judge(plan.real)
        key = RunKey('clean', 'run', 'real', 1)
        run, _ = plan.kept(plan.real, judge, plan.maker.real, judged, key, '')
        values.append(run.values)
    assert 'nis_imu' in values[0]
    assert values[0] == values[1]


def test_a_truth_of_tf_needs_two_frames(tmp_path: Path) -> None:
    write_recording(drive(), tmp_path / 'run', storage='mcap')
    with pytest.raises(RecordingError, match=r'truth: /tf is not allowed; .* /tf:map.base_link'):
        read_recording(tmp_path / 'run', topics={'truth': '/tf'})
