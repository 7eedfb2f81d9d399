# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Differences between releases of robot_localization, and where a release can be chosen."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from cli_examples import call
from judge_examples import (
    START_NS,
    commands,
    imu,
    mask,
    odometry,
    parameter_file,
    recording,
    stamps,
)
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Severity
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.external.installed import find_robot_localization
from sim2real_eval.judge.robot_localization.advice import COMMANDS_OF_OTHER_TYPE
from sim2real_eval.judge.robot_localization.configuration import FilterConfig, NavsatConfig
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.judge.robot_localization.release import Release
from sim2real_eval.judge.robot_localization.replay_options import Options, ReplayOptions
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.study.study_file import StudyFile
from sim2real_eval.study.variants import Entry, read_judges
from sim_sensors.core.errors import ParameterError, Sim2RealError

Capture = pytest.CaptureFixture[str]
V3_8, V3_10, ROLLING = Release
WHEELS = {'odom0': 'odom', 'odom0_config': mask('vx', 'vyaw')}
TWIST, TWIST_STAMPED = 'geometry_msgs/msg/Twist', 'geometry_msgs/msg/TwistStamped'
ESTIMATE = ('position', 'orientation', 'linear_velocity', 'angular_velocity', 'pose_covariance')


def config_of(folder: Path, release: Release, **parameters: Any) -> FilterConfig:
    return FilterConfig.from_file(
        parameter_file(folder, {**WHEELS, **parameters}), release=release
    )


def wheel_run(
    seconds: float = 2.0, start_ns: int = START_NS, gap: tuple[float, float] = (0.0, 0.0)
) -> Recording:
    """Return wheel odometry at 1 m/s and 20 Hz without the seconds of a gap."""
    clock = stamps(20.0, seconds, start_ns)
    time = (clock - start_ns) * 1e-9
    clock = clock[~((time > gap[0]) & (time < gap[1]))]
    velocity = np.tile([1.0, 0.0, 0.0], (len(clock), 1))
    return recording({'odom': odometry(clock, velocity=velocity)})


def assert_equal_estimates(first: JudgedRun, second: JudgedRun) -> None:
    for name in ESTIMATE:
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes(), name


def test_releases_are_ordered_by_age() -> None:
    assert sorted(Release, reverse=True) == [ROLLING, V3_10, V3_8]
    assert Release.V3_8 <= Release.V3_8


@pytest.mark.parametrize(
    ('version', 'is_lifecycle', 'release'),
    [
        ('3.8.3', False, V3_8), ('3.5.4', False, V3_8), ('3.9.2', False, V3_10),
        ('3.10.0', False, V3_10), ('4.0.0', False, V3_10), ('3.10.1', True, ROLLING),
    ],
)  # fmt: skip
def test_an_installed_version_has_a_release(
    version: str, is_lifecycle: bool, release: Release
) -> None:
    """3.10 is greater than 3.8 although the text is smaller."""
    assert Release.of_package(version, is_lifecycle=is_lifecycle) is release


# What differs


@pytest.mark.parametrize('release', Release)
@pytest.mark.parametrize('length', [0, 14, 16, 224, 226, 450])
def test_a_covariance_of_neither_15_nor_225_numbers_is_refused(
    tmp_path: Path, release: Release, length: int
) -> None:
    """3.8.3 reads 225 numbers from where the list begins, later releases end; neither is Q."""
    for name in ('process_noise_covariance', 'initial_estimate_covariance'):
        with pytest.raises(ParameterError, match=name):
            config_of(tmp_path, release, **{name: [0.1] * length})


@pytest.mark.parametrize('release', Release)
def test_a_diagonal_and_its_matrix_give_the_same_covariance(
    tmp_path: Path, release: Release
) -> None:
    """Pull request 909 changes the branch for other lengths, not the meaning of 15 and 225."""
    diagonal = [0.01 * k for k in range(1, 16)]
    matrix = np.diag(diagonal)
    for numbers in (diagonal, matrix.ravel().tolist()):
        config = config_of(tmp_path, release, process_noise_covariance=numbers)
        assert config.process_noise.tolist() == matrix.tolist()


def commanded(kind: str) -> Recording:
    """Return a standing robot with commands of 1 m/s for 4 s, of a message type."""
    run = recording({'imu': imu(stamps(100.0, 4.0)), 'cmd_vel': commands(stamps(20.0, 4.0), 1.0)})
    return dataclasses.replace(run, ros_types={'cmd_vel': kind})


