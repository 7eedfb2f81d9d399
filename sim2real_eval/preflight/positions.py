# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Checks of fixes and truth against each other: axes, turn, scale, delay, lever arm and jumps.

One model relates fixes to the truth:

    fix(t) = scale * R * (truth(t - delay) + lever arm) + offset + noise

Axes are hypotheses: as recorded, north-east-down, those of a camera, or fixes with latitude and
longitude exchanged. Track and heights together choose the most likely one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sim2real_eval.recording.corrections import FixCorrection, TruthCorrection
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.truth_intervals import JUMP_M, MAX_STEP_ERROR_M, SIGMAS, jump_limit
from . import findings
from .arrays import plane
from .delays import DelayFit
from .evidence import Evidence, intervals
from .outcome import Measure
from .track import Track
from .velocities import SCALE, match_unit, plain, speed_ratio

# 5 % of the speed appears as lateral velocity at 3 deg, 17 % at 10 deg.
_TURN_DEG = (3.0, 10.0)
# A smaller turn is a finding if it moves the fixes by more than their noise.
_MIN_TURN_DEG = 0.5
# Receivers need 0.1 s; at 0.3 s and 10 m/s a fix is 3 m behind.
_LATE_S = (0.1, 0.3)
_MIN_LATE_S = 0.05
_MIN_ARM_M = 0.5
_INDEPENDENT_S = 10.0
# Ratio of singular values below which the columns of a fit are not independent.
_MIN_SINGULAR_RATIO = 0.03
_FIX_JUMP_M = 2.0
# Multipath of tens of metres lasts for seconds; from fix to fix a poor receiver errs by metres.
_MAX_WHITE_M = 20.0
# Motion of the truth, over the errors of the fixes, below which it counts as at rest.
_RESTS = 0.3
# Smallest share of white errors among the errors of a receiver.
_WHITE = 0.5
# Multiple of the stated deviation beyond which fixes have nothing to do with the truth.
_UNRELATED = 5.0
_HEIGHT_NOISE_M = 1.0
# Heights of a receiver err by metres; a smaller climb has no scale.
_MIN_CLIMB_M = 1.5
_ALTITUDE_SCALE = 0.3
_ALTITUDE_UNITS = {3.28084: 'feet', 1000.0: 'millimetres', 100.0: 'centimetres'}
_LOWEST_M, _HIGHEST_M = -500.0, 20000.0
# Angle within which a mirror image needs no turn, rad.
_SAME_TURN = 0.3
_CLEARLY = 0.5 * SIGMAS**2
"""Difference of log likelihoods beyond which a hypothesis is preferred."""


def measure_axes(evidence: Evidence) -> Iterator[Measure]:
    """Choose the axes of truth and fixes, then compare their turn and scale."""
    yield from _choose_axes(evidence)
    track, topic = evidence.track, evidence.topic('truth')
    if track is None or 'fixes' in evidence.doubtful:
        return
    fit = track.fitted
    if fit.explained < 0.5:
        return
    turn = -math.degrees(np.angle(fit.gain))
    error = math.degrees(fit.deviation / abs(fit.gain))
    finding, limit = None, _turn_limit(track, fit) + SIGMAS * error
    if abs(turn) > limit:
        kind = findings.TRUTH_TURNED_LARGE if abs(turn) > _TURN_DEG[1] else findings.TRUTH_TURNED
        finding = kind(topic, turn=turn, set=evidence.correct('truth', turn=turn).turn)
    yield Measure(turn, limit, finding, 'truth', 'either')
    scale = 1.0 / abs(fit.gain)
    finding, limit = None, SCALE + SIGMAS * fit.deviation / abs(fit.gain)
    if abs(math.log(scale)) > limit:
        back, speed = plain(1.0 / scale), speed_ratio(evidence)
        is_both = speed is not None and abs(math.log(speed[0])) < speed[1]
        speed_scale = back if is_both else 1.0
        total = evidence.correct('truth', position_scale=back, speed_scale=speed_scale)
        key = f', speed_scale: {total.speed_scale:.6g}' if is_both else ''
        finding = findings.TRUTH_SCALE(
            topic, scale=1.0 / back, set=total.position_scale, speeds=key
        )
    yield Measure(scale, math.exp(limit), finding, 'truth scale', 'ratio')


