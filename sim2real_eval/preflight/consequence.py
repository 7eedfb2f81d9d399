# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Consequence of corrections: the speed error of the judge as recorded, and corrected."""

from __future__ import annotations

import dataclasses

from sim2real_eval.judge.protocol import JudgeRequest, load_judge
from sim2real_eval.metrics.scores import score_run
from sim2real_eval.metrics.series import velocity_series
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import true_heading
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.core.errors import Sim2RealError
from .outcome import Preflight
from .remedies import NOT_PROPOSED, corrected_constants, corrected_recording, without

_PROFILE = 'clean'
_REASON = (
    f'{NOT_PROPOSED}with the corrections of this recording the speed error of the judge grows by '
    'more than a tenth'
)


def add_speed_errors(recording: Recording, result: Preflight, base_frame: str) -> Preflight:
    """Return a result with the speed errors of the judge, as recorded and corrected.

    Nothing is judged, and the result is unchanged, if there are no corrections or no truth.
    Corrections that increase the error of the judge are withheld.

    Parameters
    ----------
    recording : Recording
        Recording that was checked.
    result : Preflight
        Result with verified corrections.
    base_frame : str
        Body frame.
    """
    if recording.truth is None or not (result.changes or result.lever_arms):
        return result
    before = speed_error(recording, base_frame)
    after = speed_error(corrected_recording(recording, result), base_frame)
    if before is None or after is None:
        return result
    judged = dataclasses.replace(result, speed_errors=(before, after))
    if not judged.is_made_worse:
        return judged
    proposed = {
        constant: finding
        for finding in result.findings
        if not finding.withheld
        for constant in corrected_constants(finding)
    }
    refused = {*proposed.values()}
    return without(
        judged.with_findings(
            lambda finding: (
                dataclasses.replace(finding, withheld=_REASON) if finding in refused else finding
            )
        ),
        proposed,
    )


def speed_error(recording: Recording, base_frame: str) -> float | None:
    """Return the root mean square error of the horizontal speed that the judge estimates, m/s.

    The judge has the parameters of the profile `clean`, and starts with the true heading if
    the recording has none. None if it cannot judge the recording.
    """
    try:
        judge = load_judge(JudgeRequest('embedded', config=_PROFILE))
        maker = TwinMaker(recording, seed=0, base_frame=base_frame)
        heading = true_heading(maker.truth) if judge.lacks_heading(maker.real) else None
        judged = judge.judge(maker.real, start_ns=maker.start_ns, start_heading=heading)
        series = velocity_series(
            judged, maker.truth, origin_ns=maker.start_ns, name=recording.name
        )
        return score_run(series).rmse
    except Sim2RealError:
        return None
