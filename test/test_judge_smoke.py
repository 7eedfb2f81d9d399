# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The judge, through files as a user gives them, in seconds: for a copy that is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from judge_examples import mask, odometry, parameter_file, stamps

from sim2real_eval.judge.setup import JudgeSetup, profiles
from sim2real_eval.metrics.series import velocity_series
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording


def test_wheel_odometry_of_constant_speed_is_estimated_to_1_mm_s(tmp_path: Path) -> None:
    """2 m/s measured at 50 Hz with 0.1 m/s: 1 mm/s off after 5 s, and the way is the integral."""
    stamp_ns = stamps(50.0, 8.0)
    velocity = np.tile([2.0, 0.0, 0.0], (len(stamp_ns), 1))
    odom = odometry(stamp_ns, velocity=velocity)
    messages = {'/odom': odom, '/ground_truth/odometry': odom}
    roles = {'truth': '/ground_truth/odometry'}
    recording = Recording('line_1', 'line', '', messages, roles)
    write_recording(recording, tmp_path / 'bag')
    config = parameter_file(
        tmp_path, {'odom0': 'odom', 'odom0_config': mask('vx', 'vy', 'vyaw'), 'two_d_mode': True}
    )
    read = read_recording(tmp_path / 'bag')
    judged = JudgeSetup.load(config).judge(read)
    assert len(judged) > 200
    series = velocity_series(judged, odom, origin_ns=int(stamp_ns[0]))
    late = series.se_time > 5.0
    np.testing.assert_allclose(series.se_vel[late], 2.0, atol=1e-3)
    way = 2.0 * np.diff(series.se_time[late])
    np.testing.assert_allclose(np.diff(judged.position[late, 0]), way, atol=1e-4)


def test_every_shipped_profile_loads() -> None:
    assert profiles() == ['clean', 'paper_released', 'wheels', 'wheels_vision']
    for name in profiles():
        setup = JudgeSetup.load(name)
        has_gps = not name.startswith('wheels')
        assert (setup.navsat is not None) == has_gps
        assert len(setup.files) == (2 if has_gps else 1)
