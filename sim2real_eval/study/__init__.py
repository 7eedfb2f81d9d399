# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Studies: real recordings times sensor models times judges, run, stored and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core import lazily

if TYPE_CHECKING:
    from .metric import Metric
    from .outcome import StudyOutcome
    from .plan import StudyPlan
    from .study_file import Overrides, StudyFile

__all__ = ['Metric', 'Overrides', 'StudyFile', 'StudyOutcome', 'StudyPlan']
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, __all__, 'plan', 'study_file', 'outcome', 'metric')
