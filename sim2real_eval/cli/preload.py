# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Modules that the fork server imports once for all workers.

The import loads Matplotlib and the judge, and judges 1 s of the paper's models. This compiles the
loops or loads them from the cache.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.report import study_plots as study_plots
from sim2real_eval.study.options import PROFILE, StudyOptions
from sim2real_eval.study.plan import load_compiled
from sim2real_eval.study.study_file import StudyFile
from sim2real_eval.study.variants import StudyJudge
from sim_sensors.core.errors import Sim2RealError
from .output import log_to_stderr
from .sensors import twins

_INTERVAL_S = 0.2


@contextlib.contextmanager
def _ending_with_parent() -> Iterator[None]:
    """End this process when its parent ends during the block, which may compile for a minute."""
    parent, is_loaded = os.getppid(), threading.Event()

    def watch() -> None:
        while not is_loaded.wait(_INTERVAL_S):
            if os.getppid() != parent:
                os._exit(1)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        # No thread may run when workers are forked.
        is_loaded.set()
        thread.join()


# The worker that needs the failed part reports the error.
with contextlib.suppress(Sim2RealError), log_to_stderr(), _ending_with_parent():
    load_compiled(
        StudyFile(
            title='',
            options=StudyOptions(),
            recordings=(),
            twins=twins('paper', 'chrono'),
            judges=(StudyJudge(PROFILE, 'embedded', JudgeSetup.load(PROFILE)),),
        )
    )
