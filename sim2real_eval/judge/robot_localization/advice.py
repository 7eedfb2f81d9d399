# SPDX-License-Identifier: Apache-2.0
"""Findings about inputs of the judge that change the meaning of its estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import numpy as np

from sim2real_eval.common.findings import Finding, FindingKind
from sim2real_eval.judge.estimate import PartCount
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    IntArray,
    MessageArray,
    OdometryArray,
    TwistArray,
)
from sim_sensors.world.geodesy import LocalFrame
from . import findings
from .configuration import NAVSAT_TOPIC, FilterConfig, NavsatConfig
from .navsat import NavsatState, early_fixes, lost_fixes
from .state import YAW, Timing

_MOST = 0.5
_LEAST_GRAVITY = 0.05
_NEAR_TICK_NS = 1000
_LEAST_ON_A_SIDE = 0.05  # share of the fixes


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
            notes.append(findings.DIFFERENTIAL(source.name))
        imu = sources.get(source.name)
        if not isinstance(imu, ImuArray) or not has_no_attitude(imu):
            continue
        if source.mask[3:6].any():
            unknown = source.mask[YAW] and config.starts_eastward
            kind = findings.NO_START_HEADING if unknown else findings.NO_ATTITUDE
            notes.append(kind(source.name, topic=source.topic))
        if source.remove_gravity:
            notes.append(findings.GRAVITY_BY_ESTIMATE(source.name))
    if navsat is not None and headings is not None and has_no_attitude(headings):
        notes.append(findings.NAVSAT_NO_HEADING())
    return notes


def mounting_advice(
    inputs_frames: Sequence[tuple[str, FloatArray]], gravity: float
) -> list[Finding]:
    """Return findings about gravity that remains for an IMU mounted with roll or pitch.

    Parameters
    ----------
    inputs_frames : IMUs whose gravity is removed: name and rotation, (3, 3), sensor to base_link.
    gravity : m/s^2.
    """
    notes: list[Finding] = []
    for name, rotation in inputs_frames:
        # Level and at rest the acceleration in base_link is (0, 0, g); robot_localization
        # subtracts g times the third row of the mounting rotation.
        left_in = gravity * float(np.hypot(rotation[2, 0], rotation[2, 1]))
        if left_in > _LEAST_GRAVITY:
            notes.append(findings.GRAVITY_LEFT(name, left=left_in))
    return notes


def divergence(unscented: bool, textbook: bool) -> FindingKind:
    """Return the kind of finding about estimates that are not finite."""
    return findings.UNSCENTED_DIVERGED if unscented and not textbook else findings.DIVERGED


def part_advice(parts: Sequence[PartCount]) -> list[Finding]:
    """Return findings about inputs that the judge hardly used."""
    notes: list[Finding] = []
    received: dict[tuple[str, str], int] = {}
    for part in parts:
        key = (part.name.split()[0], part.topic)
        received[key] = received.get(key, 0) + part.received
    for (source, topic), count in received.items():
        if not count:
            notes.append(findings.NO_MESSAGE(f'{source} ({topic})'))
    for part in parts:
        judged = part.fused + part.rejected
        subject = f'{part.name} ({part.topic})'
        gated = part.rejected - part.singular
        if judged and gated > _MOST * judged:
            notes.append(findings.GATED(subject, refused=gated, judged=judged))
        if part.singular:
            notes.append(findings.SINGULAR(subject, refused=part.singular, judged=judged))
        if part.older:
            notes.append(findings.OLDER(subject, refused=part.older, received=part.received))
    return notes


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
        return [findings.NO_FIX('navsat_transform')]
    notes: list[Finding] = []
    if early:
        notes.append(findings.FIXES_EARLY('navsat_transform', dropped=early, fixes=fixes))
    if used == 0 and early < fixes:
        notes.append(findings.FIXES_UNUSED('navsat_transform', fixes=fixes))
    # One lost fix is normal: the tick that fixes the transform publishes nothing.
    elif lost > 1:
        values = {'dropped': lost, 'fixes': fixes, 'frequency': frequency}
        notes.append(findings.FIXES_OVERTAKEN('navsat_transform', **values))
    return notes


def front_end_advice(
    config: FilterConfig, navsat: NavsatConfig, memory: NavsatState, *, fixes: int, used: int
) -> list[Finding]:
    """Return findings about valid fixes that the front end of a run dropped or does not use."""
    if navsat.timed:
        lost, early = lost_fixes(memory), early_fixes(memory)
        return navsat_advice(fixes, used, lost, early, navsat.frequency)
    notes: list[Finding] = []
    if not fixes:
        notes.append(findings.NO_FIX(navsat.title))
    if navsat.datum is not None and navsat.datum[2] != 0.0:
        notes.append(findings.DATUM_YAW(navsat.title))
    for source in config.sources:
        if source.topic == NAVSAT_TOPIC and source.mask[6:12].any():
            notes.append(findings.NO_VELOCITY(source.name, node=navsat.title))
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
        notes.append(findings.WORLD_VELOCITY(subject, **words))
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
    return [findings.DATUM_FAR(navsat.title, distance=away / 1000.0)]


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
    if shares.min() < _LEAST_ON_A_SIDE:
        return []
    return [findings.FIXES_ON_TICKS(node, share=float(shares.sum()), period=period * 1e-6)]


def motion_advice(stamp_ns: IntArray, position: FloatArray, velocity: FloatArray) -> list[Finding]:
    """Return findings about estimates that are faster than any vehicle, or jump.

    Position and velocity are (n, 3), m and m/s. Velocities that are not finite are ignored.
    """
    notes: list[Finding] = []
    speed = np.nan_to_num(np.linalg.norm(velocity, axis=1), nan=0.0, posinf=np.inf)
    if len(speed) and speed.max() > _FAST:
        first = (stamp_ns[np.argmax(speed > _FAST)] - stamp_ns[0]) * 1e-9
        notes.append(findings.TOO_FAST(limit=_FAST, first=first, speed=speed.max()))
    # The square of a diverged position may overflow; such a step is not counted as a jump.
    with np.errstate(over='ignore', invalid='ignore'):
        steps = np.linalg.norm(np.diff(position, axis=0), axis=1)
    limits = _JUMP_M + _FAST * np.diff(stamp_ns) * 1e-9
    jumps = np.flatnonzero(np.isfinite(steps) & (steps > limits))
    if len(jumps):
        first = (stamp_ns[jumps[0] + 1] - stamp_ns[0]) * 1e-9
        notes.append(findings.JUMPS(count=len(jumps), step=steps[jumps[0]], first=first))
    return notes
