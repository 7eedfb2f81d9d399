# SPDX-License-Identifier: Apache-2.0
"""Options that are derived from the real recordings of a study unless the user gives them."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.scores import STARTING_SPEED, is_slow
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import Twin, find_common_span
from sim2real_eval.simulation.twin_maker import median_rate
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import OdometryArray
from . import findings
from .judges import StudyJudge
from .options import StudyOptions
from .recordings import StudyRecording

OFF_TICKS_NS = 10_000
"""Delay of a judge whose ticks coincide with the stamps of fixes.

It is longer than the rounding of stamps and shorter than any waiting time.
"""

_WARMUP_S = 5.0
_WARMUP_SHARE = 0.25
"""Largest part of the shortest recording that the warm-up may take."""


def adapt_options(
    options: StudyOptions,
    recordings: Sequence[StudyRecording],
    twins: Sequence[Twin],
    judges: Sequence[StudyJudge],
) -> tuple[StudyOptions, list[Finding]]:
    """Derive options from the real recordings, where the user left them open.

    Only options that are named in `options.adapt` and have their default are changed. The result
    gives the same study again; its `adapt` names the options that each judge decides by itself.
    Stand-ins and recordings that cannot be read are ignored.

    Returns
    -------
    StudyOptions
    list of Finding
        One for each option that was changed.
    """
    names = options.adapts
    sources = (
        [recording for recording in recordings if isinstance(recording.origin, RecordingSource)]
        if names
        else []
    )
    # One recording at a time is in memory.
    properties = [_examine(recording, twins, judges) for recording in sources]
    real = [recording for recording in properties if recording is not None]
    metric, notes = _adapt_metric(
        options, [recording.truth for recording in real if recording.truth is not None]
    )
    options = dataclasses.replace(options, metric=metric)
    if 'match_rates' in names and not options.match_rates:
        matched = [note for recording in real for note in recording.rate_notes]
        notes += matched[:1]
        options = dataclasses.replace(options, match_rates=bool(matched))
    by_judge: list[str] = []
    labels = [judge.label for judge in judges]
    if 'start_heading' in names and not options.start_heading:
        affected = [
            label
            for label in labels
            if any(label in recording.without_heading for recording in real)
        ]
        if affected:
            notes.append(findings.START_HEADING(judges=', '.join(affected)))
            by_judge.append('start_heading')
    if 'off_ticks' in names and not options.off_ticks:
        affected = [
            label for label in labels if any(label in recording.on_ticks for recording in real)
        ]
        if affected:
            count = sum(bool(recording.on_ticks) for recording in real)
            notes.append(
                findings.OFF_TICKS(judges=', '.join(affected), count=count, total=len(real))
            )
            by_judge.append('off_ticks')
    return dataclasses.replace(options, adapt=','.join(by_judge) or 'none'), notes


def _adapt_metric(
    options: StudyOptions, truths: Sequence[_TruthProperties]
) -> tuple[MetricOptions, list[Finding]]:
    """Return metric options with rate and warm-up derived from the ground truths."""
    metric, default = options.metric, MetricOptions()
    notes = []
    rate = min((truth.rate or metric.rate for truth in truths), default=metric.rate)
    if 'rate' in options.adapts and metric.rate == default.rate and is_slow(rate, metric.rate):
        notes.append(findings.TRUTH_RATE(rate=rate, usual=metric.rate))
        metric = dataclasses.replace(metric, rate=rate)
    speeds = [truth.speed for truth in truths if truth.speed > STARTING_SPEED]
    if 'warmup' in options.adapts and metric.warmup == default.warmup and speeds:
        shortest = min(truth.duration for truth in truths)
        warmup = round(min(_WARMUP_S, _WARMUP_SHARE * shortest), 1)
        notes.append(findings.WARMUP(warmup=warmup, count=len(speeds), most=max(speeds)))
        metric = dataclasses.replace(metric, warmup=warmup)
    return metric, notes


def true_heading(truth: OdometryArray) -> float:
    """Return the initial yaw of a ground truth, radians from east."""
    return float(Rotation.from_quat(truth.orientation[0]).as_euler('xyz')[2])


class _TruthProperties(NamedTuple):
    """Properties of a true motion that options are derived from."""

    rate: float | None  # Hz
    speed: float  # initial speed, m/s
    duration: float  # s


class _RecordingProperties(NamedTuple):
    """Properties of a recording that options are derived from."""

    truth: _TruthProperties | None
    rate_notes: list[Finding]  # simulated sensors with another rate than the real ones
    without_heading: set[str]  # labels of judges that start with an arbitrary heading
    on_ticks: set[str]  # labels of judges on whose ticks fixes are stamped


def _examine(
    recording: StudyRecording, twins: Sequence[Twin], judges: Sequence[StudyJudge]
) -> _RecordingProperties | None:
    """Return the properties of a recording, or None if it cannot be read."""
    try:
        content = recording.read()
    except Sim2RealError:
        return None
    properties, on_ticks, truth = None, set[str](), content.truth
    if truth is not None and len(truth) > 1:
        speed = float(np.hypot(*truth.linear_velocity[0, :2]))
        duration = float((truth.stamp_ns[-1] - truth.stamp_ns[0]) * 1e-9)
        properties = _TruthProperties(median_rate(truth), speed, duration)
        with contextlib.suppress(Sim2RealError):
            start_ns, _ = find_common_span(content, truth)
            on_ticks = {
                judge.label
                for judge in judges
                if judge.setup.splits_fixes(content, start_ns, start_ns + OFF_TICKS_NS)
            }
    without = {judge.label for judge in judges if judge.setup.lacks_heading(content)}
    return _RecordingProperties(properties, _compare_rates(content, twins), without, on_ticks)


def _compare_rates(recording: Recording, twins: Sequence[Twin]) -> list[Finding]:
    """Return a finding for each simulated sensor with another rate than the real one."""
    notes = []
    for kind, real in (('gps', recording.gps), ('imu', recording.imu)):
        rate = median_rate(real)
        for twin in twins:
            model = twin.models.get(kind)
            if model is not None and rate is not None and model.rate != rate:
                notes.append(findings.MATCHED_RATES(real=rate, own=model.rate))
    return notes
