# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The judge against traces of the real nodes; see traces/README.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from test_judge_node import covariance_error, expected_filtered, run

Record = Callable[[str, object], None]

TRACES = Path(__file__).parent / 'traces'
CASES = sorted(path.parent.name for path in TRACES.glob('*/case.yaml'))
assert len(CASES) >= 10


@pytest.mark.parametrize('name', CASES)
def test_the_judge_reproduces_the_output_of_the_original_node(
    name: str, record_property: Record
) -> None:
    """Same rows at the same ticks, all else to 1e-9 (m, m/s, rad, relative covariance)."""
    folder = TRACES / name
    judged = run(folder)
    stamp_ns, tick_ns, expected = expected_filtered(folder)
    assert judged.stamp_ns.tolist() == stamp_ns.tolist()
    assert judged.tick_ns.tolist() == tick_ns.tolist()
    published = np.hstack(
        [judged.position, judged.orientation, judged.linear_velocity, judged.angular_velocity]
    )
    np.testing.assert_allclose(published, expected[:, :13], rtol=0, atol=1e-9)
    n = len(judged)
    pose, twist = expected[:, 13:49].reshape(n, 6, 6), expected[:, 49:].reshape(n, 6, 6)
    record_property('position', np.abs(published[:, :3] - expected[:, :3]).max())
    record_property('velocity', np.abs(published[:, 7:] - expected[:, 7:13]).max())
    errors = [
        covariance_error(judged.pose_covariance, pose),
        covariance_error(judged.twist_covariance, twist),
    ]
    record_property('covariance', max(errors))
    assert max(errors) < 1e-9
