# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Arguments that the launch files share, and the ROS packages that they need.

An argument that is a parameter of a node is declared with the node. Only `declare`,
`profile_file` and `check_packages` need ROS.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sim2real_eval.study.options import PROFILE, ComparedSensors, StudyOptions
from sim_sensors.core.config_files import parse_yaml
from sim_sensors.core.errors import ParameterError, did_you_mean, not_among
from sim_sensors.core.parameters import Parameter, Parameters, non_negative, parameter
from sim_sensors.core.registry import is_in_file
from sim_sensors.core.shipped import config_names, config_path
from sim_sensors.motion.motions import motion_names
from sim_sensors.ros.node_settings import PathFollowerSettings, SensorSettings, TrajectorySettings
from sim_sensors.sensor.catalogue import KINDS, kinds
from sim_sensors.sensor.faults import read_faults

PACKAGE = 'sim2real_sensors'
NAVSAT = '_navsat'
"""Profiles are pairs: NAME.yaml for ekf_node and NAME_navsat.yaml for navsat_transform_node."""
NO_JUDGE = 'none'

_SWITCH = ('true', 'false')


@dataclasses.dataclass(frozen=True)
class EvaluationSettings(ComparedSensors):
    """Parameters of evaluation_node except the lists `real` and `topics`."""

    judge: str = parameter(
        'judge_node',
        '',
        'Judge node: judge_node, or ekf_node of robot_localization.',
        choices=('judge_node', 'robot_localization'),
    )
    profile: str = parameter(PROFILE, '', 'Shipped parameters of the judge.')
    params_file: str = parameter('', '', 'Parameter file of ekf_node instead of a profile.')
    navsat_params_file: str = parameter(
        '', '', 'Parameter file of navsat_transform_node; empty: that of the profile.'
    )
    case_file: str = parameter('', '', 'case.yaml that sets clock, timers and delivery order.')
    out: str = parameter('', '', 'Folder of the result.')
    overwrite: bool = parameter(False, '', 'Replace an existing result.')
    scenario: str = parameter('', '', 'Scenario label of all recordings; empty: their own.')
    rate_factor: float = non_negative(
        0.0, '1', 'Seconds of simulated time per second of wall time; 0: unlimited.', maximum=1e3
    )


def _select(declared: type[Parameters], *names: str) -> dict[str, Parameter]:
    """Return the declarations of some parameters of a node, to be used for arguments."""
    return {name: declared.declarations()[name] for name in names}


def _text(doc: str, default: Any = '', choices: tuple[str, ...] = ()) -> Parameter:
    return Parameter(default, '', doc, choices=choices)


def _mounting_arguments() -> dict[str, Parameter]:
    axes = {'x': 'forward', 'y': 'left', 'z': 'above base_link'}
    positions = {
        f'{sensor}_{axis}': Parameter(0.0, 'm', f'Position of the {title} {direction}.')
        for sensor, title in (('imu', 'IMU'), ('gps', 'GPS antenna'))
        for axis, direction in axes.items()
    }
    angles = {
        f'imu_{angle}': Parameter(
            0.0, 'rad', f'Rotation of the IMU about axis {axis} of base_link.'
        )
        for angle, axis in (('roll', 'x'), ('pitch', 'y'), ('yaw', 'z'))
    }
    return {**positions, **angles}


