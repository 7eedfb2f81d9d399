# SPDX-License-Identifier: Apache-2.0
"""Estimators of ROS that a YAML file declares: real nodes over real DDS, in lockstep and paced."""

from __future__ import annotations

import dataclasses
import runpy
import shutil
import time
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
from rclpy.task import Future
from ros_judge_examples import start_in_this_process
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.external import _SESSIONS, RosEstimatorJudge, connections
from sim2real_eval.judge.external.connections import Side, call_service
from sim2real_eval.judge.external.declaration import RosStack
from sim2real_eval.judge.external.graph import free_domain
from sim2real_eval.judge.external.process import stack_command
from sim2real_eval.judge.protocol import JudgeRequest, load_judge
from sim2real_eval.judge.robot_localization.replay_options import Options
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim_sensors.core.config_files import config_path
from sim_sensors.core.errors import ParameterError
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


def test_the_example_gives_what_its_node_computes(run: Recording) -> None:
    """Every fix is answered; a second process gives the same bits. North is not east far west."""
    judge = load_judge(JudgeRequest(str(EXAMPLE / 'speed_filter.yaml')))
    estimate = judge.judge(run)
    with free_domain() as domain:
        rclpy.init(args=[], domain_id=domain)
        node = runpy.run_path(str(EXAMPLE / 'speed_filter_node.py'))['SpeedFilter']()
        published: list[Any] = []
        node._publisher = SimpleNamespace(publish=published.append)
        for fix in messages_of(run.require('gps')):
            node.on_fix(fix)
        for step, fix in enumerate(list(messages_of(run.require('gps')))[:2]):
            fix.header.stamp.sec += 100
            fix.longitude, fix.latitude = -122.0, 37.0 + 1e-5 * step
            node._last = node._last if step else None
            node._velocity = node._velocity if step else (0.0, 0.0)
            node.on_fix(fix)
        north = published.pop().twist.twist.linear
        published.pop()
        node.destroy_node()
        rclpy.shutdown()
    velocities = [velocity.twist.twist.linear for velocity in published]
    assert north.x == 0.0
    assert north.y > 0.1
    assert estimate.stamp_ns.tolist() == run.require('gps').stamp_ns.tolist()
    assert estimate.linear_velocity[:, :2].tolist() == [
        [velocity.x, velocity.y] for velocity in velocities
    ]
    assert codes(estimate)['external.repeatability'] == {'repeats': 2, 'rms': 0.0, 'most': 0.0}
    assert 'external.incomplete' not in codes(estimate)
    assert [path.name for path in judge.files] == ['speed_filter.yaml', 'speed_filter_node.py']


def test_robot_localization_declared_is_robot_localization(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Recording
) -> None:
    """judge_node stands for ekf_node, with the shipped declaration: the estimates have the bits of
    the embedded judge, that of fixes in an east-north-up frame, from the first to the last.
    """
    shipped = config_path('estimators', 'robot_localization.yaml')
    declared = yaml.safe_load(shipped.read_text(encoding='utf-8'))
    declared['parameters_file'] = str(shipped.parent / declared['parameters_file'])
    declared['parameters'] |= {'assume_identity_frames': True}
    monkeypatch.setattr(Side, '_start_process', start_in_this_process)
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


def test_the_real_ekf_node_gives_what_the_embedded_judge_gives(run: Recording) -> None:
    """The shipped declaration, with frames of the sensors and no transforms."""
    installed('robot_localization')
    shipped = config_path('estimators', 'robot_localization.yaml')
    estimate = load_judge(JudgeRequest(str(shipped))).judge(run, start_ns=run.start_ns)
    embedded = JudgeSetup.load('clean', options=Options(front_end='enu'))
    expected = embedded.judge(run, start_ns=run.start_ns)
    assert estimate.stamp_ns.tolist() == expected.stamp_ns.tolist()
    assert np.abs(estimate.linear_velocity - expected.linear_velocity).max() < 1e-5


