# SPDX-License-Identifier: Apache-2.0
"""Repair or refuse the messages of one topic, and remark on what a reader of them should know.

What is broken (not finite, stamps that run backwards, impossible values) may be dropped up to
`MAXIMUM_BROKEN` of a topic; more than that is refused, for what remains would no longer be what
the sensor measured. The rules themselves are in `repairs`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.common.findings import Finding, FindingKind
from sim2real_eval.recording import findings
from sim_sensors.camera.features import FeatureArray
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    IntArray,
    MagneticFieldArray,
    MessageArray,
    OdometryArray,
    PoseArray,
)
from sim_sensors.motion.sampling import ahead_of_time

# The rules by which the messages of one topic are dropped or corrected.
#
# Each says what it did in a `Finding`. Fixes without a fix are not broken: an outage is
# real data.

# robot_localization renormalises quaternions beyond this and complains; inside it they are used.
_NORM_TOLERANCE = 0.01
_ZERO_NORM = 1e-6
# A stamp that is further from its receive time than the rest of its topic is a glitch.
_GLITCH_NS = 60_000_000_000
_GLITCH_SHARE = 0.01

BoolArray = NDArray[np.bool_]


class CheckedTopic:
    """Messages of one topic on their way through the rules.

    Parameters
    ----------
    where : str
        File or folder, for messages.
    topic : str
        Topic name.
    array : MessageArray
        Messages in the order that they were received.

    Attributes
    ----------
    array : MessageArray
        What the rules have left so far.
    total, broken : int
        Number of messages at first, and of those dropped because they were broken.
    first_broken : str
        What was wrong with the first of these.
    notes : list of Finding
        What was done, in this order.
    """

    def __init__(self, where: str, topic: str, array: MessageArray) -> None:
        self.where, self.topic, self.array = where, topic, array
        self.total = len(array)
        self.broken = 0
        self.first_broken = ''
        self.notes: list[Finding] = []

    def note(self, kind: FindingKind, count: int, **values: float | str) -> None:
        """Add a finding about some messages."""
        self.notes.append(kind(self.topic, count=count, **values))

    def change(self, **fields: Any) -> None:
        """Replace fields of the messages."""
        self.array = dataclasses.replace(self.array, **fields)

    def drop(
        self, mask: BoolArray, kind: FindingKind, *, broken: bool = True, **values: float | str
    ) -> None:
        """Drop the messages under a mask, shape (n,), with a finding if there are any."""
        count = int(mask.sum())
        if not count:
            return
        self.note(kind, count, stamp=self.array.stamp_ns[int(np.argmax(mask))], **values)
        if broken:
            self.broken += count
            self.first_broken = self.first_broken or self.notes[-1].problem
        self.array = self.array.take(~mask)


def repair(state: CheckedTopic, *, is_truth: bool) -> None:
    """Apply the rules to the messages of one topic, as long as any are left.

    Parameters
    ----------
    state : CheckedTopic
        The topic, with at least one message; changed in place.
    is_truth : bool
        The truth must increase strictly in time and have an orientation.
    """
    array = state.array
    rules: list[Callable[[CheckedTopic], None]] = [_check_stamps]
    if isinstance(array, FixArray):
        rules.append(_check_fix_status)
    if isinstance(array, ImuArray):
        rules.append(_check_imu_orientation)
    if not isinstance(array, FeatureArray):  # NaN says that there was nothing before
        rules.append(_check_finite)
    if isinstance(array, FixArray):
        rules += [_check_latitude, _check_longitude]
    if isinstance(array, (ImuArray, OdometryArray, PoseArray)):
        rules += [_check_truth_orientation] if is_truth else [_check_zero_orientation]
        rules.append(_check_quaternion_norm)
    rules += [_check_ahead, _check_order, _check_repeats_of_truth if is_truth else _check_repeats]
    for rule in rules:
        # Each rule may rely on at least one message.
        if len(state.array):
            rule(state)


def _check_stamps(state: CheckedTopic) -> None:
    stamp, received = state.array.stamp_ns, state.array.arrival_ns
    zero = (stamp == 0) & (received > 0)
    if zero.any():
        state.note(findings.STAMP_ZERO, zero.sum())
        state.change(stamp_ns=np.where(zero, received, stamp))
    state.drop(state.array.stamp_ns <= 0, findings.STAMP_NOT_POSITIVE)
    if not len(state.array):
        return
    lag = state.array.stamp_ns - state.array.arrival_ns
    far = np.abs(lag - np.int64(np.median(lag))) > _GLITCH_NS
    if far.any() and far.sum() <= max(1.0, _GLITCH_SHARE * len(far)) and len(far) > 2:
        state.drop(far, findings.STAMP_OFF, limit=_GLITCH_NS // 10**9)
    elif far.any():
        spread = float(np.ptp(lag)) * 1e-9
        state.note(findings.CLOCKS_DRIFT, far.sum(), spread=spread)


def _check_fix_status(state: CheckedTopic) -> None:
    array = state.array
    assert isinstance(array, FixArray)
    state.drop(array.status == -1, findings.NO_FIX, broken=False)
    array = array.take(array.status != -1)
    unknown = int((array.status < -1).sum())
    if unknown:
        state.note(findings.STATUS_UNKNOWN, unknown)
    altitude = array.altitude
    if len(altitude) and np.isnan(altitude).all():
        # NavSatFix: "set to NaN if no altitude is available".
        state.note(findings.NO_ALTITUDE, len(altitude))
        state.change(altitude=np.zeros_like(altitude))


def _check_imu_orientation(state: CheckedTopic) -> None:
    array = state.array
    assert isinstance(array, ImuArray)
    absent = array.orientation_covariance[:, 0, 0] == -1.0
    zero = ~absent & (array.orientation == 0.0).all(axis=1)
    if zero.any():
        state.note(findings.NO_ATTITUDE, zero.sum())
        covariance = array.orientation_covariance.copy()
        covariance[zero] = 0.0
        covariance[zero, 0, 0] = -1.0
        state.change(orientation_covariance=covariance)
        absent = absent | zero
    norms = np.hypot.reduce(array.orientation, axis=1)
    unusable = absent & ~(np.abs(norms - 1.0) <= _NORM_TOLERANCE)
    if unusable.any():
        orientation = array.orientation.copy()
        orientation[unusable] = (0.0, 0.0, 0.0, 1.0)
        state.change(orientation=orientation)


def _check_finite(state: CheckedTopic) -> None:
    for field in dataclasses.fields(state.array):
        values = getattr(state.array, field.name)
        if isinstance(values, np.ndarray) and values.dtype == np.float64:
            finite = np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
            state.drop(np.asarray(~finite, np.bool_), findings.NOT_FINITE, field=field.name)


def _check_latitude(state: CheckedTopic) -> None:
    _check_range(state, 'latitude', 90.0)


def _check_longitude(state: CheckedTopic) -> None:
    _check_range(state, 'longitude', 180.0)


def _check_range(state: CheckedTopic, name: str, limit: float) -> None:
    values: FloatArray = getattr(state.array, name)
    bad: BoolArray = (values > limit) | (values < -limit)
    value = float(values[int(np.argmax(bad))])
    state.drop(bad, findings.OUT_OF_RANGE, field=name, value=value, limit=limit)


def _norms(state: CheckedTopic) -> FloatArray:
    orientation: FloatArray = getattr(state.array, 'orientation')  # noqa: B009
    return np.asarray(np.hypot.reduce(orientation, axis=1), np.float64)


def _check_truth_orientation(state: CheckedTopic) -> None:
    state.drop(_norms(state) < _ZERO_NORM, findings.ZERO_ATTITUDE)


def _check_zero_orientation(state: CheckedTopic) -> None:
    zero = _norms(state) < _ZERO_NORM
    if zero.any():
        orientation: FloatArray = getattr(state.array, 'orientation').copy()  # noqa: B009
        orientation[zero] = (0.0, 0.0, 0.0, 1.0)
        state.note(findings.IDENTITY_ATTITUDE, zero.sum())
        state.change(orientation=orientation)


def _check_quaternion_norm(state: CheckedTopic) -> None:
    norms = _norms(state)
    off = np.abs(norms - 1.0) > _NORM_TOLERANCE
    if off.any():
        orientation: FloatArray = getattr(state.array, 'orientation')  # noqa: B009
        value = float(norms[int(np.argmax(off))])
        state.note(findings.NORM, off.sum(), norm=value)
        scaled = np.where(off[:, None], orientation / norms[:, None], orientation)
        state.change(orientation=scaled)


def _check_ahead(state: CheckedTopic) -> None:
    # Before the order is looked at: all that follow would seem to run backwards.
    state.drop(ahead_of_time(state.array.stamp_ns), findings.STAMP_AHEAD)


def _check_order(state: CheckedTopic) -> None:
    stamp = state.array.stamp_ns
    newest = np.concatenate([stamp[:1], np.maximum.accumulate(stamp)[:-1]])
    state.drop(stamp < newest, findings.STAMP_BACK)


def _repeats(state: CheckedTopic) -> BoolArray:
    return np.concatenate([[False], np.diff(state.array.stamp_ns) == 0])


def _check_repeats(state: CheckedTopic) -> None:
    count = int(_repeats(state).sum())
    if count:
        state.note(findings.STAMP_REPEATED, count)


def _check_repeats_of_truth(state: CheckedTopic) -> None:
    state.drop(_repeats(state), findings.TRUTH_REPEATED)


MAXIMUM_BROKEN = 0.2
GAP_FACTOR = 5.0


def check_messages(
    where: str,
    topic: str,
    array: MessageArray,
    *,
    is_truth: bool = False,
    has_covariance: bool = True,
) -> tuple[MessageArray, list[Finding]]:
    """Repair the messages of one topic.

    Parameters
    ----------
    where : str
        File or folder, for messages.
    topic : str
        Topic name.
    array : MessageArray
        Messages in the order that they were received; `arrival_ns` is the receive time.
    is_truth : bool
        The truth must increase strictly in time and have an orientation; its covariances do not
        matter.
    has_covariance : bool
        False for types whose messages carry none (TwistStamped).

    Returns
    -------
    MessageArray, list of Finding
        Stamps never decrease. Repeated stamps stay, since robot_localization accepts them too,
        except in the truth.

    Raises
    ------
    RecordingError
        When the topic is empty, nothing usable is left, or more than `MAXIMUM_BROKEN` is broken.
    """
    if not len(array):
        raise RecordingError(f'{where}: {topic}: no messages; at least one is needed')
    state = CheckedTopic(where, topic, array)
    repair(state, is_truth=is_truth)
    if state.broken > MAXIMUM_BROKEN * state.total:
        raise RecordingError(
            f'{where}: {topic}: {state.broken} of {state.total} messages are broken '
            f'({state.first_broken}); at most {MAXIMUM_BROKEN:.0%} may be dropped'
        )
    if not len(state.array):
        reason = state.notes[-1].problem if state.notes else 'all were dropped'
        raise RecordingError(f'{where}: {topic}: no usable message is left: {reason}')
    if is_truth and len(state.array) < 2:
        raise RecordingError(f'{where}: {topic}: one message only; a true motion needs 2 or more')
    _remark_gaps(state)
    if has_covariance and not is_truth:
        _remark_covariances(state)
    return state.array, state.notes


def _remark_gaps(state: CheckedTopic) -> None:
    stamp: IntArray = state.array.stamp_ns
    steps = np.diff(stamp)
    steps, starts = steps[steps > 0], stamp[:-1][steps > 0]
    if len(steps) < 3:
        return
    period = float(np.median(steps))
    gaps = steps > GAP_FACTOR * period
    if gaps.any():
        longest = int(np.argmax(steps))
        after = float(starts[longest] - stamp[0]) * 1e-9
        gap = steps[longest] * 1e-9
        state.note(findings.GAP, gaps.sum(), gap=gap, after=after, period=period * 1e-9)


def _remark_covariances(state: CheckedTopic) -> None:
    if isinstance(state.array, MagneticFieldArray):
        return  # no judge reads it
    for field in dataclasses.fields(state.array):
        if not field.name.endswith('_covariance'):
            continue
        covariance: FloatArray = getattr(state.array, field.name)
        quantity = field.name.removesuffix('_covariance').replace('_', ' ')
        absent = covariance[:, 0, 0] == -1.0
        if isinstance(state.array, ImuArray) and absent.any():
            state.note(findings.ABSENT, absent.sum(), quantity=quantity)
        rest = covariance[~absent] if isinstance(state.array, ImuArray) else covariance
        unknown = int((rest == 0.0).all(axis=(1, 2)).sum())
        if unknown:
            state.note(findings.COVARIANCE_ZERO, unknown, quantity=quantity)
        negative = int((np.diagonal(rest, axis1=1, axis2=2) < 0.0).any(axis=1).sum())
        if negative:
            state.note(findings.COVARIANCE_NEGATIVE, negative, quantity=quantity)
