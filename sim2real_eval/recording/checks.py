# SPDX-License-Identifier: Apache-2.0
"""Repair or refuse the messages of one topic; findings of `reading.py` and `truth.py`, too.

Broken messages (not finite, stamps that run backwards, impossible values) are dropped up to
`MAXIMUM_BROKEN` of a topic. More than that is refused, because the rest would no longer be what
the sensor measured. Messages without a fix and late messages are not broken.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.findings import (
    Finding,
    FindingKind,
    RecordingError,
    assumed,
    decisive,
    routine,
)
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
from sim_sensors.core.parameters import LARGEST
from sim_sensors.motion.sampling import ahead_of_time
from .fix_places import misplaced_fixes

MAXIMUM_BROKEN = 0.2
"""Largest share of a topic's messages that may be dropped as broken."""
GAP_FACTOR = 5.0
"""Multiple of the median period above which a step is a gap."""
_NORM_TOLERANCE = 0.01
"""Error of a quaternion's norm above which robot_localization complains and renormalises."""
_ZERO_NORM = 1e-6
_IDENTITY = np.array([0.0, 0.0, 0.0, 1.0])
_ABSENT = np.diag([-1.0, 0.0, 0.0])
_GLITCH_NS = 60_000_000_000
"""Deviation of stamp minus receive time from its median above which a stamp is a glitch."""
_GLITCH_SHARE = 0.01
"""Largest share of glitches; more of them are a clock that drifts."""
_FIRST_TWISTS = 10


_DROPPED = '{problem!s} ({count:d}x, first at stamp {stamp:d ns}); dropped'
_DRIVER = 'correct the driver or the converter; the other messages are used unchanged'
_CLOCK = 'let the driver stamp messages at the time of measurement with one clock'
_ORDER = 'check whether two publishers share the topic or the recorder changed the order'

