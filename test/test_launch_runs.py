# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""One run after another within one launch, with the real launch and small programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('launch_ros', reason='no ROS installation')

from launch import LaunchDescription, LaunchService
from launch.actions import ExecuteProcess

from sim2real_eval.ros_launch.nodes import ENDING_RUN, LaunchRun, LaunchRuns, fail_on_error


def run_all(
    tmp_path: Path, leader: str, other: str, last: str = 'pass', recorder: str = ''
) -> tuple[int, list[str], list[int]]:
    """Start three runs of small programs; return the status, their log and the runs begun."""
    log, numbers = tmp_path / 'log', []

    def process(code: str, number: int) -> Any:
        text = f'import time\nlog = open({str(log)!r}, "a", buffering=1)\n{code}'
        return ExecuteProcess(cmd=[sys.executable, '-c', text.format(number=number)])

    def make(number: int) -> LaunchRun:
        numbers.append(number)
        first, end = process(leader, number), process(last, number)
        keeper = process(recorder, number) if recorder else None
        processes = [process(other, number), *([keeper] if keeper else [])]

        return LaunchRun(first, [*processes, first], [end], keeper, lambda wrote: '')

    service = LaunchService(noninteractive=True)
    runs = LaunchRuns(make, [1, 2, 3], 0.1)
    service.include_launch_description(LaunchDescription(runs.actions()))
    status = service.run()
    return status, log.read_text().split() if log.exists() else [], numbers


# Waits until it is interrupted, and says so.
WAITING = """
try:
    log.write('begun\\n')
    time.sleep(600)
except KeyboardInterrupt:
    log.write('{number}-over\\n')
"""
MOVING = """
while not open(log.name).read().count('begun') >= {number}:
    time.sleep(0.02)
log.write('{number}-moved\\n')
"""


def test_a_run_begins_after_the_end_of_the_previous_run(tmp_path: Path) -> None:
    status, log, numbers = run_all(tmp_path, MOVING, WAITING, "log.write('{number}-last\\n')")
    assert status == 0
    assert numbers == [1, 2, 3]
    whole = ('begun', 'moved', 'last', 'over')
    expected = [f'{k}-{what}' for k in (1, 2, 3) for what in whole]
    assert [word.replace('begun', f'{k // 4 + 1}-begun') for k, word in enumerate(log)] == expected


@pytest.mark.parametrize(
    ('leader', 'other', 'last'),
    [
        ('raise SystemExit(3)', WAITING, 'pass'),
        ('time.sleep(600)', 'raise SystemExit(3)', 'pass'),
        ('pass', WAITING, 'raise SystemExit(3)'),
    ],
)
def test_a_motion_that_ends_early_ends_the_launch(
    tmp_path: Path, leader: str, other: str, last: str
) -> None:
    status, _, numbers = run_all(tmp_path, leader, other, last)
    assert status == 1
    assert numbers == [1]


# A process that ends on request after it has begun.
KEEPING = """
try:
    time.sleep(600)
except KeyboardInterrupt:
    raise SystemExit({status})
"""


@pytest.mark.parametrize(('status', 'ends'), [(0, 0), (2, 0), (3, 1)])
def test_a_recorder_that_fails_ends_the_launch(tmp_path: Path, status: int, ends: int) -> None:
    keeping = KEEPING.replace('{status}', str(status))
    moving = MOVING + 'time.sleep(0.5)\n'
    status, _, numbers = run_all(tmp_path, moving, WAITING, recorder=keeping)
    assert status == ends
    assert numbers == ([1] if ends else [1, 2, 3])


@pytest.mark.parametrize(('status', 'ending', 'ends'), [(0, '', 0), (2, '', 1), (2, 'true', 0)])
def test_a_failing_node_ends_the_launch_within_a_run(status: int, ending: str, ends: int) -> None:
    process = ExecuteProcess(
        cmd=[sys.executable, '-c', f'raise SystemExit({status})'], on_exit=fail_on_error
    )
    service = LaunchService(noninteractive=True)
    service.context.launch_configurations[ENDING_RUN] = ending
    service.include_launch_description(LaunchDescription([process]))
    assert service.run() == ends
