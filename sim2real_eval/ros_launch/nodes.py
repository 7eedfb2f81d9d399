# SPDX-License-Identifier: Apache-2.0
"""Launch actions that several launch files share, and one run after another within a launch."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Callable, Iterable, Mapping
from typing import Any

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
from launch.events.process import ShutdownProcess
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from sim_sensors.motion.motions import has_noise_free_imu
from .sensors import Mounting, of_models, transforms_file

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

    `clock` is the argument that says whether to follow /clock; it wins over a parameter file.
    None: a node that makes the clock, and so never follows it. More words are for
    `launch_ros.actions.Node`.
    """
    follow = False if clock is None else typed(clock, bool)
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
    """Return a publisher of a static transform, of a pose in the frame `parent`."""
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
    """Return the node that moves, and gives the time, as the shared arguments and more parameters
    say.
    """
    shared = {
        'motion': typed('scenario', str),
        'duration': typed('duration', float),
        'factor': typed('factor', float),
        'seed': typed('seed', int),
        'clock': True,
    }
    return node(
        'trajectory_node',
        clock=None,
        parameters=[LaunchConfiguration('motion_params_file'), {**shared, **parameters}],
        **words,
    )


def note_noise_free() -> Any:
    """Return an action that lets the IMU measure what that of a body in MuJoCo does, unless the
    argument `noise_free_imu` says otherwise.
    """

    def note(context: Any) -> None:
        given = context.launch_configurations
        if not given['noise_free_imu']:
            given['noise_free_imu'] = str(has_noise_free_imu(given['scenario'])).lower()

    return OpaqueFunction(function=note)


def include(file: str, params_file: str, *, condition: Any = None, **arguments: Any) -> Any:
    """Return another launch file of this package, such as `sensors.launch.py`, in a scope of its
    own, with the arguments that differ from those of the including one: its `params_file` is what
    is here the argument `params_file`.
    """
    path = PathJoinSubstitution([FindPackageShare(PACKAGE), 'launch', file])
    source = PythonLaunchDescriptionSource(path)
    given = [('params_file', LaunchConfiguration(params_file)), *arguments.items()]
    return GroupAction(
        [IncludeLaunchDescription(source, launch_arguments=given)], condition=condition
    )


def note_mounting() -> Any:
    """Return an action that makes `static_transforms_file` of the models, unless it is given."""

    def note(context: Any) -> None:
        given = context.launch_configurations
        if not given['static_transforms_file']:
            file = transforms_file(of_models({kind: given[kind] for kind in ('imu', 'gps')}))
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


# Of a program that ended because it was told to: `ros2` returns the number of the signal, which
# rosbag2's recorder passes on when all is written.
_INTERRUPTED = (0, signal.SIGINT, -signal.SIGINT)


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """What one run consists of."""

    leader: Any  # process whose end is the end of the run
    actions: list[Any]  # that start everything, the leader too
    # Short processes that come after the leader, while the others still run.
    last: list[Any] = dataclasses.field(default_factory=list)
    # Process that has to end well when it is told to; how the others end does not matter then.
    recorder: Any = None
    # Asked when all have ended, with a function that gives what a process wrote: what is wrong
    # with the run; empty when nothing is.
    check: Callable[[Callable[[Any], str]], str] = lambda wrote: ''


class Runs:
    """Starts the processes of a run, ends all when its leader has ended, and begins the next.

    A process that ends before its time, a leader or recorder that fails, or a run with which
    something is wrong ends the launch with exit status 1. It ends by itself after the last run.

    `make` gives the run of a number. `settle` is the wall time, s, from the end of the leader and
    of what comes last until the others are told to end.
    """

    def __init__(self, make: Callable[[int], Run], numbers: Iterable[int], settle: float) -> None:
        self._make = make
        self._numbers = iter(numbers)
        self._settle = settle
        self._run: Run | None = None
        self._wrote: dict[Any, list[bytes]] = {}
        # Processes whose ends are waited for, all of them before the others are told to end.
        self._awaited: list[Any] = []
        self._last: list[Any] = []
        self._alive: set[int] = set()
        self._ending = False

    def actions(self) -> list[Any]:
        """Return the actions that do all this."""
        return [
            RegisterEventHandler(OnProcessStart(on_start=self._on_start)),
            RegisterEventHandler(OnProcessIO(on_stdout=self._on_output)),
            RegisterEventHandler(OnProcessExit(on_exit=self._on_exit)),
            OpaqueFunction(function=self._next),
        ]

    def _next(self, context: Any) -> list[Any]:
        number = next(self._numbers, None)
        if number is None:
            return [Shutdown(reason='all runs are done')]
        run = self._run = self._make(number)
        self._wrote.clear()
        self._awaited, self._last, self._ending = [run.leader], run.last, False
        context.launch_configurations[TOLD_TO_END] = 'false'
        return run.actions

    def _on_start(self, event: Any, context: Any) -> None:
        self._alive.add(event.pid)

    def _on_output(self, event: Any) -> None:
        self._wrote.setdefault(event.action, []).append(event.text)

    def _on_exit(self, event: Any, context: Any) -> list[Any]:
        self._alive.discard(event.pid)
        if context.is_shutdown:
            return []
        if self._ending:
            return self._told_to_end(event, context)
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
        context.launch_configurations[TOLD_TO_END] = 'true'
        end = EmitEvent(event=ShutdownProcess(process_matcher=lambda process: True))
        return [TimerAction(period=self._settle, actions=[end])]

    def _told_to_end(self, event: Any, context: Any) -> list[Any]:
        run = self._run
        assert run is not None
        if event.action is run.recorder and event.returncode not in _INTERRUPTED:
            return [failure(f'{event.process_name} ended with exit status {event.returncode}')]
        if self._alive:
            return []
        # Not before: what a process wrote may come after its end.
        problem = run.check(lambda process: b''.join(self._wrote.get(process, ())).decode())
        return [failure(problem)] if problem else self._next(context)
