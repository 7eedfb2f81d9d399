# SPDX-License-Identifier: Apache-2.0
"""The embedded judge on many recordings at once."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Sequence

from sim2real_eval.judge.clock import ReplayOptions
from sim2real_eval.judge.configuration import FilterConfig
from sim2real_eval.judge.embedded import judge
from sim2real_eval.judge.errors import JudgeError
from sim2real_eval.judge.judged import JudgedRun
from sim2real_eval.judge.navsat_configuration import NavsatConfig
from sim2real_eval.recording import Recording

__all__ = ['judge_all']


def judge_all(
    recordings: Sequence[Recording],
    config: FilterConfig,
    navsat: NavsatConfig | None = None,
    case: ReplayOptions | None = None,
    *,
    threads: int | None = None,
) -> list[JudgedRun]:
    """Judge several recordings in threads; the compiled loop runs without the GIL.

    Every run gives the bits that `judge` gives. `workers.map_in_processes` serves judges that are
    nodes and recordings that are still to be read; threads share what is in memory.

    Parameters
    ----------
    recordings : sequence of Recording
    config, navsat, case
        As `judge` takes them.
    threads : int or None
        At least 1; None for one per processor.

    Returns
    -------
    list of JudgedRun
        In the order of the recordings.

    Raises
    ------
    JudgeError
        That of the first recording that the judge refuses; when `threads` is below 1.
    """
    count = os.cpu_count() or 1 if threads is None else threads
    if count < 1:
        raise JudgeError(f'threads: {count} is not allowed; must be at least 1')
    if count == 1 or len(recordings) < 2:
        return [judge(recording, config, navsat, case) for recording in recordings]
    with concurrent.futures.ThreadPoolExecutor(min(count, len(recordings))) as pool:
        runs = [pool.submit(judge, recording, config, navsat, case) for recording in recordings]
        try:
            return [run.result() for run in runs]
        finally:
            for run in runs:
                run.cancel()
