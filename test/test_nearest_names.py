# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A typo in a command, file or parameter is answered with the nearest name, in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_examples import call

from sim2real_eval.judge.inertial.settings import InertialSettings
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.metadata import read_metadata, read_transforms
from sim2real_eval.study.study_file import StudyFile
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.gps.gps import load_gps
from sim_sensors.world.world import load_world

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ('line', 'near'),
    [
        ('scenaro', 'scenario'),
        ('gate r --max-vpd 1', '--max-vepd'),
        ('allan a --ouliers iqr', '--outliers'),
        ('scenario --form tangnt', 'tangent'),
        ('scenario --motion circel', 'circle'),
        ('scenario --motion circle --set raduis=1', 'radius'),
        ('simulate --motion circle --gps ch_rv --out o', 'ch_rw'),
        ('simulate a --topic thruth=/odom --out o', 'truth'),
        ('study b_gps_modls --out o', 'b_gps_models'),
        ('follow a --controllers nonliner', 'nonlinear'),
        ('follow a --set robot.slpi=0.1', 'slip'),
        ('follow a --set robto.slip=0.1', 'robot'),
        ('reference a --config chrno --out o', 'chrono'),
    ],
)
def test_a_mistyped_command_line_is_refused_with_the_nearest_name(
    line: str, near: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = call(capsys, *line.split())
    assert outcome.status == 2
    assert f'(did you mean {near}?)' in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_an_option_unlike_all_others_has_no_suggestion(capsys: Capture) -> None:
    """The dashes that all options share count for nothing."""
    outcome = call(capsys, 'simulate', '--scenarios', 'circle', '--out', 'o')
    assert (outcome.status, 'did you mean' in outcome.err) == (2, False)


_EKF = {'ekf_filter_node': {'ros__parameters': {'imu0': 'imu', 'frequncy': 3.0}}}


@pytest.mark.parametrize(
    ('read', 'content', 'near'),
    [
        (load_gps, {'model': 'gps', 'ratte': 1}, 'rate'),
        (load_gps, {'model': 'gsp'}, 'gps'),
        (load_world, {'dipole': []}, 'dipoles'),
        (load_world, {'tags': [{'sise': 1.0}]}, 'size'),
        (StudyFile.read, {'sead': 1}, 'seed'),
        (ReplayOptions.from_file, {'clokc': {}}, 'clock'),
        (ReplayOptions.from_file, {'clock': {'strat_ns': 1}}, 'start_ns'),
        (JudgeSetup.load, _EKF, 'frequency'),
        (InertialSettings.load, {'gat': 1.0}, 'gate'),
        (InertialSettings.load, {'start': {'heading': 'cours'}}, 'course'),
        (read_metadata, {'topcis': {}}, 'topics'),
        (read_metadata, {'topics': {'ium': '/imu'}}, 'imu'),
        (read_transforms, [{'parent': 'a', 'chlid': 'b'}], 'child'),
    ],
)
def test_a_mistyped_key_of_a_file_is_refused_with_the_nearest_name(
    read: Any, content: object, near: str, tmp_path: Path
) -> None:
    path = tmp_path / 'file.yaml'
    path.write_text(yaml.safe_dump(content), encoding='utf-8')
    with pytest.raises(Sim2RealError, match=rf'\(did you mean {near}\?\)') as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize(
    ('module', 'node', 'parameters', 'near'),
    [
        ('trajectory_node', 'TrajectoryNode', {'motoin': 'circle'}, 'motion'),
        ('path_follower_node', 'PathFollowerNode', {'robot.slpi': 0.1}, 'robot.slip'),
    ],
)
def test_a_mistyped_parameter_of_a_node_is_refused_with_the_nearest_name(
    module: str, node: str, parameters: dict[str, Any], near: str
) -> None:
    rclpy = pytest.importorskip('rclpy', reason='no ROS')
    import importlib

    from rclpy.parameter import Parameter

    kind = getattr(importlib.import_module(f'sim_sensors.ros.{module}'), node)
    context = rclpy.Context()
    rclpy.init(context=context)
    try:
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        with pytest.raises(Sim2RealError, match=rf'\(did you mean {near}\?\)'):
            kind(parameter_overrides=overrides, context=context)
    finally:
        context.try_shutdown()
