# SPDX-License-Identifier: Apache-2.0
"""The parameter file that a judge node is started with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from sim2real_eval.judge import FilterConfig, NavsatConfig
from sim2real_eval.judge.ros_parameters import read_node_parameters
from sim2real_eval.judge_setup import JudgeSetup, node_of

__all__ = ['enu_parameters', 'navsat_parameters', 'node_parameters', 'write_parameters']

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
