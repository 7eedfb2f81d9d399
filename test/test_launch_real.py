# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Launch files with the real launch and launch_ros: what they start, and when not."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import pytest
import yaml

pytest.importorskip('launch_ros', reason='no ROS installation')

import re

import pytest
from ament_index_python.packages import get_package_prefix
from launch import LaunchContext
from launch_examples import FILES, Started, description, started

from sim2real_eval.recording.metadata import read_transforms
from sim2real_eval.ros_launch.arguments import ARGUMENTS, required_packages
from sim2real_eval.ros_launch.layouts import layout_file
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.shipped import config_path
from sim_sensors.gps.gps import load_gps

PACKAGE = 'sim2real_sensors'
OTHERS = {
    package
    for judge, view, storage in itertools.product(
        *(ARGUMENTS[name].choices for name in ('judge', 'view', 'storage'))
    )
    for package in required_packages(
        {'judge': judge, 'view': view, 'storage': storage, 'sensor_transforms': 'true'}
        | dict.fromkeys(('bridge_file', 'robot_file', 'out'), 'any')
    )
}
MODEL = """lever_arm: [0.1, 0.2, 0.3]
mounting_rpy: [0.0, 0.0, 1.5]
frame_id: my_imu
"""


@pytest.fixture(autouse=True)
def index(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Find packages where `ros2 launch` does, whether they are installed or not."""
    prefix = tmp_path / 'prefix'
    index = prefix / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    for name in (PACKAGE, *OTHERS):
        (index / name).touch()
    share = prefix / 'share' / PACKAGE
    share.mkdir()
    for name in ('launch', 'gazebo_ws_plugins'):
        (share / name).symlink_to(repository / name)
    for name in ('launch', 'launch_ros'):
        (index / name).touch()
        (prefix / 'share' / name).symlink_to(Path(get_package_prefix(name), 'share', name))
    # What else is really here does not matter: nothing of it is started.
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(prefix))
    return index


def named(processes: list[Started], executable: str) -> list[Started]:
    return [process for process in processes if process.executable == executable]


def process_of(processes: list[Started], executable: str) -> Started:
    (process,) = named(processes, executable)
    return process


def test_sensors_get_their_parameters_and_the_transforms_of_their_models(tmp_path: Path) -> None:
    model = tmp_path / 'mine.yaml'
    model.write_text(config_path('imu', 'ideal.yaml').read_text('utf-8') + '\n' + MODEL)
    processes = started(
        'sensors.launch.py', imu=str(model), gps='ch_rw', noise_free_gps='true', seed='7',
        run='a/1/b', namespace='/car',
    )  # fmt: skip
    sensors = process_of(processes, 'sensors_node')
    imu, gps = sensors.parameters['/**/imu_node'], sensors.parameters['/**/gps_node']
    labels = {'seed': 7, 'run': 'a/1/b', 'faults_file': ''}
    odometry = {'noise_free.enabled': False}
    imu_settings = {'model': str(model), 'gravity': 9.80665, 'data_raw': False}
    assert imu == {**imu_settings, **odometry, **labels}
    datum = {'datum.latitude_deg': 43.07, 'datum.longitude_deg': -89.4, 'datum.altitude_m': 260.0}
    assert gps == {'model': 'ch_rw', **datum, 'noise_free.enabled': True, **labels}
    shared = {'sensors': ['imu', 'gps'], 'frame_prefix': '', 'use_sim_time': False}
    assert sensors.parameters['/**'] == shared
    assert '__ns:=/car' in sensors.words
    first, second = named(processes, 'static_transform_publisher')
    text = ' '.join(first.words)
    assert '--frame-id base_link --child-frame-id my_imu' in text
    assert '--x 0.1 --y 0.2 --z 0.3 --roll 0.0 --pitch 0.0 --yaw 1.5' in text
    assert '--child-frame-id gps_link' in ' '.join(second.words)


@pytest.mark.parametrize('dependency', ['rclcpp', 'rclcpp_lifecycle'])
def test_the_filter_is_a_lifecycle_node_where_its_package_says_so(
    index: Path, dependency: str
) -> None:
    from launch.actions import RegisterEventHandler
    from launch_ros.actions import LifecycleNode

    share = index.parents[2] / 'robot_localization'
    share.mkdir()
    (share / 'package.xml').write_text(f'<package><depend>{dependency}</depend></package>')
    entities = description('judge.launch.py').entities
    nodes = [entity for entity in entities if isinstance(entity, LifecycleNode)]
    handlers = [entity for entity in entities if isinstance(entity, RegisterEventHandler)]
    # One handler configures the node, one activates it.
    expected = (1, 2) if dependency == 'rclcpp_lifecycle' else (0, 0)
    assert (len(nodes), len(handlers)) == expected
    names = [process.executable for process in started('judge.launch.py')]
    assert names.count('ekf_node') == 1


@pytest.mark.parametrize('navsat', ['true', 'false'])
def test_only_the_requested_judge_is_started(navsat: str) -> None:
    publishers = ['static_transform_publisher'] * 2
    processes = started('judge.launch.py', navsat=navsat, imu_z='0.4')
    names = [process.executable for process in processes]
    originals = ['ekf_node', 'navsat_transform_node'][: 1 + (navsat == 'true')]
    assert names == [*publishers, *originals]
    assert '--z 0.4' in ' '.join(processes[0].words)
    assert processes[2].own['frequency'] == 50.0

    processes = started('judge.launch.py', navsat=navsat, judge='judge_node', use_sim_time='true')
    assert [process.executable for process in processes] == [*publishers, 'judge_node']
    parameters = processes[2].own
    assert parameters['use_sim_time'] is True
    file = str(config_path('judge', 'clean_navsat.yaml'))
    assert parameters['navsat_params_file'] == (file if navsat == 'true' else '')
    assert 'imu:=imu/data' in processes[2].words


def test_judge_node_gets_the_transforms_of_the_arguments() -> None:
    file = process_of(
        started('judge.launch.py', judge='judge_node', imu_yaw=str(math.pi / 2), gps_x='1.5'),
        'judge_node',
    ).own['static_transforms_file']
    imu, gps = read_transforms(Path(file))
    root = math.sqrt(0.5)
    assert (imu.parent, imu.child, gps.child) == ('base_link', 'imu_link', 'gps_link')
    assert imu.rotation == pytest.approx((0.0, 0.0, root, root), abs=1e-11)
    assert gps.translation == (1.5, 0.0, 0.0)
    processes = started('judge.launch.py', judge='judge_node', static_transforms_file=file)
    assert process_of(processes, 'judge_node').own['static_transforms_file'] == file
    none = started('judge.launch.py', judge='judge_node', sensor_transforms='false')
    assert process_of(none, 'judge_node').own['static_transforms_file'] == ''


@pytest.mark.parametrize('file', ['demo.launch.py', 'experiment.launch.py'])
def test_judge_node_gets_the_transforms_of_the_models(file: str, tmp_path: Path) -> None:
    model = tmp_path / 'mine.yaml'
    model.write_text(config_path('imu', 'ideal.yaml').read_text('utf-8') + '\n' + MODEL)
    more = {'out': str(tmp_path)} if file.startswith('experiment') else {}
    judge = process_of(started(file, imu=str(model), **more), 'judge_node').own
    imu, gps = read_transforms(Path(judge['static_transforms_file']))
    assert imu.child == 'my_imu'
    assert imu.translation == (0.1, 0.2, 0.3)
    assert imu.rotation == pytest.approx((0.0, 0.0, math.sin(0.75), math.cos(0.75)), abs=1e-11)
    assert gps.child == 'gps_link'


@pytest.mark.parametrize(
    ('feedback', 'judges', 'odometry'),
    [('truth', 0, 'true_odometry'), ('judge', 1, 'odometry/filtered')],
)
def test_a_path_follower_gets_the_truth_or_the_estimate(
    feedback: str, judges: int, odometry: str, tmp_path: Path
) -> None:
    path, own_file = tmp_path / 'path.csv', tmp_path / 'own.yaml'
    path.write_text('t,x,y\n0,0,0\n1,1,0\n', encoding='utf-8')
    own_file.write_text('/**: {ros__parameters: {at_robot: false, nonlinear.bandwidth: 1.5}}\n')
    processes = started(
        'path_follower.launch.py', path=str(path), params_file=str(own_file), feedback=feedback,
        ground_truth='true_odometry', gps='ch_rw', namespace='/car',
    )  # fmt: skip
    assert len(named(processes, 'judge_node')) == judges
    names = ('path_follower_node', 'sensors_node')
    follower, sensors = (process_of(processes, name) for name in names)
    assert f'ground_truth/odometry:={odometry}' in follower.words
    assert 'ground_truth/odometry:=true_odometry' in sensors.words
    assert sensors.parameters['/**/gps_node']['model'] == 'ch_rw'
    # The layouts show yaw and wheels of the robot.
    assert sensors.parameters['/**/imu_node']['model'] == 'chrono_ahrs'
    assert sensors.parameters['/**/wheel_odometry_node']['model'] == 'differential'
    expected = {'path': str(path), 'controller': 'nonlinear', 'stamped': True}
    expected |= {'at_robot': False, 'nonlinear.bandwidth': 1.5}
    assert expected.items() <= follower.own.items()


def test_an_experiment_records_the_topics_of_a_recording(tmp_path: Path) -> None:
    processes = started(
        'experiment.launch.py', scenario='drive_line', gps='ch_rw', first_run='3', seed='2',
        out=str(tmp_path / 'out'), namespace='car',
    )  # fmt: skip
    (recorder,) = [process for process in processes if process.words[:2] == ['bag', 'record']]
    nodes = [process for process in processes if process is not recorder]
    bag = tmp_path / 'out' / 'ch_rw' / 'line_3'
    text = ' '.join(recorder.words)
    assert f'bag record --output {bag} --storage mcap --use-sim-time' in text
    assert '--custom-data scenario=line' in text
    topics = recorder.words[recorder.words.index('--topics') + 1 :]
    expected = ('ground_truth/odometry', 'imu/data', 'gps/fix', 'tf_static')
    assert {f'/car/{topic}' for topic in expected} < set(topics)
    motion = process_of(nodes, 'trajectory_node').own
    settings = {'motion': 'drive_line', 'run': 'line_3', 'seed': 2, 'clock': True}
    assert settings.items() <= motion.items()
    awaited = {'gps/fix', 'gps/fix:/rosbag2_recorder', 'ground_truth/odometry:imu_node'}
    assert awaited < set(motion['awaited'].split())
    queues = recorder.words[recorder.words.index('--qos-profile-overrides-path') + 1]
    assert yaml.safe_load(Path(queues).read_text('utf-8'))['/car/imu/data']['depth'] == 1000
    sensors = process_of(nodes, 'sensors_node').parameters
    reliability = 'qos_overrides./car/ground_truth/odometry.subscription.reliability'
    assert sensors['/**'][reliability] == 'reliable'
    assert sensors['/**']['qos_overrides./car/gps/fix.publisher.depth'] == 1000
    labels = {'model': 'ch_rw', 'seed': 2, 'run': 'recording/1/line_3'}
    assert labels.items() <= sensors['/**/gps_node'].items()
    assert process_of(nodes, 'judge_node').own['use_sim_time'] is True
    # The sensors' own, not the judge's too.
    assert len(named(nodes, 'static_transform_publisher')) == 2


def test_an_experiment_overwrites_no_run_and_needs_no_judge(tmp_path: Path) -> None:
    processes = started('experiment.launch.py', judge='none', out=str(tmp_path))
    assert not named(processes, 'judge_node')
    assert 'odometry/filtered' not in process_of(processes, 'trajectory_node').own['awaited']
    (tmp_path / 'ch_gauss' / 'circle_2').mkdir(parents=True)
    with pytest.raises(Exception, match='circle_2 exists already'):
        started('experiment.launch.py', runs='2', out=str(tmp_path))


@pytest.mark.parametrize('file', FILES)
def test_unknown_arguments_are_refused_first_in_the_launched_file_only(
    file: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known are also the arguments of included files, and those of ros2 launch itself."""
    path = str(repository / 'launch' / file)

    def begin(*words: str, argv: str) -> None:
        monkeypatch.setattr(sys, 'argv', ['/opt/ros/bin/ros2', 'launch', *argv.split(), *words])
        context = LaunchContext(argv=words)
        context.extend_locals({'current_launch_file_path': path})
        description(file).entities[0].visit(context)

    for argv in (f'{PACKAGE} {file}', f'--debug {path}'):
        with pytest.raises(ParameterError, match=r'namespce.*namespace'):
            begin('namespce:=a', argv=argv)
        begin('namespace:=a', 'launch-prefix:=gdb', argv=argv)
    begin('mine:=7', argv=f'my_robot {file}')
    begin('mine:=7', argv='my_robot.launch.py')


def test_arguments_of_included_files_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    for file in ('demo.launch.py', 'experiment.launch.py'):
        monkeypatch.setattr(sys, 'argv', ['ros2', 'launch', PACKAGE, file])
        context = LaunchContext(argv=['lossless:=true', 'gps_z:=1.2'])
        context.extend_locals({'current_launch_file_path': file})
        description(file).entities[0].visit(context)


def test_the_evaluation_gets_its_parameters_with_their_types() -> None:
    (node,) = started(
        'evaluate.launch.py', real='bags/* 12', models='ch_rw,airsim', seed='4', out='12',
        topics='truth=/odom imu=/imu', rate_factor='2', start_heading='true',
    )  # fmt: skip
    expected = {
        'real': ['bags/*', '12'], 'topics': ['truth=/odom', 'imu=/imu'],
        'models': 'ch_rw,airsim', 'out': '12', 'seed': 4, 'rate_factor': 2.0,
        'start_heading': True,
    }  # fmt: skip
    assert node.executable == 'evaluation_node'
    assert expected.items() <= node.own.items()
    assert isinstance(node.own['rate_factor'], float)
    (node,) = started('evaluate.launch.py', real='x')
    assert 'topics' not in node.own


@pytest.mark.parametrize(
    ('file', 'package', 'arguments'),
    [
        ('sensors.launch.py', 'tf2_ros', {}),
        ('judge.launch.py', 'robot_localization', {}),
        ('demo.launch.py', 'rviz2', {'view': 'rviz'}),
        ('experiment.launch.py', 'ros2bag', {}),
    ],
)
def test_without_a_package_nothing_is_started(
    file: str, package: str, arguments: dict[str, str], index: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (index / package).unlink()
    processes: list[Started] = []
    with pytest.raises(ParameterError, match=f'{package} is not installed; apt install ros-'):
        started(file, into=processes, **arguments)
    assert not processes
    assert not Path('out').exists()


@pytest.mark.parametrize(
    ('file', 'arguments'),
    [
        ('demo.launch.py', {'duration': '-1'}),
        ('demo.launch.py', {'sensors_params_file': '/gone.yaml'}),
        ('sensors.launch.py', {'imu': 'gone'}),
        ('experiment.launch.py', {'runs': '0'}),
        ('judge.launch.py', {'judge': 'judge_node', 'imu_yaw': 'east'}),
        ('evaluate.launch.py', {'real': 'x', 'repetitions': 'many'}),
    ],
)
def test_with_a_wrong_argument_nothing_is_started(
    file: str, arguments: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    processes: list[Started] = []
    with pytest.raises(ParameterError):
        started(file, into=processes, **arguments)
    assert not processes
    assert not Path('out').exists()


ROBOT = {'namespace': 'robot1'}
PREFIX = {'frame_prefix': 'robot1/'}


def test_transforms_are_in_the_namespace_unless_frames_have_a_prefix(tmp_path: Path) -> None:
    for arguments, topic in ((ROBOT, 'tf_static'), ({**ROBOT, **PREFIX}, '/tf_static')):
        processes = started('demo.launch.py', **arguments)
        assert len(named(processes, 'static_transform_publisher')) == 2
        for process in processes:
            assert f'/tf_static:={topic}' in process.words
            assert '/clock:=/robot1/clock' in process.words
            assert '__ns:=/robot1' in process.words
    file = tmp_path / 'own.yaml'
    file.write_text('ekf_filter_node: {ros__parameters: {base_link_frame: base, frequency: 9.0}}')
    processes = started('demo.launch.py', judge_params_file=str(file), **ROBOT, **PREFIX)
    text = ' '.join(process_of(processes, 'judge_node').words)
    assert 'own.yaml' in text
    frames = {'map_frame': 'map', 'odom_frame': 'odom', 'base_link_frame': 'base'}
    frames = {name: f'robot1/{frame}' for name, frame in frames.items()}
    judge = process_of(processes, 'judge_node')
    section = '/robot1/ekf_filter_node'
    assert {**frames, 'world_frame': 'robot1/odom'}.items() <= judge.parameters[section].items()
    transforms = read_transforms(Path(judge.own['static_transforms_file']))
    ends = {(transform.parent, transform.child) for transform in transforms}
    base = 'robot1/base_link'
    assert ends == {(base, 'robot1/imu_link'), (base, 'robot1/gps_link')}
    published = ' '.join(named(processes, 'static_transform_publisher')[0].words)
    assert '--frame-id robot1/base_link --child-frame-id robot1/imu_link' in published
    for name in ('sensors_node', 'trajectory_node'):
        assert process_of(processes, name).own['frame_prefix'] == 'robot1/'


def test_a_shared_clock_stays_outside_the_namespace() -> None:
    """The simulator of all robots publishes it."""
    for file in ('sensors.launch.py', 'judge.launch.py'):
        for process in started(file, **ROBOT):
            assert not any(word.startswith('/clock:=') for word in process.words)


@pytest.mark.parametrize(
    ('imu', 'data_raw', 'topic'),
    [('chrono', 'true', 'imu/data_raw'), ('chrono_ahrs', 'true', 'imu/data'),
     ('chrono', 'false', 'imu/data')],
)  # fmt: skip
def test_the_judge_listens_to_the_topic_of_the_imu(imu: str, data_raw: str, topic: str) -> None:
    processes = started('demo.launch.py', imu=imu, imu_data_raw=data_raw)
    judge = process_of(processes, 'judge_node')
    assert {f'imu:={topic}', f'imu/data:={topic}'} <= set(judge.words)
    awaited = process_of(processes, 'trajectory_node').own['awaited'].split()
    assert topic in awaited
    assert 'ground_truth/odometry:wheel_odometry_node' in awaited
    sensors = process_of(processes, 'sensors_node').parameters
    assert sensors['/**/imu_node']['data_raw'] is (data_raw == 'true')


def test_live_receivers_state_a_covariance_and_recorded_ones_are_those_of_the_paper(
    tmp_path: Path,
) -> None:
    waypoints = tmp_path / 'path.csv'
    waypoints.write_text('t,x,y\n0,0,0\n1,1,0\n')
    for file, arguments in (
        ('demo.launch.py', {}), ('sensors.launch.py', {}),
        ('path_follower.launch.py', {'path': str(waypoints)}),
    ):  # fmt: skip
        sensors = process_of(started(file, **arguments), 'sensors_node').parameters
        covariance = load_gps(sensors['/**/gps_node']['model']).covariance
        assert covariance.type in ('approximated', 'diagonal_known')
    experiment = started('experiment.launch.py', out=str(tmp_path))
    assert process_of(experiment, 'sensors_node').parameters['/**/gps_node']['model'] == 'ch_gauss'


def test_a_viewer_shows_the_robot_of_its_namespace() -> None:
    shipped = config_path('layouts', 'sim2real.rviz').read_text('utf-8')
    viewer = process_of(started('demo.launch.py', view='rviz', **ROBOT, **PREFIX), 'rviz2')
    shown = Path(viewer.words[viewer.words.index('-d') + 1]).read_text('utf-8')
    expected = re.sub('Value: /', 'Value: /robot1/', shipped)
    assert shown == expected.replace('Fixed Frame: map', 'Fixed Frame: robot1/map')
    for view, name in (('plotjuggler', 'plotjuggler.xml'), ('foxglove', 'foxglove.json')):
        layout = layout_file(name, '/robot1', 'robot1/').read_text('utf-8')
        topics = set(re.findall(r'/[\w/]*(?:odometry|imu|gps|evaluation)\w*', layout))
        assert {topic for topic in topics if not topic.startswith('/diagnostics')} == {
            topic for topic in topics if topic.startswith('/robot1/')
        }, view
        assert '/diagnostics' in layout
    assert layout_file('foxglove.json', '/', '') == config_path('layouts', 'foxglove.json')


@pytest.mark.parametrize('view', ['none', 'rviz', 'plotjuggler', 'foxglove'])
def test_the_demo_runs_without_input_and_with_a_viewer(view: str) -> None:
    processes = started('demo.launch.py', view=view)
    ours = {process.executable for process in processes if process.package == PACKAGE}
    assert ours == {'trajectory_node', 'sensors_node', 'judge_node'}
    viewers = {p.package for p in processes if p.package not in (PACKAGE, 'tf2_ros')}
    expected = {'none': set(), 'rviz': {'rviz2'}, 'foxglove': {'foxglove_bridge'}}
    assert viewers == expected.get(view, {view})
    layouts = [
        word for started in processes for word in started.words if 'config/layouts/' in word
    ]
    assert all(Path(layout).is_file() for layout in layouts)


@pytest.mark.parametrize(
    ('scenario', 'argument', 'measured'),
    [('sprung_circle', '', True), ('drive_circle', '', False), ('sprung_circle', 'false', False)],
)
def test_an_imu_can_use_the_forces_of_the_physics_engine(
    scenario: str, argument: str, measured: bool
) -> None:
    processes = started('demo.launch.py', scenario=scenario, noise_free_imu=argument)
    sensors = process_of(processes, 'sensors_node')
    assert sensors.parameters['/**/imu_node']['noise_free.enabled'] is measured
    assert process_of(processes, 'trajectory_node').own['motion'] == scenario


def test_gazebo_is_started_last_and_its_end_ends_the_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gz = tmp_path / 'gz'
    gz.touch(mode=0o755)
    monkeypatch.setenv('PATH', str(tmp_path))
    processes = started('gazebo.launch.py', iterations='5000', out=str(tmp_path / 'bag'))
    assert processes[-1].words[:5] == ['sim', '-r', '--iterations', '5000', '-s']
    assert Path(processes[-1].words[-1]).name == 'sim2real_field.sdf'
    assert Path(process_of(processes, 'parameter_bridge').own['config_file']).is_file()
    assert {'sensors_node', 'judge_node'} <= {process.executable for process in processes}
    assert 'record' in ' '.join(processes[-2].words)
    gz = gz.rename(tmp_path / 'ign')
    robot = tmp_path / 'robot.urdf'
    robot.write_text('<plugin filename="gz-sim-imu-system" name="gz::sim::systems::Imu"/>')
    processes = started('gazebo.launch.py', robot_file=str(robot))
    option, spawned, *height = process_of(processes, 'create').words[:4]
    assert [option, *height] == ['-file', '-z', '0']
    plugin = (
        '<plugin filename="ignition-gazebo-imu-system" name="ignition::gazebo::systems::Imu"/>'
    )
    assert Path(spawned).read_text('utf-8') == plugin
    world = Path(processes[-1].words[-1]).read_text('utf-8')
    assert (re.findall('<model name="(.*)"', world), 'gz-sim' in world) == (['field'], False)
    robot.write_bytes(b'\xff')
    with pytest.raises(ParameterError, match='robot_file'):
        started('gazebo.launch.py', robot_file=str(robot))
    gz.unlink()
    with pytest.raises(ParameterError, match='Gazebo'):
        started('gazebo.launch.py')