ARGUMENTS: dict[str, Parameter] = {
    # All launch files.
    'namespace': _text('Namespace of the nodes, of their relative topics, and of tf_static.'),
    'frame_prefix': _text(
        'Prefix of all frame ids, such as robot1/. The transforms are then on /tf_static, outside '
        'the namespace.'
    ),
    'use_sim_time': _text('Use the time of /clock, for a played bag or a simulator.', False),
    'log_level': _text(
        'Lowest severity of logged messages.', 'info', ('debug', 'info', 'warn', 'error', 'fatal')
    ),
    'params_file': _text('Parameter file of the node; it overrides the other arguments.'),
    # Motion.
    'scenario': _text(
        f'Motion: one of {", ".join(motion_names())}, or a class in a file, '
        'my_motion.py:MyMotion.',
        'drive_circle',
    ),
    **_select(TrajectorySettings, 'duration', 'factor', 'loop'),
    'motion_params_file': _text(
        'Parameter file of trajectory_node, such as one with scenario.road of a sprung_circle.'
    ),
    # Path follower.
    **_select(PathFollowerSettings, 'path', 'controller', 'stamped'),
    'at_robot': dataclasses.replace(PathFollowerSettings.declarations()['at_robot'], default=True),
    'feedback': _text(
        'Input of the controller: the true odometry of the robot, or the estimate of a judge.',
        'truth',
        ('truth', 'judge'),
    ),
    # Sensors.
    'sensors': _text(
        f'Sensors in one process: a list of {", ".join(KINDS.names())}, each optionally in a '
        'namespace (front/imu).',
        '[imu, gps]',
    ),
    **{
        kind.name: _text(
            f'{kind.title[0].upper()}{kind.title[1:]} model: a preset, which sim2real models '
            'lists, the path of a YAML file, or a class in a file, my_model.py:MyModel.',
            kind.preset,
        )
        for kind in kinds()
    },
    'imu_data_raw': _text(
        'Publish an IMU without orientation on imu/data_raw, as REP 145 says, instead of '
        'imu/data.',
        False,
    ),
    'world': _text(
        'World of the sensors, with its gravity and its place on the Earth: a preset, which '
        'sim2real models lists, or the path of a YAML file. Empty: default, but chessboard for a '
        'camera and tag_ring for vision.'
    ),
    'seed': dataclasses.replace(
        # In a live run the order of arrival varies, so only the measurements repeat.
        StudyOptions.declarations()['seed'],
        doc='Seed of all random draws; equal seeds give equal measurements.',
    ),
    **_select(SensorSettings, 'run'),
    **{
        f'noise_free_{kind}': _text(
            f'Whether the {title} adds its errors to the noise-free sensor on '
            f'ground_truth/{topic}, instead of to {source}.',
            False,
        )
        for kind, title, topic, source in (
            ('imu', 'IMU', 'imu', 'the differentiated odometry'),
            ('gps', 'GPS', 'fix', 'the position in odometry'),
            ('mag', 'magnetometer', 'mag', 'the field of the world'),
        )
    },
    'faults_file': _text('File with faults of IMU and GPS at given times.'),
    'ground_truth': _text('Topic of the true odometry.', 'ground_truth/odometry'),
    'sensors_params_file': _text('Parameter file of sensors.launch.py.'),
    'sensor_transforms': _text(
        'Publish the transform from base_link to each sensor frame; false if the robot '
        'publishes it.',
        True,
    ),
    'lossless': _text(
        'Use reliable odometry and deep queues, so that no message is lost, as for a recording.',
        False,
    ),
    # Judge.
    'judge': _text(
        'Judge: ekf_node and navsat_transform_node of robot_localization, or judge_node, the '
        'embedded judge, which needs neither.',
        'robot_localization',
        ('robot_localization', 'judge_node'),
    ),
    'profile': _text(
        'Shipped parameters for both nodes: tuned ones, or those of the paper as released.',
        PROFILE,
        # Profiles without navsat_transform_node are for wheels and a camera.
        tuple(
            name.removesuffix(NAVSAT) for name in config_names('judge') if name.endswith(NAVSAT)
        ),
    ),
    'judge_params_file': _text('Parameter file of ekf_node instead of that of the profile.'),
    'navsat_params_file': _text(
        'Parameter file of navsat_transform_node instead of that of the profile.'
    ),
    'imu_topic': _text(
        'Topic of the IMU, such as imu/data_raw, to which imu/data of the judge is remapped.',
        'imu/data',
    ),
    'navsat': _text('Start navsat_transform_node, which converts gps/fix to odometry/gps.', True),
    'static_transforms_file': _text(
        'File with static transforms for judge_node, in the format of '
        'static_transforms.yaml. Empty: the transforms of this launch.'
    ),
    'assume_identity_frames': _text(
        'Whether judge_node treats unconnected frames as identical.', False
    ),
    **_mounting_arguments(),
    # Experiments.
    'runs': Parameter(1, '1', 'Number of runs, one after another.', minimum=1),
    'first_run': Parameter(1, '1', 'Number of the first run.', minimum=0),
    'out': _text('Folder for the recordings: OUT/GPS MODEL/SCENARIO_NUMBER.', 'out'),
    'storage': _text('Storage of the bags.', 'mcap', ('mcap', 'sqlite3')),
    'delay': Parameter(
        3.0, 's', 'Wall time from the last connection to the start of the motion.', minimum=0
    ),
    'settle': Parameter(
        1.0, 's', 'Wall time from the end of a motion to the end of its bag.', minimum=0
    ),
    # Evaluation.
    'real': _text(
        'Real recordings with ground truth: paths or patterns, separated by spaces.', None
    ),
    **_select(EvaluationSettings, 'models', 'case_file', 'overwrite', 'rate_factor'),
    **_select(StudyOptions, 'repetitions', 'match_rates', 'start_heading', 'off_ticks'),
    **_select(StudyOptions, 'adapt', 'block', 'component'),
    'topics': _text('Topics of the imu, gps or truth, each ROLE=TOPIC, separated by spaces.'),
    'label': EvaluationSettings.declarations()['scenario'],
    # Gazebo.
    'world_file': _text('Gazebo world (SDF). Empty: the default world, a field with a car.'),
    'bridge_file': _text(
        'File with the topics bridged between Gazebo and ROS by parameter_bridge of '
        'ros_gz_bridge. Empty: those of the default world.'
    ),
    'robot_file': _text(
        'Robot (URDF or SDF) placed on the ground at the origin of the world; the default '
        'world then has no car. Empty: only the models of the world.'
    ),
    'iterations': Parameter(
        0, '1', 'Number of physics steps after which Gazebo ends; 0: run until stopped.', minimum=0
    ),
    'headless': _text('Run Gazebo without a window.', True),
    # Viewers.
    'view': _text(
        'Viewer, which must be installed.', 'none', ('none', 'rviz', 'foxglove', 'plotjuggler')
    ),
}
"""Arguments of all launch files by name. Default None: the argument is required."""