@pytest.mark.parametrize(
    ('release', 'stamped_control', 'used'),
    [
        (V3_8, None, TWIST), (V3_10, None, TWIST_STAMPED), (ROLLING, None, TWIST_STAMPED),
        (V3_8, True, TWIST_STAMPED), (V3_10, False, TWIST), (ROLLING, False, TWIST),
    ],
)  # fmt: skip
def test_commands_of_one_message_type_are_used(
    tmp_path: Path, release: Release, stamped_control: bool | None, used: str
) -> None:
    """Gain 1 and 1 m/s: 1 - exp(-t), or rest if the node subscribes to the other type."""
    stated = {} if stamped_control is None else {'stamped_control': stamped_control}
    path = parameter_file(
        tmp_path,
        {
            'imu0': 'imu', 'imu0_config': mask('yaw', 'vyaw'), 'use_control': True,
            'control_timeout': 0.5, 'control_config': [True, *[False] * 5],
            'acceleration_limits': [5.0] * 6, 'acceleration_gains': [1.0] * 6, **stated,
        },
    )  # fmt: skip
    config = FilterConfig.from_file(path, release=release)
    for kind in (TWIST, TWIST_STAMPED):
        judged = judge(commanded(kind), config)
        late = np.searchsorted(judged.stamp_ns, START_NS + 3_000_000_000)
        expected = 1.0 - np.exp(-3.0) if kind == used else 0.0
        assert judged.linear_velocity[late, 0] == pytest.approx(expected, abs=0.02)
        findings = [note for note in judged.notes if note.kind is COMMANDS_OF_OTHER_TYPE]
        assert len(findings) == (kind != used)
        assert all(finding.severity is Severity.DECISIVE for finding in findings)
    # The remedy of the finding works.
    other = TWIST if used == TWIST_STAMPED else TWIST_STAMPED
    (finding,) = [
        note for note in judge(commanded(other), config).notes
        if note.kind is COMMANDS_OF_OTHER_TYPE
    ]  # fmt: skip
    opposite = not config.stamped_control
    assert f'`stamped_control: {str(opposite).lower()}`' in finding.remedy
    corrected = dataclasses.replace(config, stamped_control=opposite)
    assert judge(commanded(other), corrected).linear_velocity[-1, 0] > 0.9


@pytest.mark.parametrize(
    ('release', 'frequency', 'timeout'),
    [(V3_8, 5.0, 0.2), (V3_10, 5.0, 0.2), (ROLLING, 5.0, 1 / 30), (ROLLING, 100.0, 1 / 30)],
)
def test_the_default_sensor_timeout_depends_on_the_frequency_except_in_a_lifecycle_node(
    tmp_path: Path, release: Release, frequency: float, timeout: float
) -> None:
    config = config_of(tmp_path, release, frequency=frequency)
    assert config.sensor_timeout == pytest.approx(timeout, rel=1e-12)
    stated = config_of(tmp_path, release, frequency=frequency, sensor_timeout=0.3)
    assert stated.sensor_timeout == 0.3


def test_a_lifecycle_node_predicts_later_in_a_gap(tmp_path: Path) -> None:
    """At 100 Hz without messages: 3.8 predicts after 10 ms, a lifecycle node after 33 ms."""
    run = wheel_run(gap=(1.0, 1.5))
    first_ns = []
    for release in (V3_8, ROLLING):
        judged = judge(run, config_of(tmp_path, release, frequency=100.0))
        newest = START_NS + 1_000_000_000
        first_ns.append(int(judged.stamp_ns[judged.stamp_ns > newest][0]) - newest)
    assert first_ns == [10_000_000, 40_000_000]


@pytest.mark.parametrize(('release', 'frame'), [(V3_8, 'car/odom'), (ROLLING, 'odom')])
def test_a_lifecycle_node_ignores_the_odometry_frame_for_the_world_frame(
    tmp_path: Path, release: Release, frame: str
) -> None:
    assert config_of(tmp_path, release, odom_frame='car/odom').world_frame == frame
    stated = {'odom_frame': 'car/odom', 'world_frame': 'map'}
    assert config_of(tmp_path, release, **stated).world_frame == 'map'


