# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Tuning of a filter whose best parameters are known, and the parameter files."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import numpy as np
import pytest
import yaml
from tuning_examples import POSITION, STEP_S, VARIANCE, VELOCITY, Wander, wander_setup

from sim2real_eval import simulate
from sim2real_eval.benches.tuning import TuneOptions, tune
from sim2real_eval.benches.tuning.parameters import parameter_files, set_parameters, tunables
from sim2real_eval.benches.tuning.tuning import compare_with_node
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.inertial.error_state import ErrorStateJudge
from sim2real_eval.judge.protocol import Judge, JudgeRequest, load_judge
from sim2real_eval.judge.robot_localization.replay_options import ReplayOptions
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim_sensors import motion_of
from sim_sensors.core.errors import ParameterError, Sim2RealError


def is_equal(first: JudgedRun, second: JudgedRun) -> bool:
    return np.array_equal(first.position, second.position) and np.array_equal(
        first.pose_covariance, second.pose_covariance
    )


NAME = 'process_noise_covariance.velocity'


def test_the_likelihood_is_that_of_a_textbook_filter(tmp_path: Path) -> None:
    source = Wander('', seed=3, seconds=20.0)
    recording = source.read()
    corrections = wander_setup(tmp_path).judge(recording).corrections
    assert corrections.determinant is not None
    likelihood = -0.5 * (corrections.nis + np.log(corrections.determinant))
    # x and y are equal: position and velocity, initialized by the first measurement.
    F = np.array([[1.0, STEP_S], [0.0, 1.0]])
    Q = np.diag([POSITION, VELOCITY]) * STEP_S
    measured = recording.messages['/pose'].position[:, :2]
    P = np.diag([VARIANCE, 1e-9])
    x = np.stack([measured[0], np.zeros(2)])
    expected = []
    for z in measured[1:]:
        x, P = F @ x, F @ P @ F.T + Q
        S, nu = P[0, 0] + VARIANCE, z - x[0]
        expected.append(-0.5 * float(nu @ nu) / S - np.log(S))
        K = P[:, :1] / S
        x, P = x + K @ nu[None], P - K @ P[:1]
    assert len(likelihood) == len(expected)
    assert likelihood == pytest.approx(expected, abs=1e-5), 'textbook filter, 1e-5'


def test_a_wrong_noise_is_corrected_and_a_correct_noise_is_kept(tmp_path: Path) -> None:
    """In about one of twenty seeds the interval does not hold the truth."""
    options = TuneOptions(objective='likelihood', parameters=NAME, blocks=6, warmup=1.0)
    source = Wander('', seed=1, seconds=100.0)
    wrong = tune([source], wander_setup(tmp_path, velocity=VELOCITY / 10.0), options)
    (noise,) = wrong.changed
    assert noise.low is not None
    assert noise.high is not None
    assert noise.low < 10.0 < noise.high < 2.0 * noise.low
    assert wrong.notes[0].code == 'tune.better'
    right = tune([source], wander_setup(tmp_path), options)
    assert not right.changed
    assert right.notes[0].code == 'tune.unchanged'
    assert np.array_equal(right.judge.filter.process_noise, right.start.filter.process_noise)


def test_the_written_files_reproduce_the_estimates_of_the_tuned_filter(tmp_path: Path) -> None:
    start = wander_setup(tmp_path)
    parameters = tunables(start, ['all'])
    values = {
        'process_noise_covariance.velocity': 3.7, 'process_noise_covariance.position': 0.3,
        'pose0_rejection_threshold': 3.0, 'pose0_config.y': 0.0, 'covariance.pose': 2.5,
    }  # fmt: skip
    changed = [values.get(parameter.name, parameter.start) for parameter in parameters]
    setup = set_parameters(start, parameters, changed)
    files = parameter_files(start, setup, ['why'], {'process_noise_covariance': ['by how much']})
    assert list(files) == ['ekf.yaml', 'case.yaml']
    out = tmp_path / 'tuned'
    out.mkdir()
    for name, text in files.items():
        (out / name).write_text(text)
    again = JudgeSetup.load(out / 'ekf.yaml', case=out / 'case.yaml')
    recording = Wander('', seed=2, seconds=30.0).read()
    assert is_equal(again.judge(recording), setup.judge(recording))
    assert not is_equal(again.judge(recording), start.judge(recording))
    # Every number is a double to rclcpp.
    (node,) = yaml.safe_load(files['ekf.yaml']).values()
    assert isinstance(node['ros__parameters']['frequency'], float)


