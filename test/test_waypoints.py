# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Waypoints are repaired, noted, read from tables, or refused in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sim_sensors.core.errors import MotionError
from sim_sensors.motion.course import course
from sim_sensors.motion.waypoints import read_waypoints, repair_waypoints


def test_waypoints_are_repaired_with_remarks_and_moved_to_the_origin() -> None:
    t = np.array([10.0, 10.2, 10.2, 10.4, 10.3, 10.6, 10.8, 12.0, 12.2, 12.4])
    x = np.array([5.0, 5.2, 5.2, 5.4, 5.3, 500.0, 5.8, 7.0, np.nan, 7.4])
    repaired = repair_waypoints(t, x, np.full(10, 3.0))
    assert repaired.time == pytest.approx([0.0, 0.2, 0.4, 0.8, 2.0, 2.4])
    assert repaired.x == pytest.approx([0.0, 0.2, 0.4, 0.8, 2.0, 2.4])
    assert repaired.y == pytest.approx(0.0)
    assert repaired.origin == pytest.approx((5.0, 3.0, 10.0))
    assert len(repaired.notes) == 5


@pytest.mark.parametrize('index', [0, 7, 15])
def test_a_single_time_far_ahead_removes_only_its_waypoint(index: int) -> None:
    t = np.arange(20.0)
    t[index] += 1e9
    repaired = repair_waypoints(t, 0.5 * np.arange(20.0), np.zeros(20))
    assert len(repaired) == 19
    assert repaired.time[-1] == pytest.approx(18.0 if index == 0 else 19.0)
    assert len(repaired.notes) > 0


def test_waypoints_after_a_restart_of_the_clock_are_removed() -> None:
    t = np.concatenate([np.arange(10.0), np.arange(5.0)])
    repaired = repair_waypoints(t, np.arange(15.0), np.zeros(15))
    assert len(repaired) == 10


def test_a_permanent_jump_of_the_waypoints_is_kept_with_a_remark() -> None:
    repaired = repair_waypoints([0, 1, 2, 3], [0, 1, 500, 501], [0, 0, 0, 0])
    assert len(repaired) == 4
    (note,) = repaired.notes
    assert '499 m/s' in note


@pytest.mark.parametrize('step', [-0.7, 0.0, 0.25])
def test_the_course_on_a_circle_or_a_line_is_its_tangent(step: float) -> None:
    t = np.arange(12.0)
    heading = 0.3 + step * t
    if step:
        x, y = np.sin(heading) / step, -np.cos(heading) / step
    else:
        x, y = np.cos(0.3) * t, np.sin(0.3) * t
    np.testing.assert_allclose(course(t, x, y), heading, atol=1e-12)


def test_the_course_is_held_at_rest_and_is_continuous() -> None:
    t = np.arange(0.0, 40.0, 0.5)
    angle = np.maximum(t - 5.0, 0.0) * 0.4
    got = course(t, np.sin(angle), 1.0 - np.cos(angle))
    assert got[t < 4.5] == pytest.approx(got[np.argmax(t >= 5.5)], abs=0.2)
    assert got[20:-1] == pytest.approx(angle[20:-1], abs=1e-6)
    assert course(t, 0 * t, 0 * t) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ('text', 'named'),
    [
        ('', 't, x, y'), ('t,x\n0,1\n', 'y'), ('t,x,y\n0,1,east\n', "line 2: y 'east'"),
        ('t,x,y\n0,1\n', "line 2: y ''"), ('t,x,y\n0,1,2\n', '1 waypoints'),
    ],
)  # fmt: skip
def test_a_wrong_table_is_refused_by_file_and_line(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / 'points.csv'
    path.write_text(text, encoding='utf-8')
    with pytest.raises(MotionError) as caught:
        read_waypoints(path)
    assert str(caught.value).startswith(str(path))
    assert named in str(caught.value)


def test_a_table_is_read_with_its_columns_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / 'points.csv'
    path.write_text('y, note,x,t,theta\n1,a,2,0,0.5\n2,b,3,1,0.6\n', encoding='utf-8')
    repaired = read_waypoints(path)
    assert repaired.x == pytest.approx([0, 1])
    assert repaired.heading == pytest.approx([0.5, 0.6])
