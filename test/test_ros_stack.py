# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Estimators of ROS that a YAML file declares: real nodes over real DDS, in lockstep and paced."""

from __future__ import annotations

import dataclasses
import runpy
import shutil
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

pytest.importorskip('rclpy', reason='no ROS')

import numpy as np
import rclpy
from live_examples import curve
from ros_judge_examples import start_in_this_process
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.external import _SESSIONS, RosEstimatorJudge
from sim2real_eval.judge.external.connections import GraphEstimator
from sim2real_eval.judge.external.declaration import RosStack
from sim2real_eval.judge.external.graph import free_domain
from sim2real_eval.judge.external.process import stack_command
from sim2real_eval.judge.protocol import JudgeRequest, load_judge
from sim2real_eval.judge.robot_localization.replay_options import Options
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim_sensors.core.shipped import config_path
from sim_sensors.ros.messages import messages_of

EXAMPLE = Path(__file__).resolve().parent.parent / 'examples' / 'estimator_in_ros'
COUNTER = {
    'command': f'python3 {Path(__file__).with_name("stack_node.py")}',
    'inputs': {'gps': 'fix'},
    'output': {'topic': 'speed', 'type': 'geometry_msgs/msg/TwistStamped', 'answers': 'gps'},
    'ready': {'lifecycle': 'counter', 'service': 'start_anew'},
    'reset': 'start_anew',
    'clock': {'mode': 'real_time', 'rate': 5.0, 'run_on': 0.1},
}


@pytest.fixture
def run() -> Recording:
    return curve(2.0, transforms=())


def judge_of(folder: Path, declared: dict[str, Any]) -> RosEstimatorJudge:
    where = folder / 'stack.yaml'
    where.write_text(yaml.safe_dump(declared, sort_keys=False), encoding='utf-8')
    return RosEstimatorJudge('stack', where, RosStack.from_file(where))


def codes(run: Any) -> dict[str, Any]:
    return {note.code: note.numbers for note in run.notes}


def test_the_example_declaration_gives_the_estimates_of_its_node(run: Recording) -> None:
    """Every fix is answered; a second process gives the same bits."""
    judge = load_judge(JudgeRequest(str(EXAMPLE / 'speed_filter.yaml')))
    estimate = judge.judge(run)
    with free_domain() as domain:
        rclpy.init(args=[], domain_id=domain)
        node = runpy.run_path(str(EXAMPLE / 'speed_filter_node.py'))['SpeedFilter']()
        published: list[Any] = []
        node._publisher = SimpleNamespace(publish=published.append)
        for fix in messages_of(run.require('gps')):
            node.on_fix(fix)
        node.destroy_node()
        rclpy.shutdown()
    velocities = [velocity.twist.twist.linear for velocity in published]
    assert estimate.stamp_ns.tolist() == run.require('gps').stamp_ns.tolist()
    assert estimate.linear_velocity[:, :2].tolist() == [
        [velocity.x, velocity.y] for velocity in velocities
    ]
    assert codes(estimate)['external.repeatability'] == {'repeats': 2, 'rms': 0.0, 'most': 0.0}
    assert 'external.incomplete' not in codes(estimate)
    assert [path.name for path in judge.files] == ['speed_filter.yaml', 'speed_filter_node.py']


def test_a_declared_robot_localization_equals_the_built_in_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Recording
) -> None:
    """judge_node replaces ekf_node in the shipped declaration: the bits of the batch judge."""
    shipped = config_path('estimators', 'robot_localization.yaml')
    declared = yaml.safe_load(shipped.read_text(encoding='utf-8'))
    declared['parameters_file'] = str(shipped.parent / declared['parameters_file'])
    declared['parameters'] |= {'assume_identity_frames': True}
    monkeypatch.setattr(GraphEstimator, '_start_process', start_in_this_process)
    estimate = judge_of(tmp_path, declared).judge(run, start_ns=run.start_ns)
    embedded = JudgeSetup.load('clean', options=Options(front_end='enu'))
    expected = embedded.judge(run, start_ns=run.start_ns)
    assert estimate.stamp_ns.tolist() == expected.stamp_ns.tolist()
    assert len(estimate) > 80
    assert estimate.linear_velocity.tobytes() == expected.linear_velocity.tobytes()


def installed(package: str) -> None:
    """Skip where a package of ROS is not there."""
    if shutil.which('ros2') is None or find_spec('tf2_msgs') is None:
        pytest.skip('no ros2, or no tf2_msgs')
    packages = pytest.importorskip('ament_index_python.packages')
    try:
        packages.get_package_prefix(package)
    except LookupError:
        pytest.skip(f'no {package}')


