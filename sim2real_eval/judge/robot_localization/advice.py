# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Findings about inputs and estimates of the embedded judge."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.findings import Finding, FindingKind, assumed, decisive, routine
from sim2real_eval.judge.estimate import JudgedRun, PartCount
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    IntArray,
    MessageArray,
    OdometryArray,
    TwistArray,
    is_absent,
)
from sim_sensors.world.geodesy import LocalFrame
from .configuration import NAVSAT_TOPIC, FilterConfig, NavsatConfig, SourceConfig, gate_name
from .navsat import NavsatState, early_fixes, lost_fixes
from .parts import ACCELERATION, PartName
from .state import YAW, RecordArray, Timing

_MAX = 0.5
_MIN_GRAVITY = 0.05  # m/s^2; an error of 0.07 m/s with the default noises
_UP = np.array([0.0, 0.0, 1.0])
_NEAR_TICK_NS = 1000
_MIN_ON_A_SIDE = 0.05  # share of the fixes


_ASK = (
    'if the input is right, raise `{gate}` or the process noise (`sim2real judge` tries '
    'thresholds on the recording); if it is wrong, leave it out'
)
_HELPS = (
    'if the input is right, set `{gate}: {threshold:.3g}`, with which no long rejection remains '
    'here, or raise the process noise; if it is wrong, leave it out'
)
_NONE_HELPS = (
    'no `{gate}` up to {threshold:.3g} helps: check the covariances and frames of all inputs with '
    '`sim2real check`, and raise the process noise'
)


