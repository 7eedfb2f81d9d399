# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the other inputs of a judge: velocities of odometry and twist topics.

Each topic is compared with the truth, or without one with differences of the fixes. Its axes are
hypotheses: those of the body, as robot_localization reads them, or those of the world.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator

import numpy as np

from sim2real_eval.recording.truth import local_frame_at_first_fix
from sim_sensors.core import rotations
from sim_sensors.core.blocks import block_means, seconds
from sim_sensors.core.measurements import FloatArray, MessageArray, OdometryArray, TwistArray
from sim_sensors.motion.truth_intervals import SIGMAS
from . import input_findings
from .arrays import plane, robust_variance
from .delays import DelayFit, fit_delay
from .evidence import Evidence
from .outcome import Measure
from .velocities import match_unit

_MIN = 32
_BLOCK_S = 0.5
_GRID_S = 0.02
_INDEPENDENT_S = 2.0
_SLOWEST = 0.3
# Wheels slip by some percent; a wrong radius or unit is more.
_SCALE, _LARGE_SCALE = 0.08, 0.3
_TURN_DEG = 8.0
_LATE_S = 0.15
_COVARIANCE_RATIO = 100.0
_UNITS = {3.6: 'km/h', 2.236936: 'mph', 1.943844: 'knots', 1000.0: 'mm/s'}
_WINDOW_S = 2.0
# What sensor nodes publish beside their measurements: true wheel odometry, errors of an IMU.
_NODE_TRUTH = '/truth/'
_WORLD_FRAMES = ('map', 'odom', 'world', 'earth', 'enu')


@dataclasses.dataclass(frozen=True)
class _Reference:
    """Velocities that an input should have measured, as functions of time, complex m/s."""

    world: Callable[[FloatArray], FloatArray]
    body: Callable[[FloatArray], FloatArray] | None
    start_ns: int


def other_inputs(evidence: Evidence) -> dict[str, OdometryArray | TwistArray]:
    """Return the topics with velocities that have no role, by name."""
    roles = set(evidence.recording.roles.values())
    return {
        topic: array
        for topic, array in evidence.recording.messages.items()
        if topic not in roles
        and _NODE_TRUTH not in topic
        and isinstance(array, OdometryArray | TwistArray)
        and len(array) >= _MIN
        and array.linear_velocity[:, :2].any()
    }


def measure_inputs(evidence: Evidence) -> Iterator[Measure]:
    """Compare axes, scale, sign, delay and covariance of each other input with the truth."""
    reference = _reference(evidence)
    for topic, array in other_inputs(evidence).items():
        measures = (
            [] if reference is None else [*_measure_input(evidence, topic, array, reference)]
        )
        yield from measures
        yield from _measure_covariance(topic, array)
        if reference is not None and not any(measure.finding for measure in measures):
            yield from _measure_errors(evidence, topic, array, reference)
            yield from _measure_yaw_rate(evidence, topic, array)


def _reference(evidence: Evidence) -> _Reference | None:
    """Return the velocities of the truth, else those of the fixes, which know no heading."""
    maker, fixes = evidence.maker, evidence.fixes
    if maker is not None and 'orientation' not in evidence.doubtful:
        grid = np.arange(0.0, (maker.end_ns - maker.start_ns) * 1e-9, _GRID_S)
        state = maker.motion.at(grid)
        world = _interpolator(grid, plane(state.velocity))
        body = _interpolator(grid, plane(rotations.rotate_back(state.orientation, state.velocity)))
        return _Reference(world, body, maker.start_ns)
    if fixes is None or evidence.truth is not None:
        return None
    frame = local_frame_at_first_fix(fixes)
    position = plane(frame.to_enu(fixes.latitude, fixes.longitude, fixes.altitude))
    start = int(fixes.stamp_ns[0])
    time = seconds(fixes.stamp_ns, start)

    def between_fixes(times: FloatArray) -> FloatArray:
        ends = [
            np.interp(times + half, time, position) for half in (-0.5 * _WINDOW_S, 0.5 * _WINDOW_S)
        ]
        return np.asarray((ends[1] - ends[0]) / _WINDOW_S)

    return _Reference(between_fixes, None, start)