STAMP_ZERO = routine(
    'recording.stamp_zero',
    'header stamp is zero ({count:d}x); the receive time is used',
    'The driver does not stamp its messages, so timing is only as good as the receive times.',
    _CLOCK,
)
BAD_STAMP = routine(
    'recording.bad_stamp',
    _DROPPED,
    'A stamp is not positive, or far from the receive time while others are not.',
    _CLOCK,
)
CLOCKS_DRIFT = routine(
    'recording.clocks_drift',
    'stamps and receive times drift apart by {spread:.1f s} ({count:d}x); the stamps are used',
    'Two clocks disagree. Everything is computed with the stamps.',
    _CLOCK,
)
STAMP_AHEAD = routine(
    'recording.stamp_ahead',
    _DROPPED,
    'A single stamp in the future would make all later messages seem late.',
    _CLOCK,
)
STAMP_ORDER = routine(
    'recording.stamp_order',
    _DROPPED,
    'A stamp runs backwards, or the truth repeats a stamp.',
    _ORDER,
)
STAMP_REPEATED = routine(
    'recording.stamp_repeated',
    'stamp is repeated ({count:d}x); kept, as ekf_node does',
    'Several messages have one stamp. robot_localization processes all of them.',
    _ORDER,
)
NO_FIX = routine('recording.no_fix', _DROPPED, 'The receiver had no fix; this is a real outage.')
STATUS_UNKNOWN = routine(
    'recording.status_unknown',
    'fix status is unknown (-2) ({count:d}x); kept, as navsat_transform does',
    'The driver does not fill in the status. The fixes are treated as valid.',
)
NO_ALTITUDE = routine(
    'recording.no_altitude',
    'altitude is absent (NaN) ({count:d}x); set to 0 m',
    'The receiver gives no altitude, so the vertical estimate has no meaning.',
    'use two_d_mode',
)
ALTITUDE_GAPS = routine(
    'recording.no_altitude_dropped',
    _DROPPED,
    'No altitude for a while; navsat_transform drops such fixes.',
)
FIRST_TWIST = routine(
    'recording.first_twist',
    'the first twists contradict the poses ({count:d}x, up to {speed:.3g m/s} and '
    '{rate:.3g rad/s}, where the poses move at {moved:.3g m/s}); left out',
    "Gazebo's OdometryPublisher takes the path from the origin to the robot as its first step.",
)
NO_ATTITUDE = routine(
    'recording.no_attitude',
    'orientation is all zero ({count:d}x); {treatment}',
    'A zero quaternion is no rotation. robot_localization takes it as the identity; in an IMU '
    'message it means that there is no orientation.',
    'correct the driver or the converter',
)
NORM = routine(
    'recording.quaternion_norm',
    'quaternion has norm {norm:g} ({count:d}x); normalised',
    'A rotation has norm 1. robot_localization normalises as well.',
    _DRIVER,
)
BAD_VALUE = routine(
    'recording.bad_value',
    _DROPPED,
    'A value is not finite or above 1e15, not on Earth, or a zero orientation of the truth.',
    _DRIVER,
)
EXCHANGED = assumed(
    'recording.fixes_exchanged',
    'latitude reaches {value:.1f deg}, which is no latitude, and longitude is within -90 .. 90 '
    '({count:d}x); both are exchanged',
    'The driver or the converter of the recording exchanged latitude and longitude.',
    'set `corrections: {{gps: {{swapped: true}}}}` in recording.yaml',
)
GAP = routine(
    'recording.gap',
    'gaps of up to {gap:.3f s} ({count:d}x), the longest {after:.2f s} after the first message '
    '(median period {period:.3f s}); nothing is filled in',
    'Messages are missing. A judge bridges the gap by prediction.',
)
ABSENT = routine(
    'recording.quantity_absent',
    '{quantity} is absent (covariance -1) ({count:d}x); a judge skips it',
    'The sensor declares that it does not measure this quantity.',
)
COVARIANCE_ZERO = routine(
    'recording.covariance_zero',
    '{quantity} covariance is all zero (unknown) ({count:d}x); robot_localization uses 1e-9, so '
    'it trusts the measurement completely',
    'A zero covariance means unknown, but robot_localization treats it as exact.',
)
COVARIANCE_NEGATIVE = routine(
    'recording.covariance_negative',
    '{quantity} covariance has a negative variance ({count:d}x); robot_localization takes its '
    'absolute value',
    'A variance cannot be negative; the driver is wrong.',
)
COVARIANCE_KINDS = (ABSENT, COVARIANCE_ZERO, COVARIANCE_NEGATIVE)
"""Findings on how robot_localization reads covariances, which other judges may not do."""