def _turn_limit(track: Track, fit: DelayFit) -> float:
    """Return the turn, deg, that moves the fixes by more than their noise, at most 3 deg."""
    truth = track.truth(track.stamps)
    extent = float(np.sqrt(np.mean(np.abs(truth - truth.mean()) ** 2)))
    noise = math.sqrt(fit.residual)
    return float(np.clip(math.degrees(noise / extent), _MIN_TURN_DEG, _TURN_DEG[0]))


def _choose_axes(evidence: Evidence) -> Iterator[Measure]:
    """Correct the axes that explain the fixes best, unless they are those recorded."""
    topic, gps_topic = evidence.topic('truth'), evidence.topic('gps')
    track, camera_fit = evidence.track, _fit_as_camera(evidence)
    if camera_fit is not None and (
        track is None or camera_fit.residual < 0.2 * track.near.residual
    ):
        total = evidence.correct('truth', axes='camera')
        yield Measure(None, None, findings.TRUTH_CAMERA(topic, axes=total.axes), 'truth axes')
        return
    if track is None:
        return
    if _is_in_radians(evidence, track):
        evidence.doubtful |= {'fixes', 'fix errors'}
        yield Measure(None, None, findings.FIXES_IN_RADIANS(gps_topic), 'gps axes')
        return
    near, mirror, exchanged = track.fitted, track.in_mirror, _fit_exchanged(evidence)
    if exchanged is not None and _is_exchanged(exchanged, near, mirror):
        total = evidence.correct('gps', swapped=True)
        swapped = str(total.swapped).lower()
        finding = findings.SWAPPED(gps_topic, role=evidence.role('gps'), swapped=swapped)
        yield Measure(None, None, finding, 'gps axes')
        return
    # A straight track does not show a mirror image, and a level one not the sign of heights.
    upright, upside_down = _height_costs(track)
    as_recorded = near.freedom * _log(near.residual) + upright
    down_only = near.freedom * _log(near.residual) + upside_down
    north_east_down = mirror.freedom * _log(mirror.residual) + upside_down
    flat_mirror = mirror.is_better_than(near.residual) and mirror.residual < 0.5 * near.residual
    if min(down_only, as_recorded) - north_east_down > _CLEARLY or (
        flat_mirror and upside_down <= upright
    ):
        is_ned = True
    else:
        # Both explain a straight track; only north-east-down needs no turn then.
        turn_as_ned = abs(np.angle(mirror.gain / 1j)) if mirror.gain else math.pi
        is_ned = (
            as_recorded - north_east_down > _CLEARLY
            and mirror.explained > 0.5
            and turn_as_ned < abs(np.angle(near.gain))
        )
    coordinate = _lost_sign(mirror) if upright <= upside_down + _CLEARLY else ''
    if is_ned and coordinate and not evidence.recording.corrections.get('truth'):
        evidence.doubtful |= {'fixes', 'fix errors'}
        finding = findings.FIXES_SIGN(gps_topic, coordinate=coordinate)
        yield Measure(None, None, finding, 'gps axes')
    elif is_ned:
        total = evidence.correct('truth', axes='ned')
        yield Measure(None, None, findings.TRUTH_NED(topic, axes=total.axes), 'truth axes')
    elif as_recorded - down_only > _CLEARLY and track.height_correlation < -0.8:
        finding = findings.TRUTH_DOWN(topic, correlation=track.height_correlation)
        evidence.doubtful.add('height')
        yield Measure(track.height_correlation, -0.8, finding, 'truth height', 'least', unit='')


