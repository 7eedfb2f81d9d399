# SPDX-License-Identifier: Apache-2.0
"""Euler angles and quaternions: one answer, whichever library gives it."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from sim_sensors import transformations
from sim_sensors.transformations import euler_from_quaternion, quaternion_from_euler

ANGLES = st.tuples(
    st.floats(-math.pi, math.pi),
    st.floats(-math.pi / 2, math.pi / 2),
    st.floats(-math.pi, math.pi),
)
QUARTERS = [k * math.pi / 2 for k in range(-2, 3)]
CORNERS = [(r, p, y) for r in QUARTERS for p in QUARTERS for y in QUARTERS]


@functools.cache
def library() -> ModuleType:
    return pytest.importorskip('tf_transformations', reason='tf_transformations is not installed')


@pytest.fixture(params=['scipy', 'tf_transformations'], autouse=True)
def _chosen(request: pytest.FixtureRequest) -> Iterator[None]:
    chosen = None if request.param == 'scipy' else library()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transformations, '_tf_transformations', lambda: chosen)
        yield


def turned(quaternion: tuple[float, ...]) -> np.ndarray:
    return Rotation.from_quat(quaternion).as_matrix()


@given(ANGLES)
@settings(deadline=None)
def test_the_quaternion_is_the_product_of_three_turns_about_fixed_axes(
    angles: tuple[float, float, float],
) -> None:
    quaternion = quaternion_from_euler(*angles)
    half = [angle / 2 for angle in angles]
    x, y, z = (
        np.array([*(math.sin(a) * (np.arange(3) == k)), math.cos(a)]) for k, a in enumerate(half)
    )
    expected = Rotation.from_quat(z) * Rotation.from_quat(y) * Rotation.from_quat(x)
    np.testing.assert_allclose(turned(quaternion), expected.as_matrix(), atol=1e-14)
    assert quaternion[3] >= 0.0
    assert math.hypot(*quaternion) == pytest.approx(1.0, abs=1e-14)


@given(ANGLES)
@settings(deadline=None)
def test_there_and_back_is_the_same_turn(angles: tuple[float, float, float]) -> None:
    quaternion = quaternion_from_euler(*angles)
    # Near the poles, roll and yaw are not determined, the turn is.
    again = quaternion_from_euler(*euler_from_quaternion(quaternion))
    np.testing.assert_allclose(turned(again), turned(quaternion), atol=1e-7)
    if abs(angles[1]) < 1.5:
        roll, pitch, yaw = euler_from_quaternion(quaternion)
        assert pitch == pytest.approx(angles[1], abs=1e-12)
        for got, want in ((roll, angles[0]), (yaw, angles[2])):
            assert math.remainder(got - want, math.tau) == pytest.approx(0.0, abs=1e-12)


def test_turns_by_quarters_come_back() -> None:
    for angles in CORNERS:
        quaternion = quaternion_from_euler(*angles)
        again = quaternion_from_euler(*euler_from_quaternion(quaternion))
        np.testing.assert_allclose(turned(again), turned(quaternion), atol=1e-7)


def test_known_turns() -> None:
    root = math.sqrt(0.5)
    np.testing.assert_allclose(quaternion_from_euler(0, 0, math.pi / 2), [0, 0, root, root])
    np.testing.assert_allclose(quaternion_from_euler(math.pi / 2, 0, 0), [root, 0, 0, root])
    np.testing.assert_allclose(
        euler_from_quaternion([0, 0, 2, 2]), [0, 0, math.pi / 2], atol=1e-15
    )
    with pytest.raises(ValueError, match='zero norm'):
        euler_from_quaternion([0, 0, 0, 0])


def test_transforms3d_says_the_same() -> None:
    euler = pytest.importorskip('transforms3d').euler
    generator = np.random.default_rng(3)
    for angles in [*generator.uniform(-3, 3, (200, 3)), *CORNERS]:
        w, x, y, z = euler.euler2quat(*angles, 'sxyz')
        quaternion = quaternion_from_euler(*angles)
        np.testing.assert_allclose(turned(quaternion), turned((x, y, z, w)), atol=1e-14)
        if abs(math.cos(angles[1])) > 1e-3:
            expected = euler.quat2euler((w, x, y, z), 'sxyz')
            got = euler_from_quaternion(quaternion)
            difference = [
                math.remainder(a - b, math.tau) for a, b in zip(got, expected, strict=True)
            ]
            np.testing.assert_allclose(difference, 0.0, atol=1e-11)


@given(ANGLES)
@settings(deadline=None)
def test_both_libraries_agree(angles: tuple[float, float, float]) -> None:
    answers = []
    for choice in (None, library()):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(transformations, '_tf_transformations', lambda choice=choice: choice)
            quaternion = quaternion_from_euler(*angles)
            answers.append((quaternion, euler_from_quaternion(quaternion)))
    (first, euler), (second, other) = answers
    np.testing.assert_allclose(turned(first), turned(second), atol=1e-14)
    if abs(angles[1]) < 1.5:
        difference = [math.remainder(a - b, math.tau) for a, b in zip(euler, other, strict=True)]
        np.testing.assert_allclose(difference, 0.0, atol=1e-12)
