# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""case.yaml: the order of delivery, the clock and the topics of a run."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from judge_examples import write

from sim2real_eval.judge.robot_localization.replay_options import Clock, Options, ReplayOptions
from sim2real_eval.recording.recording import StaticTransform
from sim_sensors.core.errors import ParameterError

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


def test_a_case_file_sets_delivery_order_clock_and_topics(tmp_path: Path) -> None:
    assert ReplayOptions.from_file(write(tmp_path, CASE)) == ReplayOptions(
        clock=Clock(5, 2_000_000, 6, 28_571_428, 7, 100_000_000, 8),
        topics=('second', 'first'),
        fix='fix',
        heading='',
    )
    assert ReplayOptions.from_file(write(tmp_path, 'navsat: null')) == ReplayOptions()


@pytest.mark.parametrize(
    ('text', 'key'),
    [
        ('', ''),
        ('node: navsat_node', 'node'),
        ('clocks: {}', 'clocks'),
        ('clock: {start_ns: 1.5}', 'clock.start_ns'),
        ('clock: {period_ns: 0}', 'clock.period_ns'),
        ('clock: {filter_timer_period_ns: 0}', 'clock.filter_timer_period_ns'),
        ('inputs: {a.csv: {type: x}}', 'inputs.a.csv.topic'),
        ('navsat: {fixes: /fix}', 'navsat.fixes'),
        ('navsat: {fix: 3}', 'navsat.fix'),
        ('correct: [gravy]', 'correct'),
        ('latency: {imu: -0.1}', 'latency.imu'),
        ('latency: {imu: 1e7}', 'latency.imu'),
        ('front_end: utm', 'front_end'),
    ],
)
def test_a_wrong_case_file_is_refused_with_its_key(tmp_path: Path, text: str, key: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ParameterError) as error:
        ReplayOptions.from_file(path)
    assert error.value.key == key
    assert error.value.where == str(path)
    assert '\n' not in str(error.value)


def test_options_replace_those_of_the_case(tmp_path: Path) -> None:
    mounting = '- {parent: base_link, child: imu, translation: [1, 0, 0]}'
    (tmp_path / 'mounting.yaml').write_text(mounting)
    text = (
        'node: ukf_node\ncorrect: [unscented, gravity]\nlatency: {/imu: 0.25, gps/fix/: 1}\n'
        'transforms: mounting.yaml\nfront_end: enu\n'
    )
    case = ReplayOptions.from_file(write(tmp_path, text))
    assert case.correct == {'gravity', 'unscented'}
    assert case.latency_ns == {'gps/fix': 1_000_000_000, 'imu': 250_000_000}
    assert case.transforms.transforms == (StaticTransform('base_link', 'imu', (1.0, 0.0, 0.0)),)
    assert case.settings()['transforms'] == {
        'name': 'mounting.yaml',
        'sha256': hashlib.sha256(mounting.encode()).hexdigest(),
    }
    assert Options().override(case) == case
    latency = {'imu': 0, 'odom': 5}
    settings = Options(unscented=False, correct=frozenset(), latency_ns=latency).override(case)
    assert not settings.unscented
    assert not settings.correct
    assert settings.latency_ns == {'gps/fix': 1_000_000_000, 'imu': 0, 'odom': 5}
    assert (settings.transforms, settings.front_end) == (case.transforms, 'enu')
