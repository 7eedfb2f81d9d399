# SPDX-License-Identifier: Apache-2.0
"""Repair or refuse the messages of one topic, and remark on what a reader of them should know.

What is broken (not finite, stamps that run backwards, impossible values) may be dropped up to
`MAXIMUM_BROKEN` of a topic; more than that is refused, for what remains would no longer be what
the sensor measured. Fixes without a fix are not broken: an outage is real data. Nor are single
messages that came late.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.common.findings import Finding, FindingKind
from sim_sensors.camera.features import FeatureArray
from sim_sensors.core.blocks import by_blocks, rows_of, steps_of, whole_rows
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    MagneticFieldArray,
    MessageArray,
    OdometryArray,
    PoseArray,
    is_absent,
)
from sim_sensors.core.parameters import LARGEST
from sim_sensors.motion.sampling import ahead_of_time
from . import findings

MAXIMUM_BROKEN = 0.2
GAP_FACTOR = 5.0
# robot_localization renormalises quaternions beyond this and complains; inside it they are used.
_NORM_TOLERANCE = 0.01
_ZERO_NORM = 1e-6
_NO_ROTATION = np.array([0.0, 0.0, 0.0, 1.0])
_ABSENT = np.diag([-1.0, 0.0, 0.0])
# A stamp that is further from its receive time than the rest of its topic is a glitch.
_GLITCH_NS = 60_000_000_000
_GLITCH_SHARE = 0.01
_FIRST_TWISTS = 10


class NothingUsableError(RecordingError):
    """A topic has no messages, or none that can be used."""


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
    array : MessageArray
        Messages in the order that they were received; `arrival_ns` is the receive time.
    is_truth : bool
        The truth must increase strictly in time and have an orientation; its covariances do not
        matter.
    has_covariance : bool
        False for types whose messages carry none (TwistStamped, Twist).

    Returns
    -------
    MessageArray, list of Finding
        Stamps never decrease. Repeated stamps stay, since robot_localization accepts them too,
        except in the truth.

    Raises
    ------
    NothingUsableError
        When the topic is empty, or no usable message is left.
    RecordingError
        When more than `MAXIMUM_BROKEN` is broken, or the truth is one message.
    """
    if not len(array):
        raise NothingUsableError(f'{where}: {topic}: no messages')
    state = _Topic(topic, array, is_truth)
    for rule in _rules(array):
        # Each rule may rely on at least one message.
        if len(state.array):
            rule(state)
    if state.broken > MAXIMUM_BROKEN * len(array):
        raise RecordingError(
            f'{where}: {topic}: {state.broken} of {len(array)} messages are broken '
            f'({state.first_broken}); at most {MAXIMUM_BROKEN:.0%} may be dropped'
        )
    if not len(state.array):
        reason = state.notes[-1].problem.partition(' (')[0] if state.notes else 'all were dropped'
        raise NothingUsableError(f'{where}: {topic}: no usable message is left: {reason}')
    if is_truth and len(state.array) < 2:
        raise RecordingError(f'{where}: {topic}: one message only; a true motion needs 2 or more')
    _remark_gaps(state)
    if has_covariance and not is_truth:
        _remark_covariances(state)
    return state.array, state.notes