def test_only_an_activated_node_overrules_disabled_at_startup(tmp_path: Path) -> None:
    for release in (V3_8, V3_10):
        with pytest.raises(ParameterError, match='disabled_at_startup'):
            config_of(tmp_path, release, disabled_at_startup=True)
    config_of(tmp_path, ROLLING, disabled_at_startup=True, transform_timeout_odom_bl=0.1)


@pytest.mark.parametrize('attitude', ['absolute', 'relative', 'none'])
def test_gravity_of_a_tilted_imu_is_removed_in_the_axes_of_base_link(
    tmp_path: Path, attitude: str
) -> None:
    """Pull request 946. At rest nothing may remain; 0.5 rad of roll leaves (0, -4.70, 1.20).

    The figures of 3.8.3 were seen in a run of its ekf_node.
    """
    roll = Rotation.from_euler('x', 0.5)
    clock = stamps(100.0, 0.3)
    up = roll.inv().apply([0.0, 0.0, 9.80665])
    resting = imu(clock, force=np.tile(up, (len(clock), 1)))
    if attitude == 'absolute':
        quaternions = np.tile(roll.as_quat(), (len(clock), 1))
        resting = dataclasses.replace(resting, orientation=quaternions)
    if attitude == 'none':
        absent = resting.orientation_covariance.copy()
        absent[:, 0, 0] = -1.0
        resting = dataclasses.replace(resting, orientation_covariance=absent)
    mounting = StaticTransform('base_link', resting.frame, (0.0, 0.0, 0.0), tuple(roll.as_quat()))
    run = recording({'imu': resting}, (mounting,))
    parameters = {
        'imu0': 'imu', 'imu0_config': mask('ay', 'az'), 'imu0_relative': attitude == 'relative',
        'imu0_remove_gravitational_acceleration': True,
        'process_noise_covariance': [0.0] * 13 + [1e9, 1e9],
    }  # fmt: skip
    path = parameter_file(tmp_path, parameters)
    speed = {}
    for release in Release:
        judged = judge(run, FilterConfig.from_file(path, release=release))
        seconds = (judged.stamp_ns[-1] - judged.stamp_ns[0]) * 1e-9
        change = judged.linear_velocity[-1] - judged.linear_velocity[0]
        speed[release] = change[1:] / seconds
    np.testing.assert_allclose(speed[ROLLING], 0.0, atol=1e-9)
    np.testing.assert_array_equal(speed[V3_8], speed[V3_10])
    if attitude == 'absolute':
        np.testing.assert_allclose(speed[V3_8], [-4.70, 1.20], atol=0.01)
    assert np.linalg.norm(speed[V3_8]) > 4.0


def spinning(start_ns: int) -> Recording:
    """Return an IMU 1 m ahead of base_link in a turn at 1 rad/s, without any acceleration."""
    clock = stamps(200.0, 0.2, start_ns)
    rate = np.tile([0.0, 0.0, 1.0], (len(clock), 1))
    still = imu(clock, rate=rate, force=np.tile([-1.0, 0.0, 9.80665], (len(clock), 1)))
    arm = StaticTransform('base_link', still.frame, (1.0, 0.0, 0.0))
    return recording({'imu': still}, (arm,))


def test_the_first_angular_acceleration_counts_from_the_activation(tmp_path: Path) -> None:
    """1 rad/s appears within the first tick of 50 ms: 20 rad/s^2 times an arm of 1 m.

    Earlier releases count from time 0. A clock that starts at 0 therefore gives the same bits.
    """
    parameters = {
        'imu0': 'imu', 'imu0_config': mask('vyaw', 'ay'), 'frequency': 20.0,
        # Nothing is known about the acceleration, so that the filter follows the measured one.
        'initial_estimate_covariance': [1e-9] * 13 + [1e6, 1e-9],
        'process_noise_covariance': [0.0] * 11 + [1.0, 0.0, 1e9, 0.0],
        'imu0_remove_gravitational_acceleration': True,
    }  # fmt: skip
    path = parameter_file(tmp_path, parameters)
    sideways = {}
    for release in Release:
        config = FilterConfig.from_file(path, release=release)
        judged = judge(spinning(START_NS), config)
        sideways[release] = float(np.abs(judged.linear_velocity[:, 1]).max())
    assert sideways[V3_8] == sideways[V3_10] < 1e-3
    # 20 m/s^2 for one tick of 50 ms.
    assert sideways[ROLLING] == pytest.approx(1.0, rel=0.01)
    runs = [
        judge(spinning(0), FilterConfig.from_file(path, release=release)) for release in Release
    ]
    assert_equal_estimates(runs[0], runs[1])
    assert_equal_estimates(runs[0], runs[2])