def _lost_sign(mirror: DelayFit) -> str:
    """Return the coordinate whose sign is lost if a mirror image needs no turn; else nothing.

    North-east-down exchanges north and east, so it mirrors the track in the diagonal.
    """
    turn = float(np.angle(mirror.gain))
    if abs(turn) < _SAME_TURN:
        return 'latitude'
    return 'longitude' if abs(turn) > math.pi - _SAME_TURN else ''


def _is_in_radians(evidence: Evidence, track: Track) -> bool:
    """Return whether the fixes follow the truth only if their coordinates are in radians."""
    fixes = evidence.fixes
    assert fixes is not None
    if max(np.abs(fixes.latitude).max() * 2.0, np.abs(fixes.longitude).max()) > math.pi:
        return False
    if abs(abs(track.near.gain) - 1.0) < SCALE and track.near.explained > 0.5:
        return False
    degrees = dataclasses.replace(
        fixes, latitude=np.degrees(fixes.latitude), longitude=np.degrees(fixes.longitude)
    )
    other = evidence.track_of(degrees)
    fit = None if other is None else other.near
    return fit is not None and fit.explained > 0.8 and abs(abs(fit.gain) - 1.0) < SCALE


def _height_costs(track: Track) -> tuple[float, float]:
    """Return the negative log likelihoods of the heights for a truth with z up and with z down."""
    altitude_change, true = track.heights
    count = 0.5 * max(track.span / 5.0, 1.0)
    up, down = (
        count * _log(float(np.mean((altitude_change - sign * true) ** 2)) + _HEIGHT_NOISE_M**2)
        for sign in (1.0, -1.0)
    )
    return up, down


def _log(residual: float) -> float:
    return math.log(max(residual, 1e-12))


def _fit_as_camera(evidence: Evidence) -> DelayFit | None:
    """Return the fit of a truth in the axes of a camera to the fixes.

    None if it does not explain them, or if the truth explains them as it is.
    """
    track = evidence.track
    correction = evidence.recording.corrections.get('truth', TruthCorrection())
    if evidence.truth is None or evidence.fixes is None:
        return None
    if correction.axes != 'enu' or correction.turn or correction.heading or correction.body_yaw:
        # Axes come before turns, so that both together are not one correction.
        return None
    if track is not None and track.near.explained > 0.5:
        return None
    track = evidence.with_correction('truth', axes='camera').track
    return track.near if track is not None and track.near.explained > 0.8 else None


def _fit_exchanged(evidence: Evidence) -> DelayFit | None:
    """Return the fit of the truth to the fixes with latitude and longitude exchanged.

    None if these are not coordinates, or if the fit needs another turn or scale.
    """
    fixes = evidence.fixes
    if fixes is None or np.abs(fixes.longitude).max() > 90.0:
        return None
    track = evidence.track_of(FixCorrection(swapped=True).apply(fixes))
    fit = None if track is None else track.near
    return fit if fit is not None and abs(fit.gain - 1.0) < 0.3 else None


def _is_exchanged(exchanged: DelayFit, near: DelayFit, mirror: DelayFit) -> bool:
    """Return whether exchanged coordinates explain the fixes better than the others.

    Exchanged coordinates distort the track, unlike a mirror image: a fit that explains as much but
    needs another scale is less likely.
    """
    other = min(near, mirror, key=lambda fit: fit.residual)
    if exchanged.residual < 0.2 * other.residual:
        return True
    scales_apart = abs(_log(abs(other.gain))) > SCALE > abs(exchanged.gain - 1.0)
    return scales_apart and exchanged.explained > 0.5 and exchanged.residual < 1.1 * other.residual


