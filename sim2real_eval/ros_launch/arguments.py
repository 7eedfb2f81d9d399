# SPDX-License-Identifier: Apache-2.0
"""Arguments of the launch files, with one meaning in all of them, and the packages they need.

The table itself needs no ROS; only `declare`, `boolean` and `check_packages` do.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim2real_eval.metrics.options import SPEED_COMPONENTS
from sim_sensors.core.config_files import config_names, config_path
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameter
from sim_sensors.following.tracking import TRACKERS
from sim_sensors.motion.motions import motion_names
from sim_sensors.sensor.catalogue import KINDS, kinds

NAVSAT = '_navsat'
"""Profiles are pairs: NAME.yaml for ekf_node and NAME_navsat.yaml for navsat_transform_node."""

_SWITCH = ('true', 'false')


@dataclasses.dataclass(frozen=True)
class Argument:
    """One argument.

    Attributes
    ----------
    description : str
        What it is, with its unit.
    default : str, list of launch substitutions, or None
        None: it has to be given.
    choices : tuple of str
        All values that are allowed; empty: any.
    kind : type
        list for names in brackets, Path for a file that has to be there when one is given.
    number : Parameter or None
        Declaration of a number.
    """

    description: str
    default: Any = ''
    choices: tuple[str, ...] = ()
    kind: type = str
    number: Parameter | None = None

    def check(self, name: str, text: str) -> None:
        """Raise ParameterError for a value that launch, which knows texts only, lets pass."""
        if self.kind is Path and text and not Path(text).is_file():
            raise ParameterError('launch', name, f'{text!r} is not a file that can be read')
        if self.kind is list and not re.fullmatch(r'\[\s*[^\[\],]+(,[^\[\],]+)*\]', text):
            problem = f'{text!r} is not allowed; must be a list such as [imu, front/gps]'
            raise ParameterError('launch', name, problem)
        if self.number is not None:
            whole = self.number.kind is int and re.fullmatch(r'[-+]?\d+', text)
            self.number.parse(int(text) if whole else text, 'launch', name)


def _number(description: str, default: float, minimum: float | None = None) -> Argument:
    """Return the argument of a number; its unit is in the description."""
    number = Parameter(default, '', description, minimum=minimum)
    return Argument(description, str(default), number=number)


def _switch(description: str, default: str) -> Argument:
    return Argument(description, default, _SWITCH)


def _mounting() -> dict[str, Argument]:
    sensors = {'imu': 'IMU', 'gps': 'GPS antenna'}
    axes = {'x': 'forward of base_link', 'y': 'to the left of base_link', 'z': 'above base_link'}
    places = {
        f'{sensor}_{axis}': _number(f'{name} {where}, in m.', 0.0)
        for sensor, name in sensors.items()
        for axis, where in axes.items()
    }
    turns = {
        f'imu_{angle}': _number(f'IMU turned about axis {axis} of base_link, in rad.', 0.0)
        for angle, axis in (('roll', 'x'), ('pitch', 'y'), ('yaw', 'z'))
    }
    return {**places, **turns}


def _models() -> dict[str, Argument]:
    return {
        kind.name: Argument(
            f'{kind.title} model: a preset, which sim2real models lists, the path of a YAML file, '
            'or a class in a file, my_model.py:MyModel.',
            kind.preset,
        )
        for kind in kinds()
    }


ARGUMENTS: dict[str, Argument] = {
    # Everywhere.
    'namespace': Argument('Namespace of the nodes and of their relative topics.'),
    'use_sim_time': _switch(
        'Take the time from /clock: true for a played bag and for a simulator.', 'false'
    ),
    'log_level': Argument(
        'Least severe messages that the nodes log.',
        'info',
        ('debug', 'info', 'warn', 'error', 'fatal'),
    ),
    'params_file': Argument(
        'Parameter file of the node; it wins over the other arguments.', kind=Path
    ),
    # What moves.
    'scenario': Argument(
        'What moves: a drive, or an analytic scenario.', 'drive_circle', tuple(motion_names())
    ),
    'duration': _number('Duration of the motion, in s.', 20.0, 0.01),
    'factor': _number('Seconds of motion per second; a slow machine slows down.', 1.0, 0.001),
    'loop': _switch('Begin the motion again at its end, with /clock jumping back.', 'false'),
    # What follows a path.
    'path': Argument(
        'CSV file t,x,y[,theta] of the path; none: that on the topic path is awaited.', kind=Path
    ),
    'controller': Argument('Who steers.', 'nonlinear', tuple(TRACKERS)),
    'at_robot': _switch(
        'Move and turn the path to begin where the robot is; otherwise it is in the frame of the '
        'odometry.',
        'true',
    ),
    'stamped': _switch('cmd_vel is a TwistStamped; otherwise a Twist.', 'true'),
    'feedback': Argument(
        'What the controller knows of the robot: its true odometry, or the estimate of a judge '
        'that hears the sensors.',
        'truth',
        ('truth', 'judge'),
    ),
    # Sensors.
    'sensors': Argument(
        f'Sensors in one process: a list of {", ".join(KINDS.names())}, or such in a namespace '
        '(front/imu).',
        '[imu, gps]',
        kind=list,
    ),
    **_models(),
    'world': Argument(
        'World that the sensors are in, with its gravity and its place on the Earth: a preset, '
        'which sim2real models lists, or the path of a YAML file; none: default, but chessboard '
        'for a camera and tag_ring for vision.'
    ),
    'seed': _number('Seed of all random draws; equal seeds give equal measurements.', 0, 0),
    'run': Argument('Label of the run; another one draws other noise.', 'recording/1/run_1'),
    'ground_truth': Argument('Topic of the true odometry.', 'ground_truth/odometry'),
    'sensors_params_file': Argument('Parameter file of sensors.launch.py.', kind=Path),
    'sensor_transforms': _switch(
        'Publish base_link -> the frame of each sensor; false if the robot does it.', 'true'
    ),
    'lossless': _switch(
        'Have the sensors hear and be heard to the last message, as for a recording: reliable '
        'odometry, deep queues.',
        'false',
    ),
    # The judge.
    'judge': Argument(
        'Who judges: ekf_node and navsat_transform_node of robot_localization, or judge_node, '
        'which is the embedded judge and needs neither.',
        'robot_localization',
        ('robot_localization', 'judge_node'),
    ),
    'profile': Argument(
        'Shipped parameters for both nodes: the paper as released, or tuned ones.',
        'paper_released',
        # Those without navsat_transform_node take wheels and a camera.
        tuple(
            name.removesuffix(NAVSAT) for name in config_names('judge') if name.endswith(NAVSAT)
        ),
    ),
    'judge_params_file': Argument(
        'Parameter file of ekf_node, in place of that of the profile.', kind=Path
    ),
    'navsat_params_file': Argument(
        'Parameter file of navsat_transform_node, in place of that of the profile.', kind=Path
    ),
    'navsat': _switch(
        'Start navsat_transform_node, which turns gps/fix into odometry/gps.', 'true'
    ),
    'static_transforms_file': Argument(
        'Static transforms for judge_node, as beside a recording; none: those of this launch.',
        kind=Path,
    ),
    'assume_identity_frames': _switch(
        'judge_node takes frames that nothing connects as one.', 'false'
    ),
    **_mounting(),
    # Experiments.
    'runs': _number('How many runs, one after another.', 1, 1),
    'first_run': _number('Number of the first one.', 1, 0),
    'out': Argument('Folder for the recordings: OUT/GPS MODEL/SCENARIO_NUMBER.', 'out'),
    'storage': Argument('Storage of the bags.', 'mcap', ('mcap', 'sqlite3')),
    'delay': _number('Wall time from when all are there to the motion, in s.', 3.0, 0),
    'settle': _number('Wall time from the end of a motion to that of its bag, in s.', 1.0, 0),
    # Evaluation.
    'real': Argument('Real recordings with ground truth: paths or patterns, by space.', None),
    'models': Argument(
        'GPS models, by comma: presets, YAML files, paper, all, or real to keep the recorded GPS.',
        'paper',
    ),
    'case_file': Argument('case.yaml that sets clock, timers and delivery order.', kind=Path),
    'overwrite': _switch('Replace an older result.', 'false'),
    'repetitions': _number('Simulated runs per recording and model.', 1, 1),
    'match_rates': _switch('Simulate at the rates of the real sensors.', 'false'),
    'start_heading': _switch('Start the filters with the true heading.', 'false'),
    'component': Argument('Speed that is compared.', 'horizontal', SPEED_COMPONENTS),
    'topics': Argument('Topics of the imu, gps or truth, each ROLE=TOPIC, by space.'),
    'label': Argument('Scenario label of all recordings; empty: their own.'),
    'rate_factor': _number('Seconds of a run per second; 0: as fast as all keep up.', 0.0, 0),
    # Pictures.
    'view': Argument(
        'What to look with; has to be installed.',
        'none',
        ('none', 'rviz', 'foxglove', 'plotjuggler'),
    ),
}
"""All arguments by name."""


def declare(*names: str, **changed: Any) -> list[Any]:
    """Return launch actions that declare arguments, and refuse values that are not allowed.

    Parameters
    ----------
    *names : str
        Keys of `ARGUMENTS`.
    **changed
        Other defaults for some more: a text or a list of launch substitutions, or an `Argument`.

    Returns
    -------
    list of launch.actions.DeclareLaunchArgument and launch.actions.OpaqueFunction
    """
    from launch.actions import DeclareLaunchArgument, OpaqueFunction

    def check(context: Any) -> None:
        for name in (*names, *changed):
            ARGUMENTS[name].check(name, context.launch_configurations[name])

    actions: list[Any] = []
    for name in (*names, *changed):
        entry = ARGUMENTS[name]
        if name in changed:
            change = changed[name]
            other = change if isinstance(change, Argument) else Argument('', change)
            entry = dataclasses.replace(
                entry,
                default=other.default,
                description=other.description or entry.description,
                choices=other.choices or entry.choices,
            )
        actions.append(
            DeclareLaunchArgument(
                name,
                default_value=entry.default,
                description=entry.description,
                choices=list(entry.choices) or None,
            )
        )
    return [*actions, OpaqueFunction(function=check)]


def profile_file(suffix: str = '') -> list[Any]:
    """Return substitutions for a parameter file of the judge's profile.

    Parameters
    ----------
    suffix : str
        `NAVSAT` for that of navsat_transform_node.
    """
    from launch.substitutions import LaunchConfiguration

    folder = config_path('judge').as_posix()
    return [f'{folder}/', LaunchConfiguration('profile'), f'{suffix}.yaml']


def boolean(name: str) -> Any:
    """Return an argument's value as a boolean ROS parameter."""
    from launch.substitutions import LaunchConfiguration
    from launch_ros.parameter_descriptions import ParameterValue

    return ParameterValue(LaunchConfiguration(name), value_type=bool)


_VIEWERS = {'rviz': 'rviz2', 'plotjuggler': 'plotjuggler', 'foxglove': 'foxglove_bridge'}


def needed(given: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return packages of others that a launch needs.

    Parameters
    ----------
    given : mapping
        Arguments of the launch; an argument that is not among them starts nothing.

    Returns
    -------
    dict
        Argument that asks for it, and another way to say it, by package.
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
    if 'storage' in given:
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