DIFFERENTIAL = assumed(
    'rl.differential_gps',
    'fuses GPS increments, which are world components, as body velocity: forward speed is '
    'meaningless unless the vehicle drives along a world axis; horizontal speed is not affected',
    'robot_localization does not rotate the increments of a differential pose into the body.',
    'rotate them with --correct differential (in a study file `correct: [differential]`)',
)
NO_ATTITUDE = routine(
    'rl.no_attitude',
    'is configured to measure orientation, but {topic} has none (-1): this part is skipped, and '
    'the attitude comes from the rates alone',
    'The attitude drifts with the bias of the gyroscope.',
)
ABSENT = decisive(
    'rl.absent',
    'is configured to measure {quantity}, but all messages of {topic} mark it as absent '
    '(covariance -1), so that it is not used',
    'As in robot_localization, a quantity with the covariance -1 is skipped.',
    'if the sensor measures it, set `deviation: {{{topic}: {{{quantity}: VALUE}}}}` in case.yaml '
    '(--case), VALUE in SI units from the data sheet',
)
NO_START_HEADING = decisive(
    'rl.no_start_heading',
    'is configured to measure orientation, but {topic} has none (-1): the filter starts with the '
    'heading 0 (east), so forward speed and accelerations are wrong unless the run starts '
    'eastward',
    'Without a heading the filter starts eastward, whatever the vehicle does.',
    'give --start-heading (in a study file and in Python `start_heading`), or '
    'set the sixth element of `initial_state: [...]` to it (rad from east)',
)
GRAVITY_BY_ESTIMATE = routine(
    'rl.gravity_by_estimate',
    'has no orientation: gravity is removed with the estimated attitude, so an attitude error '
    'becomes an acceleration',
    'One degree of tilt leaves 0.17 m/s^2.',
)
NAVSAT_NO_HEADING = decisive(
    'rl.navsat_no_heading',
    'navsat_transform takes its heading from an IMU without orientation (-1): as in '
    'robot_localization the start heading is 0 (east), so the estimated track is turned by the '
    'true start heading',
    'The fixes are rotated into a frame that does not point east.',
    'use an IMU with orientation, or set `use_odometry_yaw: true` of navsat_transform',
)
GRAVITY_LEFT = decisive(
    'rl.gravity_left',
    'is mounted with roll or pitch: as in robot_localization, gravity is removed in the wrong '
    'axes, which leaves {left:.3g m/s^2} of false acceleration at rest',
    'robot_localization subtracts gravity in the axes of the sensor from an acceleration in those '
    'of the body.',
    'remove it in the right axes with --correct gravity (in a study file `correct: [gravity]`)',
)
DIVERGED = decisive(
    'rl.diverged',
    'the estimate becomes NaN {first:.2f s} after its start ({count:d} of '
    '{estimates:d} estimates): as in robot_localization, state or covariance grew out of bounds',
    'The filter is unstable with these covariances.',
    'check process noise, initial covariance and the covariances of the messages',
    per_model=True,
)
UNSCENTED_DIVERGED = decisive(
    'rl.unscented_diverged',
    'the estimate becomes NaN {first:.2f s} after its start ({count:d} of '
    "{estimates:d} estimates): the covariance of robot_localization's unscented filter is no "
    'longer positive definite',
    "The correction of robot_localization's unscented filter can make the covariance indefinite.",
    'use the textbook correction with --correct unscented (in a study file '
    '`correct: [unscented]`)',
    per_model=True,
)
NO_MESSAGE = decisive(
    'rl.no_message',
    'no message was received',
    'The input is configured, but nothing arrived on its topic.',
    'check the topic name in the judge configuration',
)
GATED = decisive(
    'rl.gated',
    'the Mahalanobis gate rejected {refused:d} of {judged:d} measurements, so the estimate hardly '
    'depends on this sensor',
    'The measurements contradict the estimate by more than the covariances allow.',
    'check the covariances, the frames and the rejection thresholds',
)
REFUSED = decisive(
    'rl.refused_for',
    'the Mahalanobis gate rejected all measurements for {longest:.1f s}, from t = {start:.1f s} '
    'to {end:.1f s} after the first estimate ({refused:d} of {judged:d} in all)',
    'For this time the estimate is without the input. Measurements and estimate disagree by more '
    'than their covariances allow, and the judge cannot tell which of them is wrong.',
    '{action}',
)
SINGULAR = decisive(
    'rl.singular',
    '{refused:d} of {judged:d} measurements were rejected, because the covariance of their '
    'innovation was singular or not a number',
    'The filter cannot invert the innovation covariance, so the sensor is not used.',
    'check the covariances of the messages',
)
OLDER = routine(
    'rl.older',
    '{refused:d} of {received:d} messages are older than the previous one and were rejected',
    'robot_localization refuses measurements that go back in time within a topic.',
)
NO_FIX = decisive(
    'navsat.no_fix',
    'received no valid fix, so the filter had no GPS',
    'The estimate comes from the other sensors alone.',
    'check status and topic of the fixes',
)
NO_FIX_IN_MESSAGES = routine(
    'navsat.messages_without_fix',
    'dropped {dropped:d} of {received:d} messages of the GPS that have no fix',
    'The receiver had no fix at these times; this is a real outage.',
)
FIXES_BEYOND_ZONE = routine(
    'navsat.fixes_beyond_zone',
    'dropped {dropped:d} of {fixes:d} fixes that lie outside the UTM zone of the {origin}, the '
    'first at {latitude:.5g}, {longitude:.5g} deg',
    'As in navsat_transform, the zone of the first fix or datum is used throughout; positions far '
    'outside it are errors of the receiver.',
    'correct or remove them in the recording',
)
MAX_BEYOND_ZONE = decisive(
    'navsat.most_beyond_zone',
    'dropped {dropped:d} of {fixes:d} fixes, which lie outside the UTM zone of the {origin} '
    'at {latitude:.5g}, {longitude:.5g} deg',
    'navsat_transform keeps the zone of its first fix or datum, so the filter had hardly any GPS.',
    'remove a wrong first fix from the recording, correct the datum, or use_local_cartesian',
)
FIXES_EARLY = routine(
    'navsat.fixes_early',
    'dropped {dropped:d} of {fixes:d} fixes received before its datum was in use',
    'With a given datum, navsat_transform first needs a filtered odometry and a timer tick.',
)
FIXES_UNUSED = decisive(
    'navsat.fixes_unused',
    'published none of {fixes:d} fixes, because it had no heading or odometry',
    'navsat_transform needs both before it can transform a fix, so the filter had no GPS.',
    'check the topics of the IMU and of the filtered odometry',
)
FIXES_OVERTAKEN = routine(
    'navsat.fixes_overtaken',
    '({frequency:g Hz} timer) dropped {dropped:d} of {fixes:d} fixes that a newer one replaced '
    'before its tick',
    'navsat_transform publishes at most one fix per tick.',
    'set `frequency: VALUE` of navsat_transform to the rate of the fixes (Hz) or more',
)
DATUM_YAW = routine(
    'navsat.datum_yaw',
    'the yaw of the datum is not used; x of the world points east',
    'The front end `enu` works in an east-north-up frame.',
)
NO_VELOCITY = routine(
    'navsat.no_velocity',
    'is configured to measure velocity, but {node} provides none',
    'A fix has no velocity. These parts of the input are skipped.',
)
WORLD_VELOCITY = decisive(
    'rl.world_velocity',
    'velocities are in {frame}, which looks like a world frame, and are used {how} as those of '
    '{base}: they are wrong as soon as the vehicle turns',
    'robot_localization expects the velocity in the body frame.',
    'publish the velocity in the body frame',
)
DATUM_FAR = decisive(
    'navsat.datum_far',
    'the datum is {distance:.0f km} from the first fix',
    'Coordinates far from the datum are inaccurate; the datum is probably wrong.',
    'check the order of latitude and longitude, and the place',
)
TOO_FAST = decisive(
    'estimate.too_fast',
    'the estimated speed first exceeds {limit:g m/s} at t = {first:.2f s} after the first '
    'estimate, and reaches {speed:.3g m/s}',
    'The filter has diverged: no vehicle is that fast.',
    'check covariances, frames and the start heading',
    per_model=True,
)
JUMPS = decisive(
    'estimate.jumps',
    'the estimated position jumps {count:d} times, first by {step:.3g m} at t = {first:.2f s} '
    'after the first estimate',
    'No vehicle moves like that; a wrong position measurement was accepted.',
    'check the fixes, their covariances and the frames',
    per_model=True,
)
FIXES_ON_TICKS = decisive(
    'rl.fixes_on_ticks',
    '{share:.0%} of the fixes arrive within 1 us of a tick, some before and some after it: the '
    'rounding of their stamps decides which of them wait for {period:.3g ms} more',
    'Waiting causes a position error that grows with the speed. Simulated stamps are '
    'rounded differently, so this alone may cause a difference from the real fixes.',
    'start the judge 10 us late: --off-ticks of vepd and study, `off_ticks` of `run_judge`; or '
    'set `corrections: {{gps: {{delay: 0.00001}}}}` in recording.yaml',
)
OTHER_TOPIC = assumed(
    'rl.other_topic',
    'subscribes to {wanted}, which the recording does not have: its IMU {used} is used instead',
    'The judge may use another IMU than the configuration intends.',
    'name another topic with --topic INPUT=TOPIC',
)
COMMANDS_OF_OTHER_TYPE = decisive(
    'rl.command_type',
    'has {recorded} messages, but ekf_node subscribes to {subscribed}: no command is used',
    'The filter brakes as if every command were zero. `stamped_control` chooses between '
    'TwistStamped (true) and Twist (false); its default depends on `rl_version`.',
    'set `stamped_control: {stamped_control}` in the parameters of the judge',
)


