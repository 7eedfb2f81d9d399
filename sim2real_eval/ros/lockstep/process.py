# SPDX-License-Identifier: Apache-2.0
"""A judge node as a child process that never outlives its parent."""

from __future__ import annotations

JUDGES = ('judge_node', 'robot_localization')
"""Kinds of judge nodes: ours, and ekf_node of robot_localization."""


class JudgeProcess:
    """See the issue; being written."""
