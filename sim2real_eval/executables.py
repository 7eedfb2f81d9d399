# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Executables of the nodes, which report a missing ROS in one line."""

from __future__ import annotations

from sim_sensors.executables import run_node


def evaluation_node() -> int:
    """Run evaluation_node."""
    return run_node('sim2real_eval.ros.evaluation_node')


def judge_node() -> int:
    """Run judge_node."""
    return run_node('sim2real_eval.ros.judge_node')
