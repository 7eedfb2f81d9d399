# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The correction against textbook formulas on dense matrices and numbers worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from textbook_filter import (
    ANGLES,
    filter_at,
    loosened,
    random_covariance,
    random_state,
    relative,
    seeds,
    textbook_correct,
    wrapped,
)

from sim2real_eval.judge.robot_localization.filter import correct
from sim2real_eval.judge.robot_localization.state import VX, YAW, N, X


@given(seeds, st.lists(st.integers(0, N - 1), min_size=1, max_size=N, unique=True))
def test_a_correction_equals_the_joseph_form_of_a_dense_filter(
    seed: int, states: list[int]
) -> None:
    """Any mask and a full measurement covariance, to 1e-10."""
    rng = np.random.default_rng(seed)
    x, P = random_state(rng), loosened(random_covariance(rng, N, 2.0))
    index = np.array(sorted(states))
    z, R = random_state(rng)[index], loosened(random_covariance(rng, len(index), 2.0))
    expected_x, expected_P = textbook_correct(x, P, index, z, R)
    flt = filter_at(x, P)
    assert correct(flt, index, len(index), z, R.copy(), math.inf)
    error = flt.x[:N] - expected_x
    error[ANGLES] = wrapped(error[ANGLES])
    assert np.abs(error).max() < 1e-10
    assert relative(flt.P[:N, :N], expected_P) < 1e-10


def test_the_yaw_innovation_is_wrapped() -> None:
    """From 179 to -179 degrees is 2 degrees, and half of them with equal trust."""
    x = np.zeros(N)
    x[YAW] = math.radians(179.0)
    flt = filter_at(x, np.eye(N))
    correct(flt, np.array([YAW]), 1, np.array([math.radians(-179.0)]), np.eye(1), math.inf)
    assert abs(flt.x[YAW]) == pytest.approx(math.pi, abs=1e-12)


@pytest.mark.parametrize(
    ('threshold', 'accepted'), [(1.0, False), (math.nextafter(1.0, 2.0), True), (math.inf, True)]
)
def test_the_gate_rejects_distances_at_or_above_the_threshold(
    threshold: float, accepted: bool
) -> None:
    """P = 3, R = 1, innovation 2: Mahalanobis distance exactly 1; refused means unchanged."""
    flt = filter_at(np.zeros(N), 3.0 * np.eye(N))
    index = np.array([VX])
    assert correct(flt, index, 1, np.array([2.0]), np.eye(1), threshold) is accepted
    assert flt.x[VX] == (1.5 if accepted else 0.0)
    assert flt.P[VX, VX] == (0.75 if accepted else 3.0)


def test_the_gate_counts_a_measurement_once_for_all_its_components() -> None:
    """One bad component of two rejects both."""
    flt = filter_at(np.zeros(N), np.eye(N))
    index = np.array([0, 1])
    assert not correct(flt, index, 2, np.array([0.1, 9.0]), np.eye(2), 3.0)
    assert not flt.x[:N].any()


@pytest.mark.parametrize(
    ('given_variance', 'used'),
    [(0.0, 1e-9), (1e-12, 1e-9), (-4.0, 4.0), (-1e-12, 1e-9), (4.0, 4.0)],
)
def test_measurement_variances_are_made_positive_with_a_minimum(
    given_variance: float, used: float
) -> None:
    flt = filter_at(np.zeros(N), np.eye(N))
    correct(flt, np.array([X]), 1, np.array([1.0]), np.array([[given_variance]]), math.inf)
    assert flt.x[X] == pytest.approx(1.0 / (1.0 + used), rel=1e-15)
    assert flt.P[X, X] == pytest.approx(used / (1.0 + used), rel=1e-6)


def test_a_measurement_with_singular_innovation_covariance_is_ignored() -> None:
    """Two equal readings with fully correlated noise have no inverse."""
    flt = filter_at(np.zeros(N), np.zeros((N, N)))
    R = np.ones((2, 2))
    assert not correct(flt, np.array([0, 1]), 2, np.array([1.0, 1.0]), R, math.inf)
    assert not flt.x[:N].any()