def measure_delay(evidence: Evidence) -> Iterator[Measure]:
    """Choose between a delay of the fixes and a lever arm that is not stated.

    At a steady speed both explain the same errors. If they are as likely, both are named, and
    none is corrected.
    """
    track = evidence.track
    if track is None or evidence.doubtful & {'fixes', 'delay', 'gps delay'}:
        return
    if not track.fitted.explained > 0.5:
        return
    fit, topic, role = track.fitted, evidence.topic('gps'), evidence.role('gps')
    delay, finding = fit.seconds, None
    limit = _delay_limit(track, fit) + SIGMAS * fit.delay_deviation
    arm = None
    if 'orientation' not in evidence.doubtful:
        arm = _fit_lever_arm(evidence, track, delay if abs(delay) > limit else 0.0)
    is_late = abs(delay) > limit
    if arm is not None and (arm.gain > _CLEARLY or not is_late):
        yield _measure_lever_arm(evidence, arm)
        return
    if is_late and arm is not None and abs(arm.gain) <= _CLEARLY:
        finding = findings.LATE_OR_ARM(topic, delay=delay, size=abs(arm.value))
        evidence.doubtful |= {'fix errors'}
    elif is_late:
        kind = findings.FIXES_LATE_LARGE if abs(delay) > _LATE_S[1] else findings.FIXES_LATE
        total = evidence.correct('gps', delay=delay).delay
        finding = kind(topic, role=role, delay=delay, set=total)
    yield Measure(delay, limit, finding, 'gps', 'either')


def _measure_lever_arm(evidence: Evidence, arm: _LeverArmFit) -> Measure:
    """Add a lever arm to the evidence, and report it."""
    topic, role = evidence.topic('gps'), evidence.role('gps')
    stated = evidence.gps_lever_arm() + np.array([arm.value.real, arm.value.imag, 0.0])
    evidence.add_gps_lever_arm(arm.value)
    x, y, z = (float(value) for value in np.round(stated, 2))
    size = abs(arm.value)
    finding = findings.LEVER_ARM(topic, size=size, role=role, x=x, y=y, z=z)
    return Measure(size, _MIN_ARM_M, finding, 'gps lever arm', unit='m')


def _delay_limit(track: Track, fit: DelayFit) -> float:
    """Return the delay, s, that moves the fixes by more than their noise, at most 0.1 s."""
    speed = np.abs(np.diff(track.truth(track.stamps))) / np.diff(track.stamps)
    usual = float(np.sqrt(np.mean(speed**2)))
    return float(np.clip(math.sqrt(fit.residual) / max(usual, 1e-3), _MIN_LATE_S, _LATE_S[0]))


class _LeverArmFit(NamedTuple):
    """Lever arm that explains the errors of the fixes."""

    value: complex  # forward + i left, m
    gain: float  # log likelihood relative to a delay


