# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The judge publishes the same bits for any division of a recording into spans."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from judge_examples import filter_config, mask, navsat_config, odometry, recording, stamps
from live_examples import batch_bits, curve, everything

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.robot_localization import embedded, inputs
from sim2real_eval.judge.robot_localization.embedded import judge


def blocks_of(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (inputs, embedded):
        monkeypatch.setattr(module, 'BLOCK', count)


def assert_same(actual: JudgedRun, expected: JudgedRun) -> None:
    assert batch_bits(actual) == batch_bits(expected)
    for field in dataclasses.fields(expected.corrections):
        values = (getattr(run.corrections, field.name) for run in (actual, expected))
        np.testing.assert_array_equal(*values)


@pytest.mark.parametrize('smooth', [False, True], ids=['as they come', 'with history'])
def test_a_run_processed_in_spans_gives_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, smooth: bool
) -> None:
    """Messages arrive late and out of order, and some arrive at one time."""
    more = {'smooth_lagged_data': True, 'history_length': 0.5} if smooth else {}
    run, navsat = curve(), navsat_config(tmp_path)
    random = np.random.default_rng(3)
    late = {
        topic: dataclasses.replace(
            array, arrival_ns=array.stamp_ns + random.integers(0, 4, len(array)) * 10_000_000
        )
        for topic, array in run.messages.items()
    }
    run = dataclasses.replace(run, messages=late)
    config = everything(tmp_path, **more)
    whole = judge(run, config, navsat)
    for count in (1, 37, 200):
        blocks_of(count, monkeypatch)
        assert_same(judge(run, config, navsat), whole)


@pytest.mark.parametrize('beyond', [1, 2])
def test_a_last_span_with_one_message_gives_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beyond: int
) -> None:
    """A span also corrects measurements that waited from the span before."""
    config = filter_config(tmp_path, odom0='odom', odom0_config=mask('vx', 'vyaw'))
    run = recording({'odom': odometry(stamps(100.0, (800 + beyond) / 100.0))})
    whole = judge(run, config, None)
    blocks_of(100, monkeypatch)
    assert_same(judge(run, config, None), whole)
