# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Repair or refuse the messages of one topic.

Broken messages (not finite, stamps that run backwards, impossible values) are dropped up to
`MAXIMUM_BROKEN` of a topic. More than that is refused, because the rest would no longer be what
the sensor measured. Messages without a fix, and single late messages of a sensor, do not count as
broken.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.findings import Finding, FindingKind, RecordingError
from sim_sensors.camera.features import FeatureArray
from sim_sensors.core.blocks import by_blocks
from sim_sensors.core.errors import Remark
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
from sim_sensors.motion.sampling import ahead_of_time
from . import fields
from .checks import (
    ABSENT,
    ALTITUDE_GAPS,
    BAD_STAMP,
    BAD_VALUE,
    CLOCKS_DRIFT,
    COVARIANCE_ASSUMED,
    COVARIANCE_FILLED,
    COVARIANCE_NEGATIVE,
    COVARIANCE_ZERO,
    EXCHANGED,
    FIELD_LEFT_OUT,
    FIRST_TWIST,
    GAP,
    NO_ALTITUDE,
    NO_ATTITUDE,
    NO_FIX,
    NORM,
    NOTHING_MEASURED,
    STAMP_AHEAD,
    STAMP_ORDER,
    STAMP_REPEATED,
    STAMP_ZERO,
    STATUS_UNKNOWN,
)
from .fields import ABSENT_COVARIANCE, IDENTITY, replace_rows
from .fix_places import misplaced_fixes

MAXIMUM_BROKEN = 0.2
"""Largest share of a topic's messages that may be dropped as broken."""
GAP_FACTOR = 5.0
"""Multiple of the median period above which a step is a gap."""
_NORM_TOLERANCE = 0.01
"""Error of a quaternion's norm above which robot_localization complains and renormalises."""
_ZERO_NORM = 1e-6
_GLITCH_NS = 60_000_000_000
"""Deviation of stamp minus receive time from its median above which a stamp is a glitch."""
_GLITCH_SHARE = 0.01
"""Largest share of glitches; more of them are a clock that drifts."""
_FIRST_TWISTS = 10
"""Largest number of wrong twists at the start of a truth that are left out."""
_SIMULATOR_START_NS = 5_000_000_000
"""Largest second stamp with which a first stamp of zero is the start of a simulator's clock."""
_SAME_DRIFT = 0.1
"""Relative difference of two drifts below which one clock causes both."""


class NothingUsableError(RecordingError):
    """A topic has no messages, or none that can be used."""


def check_messages(
    where: str,
    topic: str,
    array: MessageArray,
    *,
    role: str = '',
    is_truth: bool = False,
    has_covariance: bool = True,
    stated: Collection[str] = (),
) -> tuple[MessageArray, list[Finding]]:
    """Repair the messages of one topic.

    Parameters
    ----------
    where : str
        File or folder, for error messages.
    topic : str
        Name of the topic.
    array : MessageArray
        Messages in the order received; `arrival_ns` is the receive time.
    role : str
        Role of the topic, for remedies.
    is_truth : bool
        Whether the topic is the truth, which must increase strictly in time and have an
        orientation. Its covariances are not checked.
    has_covariance : bool
        False for types whose messages have no covariance (TwistStamped, Twist).
    stated : collection of str
        Covariances (`position_covariance`) that recording.yaml replaces; they are not reported.

    Returns
    -------
    MessageArray, list of Finding
        Messages whose stamps never decrease; only the truth loses repeated stamps.

    Raises
    ------
    NothingUsableError
        When the topic is empty, more than `MAXIMUM_BROKEN` of it is broken, no usable message is
        left, or the truth has one message.
    """
    if not len(array):
        raise NothingUsableError(f'{where}: {topic}: no messages')
    if not has_covariance:
        stated = [name for name in fields.float_fields(array) if name.endswith('_covariance')]
    check = _TopicCheck(topic, array, is_truth, role, stated)
    for rule in _rules_for(array):
        # Each rule relies on at least one message.
        if len(check.array):
            rule(check)
    if check.broken_count > MAXIMUM_BROKEN * len(array):
        raise NothingUsableError(
            f'{where}: {topic}: {check.broken_count} of {len(array)} messages are broken '
            f'({check.first_broken}); at most {MAXIMUM_BROKEN:.0%} may be dropped'
        )
    if not len(check.array):
        reason = check.notes[-1].problem.partition(' (')[0] if check.notes else 'all were dropped'
        raise NothingUsableError(f'{where}: {topic}: no usable message is left: {reason}')
    if is_truth and len(check.array) < 2:
        raise NothingUsableError(
            f'{where}: {topic}: one message only; a true motion needs 2 or more'
        )
    _report_gaps(check)
    if has_covariance and not is_truth:
        _report_covariances(check)
    return check.array, check.notes


