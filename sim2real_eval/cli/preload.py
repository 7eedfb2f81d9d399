# SPDX-License-Identifier: Apache-2.0
"""Imported once by the process that workers are forked from, so that they share what it loads.

The import loads the judge and judges 1 s of the paper's models, which compiles the loops or loads
them from the cache.
"""

from __future__ import annotations

import contextlib

from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.study.judges import StudyJudge
from sim2real_eval.study.options import PROFILE, StudyOptions
from sim2real_eval.study.plan import load_compiled
from sim2real_eval.study.study_file import StudyFile
from sim_sensors.core.errors import Sim2RealError
from .models import twins
from .output import logged

# An error is reported by the worker that needs what failed here.
with contextlib.suppress(Sim2RealError), logged():
    load_compiled(
        StudyFile(
            title='',
            options=StudyOptions(),
            recordings=(),
            twins=twins('paper', 'chrono'),
            judges=(StudyJudge(PROFILE, 'embedded', JudgeSetup.load(PROFILE)),),
        )
    )
