# SPDX-License-Identifier: Apache-2.0
"""Launch actions that several launch files share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launch.actions import GroupAction, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from sim2real_eval.ros_launch.arguments import boolean
from sim2real_eval.ros_launch.mounting import Mounting, of_models, transforms_file

__all__ = [
    'TOLD_TO_END',
    'ended_badly',
    'failure',
    'include',
    'node',
    'note_mounting',
    'static_transform',
    'trajectory_node',
    'typed',
]

PACKAGE = 'sim2real_sensors'
TOLD_TO_END = 'told_to_end'
"""Launch configuration that is true while processes are told to end, but the launch is not."""


def typed(name: str, kind: type) -> Any:
    """Return an argument's value as a ROS parameter of a type, whatever it looks like."""
    return ParameterValue(LaunchConfiguration(name), value_type=kind)


def node(
    executable: str, *, package: str = PACKAGE, clock: str | None = 'use_sim_time', **words: Any
) -> Any:
    """Return a node in the namespace and with the log level that the arguments say.

    Parameters
    ----------
    executable, package : str
        What to run.
    clock : str or None
        Argument that says whether to follow /clock; it wins over a parameter file. None: a node
        that makes the clock, and so never follows it.
    **words
        For `launch_ros.actions.Node`.
    """
    follow = False if clock is None else boolean(clock)
    parameters = [*words.pop('parameters', ()), {'use_sim_time': follow}]
    return Node(
        package=package,
        executable=executable,
        namespace=LaunchConfiguration('namespace'),
        parameters=parameters,
        output='screen',
        ros_arguments=['--log-level', LaunchConfiguration('log_level')],
        **words,
    )


def static_transform(mounting: Mounting, *, parent: str = 'base_link', **words: Any) -> Any:
    """Return a publisher of a static transform.

    Parameters
    ----------
    mounting : Mounting
        Whose pose it is.
    parent : str
        Frame that the pose is in.
    **words
        For `launch_ros.actions.Node`.
    """
    numbers = zip(
        ('x', 'y', 'z', 'roll', 'pitch', 'yaw'),
        (*mounting.translation, *mounting.rpy),
        strict=True,
    )
    return Node(
        package='tf2_ros',
        executable='static_transform_publisher',
        name=f'{mounting.sensor}_transform',
        namespace=LaunchConfiguration('namespace'),
        arguments=[
            *('--frame-id', parent, '--child-frame-id', mounting.frame),
            *(word for key, value in numbers for word in (f'--{key}', repr(float(value)))),
        ],
        **words,
    )


def trajectory_node(parameters: Mapping[str, Any], **words: Any) -> Any:
    """Return the node that moves, and gives the time, as the shared arguments say.

    Parameters
    ----------
    parameters : mapping
        More of its parameters.
    **words
        For `launch_ros.actions.Node`.
    """
    shared = {
        'motion': typed('scenario', str),
        'duration': typed('duration', float),
        'factor': typed('factor', float),
        'seed': typed('seed', int),
        'clock': True,
    }
    return node('trajectory_node', clock=None, parameters=[{**shared, **parameters}], **words)


def include(file: str, arguments: Mapping[str, Any], **words: Any) -> Any:
    """Return another launch file of this package, in a scope of its own.

    Parameters
    ----------
    file : str
        Such as `sensors.launch.py`.
    arguments : mapping
        Those that differ from the ones of the including file.
    **words
        For `launch.actions.GroupAction`.
    """
    path = PathJoinSubstitution([FindPackageShare(PACKAGE), 'launch', file])
    source = PythonLaunchDescriptionSource(path)
    return GroupAction(
        [IncludeLaunchDescription(source, launch_arguments=list(arguments.items()))], **words
    )


def note_mounting() -> Any:
    """Return an action that makes `static_transforms_file` of the models, unless it is given."""

    def note(context: Any) -> None:
        given = context.launch_configurations
        if not given['static_transforms_file']:
            file = transforms_file(of_models(given['imu'], given['gps']))
            given['static_transforms_file'] = str(file)

    return OpaqueFunction(function=note)


def ended_badly(event: Any, context: Any) -> list[Any]:
    """End the launch with exit status 1 when a node failed; for its `on_exit`."""
    told = context.is_shutdown or context.launch_configurations.get(TOLD_TO_END) == 'true'
    if told or event.returncode == 0:
        return []
    return [failure(f'{event.process_name} ended with exit status {event.returncode}')]


def failure(message: str) -> Any:
    """Return an action that ends the launch with exit status 1."""

    def fail(context: Any) -> None:
        raise RuntimeError(message)

    return OpaqueFunction(function=fail)
