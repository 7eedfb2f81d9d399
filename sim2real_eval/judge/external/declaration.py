# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Declaration of a ROS estimator in a YAML file: its start, inputs, output and clock."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim2real_eval.recording.message_types import MESSAGE_TYPES, TF_TYPE
from sim_sensors.core.config_files import branch, check_keys, read_yaml_mapping
from sim_sensors.core.errors import ParameterError, not_among
from sim_sensors.core.parameters import Parameters, non_negative, parameter, positive, rare

_NAME = re.compile(r'/?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*')

GPS_ODOMETRY = 'gps_odometry'
"""Input with the positions of the fixes, m east, north and up of the first one."""
INITIAL_POSE = 'initial_pose'
"""Input of one message: the first position, with the start heading of the run or east."""
SENT = (
    *(name for name, kind in MESSAGE_TYPES.items() if kind.has_header),
    'geometry_msgs/msg/PoseStamped',
)
"""Message types of inputs."""
ESTIMATES = (
    'nav_msgs/msg/Odometry',
    'geometry_msgs/msg/PoseWithCovarianceStamped',
    'geometry_msgs/msg/PoseStamped',
    'geometry_msgs/msg/TwistStamped',
    'geometry_msgs/msg/TwistWithCovarianceStamped',
    TF_TYPE,
)
"""Message types of outputs."""


@dataclasses.dataclass(frozen=True)
class StackInput(Parameters):
    """An input of the estimator; in a file, a text instead of a mapping is the topic."""

    topic: str = parameter('', '', 'Topic to which the estimator subscribes.')
    type: str | None = parameter(
        None, '', 'Message type; by default that of the recording.', choices=SENT, optional=str
    )


@dataclasses.dataclass(frozen=True)
class StackOutput(Parameters):
    """Estimates that the estimator publishes."""

    topic: str = parameter('odometry/filtered', '', 'Topic of the estimates; /tf for transforms.')
    type: str = parameter(
        ESTIMATES[0],
        '',
        'Message type. Velocities of poses and transforms are differences of their positions.',
        choices=ESTIMATES,
    )
    velocity: str = parameter(
        'body',
        '',
        'Axes of the velocity in the messages: body, as nav_msgs/Odometry prescribes, or world.',
        choices=('body', 'world'),
    )
    spacing: float = non_negative(
        0.0,
        's',
        'Minimum time between differentiated poses. Closer poses are skipped, because a '
        'correction just after a prediction is a jump and not a motion.',
        maximum=10.0,
    )
    answers: str = parameter(
        '',
        '',
        'Input whose every message the estimator answers with one estimate. Missing '
        'answers are reported. Empty: none.',
    )


@dataclasses.dataclass(frozen=True)
class StackFrames(Parameters):
    """Names of frames."""

    base: str = parameter('base_link', '', 'Frame whose motion the estimator estimates.')
    world: str = parameter('odom', '', 'Frame of gps_odometry, and parent of a transform on /tf.')


@dataclasses.dataclass(frozen=True)
class StackReady(Parameters):
    """Conditions for the start of the replay, besides subscriptions and the output."""

    topic: str = parameter('', '', 'Topic that must have a publisher.')
    service: str = parameter('', '', 'Service that must exist.')
    lifecycle: str = parameter(
        '',
        '',
        'Node, such as /filter, that is configured and activated if it is a lifecycle node.',
    )
    timeout: float = positive(90.0, 's', 'Longest time until the estimator is ready.')


@dataclasses.dataclass(frozen=True)
class StackClock(Parameters):
    """Pace of the replay; /clock is the clock of the recording."""

    mode: str = parameter(
        'real_time',
        '',
        'lockstep: each message and tick waits until the node has processed the previous one; '
        'the node needs use_sim_time, a single-threaded executor and parameter services, as nodes '
        'have by default. real_time: at a fixed rate.',
        choices=('lockstep', 'real_time'),
    )
    rate: float = positive(
        1.0, '1', 'real_time: seconds of the recording per second of wall time.', maximum=1000.0
    )
    node: str = parameter(
        '', '', 'lockstep: the node to wait for, such as /ekf_filter_node; empty: the publisher.'
    )
    frequency: float = non_negative(
        0.0,
        'Hz',
        'lockstep: rate of a timer of the node that publishes one estimate per tick; 0: the node '
        'publishes when a message arrives.',
        maximum=10000.0,
    )
    step: float = rare(0.01, 's', 'Largest step of /clock.', above=0.0)
    run_on: float = rare(0.4, 's', 'Duration of /clock after the last message.', minimum=0.0)


