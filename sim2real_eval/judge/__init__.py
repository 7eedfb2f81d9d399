# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Judges, which estimate the velocity in a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .estimate import JudgedRun
    from .protocol import Estimate, Judge, JudgeRequest, load_judge
    from .setup import JudgeSetup, profiles

__all__ = [
    'Estimate',
    'Judge',
    'JudgeRequest',
    'JudgeSetup',
    'JudgedRun',
    'load_judge',
    'profiles',
]
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'protocol', 'estimate', 'setup')