def has_no_attitude(imu: ImuArray) -> bool:
    """Return whether an IMU states that it has no orientation (covariance -1)."""
    return bool((np.abs(imu.orientation_covariance[:, 0, 0] + 1.0) <= 1e-9).all())


def input_advice(
    config: FilterConfig,
    navsat: NavsatConfig | None,
    sources: Mapping[str, MessageArray | None],
    headings: ImuArray | None,
    correct: Set[str] = frozenset(),
) -> list[Finding]:
    """Return findings about IMUs without orientation and about differential fixes.

    `sources` are the messages of each input, None for those of navsat_transform, which takes its
    heading from `headings`. `correct` names the deviations of robot_localization that are
    corrected.
    """
    notes: list[Finding] = []
    for source in config.sources:
        if source.differential and source.topic == NAVSAT_TOPIC and 'differential' not in correct:
            notes.append(DIFFERENTIAL(source.name))
        imu = sources.get(source.name)
        if isinstance(imu, ImuArray) and len(imu):
            notes += _absent_quantities(source, imu)
        if not isinstance(imu, ImuArray) or not has_no_attitude(imu):
            continue
        if source.mask[3:6].any():
            unknown = source.mask[YAW] and config.starts_eastward
            kind = NO_START_HEADING if unknown else NO_ATTITUDE
            notes.append(kind(source.name, topic=source.topic))
        if source.remove_gravity:
            notes.append(GRAVITY_BY_ESTIMATE(source.name))
    if navsat is not None and headings is not None and has_no_attitude(headings):
        notes.append(NAVSAT_NO_HEADING())
    return notes


