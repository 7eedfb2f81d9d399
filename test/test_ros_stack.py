# SPDX-License-Identifier: Apache-2.0
"""Estimators of ROS that a YAML file declares: real nodes over real DDS, in lockstep and paced."""

from __future__ import annotations

import dataclasses
import runpy
import shutil
import time
from collections.abc import Sequence
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
from scipy.spatial.transform import Rotation

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.external import waits
from sim2real_eval.judge.external.declaration import RosStack
from sim2real_eval.judge.external.graph import free_domain
from sim2real_eval.judge.external.stack import _SESSIONS, RosStackJudge
from sim2real_eval.judge.external.stack_side import StackSide, stack_command
from sim2real_eval.judge.external.waits import answered
from sim2real_eval.judge.protocol import JudgeRequest, load_judge
from sim2real_eval.judge.robot_localization.replay_options import Options
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.ros.judge_node import JudgeNode
from sim_sensors.core.errors import ParameterError
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


def judge_of(folder: Path, declared: dict[str, Any]) -> RosStackJudge:
    where = folder / 'stack.yaml'
    where.write_text(yaml.safe_dump(declared, sort_keys=False), encoding='utf-8')
    return RosStackJudge('stack', where, RosStack.from_file(where))


def codes(run: Any) -> dict[str, Any]:
    return {note.code: note.numbers for note in run.notes}


def test_the_example_gives_what_its_node_computes(run: Recording) -> None:
    """Every fix is answered; a second process gives the same bits. North is not east far west."""
    judge = load_judge(JudgeRequest(str(EXAMPLE / 'speed_filter.yaml')))
    found = judge.judge(run)
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
    wanted = [one.twist.twist.linear for one in published]
    assert north.x == 0.0
    assert north.y > 0.1
    assert found.stamp_ns.tolist() == run.require('gps').stamp_ns.tolist()
    assert found.linear_velocity[:, :2].tolist() == [[one.x, one.y] for one in wanted]
    assert codes(found)['external.repeatability'] == {'repeats': 2, 'rms': 0.0, 'most': 0.0}
    assert 'external.unanswered' not in codes(found)
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
    monkeypatch.setattr(StackSide, '_run', in_this_process)
    found = judge_of(tmp_path, declared).judge(run, start_ns=run.start_ns)
    embedded = JudgeSetup.load('clean', options=Options(front_end='enu'))
    expected = embedded.judge(run, start_ns=run.start_ns)
    assert found.stamp_ns.tolist() == expected.stamp_ns.tolist()
    assert len(found) > 80
    assert found.linear_velocity.tobytes() == expected.linear_velocity.tobytes()


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
    found = load_judge(JudgeRequest(str(shipped))).judge(run, start_ns=run.start_ns)
    embedded = JudgeSetup.load('clean', options=Options(front_end='enu'))
    expected = embedded.judge(run, start_ns=run.start_ns)
    assert found.stamp_ns.tolist() == expected.stamp_ns.tolist()
    assert np.abs(found.linear_velocity - expected.linear_velocity).max() < 1e-5


def test_an_estimator_that_waits_for_its_initial_pose_starts_there(run: Recording) -> None:
    installed('kalman_filter_localization')
    shipped = config_path('estimators', 'kalman_filter_localization.yaml')
    found = load_judge(JudgeRequest(str(shipped))).judge(run, start_heading=0.5)
    assert found.stamp_ns[-1] - found.stamp_ns[0] > 1.5e9
    assert np.linalg.norm(found.position[0]) < 0.5
    yaw = Rotation.from_quat(found.orientation[0]).as_euler('xyz')[2]
    assert yaw == pytest.approx(0.5, abs=0.1)


def in_this_process(side: StackSide, command: Sequence[str]) -> None:
    """In place of `StackSide._run`: the libraries of judge_node are loaded here already."""
    words = list(command[command.index('--ros-args') :])
    executor = side._node.executor
    node = JudgeNode(context=side._node.context, use_global_arguments=False, cli_args=words)
    executor.add_node(node)
    side._closing.callback(node.destroy_node)
    side._closing.callback(executor.remove_node, node)


