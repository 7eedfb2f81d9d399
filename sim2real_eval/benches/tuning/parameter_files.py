# SPDX-License-Identifier: Apache-2.0
"""Parameter files of a judge, with what was tuned and why."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from sim2real_eval.judge.protocol import Judge
from sim2real_eval.judge.robot_localization.ros_parameters import declared, read_node_parameters
from sim2real_eval.judge.setup import JudgeSetup, node_of
from .parameters import has_parameters, thresholds

_WIDTH = 96


def parameter_files(
    start: Judge, judge: Judge, header: Sequence[str], remarks: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    r"""Return the files of a tuned judge by name.

    Of a set-up of robot_localization: ekf.yaml or ukf.yaml, that of navsat_transform_node beside
    it, and case.yaml where covariances of topics were tuned. `ros2 run robot_localization ekf_node
    --ros-args --params-file ekf.yaml` and `--judge-config ekf.yaml` take the same file. Every
    parameter is in it that the given file has for the node.

    Of another judge: judge.yaml, the file of parameters that --judge-config takes for it.

    Parameters
    ----------
    start, judge : Judge
        As given, and tuned.
    header : sequence of str
        Comments at the top, a line or more each.
    remarks : mapping
        Comments above a parameter, by its name in the file.

    Examples
    --------
    >>> clean = JudgeSetup.load('clean')
    >>> list(parameter_files(clean, clean, ['Nothing was tuned.'], {}))
    ['ekf.yaml', 'ekf_navsat.yaml']
    >>> from sim2real_eval.judge.inertial.error_state import ErrorStateJudge
    >>> given = ErrorStateJudge.load()
    >>> text = parameter_files(given, given, ['As it was.'], {'gravity': ['left']})['judge.yaml']
    >>> text.splitlines()[0], '# left\ngravity: 9.80665\n' in text
    ('# As it was.', True)
    """
    if isinstance(start, JudgeSetup) and isinstance(judge, JudgeSetup):
        found = _node_files(start, judge, remarks)
    else:
        assert has_parameters(judge)
        found = {'judge.yaml': _lines(judge.parameters.to_mapping(), (), remarks)}
    return {name: _comments(header, '') + text for name, text in found.items()}


def _node_files(
    start: JudgeSetup, setup: JudgeSetup, remarks: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    kind = 'ekf' if setup.filter.sigma_points is None else 'ukf'
    node, path = node_of(setup.files[0], setup.case), setup.files[0]
    found = {f'{kind}.yaml': _file(path, node, _filter_changes(start, setup), remarks)}
    if setup.navsat is not None and start.navsat is not None and setup.navsat.timed:
        changes = {}
        if setup.navsat.yaw_offset != start.navsat.yaw_offset:
            changes['yaw_offset'] = setup.navsat.yaw_offset
        name = f'{kind}_navsat.yaml'
        found[name] = _file(setup.files[-1], 'navsat_transform', changes, remarks)
    if setup.case.covariance:
        tree = {'covariance': dict(setup.case.covariance)}
        found['case.yaml'] = yaml.safe_dump(tree, sort_keys=False)
    return found


def _filter_changes(start: JudgeSetup, setup: JudgeSetup) -> dict[str, Any]:
    """Return the parameters of the filter that are not as they were; None: there is none."""
    changes: dict[str, Any] = {}
    noise = setup.filter.process_noise
    if not np.array_equal(noise, start.filter.process_noise):
        diagonal = np.array_equal(noise, np.diag(np.diag(noise)))
        # By columns, as robot_localization reads them.
        changes['process_noise_covariance'] = (np.diag(noise) if diagonal else noise.T).ravel()
    for before, now in zip(start.filter.sources, setup.filter.sources, strict=True):
        if not np.array_equal(before.mask, now.mask):
            changes[f'{now.name}_config'] = [bool(entry) for entry in now.mask]
        if before.differential != now.differential:
            changes[f'{now.name}_differential'] = now.differential
        for field, key in thresholds(now).items():
            gate = getattr(now, field)
            if gate != getattr(before, field):
                changes[key] = None if np.isinf(gate) else gate
    return changes


def _file(
    path: Path, node: str, changes: Mapping[str, Any], remarks: Mapping[str, Sequence[str]]
) -> str:
    given = read_node_parameters(path, node)
    text = f'{given.node}:\n  ros__parameters:\n'
    for name, value in {**declared(given.values), **changes}.items():
        if value is None:
            continue
        plain = value.tolist() if isinstance(value, np.ndarray) else value
        text += _comments(remarks.get(name, ()), '    ') + '    ' + _line(name, plain)
    return text


def _lines(
    values: Mapping[str, Any], path: tuple[str, ...], remarks: Mapping[str, Sequence[str]]
) -> str:
    indent, text = '  ' * len(path), ''
    for name, value in values.items():
        mine = (*path, name)
        text += _comments(remarks.get('.'.join(mine), ()), indent)
        if isinstance(value, Mapping):
            text += f'{indent}{name}:\n{_lines(value, mine, remarks)}'
        else:
            text += indent + _line(name, value)
    return text


def _line(name: str, value: object) -> str:
    # Some names need quotes, such as off.
    text = yaml.safe_dump({name: value}, default_flow_style=True, width=math.inf)
    return text.strip()[1:-1] + '\n'


def _comments(texts: Sequence[str], indent: str) -> str:
    lines = [line for text in texts for line in textwrap.wrap(text, _WIDTH - len(indent))]
    return ''.join(f'{indent}# {line}\n' for line in lines)
