# SPDX-License-Identifier: Apache-2.0
"""The tuned filter by the real node, once: that the file does there what it did in the search."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from sim2real_eval.benches import findings
from sim2real_eval.common.findings import Finding
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.series import speed
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.errors import Sim2RealError

_CLOSE = 1e-5
"""Largest difference of speed, m/s, of a node that is fed in lockstep."""


def node_check(judge: Judge, recording: Recording, heading: float | None) -> Finding | None:
    """Judge a recording by the node and by the embedded filter; return how far they differ.

    The node is that which the judge is; of the embedded judge, the one of robot_localization,
    where that and ROS are installed. None: there is no such node, or it cannot do what the
    set-up asks for.
    """
    if not isinstance(judge, JudgeSetup) or find_spec('rclpy') is None:
        return None
    from sim2real_eval.judge.external.graph import GraphJudgeSetup

    node: Judge = judge
    if not isinstance(judge, GraphJudgeSetup):
        try:
            node = GraphJudgeSetup.of(judge, 'robot_localization')
        except Sim2RealError:
            return None
    embedded = judge.started(start_heading=heading).batch_run(recording)
    try:
        real = node.judge(recording, start_heading=heading)
    except Sim2RealError as error:
        return findings.NODE_FAILS(recording.name, problem=str(error))
    _, mine, theirs = np.intersect1d(embedded.stamp_ns, real.stamp_ns, return_indices=True)
    if not len(mine):
        return findings.NODE_FAILS(recording.name, problem='no estimate at a time of the search')
    speeds = [
        speed(run.linear_velocity[rows], run.orientation[rows])
        for run, rows in ((embedded, mine), (real, theirs))
    ]
    difference = float(np.abs(speeds[0] - speeds[1]).max())
    kind = findings.NODE_AGREES if difference < _CLOSE else findings.NODE_DIFFERS
    return kind(recording.name, difference=difference, count=len(mine))
