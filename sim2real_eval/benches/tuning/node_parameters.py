# SPDX-License-Identifier: Apache-2.0
"""Which parameters of robot_localization's nodes can be tuned, and from where to where."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from sim2real_eval.judge.robot_localization.configuration import NAVSAT_TOPIC, SourceConfig
from sim2real_eval.judge.robot_localization.state import TWO_D_STATES
from sim2real_eval.judge.setup import JudgeSetup
from .tunable import DECADES, Tunable

GROUPS = ('noise', 'gates', 'inputs', 'heading', 'covariance')
"""Groups of parameters, as --parameters names them."""

_BLOCKS = ('position', 'orientation', 'velocity', 'angular_velocity', 'acceleration')
_STATES = (
    'x', 'y', 'z', 'roll', 'pitch', 'yaw', 'vx', 'vy', 'vz', 'vroll', 'vpitch', 'vyaw', 'ax', 'ay',
    'az',
)  # fmt: skip
_GATES = (2.0, 3.0, 4.0, 6.0, math.inf)
_TURNS = (-0.3, -0.1, -0.03, 0.03, 0.1, 0.3)
# States that messages of a kind of input can measure.
_MEASURED = {
    'odom': range(12),
    'pose': range(6),
    'twist': range(6, 12),
    'imu': (3, 4, 5, 9, 10, 11, 12, 13, 14),
}


def node_tunables(setup: JudgeSetup) -> Iterator[Tunable]:
    """Yield the parameters of a set-up that can be tuned.

    Examples
    --------
    >>> noise = next(node_tunables(JudgeSetup.load('clean')))
    >>> noise.name, noise.start, noise.bounds
    ('process_noise_covariance.position', 1.0, (0.0001, 10000.0))
    >>> tuned = noise.change(JudgeSetup.load('clean'), 4.0)
    >>> float(tuned.filter.process_noise[0, 0])
    0.004
    """
    factors = tuple(10.0**decade for decade in DECADES)
    for block, name in enumerate(_BLOCKS):
        full = f'process_noise_covariance.{name}'
        yield Tunable(full, 'noise', 1.0, factors, 'log', partial(_noise, block))
    for source in setup.filter.sources:
        for field, key in thresholds(source).items():
            start = getattr(source, field)
            gates = tuple(gate for gate in _GATES if gate != start)
            change = partial(_source, source.name, field)
            yield Tunable(key, 'gates', start, gates, 'choice', change, 'sigma')
    for source in setup.filter.sources:
        yield from _switches(source, planar=setup.filter.two_d_mode)
    navsat = setup.navsat
    if navsat is not None and navsat.timed and navsat.datum is None:
        turns = tuple(navsat.yaw_offset + turn for turn in _TURNS)
        start = navsat.yaw_offset
        yield Tunable('yaw_offset', 'heading', start, turns, 'linear', _yaw_offset, 'rad')
    few = tuple(10.0**decade for decade in DECADES if abs(decade) <= 2.0)
    heard = [one.topic for one in setup.filter.sources if one.topic != NAVSAT_TOPIC]
    for topic in [*heard, *(['gps/fix'] if navsat is not None else [])]:
        start = setup.case.covariance.get(topic, 1.0)
        levels = tuple(start * factor for factor in few)
        change = partial(_covariance, topic)
        yield Tunable(f'covariance.{topic}', 'covariance', start, levels, 'log', change)


def thresholds(source: SourceConfig) -> Mapping[str, str]:
    """Return the gates of an input: field of its configuration to name of the parameter.

    Only of parts that it measures.

    Examples
    --------
    >>> imu = JudgeSetup.load('clean').filter.sources[1]
    >>> thresholds(imu)['twist_threshold']
    'imu0_twist_rejection_threshold'
    """
    parts = {'pose': source.mask[:6], 'twist': source.mask[6:12], 'acceleration': source.mask[12:]}
    middle = {'pose': '_pose', 'twist': '_twist', 'acceleration': '_linear_acceleration'}
    plain = source.kind in ('pose', 'twist')
    return {
        f'{part}_threshold': f'{source.name}{"" if plain else middle[part]}_rejection_threshold'
        for part, mask in parts.items()
        if mask.any()
    }


def _switches(source: SourceConfig, *, planar: bool) -> Iterator[Tunable]:
    measured = _MEASURED[source.kind]
    if source.topic == NAVSAT_TOPIC:
        measured = range(2 if planar else 3)
    for state in measured:
        if planar and state in TWO_D_STATES:
            continue
        start = float(source.mask[state])
        name = f'{source.name}_config.{_STATES[state]}'
        change = partial(_component, source.name, state)
        yield Tunable(name, 'inputs', start, (1.0 - start,), 'choice', change)
    if source.mask[:6].any() and source.kind != 'twist':
        start = float(source.differential)
        change = partial(_source, source.name, 'differential')
        name = f'{source.name}_differential'
        yield Tunable(name, 'inputs', start, (1.0 - start,), 'choice', change)


def _noise(block: int, setup: JudgeSetup, factor: float) -> JudgeSetup:
    root = np.ones(15)
    root[3 * block : 3 * block + 3] = math.sqrt(factor)
    noise = setup.filter.process_noise * np.outer(root, root)
    return _with_filter(setup, process_noise=noise)


def _component(name: str, state: int, setup: JudgeSetup, value: float) -> JudgeSetup:
    mask = next(one.mask for one in setup.filter.sources if one.name == name).copy()
    mask[state] = value
    return _source(name, 'mask', setup, mask)


def _source(name: str, field: str, setup: JudgeSetup, value: Any) -> JudgeSetup:
    value = bool(value) if field == 'differential' else value
    sources = tuple(
        dataclasses.replace(one, **{field: value}) if one.name == name else one
        for one in setup.filter.sources
    )
    return _with_filter(setup, sources=sources)


def _yaw_offset(setup: JudgeSetup, value: float) -> JudgeSetup:
    assert setup.navsat is not None
    return dataclasses.replace(setup, navsat=dataclasses.replace(setup.navsat, yaw_offset=value))


def _covariance(topic: str, setup: JudgeSetup, value: float) -> JudgeSetup:
    factors = {**setup.case.covariance, topic: value}
    return dataclasses.replace(setup, case=dataclasses.replace(setup.case, covariance=factors))


def _with_filter(setup: JudgeSetup, **changes: Any) -> JudgeSetup:
    return dataclasses.replace(setup, filter=dataclasses.replace(setup.filter, **changes))