@dataclasses.dataclass
class _TopicCheck:
    """Messages of one topic that remain after the rules so far, and findings about the others."""

    name: str
    array: Any
    is_truth: bool
    role: str = ''
    stated: Collection[str] = ()
    broken_count: int = 0
    first_broken: str = ''
    notes: list[Finding] = dataclasses.field(default_factory=list)

    def report(self, kind: FindingKind, count: int, **values: float | str) -> None:
        """Add a finding about `count` messages, unless there are none."""
        if count:
            self.notes.append(kind(self.name, count=count, **values))

    def replace_fields(self, **fields: Any) -> None:
        """Replace fields of the messages."""
        self.array = dataclasses.replace(self.array, **fields)

    def drop(
        self, mask: NDArray[np.bool_], kind: FindingKind, problem: str, *, is_broken: bool = True
    ) -> None:
        """Drop the messages under a mask (n,) with a finding, if there are any."""
        if not mask.any():
            return
        count, first = int(mask.sum()), int(np.argmax(mask))
        self.report(kind, count, stamp=self.array.stamp_ns[first], problem=problem)
        if is_broken:
            self.broken_count += count
            self.first_broken = self.first_broken or self.notes[-1].problem
        self.array = self.array.take(~mask)


def _rules_for(array: MessageArray) -> list[Callable[[_TopicCheck], None]]:
    """Return the rules that drop or correct messages of a type, in the order of application."""
    rules: list[Callable[[_TopicCheck], None]] = [_check_stamps]
    if isinstance(array, FixArray):
        rules.append(_check_fix_status)
    if isinstance(array, ImuArray):
        rules.append(_check_imu_orientation)
    if not isinstance(array, FeatureArray):  # NaN marks a feature without a previous position.
        rules += [_check_covariances, _check_values]
    if isinstance(array, FixArray):
        rules.append(_check_coordinates)
    if isinstance(array, (ImuArray, OdometryArray, PoseArray)):
        rules += [_check_zero_orientation, _check_quaternion_norm]
    rules += [_check_ahead, _check_order, _check_repeats]
    if isinstance(array, OdometryArray):
        rules.append(_check_first_twist)
    return rules


