# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Fixes at places where the vehicle cannot be are dropped when a recording is read."""

from __future__ import annotations

import numpy as np
import pytest
from judge_examples import fixes, stamps

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording.fix_places import misplaced_fixes
from sim2real_eval.recording.repairs import check_messages

TIMES = stamps(5.0, 10.0)


def places(home: tuple[float, float], other: tuple[float, float], count: int) -> tuple:
    latitude, longitude = np.full(len(TIMES), home[0]), np.full(len(TIMES), home[1])
    latitude += 1e-5 * np.arange(len(TIMES))
    latitude[:count], longitude[:count] = other
    return latitude, longitude


@pytest.mark.parametrize(
    ('home', 'other', 'zero', 'far'),
    [
        ((43.0, -89.4), (0.0, 0.0), 3, 0),
        ((5.6, -0.2), (0.0, 0.0), 3, 0),  # Accra, 620 km from (0, 0)
        ((0.002, 0.001), (0.0, 0.0), 0, 0),  # the default place of Gazebo worlds
        ((43.0, -89.4), (48.0, 11.0), 0, 3),
        ((43.0, -89.4), (43.0, -95.0), 0, 0),
        ((-17.0, 179.9), (-17.0, -179.9), 0, 0),  # over the date line
        ((-17.0, 179.9), (17.0, -179.9), 0, 3),
    ],
)
def test_fillers_and_far_places_are_recognised(
    home: tuple[float, float], other: tuple[float, float], zero: int, far: int
) -> None:
    is_zero, is_far = misplaced_fixes(*places(home, other, 3))
    assert (is_zero.sum(), is_far.sum()) == (zero, far)


def test_most_fixes_may_be_fillers() -> None:
    is_zero, is_far = misplaced_fixes(*places((43.0, -89.4), (0.0, 0.0), 40))
    assert (is_zero.sum(), is_far.sum()) == (40, 0)
    is_zero, is_far = misplaced_fixes(np.zeros(5), np.zeros(5))
    assert not is_zero.any()
    assert not is_far.any()


def test_dropped_places_are_counted_and_told() -> None:
    latitude, longitude = places((43.0, -89.4), (0.0, 0.0), 30)
    latitude[45], longitude[45] = 12.0, 77.0
    array, notes = check_messages('run', '/fix', fixes(TIMES, latitude, longitude))
    assert len(array) == 19
    counts = {note.code: note.numbers['count'] for note in notes}
    assert counts == {'recording.no_fix': 30, 'recording.bad_value': 1}


def test_many_fixes_at_another_place_are_refused() -> None:
    latitude, longitude = places((43.0, -89.4), (12.0, 77.0), 20)
    with pytest.raises(RecordingError, match='1000 km'):
        check_messages('run', '/fix', fixes(TIMES, latitude, longitude))
