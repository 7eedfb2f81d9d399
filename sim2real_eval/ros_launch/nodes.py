# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Launch actions that several launch files share, and consecutive runs within a launch."""

from __future__ import annotations

import dataclasses
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from launch import LaunchDescription
from launch.actions import (
    EmitEvent,
    GroupAction,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
    TimerAction,
)
from launch.event_handlers import OnProcessExit, OnProcessIO, OnProcessStart
from launch.events import matches_action
from launch.events.process import ShutdownProcess
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import (
    EqualsSubstitution,
    IfElseSubstitution,
    LaunchConfiguration,
    PathJoinSubstitution,
)
from launch_ros.actions import LifecycleNode, Node, SetRemap
from launch_ros.event_handlers import OnStateTransition
from launch_ros.events.lifecycle import ChangeState
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare
from launch_ros.utilities import make_namespace_absolute, prefix_namespace
from lifecycle_msgs.msg import Transition

from sim_sensors.motion.motions import has_noise_free_imu
from sim_sensors.ros.node_settings import imu_topic
from sim_sensors.sensor.catalogue import KINDS
from .arguments import PACKAGE, is_started_by_ros2, refuse_unknown_arguments
from .sensors import SensorTransform, name_prefix, of_models, write_transforms_file

ENDING_RUN = 'ending_run'
"""Launch configuration that is true while the processes of a run end and the launch goes on."""


_FRAME_PREFIX = LaunchConfiguration('frame_prefix', default='')
TF_REMAPPINGS = [
    (f'/{topic}', IfElseSubstitution(EqualsSubstitution(_FRAME_PREFIX, ''), topic, f'/{topic}'))
    for topic in ('tf', 'tf_static')
]
"""Remappings of the transforms into the namespace of a node, unless the frames have a prefix."""


def typed_argument(name: str, kind: type) -> Any:
    """Return an argument as a ROS parameter of type `kind`; launch would guess the type."""
    return ParameterValue(LaunchConfiguration(name), value_type=kind)


def node(
    executable: str,
    *,
    package: str = PACKAGE,
    clock: str | None = 'use_sim_time',
    is_lifecycle: bool = False,
    **options: Any,
) -> Any:
    """Return a node with the namespace and log level of the arguments.

    Its transforms are on NAMESPACE/tf and NAMESPACE/tf_static, as in Nav2, or with `frame_prefix`
    on /tf and /tf_static.

    `clock` is the argument that sets use_sim_time, which overrides a parameter file. It is None
    for a node that publishes the clock and never follows it. A lifecycle node needs the actions of
    `activate`. `options` are those of `launch_ros.actions.Node`.
    """
    follow = False if clock is None else typed_argument(clock, bool)
    parameters = [*options.pop('parameters', ()), {'use_sim_time': follow}]
    action = LifecycleNode if is_lifecycle else Node
    return action(
        package=package,
        executable=executable,
        namespace=LaunchConfiguration('namespace'),
        parameters=parameters,
        remappings=[*TF_REMAPPINGS, *options.pop('remappings', ())],
        output='screen',
        ros_arguments=['--log-level', LaunchConfiguration('log_level')],
        **options,
    )


def activate(lifecycle_node: Any) -> list[Any]:
    """Return actions that configure a lifecycle node when it has started, and then activate it.

    They must precede the node in a launch description.
    """

    def change_state(transition: int) -> Any:
        is_node = matches_action(lifecycle_node)
        return EmitEvent(
            event=ChangeState(lifecycle_node_matcher=is_node, transition_id=transition)
        )

    return [
        RegisterEventHandler(
            OnProcessStart(
                target_action=lifecycle_node,
                on_start=[change_state(Transition.TRANSITION_CONFIGURE)],
            )
        ),
        RegisterEventHandler(
            OnStateTransition(
                target_lifecycle_node=lifecycle_node,
                goal_state='inactive',
                start_state='configuring',
                entities=[change_state(Transition.TRANSITION_ACTIVATE)],
            )
        ),
    ]


def static_transform(
    transform: SensorTransform, *, parent: str = 'base_link', **options: Any
) -> Any:
    """Return a publisher of a static transform from `parent`; both frames get the prefix."""
    numbers = zip(
        ('x', 'y', 'z', 'roll', 'pitch', 'yaw'),
        (*transform.translation, *transform.rpy),
        strict=True,
    )
    return Node(
        package='tf2_ros',
        executable='static_transform_publisher',
        name=f'{transform.sensor}_transform',
        namespace=LaunchConfiguration('namespace'),
        arguments=[
            *('--frame-id', [_FRAME_PREFIX, parent]),
            *('--child-frame-id', [_FRAME_PREFIX, transform.frame]),
            *(word for key, value in numbers for word in (f'--{key}', repr(float(value)))),
        ],
        remappings=TF_REMAPPINGS,
        on_exit=fail_on_error,
        **options,
    )


