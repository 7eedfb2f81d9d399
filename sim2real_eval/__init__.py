# SPDX-License-Identifier: Apache-2.0
"""Judges simulated sensors: recordings, the robot_localization judge, VEPD and its reports.

`import sim2real_eval as s2r` shows what a script needs, see docs/howto/python.md; each folder
shows the names of its own.
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

__all__ = [
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
    __getattr__, __dir__ = lazily(__name__, __all__, 'api')
