# SPDX-License-Identifier: Apache-2.0
"""examples/: the commands of each page run, and what it says of their results is true."""

from __future__ import annotations

import ast
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
from launch_examples import declared
from test_gazebo_parsers import needs_sdformat, sdf

from sim2real_eval.api import simulate
from sim2real_eval.cli.main import main
from sim2real_eval.judge.external.declaration import RosStack
from sim2real_eval.judge.external.messages import stack_inputs
from sim2real_eval.recording.reading import read_recording
from sim_sensors.motion.motions import motion_of

EXAMPLES = Path(__file__).resolve().parent.parent / 'examples'
FOLDERS = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())


@pytest.fixture
def follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], dict[str, Callable[[], int]]]:
    """Return a function that goes into a copy of an example and names its commands by verb."""

    def enter(name: str) -> dict[str, Callable[[], int]]:
        place = tmp_path / name
        shutil.copytree(EXAMPLES / name, place)
        monkeypatch.chdir(place)
        monkeypatch.syspath_prepend(place)
        found: dict[str, Callable[[], int]] = {}
        for line in commands(name):
            program, verb, *_ = words = shlex.split(line)
            assert program == 'sim2real', line
            while verb in found:
                verb += '+'
            # Processes of their own would take longer to start than these runs.
            alone = ['--jobs', '1'] if verb == 'vepd' else []
            found[verb] = functools.partial(main, [*words[1:], *alone])
        return found

    return enter


def page(name: str) -> str:
    return (EXAMPLES / name / 'README.md').read_text('utf-8')


def commands(name: str) -> list[str]:
    blocks = re.findall(r'^ *```sh\n(.*?)^ *```$', page(name), re.M | re.S)
    return [line.strip() for block in blocks for line in block.splitlines() if line.strip()]


def test_there_are_five_examples_of_at_most_40_lines() -> None:
    assert len(FOLDERS) == 5
    for name in FOLDERS:
        assert len(page(name).splitlines()) <= 40, name
        assert f'{name}/README.md' in (EXAMPLES / 'README.md').read_text('utf-8')


@pytest.mark.usefixtures('blank_pictures')
def test_a_gate_in_ci(follow: Callable[[str], dict[str, Callable[[], int]]]) -> None:
    steps = follow('bags_in_ci')
    assert [step() for step in steps.values()] == [0, 0, 0, 0]
    suite = ElementTree.parse('gate.xml').getroot()
    assert [case.find('failure') for case in suite.iter('testcase')] == [None]
    # A limit that no model keeps.
    assert main(['gate', 'result', '--max-vepd', '1e-6', '--junit', 'broken.xml']) == 1
    workflow = yaml.safe_load((EXAMPLES / 'bags_in_ci' / 'workflow.yml').read_text('utf-8'))
    lines = [step.get('run', '') for step in workflow['jobs']['gap']['steps']]
    assert sum('gate result --max-vepd 0.1 --junit gate.xml' in line for line in lines) == 1


@pytest.mark.usefixtures('blank_pictures')
def test_an_estimator_in_python(
    follow: Callable[[str], dict[str, Callable[[], int]]], capsys: pytest.CaptureFixture[str]
) -> None:
    steps = follow('estimator_in_python')
    assert [step() for step in steps.values()] == [0, 0, 0]
    printed = capsys.readouterr().out
    assert re.search(r'Nearest model +ch_rw ', printed)
    [code] = re.findall(r'```python\n(.*?)```', page('estimator_in_python'), re.S)
    exec(code, {})
    assert 'RMSE' in capsys.readouterr().out


def test_an_estimator_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """It follows the speed of a drive on which it was not tuned, from the third fix on."""
    pytest.importorskip('vqf')
    monkeypatch.syspath_prepend(EXAMPLES / 'estimator_in_python')
    judge = runpy.run_path(str(EXAMPLES / 'estimator_in_python' / 'vqf_kalman.py'))['VqfKalman']
    drive = simulate(
        motion_of('figure_eight', duration=20.0), gps='zed_f9p_rtk', imu='xsens_mtx', seed=1
    )
    assert drive.truth is not None
    found = judge().judge(drive)
    speed = np.hypot(*found.velocity[:, :2].T)
    true = np.hypot(*drive.truth.linear_velocity[:, :2].T)
    error = speed - np.interp(found.stamp_ns, drive.truth.stamp_ns, true)
    assert np.sqrt(np.mean(error[500:] ** 2)) < 0.1 * true.max()


