# SPDX-License-Identifier: Apache-2.0
"""Serialised messages that an estimator published, as the estimate of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.findings import BY_DIFFERENCES, LEVEL, OUT_OF_ORDER
from sim2real_eval.judge.protocol import Estimate
from sim2real_eval.recording.cdr import decode, decode_transforms
from sim2real_eval.recording.message_types import TF_TYPE, known_type
from sim_sensors.core.measurements import (
    FloatArray,
    IntArray,
    MessageArray,
    OdometryArray,
    PoseArray,
    TwistArray,
)
from .declaration import StackFrames, StackOutput

_LEVEL = np.array([0.0, 0.0, 0.0, 1.0])


def estimated_run(
    data: Sequence[bytes], heard_ns: IntArray, output: StackOutput, frames: StackFrames
) -> JudgedRun:
    """Return the estimate of a run.

    Parameters
    ----------
    data : sequence of bytes
        Messages in the order in which they came.
    heard_ns : (n,) int64
        What /clock showed when they came.
    output, frames : StackOutput, StackFrames
        As they are declared.

    Raises
    ------
    JudgeError
        When there is none, or too few for differences.
    """
    if output.type == TF_TYPE:
        array: MessageArray = _transforms(data, heard_ns, output.topic, frames)
    else:
        array = decode(known_type(output.type), data, heard_ns, output.topic).array
    # A stamp of 0 was not set.
    newer = np.diff(np.maximum.accumulate(array.stamp_ns), prepend=0) > 0
    late = int(np.sum(~newer))
    array = array.take(newer)
    if isinstance(array, PoseArray):
        array = array.take(_spaced(array.stamp_ns, output.spacing))
    least = 2 if isinstance(array, PoseArray) else 1
    if len(array) < least:
        raise JudgeError(f'{output.topic}: {len(array)} estimates came; must be at least {least}')
    run = _run(array, output)
    notes = [OUT_OF_ORDER(output.topic, count=late)] if late else []
    return dataclasses.replace(run, tick_ns=array.arrival_ns, notes=(*run.notes, *notes))


def _spaced(stamp_ns: IntArray, spacing: float) -> list[int]:
    """Return the estimates that are at least so many seconds apart, from the first one on."""
    kept: list[int] = []
    due = 0
    for i, stamp in enumerate(stamp_ns.tolist()):
        if stamp >= due:
            kept.append(i)
            due = stamp + round(spacing * 1e9)
    return kept


def _run(array: MessageArray, output: StackOutput) -> JudgedRun:
    if isinstance(array, PoseArray):
        # From the first on: in seconds since 1970 a double has no microseconds.
        times = (array.stamp_ns - array.stamp_ns[0]) * 1e-9
        velocity = np.gradient(array.position, times, axis=0)
        return Estimate(
            array.stamp_ns, velocity, array.orientation, position=array.position,
            position_covariance=array.pose_covariance[:, :3, :3],
            notes=(BY_DIFFERENCES(output.topic),),
        ).judged()  # fmt: skip
    assert isinstance(array, (OdometryArray, TwistArray))
    in_world = output.velocity == 'world'
    if isinstance(array, OdometryArray):
        if in_world:
            return Estimate(
                array.stamp_ns, array.linear_velocity, array.orientation,
                position=array.position, velocity_covariance=array.twist_covariance[:, :3, :3],
                position_covariance=array.pose_covariance[:, :3, :3],
            ).judged()  # fmt: skip
        return _of_body(array, array.position, array.orientation, array.pose_covariance, ())
    if in_world:
        covariance = array.twist_covariance[:, :3, :3]
        return Estimate(
            array.stamp_ns, array.linear_velocity, velocity_covariance=covariance
        ).judged()
    n = len(array)
    unknown = ('position', 'orientation', 'pose_covariance')
    run = _of_body(
        array,
        np.full((n, 3), np.nan),
        np.tile(_LEVEL, (n, 1)),
        np.full((n, 6, 6), np.nan),
        unknown,
    )
    return dataclasses.replace(run, notes=(LEVEL(output.topic),))


def _of_body(
    array: OdometryArray | TwistArray,
    position: FloatArray,
    orientation: FloatArray,
    covariance: FloatArray,
    unknown: Sequence[str],
) -> JudgedRun:
    return JudgedRun(
        stamp_ns=array.stamp_ns,
        tick_ns=array.arrival_ns,
        position=position,
        orientation=orientation,
        linear_velocity=array.linear_velocity,
        angular_velocity=array.angular_velocity,
        pose_covariance=covariance,
        twist_covariance=array.twist_covariance,
        unknown=frozenset(unknown),
    )


def _transforms(
    data: Sequence[bytes], heard_ns: IntArray, topic: str, frames: StackFrames
) -> PoseArray:
    """Return the transforms from the world to the base frame."""
    rows = [
        (stamp, heard, one)
        for message, heard in zip(data, heard_ns.tolist(), strict=True)
        for stamp, one in decode_transforms(message, topic)
        if (one.parent, one.child) == (frames.world, frames.base)
    ]
    if data and not rows:
        raise JudgeError(f'{topic}: holds no transform from {frames.world} to {frames.base}')
    n = len(rows)
    return PoseArray(
        stamp_ns=np.array([stamp for stamp, _, _ in rows], dtype=np.int64),
        arrival_ns=np.array([heard for _, heard, _ in rows], dtype=np.int64),
        frame=frames.world,
        position=np.array([one.translation for _, _, one in rows]).reshape(n, 3),
        orientation=np.array([one.rotation for _, _, one in rows]).reshape(n, 4),
        pose_covariance=np.full((n, 6, 6), np.nan),
    )