def _absent_quantities(source: SourceConfig, imu: ImuArray) -> list[Finding]:
    """Return findings about fused rates and accelerations that an IMU does not have."""
    quantities = {
        'rate': (source.mask[9:12], imu.angular_velocity_covariance),
        'acceleration': (source.mask[12:], imu.linear_acceleration_covariance),
    }
    return [
        ABSENT(source.name, quantity=quantity, topic=source.topic)
        for quantity, (mask, covariance) in quantities.items()
        if mask.any() and is_absent(covariance).all()
    ]


def mounting_advice(
    parts: RecordArray, names: Sequence[PartName], sources: Mapping[str, MessageArray | None]
) -> list[Finding]:
    """Return findings about gravity that remains for an IMU mounted with roll or pitch.

    Parameters
    ----------
    parts : (p,) of type PART
        Parts with the mounting of their sensors.
    names : inputs of the parts.
    sources : messages of each input.
    """
    notes: list[Finding] = []
    for part, name in zip(parts, names, strict=True):
        if part.kind != ACCELERATION or not part.remove_gravity or part.correct_gravity:
            continue
        # Level and at rest the acceleration in base_link is g e3. robot_localization subtracts
        # g R' e3, with R the mounting, or g R' R' e3 if the orientation is relative.
        removed = part.rotation.T @ _UP
        imu = sources[name.source]
        if part.relative and isinstance(imu, ImuArray) and not has_no_attitude(imu):
            removed = part.rotation.T @ removed
        is_fused = (part.mask[:3] > 0.0) & np.array([True, True, not part.two_d])
        left = part.gravity * float(np.linalg.norm((_UP - removed)[is_fused]))
        if left > _MIN_GRAVITY:
            notes.append(GRAVITY_LEFT(name.source, left=left))
    return notes


def divergence(unscented: bool, textbook: bool) -> FindingKind:
    """Return the kind of finding about estimates that are not finite."""
    return UNSCENTED_DIVERGED if unscented and not textbook else DIVERGED


def part_advice(
    parts: Sequence[PartCount], first_ns: int | None = None, senders: Collection[str] = ()
) -> list[Finding]:
    """Return findings about inputs that the judge hardly used, or not for some time.

    `first_ns` is the stamp of the first estimate; without it the times are not examined. `senders`
    are inputs with messages, which may lack the configured quantities.
    """
    notes: list[Finding] = []
    received: dict[tuple[str, str], int] = {}
    for part in parts:
        key = (part.name.split()[0], part.topic)
        received[key] = received.get(key, 0) + part.received
    for (source, topic), count in received.items():
        if not count and source not in senders:
            notes.append(NO_MESSAGE(f'{source} ({topic})'))
    for part in parts:
        judged = part.fused + part.rejected
        subject = f'{part.name} ({part.topic})'
        gated = part.rejected - part.singular
        refusal = part.longest_refusal
        if first_ns is not None and refusal is not None and refusal.is_long:
            times = {'longest': refusal.duration}
            for name, stamp_ns in (('start', refusal.start_ns), ('end', refusal.end_ns)):
                times[name] = (stamp_ns - first_ns) * 1e-9
            action = _ASK.format(gate=gate_name(*part.name.split()))
            notes.append(REFUSED(subject, refused=gated, judged=judged, action=action, **times))
        elif judged and gated > _MAX * judged:
            notes.append(GATED(subject, refused=gated, judged=judged))
        if part.singular:
            notes.append(SINGULAR(subject, refused=part.singular, judged=judged))
        if part.older:
            notes.append(OLDER(subject, refused=part.older, received=part.received))
    return notes