def test_a_covariance_factor_equals_that_factor_in_the_messages(tmp_path: Path) -> None:
    setup = wander_setup(tmp_path)
    case = dataclasses.replace(ReplayOptions(), covariance={'pose': 4.0})
    by_case = dataclasses.replace(setup, case=case).judge(Wander('', seed=2).read())
    by_message = setup.judge(Wander('', seed=2, stated=4.0 * VARIANCE).read())
    assert is_equal(by_case, by_message)


def test_inputs_without_a_truth_and_unknown_names_are_refused(tmp_path: Path) -> None:
    source, setup = Wander('', seconds=30.0), wander_setup(tmp_path)
    with pytest.raises(ParameterError, match='truth'):
        tune([source], setup, TuneOptions(parameters='inputs', warmup=0.0))
    with pytest.raises(ParameterError, match='did you mean noise'):
        tune([source], setup, TuneOptions(parameters='nois'))
    with pytest.raises(Sim2RealError, match='--objective speed'):
        tune([source], setup, TuneOptions(objective='speed'))


GAIN = '''
import dataclasses
import numpy as np
from sim2real_eval.judge import Estimate
from sim_sensors.core import Parameters, parameter


@dataclasses.dataclass(frozen=True)
class Gain(Parameters):
    """The true velocity times a gain."""

    gain: float = parameter(0.4, '1', 'Gain of the velocity.', minimum=0.0, maximum=3.0)
    idle: float = parameter(7.0, '1', 'Nothing depends on it.', above=0.0)
    off: float = parameter(0.0, 'm', 'Has no neighbours.')
    reduced: bool = parameter(False, '', 'Makes it worse.')

    def judge(self, recording):
        truth = recording.truth
        world = truth.linear_velocity[:, :1] * np.array([[1.0, 0.0, 0.0]])
        noise = np.random.default_rng(len(truth)).normal(0.0, 0.1, len(truth))
        velocity = (self.gain - 0.3 * self.reduced) * world
        velocity[:, 0] += noise
        return Estimate(truth.stamp_ns, velocity)
'''


def test_a_judge_that_declares_its_parameters_is_tuned(tmp_path: Path) -> None:
    """The right gain is 1: outside the interval of 95 % in one of twenty seeds."""
    (tmp_path / 'gain.py').write_text(GAIN)
    judge = load_judge(JudgeRequest(f'{tmp_path}/gain.py:Gain'))
    drive = simulate(motion_of('line', duration=30.0), gps='baseline', imu='ideal')
    write_recording(drive, tmp_path / 'drive')
    tuning = tune([RecordingSource(tmp_path / 'drive')], judge)
    assert [row.parameter.name for row in tuning.parameters] == ['gain', 'idle', 'reduced']
    (gain,) = tuning.changed
    assert gain.low is not None
    assert gain.high is not None
    assert gain.low < 1.0 < gain.high < 1.1 * gain.low
    # The judge states no covariance and no likelihood, and its heading is always right.
    assert [comparison.kind for comparison in tuning.comparisons] == ['speed']
    files = parameter_files(tuning.start, tuning.judge, ['why'], {'gain': ['by how much']})
    (tmp_path / 'judge.yaml').write_text(files['judge.yaml'])
    request = JudgeRequest(f'{tmp_path}/gain.py:Gain', config=str(tmp_path / 'judge.yaml'))
    again = load_judge(request)
    for copy in (again, pickle.loads(pickle.dumps(tuning.judge))):
        assert judged_velocity(copy, drive) == judged_velocity(tuning.judge, drive)


def judged_velocity(judge: Judge, recording: Recording) -> list[list[float]]:
    return list(judge.judge(recording).linear_velocity.tolist())


def test_nested_declared_parameters_can_be_tuned() -> None:
    judge = ErrorStateJudge.load()
    (deviation,) = tunables(judge, ['start.heading_deviation'])
    assert deviation.bounds == (pytest.approx(1e-4), pytest.approx(1000.0))
    changed = set_parameters(judge, [deviation], [0.3])
    assert changed.parameters.start.heading_deviation == 0.3
    assert changed.parameters.gate == judge.parameters.gate
    with pytest.raises(ParameterError, match='did you mean gyroscope_noise'):
        tunables(judge, ['gyroscope_noize'])


def test_the_node_reproduces_the_speeds_of_the_search(tmp_path: Path) -> None:
    pytest.importorskip('rclpy', reason='no ROS')
    from sim2real_eval.judge.external import NodeJudgeSetup

    recording = Wander('', seed=2, seconds=3.0).read()
    setup = NodeJudgeSetup.from_setup(wander_setup(tmp_path), 'judge_node')
    finding = compare_with_node(setup, recording, None)
    assert finding.code == 'tune.node_agrees'
    assert compare_with_node(ErrorStateJudge.load(), recording, None) is None