def test_a_lifecycle_node_is_activated_once_and_reset_between_replays(
    tmp_path: Path, run: Recording
) -> None:
    """The second replay counts from one again, in the same process."""
    judge = judge_of(tmp_path, COUNTER)
    found = judge.judge(run)
    try:
        speeds = found.linear_velocity[:, 0]
        assert speeds.tolist() == list(range(1, len(run.require('gps')) + 1))
        told = codes(found)
        assert told['external.repeatability']['most'] == 0.0
        assert 0.0 < told['external.rate']['rate'] < 5.1
        assert 'external.level' in told
        first = _SESSIONS[judge.where]._side._process
        assert first is not None
        first.check()
        # What it was told when it started does not hold for a recording with other transforms.
        antenna = (StaticTransform('base_link', 'gps_link', (0.1, 0.0, 0.2)),)
        once = dataclasses.replace(judge, stack=dataclasses.replace(judge.stack, repeats=1))
        once.judge(run)
        second = _SESSIONS[judge.where]._side._process
        assert second is not first
        again = once.judge(dataclasses.replace(run, transforms=antenna))
        assert again.linear_velocity[0, 0] == 1.0
        assert _SESSIONS[judge.where]._side._process is not second
    finally:
        _SESSIONS.pop(judge.where).close()


def test_a_service_is_asked_again_until_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is lost is repeated, and all that came through is dealt with before it ends."""
    monkeypatch.setattr(waits, 'AGAIN_S', 0.01)
    asked: list[Future] = []

    class Service:
        def call_async(self, request: int) -> Future:
            asked.append(Future())
            return asked[-1]

    work = answered(Service(), 0, 'an answer')
    wait = next(work)
    until = time.monotonic() + 30.0
    while len(asked) < 3 and time.monotonic() < until:
        assert not wait.met()
    asked[1].set_result('to the second')
    time.sleep(0.2)
    assert not wait.met()
    assert len(asked) == 3
    asked[2].set_result('to the third')
    assert wait.met()
    with pytest.raises(StopIteration) as ended:
        next(work)
    assert ended.value.value == 'to the third'


def test_a_fix_without_an_answer_and_a_slow_replay_are_noticed(
    tmp_path: Path, run: Recording
) -> None:
    # A node that is slow to configure itself is asked to do so once.
    told = {'skip': 3, 'broken': 'slow'}
    lossy = {**COUNTER, 'parameters': told, 'reset': '', 'repeats': 1}
    found = judge_of(tmp_path, lossy).judge(run)
    fixes = len(run.require('gps'))
    assert codes(found)['external.unanswered'] == {'missing': 1, 'count': fixes}
    with pytest.raises(JudgeError, match=r'longer than time_limit, 0\.1 s'):
        judge_of(tmp_path, {**lossy, 'time_limit': 0.1}).judge(run)


def test_parameters_reach_nodes_in_namespaces_too(tmp_path: Path) -> None:
    """What the file sets for nodes below a namespace stays, with the values that replace some."""
    file = {'robot': {'filter': {'ros__parameters': {'rate': 5.0, 'gain': 2.0}}}, '/**': None}
    (tmp_path / 'params.yaml').write_text(yaml.safe_dump(file))
    declared = {**COUNTER, 'parameters_file': 'params.yaml', 'parameters': {'gain': 3.0}}
    judge, written = judge_of(tmp_path, declared), tmp_path / 'written'
    written.mkdir()
    stack_command(judge.stack, judge.where, written)
    assert yaml.safe_load((written / 'params.yaml').read_text()) == {
        'robot': {'filter': {'ros__parameters': {'rate': 5.0, 'gain': 3.0, 'use_sim_time': True}}},
        '/**': {'ros__parameters': {'gain': 3.0, 'use_sim_time': True}},
    }
    with pytest.raises(ParameterError, match=r'parameters_file: params\.yml: no such file'):
        judge_of(tmp_path, {**declared, 'parameters_file': 'params.yml'})


def test_what_does_not_start_is_said_in_one_line(tmp_path: Path, run: Recording) -> None:
    for declared, said in (
        ({'command': 'python3 -c "print(1); raise SystemExit(3)"'}, 'ended with status 3: 1'),
        ({'command': 'no_such_program'}, 'cannot start no_such_program'),
        ({'parameters': {'broken': 'configure'}}, '/counter does not leave .* unconfigured'),
        ({'parameters': {'broken': 'activate'}}, '/counter does not leave .* inactive'),
    ):
        with pytest.raises(JudgeError, match=f'stack:? {said}'):
            judge_of(tmp_path, {**COUNTER, **declared}).judge(run)
    with pytest.raises(JudgeError, match=r'inputs\.gsp: is not in the recording .*gps'):
        judge_of(tmp_path, {**COUNTER, 'inputs': {'gsp': 'fix'}, 'output': {}}).judge(run)
