# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Times at which the judge accepted its inputs, and long runs of rejections by a gate."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_examples import call
from judge_examples import imu, mask, odometry, parameter_file, recording, stamps

from sim2real_eval.judge.estimate import JudgedRun, PartCount
from sim2real_eval.judge.robot_localization.advice import part_advice
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim_sensors.core.measurements import PoseArray

Capture = pytest.CaptureFixture[str]
TIMES = stamps(20.0, 40.0)
SECONDS = (TIMES - TIMES[0]) * 1e-9
PART = PartCount('imu0 pose', 'imu', 9, 0, 0, 5, 4)


def refused(accepted: str, stamp_s: list[float] | None = None) -> Any:
    """Times of measurements that were accepted (1) or not (0), one a second."""
    is_accepted = np.array([flag == '1' for flag in accepted])
    stamp = 1.0 + np.arange(len(accepted)) if stamp_s is None else np.array(stamp_s)
    return PART.with_times((stamp * 1e9).astype(np.int64), stamp**2, is_accepted)


@pytest.mark.parametrize(
    ('accepted', 'last', 'run'),
    [
        ('1111', 4, None),
        ('1100010001', 10, (3, 5, 3)),
        ('110000100', 7, (3, 6, 4)),
        ('0000', None, (1, 4, 4)),
        ('0111', 4, (1, 1, 1)),
    ],
)
def test_the_longest_run_of_refusals_has_its_times(
    accepted: str, last: int | None, run: tuple[int, int, int] | None
) -> None:
    part = refused(accepted)
    assert part.last_fused_ns == (None if last is None else last * 10**9)
    refusal = part.longest_refusal
    if run is None:
        assert refusal is None
    else:
        first, end, count = run
        ends = first * 10**9, end * 10**9
        assert (refusal.start_ns, refusal.end_ns, refusal.measurements) == (*ends, count)
        assert refusal.distance == pytest.approx(first)


def test_a_measurement_that_is_compared_again_counts_by_its_last_comparison() -> None:
    """With a history, late messages make the filter repeat the corrections after them."""
    part = refused('1000111', [1, 2, 3, 4, 2, 3, 4])
    assert (part.last_fused_ns, part.longest_refusal) == (4 * 10**9, None)


def test_only_runs_of_five_messages_and_five_seconds_cause_findings() -> None:
    def codes(part: PartCount) -> list[str]:
        return [note.code for note in part_advice([part], 10**9)]

    assert codes(refused('1111110000011111111')) == []  # 4 s between the first and the last
    assert codes(refused('1111110000001111111')) == ['rl.refused_for']
    assert codes(refused('111100001', [1, 2, 3, 4, 8, 20, 40, 60, 61])) == []
    assert part_advice([refused('1111110000001111111')]) == []  # a live judge has no times


def with_lost_poses() -> tuple[dict[str, Any], Recording]:
    """Odometry that drifts through a gap of the poses, which the gate refuses ever after."""
    forward = np.array([1.0, 0.0, 0.0])
    wheels = odometry(TIMES, velocity=np.broadcast_to(1.05 * forward, (len(TIMES), 3)))
    seen = TIMES[(SECONDS < 10.0) | (SECONDS > 20.0)][1::4]
    position = ((seen - TIMES[0]) * 1e-9)[:, None] * forward
    n = len(seen)
    unit = np.broadcast_to([0.0, 0.0, 0.0, 1.0], (n, 4))
    poses = PoseArray(
        seen, seen, 'odom', position, unit, np.broadcast_to(4e-4 * np.eye(6), (n, 6, 6))
    )
    exact = dataclasses.replace(
        wheels, twist_covariance=np.broadcast_to(1e-4 * np.eye(6), (len(TIMES), 6, 6))
    )
    parameters = {
        'odom0': 'wheels', 'odom0_config': mask('vx', 'vy'),
        'pose0': 'tracker', 'pose0_config': mask('x', 'y'), 'pose0_rejection_threshold': 3.0,
        'process_noise_covariance': [1e-3] * 15, 'two_d_mode': True,
    }  # fmt: skip
    return parameters, recording({'wheels': exact, 'tracker': poses})