@dataclasses.dataclass
class _Topic:
    """Messages of one topic on their way through the rules: what these have left, and done."""

    name: str
    array: Any
    is_truth: bool
    broken: int = 0
    first_broken: str = ''
    notes: list[Finding] = dataclasses.field(default_factory=list)

    def note(self, kind: FindingKind, count: int, **values: float | str) -> None:
        """Add a finding about some messages, if there are any."""
        if count:
            self.notes.append(kind(self.name, count=count, **values))

    def change(self, **fields: Any) -> None:
        """Replace fields of the messages."""
        self.array = dataclasses.replace(self.array, **fields)

    def drop(
        self,
        mask: NDArray[np.bool_],
        kind: FindingKind,
        *,
        broken: bool = True,
        **values: float | str,
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


def _rules(array: MessageArray) -> list[Callable[[_Topic], None]]:
    """Return what drops or corrects messages of a type, in this order."""
    rules: list[Callable[[_Topic], None]] = [_check_stamps]
    if isinstance(array, FixArray):
        rules.append(_check_fix_status)
    if isinstance(array, ImuArray):
        rules.append(_check_imu_orientation)
    if not isinstance(array, FeatureArray):  # NaN says that there was nothing before
        rules.append(_check_finite)
    if isinstance(array, FixArray):
        rules.append(_check_coordinates)
    if isinstance(array, (ImuArray, OdometryArray, PoseArray)):
        rules += [_check_zero_orientation, _check_quaternion_norm]
    rules += [_check_ahead, _check_order, _check_repeats]
    if isinstance(array, OdometryArray):
        rules.append(_check_first_twist)
    return rules


def _check_stamps(state: _Topic) -> None:
    stamp, received = state.array.stamp_ns, state.array.arrival_ns
    zero = (stamp == 0) & (received > 0)
    state.note(findings.STAMP_ZERO, zero.sum())
    if zero.any():
        state.change(stamp_ns=np.where(zero, received, stamp))
    state.drop(state.array.stamp_ns <= 0, findings.STAMP_NOT_POSITIVE)
    if not len(state.array):
        return
    lag = state.array.stamp_ns - state.array.arrival_ns
    middle = np.int64(np.median(lag))
    far = by_blocks(lambda rows: np.abs(rows - middle) > _GLITCH_NS, lag)
    if far.any() and far.sum() <= max(1.0, _GLITCH_SHARE * len(far)) and len(far) > 2:
        state.drop(far, findings.STAMP_OFF, limit=_GLITCH_NS // 10**9)
    elif far.any():
        spread = float(np.ptp(lag)) * 1e-9
        state.note(findings.CLOCKS_DRIFT, far.sum(), spread=spread)


def _check_fix_status(state: _Topic) -> None:
    state.drop(~state.array.has_fix, findings.NO_FIX, broken=False)
    state.note(findings.STATUS_UNKNOWN, (state.array.status < -1).sum())
    altitude = state.array.altitude
    if len(altitude) and np.isnan(altitude).all():
        # NavSatFix: "set to NaN if no altitude is available".
        state.note(findings.NO_ALTITUDE, len(altitude))
        state.change(altitude=np.zeros_like(altitude))
    else:
        state.drop(np.isnan(altitude), findings.TWO_D_FIX, broken=False)


def _check_imu_orientation(state: _Topic) -> None:
    array = state.array
    absent = is_absent(array.orientation_covariance)
    zero = ~absent & by_blocks(lambda rows: (rows == 0.0).all(axis=1), array.orientation)
    if zero.any():
        state.note(findings.NO_ATTITUDE, zero.sum())
        state.change(orientation_covariance=_with(array.orientation_covariance, zero, _ABSENT))
        absent = absent | zero
    norms = _norms(state)
    unusable = absent & ~(np.abs(norms - 1.0) <= _NORM_TOLERANCE)
    if unusable.any():
        state.change(orientation=_with(array.orientation, unusable, _NO_ROTATION))


def _check_finite(state: _Topic) -> None:
    for field in dataclasses.fields(state.array):
        values = getattr(state.array, field.name)
        if isinstance(values, np.ndarray) and values.dtype == np.float64:
            # Drivers write the largest number there is for a covariance that they do not know.
            largest = sys.float_info.max if field.name.endswith('covariance') else LARGEST
            finite = by_blocks(partial(_within, largest), values)
            state.drop(np.asarray(~finite, np.bool_), findings.NOT_FINITE, field=field.name)


def _within(largest: float, rows: FloatArray) -> NDArray[np.bool_]:
    return whole_rows(np.abs(rows) <= largest)


def _check_coordinates(state: _Topic) -> None:
    latitude, longitude = state.array.latitude, state.array.longitude
    wrong = np.abs(latitude) > 90.0
    if wrong.mean() > MAXIMUM_BROKEN and (np.abs(longitude) <= 90.0).all():
        value = float(latitude[int(np.argmax(wrong))])
        state.note(findings.EXCHANGED, len(latitude), value=value)
        state.change(latitude=longitude, longitude=latitude)
    for name, limit in (('latitude', 90.0), ('longitude', 180.0)):
        values: FloatArray = getattr(state.array, name)
        bad = np.abs(values) > limit
        if bad.any():
            value = float(values[int(np.argmax(bad))])
            state.drop(bad, findings.OUT_OF_RANGE, field=name, value=value, limit=limit)


def _with(values: FloatArray, mask: NDArray[np.bool_], row: FloatArray) -> FloatArray:
    """Return values with the rows of a mask replaced; one row seen n times where all are."""
    made: FloatArray = np.broadcast_to(row, values.shape)
    if not mask.all():
        made = values.copy()
        made[mask] = row
    return made


def _norms(state: _Topic) -> FloatArray:
    return by_blocks(lambda rows: np.hypot.reduce(rows, axis=1), state.array.orientation)


def _check_zero_orientation(state: _Topic) -> None:
    zero = _norms(state) < _ZERO_NORM
    if state.is_truth:
        state.drop(zero, findings.ZERO_ATTITUDE)
    elif zero.any():
        state.note(findings.IDENTITY_ATTITUDE, zero.sum())
        state.change(orientation=_with(state.array.orientation, zero, _NO_ROTATION))


def _check_quaternion_norm(state: _Topic) -> None:
    norms = _norms(state)
    off = np.abs(norms - 1.0) > _NORM_TOLERANCE
    if off.any():
        orientation = state.array.orientation
        state.note(findings.NORM, off.sum(), norm=float(norms[int(np.argmax(off))]))
        scaled = np.where(off[:, None], orientation / norms[:, None], orientation)
        state.change(orientation=scaled)


def _check_ahead(state: _Topic) -> None:
    # Before the order is looked at: all that follow would seem to run backwards.
    state.drop(ahead_of_time(state.array.stamp_ns), findings.STAMP_AHEAD)


def _check_order(state: _Topic) -> None:
    stamp = state.array.stamp_ns
    late = np.concatenate([[False], stamp[1:] < np.maximum.accumulate(stamp)[:-1]])
    # Late ones are refused one by one, as ekf_node does, however many; a clock that starts again,
    # whose messages are late all together, is broken.
    ends = np.flatnonzero(np.diff(late.view(np.int8), prepend=0, append=0))
    longest = int((ends[1::2] - ends[::2]).max(initial=0))
    restarted = longest > MAXIMUM_BROKEN * len(stamp)
    state.drop(late, findings.STAMP_BACK, broken=restarted or state.is_truth)


def _check_repeats(state: _Topic) -> None:
    repeats = np.concatenate([[False], np.diff(state.array.stamp_ns) == 0])
    if state.is_truth:
        state.drop(repeats, findings.TRUTH_REPEATED)
    else:
        state.note(findings.STAMP_REPEATED, repeats.sum())


def _check_first_twist(state: _Topic) -> None:
    """Leave out the first twists of a truth that are far from what its poses do."""
    if not state.is_truth or len(state.array) < 3 * _FIRST_TWISTS:
        return
    first = state.array.take(slice(0, 2 * _FIRST_TWISTS + 1))
    dt = np.diff(first.stamp_ns) * 1e-9
    moved = np.linalg.norm(np.diff(first.position, axis=0), axis=1) / dt
    cosine = np.abs(np.sum(first.orientation[1:] * first.orientation[:-1], axis=1))
    turned = 2.0 * np.arccos(np.minimum(cosine, 1.0)) / dt
    speed = np.linalg.norm(first.linear_velocity[:-1], axis=1)
    rate = np.linalg.norm(first.angular_velocity[:-1], axis=1)
    wrong = (speed > 10.0 * moved + 1.0) | (rate > 10.0 * turned + 1.0)
    count = int(np.argmin(wrong))
    # Where they go on, or come back, something else is wrong with the twist.
    if not count or count > _FIRST_TWISTS or wrong[count:].any():
        return
    values = {'speed': speed, 'rate': rate, 'moved': moved}
    largest = {name: float(value[:count].max()) for name, value in values.items()}
    state.note(findings.FIRST_TWIST, count, **largest)
    state.array = state.array.take(slice(count, None))


def _remark_gaps(state: _Topic) -> None:
    stamp = state.array.stamp_ns
    steps, starts = steps_of(stamp), stamp[:-1]
    forward = by_blocks(lambda each: each > 0, steps)
    if not forward.all():
        steps, starts = rows_of(steps, forward), rows_of(starts, forward)
    if len(steps) < 3:
        return
    period = float(np.median(steps))
    gaps = by_blocks(lambda each: each > GAP_FACTOR * period, steps)
    if gaps.any():
        longest = int(np.argmax(steps))
        after = float(starts[longest] - stamp[0]) * 1e-9
        gap = steps[longest] * 1e-9
        state.note(findings.GAP, gaps.sum(), gap=gap, after=after, period=period * 1e-9)


def _remark_covariances(state: _Topic) -> None:
    if isinstance(state.array, MagneticFieldArray):
        return  # no judge reads it
    for field in dataclasses.fields(state.array):
        if not field.name.endswith('_covariance'):
            continue
        covariance: FloatArray = getattr(state.array, field.name)
        quantity = field.name.removesuffix('_covariance').replace('_', ' ')
        if isinstance(state.array, ImuArray):
            absent = is_absent(covariance)
            state.note(findings.ABSENT, absent.sum(), quantity=quantity)
        else:
            absent = np.zeros(len(covariance), np.bool_)
        unknown = by_blocks(lambda rows: (rows == 0.0).all(axis=(1, 2)), covariance) & ~absent
        state.note(findings.COVARIANCE_ZERO, unknown.sum(), quantity=quantity)
        negative = by_blocks(_has_negative, covariance) & ~absent
        state.note(findings.COVARIANCE_NEGATIVE, negative.sum(), quantity=quantity)


def _has_negative(covariance: FloatArray) -> NDArray[np.bool_]:
    """Return whether a variance is negative, of each of (n, k, k)."""
    return np.asarray((np.diagonal(covariance, axis1=1, axis2=2) < 0.0).any(axis=1))