def test_the_real_ekf_node_equals_the_embedded_judge(run: Recording) -> None:
    """The shipped declaration, with frames of the sensors and no transforms."""
    installed('robot_localization')
    shipped = config_path('estimators', 'robot_localization.yaml')
    estimate = load_judge(JudgeRequest(str(shipped))).judge(run, start_ns=run.start_ns)
    embedded = JudgeSetup.load('clean', options=Options(front_end='enu'))
    expected = embedded.judge(run, start_ns=run.start_ns)
    assert estimate.stamp_ns.tolist() == expected.stamp_ns.tolist()
    assert np.abs(estimate.linear_velocity - expected.linear_velocity).max() < 1e-5


def test_an_estimator_starts_at_the_given_initial_pose(run: Recording) -> None:
    installed('kalman_filter_localization')
    shipped = config_path('estimators', 'kalman_filter_localization.yaml')
    estimate = load_judge(JudgeRequest(str(shipped))).judge(run, start_heading=0.5)
    assert estimate.stamp_ns[-1] - estimate.stamp_ns[0] > 1.5e9
    assert np.linalg.norm(estimate.position[0]) < 0.5
    yaw = Rotation.from_quat(estimate.orientation[0]).as_euler('xyz')[2]
    assert yaw == pytest.approx(0.5, abs=0.1)


def test_a_lifecycle_node_is_reset_between_replays(tmp_path: Path, run: Recording) -> None:
    """The second replay counts from one again, in the same process."""
    judge = judge_of(tmp_path, COUNTER)
    estimate = judge.judge(run)
    try:
        speeds = estimate.linear_velocity[:, 0]
        assert speeds.tolist() == list(range(1, len(run.require('gps')) + 1))
        notes = codes(estimate)
        assert notes['external.repeatability']['most'] == 0.0
        assert 0.0 < notes['external.rate']['rate'] < 5.1
        assert 'judge.completed' in notes
        first = _SESSIONS[judge.declaration]._estimator._process
        first.check()
        # A recording with other transforms needs a new process.
        antenna = (StaticTransform('base_link', 'gps_link', (0.1, 0.0, 0.2)),)
        once = dataclasses.replace(judge, stack=dataclasses.replace(judge.stack, repeats=1))
        once.judge(run)
        second = _SESSIONS[judge.declaration]._estimator._process
        assert second is not first
        again = once.judge(dataclasses.replace(run, transforms=antenna))
        assert again.linear_velocity[0, 0] == 1.0
        assert _SESSIONS[judge.declaration]._estimator._process is not second
    finally:
        _SESSIONS.pop(judge.declaration).close()


def test_missing_answers_cause_findings_and_slow_replays_errors(
    tmp_path: Path, run: Recording
) -> None:
    # A node that is slow to configure itself is asked to do so once.
    notes = {'skip': 3, 'broken': 'slow'}
    lossy = {**COUNTER, 'parameters': notes, 'reset': '', 'repeats': 1}
    estimate = judge_of(tmp_path, lossy).judge(run)
    fixes = len(run.require('gps'))
    assert codes(estimate)['external.incomplete'] == {'missing': 1, 'count': fixes}
    with pytest.raises(JudgeError, match='time_limit'):
        judge_of(tmp_path, {**lossy, 'time_limit': 0.1}).judge(run)


def test_parameters_are_passed_to_nodes_in_namespaces(tmp_path: Path) -> None:
    file = {'robot': {'filter': {'ros__parameters': {'rate': 5.0, 'gain': 2.0}}}, '/**': None}
    (tmp_path / 'params.yaml').write_text(yaml.safe_dump(file))
    declared = {**COUNTER, 'parameters_file': 'params.yaml', 'parameters': {'gain': 3.0}}
    judge, written = judge_of(tmp_path, declared), tmp_path / 'written'
    written.mkdir()
    stack_command(judge.stack, judge.declaration, written)
    assert yaml.safe_load((written / 'params.yaml').read_text()) == {
        'robot': {'filter': {'ros__parameters': {'rate': 5.0, 'gain': 3.0, 'use_sim_time': True}}},
        '/**': {'ros__parameters': {'gain': 3.0, 'use_sim_time': True}},
    }


@pytest.mark.parametrize(
    ('declared', 'named'),
    [
        ({'command': 'python3 -c "print(1); raise SystemExit(3)"'}, 'status 3: 1'),
        ({'command': 'no_such_program'}, 'no_such_program'),
        ({'parameters': {'broken': 'configure'}}, 'unconfigured'),
        ({'parameters': {'broken': 'activate'}}, 'inactive'),
        ({'inputs': {'gsp': 'fix'}, 'output': {}}, 'gsp'),
    ],
)
def test_an_estimator_that_does_not_start_is_an_error(
    tmp_path: Path, run: Recording, declared: dict[str, Any], named: str
) -> None:
    with pytest.raises(JudgeError, match=named):
        judge_of(tmp_path, {**COUNTER, **declared}).judge(run)
