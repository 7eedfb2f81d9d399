# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""After its rehearsal a live judge compiles nothing, whatever reaches it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from judge_examples import START_NS, filter_config, mask
from live_examples import MOUNTED, arrivals, curve, everything, give
from numba.core.dispatcher import Dispatcher

from sim2real_eval.judge.robot_localization.configuration import (
    FilterConfig,
    NavsatConfig,
    with_front_end,
)
from sim2real_eval.judge.robot_localization.live import LiveJudge
from sim2real_eval.judge.robot_localization.rehearsal import rehearse
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.recording.cdr import decode, encode
from sim2real_eval.recording.message_types import default_type
from sim2real_eval.recording.metadata import FrameTree
from sim_sensors.core.compilation import PREPARED
from sim_sensors.core.measurements import MessageArray, PoseArray

HERE = Path(__file__).resolve().parent


def poses(folder: Path) -> FilterConfig:
    """Every kind of input that is differential, relative or of a child frame, without 2-D mode."""
    return filter_config(
        folder, frequency=30.0, odom0='wheel/odom', odom0_config=mask('x', 'y', 'yaw'),
        odom0_differential=True, odom0_pose_use_child_frame=True, imu0='imu/data',
        imu0_config=mask('roll', 'pitch', 'yaw', 'vyaw', 'ax'), imu0_relative=True,
        smooth_lagged_data=True, history_length=1.0, two_d_mode=False,
    )  # fmt: skip


# By name: configuration, navsat_transform, corrections.
KINDS: dict[str, Callable[[Path], tuple[FilterConfig, NavsatConfig | None, frozenset[str]]]] = {
    'all inputs': lambda folder: (everything(folder), NavsatConfig(), frozenset()),
    'poses': lambda folder: (poses(folder), None, frozenset({'differential', 'gravity'})),
    'unscented': lambda folder: (
        FilterConfig.from_file(poses(folder).where, unscented=True),
        NavsatConfig(use_odometry_yaw=True, publish_filtered_gps=False),
        frozenset(),
    ),
    'textbook': lambda folder: (
        FilterConfig.from_file(everything(folder).where, unscented=True),
        with_front_end(None, 'enu'),
        frozenset({'unscented'}),
    ),
    'datum': lambda folder: (
        everything(folder, two_d_mode=True),
        NavsatConfig(datum=(43.0, -89.4, 0.0), use_local_cartesian=True),
        frozenset(),
    ),
}  # fmt: skip


def as_received(array: MessageArray) -> MessageArray:
    """Return messages as judge_node decodes them, which may be read-only arrays."""
    kind = default_type(array)
    return decode(kind, encode(kind, array, 'test'), array.arrival_ns, 'test').array


def count_signatures() -> int:
    """Return the number of compiled or loaded signatures of all functions of both packages."""
    functions = {
        id(value): value
        for name, module in sys.modules.items()
        if name.split('.')[0] in ('sim_sensors', 'sim2real_eval')
        for value in vars(module).values()
        if isinstance(value, Dispatcher)
    }
    return sum(len(function.signatures) for function in functions.values())


def drive(kind: str) -> dict[str, list[str]]:
    """Return the functions that a judge compiles before and after its rehearsal."""
    with tempfile.TemporaryDirectory() as folder:
        config, navsat, correct = KINDS[kind](Path(folder))
    live = LiveJudge(config, navsat, FrameTree(()), correct)
    rehearse(config, navsat, correct)
    ready, signatures = len(PREPARED), count_signatures()
    run = curve(1.0)
    live.start(START_NS)
    ticks = 0
    for number, (now_ns, name, message) in enumerate(arrivals(live, run, ReplayOptions())):
        if number == 3:
            live.set_frames(FrameTree(MOUNTED))  # static transforms arrive late
        if number >= 3:
            give(live, name, as_received(message))
        if number % 3 == 0:
            live.processing = number % 30 != 0
            ticks += live.tick(now_ns) is not None
            live.navsat_tick()
            live.filtered_fix(now_ns)
        if number == 60:
            live.set_pose(pose_at(now_ns), now_ns)
            live.enabled = False
        elif number == 70:
            live.enabled = True
        elif number == 100:
            live.reset()
    assert ticks > 10
    live.notes()
    assert count_signatures() == signatures
    return {'before': PREPARED[:ready], 'after': PREPARED[ready:]}


def pose_at(now_ns: int) -> PoseArray:
    pose = as_received(
        PoseArray(
            stamp_ns=[now_ns], arrival_ns=[now_ns], frame='odom', position=[[2.0, 0.0, 0.0]],
            orientation=[[0.0, 0.0, 0.0, 1.0]], pose_covariance=np.eye(6)[None],
        )
    )  # fmt: skip
    assert isinstance(pose, PoseArray)
    return pose


@pytest.mark.parametrize('kind', KINDS)
def test_nothing_is_compiled_after_the_rehearsal(kind: str) -> None:
    """In a process of its own: another test may have compiled what the rehearsal forgets."""
    code = f'import json, test_judge_rehearsal as t; print(json.dumps(t.drive({kind!r})))'
    process = subprocess.run(
        [sys.executable, '-c', code], cwd=HERE, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    functions = json.loads(process.stdout)
    assert functions['after'] == []
    assert {'deliver', 'filter_tick'} <= set(functions['before'])
    # What the configuration cannot reach is not compiled.
    assert ('receive_command' in functions['before']) == (kind not in ('poses', 'unscented'))
    assert ('receive_heading' in functions['before']) == (kind == 'all inputs')