def _check_stamps(check: _TopicCheck) -> None:
    stamp, received = check.array.stamp_ns, check.array.arrival_ns
    is_zero = (stamp == 0) & (received > 0)
    # The clock of a simulator starts at zero.
    starts_at_zero = stamp[0] == 0 and len(stamp) > 1 and 0 < stamp[1] <= _SIMULATOR_START_NS
    if starts_at_zero:
        is_zero[0] = False
    check.report(STAMP_ZERO, is_zero.sum())
    if is_zero.any():
        check.replace_fields(stamp_ns=np.where(is_zero, received, stamp))
    is_bad = check.array.stamp_ns <= 0
    if starts_at_zero:
        is_bad[0] = False
    check.drop(is_bad, BAD_STAMP, 'stamp is not positive')
    if not len(check.array):
        return
    lag = check.array.stamp_ns - check.array.arrival_ns
    is_far = np.abs(lag - np.int64(np.median(lag))) > _GLITCH_NS
    if not is_far.any():
        return
    if is_far.sum() <= max(1.0, _GLITCH_SHARE * len(is_far)) and len(is_far) > 2:
        template = 'stamp differs from the receive time by over {limit:d s}'
        check.drop(is_far, BAD_STAMP, Remark(template, limit=_GLITCH_NS // 10**9))
    else:
        check.report(CLOCKS_DRIFT, is_far.sum(), spread=float(np.ptp(lag)) * 1e-9)


def merge_drifts(notes: list[Finding]) -> list[Finding]:
    """Keep one of the findings on drifting clocks of topics that drift alike."""
    merged: list[Finding] = []
    spreads: list[float] = []
    for note in notes:
        if note.kind is CLOCKS_DRIFT:
            spread = float(np.max(note.numbers['spread']))
            if any(abs(spread - other) <= _SAME_DRIFT * other for other in spreads):
                continue
            spreads.append(spread)
        merged.append(note)
    return merged


def _check_fix_status(check: _TopicCheck) -> None:
    check.drop(~check.array.has_fix, NO_FIX, 'STATUS_NO_FIX', is_broken=False)
    check.report(STATUS_UNKNOWN, (check.array.status < -1).sum())
    altitude = check.array.altitude
    is_missing = np.isnan(altitude)
    if len(altitude) and is_missing.all():
        # NavSatFix: "set to NaN if no altitude is available".
        check.report(NO_ALTITUDE, len(altitude))
        check.replace_fields(altitude=np.zeros_like(altitude))
    elif is_missing.any():
        check.drop(is_missing, ALTITUDE_GAPS, 'altitude is absent (NaN)', is_broken=False)


def _check_imu_orientation(check: _TopicCheck) -> None:
    array = check.array
    absent = is_absent(array.orientation_covariance)
    is_zero = ~absent & (array.orientation == 0.0).all(axis=1)
    if is_zero.any():
        check.report(NO_ATTITUDE, is_zero.sum(), treatment='marked as absent (covariance -1)')
        covariance = replace_rows(array.orientation_covariance, is_zero, ABSENT_COVARIANCE)
        check.replace_fields(orientation_covariance=covariance)
        absent = absent | is_zero
    is_unusable = absent & ~(np.abs(_norms(check) - 1.0) <= _NORM_TOLERANCE)
    if is_unusable.any():
        orientation = replace_rows(array.orientation, is_unusable, IDENTITY)
        check.replace_fields(orientation=orientation)


def _check_covariances(check: _TopicCheck) -> None:
    """Replace covariances that are not finite; the values beside them are kept."""
    assumed: dict[str, int] = {}
    for name, covariance in fields.float_fields(check.array).items():
        if not name.endswith('_covariance'):
            continue
        is_bad = ~fields.find_finite(name, covariance)
        is_marked = fields.find_absent(check.array, name)
        if (is_bad & is_marked).any():
            covariance = replace_rows(covariance, is_bad & is_marked, ABSENT_COVARIANCE)
            check.replace_fields(**{name: covariance})
        is_unknown = is_bad & ~is_marked
        if is_unknown.any() and _fill_covariance(check, name, covariance, is_unknown, ~is_marked):
            assumed[name.removesuffix('_covariance')] = int(is_unknown.sum())
    if assumed:
        quantities = ' and '.join(name.replace('_', ' ') for name in assumed)
        deviation = ' and '.join(fields.ASSUMED_DEVIATIONS[name] for name in assumed)
        remedy = fields.remedy_of(check.role, tuple(assumed))
        words = {'quantity': quantities, 'deviation': deviation, 'remedy': remedy}
        check.report(COVARIANCE_ASSUMED, max(assumed.values()), **words)


def _fill_covariance(
    check: _TopicCheck,
    name: str,
    covariance: FloatArray,
    is_unknown: NDArray[np.bool_],
    is_present: NDArray[np.bool_],
) -> bool:
    """Fill the covariances of a field where `is_unknown`, from those where `is_present`.

    Return whether a variance had to be assumed that recording.yaml does not state.
    """
    quantity = name.removesuffix('_covariance')
    if check.is_truth:
        zero = np.zeros(covariance.shape[1:])
        check.replace_fields(**{name: replace_rows(covariance, is_unknown, zero)})
        return False
    assumed = fields.assumed_covariance(quantity, 1)[0]
    present_rows = covariance if is_present.all() else covariance[is_present]
    filled = fields.fill_covariance(present_rows, assumed)
    if not is_present.all():
        filled_rows, filled = filled, covariance.copy()
        filled[is_present] = filled_rows
    check.replace_fields(**{name: filled})
    if name in check.stated:
        return False
    if fields.has_variances(covariance[is_present]):
        check.report(COVARIANCE_FILLED, is_unknown.sum(), quantity=quantity.replace('_', ' '))
        return False
    if isinstance(check.array, FixArray):
        check.replace_fields(position_covariance_type=np.ones(len(check.array), np.int64))
    return True


def _check_values(check: _TopicCheck) -> None:
    """Leave out fields that are not finite, and messages that cannot be used without them."""
    names = [name for name in fields.float_fields(check.array) if 'covariance' not in name]
    optional = [
        name
        for name in fields.optional_fields(check.array, check.is_truth)
        # A correction replaces all covariances, and with them the marks of absent quantities.
        if f'{name}_covariance' not in check.stated
    ]
    for name in names:
        if name in optional:
            continue
        values = getattr(check.array, name)
        is_bad = ~fields.find_finite(name, values)
        # navsat_transform treats a position of NaN as a missing fix.
        is_gap = isinstance(check.array, FixArray) and bool(np.isnan(values[is_bad]).all())
        check.drop(is_bad, BAD_VALUE, f'{name} is not finite', is_broken=not is_gap)
    if not optional or not len(check.array):
        return
    masks = [_find_bad(check, name) for name in optional]
    is_empty = np.all([is_bad | is_marked for is_bad, is_marked in masks], axis=0)
    is_empty &= np.any([is_bad & ~is_marked for is_bad, is_marked in masks], axis=0)
    check.drop(is_empty, BAD_VALUE, f'{optional[0]} is not finite, nor is any other field')
    for name in optional if len(check.array) else ():
        if not isinstance(check.array, ImuArray):
            _drop_start(check, name)
        is_bad, is_marked = _find_bad(check, name)
        if is_bad.any():
            _leave_out_field(check, name, is_bad, is_bad & ~is_marked)


def _find_bad(check: _TopicCheck, name: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of the messages in which a field is not finite, and in which it is absent."""
    values = getattr(check.array, name)
    return ~fields.find_finite(name, values), fields.find_absent(check.array, name)


def _drop_start(check: _TopicCheck, name: str) -> None:
    """Drop the few messages before the first one in which a field is finite.

    ekf_node copies its first measurement unchecked, and one NaN in its state stays for ever.
    """
    is_bad, _ = _find_bad(check, name)
    count = int(np.argmin(is_bad))
    if is_bad[0] and 0 < count <= MAXIMUM_BROKEN * len(is_bad):
        is_start = np.arange(len(is_bad)) < count
        problem = f'{name} is not finite at the start, where a filter may copy it'
        check.drop(is_start, BAD_VALUE, problem, is_broken=False)


def _leave_out_field(
    check: _TopicCheck, name: str, is_bad: NDArray[np.bool_], is_new: NDArray[np.bool_]
) -> None:
    values = getattr(check.array, name)
    if isinstance(check.array, ImuArray):
        covariance = getattr(check.array, f'{name}_covariance')
        changes = {f'{name}_covariance': replace_rows(covariance, is_bad, ABSENT_COVARIANCE)}
        if name == 'orientation':
            changes[name] = replace_rows(values, is_bad, IDENTITY)
        else:
            changes[name] = fields.hold_rows(values, is_bad)
        treatment = 'marked as absent (covariance -1)'
    else:
        changes = {name: replace_rows(values, is_bad, np.full(values.shape[1:], np.nan))}
        treatment = 'left NaN, which robot_localization ignores'
    if is_new.any():
        stamp = check.array.stamp_ns[int(np.argmax(is_new))]
        words = {'field': name, 'treatment': treatment}
        check.report(FIELD_LEFT_OUT, is_new.sum(), stamp=stamp, **words)
    check.replace_fields(**changes)


def _check_coordinates(check: _TopicCheck) -> None:
    latitude, longitude = check.array.latitude, check.array.longitude
    is_bad = np.abs(latitude) > 90.0
    if is_bad.mean() > MAXIMUM_BROKEN and (np.abs(longitude) <= 90.0).all():
        first_bad = float(latitude[int(np.argmax(is_bad))])
        check.report(EXCHANGED, len(latitude), value=first_bad)
        check.replace_fields(latitude=longitude, longitude=latitude)
    for name, limit in (('latitude', 90.0), ('longitude', 180.0)):
        degrees: FloatArray = getattr(check.array, name)
        is_bad = np.abs(degrees) > limit
        if is_bad.any():
            template = f'{name} {{value:g deg}} is outside -{{limit:g}} .. {{limit:g}}'
            value = degrees[int(np.argmax(is_bad))]
            check.drop(is_bad, BAD_VALUE, Remark(template, limit=limit, value=value))
    is_zero, is_far = misplaced_fixes(check.array.latitude, check.array.longitude)
    check.drop(is_zero, NO_FIX, 'position is (0, 0)', is_broken=False)
    check.drop(is_far[~is_zero], BAD_VALUE, 'position is over 1000 km from the others')


def _norms(check: _TopicCheck) -> FloatArray:
    """Return the norms of the orientation quaternions, (n,)."""
    return by_blocks(lambda rows: np.hypot.reduce(rows, axis=1), check.array.orientation)


def _check_zero_orientation(check: _TopicCheck) -> None:
    is_zero = _norms(check) < _ZERO_NORM
    if check.is_truth:
        check.drop(is_zero, BAD_VALUE, 'orientation is all zero')
    elif is_zero.any():
        check.report(NO_ATTITUDE, is_zero.sum(), treatment='set to identity, as ekf_node does')
        orientation = replace_rows(check.array.orientation, is_zero, IDENTITY)
        check.replace_fields(orientation=orientation)


def _check_quaternion_norm(check: _TopicCheck) -> None:
    norms = _norms(check)
    is_off = np.abs(norms - 1.0) > _NORM_TOLERANCE
    if is_off.any():
        orientation = check.array.orientation
        check.report(NORM, is_off.sum(), norm=float(norms[int(np.argmax(is_off))]))
        scaled = np.where(is_off[:, None], orientation / norms[:, None], orientation)
        check.replace_fields(orientation=scaled)


def _check_ahead(check: _TopicCheck) -> None:
    # This precedes the check of the order, in which all later messages would run backwards.
    is_ahead = ahead_of_time(check.array.stamp_ns)
    check.drop(is_ahead, STAMP_AHEAD, 'stamp is ahead of the next messages')


def _check_order(check: _TopicCheck) -> None:
    stamp = check.array.stamp_ns
    is_late = np.concatenate([[False], stamp[1:] < np.maximum.accumulate(stamp)[:-1]])
    # Late messages are refused one by one, as in ekf_node, however many there are. After a clock
    # restarts, a long run of messages is late: those are broken.
    edges = np.flatnonzero(np.diff(is_late.view(np.int8), prepend=0, append=0))
    longest_run = int((edges[1::2] - edges[::2]).max(initial=0))
    has_restarted = longest_run > MAXIMUM_BROKEN * len(stamp)
    check.drop(
        is_late, STAMP_ORDER, 'stamp runs backwards', is_broken=has_restarted or check.is_truth
    )


def _check_repeats(check: _TopicCheck) -> None:
    is_repeated = np.concatenate([[False], np.diff(check.array.stamp_ns) == 0])
    if check.is_truth:
        check.drop(is_repeated, STAMP_ORDER, 'stamp is repeated')
    else:
        check.report(STAMP_REPEATED, is_repeated.sum())


def _check_first_twist(check: _TopicCheck) -> None:
    """Leave out the first twists of a truth that contradict the motion of its poses."""
    if not check.is_truth or len(check.array) < 3 * _FIRST_TWISTS:
        return
    start = check.array.take(slice(0, 2 * _FIRST_TWISTS + 1))
    dt = np.diff(start.stamp_ns) * 1e-9
    pose_speed = np.linalg.norm(np.diff(start.position, axis=0), axis=1) / dt
    cosine = np.abs(np.sum(start.orientation[1:] * start.orientation[:-1], axis=1))
    pose_rate = 2.0 * np.arccos(np.minimum(cosine, 1.0)) / dt
    speed = np.linalg.norm(start.linear_velocity[:-1], axis=1)
    rate = np.linalg.norm(start.angular_velocity[:-1], axis=1)
    is_wrong = (speed > 10.0 * pose_speed + 1.0) | (rate > 10.0 * pose_rate + 1.0)
    count = int(np.argmin(is_wrong))
    # If wrong twists continue or recur, the start is not the cause.
    if not count or count > _FIRST_TWISTS or is_wrong[count:].any():
        return
    largest = {
        name: float(values[:count].max())
        for name, values in (('speed', speed), ('rate', rate), ('moved', pose_speed))
    }
    check.report(FIRST_TWIST, count, **largest)
    check.array = check.array.take(slice(count, None))


def _report_gaps(check: _TopicCheck) -> None:
    stamp = check.array.stamp_ns
    steps, starts = np.diff(stamp), stamp[:-1]
    is_forward = steps > 0
    if not is_forward.all():
        steps, starts = steps[is_forward], starts[is_forward]
    if len(steps) < 3:
        return
    period = float(np.median(steps))
    is_gap = steps > GAP_FACTOR * period
    if is_gap.any():
        longest = int(np.argmax(steps))
        after = float(starts[longest] - stamp[0]) * 1e-9
        gap = steps[longest] * 1e-9
        check.report(GAP, is_gap.sum(), gap=gap, after=after, period=period * 1e-9)


def _report_covariances(check: _TopicCheck) -> None:
    if isinstance(check.array, MagneticFieldArray):
        return  # No judge reads the covariance of a magnetometer.
    left_out = {note.words['field'] for note in check.notes if note.kind is FIELD_LEFT_OUT}
    is_silent = _measures_nothing(check.array) and not check.stated
    if is_silent:
        check.report(NOTHING_MEASURED, len(check.array))
    for name, covariance in fields.float_fields(check.array).items():
        if not name.endswith('_covariance') or name in check.stated:
            continue
        quantity = name.removesuffix('_covariance').replace('_', ' ')
        absent = fields.find_absent(check.array, name)
        if not is_silent and name.removesuffix('_covariance') not in left_out:
            check.report(ABSENT, absent.sum(), quantity=quantity)
        is_unknown = by_blocks(lambda rows: (rows == 0.0).all(axis=(1, 2)), covariance) & ~absent
        check.report(COVARIANCE_ZERO, is_unknown.sum(), quantity=quantity)
        variances = np.diagonal(covariance, axis1=1, axis2=2)
        is_negative = (variances < 0.0).any(axis=1) & ~absent
        check.report(COVARIANCE_NEGATIVE, is_negative.sum(), quantity=quantity)


def _measures_nothing(array: MessageArray) -> bool:
    """Return whether an IMU marks all quantities as absent, although some are not zero."""
    if not isinstance(array, ImuArray):
        return False
    is_marked = all(fields.find_absent(array, name).all() for name in fields.IMU_QUANTITIES)
    return is_marked and bool(array.angular_velocity.any() or array.linear_acceleration.any())
