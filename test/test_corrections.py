# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Corrections of recorded messages by numbers."""

from __future__ import annotations

import numpy as np
import pytest
from judge_examples import imu, stamps

from sim2real_eval.recording.corrections import ImuCorrection

TIMES = stamps(20.0, 1.0)


@pytest.mark.parametrize('has_attitude', [True, False])
def test_orientation_std_replaces_the_covariance_of_the_orientation_only(
    has_attitude: bool,
) -> None:
    messages = imu(TIMES, yaw=0.3, attitude=has_attitude)
    corrected = ImuCorrection(orientation_std=0.05).apply(messages)
    expected = np.broadcast_to(0.0025 * np.eye(3), (len(TIMES), 3, 3))
    np.testing.assert_allclose(corrected.orientation_covariance, expected, rtol=1e-12)
    for name in ('orientation', 'angular_velocity_covariance', 'linear_acceleration_covariance'):
        np.testing.assert_array_equal(getattr(corrected, name), getattr(messages, name))


def test_a_later_orientation_std_replaces_an_earlier_one() -> None:
    first, later = ImuCorrection(orientation_std=0.1), ImuCorrection(rate_scale=2.0)
    assert first.followed_by(later).orientation_std == 0.1
    assert first.followed_by(ImuCorrection(orientation_std=0.2)).orientation_std == 0.2
