# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Components of speed, and findings on the weaknesses of a run."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim2real_eval.metrics.options import MetricError, MetricOptions
from sim2real_eval.metrics.scores import advice, score_run, slow_truth_advice
from sim2real_eval.metrics.series import VelocitySeries, speed
from sim_sensors.core.seeding import stream

numbers = st.floats(-20, 20)
angles = st.floats(-3.1, 3.1)


def yaw(angle: float) -> list[float]:
    """Quaternion x y z w of a turn about z, by definition."""
    return [0.0, 0.0, np.sin(angle / 2), np.cos(angle / 2)]


@given(numbers, numbers, numbers, angles)
def test_on_level_ground_horizontal_speed_does_not_depend_on_heading(
    vx: float, vy: float, vz: float, angle: float
) -> None:
    horizontal = speed([[vx, vy, vz]], [yaw(angle)])
    assert horizontal[0] == pytest.approx(np.hypot(vx, vy), abs=1e-12)


@given(numbers, numbers, angles)
def test_world_axes_follow_the_rotation_of_the_body(vx: float, vy: float, angle: float) -> None:
    velocity, orientation = [[vx, vy, 0.0]], [yaw(angle)]
    east, north = speed(velocity, orientation, 'x')[0], speed(velocity, orientation, 'y')[0]
    assert east == pytest.approx(vx * np.cos(angle) - vy * np.sin(angle), abs=1e-12)
    assert north == pytest.approx(vx * np.sin(angle) + vy * np.cos(angle), abs=1e-12)
    assert speed(velocity, orientation, 'forward')[0] == vx


def test_on_a_slope_horizontal_speed_is_in_the_world_not_in_the_body() -> None:
    """Nose down (pitch +30 deg about y) at 2 m/s: 2 cos 30 deg over ground."""
    half = np.deg2rad(15)
    horizontal = speed([[2.0, 0.0, 0.0]], [[0.0, np.sin(half), 0.0, np.cos(half)]])
    assert horizontal[0] == pytest.approx(2 * np.cos(np.deg2rad(30)), abs=1e-12)


def test_quaternions_need_not_be_normalised() -> None:
    quaternion = 3 * np.array([yaw(0.7)])
    assert speed([[1.0, 0.0, 0.0]], quaternion, 'x')[0] == pytest.approx(np.cos(0.7))


def test_forward_speed_needs_no_orientation_and_returns_a_copy() -> None:
    velocity = np.array([[-1.0, 2.0, 3.0]])
    forward = speed(velocity, [], 'forward')
    forward[0] = 9.0
    assert velocity[0, 0] == -1.0


@pytest.mark.parametrize(
    ('velocity', 'orientation', 'component'),
    [
        ([[1.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 1.0]], 'up'),
        ([1.0, 0.0, 0.0], [[0.0, 0.0, 0.0, 1.0]], 'x'),
        ([[1.0, 0.0, 0.0]], [[0.0, 0.0, 1.0]], 'x'),
        ([[1.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 1.0]] * 2, 'x'),
        ([[1.0, 0.0, 0.0]], [[0.0] * 4], 'horizontal'),
        ([[np.nan, 0.0, 0.0]], [[0.0, 0.0, 0.0, 1.0]], 'forward'),
    ],
)
def test_wrong_arguments_are_refused(
    velocity: list[float], orientation: list[float], component: str
) -> None:
    with pytest.raises(MetricError):
        speed(velocity, orientation, component)


def run(
    *, gt_rate: float = 20.0, end: float = 20.0, se_end: float = 20.0, start: float = 0.0
) -> VelocitySeries:
    gt, se = np.arange(0, end + 1e-9, 1 / gt_rate), np.arange(0, se_end + 1e-9, 1 / 35)
    return VelocitySeries(se, np.ones(len(se)), gt, start + 0.1 * gt)


def test_a_good_run_causes_no_findings() -> None:
    assert advice(run()) == []
    assert advice(run(gt_rate=14.8)) == []


