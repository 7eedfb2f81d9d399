# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Recordings judged in threads."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from judge_examples import YAW, filter_config, fixes, imu, navsat_config, recording, stamps

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.recording.recording import Recording

FIXES = {'odom0': 'odometry/gps', 'odom0_config': [True, True, False] + [False] * 12}
PARAMETERS = {**YAW, 'frequency': 50.0, **FIXES}


def drive(seed: int) -> Recording:
    """20 s around a place of its own, in another UTM zone than the others'."""
    rng = np.random.default_rng(seed)
    fast, slow = stamps(100.0, 20.0), stamps(10.0, 20.0)
    return recording({
        'imu': imu(fast, yaw=np.cumsum(rng.normal(size=len(fast))) * 1e-3),
        'fix': fixes(
            slow,
            40.0 - 15.0 * seed + 1e-6 * rng.normal(size=len(slow)),
            10.0 * seed + 1e-6 * np.arange(len(slow)),
        ),
    })  # fmt: skip


def bits(run: JudgedRun) -> list[bytes]:
    judged = [dataclasses.asdict(run.corrections)['nis'], *vars(run).values()]
    return [array.tobytes() for array in judged if isinstance(array, np.ndarray)]


def test_recordings_judged_in_threads_have_the_bits_of_sequential_runs(tmp_path: Path) -> None:
    config, navsat = filter_config(tmp_path, **PARAMETERS), navsat_config(tmp_path, frequency=10.0)
    drives = [drive(seed) for seed in range(5)]
    expected = [bits(judge(run, config, navsat)) for run in drives]
    assert len({run[3] for run in expected}) == len(drives)
    with ThreadPoolExecutor(3) as pool:
        judged = list(pool.map(lambda run: judge(run, config, navsat), drives))
    assert [bits(run) for run in judged] == expected
