# SPDX-License-Identifier: Apache-2.0
"""Arguments of the launch files, with one meaning in all of them, and the packages they need.

An argument that is a parameter of a node is declared with the node. The table itself needs no ROS;
only `declare` and `check_packages` do.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim2real_eval.study.options import PROFILE, ComparedSensors, StudyOptions
from sim_sensors.core.errors import ParameterError, not_among
from sim_sensors.core.parameters import Parameter, Parameters
from sim_sensors.core.registry import is_in_file
from sim_sensors.core.shipped import config_names, config_path
from sim_sensors.motion.motions import motion_names
from sim_sensors.ros.node_settings import PathFollowerSettings, SensorSettings, TrajectorySettings
from sim_sensors.sensor.catalogue import KINDS, kinds

NAVSAT = '_navsat'
"""Profiles are pairs: NAME.yaml for ekf_node and NAME_navsat.yaml for navsat_transform_node."""

_SWITCH = ('true', 'false')


def _of(declared: type[Parameters], *names: str) -> dict[str, Parameter]:
    """Return declarations of a node's parameters, for arguments of the same names."""
    return {name: declared.declared()[name] for name in names}


def _text(doc: str, default: Any = '', choices: tuple[str, ...] = ()) -> Parameter:
    return Parameter(default, '', doc, choices=choices)


def _mounting() -> dict[str, Parameter]:
    axes = {'x': 'forward of base_link', 'y': 'to the left of base_link', 'z': 'above base_link'}
    places = {
        f'{sensor}_{axis}': Parameter(0.0, 'm', f'{name} {where}.')
        for sensor, name in (('imu', 'IMU'), ('gps', 'GPS antenna'))
        for axis, where in axes.items()
    }
    turns = {
        f'imu_{angle}': Parameter(0.0, 'rad', f'IMU turned about axis {axis} of base_link.')
        for angle, axis in (('roll', 'x'), ('pitch', 'y'), ('yaw', 'z'))
    }
    return {**places, **turns}


