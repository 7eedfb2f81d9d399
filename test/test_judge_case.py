# SPDX-License-Identifier: Apache-2.0
"""case.yaml: the order of delivery, the clock and the topics of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from judge_examples import write

from sim2real_eval.judge.clock import Case, Clock
from sim_sensors.errors import ParameterError

CASE = """
node: ekf_node
inputs:
  b.csv.gz: {topic: /second, type: nav_msgs/Odometry}
  a.csv.gz: {topic: first/, type: sensor_msgs/Imu}
clock:
  start_ns: 5
  hz: 500
  period_ns: 2000000
  filter_timer_origin_ns: 6
  filter_timer_period_ns: 28571428
  navsat_timer_origin_ns: 7
  navsat_timer_period_ns: 100000000
  run_on_ns: 8
navsat: {fix: /fix, imu: null}
"""


def test_case_file_states_delivery_order_clock_and_topics(tmp_path: Path) -> None:
    assert Case.from_file(write(tmp_path, CASE)) == Case(
        clock=Clock(5, 2_000_000, 6, 28_571_428, 7, 100_000_000, 8),
        topics=('second', 'first'),
        fix='fix',
        heading='',
    )
    assert Case.from_file(write(tmp_path, 'navsat: null')) == Case()


@pytest.mark.parametrize(
    ('text', 'key'),
    [
        ('', ''),
        ('[1]', ''),
        ('node: navsat_node', 'node'),
        ('clocks: {}', 'clocks'),
        ('clock: 3', 'clock'),
        ('clock: {start: 3}', 'clock.start'),
        ('clock: {start_ns: 1.5}', 'clock.start_ns'),
        ('clock: {start_ns: -1}', 'clock.start_ns'),
        ('clock: {start_ns: true}', 'clock.start_ns'),
        ('clock: {start_ns: 10000000000000000000}', 'clock.start_ns'),
        ('clock: {period_ns: 0}', 'clock.period_ns'),
        ('clock: {filter_timer_period_ns: 0}', 'clock.filter_timer_period_ns'),
        ('inputs: [a]', 'inputs'),
        ('inputs: {a.csv: /imu}', 'inputs.a.csv'),
        ('inputs: {a.csv: {type: x}}', 'inputs.a.csv.topic'),
        ('navsat: {fixes: /fix}', 'navsat.fixes'),
        ('navsat: {fix: 3}', 'navsat.fix'),
    ],
)
def test_wrong_case_file_is_refused_with_its_key(tmp_path: Path, text: str, key: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ParameterError) as error:
        Case.from_file(path)
    assert error.value.key == key
    assert error.value.where == str(path)
    assert '\n' not in str(error.value)