class Gate(NamedTuple):
    """Parameter of a gate, the last threshold that was tried, and whether it helps."""

    name: str
    threshold: float
    helps: bool


def refused_parts(run: JudgedRun) -> list[PartCount]:
    """Return the parts that a run refused for a long time."""
    parts = run.parts
    return [part for part in parts if part.longest_refusal and part.longest_refusal.is_long]


def with_threshold(notes: Iterable[Finding], part: PartCount, gate: Gate) -> list[Finding]:
    """Return the findings of a run with a tried threshold as the action against refusals."""
    name, threshold, helps = gate
    action = (_HELPS if helps else _NONE_HELPS).format(gate=name, threshold=threshold)
    subject = f'{part.name} ({part.topic})'
    return [
        dataclasses.replace(note, words={**note.words, 'action': action})
        if note.kind is REFUSED and note.subject == subject
        else note
        for note in notes
    ]


def navsat_advice(fixes: int, used: int, lost: int, early: int, frequency: float) -> list[Finding]:
    """Return findings about valid fixes that navsat_transform dropped.

    Parameters
    ----------
    fixes, used : number of valid fixes, and of those passed on.
    lost : number of fixes that a newer one overtook before a tick of the timer.
    early : number of fixes before a given datum could be used.
    frequency : of the timer, Hz.
    """
    if not fixes:
        return [NO_FIX('navsat_transform')]
    notes: list[Finding] = []
    if early:
        notes.append(FIXES_EARLY('navsat_transform', dropped=early, fixes=fixes))
    if used == 0 and early < fixes:
        notes.append(FIXES_UNUSED('navsat_transform', fixes=fixes))
    # One lost fix is normal: the tick that fixes the transform publishes nothing.
    elif lost > 1:
        values = {'dropped': lost, 'fixes': fixes, 'frequency': frequency}
        notes.append(FIXES_OVERTAKEN('navsat_transform', **values))
    return notes


def front_end_advice(
    config: FilterConfig, navsat: NavsatConfig, memory: NavsatState, *, fixes: int, used: int
) -> list[Finding]:
    """Return findings about valid fixes that the front end of a run dropped or does not use."""
    if navsat.has_timer:
        lost, early = lost_fixes(memory), early_fixes(memory)
        return navsat_advice(fixes, used, lost, early, navsat.frequency)
    notes: list[Finding] = []
    if not fixes:
        notes.append(NO_FIX(navsat.title))
    if navsat.datum is not None and navsat.datum[2] != 0.0:
        notes.append(DATUM_YAW(navsat.title))
    for source in config.sources:
        if source.topic == NAVSAT_TOPIC and source.mask[6:12].any():
            notes.append(NO_VELOCITY(source.name, node=navsat.title))
    return notes


# Implausible motions and installations are reported; the estimate is not changed.

_WORLDS = ('map', 'odom', 'world', 'earth', 'utm', 'enu', 'ned')
_FAR_M = 100e3
_FAST = 100.0
_JUMP_M = 100.0


def twist_advice(
    config: FilterConfig, sources: Mapping[str, MessageArray | None], *, turned: bool
) -> list[Finding]:
    """Return findings about velocities that seem to be given in a world frame.

    Static transforms (`turned`) rotate velocities into base_link. If there are none, all frames
    count as equal.
    """
    notes: list[Finding] = []
    for source in config.sources:
        array = sources.get(source.name)
        if not source.mask[6:12].any() or not isinstance(array, (OdometryArray, TwistArray)):
            continue
        frame = array.child_frame if isinstance(array, OdometryArray) else array.frame
        name = frame.strip('/')
        worlds = {*_WORLDS, config.world_frame.strip('/')}
        if isinstance(array, OdometryArray):
            worlds.add(array.frame.strip('/'))
        if not name or name == config.base_link_frame.strip('/') or name not in worlds:
            continue
        how = 'after a turn by a static transform' if turned else 'without a turn'
        subject = f'{source.name} ({source.topic})'
        words = {'frame': name, 'base': config.base_link_frame, 'how': how}
        notes.append(WORLD_VELOCITY(subject, **words))
    return notes


