# SPDX-License-Identifier: Apache-2.0
"""Options that follow from the real recordings of a study, unless they are given."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.scores import STARTING_SPEED, is_slow
from sim2real_eval.recording.reading import Source
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.spans import common_span
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import median_rate
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray, OdometryArray
from . import findings
from .judges import StudyJudge
from .options import StudyOptions
from .recordings import StudyRecording

_WARMUP_S = 5.0
_MOST = 0.25  # of the shortest recording


def adapted(
    options: StudyOptions,
    recordings: Sequence[StudyRecording],
    twins: Sequence[Twin],
    judges: Sequence[StudyJudge],
) -> tuple[StudyOptions, list[Finding]]:
    """Return the options in force, and what was set as the real recordings demand.

    Only what is in `options.adapt` and as declared is set. The result holds plain values, so that
    it gives the same study again; of `adapt` what is decided judge by judge is left, if anything.

    Stand-ins are made as the study says: nothing is adapted to them. A recording that cannot be
    read does not count; it fails in its turn.
    """
    names = options.adapts
    sources = [one for one in recordings if isinstance(one.origin, Source)] if names else []
    # One is in memory at a time.
    real = [known for one in sources if (known := _known(one, twins, judges)) is not None]
    told: list[Finding] = []
    metric, declared = options.metric, MetricOptions()
    truths = [one.truth for one in real if one.truth is not None]
    rate = min((one.rate or metric.rate for one in truths), default=metric.rate)
    if 'rate' in names and metric.rate == declared.rate and is_slow(rate, metric.rate):
        told.append(findings.TRUTH_RATE(rate=rate, usual=metric.rate))
        metric = dataclasses.replace(metric, rate=rate)
    fast = [one.speed for one in truths if one.speed > STARTING_SPEED]
    if 'warmup' in names and metric.warmup == declared.warmup and fast:
        warmup = round(min(_WARMUP_S, _MOST * min(one.duration for one in truths)), 1)
        told.append(findings.WARMUP(warmup=warmup, count=len(fast), most=max(fast)))
        metric = dataclasses.replace(metric, warmup=warmup)
    options = dataclasses.replace(options, metric=metric)
    left = list[str]()
    if 'match_rates' in names and not options.match_rates:
        matched = [note for one in real for note in one.rates]
        told += matched[:1]
        options = dataclasses.replace(options, match_rates=bool(matched))
    if 'start_heading' in names and not options.start_heading:
        blind = [judge.label for judge in judges if any(judge.label in one.blind for one in real)]
        if blind:
            told.append(findings.START_HEADING(judges=', '.join(blind)))
            left.append('start_heading')
    if 'off_ticks' in names and not options.off_ticks:
        split = [judge.label for judge in judges if any(judge.label in one.split for one in real)]
        if split:
            count = sum(bool(one.split) for one in real)
            about = {'count': count, 'total': len(real)}
            told.append(findings.OFF_TICKS(judges=', '.join(split), **about))
            left.append('off_ticks')
    return dataclasses.replace(options, adapt=','.join(left) or 'none'), told


def lacks_heading(judge: Judge, recording: Recording) -> bool:
    """Return whether a judge starts with an arbitrary heading, for want of an orientation."""
    lacks = getattr(judge, 'lacks_heading', None)
    return lacks is not None and bool(lacks(recording))


OFF_TICKS_NS = 10_000
"""How much later a judge starts whose ticks fixes are stamped on: more than stamps are rounded by,
and less than any wait.
"""


def splits_fixes(judge: Judge, recording: Recording, start_ns: int) -> bool:
    """Return whether rounding decides on which side of a judge's ticks fixes arrive, and a late
    start mends it.
    """
    splits = getattr(judge, 'splits_fixes', None)
    return splits is not None and bool(splits(recording, start_ns, start_ns + OFF_TICKS_NS))


def true_heading(truth: OdometryArray) -> float:
    """Return the yaw with which a truth begins, radians from east."""
    return float(Rotation.from_quat(truth.orientation[0]).as_euler('xyz')[2])


class _Truth(NamedTuple):
    """Of a true motion."""

    rate: float | None  # Hz
    speed: float  # at its beginning, m/s
    duration: float  # s


class _Known(NamedTuple):
    """What options may follow from of a recording."""

    truth: _Truth | None
    rates: list[Finding]
    blind: set[str]  # labels of judges without a heading
    split: set[str]  # labels of judges on whose ticks fixes are stamped


def _known(
    recording: StudyRecording, twins: Sequence[Twin], judges: Sequence[StudyJudge]
) -> _Known | None:
    try:
        one = recording.read()
    except Sim2RealError:
        return None
    truth, split = None, set[str]()
    if one.truth is not None and len(one.truth) > 1:
        speed = float(np.hypot(*one.truth.linear_velocity[0, :2]))
        truth = _Truth(median_rate(one.truth), speed, _duration(one.truth))
        with contextlib.suppress(Sim2RealError):
            start_ns, _ = common_span(one, one.truth)
            split = {each.label for each in judges if splits_fixes(each.setup, one, start_ns)}
    blind = {judge.label for judge in judges if lacks_heading(judge.setup, one)}
    return _Known(truth, _rates(one, twins), blind, split)


def _rates(recording: Recording, twins: Sequence[Twin]) -> list[Finding]:
    """Say which simulated sensors have another rate than the real ones."""
    told = []
    for kind, real in (('gps', recording.gps), ('imu', recording.imu)):
        rate = median_rate(real)
        for twin in twins:
            model = twin.models.get(kind)
            if model is not None and rate is not None and model.rate != rate:
                told.append(findings.MATCHED_RATES(real=rate, own=model.rate))
    return told


def _duration(truth: OdometryArray) -> float:
    stamps: FloatArray = (truth.stamp_ns - truth.stamp_ns[0]) * 1e-9
    return float(stamps[-1])