FIELDS = ('se_time', 'se_vel', 'gt_time', 'gt_vel')
WHOLE = {name: getattr(run(), name) for name in FIELDS}
TORN = {name: np.delete(WHOLE[name], slice(100, 200)) for name in FIELDS[:2]}


@pytest.mark.parametrize(
    ('series', 'code', 'number'),
    [
        (run(gt_rate=4.0), 'truth.slow', 4.0),
        (run(start=3.0), 'truth.moving_start', 3.0),
        (run(end=5.0, se_end=5.0), 'run.short', 5.0),
        (run(se_end=12.0), 'run.ends_early', 8.0),
        (run(end=12.0), 'run.ends_early', 8.0),
        (VelocitySeries(**WHOLE | {'se_time': WHOLE['se_time'] + 2.0}), 'run.gap', 2.0),
        (VelocitySeries(**WHOLE | {'se_time': WHOLE['se_time'] + 4.0}), 'run.late_start', 4.0),
        (VelocitySeries(**WHOLE | {'gt_time': WHOLE['gt_time'] + 4.0}), 'run.late_start', 4.0),
        (VelocitySeries(**WHOLE | TORN), 'run.gap', 2.9),
    ],
)
def test_each_weakness_of_a_run_causes_its_finding(
    series: VelocitySeries, code: str, number: float
) -> None:
    (numbers,) = (finding.numbers.values() for finding in advice(series) if finding.code == code)
    assert any(value == pytest.approx(number, abs=0.05) for value in numbers)


def test_a_late_start_leaves_the_score_with_the_warmup_that_its_remedy_names() -> None:
    """An estimate that begins with an error of 2 m/s: held for 4 s it is most of the RMSE."""
    late = VelocitySeries(
        **WHOLE | {'se_time': WHOLE['se_time'] + 4.0, 'se_vel': WHOLE['se_vel'] * 0.0}
    )
    options = MetricOptions(warmup=4.5)
    codes = {finding.code for finding in advice(late, options)}
    assert not codes & {'run.late_start', 'run.gap'}


def test_a_usual_delay_of_a_short_run_is_no_late_start() -> None:
    """Topics never start together, and 0.8 s are more than a tenth of a run of 5 s."""
    short = run(end=5.0, se_end=5.0)
    late = dataclasses.replace(short, se_time=short.se_time + 0.8)
    codes = {finding.code for finding in advice(late)}
    assert not codes & {'run.late_start', 'run.gap'}


def test_advice_depends_on_the_options() -> None:
    assert advice(run(gt_rate=4.0), MetricOptions(rate=4.0)) == []
    moving = VelocitySeries([0.0, 20.0], [1.0, 1.0], [0.0, 2.0, 20.0], [5.0, 0.0, 0.0])
    for options, starts in ((MetricOptions(), True), (MetricOptions(warmup=3.0), False)):
        codes = {finding.code for finding in advice(moving, options)}
        assert ('truth.moving_start' in codes) == starts


def test_a_truth_of_low_rate_causes_a_finding_with_both_rates() -> None:
    (slow,) = slow_truth_advice(4.0, 15.0)
    assert slow.numbers == {'rate': 4.0, 'grid': 15.0, 'half': 2.0}
    assert '--rate' in slow.remedy
    assert slow_truth_advice(15.0, 15.0) == []


def test_a_truth_at_4_hz_causes_errors_above_2_hz() -> None:
    """Motion above 2 Hz becomes error of a perfect estimate; the truth's entropy changes."""
    fast = np.arange(0, 20, 1 / 60)
    shake = 5 + np.sin(2 * np.pi * 3 * fast)
    whole = score_run(VelocitySeries(fast, shake, fast, shake))
    slow = score_run(VelocitySeries(fast, shake, fast[::15], shake[::15]))
    assert whole.rmse < 0.05
    assert slow.rmse > 0.5
    white = 5 + stream(1, 'run', 'test', 'motion').normal(size=len(fast))
    whole = score_run(VelocitySeries(fast, white, fast, white))
    slow = score_run(VelocitySeries(fast, white, fast[::15], white[::15]))
    assert slow.entropy_gt < 0.8 * whole.entropy_gt