def datum_advice(navsat: NavsatConfig, fixes: FixArray) -> list[Finding]:
    """Return a finding if the configured datum is far from the first fix."""
    if navsat.datum is None or not len(fixes):
        return []
    latitude, longitude, _ = navsat.datum
    offset = LocalFrame(latitude, longitude, 0.0).to_enu(
        fixes.latitude[:1], fixes.longitude[:1], fixes.altitude[:1]
    )
    away = float(np.linalg.norm(offset))
    if away <= _FAR_M:
        return []
    return [DATUM_FAR(navsat.title, distance=away / 1000.0)]


def zone_advice(
    navsat: NavsatConfig, fixes: FixArray, is_inside: NDArray[np.bool_]
) -> list[Finding]:
    """Return the finding about valid fixes outside the UTM zone."""
    dropped = int(np.sum(~is_inside))
    origin = 'first fix' if navsat.datum is None else 'datum'
    is_most = dropped > _MAX * len(fixes)
    # A wrong origin is named by itself, a wrong fix by its position.
    place = (fixes.latitude[~is_inside][0], fixes.longitude[~is_inside][0])
    if is_most:
        place = navsat.datum[:2] if navsat.datum else (fixes.latitude[0], fixes.longitude[0])
    kind = MAX_BEYOND_ZONE if is_most else FIXES_BEYOND_ZONE
    values = {'latitude': place[0], 'longitude': place[1], 'origin': origin}
    return [kind(navsat.title, dropped=dropped, fixes=len(fixes), **values)]


def tick_advice(navsat: NavsatConfig, arrival_ns: IntArray, timing: Timing) -> list[Finding]:
    """Return a finding if rounding decides whether fixes arrive before or after a tick."""
    node, origin, period = 'navsat_transform', timing.navsat_origin, timing.navsat_period
    if not period:
        node, origin, period = 'filter', timing.filter_origin, timing.filter_period
        # The position travels to the filter at once.
        origin -= timing.navsat_latency

    after = (arrival_ns - origin) % period
    sides = after <= _NEAR_TICK_NS, after >= period - _NEAR_TICK_NS
    shares = np.sum(sides, axis=1) / max(len(arrival_ns), 1)
    if shares.min() < _MIN_ON_A_SIDE:
        return []
    return [FIXES_ON_TICKS(node, share=float(shares.sum()), period=period * 1e-6)]


def motion_advice(stamp_ns: IntArray, position: FloatArray, velocity: FloatArray) -> list[Finding]:
    """Return findings about estimates that are faster than any vehicle, or jump.

    Position and velocity are (n, 3), m and m/s. Velocities that are not finite are ignored.
    """
    notes: list[Finding] = []
    speed = np.nan_to_num(np.linalg.norm(velocity, axis=1), nan=0.0, posinf=np.inf)
    if len(speed) and speed.max() > _FAST:
        first = (stamp_ns[np.argmax(speed > _FAST)] - stamp_ns[0]) * 1e-9
        notes.append(TOO_FAST(limit=_FAST, first=first, speed=speed.max()))
    # The square of a diverged position may overflow; such a step is not counted as a jump.
    with np.errstate(over='ignore', invalid='ignore'):
        steps = np.linalg.norm(np.diff(position, axis=0), axis=1)
    limits = _JUMP_M + _FAST * np.diff(stamp_ns) * 1e-9
    jumps = np.flatnonzero(np.isfinite(steps) & (steps > limits))
    if len(jumps):
        first = (stamp_ns[jumps[0] + 1] - stamp_ns[0]) * 1e-9
        notes.append(JUMPS(count=len(jumps), step=steps[jumps[0]], first=first))
    return notes