STATED_GPS = 'zed_f9p_rtk'
"""GPS of the live launch files: it states its covariance, as the driver of a receiver does.

The default of a GPS node and of recordings is that of the paper, whose covariance is unknown.
"""
JUDGE_OR_NONE = dataclasses.replace(
    ARGUMENTS['judge'], default='judge_node', choices=(*ARGUMENTS['judge'].choices, NO_JUDGE)
)
"""Declaration of `judge` in launch files that can do without one."""


def check(name: str, text: str) -> None:
    """Raise ParameterError if the value `text` of an argument is wrong.

    launch itself treats all values as strings.
    """
    declaration = ARGUMENTS[name]
    if (name.endswith('_file') or name == 'path') and text and not Path(text).is_file():
        raise ParameterError('launch', name, f'{text!r} is not a file that can be read')
    if name == 'faults_file' and text:
        read_faults(text)
    if name == 'scenario' and not is_in_file(text) and text not in motion_names():
        problem = not_among(f'{text!r} is unknown', text, motion_names())
        raise ParameterError('launch', name, f'{problem}, or a class in a file')
    if name == 'sensors':
        _check_sensors(text)
    if declaration.kind in (int, float):
        is_integer = declaration.kind is int and re.fullmatch(r'[-+]?\d+', text)
        declaration.parse(int(text) if is_integer else text, 'launch', name)


def _check_sensors(text: str) -> None:
    if not re.fullmatch(r'\[\s*[^\[\],]+(,[^\[\],]+)*\]', text):
        problem = f'{text!r} is not allowed; must be a list such as [imu, front/gps]'
        raise ParameterError('launch', 'sensors', problem)
    for label in parse_yaml(text, 'sensors'):
        kind = str(label).rpartition('/')[2]
        if kind not in KINDS.names():
            problem = not_among(f'{label!r} is unknown', kind, KINDS.names())
            raise ParameterError('launch', 'sensors', problem)


# Arguments of `ros2 launch` itself, for all launch files.
_ARGUMENTS_OF_ROS2 = ('launch-prefix', 'launch-prefix-filter')


def is_started_by_ros2(file: str, words: Sequence[str]) -> bool:
    """Return True if the command line `words` is `ros2 launch` with the launch file `file`.

    The command line has its path, or the package and the name of the file.
    """
    if not (file and len(words) > 2 and Path(words[0]).stem == 'ros2' and words[1] == 'launch'):
        return False
    path = Path(file)
    return any(
        (before == PACKAGE and word == path.name)
        or (Path(word).name == path.name and Path(word).resolve() == path.resolve())
        for before, word in itertools.pairwise(words[1:])
    )