ARGUMENTS: dict[str, Parameter] = {
    # Everywhere.
    'namespace': _text('Namespace of the nodes and of their relative topics.'),
    'use_sim_time': _text(
        'Take the time from /clock: true for a played bag and for a simulator.', False
    ),
    'log_level': _text(
        'Least severe messages that the nodes log.',
        'info',
        ('debug', 'info', 'warn', 'error', 'fatal'),
    ),
    'params_file': _text('Parameter file of the node; it wins over the other arguments.'),
    # What moves.
    'scenario': _text(
        f'What moves: one of {", ".join(motion_names())}, or a class in a file, '
        'my_motion.py:MyMotion.',
        'drive_circle',
    ),
    **_of(TrajectorySettings, 'duration', 'factor', 'loop'),
    'motion_params_file': _text(
        'Parameter file of trajectory_node, such as one with scenario.road of a sprung_circle.'
    ),
    # What follows a path.
    **_of(PathFollowerSettings, 'path', 'controller', 'stamped'),
    'at_robot': dataclasses.replace(PathFollowerSettings.declared()['at_robot'], default=True),
    'feedback': _text(
        'What the controller gets: the true odometry of the robot, or the estimate of a judge '
        'that hears the sensors.',
        'truth',
        ('truth', 'judge'),
    ),
    # Sensors.
    'sensors': _text(
        f'Sensors in one process: a list of {", ".join(KINDS.names())}, or such in a namespace '
        '(front/imu).',
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
    'world': _text(
        'World that the sensors are in, with its gravity and its place on the Earth: a preset, '
        'which sim2real models lists, or the path of a YAML file; none: default, but chessboard '
        'for a camera and tag_ring for vision.'
    ),
    # Live, the order of arrival is not that of another time.
    'seed': dataclasses.replace(
        StudyOptions.declared()['seed'],
        doc='Seed of all random draws; equal seeds give equal measurements.',
    ),
    **_of(SensorSettings, 'run'),
    'noise_free_imu': _text(
        'Whether the IMU measures what a noise-free one publishes on ground_truth/imu, and not '
        'odometry that is differentiated.',
        False,
    ),
    'noise_free_gps': _text(
        'Whether the GPS measures what a noise-free one publishes on ground_truth/fix, and not '
        'the position in odometry.',
        False,
    ),
    'noise_free_mag': _text(
        'Whether the magnetometer measures what a noise-free one publishes on ground_truth/mag, '
        'and not the field of the world.',
        False,
    ),
    'ground_truth': _text('Topic of the true odometry.', 'ground_truth/odometry'),
    'sensors_params_file': _text('Parameter file of sensors.launch.py.'),
    'sensor_transforms': _text(
        'Publish base_link -> the frame of each sensor; false if the robot does it.', True
    ),
    'lossless': _text(
        'Have the sensors hear and be heard to the last message, as for a recording: reliable '
        'odometry, deep queues.',
        False,
    ),
    # The judge.
    'judge': _text(
        'Who judges: ekf_node and navsat_transform_node of robot_localization, or judge_node, '
        'which is the embedded judge and needs neither.',
        'robot_localization',
        ('robot_localization', 'judge_node'),
    ),
    'profile': _text(
        'Shipped parameters for both nodes: tuned ones, or the paper as released.',
        PROFILE,
        # Those without navsat_transform_node take wheels and a camera.
        tuple(
            name.removesuffix(NAVSAT) for name in config_names('judge') if name.endswith(NAVSAT)
        ),
    ),
    'judge_params_file': _text('Parameter file of ekf_node, in place of that of the profile.'),
    'navsat_params_file': _text(
        'Parameter file of navsat_transform_node, in place of that of the profile.'
    ),
    'navsat': _text('Start navsat_transform_node, which turns gps/fix into odometry/gps.', True),
    'static_transforms_file': _text(
        'Static transforms for judge_node, as beside a recording; none: those of this launch.'
    ),
    'assume_identity_frames': _text(
        'judge_node takes frames that nothing connects as one.', False
    ),
    **_mounting(),
    # Experiments.
    'runs': Parameter(1, '1', 'How many runs, one after another.', minimum=1),
    'first_run': Parameter(1, '1', 'Number of the first one.', minimum=0),
    'out': _text('Folder for the recordings: OUT/GPS MODEL/SCENARIO_NUMBER.', 'out'),
    'storage': _text('Storage of the bags.', 'mcap', ('mcap', 'sqlite3')),
    'delay': Parameter(3.0, 's', 'Wall time from when all are there to the motion.', minimum=0),
    'settle': Parameter(
        1.0, 's', 'Wall time from the end of a motion to that of its bag.', minimum=0
    ),
    # Evaluation.
    'real': _text('Real recordings with ground truth: paths or patterns, by space.', None),
    **_of(ComparedSensors, 'models'),
    'case_file': _text('case.yaml that sets clock, timers and delivery order.'),
    'overwrite': _text('Replace an older result.', False),
    **_of(StudyOptions, 'repetitions', 'match_rates', 'start_heading', 'off_ticks'),
    **_of(StudyOptions, 'adapt', 'component'),
    'topics': _text('Topics of the imu, gps or truth, each ROLE=TOPIC, by space.'),
    'label': _text('Scenario label of all recordings; empty: their own.'),
    'rate_factor': Parameter(
        0.0, '1', 'Seconds of a run per second; 0: as fast as all keep up.', minimum=0
    ),
    # Gazebo.
    'world_file': _text('World of Gazebo (SDF); none: a field with a car.'),
    'bridge_file': _text(
        'Topics between Gazebo and ROS, for parameter_bridge of ros_gz_bridge; none: those of '
        'the field.'
    ),
    'robot_file': _text(
        'Robot (URDF, SDF) whose origin is put on that of the world, on the ground; the field is '
        'without its car then. None: what the world has.'
    ),
    'iterations': Parameter(
        0, '1', 'Steps of physics after which Gazebo ends; 0: when it is stopped.', minimum=0
    ),
    'headless': _text('Run Gazebo without a window.', True),
    # Pictures.
    'view': _text(
        'What to look with; has to be installed.',
        'none',
        ('none', 'rviz', 'foxglove', 'plotjuggler'),
    ),
}
"""All arguments by name. Default None: it has to be given."""

NO_JUDGE = 'none'
JUDGE_OR_NONE = dataclasses.replace(
    ARGUMENTS['judge'], default='judge_node', choices=(*ARGUMENTS['judge'].choices, NO_JUDGE)
)
"""Declaration of `judge` where there may be none."""


def check(name: str, text: str) -> None:
    """Raise ParameterError for a value that launch, which knows texts only, lets pass."""
    one = ARGUMENTS[name]
    if (name.endswith('_file') or name == 'path') and text and not Path(text).is_file():
        raise ParameterError('launch', name, f'{text!r} is not a file that can be read')
    if name == 'scenario' and not is_in_file(text) and text not in motion_names():
        problem = not_among(f'{text!r} is unknown', text, motion_names())
        raise ParameterError('launch', name, f'{problem}, or a class in a file')
    if name == 'sensors' and not re.fullmatch(r'\[\s*[^\[\],]+(,[^\[\],]+)*\]', text):
        problem = f'{text!r} is not allowed; must be a list such as [imu, front/gps]'
        raise ParameterError('launch', name, problem)
    if one.kind in (int, float):
        whole = one.kind is int and re.fullmatch(r'[-+]?\d+', text)
        one.parse(int(text) if whole else text, 'launch', name)


def as_text(value: Any) -> Any:
    """Return a default as it is written on the line; one that launch makes, or None, as it is."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def declare(*names: str, **changed: Any) -> list[Any]:
    """Return launch actions that declare arguments, and refuse values that are not allowed.

    `names` are keys of `ARGUMENTS`; `changed` has others with another default, a text or a list
    of launch substitutions, or with another declaration.
    """
    from launch.actions import DeclareLaunchArgument, OpaqueFunction

    def checked(context: Any) -> None:
        for name in (*names, *changed):
            check(name, context.launch_configurations[name])

    actions: list[Any] = []
    for name in (*names, *changed):
        entry = ARGUMENTS[name]
        default = changed.get(name, entry.default)
        choices = entry.choices
        if entry.kind is bool:
            choices = _SWITCH if default != '' else (*_SWITCH, '')
        if isinstance(default, Parameter):
            entry, default, choices = default, default.default, default.choices
        unit = f' [{entry.unit}]' if entry.unit not in ('', '1') else ''
        actions.append(
            DeclareLaunchArgument(
                name,
                default_value=as_text(default),
                description=entry.doc + unit,
                choices=list(choices) or None,
            )
        )
    return [*actions, OpaqueFunction(function=checked)]


def profile_file(suffix: str = '') -> list[Any]:
    """Return substitutions for a parameter file of the judge's profile; `NAVSAT`: the other."""
    from launch.substitutions import LaunchConfiguration

    folder = config_path('judge').as_posix()
    return [f'{folder}/', LaunchConfiguration('profile'), f'{suffix}.yaml']


def motion_file() -> str:
    """Return the shipped parameter file of trajectory_node."""
    return str(config_path('ros', 'motion.yaml'))


_VIEWERS = {'rviz': 'rviz2', 'plotjuggler': 'plotjuggler', 'foxglove': 'foxglove_bridge'}


def needed(given: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the packages of others that a launch with these arguments needs, and for each the
    argument that asks for it and another way to say it.
    """
    found = {}
    if given.get('sensor_transforms') == 'true':
        found['tf2_ros'] = ('sensor_transforms', 'sensor_transforms:=false')
    judge = given.get('judge')
    if judge == 'robot_localization':
        found[judge] = ('judge', 'judge:=judge_node')
    view = given.get('view', 'none')
    if view != 'none':
        found[_VIEWERS[view]] = ('view', 'view:=none')
        # The frame of the estimate is joined to the map.
        found.setdefault('tf2_ros', found[_VIEWERS[view]])
    if 'bridge_file' in given:
        found['ros_gz_bridge'] = ('bridge_file', '')
    if given.get('robot_file'):
        found['ros_gz_sim'] = ('robot_file', '')
    if 'storage' in given and given.get('out'):
        other = {'mcap': 'sqlite3', 'sqlite3': 'mcap'}[given['storage']]
        found[f'rosbag2_storage_{given["storage"]}'] = ('storage', f'storage:={other}')
        found['ros2bag'] = found['ros2service'] = ('out', '')
    return found


def check_packages() -> Any:
    """Return an action that refuses a launch whose arguments ask for what is not installed.

    launch itself finds out when it comes to a node, ends, and leaves running what it had started.
    """
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix
    from launch.actions import OpaqueFunction

    def check(context: Any) -> None:
        for package, (argument, instead) in needed(context.launch_configurations).items():
            try:
                get_package_prefix(package)
            except PackageNotFoundError:
                distribution = os.environ.get('ROS_DISTRO', 'jazzy')
                apt = f'ros-{distribution}-{package.replace("_", "-")}'
                ways = ' or '.join(way for way in (f'apt install {apt}', instead) if way)
                raise ParameterError(
                    'launch', argument, f'{package} is not installed; {ways}'
                ) from None

    return OpaqueFunction(function=check)
