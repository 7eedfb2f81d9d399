# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Evaluation of simulated sensors: recordings, the robot_localization judge, VEPD and reports.

`import sim2real_eval as s2r` offers the names that a script needs, see docs/howto/python.md.
Further names are in the packages below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .api import (
        EvaluatedRun,
        MetricOptions,
        Recording,
        StudyOutcome,
        UncertaintyOptions,
        VepdResult,
        read_recording,
        run_judge,
        run_study,
        simulate,
        vepd,
        write_recording,
    )
    from .judge.protocol import Estimate

__all__ = [
    'Estimate',
    'EvaluatedRun',
    'MetricOptions',
    'Recording',
    'StudyOutcome',
    'UncertaintyOptions',
    'VepdResult',
    'read_recording',
    'run_judge',
    'run_study',
    'simulate',
    'vepd',
    'write_recording',
]
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'api', 'judge.protocol')