def trajectory_node(parameters: Mapping[str, Any], **options: Any) -> Any:
    """Return trajectory_node, which also publishes /clock, with the shared arguments."""
    shared = {
        'motion': typed_argument('scenario', str),
        'duration': typed_argument('duration', float),
        'factor': typed_argument('factor', float),
        'seed': typed_argument('seed', int),
        'frame_prefix': typed_argument('frame_prefix', str),
        'clock': True,
    }
    return node(
        'trajectory_node',
        clock=None,
        parameters=[LaunchConfiguration('motion_params_file'), {**shared, **parameters}],
        **options,
    )


def absolute_namespace(context: Any) -> str:
    """Return the absolute namespace of the launch, such as /robot1, with enclosing groups."""
    arguments = context.launch_configurations
    outer, inner = arguments.get('ros_namespace', ''), arguments['namespace']
    return str(make_namespace_absolute(prefix_namespace(outer, inner)))


def set_clock_topic() -> Any:
    """Return an action that remaps /clock into the namespace of the launch.

    Use it in a launch that publishes its own clock. The name is absolute, since sensors may be in
    namespaces below that of the launch.
    """

    def remap(context: Any) -> list[Any]:
        return [SetRemap('/clock', f'{name_prefix(absolute_namespace(context))}clock')]

    return OpaqueFunction(function=remap)


def set_noise_free_imu() -> Any:
    """Return an action that sets an empty `noise_free_imu`: true for a body in MuJoCo."""

    def set_argument(context: Any) -> None:
        arguments = context.launch_configurations
        if not arguments['noise_free_imu']:
            is_available = has_noise_free_imu(arguments['scenario'])
            arguments['noise_free_imu'] = str(is_available).lower()

    return OpaqueFunction(function=set_argument)


def include(file: str, params_file: str, *, condition: Any = None, **arguments: Any) -> Any:
    """Return an action that includes a launch file of this package in a scope of its own.

    Parameters
    ----------
    file : str
        Name of the launch file, such as `sensors.launch.py`.
    params_file : str
        Name of the argument whose value becomes `params_file` of the included launch.
    condition : optional
        Launch condition of the action.
    **arguments
        Arguments that differ from those of the including launch.
    """
    path = PathJoinSubstitution([FindPackageShare(PACKAGE), 'launch', file])
    source = PythonLaunchDescriptionSource(path)
    launch_arguments = [('params_file', LaunchConfiguration(params_file)), *arguments.items()]
    return GroupAction(
        [IncludeLaunchDescription(source, launch_arguments=launch_arguments)], condition=condition
    )


def describe(entities: Iterable[Any], *included: Any) -> LaunchDescription:
    """Return a launch description that refuses unknown arguments of `ros2 launch`.

    It accepts its own arguments, those of the files that it includes, as `--show-args` lists them,
    and those of the actions `included`, which are started later. If another launch file includes
    this one, nothing is refused.
    """
    description = LaunchDescription(entities)

    def refuse_unknown(context: Any) -> None:
        file = context.get_locals_as_dict().get('current_launch_file_path', '')
        if is_started_by_ros2(file, sys.argv):
            with_later = LaunchDescription([*description.entities, *included])
            declared = with_later.get_launch_arguments_with_include_launch_description_actions()
            # `include` replaces the parameter file.
            names = {
                argument.name
                for argument, includes in declared
                if includes is None or argument.name != 'params_file'
            }
            refuse_unknown_arguments(context.argv, names)

    return LaunchDescription([OpaqueFunction(function=refuse_unknown), *description.entities])


def set_transforms_file() -> Any:
    """Return an action that sets an empty `static_transforms_file` from the sensor models."""

    def set_argument(context: Any) -> None:
        arguments = context.launch_configurations
        if not arguments['static_transforms_file']:
            models = {kind: arguments[kind] for kind in ('imu', 'gps')}
            path = write_transforms_file(of_models(models), arguments['frame_prefix'])
            arguments['static_transforms_file'] = str(path)

    return OpaqueFunction(function=set_argument)


def set_imu_topic() -> Any:
    """Return an action that sets `imu_topic` of the judge from `imu_data_raw` and the model."""

    def set_argument(context: Any) -> None:
        arguments = context.launch_configurations
        model = KINDS.get('imu').load(arguments['imu'])
        data_raw = arguments['imu_data_raw'] == 'true'
        arguments['imu_topic'] = imu_topic(model, data_raw=data_raw)

    return OpaqueFunction(function=set_argument)


