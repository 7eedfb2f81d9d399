# SPDX-License-Identifier: Apache-2.0
"""The command line of a judge node, and the files that it names."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from sim2real_eval.judge.external.process import executable, filter_node, signals_held
from sim2real_eval.judge.external.senders import input_topics
from sim2real_eval.judge.robot_localization.configuration import FilterConfig, NavsatConfig
from sim2real_eval.judge.robot_localization.ros_parameters import read_node_parameters
from sim2real_eval.judge.setup import JudgeSetup, node_of
from sim2real_eval.recording.metadata import transform_mappings
from sim2real_eval.recording.recording import Recording

__all__ = [
    'NODE_NAME',
    'NodeCommand',
    'enu_parameters',
    'navsat_parameters',
    'node_parameters',
    'own_transforms',
    'ros_arguments',
    'write_parameters',
]

# -------- The parameter file that a judge node is started with.

# Subscriptions are best effort: what comes while the queue is full would be lost.
_QUEUE_SIZE = 100


def node_parameters(setup: JudgeSetup, topics: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters of the filter's node in a lockstep run.

    They are those of the set-up's file, with a simulated clock, the inputs on topics of their
    own, and what the set-up's filter starts with.

    Parameters
    ----------
    setup : JudgeSetup
    topics : mapping
        Input name to topic.
    """
    wanted = setup.filter
    unscented = wanted.sigma_points is not None
    given = read_node_parameters(setup.files[0], node_of(setup.files[0], setup.case))
    values = _declared(given.values)
    original = FilterConfig.from_parameters(given, unscented=unscented)
    for name, before, now in (
        ('initial_state', original.initial_state, wanted.initial_state),
        ('initial_estimate_covariance', original.initial_covariance, wanted.initial_covariance),
    ):
        if not np.array_equal(before, now):
            values[name] = now.ravel().tolist()
    for name, topic in topics.items():
        values[name] = topic
        values[f'{name}_queue_size'] = _QUEUE_SIZE
    # Commands carry stamps in recordings, and act from them.
    return {**values, 'use_sim_time': True, 'stamped_control': True, 'publish_tf': False}


def navsat_parameters(setup: JudgeSetup) -> dict[str, Any]:
    """Return the parameters of the real navsat_transform_node."""
    given = read_node_parameters(setup.files[-1], 'navsat_transform')
    return {**_declared(given.values), 'use_sim_time': True}


def enu_parameters(navsat: NavsatConfig) -> dict[str, Any]:
    """Return the parameters of the plain front end; it may have come without a file."""
    values: dict[str, Any] = {'zero_altitude': navsat.zero_altitude}
    if navsat.datum is not None:
        values |= {'wait_for_datum': True, 'datum': list(navsat.datum)}
    return values


def _declared(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _as_declared(name, value) for name, value in values.items() if value is not None}


def write_parameters(path: Path, values: Mapping[str, Any]) -> Path:
    """Write a parameter file for whatever node reads it."""
    tree = {'/**': {'ros__parameters': dict(values)}}
    path.write_text(yaml.safe_dump(tree, default_flow_style=None), encoding='utf-8')
    return path


def _as_declared(name: str, value: Any) -> Any:
    """Turn a value into the type that the node declares, which must fit in ROS.

    `frequency: 30` is a number to us and to anybody, but no double to rclcpp; and YAML takes
    `1e-9` for a text.
    """
    if name.endswith('queue_size') or isinstance(value, bool):
        return value
    if isinstance(value, list):
        if all(isinstance(entry, bool) for entry in value):
            return value
        return [_number(entry) for entry in value]
    return _number(value)


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


NODE_NAME = 'ekf_filter_node'


def own_transforms(namespace: str) -> list[str]:
    """Return the rules that keep a side's transforms to itself."""
    return [f'/{topic}:={namespace}/{topic}' for topic in ('tf', 'tf_static')]


def ros_arguments(file: Path, rules: Sequence[str]) -> list[str]:
    """Return the arguments that give a node its parameter file and its names."""
    words = [word for rule in rules for word in ('-r', rule)]
    return ['--ros-args', '--params-file', str(file), *words]


class NodeCommand:
    """Command and environment of a judge node, and the files that it reads when it starts.

    Parameters
    ----------
    judge : str
        One of JUDGES.
    domain : int
    namespace : str
        With a leading slash.
    setup : JudgeSetup
    recording : Recording
        Its transforms count.
    lockstep : bool
        Whether ekf_node is to answer each tick; else it runs as its parameter file says.

    Raises
    ------
    JudgeError
        When the judge is not installed.
    """

    def __init__(
        self,
        judge: str,
        domain: int,
        namespace: str,
        setup: JudgeSetup,
        recording: Recording,
        *,
        lockstep: bool = True,
    ) -> None:
        self._executable = executable(judge, filter_node(setup))
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._lockstep = lockstep
        self._real = judge != 'judge_node'
        self._domain, self._space = domain, namespace
        self._setup, self._recording = setup, recording

    def write_files(self) -> tuple[list[str], dict[str, str]]:
        """Write the files; return command and environment. `remove_files` is to follow."""
        with signals_held():
            self._folder = tempfile.TemporaryDirectory(prefix='sim2real_judge_')
        folder, setup = self.folder, self._setup
        values = node_parameters(setup, input_topics(setup.filter))
        rules = [f'__node:={NODE_NAME}', f'__ns:={self._space}']
        if self._real:
            if self._lockstep:
                # Answers to ticks; what a node would not publish is left out on arrival.
                values['permit_corrected_publication'] = True
            # A navsat_transform_node needs the transform to the base.
            values['publish_tf'] = not self._lockstep
            # Waiting for a transform would wait for a clock that waits for the node.
            values['transform_timeout'] = 0.0
            rules += own_transforms(self._space)
        else:
            values['filter'] = 'ekf' if setup.filter.sigma_points is None else 'ukf'
            if setup.navsat is not None and setup.navsat.timed:
                values['navsat_params_file'] = str(setup.files[-1].resolve())
            elif setup.navsat is not None:
                values['front_end'] = setup.navsat.front_end
                path = write_parameters(folder / 'navsat.yaml', enu_parameters(setup.navsat))
                values['navsat_params_file'] = str(path)
            if setup.case.correct:
                values['correct'] = sorted(setup.case.correct)
            transforms = transform_mappings(self._recording.transforms)
            path = folder / 'static_transforms.yaml'
            path.write_text(yaml.safe_dump(transforms), encoding='utf-8')
            values['static_transforms_file'] = str(path)
            values['assume_identity_frames'] = not self._recording.transforms
        file = write_parameters(folder / 'params.yaml', values)
        command = [*self._executable, *ros_arguments(file, rules)]
        return command, self.environment

    @property
    def folder(self) -> Path:
        """Folder of the files, once they are written."""
        assert self._folder is not None
        return Path(self._folder.name)

    def remove_files(self) -> None:
        """Remove the files; may be called before there are any, and twice."""
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def environment(self) -> dict[str, str]:
        """Environment of the node, and of others beside it."""
        return {**os.environ, 'ROS_DOMAIN_ID': str(self._domain)}
