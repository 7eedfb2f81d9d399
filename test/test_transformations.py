# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Euler angles and quaternions are the same with every library."""

from __future__ import annotations

import functools
import importlib
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from sim_sensors.core import rotations
from sim_sensors.core.rotations import euler_from_quaternion, quaternion_from_euler

ANGLES = st.tuples(
    st.floats(-math.pi, math.pi),
    st.floats(-math.pi / 2, math.pi / 2),
    st.floats(-math.pi, math.pi),
)
QUARTERS = [k * math.pi / 2 for k in range(-2, 3)]
CORNERS = [(r, p, y) for r in QUARTERS for p in QUARTERS for y in QUARTERS]


class OverTransforms3d:
    """The functions of tf_transformations over transforms3d: w is last, axes are sxyz.

    tf_transformations is not on PyPI; transforms3d is.
    """

    def __init__(self) -> None:
        self._euler = pytest.importorskip('transforms3d').euler

    def quaternion_from_euler(self, roll: float, pitch: float, yaw: float) -> np.ndarray:
        return np.roll(self._euler.euler2quat(roll, pitch, yaw, axes='sxyz'), -1)

    def euler_from_quaternion(self, quaternion: np.ndarray) -> tuple[float, float, float]:
        return self._euler.quat2euler(np.roll(quaternion, 1), axes='sxyz')


@functools.cache
def library() -> Any:
    """Return tf_transformations if it is installed, else its equivalent."""
    try:
        return importlib.import_module('tf_transformations')
    except ImportError:
        return OverTransforms3d()


@pytest.fixture(params=['scipy', 'tf_transformations'])
def _library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    choice = None if request.param == 'scipy' else library()
    monkeypatch.setattr(rotations, '_tf_transformations', lambda: choice)


with_either = pytest.mark.usefixtures('_library')
# The choice is the same for all examples.
one_choice = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def rotation_matrix(quaternion: tuple[float, ...]) -> np.ndarray:
    return Rotation.from_quat(quaternion).as_matrix()


@with_either
@given(ANGLES)
@one_choice
def test_the_quaternion_is_the_product_of_three_rotations_about_fixed_axes(
    angles: tuple[float, float, float],
) -> None:
    quaternion = quaternion_from_euler(*angles)
    half = [angle / 2 for angle in angles]
    x, y, z = (
        np.array([*(math.sin(a) * (np.arange(3) == k)), math.cos(a)]) for k, a in enumerate(half)
    )
    expected = Rotation.from_quat(z) * Rotation.from_quat(y) * Rotation.from_quat(x)
    np.testing.assert_allclose(rotation_matrix(quaternion), expected.as_matrix(), atol=1e-14)
    assert quaternion[3] >= 0.0
    assert math.hypot(*quaternion) == pytest.approx(1.0, abs=1e-14)


@with_either
@given(ANGLES)
@one_choice
def test_angles_of_a_quaternion_give_the_same_rotation(angles: tuple[float, float, float]) -> None:
    quaternion = quaternion_from_euler(*angles)
    # Near the poles only the rotation is determined, not roll and yaw.
    again = quaternion_from_euler(*euler_from_quaternion(quaternion))
    np.testing.assert_allclose(rotation_matrix(again), rotation_matrix(quaternion), atol=1e-7)
    if abs(angles[1]) < 1.5:
        roll, pitch, yaw = euler_from_quaternion(quaternion)
        assert pitch == pytest.approx(angles[1], abs=1e-12)
        for got, want in ((roll, angles[0]), (yaw, angles[2])):
            assert math.remainder(got - want, math.tau) == pytest.approx(0.0, abs=1e-12)


@with_either
def test_quarter_turns_have_their_closed_form() -> None:
    root = math.sqrt(0.5)
    np.testing.assert_allclose(quaternion_from_euler(0, 0, math.pi / 2), [0, 0, root, root])
    np.testing.assert_allclose(quaternion_from_euler(math.pi / 2, 0, 0), [root, 0, 0, root])
    angles = euler_from_quaternion([0, 0, 2, 2])
    np.testing.assert_allclose(angles, [0, 0, math.pi / 2], atol=1e-15)
    with pytest.raises(ValueError, match='zero norm'):
        euler_from_quaternion([0, 0, 0, 0])


@with_either
def test_results_equal_those_of_transforms3d() -> None:
    euler = pytest.importorskip('transforms3d').euler
    generator = np.random.default_rng(3)
    for angles in [*generator.uniform(-3, 3, (200, 3)), *CORNERS]:
        w, x, y, z = euler.euler2quat(*angles, 'sxyz')
        quaternion = quaternion_from_euler(*angles)
        expected = rotation_matrix((x, y, z, w))
        ours = rotation_matrix(quaternion)
        np.testing.assert_allclose(ours, expected, atol=1e-14, err_msg='transforms3d')
        again = quaternion_from_euler(*euler_from_quaternion(quaternion))
        np.testing.assert_allclose(rotation_matrix(again), expected, atol=1e-7)
        if abs(math.cos(angles[1])) > 1e-3:
            expected_angles = euler.quat2euler((w, x, y, z), 'sxyz')
            pairs = zip(euler_from_quaternion(quaternion), expected_angles, strict=True)
            difference = [math.remainder(a - b, math.tau) for a, b in pairs]
            np.testing.assert_allclose(difference, 0.0, atol=1e-11, err_msg='transforms3d')


@pytest.mark.parametrize(
    ('text', 'warning'),
    [
        # transforms3d 0.4.1 of Ubuntu 24.04 fails so with NumPy 2.
        ('import numpy\nnumpy.no_such_type', 'AttributeError'),
        ('import no_such_module', None),
    ],
)
def test_scipy_replaces_a_broken_tf_transformations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, warning: str | None
) -> None:
    (tmp_path / 'tf_transformations.py').write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, 'tf_transformations', raising=False)
    choose = rotations._tf_transformations.__wrapped__
    monkeypatch.setattr(rotations, '_tf_transformations', functools.cache(choose))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        if warning is not None:
            with pytest.warns(RuntimeWarning, match=warning):
                quaternion_from_euler(0.1, 0.2, 0.3)
        # The warning is given once.
        quaternion = quaternion_from_euler(0.1, 0.2, 0.3)
    assert quaternion == tuple(Rotation.from_euler('xyz', (0.1, 0.2, 0.3)).as_quat().tolist())