def refuse_unknown_arguments(words: Iterable[str], declared_names: Collection[str]) -> None:
    """Raise ParameterError if a word such as `imu:=chrono` sets an undeclared argument."""
    for word in words:
        name, is_argument, _ = word.partition(':=')
        if is_argument and name not in declared_names and name not in _ARGUMENTS_OF_ROS2:
            hint = did_you_mean(name, declared_names)
            problem = f'unknown argument{hint}; --show-args lists all arguments'
            raise ParameterError('launch', name, problem)


def as_text(value: Any) -> Any:
    """Return a default as a string of the command line; None and substitutions are unchanged."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def declare(*names: str, **changed: Any) -> list[Any]:
    """Return launch actions that declare arguments and refuse wrong values.

    Parameters
    ----------
    *names : str
        Keys of `ARGUMENTS`.
    **changed
        Further keys with another default (a string or a list of launch substitutions), or with
        another declaration.
    """
    from launch.actions import DeclareLaunchArgument, OpaqueFunction

    def check_all(context: Any) -> None:
        for name in (*names, *changed):
            check(name, context.launch_configurations[name])

    actions: list[Any] = []
    for name in (*names, *changed):
        declaration = ARGUMENTS[name]
        default = changed.get(name, declaration.default)
        choices = declaration.choices
        if declaration.kind is bool:
            choices = _SWITCH if default != '' else (*_SWITCH, '')
        if isinstance(default, Parameter):
            declaration, default, choices = default, default.default, default.choices
        unit = f' [{declaration.unit}]' if declaration.unit not in ('', '1') else ''
        actions.append(
            DeclareLaunchArgument(
                name,
                default_value=as_text(default),
                description=declaration.doc + unit,
                choices=list(choices) or None,
            )
        )
    return [*actions, OpaqueFunction(function=check_all)]


def profile_file(suffix: str = '') -> list[Any]:
    """Return substitutions for the file of the profile; `NAVSAT` selects that of navsat."""
    from launch.substitutions import LaunchConfiguration

    folder = config_path('judge').as_posix()
    return [f'{folder}/', LaunchConfiguration('profile'), f'{suffix}.yaml']


def motion_file() -> str:
    """Return the shipped parameter file of trajectory_node."""
    return str(config_path('ros', 'motion.yaml'))


_VIEWERS = {'rviz': 'rviz2', 'plotjuggler': 'plotjuggler', 'foxglove': 'foxglove_bridge'}


def required_packages(arguments: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the ROS packages that a launch with these arguments needs.

    Each name is mapped to the argument that needs the package, and to an alternative argument, or
    an empty string.
    """
    packages = {}
    if arguments.get('sensor_transforms') == 'true':
        packages['tf2_ros'] = ('sensor_transforms', 'sensor_transforms:=false')
    judge = arguments.get('judge')
    if judge == 'robot_localization':
        packages[judge] = ('judge', 'judge:=judge_node')
    view = arguments.get('view', 'none')
    if view != 'none':
        packages[_VIEWERS[view]] = ('view', 'view:=none')
        # A transform joins the frame of the estimate to the map.
        packages.setdefault('tf2_ros', packages[_VIEWERS[view]])
    if 'bridge_file' in arguments:
        packages['ros_gz_bridge'] = ('bridge_file', '')
    if arguments.get('robot_file'):
        packages['ros_gz_sim'] = ('robot_file', '')
    if 'storage' in arguments and arguments.get('out'):
        other = {'mcap': 'sqlite3', 'sqlite3': 'mcap'}[arguments['storage']]
        packages[f'rosbag2_storage_{arguments["storage"]}'] = ('storage', f'storage:={other}')
        packages['ros2bag'] = packages['ros2service'] = ('out', '')
    return packages


def check_packages() -> Any:
    """Return an action that refuses a launch if a package that it needs is not installed.

    launch itself would only fail at the node, while the nodes before it are running.
    """
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix
    from launch.actions import OpaqueFunction

    def check(context: Any) -> None:
        for package, (argument, alternative) in required_packages(
            context.launch_configurations
        ).items():
            try:
                get_package_prefix(package)
            except PackageNotFoundError:
                distribution = os.environ.get('ROS_DISTRO', 'jazzy')
                apt = f'ros-{distribution}-{package.replace("_", "-")}'
                remedies = [f'apt install {apt}', *([alternative] if alternative else [])]
                raise ParameterError(
                    'launch', argument, f'{package} is not installed; {" or ".join(remedies)}'
                ) from None

    return OpaqueFunction(function=check)