def _interpolator(time: FloatArray, values: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return a function that interpolates complex values."""
    return lambda times: np.asarray(np.interp(times, time, values))


def _measure_input(
    evidence: Evidence, topic: str, array: OdometryArray | TwistArray, reference: _Reference
) -> Iterator[Measure]:
    time = seconds(array.stamp_ns, reference.start_ns)
    inside = evidence.during_truth(array)
    if inside is None or len(inside) < _MIN:
        return
    own_body = array.linear_velocity
    if isinstance(array, OdometryArray):
        # Velocities in the frame of the odometry, whose yaw starts anywhere.
        own_body = rotations.rotate_back(array.orientation, array.linear_velocity)
    means = block_means(
        lambda velocity, turned, time: np.column_stack([velocity[:, :2], time, turned[:, :2]]),
        time, _BLOCK_S, array.linear_velocity, own_body, time,
    )  # fmt: skip
    end = time[0] + seconds(inside.stamp_ns[-1:], int(array.stamp_ns[0]))[0]
    is_inside = (means[:, 2] > max(0.0, time[0])) & (means[:, 2] < end)
    measured, block_time = plane(means)[is_inside], means[is_inside, 2]
    turned_back = plane(means[:, 3:])[is_inside]
    if len(measured) < _MIN or float(np.quantile(np.abs(measured), 0.9)) == 0.0:
        return
    span = float(block_time[-1] - block_time[0])

    def fit(velocity: Callable[[FloatArray], FloatArray]) -> DelayFit:
        return fit_delay(
            measured,
            lambda delay: velocity(block_time - delay),
            span,
            _INDEPENDENT_S,
            tolerated=_LATE_S,
        )

    moved = reference.world(block_time)
    if float(np.quantile(np.abs(moved), 0.9)) < _SLOWEST:
        return
    in_world = fit(reference.world)
    if reference.body is None:
        yield from _measure_speed_of_fixes(topic, measured, moved, in_world)
        return
    in_body = fit(reference.body)
    body_error, world_error = (
        _constant_error(measured, velocity(block_time), result)
        for velocity, result in ((reference.body, in_body), (reference.world, in_world))
    )
    if _is_stated_in_world(evidence, array):
        yield from _measure_gain(topic, measured, moved, in_world)
        return
    own_error = _rms(turned_back - reference.body(block_time))
    is_own = own_error < 0.5 * min(body_error, world_error) and body_error > _SLOWEST
    world_error = min(world_error, own_error) if is_own else world_error
    # A straight drive explains both, but in the axes of the world it needs no turn.
    is_world = is_own or (
        world_error < 0.5 * body_error
        and not in_body.is_better_than(in_world.residual)
        and abs(np.angle(np.vdot(moved, measured))) < math.radians(20.0)
    )
    if is_world:
        finding = input_findings.INPUT_IN_WORLD(topic, body=body_error, world=world_error)
        yield Measure(None, None, finding, f'{topic} axes')
        return
    yield from _measure_gain(topic, measured, reference.body(block_time), in_body)


def _is_stated_in_world(evidence: Evidence, array: OdometryArray | TwistArray) -> bool:
    """Return whether the messages name a world frame for their velocities.

    robot_localization transforms a twist from the child frame of an odometry, or from the frame
    of a twist.
    """
    frame = array.child_frame if isinstance(array, OdometryArray) else array.frame
    truth = evidence.recording.truth
    worlds = _WORLD_FRAMES if truth is None else (*_WORLD_FRAMES, truth.frame.strip('/'))
    return frame.strip('/') in worlds


def _constant_error(measured: FloatArray, true: FloatArray, fit: DelayFit) -> float:
    """Return the root mean square error, m/s, of a velocity that is read as `true`."""
    size = abs(fit.gain) if abs(fit.gain) > 0.1 else 1.0
    return _rms(measured - size * true)


def _rms(errors: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.abs(errors) ** 2)))


def _measure_gain(
    topic: str, measured: FloatArray, true: FloatArray, fit: DelayFit
) -> Iterator[Measure]:
    """Compare sign, scale, direction and delay of an input in the axes of the body."""
    # Without their means a steady speed would have no scale.
    gain = complex(np.vdot(true, measured) / np.vdot(true, true))
    explained = abs(np.vdot(true, measured)) ** 2 / (
        np.vdot(true, true).real * np.vdot(measured, measured).real
    )
    finding = None
    if explained < 0.5:
        finding = input_findings.INPUT_STRAYS(topic, share=explained)
        yield Measure(float(explained), 0.5, finding, f'{topic} follows', 'least', unit='')
        return
    turn = math.degrees(np.angle(gain))
    error = math.degrees(fit.deviation / max(abs(fit.gain), 1e-9))
    limit = _TURN_DEG + SIGMAS * error
    if abs(turn) > 150.0:
        finding = input_findings.INPUT_REVERSED(topic)
    elif abs(turn) > limit:
        finding = input_findings.INPUT_TURNED(topic, turn=turn)
    yield Measure(turn, limit, finding, f'{topic} direction', 'either', unit='deg')
    yield _measure_scale(topic, float(np.clip(1.0, abs(gain), abs(gain) / explained)), fit)
    if fit.explained > 0.5:
        limit = _LATE_S + SIGMAS * min(fit.delay_deviation, 1.0)
        finding = input_findings.INPUT_LATE(topic, delay=fit.seconds)
        is_late = abs(fit.seconds) > limit
        yield Measure(
            fit.seconds, limit, finding if is_late else None, f'{topic} delay', 'either', unit='s'
        )


def _measure_scale(topic: str, scale: float, fit: DelayFit) -> Measure:
    limit = _SCALE + SIGMAS * fit.deviation / max(abs(fit.gain), 1e-9)
    finding = None
    if abs(math.log(scale)) > limit:
        _, unit = match_unit(scale, _UNITS, 0.1)
        is_large = abs(math.log(scale)) > _LARGE_SCALE
        kind = input_findings.INPUT_SCALE_LARGE if is_large else input_findings.INPUT_SCALE
        finding = kind(topic, scale=scale, unit=unit)
    return Measure(scale, math.exp(limit), finding, f'{topic} scale', 'ratio')


def _measure_speed_of_fixes(
    topic: str, measured: FloatArray, moved: FloatArray, in_world: DelayFit
) -> Iterator[Measure]:
    """Compare an input with the fixes alone: its axes if it follows them, and its speed."""
    course = np.angle(moved[np.abs(moved) > 2.0 * _SLOWEST])
    turns = len(course) > _MIN and abs(np.mean(np.exp(1j * course))) < 0.9
    along_x = abs(np.mean(measured)) / max(float(np.mean(np.abs(measured))), 1e-9)
    if turns and along_x < 0.9 and in_world.explained > 0.8 and in_world.gain.real > 0.0:
        finding = input_findings.INPUT_IN_WORLD(
            topic, body=_rms(measured - np.abs(moved)), world=_rms(measured - moved)
        )
        yield Measure(None, None, finding, f'{topic} axes')
        return
    fast = np.abs(moved) > max(2.0 * _SLOWEST, 0.5 * float(np.quantile(np.abs(moved), 0.9)))
    if fast.sum() < _MIN:
        return
    ratios = np.abs(measured[fast]) / np.abs(moved[fast])
    scale = float(np.median(ratios))
    if scale > 0.0:
        yield _measure_scale(topic, scale, in_world)


def _measure_covariance(topic: str, array: MessageArray) -> Iterator[Measure]:
    """Check that the variances of velocities along x are neither zero nor negative."""
    assert isinstance(array, OdometryArray | TwistArray)
    variance = array.twist_covariance[:, 0, 0]
    share = float(np.mean(variance <= 0.0))
    finding = (
        input_findings.INPUT_COVARIANCE(topic, share=share, name=topic) if share > 0.0 else None
    )
    yield Measure(share, 0.0, finding, f'{topic} covariance', unit='')


def _measure_errors(
    evidence: Evidence, topic: str, array: OdometryArray | TwistArray, reference: _Reference
) -> Iterator[Measure]:
    """Compare the errors of the forward velocity with the stated variance."""
    inside = evidence.during_truth(array)
    velocity = reference.world if _is_stated_in_world(evidence, array) else reference.body
    if velocity is None or not isinstance(inside, OdometryArray | TwistArray):
        return
    stated = float(np.median(inside.twist_covariance[:, 0, 0]))
    if not stated > 0.0 or len(inside) < _MIN:
        return
    time = seconds(inside.stamp_ns, reference.start_ns)
    errors = inside.linear_velocity[:, 0] - velocity(time).real
    error = math.sqrt(robust_variance(errors - np.median(errors)))
    ratio = (error / math.sqrt(stated)) ** 2
    finding = None
    if ratio > _COVARIANCE_RATIO:
        finding = input_findings.INPUT_COVARIANCE_SMALL(
            topic, error=error, stated=math.sqrt(stated), name=topic
        )
    yield Measure(ratio, _COVARIANCE_RATIO, finding, f'{topic} errors', unit='')


def _measure_yaw_rate(
    evidence: Evidence, topic: str, array: OdometryArray | TwistArray
) -> Iterator[Measure]:
    """Check the sign of the yaw rate, if the truth explains it."""
    maker, inside = evidence.maker, evidence.during_truth(array)
    if maker is None or not isinstance(inside, OdometryArray | TwistArray):
        return
    measured = inside.angular_velocity[:, 2]
    if len(inside) < _MIN or not measured.any() or 'orientation' in evidence.doubtful:
        return
    time = seconds(inside.stamp_ns, maker.start_ns)
    true = maker.motion.at(np.clip(time, 0.0, None)).angular_velocity[:, 2]
    measured, true = measured - measured.mean(), true - true.mean()
    size = math.sqrt(float(np.mean(measured**2) * np.mean(true**2)))
    if size < 1e-6:
        return
    correlation = float(np.mean(measured * true)) / size
    finding = input_findings.INPUT_RATE_REVERSED(topic) if correlation < -0.7 else None
    yield Measure(correlation, -0.7, finding, f'{topic} yaw rate', 'least', unit='')