# What does not differ


@pytest.mark.parametrize('release', Release)
def test_a_history_longer_than_the_clock_has_run_keeps_everything(
    tmp_path: Path, release: Release
) -> None:
    """Pull requests 943, 954, 964: last stamp minus history_length would be a negative time."""
    config = config_of(tmp_path, release, smooth_lagged_data=True, history_length=1e5)
    runs = []
    for start_ns in (0, 10**15):
        run = wheel_run(start_ns=start_ns)
        late = run.messages['odom']
        arrival = late.arrival_ns.copy()
        arrival[::3] += 400_000_000
        order = np.argsort(arrival, kind='stable')
        # An input refuses older stamps, so that late messages need an input of their own.
        is_late = arrival > late.stamp_ns
        messages = {
            'odom': late.take(np.flatnonzero(~is_late)),
            'slow': dataclasses.replace(late, arrival_ns=arrival).take(
                [row for row in order if is_late[row]]
            ),
        }
        both = {'odom1': 'slow', 'odom1_config': mask('vx', 'vyaw')}
        config = config_of(tmp_path, release, smooth_lagged_data=True, history_length=1e5, **both)
        runs.append(judge(recording(messages), config))
    assert len(runs[0]) > 50
    assert_equal_estimates(*runs)


@pytest.mark.parametrize('release', Release)
def test_stated_parameters_give_the_same_bits_in_all_releases(
    tmp_path: Path, release: Release
) -> None:
    parameters = {'frequency': 50.0, 'sensor_timeout': 0.1, 'world_frame': 'odom'}
    runs = [
        judge(wheel_run(gap=(0.5, 0.9)), config_of(tmp_path, which, **parameters))
        for which in (V3_8, release)
    ]
    assert_equal_estimates(*runs)


@pytest.mark.parametrize('name', ['broadcast_earth_transform', 'earth_frame_id'])
def test_parameters_of_the_earth_frame_are_known_since_3_10(tmp_path: Path, name: str) -> None:
    """Pull request 948 only broadcasts a transform; the others refuse an unknown parameter."""
    path = parameter_file(tmp_path, {name: True}, 'navsat_transform_node')
    for release in (V3_10, ROLLING):
        assert NavsatConfig.from_file(path, release=release) == NavsatConfig()
    with pytest.raises(ParameterError, match=name):
        NavsatConfig.from_file(path)


def test_the_output_frame_has_no_effect(tmp_path: Path) -> None:
    """The parameter is called base_link_frame_output in all releases."""
    frames = {'base_link_frame_output': 'base_footprint'}
    runs = [judge(wheel_run(), config_of(tmp_path, V3_8, **more)) for more in ({}, frames)]
    assert_equal_estimates(*runs)


# Where it is chosen


def test_the_default_is_3_8_and_is_not_stated(tmp_path: Path) -> None:
    path = parameter_file(tmp_path, WHEELS)
    setup = JudgeSetup.load(path)
    assert setup.filter.release is V3_8
    explicit = JudgeSetup.load(path, options=Options(release=V3_8))
    assert json.dumps(setup.settings()) == json.dumps(explicit.settings())
    assert 'rl_version' not in json.dumps(setup.settings())
    later = JudgeSetup.load(path, options=Options(release=V3_10))
    assert later.settings()['rl_version'] == '3.10'


@pytest.mark.parametrize('written', ['3.10', "'3.10'", '"3.10"'])
def test_3_10_may_be_written_without_quotes(tmp_path: Path, written: str) -> None:
    """YAML reads 3.10 as the number 3.1."""
    case = tmp_path / 'case.yaml'
    case.write_text(f'rl_version: {written}\n')
    assert ReplayOptions.from_file(case).release is V3_10