def test_an_estimator_that_waits_for_its_initial_pose_starts_there(run: Recording) -> None:
    installed('kalman_filter_localization')
    shipped = config_path('estimators', 'kalman_filter_localization.yaml')
    estimate = load_judge(JudgeRequest(str(shipped))).judge(run, start_heading=0.5)
    assert estimate.stamp_ns[-1] - estimate.stamp_ns[0] > 1.5e9
    assert np.linalg.norm(estimate.position[0]) < 0.5
    yaw = Rotation.from_quat(estimate.orientation[0]).as_euler('xyz')[2]
    assert yaw == pytest.approx(0.5, abs=0.1)


def test_a_lifecycle_node_is_activated_once_and_reset_between_replays(
    tmp_path: Path, run: Recording
) -> None:
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
        first = _SESSIONS[judge.declaration]._side._process
        assert first is not None
        first.check()
        # What it was told when it started does not hold for a recording with other transforms.
        antenna = (StaticTransform('base_link', 'gps_link', (0.1, 0.0, 0.2)),)
        once = dataclasses.replace(judge, stack=dataclasses.replace(judge.stack, repeats=1))
        once.judge(run)
        second = _SESSIONS[judge.declaration]._side._process
        assert second is not first
        again = once.judge(dataclasses.replace(run, transforms=antenna))
        assert again.linear_velocity[0, 0] == 1.0
        assert _SESSIONS[judge.declaration]._side._process is not second
    finally:
        _SESSIONS.pop(judge.declaration).close()


def test_a_service_is_asked_again_until_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lost requests are repeated, and all received ones are answered before it ends."""
    monkeypatch.setattr(connections, 'RETRY_S', 0.01)
    requests: list[Future] = []

    class Service:
        def call_async(self, request: int) -> Future:
            requests.append(Future())
            return requests[-1]

    work = call_service(Service(), 0, 'an answer')
    wait = next(work)
    until = time.monotonic() + 30.0
    while len(requests) < 3 and time.monotonic() < until:
        assert not wait.is_met()
    requests[1].set_result('to the second')
    time.sleep(0.2)
    assert not wait.is_met()
    assert len(requests) == 3
    requests[2].set_result('to the third')
    assert wait.is_met()
    with pytest.raises(StopIteration) as ended:
        next(work)
    assert ended.value.value == 'to the third'


def test_a_fix_without_an_answer_and_a_slow_replay_are_noticed(
    tmp_path: Path, run: Recording
) -> None:
    # A node that is slow to configure itself is asked to do so once.
    notes = {'skip': 3, 'broken': 'slow'}
    lossy = {**COUNTER, 'parameters': notes, 'reset': '', 'repeats': 1}
    estimate = judge_of(tmp_path, lossy).judge(run)
    fixes = len(run.require('gps'))
    assert codes(estimate)['external.incomplete'] == {'missing': 1, 'count': fixes}
    with pytest.raises(JudgeError, match=r'longer than time_limit, 0\.1 s'):
        judge_of(tmp_path, {**lossy, 'time_limit': 0.1}).judge(run)


def test_parameters_reach_nodes_in_namespaces_too(tmp_path: Path) -> None:
    """Parameters of nodes in namespaces stay, except those that are overridden."""
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
    with pytest.raises(ParameterError, match=r'parameters_file: params\.yml: no such file'):
        judge_of(tmp_path, {**declared, 'parameters_file': 'params.yml'})


def test_what_does_not_start_is_said_in_one_line(tmp_path: Path, run: Recording) -> None:
    for declared, problem in (
        ({'command': 'python3 -c "print(1); raise SystemExit(3)"'}, 'ended with status 3: 1'),
        ({'command': 'no_such_program'}, 'cannot start no_such_program'),
        ({'parameters': {'broken': 'configure'}}, '/counter does not leave .* unconfigured'),
        ({'parameters': {'broken': 'activate'}}, '/counter does not leave .* inactive'),
    ):
        with pytest.raises(JudgeError, match=f'stack:? {problem}'):
            judge_of(tmp_path, {**COUNTER, **declared}).judge(run)
    with pytest.raises(JudgeError, match=r'inputs\.gsp: is not in the recording .*gps'):
        judge_of(tmp_path, {**COUNTER, 'inputs': {'gsp': 'fix'}, 'output': {}}).judge(run)