@dataclasses.dataclass(frozen=True)
class RosStack(Parameters):
    """A ROS estimator of one or more nodes.

    `inputs` maps roles or topics of the recording, gps_odometry or initial_pose to a topic or a
    StackInput; messages of equal time are sent in its order. `parameters` are set for all nodes.
    """

    command: str = parameter(
        '',
        '',
        'Command that starts the estimator, run in the folder of this file; python3 is the '
        'Python of sim2real. --ros-args with use_sim_time and the parameters are appended.',
    )
    launch: str = parameter(
        '',
        '',
        'Instead of a command: launch file with its arguments, for ros2 launch. use_sim_time and '
        'params_file are appended as arguments.',
    )
    parameters_file: str = parameter(
        '', '', 'Parameter file of the nodes, relative to this file; `parameters` override it.'
    )
    reset: str = parameter(
        '',
        '',
        'Service (std_srvs Empty or Trigger) that resets the estimator between recordings; '
        'empty: it is restarted for each.',
    )
    repeats: int = parameter(
        2,
        '1',
        'Number of replays of a recording: the first one counts, the others measure how '
        'repeatable the estimator is.',
        minimum=1,
        maximum=100,
    )
    time_limit: float = parameter(600.0, 's', 'Longest wall time of a replay.', above=0)
    output: StackOutput = dataclasses.field(default_factory=StackOutput)
    frames: StackFrames = dataclasses.field(default_factory=StackFrames)
    ready: StackReady = dataclasses.field(default_factory=StackReady)
    clock: StackClock = dataclasses.field(default_factory=StackClock)
    inputs: Mapping[str, StackInput] = dataclasses.field(default_factory=dict)
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, object], where: str, path: str = '') -> RosStack:
        """Build from a plain mapping; see `Parameters.from_mapping`."""
        open_keys = ('inputs', 'parameters')
        check_keys(mapping, [*cls.declarations(), *cls._nested(), *open_keys], where)
        declared = {name: branch for name, branch in mapping.items() if name not in open_keys}
        inputs = {
            str(name): StackInput.from_mapping(
                {'topic': declared} if isinstance(declared, str) else declared,
                where,
                f'inputs.{name}',
            )
            for name, declared in branch(mapping, 'inputs', where).items()
        }
        stack = dataclasses.replace(
            super().from_mapping(declared, where, path),
            inputs=inputs,
            parameters=branch(mapping, 'parameters', where),
        )
        stack._check_consistency(where)
        return stack

    @classmethod
    def from_file(cls, path: Path) -> RosStack:
        """Read a file; ParameterError names the first wrong key."""
        stack = cls.from_mapping(read_yaml_mapping(path), str(path))
        if stack.parameters_file and not (path.parent / stack.parameters_file).is_file():
            problem = f'{stack.parameters_file}: no such file beside it'
            raise ParameterError(str(path), 'parameters_file', problem)
        return stack

    def to_mapping(self) -> dict[str, Any]:
        """Return a plain mapping that `from_mapping` reads back to an equal declaration."""
        inputs = {name: declared.to_mapping() for name, declared in self.inputs.items()}
        return {**super().to_mapping(), 'inputs': inputs, 'parameters': dict(self.parameters)}

    def _check_consistency(self, where: str) -> None:
        """Refuse a declaration that is incomplete or contradicts itself."""
        if bool(self.command) == bool(self.launch):
            raise ParameterError(where, 'command', 'one of command and launch must be given')
        if not self.inputs:
            problem = 'is missing; must map roles or topics of the recording to topics, as in '
            raise ParameterError(where, 'inputs', f'{problem}inputs: {{gps: gps/fix}}')
        topics = {f'inputs.{name}.topic': declared.topic for name, declared in self.inputs.items()}
        topics['output.topic'] = self.output.topic
        for key, name in topics.items():
            if not name:
                raise ParameterError(where, key, 'is missing')
        ready = self.ready
        optional_names = {
            'ready.topic': ready.topic, 'ready.service': ready.service,
            'ready.lifecycle': ready.lifecycle, 'reset': self.reset, 'clock.node': self.clock.node,
        }  # fmt: skip
        for key, name in (topics | optional_names).items():
            if name and not _NAME.fullmatch(name):
                problem = f'{name!r} is not allowed; must be a name of ROS such as /gps/fix'
                raise ParameterError(where, key, problem)
        answers = self.output.answers
        if answers and answers not in self.inputs:
            problem = not_among(f'{answers!r} is no input', answers, list(self.inputs))
            raise ParameterError(where, 'output.answers', problem)
        for key, text in (('command', self.command), ('launch', self.launch)):
            try:
                words = shlex.split(text)
            except ValueError as error:
                raise ParameterError(where, key, f'cannot be split into words: {error}') from None
            if text and not words:
                raise ParameterError(where, key, f'{text!r} is not allowed; must name a program')
