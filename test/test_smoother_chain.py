# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Covariances of a chain against the inverse of the whole information matrix."""

from __future__ import annotations

import numpy as np
import pytest

from sim2real_eval.judge.smoother.factor_graph import joint_covariances


@pytest.mark.parametrize('count', [2, 3, 7])
def test_joint_covariances_equal_blocks_of_the_inverse_information_matrix(count: int) -> None:
    rng = np.random.default_rng(count)
    d = 4
    single = [rng.normal(size=(rng.integers(0, 3), d)) for _ in range(count)]
    single[0] = rng.normal(size=(d, d))
    double = [rng.normal(size=(d, 2 * d)) for _ in range(count - 1)]
    rows = []
    for i, block in enumerate(single):
        rows.append(np.pad(block, ((0, 0), (d * i, d * (count - 1 - i)))))
    for i, block in enumerate(double):
        rows.append(np.pad(block, ((0, 0), (d * i, d * (count - 2 - i)))))
    whole = np.vstack(rows)
    covariance = np.linalg.inv(whole.T @ whole)
    for i, joint in enumerate(joint_covariances(single, double)):
        span = slice(d * i, d * (i + 2))
        np.testing.assert_allclose(joint, covariance[span, span], rtol=1e-8, atol=1e-10)


def test_covariances_of_ill_conditioned_chains_are_accurate() -> None:
    """The first node is known to 1 km and tied to the next, unknown node to 1e-8 m."""
    single = [np.array([[1e-3]]), np.zeros((0, 1))]
    joint = joint_covariances(single, [1e8 * np.array([[1.0, -1.0]])])
    np.testing.assert_allclose(joint[0], 1e6, rtol=1e-4)
