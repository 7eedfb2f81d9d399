# SPDX-License-Identifier: Apache-2.0
"""Static transforms between frames: chained, refused, or assumed equal."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_examples import YAW, filter_config, imu, mask, odometry, recording, stamps
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.recording import StaticTransform


def transforms_of(rng: np.random.Generator, names: list[str]) -> list[StaticTransform]:
    """Chain of random transforms, some of them given from child to parent."""
    result = []
    for parent, child in itertools.pairwise(names):
        if rng.random() < 0.5:
            parent, child = child, parent
        rotation = Rotation.random(rng=rng).as_quat()
        result.append(
            StaticTransform(parent, child, tuple(rng.normal(size=3)), tuple(rotation.tolist()))
        )
    return result


def as_matrix(transform: StaticTransform) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.from_quat(transform.rotation).as_matrix()
    matrix[:3, 3] = transform.translation
    return matrix


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_frames_chain_as_homogeneous_matrices(seed: int, length: int) -> None:
    """From one end of a chain to the other, in any direction of its links."""
    rng = np.random.default_rng(seed)
    names = [f'frame{number}' for number in range(length)]
    chain = transforms_of(rng, names)
    expected = np.eye(4)
    for parent, transform in zip(names, chain, strict=False):
        matrix = as_matrix(transform)
        expected = expected @ (matrix if transform.parent == parent else np.linalg.inv(matrix))
    rng.shuffle(chain)
    rotation, position = FrameTree(chain).lookup(names[0], names[-1], 'test')
    np.testing.assert_allclose(rotation, expected[:3, :3], atol=1e-12)
    np.testing.assert_allclose(position, expected[:3, 3], atol=1e-12)


def test_a_frame_is_itself_and_slashes_do_not_matter() -> None:
    tree = FrameTree([StaticTransform('/base_link', 'imu', (1.0, 2.0, 3.0))])
    assert tree.lookup('imu', '/imu', 'test')[1].tolist() == [0.0, 0.0, 0.0]
    assert tree.lookup('base_link', 'imu', 'test')[1].tolist() == [1.0, 2.0, 3.0]


def test_unknown_frame_is_refused_with_both_names() -> None:
    tree = FrameTree([StaticTransform('base_link', 'imu'), StaticTransform('other', 'gps')])
    for source in ('gps', 'camera'):
        with pytest.raises(JudgeError, match=f"imu0.*'{source}' to 'base_link'"):
            tree.lookup('base_link', source, 'imu0')
    assert not tree.assumed


def test_identity_is_assumed_only_when_there_are_no_transforms(tmp_path: Path) -> None:
    """And then the user is told which frames."""
    tree = FrameTree([], assume_identity=True)
    rotation, position = tree.lookup('base_link', 'imu', 'imu0')
    tree.lookup('base_link', 'imu', 'imu0')
    assert rotation.tolist() == np.eye(3).tolist()
    assert not position.any()
    assert tree.assumed == [('base_link', 'imu')]
    clock = stamps(20.0, 1.0)
    config = filter_config(tmp_path, odom0='odom', odom0_config=mask('vx'), **YAW)
    messages = {'odom': odometry(clock), 'imu': imu(clock)}
    free = judge(recording(messages), config)
    assert any('frames assumed equal: imu_link = base_link' in str(note) for note in free.notes)
    other = (StaticTransform('base_link', 'camera'),)
    with pytest.raises(JudgeError, match="'imu_link' to 'base_link'"):
        judge(recording(messages, other), config)
