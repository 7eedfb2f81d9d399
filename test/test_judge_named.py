# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Selection of a filter in a file, and of the topics of its inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from cli_examples import call, write_runs

from sim2real_eval.common.findings import Severity
from sim2real_eval.judge.robot_localization.replay_options import Options, ReplayOptions
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.reading import read_recording
from sim_sensors.core.errors import ParameterError, Sim2RealError

Capture = pytest.CaptureFixture[str]
YAW_RATE = [index == 11 for index in range(15)]


@pytest.fixture
def dual(tmp_path: Path) -> Path:
    """The file of a dual EKF: two filters and navsat_transform, laid out as upstream's example."""
    odom = {'frequency': 30.0, 'imu0': 'imu/data', 'imu0_config': YAW_RATE}
    position = [index < 2 for index in range(15)]
    both = {**odom, 'frequency': 10.0, 'odom0': 'odometry/gps', 'odom0_config': position}
    parts = {
        'ekf_filter_node_odom': odom,
        'ekf_filter_node_map': {**both, 'world_frame': 'map'},
        'navsat_transform': {'frequency': 30.0, 'zero_altitude': True},
    }
    path = tmp_path / 'dual.yaml'
    tree = {name: {'ros__parameters': values} for name, values in parts.items()}
    path.write_text(yaml.safe_dump(tree))
    return path


@pytest.fixture(scope='module')
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (path,) = write_runs(tmp_path_factory.mktemp('runs'), ('drive_line', 1))
    return path


def test_one_of_several_filters_is_selected_by_name(dual: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r'ekf_filter_node_odom.*--section'):
        JudgeSetup.load(dual)
    first = JudgeSetup.load(dual, options=Options(section='ekf_filter_node_odom'))
    assert (first.filter.frequency, first.navsat) == (30.0, None)
    case = tmp_path / 'case.yaml'
    case.write_text('section: ekf_filter_node_map\n')
    second = JudgeSetup.load(dual, case=case)
    assert second.filter.world_frame == 'map'
    assert second.navsat.zero_altitude
    assert second.settings()['case']['section'] == 'ekf_filter_node_map'
    with pytest.raises(ParameterError, match='did you mean ekf_filter_node_map'):
        JudgeSetup.load(dual, options=Options(section='ekf_filter_node_mop'))


def test_the_filter_is_selected_by_the_name_of_the_node(dual: Path) -> None:
    tree = yaml.safe_load(dual.read_text())
    tree['ukf_filter_node_odom'] = tree.pop('ekf_filter_node_odom')
    dual.write_text(yaml.safe_dump(tree))
    setup = JudgeSetup.load(dual, options=Options(section='ukf_filter_node_odom'))
    assert setup.filter.sigma_points is not None
    setup = JudgeSetup.load(dual, options=Options(section='ekf_filter_node_map'))
    assert setup.filter.sigma_points is None


def test_inputs_can_be_renamed(dual: Path) -> None:
    options = Options(section='ekf_filter_node_odom', topics={'imu0': '/vn100/imu'})
    setup = JudgeSetup.load(dual, options=options)
    assert [source.topic for source in setup.filter.sources] == ['vn100/imu']
    assert setup.settings()['case']['renamed'] == {'imu0': '/vn100/imu'}
    unknown = Options(section='ekf_filter_node_odom', topics={'imu1': '/x'})
    with pytest.raises(ParameterError, match=r'imu1.*imu0'):
        JudgeSetup.load(dual, options=unknown)


def test_a_case_can_rename_topics(tmp_path: Path) -> None:
    case = tmp_path / 'case.yaml'
    case.write_text('topics: {odom0: /wheel/odometry}\n')
    assert ReplayOptions.from_file(case).renamed == {'odom0': 'wheel/odometry'}
    case.write_text('topics: {odom0: 7}\n')
    with pytest.raises(ParameterError, match=r'topics\.odom0'):
        ReplayOptions.from_file(case)


def test_unknown_topics_are_refused_except_for_an_imu(dual: Path, run: Path) -> None:
    """The IMU of the recording is used instead, and a finding says so."""
    recording = read_recording(run)
    imu = Options(section='ekf_filter_node_map', topics={'imu0': '/vn100/imu'})
    notes = JudgeSetup.load(dual, options=imu).judge(recording).notes
    (message,) = [note for note in notes if 'vn100/imu' in str(note)]
    assert message.severity == Severity.ASSUMED
    odom = Options(section='ekf_filter_node_map', topics={'odom0': '/imu/date'})
    with pytest.raises(Sim2RealError, match='did you mean imu/data'):
        JudgeSetup.load(dual, options=odom).judge(recording)


@pytest.mark.parametrize(
    ('arguments', 'named'),
    [
        (['--topic', 'thruth=/odom'], 'truth'),
        (['--topic', 'imu=/a', '--topic', 'imu=/b'], 'imu'),
        (['--topic', 'odom0=/a', '--judge', 'error_state'], 'odom0'),
    ],
)
def test_wrong_topics_are_refused_by_name(
    run: Path, tmp_path: Path, capsys: Capture, arguments: list[str], named: str
) -> None:
    out = tmp_path / 'x.csv'
    outcome = call(capsys, 'judge', run, '--config', 'clean', *arguments, '--out', out)
    assert outcome.status == 2
    assert named in outcome.complaints[0]