def with_slipping_wheels() -> tuple[dict[str, Any], Recording]:
    """Wheels that spin for 8 s, with a gate on their velocity."""
    forward = np.array([1.0, 0.0, 0.0])
    speed = np.where((SECONDS > 15.0) & (SECONDS < 23.0), 3.0, 1.0)
    wheels = odometry(TIMES, velocity=speed[:, None] * forward, variance=1e-3)
    drift = odometry(TIMES + 1, velocity=np.broadcast_to(forward, (len(TIMES), 3)))
    parameters = {
        'odom0': 'wheels', 'odom0_config': mask('vx'), 'odom0_twist_rejection_threshold': 4.0,
        'odom1': 'radar', 'odom1_config': mask('vx', 'vy'), 'two_d_mode': True,
    }  # fmt: skip
    return parameters, recording({'wheels': wheels, 'radar': drift})


def with_a_turned_compass() -> tuple[dict[str, Any], Recording]:
    """A heading that jumps by 0.8 rad for the rest of the run."""
    yaw = np.where(SECONDS > 25.0, 0.8, 0.0)
    parameters = {
        'imu0': 'imu', 'imu0_config': mask('yaw', 'vyaw'), 'imu0_pose_rejection_threshold': 5.0,
        'process_noise_covariance': [1e-5] * 15, 'two_d_mode': True,
    }  # fmt: skip
    return parameters, recording({'imu': imu(TIMES, yaw=yaw, frame='base_link')})


CASES = [
    (with_lost_poses, 'pose0 pose', 'pose0_rejection_threshold', 20.0, 40.0),
    (with_slipping_wheels, 'odom0 twist', 'odom0_twist_rejection_threshold', 15.0, 23.0),
    (with_a_turned_compass, 'imu0 pose', 'imu0_pose_rejection_threshold', 25.0, 40.0),
]


def judged_with(folder: Path, parameters: dict[str, Any], run: Recording) -> JudgedRun:
    setup = JudgeSetup.load(parameter_file(folder, parameters))
    return setup.try_gates(run, setup.judge(run))


@pytest.mark.parametrize(('make', 'name', 'gate', 'start', 'end'), CASES)
def test_a_long_refusal_is_told_with_its_times_and_a_threshold_that_helps(
    tmp_path: Path, make: Any, name: str, gate: str, start: float, end: float
) -> None:
    parameters, run = make()
    judged = judged_with(tmp_path, parameters, run)
    (note,) = [note for note in judged.notes if note.code == 'rl.refused_for']
    assert note.subject.startswith(name)
    first_s = (judged.stamp_ns[0] - TIMES[0]) * 1e-9
    assert note.numbers['start'] + first_s == pytest.approx(start, abs=0.3)
    assert note.numbers['end'] + first_s == pytest.approx(end, abs=0.3)
    assert note.numbers['longest'] == pytest.approx(end - start, abs=0.3)
    # What the action states, followed.
    stated = note.words['action'].partition(f'`{gate}: ')[2].partition('`')[0]
    again = judged_with(tmp_path, {**parameters, gate: float(stated)}, run)
    assert not [note for note in again.notes if note.code in ('rl.refused_for', 'rl.gated')]


def test_times_of_acceptance_are_in_the_output_of_judge(tmp_path: Path, capsys: Capture) -> None:
    parameters, run = with_lost_poses()
    write_recording(run, tmp_path / 'run')
    config = parameter_file(tmp_path, parameters)
    outcome = call(
        capsys, 'judge', tmp_path / 'run', '--config', config, '--out', tmp_path / 'e',
        '--json',
    )  # fmt: skip
    (summary,) = json.loads(outcome.out)
    wheels, poses = summary['parts']
    assert wheels['last_fused_ns'] == int(TIMES[-1])
    assert wheels['longest_refusal'] is None
    assert poses['last_fused_ns'] < TIMES[0] + 10 * 10**9
    refusal = poses['longest_refusal']
    assert (refusal['end_ns'] - refusal['start_ns']) * 1e-9 == pytest.approx(20.0, abs=0.3)
    (note,) = [note for note in summary['notes'] if note['code'] == 'rl.refused_for']
    assert 'pose0_rejection_threshold: ' in note['remedy']
