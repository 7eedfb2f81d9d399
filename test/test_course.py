# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Course over ground: tangent of the motion, held at rest, whatever the noise of the positions."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from cli_examples import segments
from scipy.signal import lfilter

from sim2real_eval.benches.following import waypoints_of
from sim2real_eval.recording.reading import read_recording
from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.course import course
from sim_sensors.motion.waypoints import repair_waypoints

RESTS = {'start': (0.0, 20.0), 'middle': (25.0, 45.0), 'end': (50.0, 70.0)}


def drive_with_rest(
    rest: str, rate: float, speed: float, *, turn: float = 0.1
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return time, positions, heading and speed of 70 s that turn left, then right."""
    fine = np.linspace(0.0, 70.0, 7001)
    begin, end = RESTS[rest]
    # It takes a second to stop and to start.
    share = np.clip(np.maximum(begin - fine, fine - end), 0.0, 1.0)
    heading = np.cumsum(turn * share * np.sin(fine / 8.0)) * 0.01
    x = np.cumsum(speed * share * np.cos(heading)) * 0.01
    y = np.cumsum(speed * share * np.sin(heading)) * 0.01
    time = np.arange(0.0, 70.0, 1.0 / rate)
    columns = (np.interp(time, fine, column) for column in (x, y, heading, speed * share))
    x, y, heading, speeds = columns
    return time, np.column_stack([x, y]), heading, speeds


def noise(kind: str, count: int, rate: float, rng: np.random.Generator) -> FloatArray:
    """Return the errors of a receiver at rest, of unit size."""
    white = rng.standard_normal((count, 2))
    if kind == 'outliers':
        white[rng.random(count) < 0.02] *= 10.0
    elif kind == 'random walk':
        white = np.cumsum(white, axis=0)
    elif kind.startswith('correlated'):
        kept = math.exp(-1.0 / (rate * 10.0))
        slow = lfilter([math.sqrt(1.0 - kept * kept)], [1.0, -kept], white, axis=0)
        white = slow + 0.2 * rng.standard_normal((count, 2))
        if kind.endswith('rounded'):
            white = np.round(slow)
    return white


@pytest.mark.parametrize('rate', [1.0, 5.0, 10.0])
@pytest.mark.parametrize(
    ('kind', 'share'),
    [
        ('white', 0.01), ('outliers', 0.05), ('correlated', 0.08), ('correlated, rounded', 0.08),
        ('random walk', 0.2),
    ],
)  # fmt: skip
def test_noise_at_rest_seldom_has_a_course(kind: str, share: float, rate: float) -> None:
    """Of 100 paths of 225 points; measured on 400: 0, 1, 2.3, 2.8 and 12.5 % or less."""
    rng = np.random.default_rng(43)
    time = np.arange(225) / rate
    alarms = sum(bool(course(time, *noise(kind, 225, rate, rng).T).any()) for _ in range(100))
    assert alarms <= 100 * share


def test_the_course_does_not_depend_on_the_unit_of_length() -> None:
    time, points, *_ = drive_with_rest('middle', 5.0, 1.0)
    points = points + 0.05 * np.random.default_rng(1).standard_normal(points.shape)
    expected = course(time, *points.T)
    assert np.ptp(expected) > 0.1
    for scale in (1e-3, 1e3):
        np.testing.assert_allclose(course(time, *(scale * points).T), expected, atol=1e-9)


@pytest.mark.parametrize('rest', RESTS)
@pytest.mark.parametrize(
    ('rate', 'speed', 'size', 'rms'),
    [
        (5.0, 1.0, 0.0, 0.5), (5.0, 1.0, 0.004, 2.0), (5.0, 1.0, 0.03, 3.0), (5.0, 1.0, 0.5, 12.0),
        (10.0, 1.0, 0.5, 12.0), (10.0, 10.0, 1.5, 6.0), (10.0, 10.0, 0.004, 2.0),
        (5.0, 10.0, 0.5, 4.0), (5.0, 0.05, 0.004, 5.0), (10.0, 0.05, 0.004, 5.0),
        (1.0, 0.05, 0.004, 8.0), (1.0, 10.0, 0.5, 6.0), (4.0, 3.0, 0.005, 2.0),
    ],
)  # fmt: skip
def test_a_rest_holds_the_course_and_the_drive_keeps_it(
    rest: str, rate: float, speed: float, size: float, rms: float
) -> None:
    """Noise of mm to metres, at 1 to 10 Hz, of robots from 0.05 to 10 m/s; `rms` in degrees."""
    time, points, heading, speeds = drive_with_rest(rest, rate, speed)
    errors, turned = [], []
    for seed in range(5):
        noisy = points + size * np.random.default_rng(seed).standard_normal(points.shape)
        estimate = course(time, *noisy.T)
        errors.append(estimate - heading)
        turned.append(np.ptp(estimate))
        # The middle of the rest holds one course, of the first motion or of the latest.
        begin, end = RESTS[rest]
        inner = (time > begin + 2.0) & (time < end - 2.0)
        assert np.sum(np.abs(np.diff(estimate[inner]))) < math.radians(3.0 * rms + 15.0)
    error = np.degrees(np.array(errors))
    assert np.sqrt(np.mean(error[:, speeds > 0.5 * speed] ** 2)) < rms
    assert np.sqrt(np.mean(error**2)) < 2.0 * rms + 6.0
    assert max(turned) < np.ptp(heading) + math.radians(6.0 * rms + 5.0)


def test_noise_too_large_for_a_course_turns_nothing() -> None:
    """A robot of 0.05 m/s with errors of a metre has no course, instead of many revolutions."""
    time, points, *_ = drive_with_rest('middle', 5.0, 0.05)
    noisy = points + np.random.default_rng(3).standard_normal(points.shape)
    assert np.ptp(course(time, *noisy.T)) < math.radians(90.0)


@pytest.mark.parametrize('size', [0.0, 0.004, 0.05])
def test_a_robot_that_reverses_has_the_opposite_course(size: float) -> None:
    """It drives 20 m forward, rests 10 s, and drives back: the course turns once, by half."""
    fine = np.arange(0.0, 70.0, 0.2)
    x = np.interp(fine, [10.0, 30.0, 40.0, 60.0], [0.0, 20.0, 20.0, 0.0])
    noisy = np.column_stack([x, 0.0 * x])
    noisy += size * np.random.default_rng(2).standard_normal(noisy.shape)
    got = course(fine, *noisy.T)
    forward, back = fine < 35.0, fine > 40.0
    assert got[forward] == pytest.approx(0.0, abs=0.25)
    assert np.abs(got[back]) == pytest.approx(math.pi, abs=0.25)
    assert abs(got[-1] - got[0]) == pytest.approx(math.pi, abs=0.25)


def test_a_sharp_corner_keeps_both_courses() -> None:
    side = np.arange(30.0)
    x, y = np.concatenate([side, np.full(30, 29.0)]), np.concatenate([0.0 * side, 1.0 + side])
    got = np.degrees(course(np.arange(60.0), x, y))
    assert got[:28] == pytest.approx(0.0, abs=1e-9)
    assert got[32:] == pytest.approx(90.0, abs=1e-9)


def test_few_waypoints_have_the_course_of_their_differences() -> None:
    assert course(np.arange(2.0), np.zeros(2), np.arange(2.0)) == pytest.approx(math.pi / 2.0)
    square = np.array([0.0, 1.0, 1.0, 0.0])
    got = np.degrees(course(np.arange(4.0), square, np.roll(square, 1)))
    assert got[1:3] == pytest.approx([45.0, 135.0])


@pytest.mark.parametrize('segment', range(12))
def test_the_course_of_real_fixes_is_the_yaw_of_the_car(real_dir: Path, segment: int) -> None:
    """RTK fixes of 5 mm at 4 Hz, with rests in half of the segments."""
    (path,) = segments(real_dir, [segment])
    recording = read_recording(path)
    fixes, _ = waypoints_of(recording, 'gps')
    truth, _ = waypoints_of(recording, 'truth')
    # The table without theta that a user would write from the truth.
    table = repair_waypoints(truth.time, truth.x, truth.y)
    since = (recording.gps.stamp_ns[0] - recording.truth.stamp_ns[0]) * 1e-9
    for waypoints, delay in ((fixes, since), (table, 0.0)):
        expected = np.interp(waypoints.time + delay, truth.time, truth.heading)
        error = np.degrees(np.angle(np.exp(1j * (waypoints.heading - expected))))
        assert np.sqrt(np.mean(error**2)) < 6.0
        turned = np.abs(np.diff(waypoints.heading)).sum()
        assert turned < np.abs(np.diff(truth.heading)).sum() + 2.0 * math.pi * 0.15