@pytest.mark.usefixtures('blank_pictures')
def test_a_data_sheet(
    follow: Callable[[str], dict[str, Callable[[], int]]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Both white noises come back within four standard errors (one in 8,000 draws does not)."""
    steps = follow('data_sheet')
    assert [step() for step in steps.values()] == [0, 0, 0]
    printed = capsys.readouterr().out
    found = re.findall(r'white noise N +([\d.]+) ± ([\d.]+)', printed)
    for (value, error), stated in zip(found, (0.3, 150.0), strict=True):
        assert abs(float(value) - stated) < 4 * float(error)
        assert float(error) < 0.03 * stated


def test_an_estimator_in_ros(follow: Callable[[str], dict[str, Callable[[], int]]]) -> None:
    """Its judge runs in test_ros_stack."""
    steps = follow('estimator_in_ros')
    assert [step() for step in steps.values()] == [0]
    declared = RosStack.from_file(Path('speed_filter.yaml'))
    recording = read_recording(Path('real/circle_1'))
    assert {name: kind.name for name, (kind, _) in stack_inputs(declared, recording).items()} == {
        'gps': 'sensor_msgs/msg/NavSatFix'
    }


def test_a_gazebo_robot() -> None:
    folder = EXAMPLES / 'gazebo_robot'
    world = ElementTree.parse(folder / 'yard.sdf').getroot().find('world')
    model = world.find("model[@name='robot']")
    links = {link.get('name') for link in model.findall('link')}
    joints = {joint.get('name'): joint for joint in model.findall('joint')}
    drive = model.find("plugin[@name='gz::sim::systems::DiffDrive']")
    assert {part.text for part in drive if part.tag.endswith('_joint')} == set(joints)
    assert {joint.findtext('parent') for joint in joints.values()} == {'base_link'}
    assert {joint.findtext('child') for joint in joints.values()} == links - {'base_link'}
    # The wheels stand where and as large as the drive believes.
    wheels = [model.find(f"link[@name='{side}_wheel']") for side in ('left', 'right')]
    left, right = (float(wheel.findtext('pose').split()[1]) for wheel in wheels)
    assert left - right == pytest.approx(float(drive.findtext('wheel_separation')))
    height = float(model.findtext('pose').split()[2])
    for wheel in wheels:
        radius = float(wheel.findtext('collision/geometry/cylinder/radius'))
        assert radius == float(drive.findtext('wheel_radius')) == height
    # What the bridge names is there, with odometry on a grid of whole steps.
    bridge = {
        one['ros_topic_name']: one['gz_topic_name']
        for one in yaml.safe_load((folder / 'bridge.yaml').read_text('utf-8'))
    }
    topics = {part.text for tag in ('topic', 'odom_topic') for part in world.iter(tag)}
    assert set(bridge.values()) <= topics | {'/clock'}
    publisher = model.find("plugin[@name='gz::sim::systems::OdometryPublisher']")
    assert publisher.findtext('odom_topic') == '/ground_truth/odometry'
    step = float(world.findtext('physics/max_step_size'))
    steps = 1 / float(publisher.findtext('odom_publish_frequency')) / step
    assert steps == pytest.approx(round(steps))
    # The launch file passes on what sensors.launch.py declares.
    launch = ast.parse((folder / 'robot.launch.py').read_text('utf-8'))
    [call] = [
        node
        for node in ast.walk(launch)
        if isinstance(node, ast.Call)
        and any(isinstance(a, ast.Constant) and a.value == 'sensors.launch.py' for a in node.args)
    ]
    assert {word.arg for word in call.keywords} <= set(declared('sensors.launch.py'))


@needs_sdformat
def test_gazebo_takes_the_robot() -> None:
    done = sdf('cmdCheck', EXAMPLES / 'gazebo_robot' / 'yard.sdf')
    assert (done.returncode, done.stderr) == (0, '')