def test_options_override_the_case_and_the_case_the_parameter_file(tmp_path: Path) -> None:
    case = tmp_path / 'case.yaml'
    case.write_text("rl_version: '3.10'\n")
    path = parameter_file(tmp_path, {**WHEELS, 'rl_version': 'rolling'})
    assert JudgeSetup.load(path).filter.release is ROLLING
    assert JudgeSetup.load(path, case=case).filter.release is V3_10
    options = Options(release=V3_8)
    assert JudgeSetup.load(path, case=case, options=options).filter.release is V3_8


def test_a_wrong_release_is_one_line_wherever_it_stands(tmp_path: Path, capsys: Capture) -> None:
    problem = 'rl_version is 4; must be one of 3.8, 3.10, rolling'
    case, path = tmp_path / 'case.yaml', parameter_file(tmp_path, {**WHEELS, 'rl_version': 4})
    case.write_text('rl_version: 4\n')
    for read in (lambda: ReplayOptions.from_file(case), lambda: FilterConfig.from_file(path)):
        with pytest.raises(ParameterError) as caught:
            read()
        assert str(caught.value).endswith(f': {problem}')
    study = tmp_path / 'study.yaml'
    judges = [{'config': 'clean', 'rl_version': 4}]
    study.write_text(
        yaml.safe_dump({'title': 'x', 'models': [{'gps': 'ch_rw'}], 'judges': judges})
    )
    with pytest.raises(Sim2RealError) as caught:
        StudyFile.read(study)
    assert str(caught.value).endswith('rl_version is 4; must be one of 3.8, 3.10, rolling')
    run = tmp_path / 'run'
    write_recording(wheel_run(), run, storage='csv')
    good = parameter_file(tmp_path, WHEELS)
    out = tmp_path / 'out'
    outcome = call(capsys, 'judge', run, '--config', good, '--out', out, '--rl-version', '4')
    assert outcome.status == 2
    assert outcome.err.count('\n') == 1
    assert '--rl-version is 4; must be one of 3.8, 3.10, rolling' in outcome.err


def test_a_study_chooses_and_records_a_release(tmp_path: Path) -> None:
    records = []
    for chosen in ({}, {'rl_version': 3.8}, {'rl_version': 'rolling'}):
        entry = Entry('study.yaml', 'judges', [{'config': 'clean', **chosen}])
        (study_judge,) = read_judges(entry, tmp_path)
        records.append(study_judge.to_mapping())
    assert records[0] == records[1]
    assert 'rl_version' not in records[0]
    assert records[2]['rl_version'] == 'rolling'


def test_the_command_line_chooses_a_release(tmp_path: Path, capsys: Capture) -> None:
    """At 100 Hz a gap shows the default of sensor_timeout."""
    run, config = tmp_path / 'run', parameter_file(tmp_path, {**WHEELS, 'frequency': 100.0})
    write_recording(wheel_run(gap=(1.0, 1.5)), run, storage='csv')
    rows = []
    for number, options in enumerate(([], ['--rl-version', '3.8'], ['--rl-version', 'rolling'])):
        out = tmp_path / f'{number}.csv'
        outcome = call(capsys, 'judge', run, '--config', config, '--out', out, *options)
        assert outcome.status == 0, outcome
        rows.append(out.read_text())
    assert rows[0] == rows[1] != rows[2]


def installed(folder: Path, package_xml: str | None) -> None:
    index = folder / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    (index / 'robot_localization').touch()
    share = folder / 'share' / 'robot_localization'
    share.mkdir()
    if package_xml is not None:
        (share / 'package.xml').write_text(package_xml)


@pytest.mark.parametrize(
    ('content', 'release'),
    [
        ('<version>3.8.3</version><build_depend>rclcpp</build_depend>', V3_8),
        ('<version>3.10.0</version><depend>rclcpp</depend>', V3_10),
        ('<version>3.10.1</version><depend>rclcpp_lifecycle</depend>', ROLLING),
    ],
)
def test_an_installed_package_tells_its_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, release: Release
) -> None:
    pytest.importorskip('ament_index_python', reason='no ROS')
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    assert find_robot_localization() is None
    installed(tmp_path, f'<package format="3">{content}</package>')
    package = find_robot_localization()
    assert package is not None
    assert package.release is release
    assert package.is_lifecycle == (release is ROLLING)
    (tmp_path / 'share' / 'robot_localization' / 'package.xml').write_text('<package')
    assert find_robot_localization() is None