def fail_on_error(event: Any, context: Any) -> list[Any]:
    """End the launch with exit status 1 if a node failed; use it as `on_exit` of the node."""
    is_ending = context.is_shutdown or context.launch_configurations.get(ENDING_RUN) == 'true'
    if is_ending or event.returncode == 0:
        return []
    return [failure(f'{event.process_name} ended with exit status {event.returncode}')]


def failure(message: str) -> Any:
    """Return an action that ends the launch with exit status 1."""

    def fail(context: Any) -> None:
        raise RuntimeError(message)

    return OpaqueFunction(function=fail)


# Good exit statuses of an interrupted process: `ros2` returns the number of the signal, also after
# the recorder of rosbag2 has written everything.
_INTERRUPTED = (0, signal.SIGINT, -signal.SIGINT)


@dataclasses.dataclass(frozen=True, eq=False)
class LaunchRun:
    """Processes of one run."""

    leader: Any  # process whose end ends the run
    actions: list[Any]  # actions that start all processes, including the leader
    # Short processes that are started after the end of the leader, while the others still run.
    last: list[Any] = dataclasses.field(default_factory=list)
    # Process that must not fail when it is ended with the others; their exit status is ignored.
    recorder: Any = None
    # Called after the end of all processes with a function that returns the output of a process.
    # Returns the problem of the run, or an empty string.
    check: Callable[[Callable[[Any], str]], str] = lambda output_of: ''


class LaunchRuns:
    """Consecutive runs; each ends when its leader has ended.

    The launch ends with exit status 1 if a process ends early, a leader or recorder fails, or the
    check of a run finds a problem; otherwise after the last run.

    Parameters
    ----------
    make : callable
        Function that returns the run with a number.
    numbers : iterable of int
        Numbers of the runs.
    settle : float
        Wall time, s, from the end of the leader and the last processes to the end of the others.
    """

    def __init__(
        self, make: Callable[[int], LaunchRun], numbers: Iterable[int], settle: float
    ) -> None:
        self._make = make
        self._numbers = iter(numbers)
        self._settle = settle
        self._run: LaunchRun | None = None
        self._output: dict[Any, list[bytes]] = {}
        # Processes whose end is waited for before the others are ended.
        self._awaited: list[Any] = []
        self._last: list[Any] = []
        self._alive: set[int] = set()
        self._ending = False

    def actions(self) -> list[Any]:
        """Return the launch actions."""
        return [
            RegisterEventHandler(OnProcessStart(on_start=self._on_start)),
            RegisterEventHandler(OnProcessIO(on_stdout=self._on_output)),
            RegisterEventHandler(OnProcessExit(on_exit=self._on_exit)),
            OpaqueFunction(function=self._start_next),
        ]

    def _start_next(self, context: Any) -> list[Any]:
        number = next(self._numbers, None)
        if number is None:
            return [Shutdown(reason='all runs are done')]
        run = self._run = self._make(number)
        self._output.clear()
        self._awaited, self._last, self._ending = [run.leader], run.last, False
        context.launch_configurations[ENDING_RUN] = 'false'
        return run.actions

    def _on_start(self, event: Any, context: Any) -> None:
        self._alive.add(event.pid)

    def _on_output(self, event: Any) -> None:
        self._output.setdefault(event.action, []).append(event.text)

    def _on_exit(self, event: Any, context: Any) -> list[Any]:
        self._alive.discard(event.pid)
        if context.is_shutdown:
            return []
        if self._ending:
            return self._on_end(event, context)
        if event.action not in self._awaited or event.returncode != 0:
            self._ending = True
            return [failure(f'{event.process_name} ended with exit status {event.returncode}')]
        self._awaited.remove(event.action)
        if self._awaited:
            return []
        if self._last:
            self._awaited, self._last = list(self._last), []
            return list(self._awaited)
        self._ending = True
        context.launch_configurations[ENDING_RUN] = 'true'
        end = EmitEvent(event=ShutdownProcess(process_matcher=lambda process: True))
        return [TimerAction(period=self._settle, actions=[end])]

    def _on_end(self, event: Any, context: Any) -> list[Any]:
        run = self._run
        assert run is not None
        if event.action is run.recorder and event.returncode not in _INTERRUPTED:
            return [failure(f'{event.process_name} ended with exit status {event.returncode}')]
        if self._alive:
            return []
        # The output of a process may arrive after its end.
        problem = run.check(lambda process: b''.join(self._output.get(process, ())).decode())
        return [failure(problem)] if problem else self._start_next(context)
