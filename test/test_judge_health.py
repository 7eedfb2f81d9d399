# SPDX-License-Identifier: Apache-2.0
"""Diagnostics of judge_node."""

from __future__ import annotations

import math

import pytest

pytest.importorskip('diagnostic_msgs', reason='no ROS')

from sim2real_eval.judge.robot_localization.configuration import FilterConfig
from sim2real_eval.judge.robot_localization.live import LiveJudge
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.ros.judge_node import JudgeHealth
from sim_sensors.core.shipped import config_path


def test_diagnostics_have_the_heading_of_the_newest_estimate_in_degrees() -> None:
    config = FilterConfig.from_file(config_path('judge', 'clean.yaml'))
    health = JudgeHealth('/judge', LiveJudge(config, None, FrameTree((), assume_identity=True)))

    def values() -> dict[str, str]:
        return {pair.key: pair.value for pair in health.status({}).values}

    assert 'heading [deg]' not in values()
    health.count_estimate((0.0, 0.0, math.sin(0.4), math.cos(0.4)))
    health.count_estimate((0.0, 0.0, -math.sin(math.radians(15)), math.cos(math.radians(15))))
    assert values()['heading [deg]'] == '-30.0'
    assert values()['published'] == '2'