CUT_SHORT = routine(
    'recording.cut_short',
    '{problem!s}; the file may be truncated',
    'The bag holds fewer messages than it announces, or the last line of a CSV file has no end.',
)
LEFT_OUT = routine(
    'recording.topic_left_out',
    '{problem}; the topic is left out',
    'No role needs the topic, so the rest of the recording is used without it.',
)
UNUSABLE = assumed(
    'recording.role_left_out',
    '{problem}: the recording has no {role}',
    'The rest of the recording is used. A command that needs the role reports it.',
    'check whether the driver published, or name another topic with --topic {role}=TOPIC',
)
NO_DEFINITION = routine(
    'recording.no_definition',
    'the bag does not define its type {found}; the topic is left out, others are read',
    'The recorder had no definition of the type. Types that are read need none.',
)
READ_AS_FIX = routine(
    'recording.gps_fix',
    'gps_msgs/GPSFix is read as sensor_msgs/NavSatFix',
    'Position, covariance and status of the fix are used, its speed and track are not.',
)
OTHER_FRAME = routine(
    'recording.other_frame',
    'frame_id is {found}, not {expected} ({count:d}x); dropped',
    'One topic must have one frame. Messages of a rare second frame are dropped.',
)
ONLY_ONE = routine(
    'recording.role_guessed',
    '{default} is missing; this topic is used as {role}, as it is the only one of its type',
    'No topic has the default name, so the role follows from the type.',
    'name the topic in recording.yaml or by option if it is another',
)
SEVERAL = assumed(
    'recording.role_open',
    '{count:d} topics have the type of the {role} and none is named {default}; only a '
    'topic to which a judge subscribes is used as the {role}',
    'The recording does not say which of several sensors is to be used.',
    'name it in recording.yaml or with --topic {role}=TOPIC',
)
OVERLAP = routine(
    'recording.overlap',
    'topics have {common:.2f s} in common, the longest lasts {longest:.2f s}; only the common '
    'time can be judged',
    'Sensors were started or stopped at different times.',
)
REFERENCE = routine(
    'recording.reference_truth',
    'the truth is a reference computed by {made_by} from {sensors}; errors against it '
    'are too small, because it is not independent of the sensors',
    'The truth is an estimate made from the recorded sensors themselves.',
)
CORRECTED = routine(
    'recording.corrected',
    'changed as recording.yaml states: {change!s}',
    'The messages differ from those of the file, because `corrections` or `truth: '
    'low_pass` in recording.yaml changes them.',
)
TRANSFORM = routine(
    'recording.transform',
    '{problem}',
    'A static transform is invalid, is given twice, is replaced by the transform file, '
    'or belongs to a moving joint.',
)
FRAMES_ASSUMED = assumed(
    'frames.assumed_equal',
    'no static transforms in the recording; frames assumed equal: {frames}',
    'Lever arms and mounting angles are taken as zero.',
    'give the transforms with --transforms or in recording.yaml',
)
TRUTH_NOT_ENU = decisive(
    'truth.not_enu',
    'fixes are {before:.1f m} rms from the truth, but {after:.1f m} if the truth is turned by '
    '{turn:.0f degrees}: the frame of the truth is not east-north-up, so simulated fixes and '
    'start headings are turned against the real ones',
    'Real and simulated runs are judged in different frames.',
    'turn the truth to east-north-up',
)
TRUTH_CHECK = routine(
    'truth.inconsistent',
    '{problem!s}',
    'The parts of the truth (position, velocity, attitude, rate) contradict each other.',
)
TRUTH_ASSUMED = assumed(
    'truth.frame_assumed',
    '{problem}; assumed equal to {base}',
    'The truth does not name the frame that it describes, or no static transform gives the lever '
    'arm, which is taken as zero.',
)
TRUTH_FROM_POSES = assumed(
    'truth.from_poses',
    'has only poses at {rate:.3g Hz}; velocities are derived from parabolas through '
    'three positions: 1 mm of noise becomes {noise:.2g mm/s}',
    'A topic of poses, two frames of /tf, or a trajectory file holds no velocity.',
    'set truth: {{low_pass: HZ}} in recording.yaml if the poses are noisy',
)
TRUTH_MOVED = routine(
    'truth.moved',
    'truth is given for {child} and moved to {base} by static transforms',
    'The lever arm between both frames is taken into account.',
)


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
        File or folder, for error messages.
    topic : str
        Name of the topic.
    array : MessageArray
        Messages in the order received; `arrival_ns` is the receive time.
    is_truth : bool
        Whether the topic is the truth, which must increase strictly in time and have an
        orientation. Its covariances are not checked.
    has_covariance : bool
        False for types whose messages have no covariance (TwistStamped, Twist).

    Returns
    -------
    MessageArray, list of Finding
        Messages whose stamps never decrease; only the truth loses repeated stamps.

    Raises
    ------
    NothingUsableError
        When the topic is empty, or no usable message is left.
    RecordingError
        When more than `MAXIMUM_BROKEN` is broken, or the truth is one message.
    """
    if not len(array):
        raise NothingUsableError(f'{where}: {topic}: no messages')
    check = _TopicCheck(topic, array, is_truth)
    for rule in _rules_for(array):
        # Each rule relies on at least one message.
        if len(check.array):
            rule(check)
    if check.broken_count > MAXIMUM_BROKEN * len(array):
        raise RecordingError(
            f'{where}: {topic}: {check.broken_count} of {len(array)} messages are broken '
            f'({check.first_broken}); at most {MAXIMUM_BROKEN:.0%} may be dropped'
        )
    if not len(check.array):
        reason = check.notes[-1].problem.partition(' (')[0] if check.notes else 'all were dropped'
        raise NothingUsableError(f'{where}: {topic}: no usable message is left: {reason}')
    if is_truth and len(check.array) < 2:
        raise RecordingError(f'{where}: {topic}: one message only; a true motion needs 2 or more')
    _report_gaps(check)
    if has_covariance and not is_truth:
        _report_covariances(check)
    return check.array, check.notes


@dataclasses.dataclass
class _TopicCheck:
    """Messages of one topic that the rules have left, and the findings about the others."""

    name: str
    array: Any
    is_truth: bool
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
        rules.append(_check_finite)
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
    check.report(STAMP_ZERO, is_zero.sum())
    if is_zero.any():
        check.replace_fields(stamp_ns=np.where(is_zero, received, stamp))
    check.drop(check.array.stamp_ns <= 0, BAD_STAMP, 'stamp is not positive')
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
        covariance = _replace_rows(array.orientation_covariance, is_zero, _ABSENT)
        check.replace_fields(orientation_covariance=covariance)
        absent = absent | is_zero
    is_unusable = absent & ~(np.abs(_norms(check) - 1.0) <= _NORM_TOLERANCE)
    if is_unusable.any():
        orientation = _replace_rows(array.orientation, is_unusable, _IDENTITY)
        check.replace_fields(orientation=orientation)


def _check_finite(check: _TopicCheck) -> None:
    for field in dataclasses.fields(check.array):
        values = getattr(check.array, field.name)
        if isinstance(values, np.ndarray) and values.dtype == np.float64:
            # Drivers write the largest number there is for a covariance that they do not know.
            largest = sys.float_info.max if field.name.endswith('covariance') else LARGEST
            is_finite = by_blocks(lambda rows, limit=largest: _is_within(rows, limit), values)
            check.drop(~is_finite, BAD_VALUE, f'{field.name} is not finite')


def _is_within(rows: FloatArray, limit: float) -> NDArray[np.bool_]:
    """Return True for each row (n, ...) whose absolute values are at most `limit`."""
    return np.asarray((np.abs(rows) <= limit).all(axis=tuple(range(1, rows.ndim))))


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


def _replace_rows(values: FloatArray, mask: NDArray[np.bool_], row: FloatArray) -> FloatArray:
    """Return values with the rows of a mask replaced; one repeated row where the mask is full."""
    if mask.all():
        return np.broadcast_to(row, values.shape)
    replaced: FloatArray = values.copy()
    replaced[mask] = row
    return replaced


def _norms(check: _TopicCheck) -> FloatArray:
    """Return the norms of the orientation quaternions, (n,)."""
    return by_blocks(lambda rows: np.hypot.reduce(rows, axis=1), check.array.orientation)


def _check_zero_orientation(check: _TopicCheck) -> None:
    is_zero = _norms(check) < _ZERO_NORM
    if check.is_truth:
        check.drop(is_zero, BAD_VALUE, 'orientation is all zero')
    elif is_zero.any():
        check.report(NO_ATTITUDE, is_zero.sum(), treatment='set to identity, as ekf_node does')
        orientation = _replace_rows(check.array.orientation, is_zero, _IDENTITY)
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
    for field in dataclasses.fields(check.array):
        if not field.name.endswith('_covariance'):
            continue
        covariance: FloatArray = getattr(check.array, field.name)
        quantity = field.name.removesuffix('_covariance').replace('_', ' ')
        if isinstance(check.array, ImuArray):
            absent = is_absent(covariance)
            check.report(ABSENT, absent.sum(), quantity=quantity)
        else:
            absent = np.zeros(len(covariance), np.bool_)
        is_unknown = by_blocks(lambda rows: (rows == 0.0).all(axis=(1, 2)), covariance) & ~absent
        check.report(COVARIANCE_ZERO, is_unknown.sum(), quantity=quantity)
        variances = np.diagonal(covariance, axis1=1, axis2=2)
        is_negative = (variances < 0.0).any(axis=1) & ~absent
        check.report(COVARIANCE_NEGATIVE, is_negative.sum(), quantity=quantity)
