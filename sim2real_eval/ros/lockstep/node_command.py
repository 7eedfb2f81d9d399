# SPDX-License-Identifier: Apache-2.0
"""The command line of a judge node, and the files that it names."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml

from sim2real_eval.judge_setup import JudgeSetup
from sim2real_eval.recording import Recording
from sim2real_eval.recording.metadata import transform_mappings
from sim2real_eval.ros.lockstep.parameter_file import (
    enu_parameters,
    node_parameters,
    write_parameters,
)
from sim2real_eval.ros.lockstep.process import executable, filter_node, signals_held
from sim2real_eval.ros.lockstep.senders import input_topics

__all__ = ['NODE_NAME', 'NodeCommand', 'own_transforms', 'ros_arguments']

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
