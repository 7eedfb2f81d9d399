# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Only the first twist of Gazebo's odometry is removed from a truth."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim2real_eval.recording.repairs import check_messages
from sim_sensors.core import rotations
from sim_sensors.core.measurements import OdometryArray


def first_twists(rate: float, first: float, *, speed: float = 0.0) -> OdometryArray:
    """Return the odometry of Gazebo from `first` s on, whose twists are means of ten steps of 1
    ms, and the first step leads from the origin to a pose 8.45 cm above it, turned by 1 rad.
    """
    count = 60
    stamps = np.round((first + np.arange(count) / rate) * 1e9).astype(np.int64)
    steps = np.round(stamps * 1e-6).astype(int)
    holds = (steps <= 9)[:, None] / steps[:, None]
    turn = rotations.from_heading(np.full(count, 1.0))
    return OdometryArray.exact(
        stamps,
        position=np.column_stack([stamps * 1e-9 * speed, 0.0 * steps, 0.0 * steps + 0.0845]),
        orientation=turn,
        linear_velocity=rotations.rotate_back(turn, np.tile([speed, 0.0, 0.0], (count, 1)))
        + holds * [0.0, 0.0, 84.5],
        angular_velocity=holds * [0.0, 0.0, 1000.0],
    )


def test_the_first_twist_of_gazebo_is_removed() -> None:
    for rate, first, wrong_count in ((1000.0, 0.001, 9), (100.0, 0.009, 1), (100.0, 0.01, 0)):
        array = first_twists(rate, first)
        remaining, notes = check_messages('here', '/truth', array, is_truth=True)
        assert len(remaining) == 60 - wrong_count
        assert not remaining.linear_velocity.any()
        assert [note.code for note in notes] == ['recording.first_twist'] * bool(wrong_count)
        # Odometry that is no truth stays as it is.
        assert len(check_messages('here', '/odom', array)[0]) == 60


def test_other_wrong_twists_and_fast_starts_are_kept() -> None:
    fast = first_twists(100.0, 0.01, speed=30.0)
    scaled = dataclasses.replace(fast, linear_velocity=100.0 * fast.linear_velocity)
    late = np.zeros((60, 3))
    late[5] = 50.0
    for array in (fast, scaled, dataclasses.replace(fast, angular_velocity=late)):
        remaining, notes = check_messages('here', '/truth', array, is_truth=True)
        assert len(remaining) == 60
        assert not notes
