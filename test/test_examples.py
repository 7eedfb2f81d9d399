# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""examples/: the commands of each page run, and what it says of their results is true."""

from __future__ import annotations

import functools
import re
import runpy
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from test_gazebo_parsers import needs_sdformat, sdf

from sim2real_eval.api import simulate
from sim2real_eval.cli.main import main
from sim2real_eval.judge.external.declaration import RosStack
from sim2real_eval.judge.external.messages import stack_inputs
from sim2real_eval.recording.reading import read_recording
from sim_sensors.motion.motions import motion_of

EXAMPLES = Path(__file__).resolve().parent.parent / 'examples'
Follow = Callable[[str], dict[str, Callable[[], int]]]


@pytest.fixture
def follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Follow:
    """Return a function that goes into a copy of an example and names its commands by verb."""

    def enter(name: str) -> dict[str, Callable[[], int]]:
        place = tmp_path / name
        shutil.copytree(EXAMPLES / name, place)
        monkeypatch.chdir(place)
        monkeypatch.syspath_prepend(place)
        steps: dict[str, Callable[[], int]] = {}
        for line in commands(name):
            program, verb, *_ = words = shlex.split(line)
            assert program == 'sim2real', line
            while verb in steps:
                verb += '+'
            # Processes of their own would take longer to start than these runs.
            alone = ['--jobs', '1'] if verb == 'vepd' else []
            steps[verb] = functools.partial(main, [*words[1:], *alone])
        return steps

    return enter


def page(name: str) -> str:
    return (EXAMPLES / name / 'README.md').read_text('utf-8')


def commands(name: str) -> list[str]:
    blocks = re.findall(r'^ *```sh\n(.*?)^ *```$', page(name), re.M | re.S)
    return [line.strip() for block in blocks for line in block.splitlines() if line.strip()]


@pytest.mark.usefixtures('blank_pictures')
def test_a_gate_passes_below_its_limit_and_fails_above(follow: Follow) -> None:
    steps = follow('bags_in_ci')
    assert [step() for step in steps.values()] == [0, 0, 0, 0]
    suite = ElementTree.parse('gate.xml').getroot()
    assert [case.find('failure') for case in suite.iter('testcase')] == [None]
    assert main(['gate', 'result', '--max-vepd', '1e-6', '--junit', 'broken.xml']) == 1


@pytest.mark.usefixtures('blank_pictures')
def test_a_python_estimator_ranks_the_model_ch_rw_first(
    follow: Follow, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = follow('estimator_in_python')
    assert [step() for step in steps.values()] == [0, 0, 0]
    printed = capsys.readouterr().out
    assert re.search(r'Nearest model +ch_rw\b', printed)
    [code] = re.findall(r'```python\n(.*?)```', page('estimator_in_python'), re.S)
    exec(code, {})
    assert 'RMSE' in capsys.readouterr().out


def test_vqf_with_a_kalman_filter_follows_the_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the fifth second on, within a tenth of the top speed."""
    pytest.importorskip('vqf')
    monkeypatch.syspath_prepend(EXAMPLES / 'estimator_in_python')
    judge = runpy.run_path(str(EXAMPLES / 'estimator_in_python' / 'vqf_kalman.py'))['VqfKalman']
    motion = motion_of('figure_eight', duration=20.0)
    drive = simulate(motion, gps='zed_f9p_rtk', imu='xsens_mtx', seed=1)
    estimate = judge().judge(drive)
    speed = np.hypot(*estimate.velocity[:, :2].T)
    true = np.hypot(*drive.truth.linear_velocity[:, :2].T)
    error = speed - np.interp(estimate.stamp_ns, drive.truth.stamp_ns, true)
    assert np.sqrt(np.mean(error[500:] ** 2)) < 0.1 * true.max()


@pytest.mark.usefixtures('blank_pictures')
def test_data_sheet_noise_is_recovered(follow: Follow, capsys: pytest.CaptureFixture[str]) -> None:
    """Both white noises come back within four standard errors (one in 8,000 draws does not)."""
    steps = follow('data_sheet')
    assert [step() for step in steps.values()] == [0, 0, 0]
    printed = capsys.readouterr().out
    estimates = re.findall(r'white noise N +([\d.]+) ± ([\d.]+)', printed)
    for (value, error), stated in zip(estimates, (0.3, 150.0), strict=True):
        assert abs(float(value) - stated) < 4 * float(error)
        assert float(error) < 0.03 * stated


def test_an_estimator_in_ros_is_declared_for_its_recording(follow: Follow) -> None:
    """Its judge runs in test_ros_stack."""
    steps = follow('estimator_in_ros')
    assert [step() for step in steps.values()] == [0]
    declared = RosStack.from_file(Path('speed_filter.yaml'))
    recording = read_recording(Path('real/circle_1'))
    inputs = stack_inputs(declared, recording)
    assert [(name, kind.name) for name, (kind, _) in inputs.items()] == [
        ('gps', 'sensor_msgs/msg/NavSatFix')
    ]


def test_the_gazebo_drive_plugin_has_the_dimensions_of_the_wheels() -> None:
    model = ElementTree.parse(EXAMPLES / 'gazebo_robot' / 'yard.sdf').find(
        ".//model[@name='robot']"
    )
    drive = model.find("plugin[@name='gz::sim::systems::DiffDrive']")
    wheels = [model.find(f"link[@name='{side}_wheel']") for side in ('left', 'right')]
    left, right = (float(wheel.findtext('pose').split()[1]) for wheel in wheels)
    assert left - right == pytest.approx(float(drive.findtext('wheel_separation')))
    height = float(model.findtext('pose').split()[2])
    for wheel in wheels:
        radius = float(wheel.findtext('collision/geometry/cylinder/radius'))
        assert radius == float(drive.findtext('wheel_radius')) == height


def test_the_bridge_of_the_gazebo_robot_names_topics_of_its_world() -> None:
    world = ElementTree.parse(EXAMPLES / 'gazebo_robot' / 'yard.sdf')
    bridge = yaml.safe_load((EXAMPLES / 'gazebo_robot' / 'bridge.yaml').read_text('utf-8'))
    topics = {part.text for tag in ('topic', 'odom_topic') for part in world.iter(tag)}
    assert {entry['gz_topic_name'] for entry in bridge} <= topics | {'/clock'}


@needs_sdformat
def test_gazebo_accepts_the_robot() -> None:
    assert sdf('cmdCheck', EXAMPLES / 'gazebo_robot' / 'yard.sdf').returncode == 0
