# SPDX-License-Identifier: Apache-2.0
"""How wrong a judge is in each window of a recording: what tuning makes small."""

from __future__ import annotations

import numpy as np

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.protocol import Judge
from sim2real_eval.metrics.consistency import judged_world, known_axes
from sim2real_eval.metrics.series import speed
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import truth_at
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray
from sim_sensors.core.rotations import heading


def losses(
    kind: str,
    judge: Judge,
    recording: Recording,
    truth: OdometryArray | None,
    judged: JudgedRun,
    edges: IntArray,
) -> FloatArray:
    """Return the loss of one of `options.KINDS` in each window; NaN where a window has nothing.

    Parameters
    ----------
    truth : OdometryArray or None
        Of the base frame; None: only the likelihood can be had.
    edges : (w + 1,) int64
        Ends of the windows, ns.

    Raises
    ------
    JudgeError
        For an estimate that is not a number.

    Notes
    -----
    The likelihood is that of every measurement, refused ones included, given those before it:
    half of log det S + NIS, averaged over measurements ([BarShalom2001], section 5.4).
    """
    if told := judged.diverged:
        raise JudgeError(f'{recording.name}: {told[0]}')
    if not len(judged):
        raise JudgeError(f'{recording.name}: the judge published no estimate')
    if kind == 'likelihood':
        seen = judged.corrections
        if seen.determinant is None:
            return np.full(len(edges) - 1, np.nan)
        with np.errstate(divide='ignore'):
            values = 0.5 * (seen.nis + np.log(seen.determinant))
        return _means(seen.stamp_ns, values, edges)
    assert truth is not None
    stamps = judged.stamp_ns
    inside = (stamps >= truth.stamp_ns[0]) & (stamps <= truth.stamp_ns[-1])
    stamps = stamps[inside]
    if kind == 'speed':
        true = speed(truth.linear_velocity, truth.orientation)
        error = speed(judged.linear_velocity[inside], judged.orientation[inside])
        squares = (error - np.interp(stamps, truth.stamp_ns, true)) ** 2
    else:
        squares = _in_world(kind, judge, recording, truth, judged, np.flatnonzero(inside))
    means = _means(stamps, squares, edges)
    return means if kind == 'nees' else np.sqrt(means)


def _in_world(
    kind: str, judge: Judge, recording: Recording, truth: OdometryArray,
    judged: JudgedRun, inside: IntArray,
) -> FloatArray:  # fmt: skip
    """Return squared errors of position or heading, or minus the logarithm of the density."""
    world = judged_world(judge, recording, truth, judged).truth
    true = truth_at(world, judged.stamp_ns[inside])
    away = judged.position[inside] - true.position
    turned = heading(judged.orientation[inside]) - heading(true.orientation)
    turned = (turned + np.pi) % (2.0 * np.pi) - np.pi
    if kind == 'position':
        return np.asarray(np.sum(away[:, :2] ** 2, axis=1))
    if kind == 'heading':
        return np.asarray(turned**2)
    axes = list(known_axes(judge)[0])
    pose, twist = judged.pose_covariance[inside], judged.twist_covariance[inside]
    if judged.unknown & {'pose_covariance', 'twist_covariance'}:
        return np.full(len(inside), np.nan)
    velocity = judged.linear_velocity[inside] - true.linear_velocity
    score = np.zeros(len(inside))
    for error, covariance in (
        (away[:, axes], pose[:, axes][:, :, axes]),
        (turned[:, None], pose[:, 5:, 5:]),
        (velocity[:, axes], twist[:, axes][:, :, axes]),
    ):
        solved = np.linalg.solve(covariance, error[..., None])[..., 0]
        score += 0.5 * (np.sum(error * solved, axis=1) + np.linalg.slogdet(covariance)[1])
    return score


def _means(stamps: IntArray, values: FloatArray, edges: IntArray) -> FloatArray:
    window = np.searchsorted(edges, stamps, side='right') - 1
    count = len(edges) - 1
    mine = (window >= 0) & (window < count)
    sums = np.bincount(window[mine], weights=values[mine], minlength=count)
    n = np.bincount(window[mine], minlength=count)
    return np.asarray(np.divide(sums, n, out=np.full(count, np.nan), where=n > 0))