def _fit_lever_arm(evidence: Evidence, track: Track, delay: float) -> _LeverArmFit | None:
    """Fit a lever arm to the errors of the fixes; None if it is not significant."""
    truth = evidence.truth
    assert truth is not None
    sample = np.interp(
        track.stamps, (truth.stamp_ns - truth.stamp_ns[0]) * 1e-9, np.arange(len(truth))
    )
    orientation = truth.orientation[np.rint(sample).astype(int)]
    ahead, aside = (
        plane(rotations.rotate(orientation, np.tile(axis, (len(orientation), 1))))
        for axis in np.eye(3)[:2]
    )
    residual, late = track.residual, track.measured - track.truth(track.stamps - delay)
    # Errors beyond ten robust standard deviations (1.5 times the median) are jumps.
    size = np.abs(residual - np.median(residual))
    is_usual = size < 10.0 * 1.5 * max(float(np.median(size)), 1e-6)
    if is_usual.sum() < 16:
        return None
    position, ones = track.truth(track.stamps), np.ones(len(ahead), complex)
    # Complex offset; a turn of the truth may explain the errors, too.
    constant = [ones, 1j * ones, 1j * (position - position.mean())]
    freedom = max(track.span / _INDEPENDENT_S, 4.0)

    def fit(columns: list[Any], errors: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        design = _real_rows([column[is_usual] for column in columns])
        values = _real_rows([errors[is_usual]])[:, 0]
        solution, *_ = np.linalg.lstsq(design, values, rcond=1e-9)
        variance = float(np.mean((values - design @ solution) ** 2))
        inverse = np.linalg.pinv(design.T @ design / len(values), rcond=1e-9)
        deviation = np.sqrt(np.maximum(np.diag(inverse), 0.0) * variance / (2.0 * freedom))
        return variance, np.asarray(solution), np.asarray(deviation)

    if _is_degenerate([column[is_usual] for column in (*constant, ahead, aside)]):
        # On a circle a turn of the truth moves the fixes as a lever arm does.
        return None
    variance, solution, deviation = fit([*constant, ahead, aside], residual)
    value = complex(solution[3], solution[4])
    error = float(np.hypot(*deviation[3:]))
    is_turning = np.abs(np.mean(ahead[is_usual])) < 0.9
    if not is_turning or abs(value) < _MIN_ARM_M + SIGMAS * error:
        return None
    without, *_ = fit(constant, late)
    gain = freedom * (_log(without) - _log(variance))
    return _LeverArmFit(value, gain)


def _real_rows(columns: list[FloatArray]) -> FloatArray:
    """Return complex columns, (n,) each, as a real matrix (2 n, k): real above imaginary parts."""
    return np.stack([np.concatenate([column.real, column.imag]) for column in columns], axis=1)


def _is_degenerate(columns: list[FloatArray]) -> bool:
    """Return whether complex columns of a linear fit hardly differ from combinations of others."""
    design = _real_rows(columns)
    sizes = np.linalg.svd(design / np.linalg.norm(design, axis=0), compute_uv=False)
    return bool(sizes[-1] < _MIN_SINGULAR_RATIO * sizes[0])


def measure_altitude(evidence: Evidence) -> Iterator[Measure]:
    """Compare altitudes of the fixes with heights of the truth: their scale, and their place."""
    fixes, track = evidence.fixes, evidence.track
    if fixes is None:
        return
    topic, altitude = evidence.topic('gps'), fixes.altitude
    if track is None or evidence.doubtful & {'fixes', 'delay'}:
        return
    altitude_change, true = track.heights
    size, power = float(np.mean(true**2)), float(np.mean(altitude_change**2))
    product = float(np.mean(altitude_change * true))
    explained = product**2 / max(size * power, 1e-12)
    scale, finding = product / max(size, 1e-12), None
    is_impossible = not _LOWEST_M < float(np.median(altitude)) < _HIGHEST_M
    if math.sqrt(size) > _MIN_CLIMB_M and explained > 0.8 and scale > 0.0:
        if abs(math.log(scale)) > _ALTITUDE_SCALE:
            _, unit = match_unit(scale, _ALTITUDE_UNITS, SCALE)
            finding = findings.ALTITUDE_UNIT(topic, scale=scale, unit=unit)
        yield Measure(scale, math.exp(_ALTITUDE_SCALE), finding, 'gps', 'ratio')
    elif is_impossible:
        value = float(np.median(altitude))
        yield Measure(value, None, findings.ALTITUDE_PLACE(topic, altitude=value), 'gps', unit='m')


def measure_jumps(evidence: Evidence) -> Iterator[Measure]:
    """Count steps of truth and fixes beyond ten robust deviations, and beyond what vehicles do.

    Steps of the truth are those that its twist does not explain, or without a twist the changes
    from step to step; those of the fixes are relative to the truth. A step beyond 100 m is a jump
    however much the fixes scatter.
    """
    truth, track = evidence.truth, evidence.track
    if truth is not None and len(truth) > 8 and 'steps' not in evidence.doubtful:
        velocities = evidence.velocities
        steps = intervals(truth)
        usual = steps < 3.0 * np.median(steps)
        if velocities is not None:
            errors = velocities.position_errors
        else:
            usual = usual[1:] & usual[:-1]
            errors = np.linalg.norm(np.diff(truth.position, n=2, axis=0), axis=1)
        count, largest, limit = _outliers(errors[usual], JUMP_M)
        topic = evidence.topic('truth')
        finding = findings.TRUTH_JUMPS(topic, count=count, step=largest) if count else None
        yield Measure(largest, limit, finding, 'truth')
        if finding is not None:
            evidence.doubtful.add('steps')
    if track is not None and not evidence.doubtful & {'fixes', 'steps'}:
        steps = np.abs(np.diff(track.residual))
        count, largest, limit = _outliers(steps, _FIX_JUMP_M)
        topic = evidence.topic('gps')
        finding = findings.FIX_JUMPS(topic, count=count, step=largest) if count else None
        yield Measure(largest, limit, finding, 'gps')


def _outliers(steps: FloatArray, least: float) -> tuple[int, float, float]:
    """Return the number of steps beyond the limit, the largest step, and the limit."""
    if not len(steps):
        return 0, 0.0, least
    limit = jump_limit(steps, least)
    return int((steps > limit).sum()), float(steps.max()), limit


def measure_fix_errors(evidence: Evidence) -> Iterator[Measure]:
    """Compare the errors of the fixes with the largest that a receiver has."""
    track = evidence.track
    if track is None or evidence.doubtful & {'fixes', 'slow truth'}:
        return
    assert evidence.fixes is not None
    error = robust_deviation(track.residual)
    variance = evidence.fixes.position_covariance[:, (0, 1), (0, 1)]
    stated = math.sqrt(max(float(np.median(variance)), 0.0))
    white = _white_deviation(track)
    finding = None
    if error > MAX_STEP_ERROR_M or white > _MAX_WHITE_M:
        finding = findings.FIX_ERRORS(
            evidence.topic('gps'),
            north=float(np.std(track.residual.imag)),
            east=float(np.std(track.residual.real)),
            white=white,
        )
    elif (
        not track.fitted.explained > 0.5
        and error > max(_UNRELATED * stated, _FIX_JUMP_M)
        and not _has_receiver_errors(track, error)
    ):
        finding = findings.FIXES_UNRELATED(evidence.topic('gps'), error=error)
    if finding is not None:
        evidence.doubtful |= {'fixes', 'fix errors'}
    is_white = white > _MAX_WHITE_M
    yield Measure(error, MAX_STEP_ERROR_M, None if is_white else finding, 'gps')
    yield Measure(white, _MAX_WHITE_M, finding if is_white else None, 'gps noise')


def _white_deviation(track: Track) -> float:
    """Return the standard deviation per axis of errors that are independent of the last, m.

    Second differences of white errors have six times their variance.
    """
    return robust_deviation(np.diff(track.residual, n=2)) / math.sqrt(6.0)


def robust_deviation(errors: FloatArray) -> float:
    """Return the standard deviation per axis of complex errors without their median."""
    east, north = errors.real - np.median(errors.real), errors.imag - np.median(errors.imag)
    return math.sqrt(float(np.median(east**2 + north**2)) / (2.0 * math.log(2.0)))


def fix_error(evidence: Evidence) -> float | None:
    """Return the standard deviation per axis of the errors of the fixes, m, without their mean.

    Jumps, which have their own check, do not count. None if the truth does not explain the fixes
    although it moves further than they err.
    """
    track = evidence.track
    if track is None or evidence.doubtful & {'fixes', 'slow truth'}:
        return None
    unknown_arm = 'orientation' in evidence.doubtful and evidence.gps_lever_arm()[:2].any()
    error = robust_deviation(track.residual)
    if unknown_arm or (
        not track.fitted.explained > 0.5 and not _has_receiver_errors(track, error)
    ):
        return None
    return error


def _has_receiver_errors(track: Track, error: float) -> bool:
    """Return whether errors of a receiver explain fixes that do not follow the truth.

    They do if the truth moves by less than the fixes err, or if their errors are white: fixes of
    another time or vehicle are as smooth as its motion.
    """
    rests = robust_deviation(track.truth(track.stamps)) < _RESTS * error
    return rests or _white_deviation(track) > _WHITE * error
