# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of judges that can be tuned, and the parameter files of a tuned judge.

They are the parameters of robot_localization's nodes, or those that another judge declares.
"""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml

from sim2real_eval.judge.protocol import Judge
from sim2real_eval.judge.robot_localization.configuration import (
    NAVSAT_TOPIC,
    SourceConfig,
    gate_name,
)
from sim2real_eval.judge.robot_localization.parameter_file import (
    read_node_parameters,
    to_declared_types,
)
from sim2real_eval.judge.robot_localization.state import TWO_D_STATES
from sim2real_eval.judge.setup import JudgeSetup, node_of
from sim_sensors.core.errors import ParameterError, not_among
from sim_sensors.core.parameters import Parameter, Parameters

DECADES = (-4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Powers of ten by which a positive parameter is tried."""

_NEXT_TO_BOUND = 0.02


@dataclasses.dataclass(frozen=True)
class Tunable:
    """A parameter of a judge that can be tuned.

    Attributes
    ----------
    name : str
        Name in the file of the judge; parts of a parameter follow a dot.
    group : str
        One of `GROUPS`; `declared` for judges that declare their parameters.
    start : float
        Value in the user's file; 1 for factors; 0 and 1 for switches.
    levels : tuple of float
        Other values that are tried.
    scale : {'log', 'linear', 'choice'}
        Scale between the levels; a choice has no values between them.
    change : callable
        Takes a judge and a value, and returns the judge with it.
    unit : str

    Examples
    --------
    >>> gate = Tunable('gate', 'gates', 2.0, (3.0, math.inf), 'choice', min, 'sigma')
    >>> gate.bounds, gate.format_value(math.inf), gate.is_at_bound(math.inf)
    ((2.0, inf), 'none', False)
    """

    name: str
    group: str
    start: float
    levels: tuple[float, ...]
    scale: str
    change: Callable[[Any, float], Any]
    unit: str = ''

    @property
    def is_factor(self) -> bool:
        """Whether a value is a factor of what the file or the messages state."""
        return self.scale == 'log' and self.group != 'declared'

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest value."""
        values = (self.start, *self.levels)
        return min(values), max(values)

    def is_at_bound(self, value: float) -> bool:
        """Return whether a value of a scale is a bound, or next to it."""
        if self.scale == 'choice':
            return False
        low, high = map(self.coordinate, self.bounds)
        coordinate = self.coordinate(value)
        return min(coordinate - low, high - coordinate) < _NEXT_TO_BOUND

    def coordinate(self, value: float) -> float:
        """Return the search coordinate of a value: decades, or tenths of the unit."""
        return math.log10(value) if self.scale == 'log' else 10.0 * value

    def value(self, coordinate: float) -> float:
        """Return the value of a coordinate, clipped to the bounds."""
        value = 10.0**coordinate if self.scale == 'log' else coordinate / 10.0
        return min(max(value, self.bounds[0]), self.bounds[1])

    def format_value(self, value: float) -> str:
        """Return a value as text for tables."""
        if self.scale == 'choice' and not self.unit:
            return 'true' if value else 'false'
        if math.isinf(value):
            return 'none'
        return f'x {value:.3g}' if self.is_factor else f'{value:.4g}'


GROUPS = ('noise', 'gates', 'inputs', 'heading', 'covariance')
"""Groups of parameters, as --parameters names them."""

_NOISE_BLOCKS = ('position', 'orientation', 'velocity', 'angular_velocity', 'acceleration')
_STATES = (
    'x', 'y', 'z', 'roll', 'pitch', 'yaw', 'vx', 'vy', 'vz', 'vroll', 'vpitch', 'vyaw', 'ax', 'ay',
    'az',
)  # fmt: skip
_GATES = (2.0, 3.0, 4.0, 6.0, math.inf)
_YAW_STEPS = (-0.3, -0.1, -0.03, 0.03, 0.1, 0.3)
# States that messages of each kind of input can measure.
_MEASURED_STATES = {
    'odom': range(12),
    'pose': range(6),
    'twist': range(6, 12),
    'imu': (3, 4, 5, 9, 10, 11, 12, 13, 14),
}


def node_tunables(setup: JudgeSetup) -> Iterator[Tunable]:
    """Yield the parameters of robot_localization's nodes that can be tuned.

    Examples
    --------
    >>> noise = next(node_tunables(JudgeSetup.load('clean')))
    >>> noise.name, noise.start, noise.bounds
    ('process_noise_covariance.position', 1.0, (0.0001, 10000.0))
    >>> changed = noise.change(JudgeSetup.load('clean'), 4.0)
    >>> float(changed.filter.process_noise[0, 0])
    0.004
    """
    factors = tuple(10.0**decade for decade in DECADES)
    for block, name in enumerate(_NOISE_BLOCKS):
        full_name = f'process_noise_covariance.{name}'
        yield Tunable(full_name, 'noise', 1.0, factors, 'log', partial(_scale_noise, block))
    for source in setup.filter.sources:
        for field, key in gate_names(source).items():
            start = getattr(source, field)
            gates = tuple(gate for gate in _GATES if gate != start)
            change = partial(_set_input, source.name, field)
            yield Tunable(key, 'gates', start, gates, 'choice', change, 'sigma')
    for source in setup.filter.sources:
        yield from _input_switches(source, planar=setup.filter.two_d_mode)
    navsat = setup.navsat
    if navsat is not None and navsat.has_timer and navsat.datum is None:
        start = navsat.yaw_offset
        levels = tuple(start + step for step in _YAW_STEPS)
        yield Tunable('yaw_offset', 'heading', start, levels, 'linear', _set_yaw_offset, 'rad')
    near_factors = tuple(10.0**decade for decade in DECADES if abs(decade) <= 2.0)
    topics = [source.topic for source in setup.filter.sources if source.topic != NAVSAT_TOPIC]
    for topic in [*topics, *(['gps/fix'] if navsat is not None else [])]:
        start = setup.case.covariance.get(topic, 1.0)
        levels = tuple(start * factor for factor in near_factors)
        change = partial(_set_covariance, topic)
        yield Tunable(f'covariance.{topic}', 'covariance', start, levels, 'log', change)


def gate_names(source: SourceConfig) -> Mapping[str, str]:
    """Return the parameter name of each gate of an input, by field of its configuration.

    Only the parts that the input measures have gates.

    Examples
    --------
    >>> imu = JudgeSetup.load('clean').filter.sources[1]
    >>> gate_names(imu)['twist_threshold']
    'imu0_twist_rejection_threshold'
    """
    parts = {'pose': source.mask[:6], 'twist': source.mask[6:12], 'acceleration': source.mask[12:]}
    return {
        f'{part}_threshold': gate_name(source.name, part)
        for part, mask in parts.items()
        if mask.any()
    }


def _input_switches(source: SourceConfig, *, planar: bool) -> Iterator[Tunable]:
    """Yield the components of an input that can be switched, and its differential mode."""
    states = _MEASURED_STATES[source.kind]
    if source.topic == NAVSAT_TOPIC:
        states = range(2 if planar else 3)
    for state in states:
        if planar and state in TWO_D_STATES:
            continue
        start = float(source.mask[state])
        name = f'{source.name}_config.{_STATES[state]}'
        change = partial(_set_component, source.name, state)
        yield Tunable(name, 'inputs', start, (1.0 - start,), 'choice', change)
    if source.mask[:6].any() and source.kind != 'twist':
        start = float(source.differential)
        change = partial(_set_input, source.name, 'differential')
        name = f'{source.name}_differential'
        yield Tunable(name, 'inputs', start, (1.0 - start,), 'choice', change)


def _scale_noise(block: int, setup: JudgeSetup, factor: float) -> JudgeSetup:
    root = np.ones(15)
    root[3 * block : 3 * block + 3] = math.sqrt(factor)
    noise = setup.filter.process_noise * np.outer(root, root)
    return _replace_in_filter(setup, process_noise=noise)


def _set_component(name: str, state: int, setup: JudgeSetup, value: float) -> JudgeSetup:
    mask = next(source.mask for source in setup.filter.sources if source.name == name).copy()
    mask[state] = value
    return _set_input(name, 'mask', setup, mask)


def _set_input(name: str, field: str, setup: JudgeSetup, value: Any) -> JudgeSetup:
    value = bool(value) if field == 'differential' else value
    sources = tuple(
        dataclasses.replace(source, **{field: value}) if source.name == name else source
        for source in setup.filter.sources
    )
    return _replace_in_filter(setup, sources=sources)


def _set_yaw_offset(setup: JudgeSetup, value: float) -> JudgeSetup:
    assert setup.navsat is not None
    return dataclasses.replace(setup, navsat=dataclasses.replace(setup.navsat, yaw_offset=value))


def _set_covariance(topic: str, setup: JudgeSetup, value: float) -> JudgeSetup:
    factors = {**setup.case.covariance, topic: value}
    return dataclasses.replace(setup, case=dataclasses.replace(setup.case, covariance=factors))


def _replace_in_filter(setup: JudgeSetup, **changes: Any) -> JudgeSetup:
    return dataclasses.replace(setup, filter=dataclasses.replace(setup.filter, **changes))


P = TypeVar('P', bound=Parameters)


def declared_tunables(judge: Judge) -> Iterator[Tunable]:
    """Yield the switches and the positive numbers among the declared parameters of a judge.

    A number is tried at powers of ten times its value, within its declared range. Zero has no
    such neighbours, and a negative number has no natural range.

    Examples
    --------
    >>> from sim2real_eval.judge.inertial.error_state import ErrorStateJudge
    >>> noise = next(declared_tunables(ErrorStateJudge.load()))
    >>> noise.name, noise.start, noise.format_value(noise.bounds[1])
    ('gyroscope_noise', 0.003, '30')
    >>> noise.change(ErrorStateJudge.load(), 0.5).parameters.gyroscope_noise
    0.5
    """
    if judge.parameters is not None:
        yield from _walk_declared(judge.parameters, ())


def _walk_declared(parameters: Parameters, path: tuple[str, ...]) -> Iterator[Tunable]:
    for name, declaration in parameters.declarations().items():
        value, full_path = getattr(parameters, name), (*path, name)
        full_name, change = '.'.join(full_path), partial(_set_declared, full_path)
        if isinstance(value, bool):
            yield Tunable(full_name, 'declared', float(value), (1.0 - value,), 'choice', change)
        elif isinstance(value, float) and value > 0.0:
            levels = _levels(value, declaration)
            yield Tunable(full_name, 'declared', value, levels, 'log', change, declaration.unit)
    for name, part in parameters.parts().items():
        yield from _walk_declared(part, (*path, name))


def _levels(value: float, declaration: Parameter) -> tuple[float, ...]:
    low = max(declaration.minimum or 0.0, 0.0)
    high = math.inf if declaration.maximum is None else declaration.maximum
    decades = [value * 10.0**decade for decade in DECADES]
    levels = {level for level in decades if low < level < high}
    if low >= decades[0] and not declaration.minimum_excluded:
        levels.add(low)
    if high <= decades[-1]:
        levels.add(high)
    # Zero has no logarithm.
    return tuple(sorted(levels - {0.0, value}))


def _set_declared(path: Sequence[str], judge: Judge, value: float) -> Judge:
    assert judge.parameters is not None
    return judge.with_parameters(_replace_nested(judge.parameters, path, value))


def _replace_nested(parameters: P, path: Sequence[str], value: float) -> P:
    first, *inner_path = path
    before = getattr(parameters, first)
    after: Any = bool(value) if isinstance(before, bool) else value
    if inner_path:
        after = _replace_nested(before, inner_path, value)
    return dataclasses.replace(parameters, **{first: after})


def tunables(judge: Judge, names: Sequence[str] | None = None) -> tuple[Tunable, ...]:
    """Return the parameters with these names, parts of names, or groups.

    The default is the process noise of robot_localization's filters, and all declared parameters
    of another judge. Raises ParameterError for an unknown name, or a judge without parameters.

    Examples
    --------
    >>> names = ['imu0_config.ax', 'heading']
    >>> [tunable.name for tunable in tunables(JudgeSetup.load('clean'), names)]
    ['imu0_config.ax', 'yaw_offset']
    """
    groups: tuple[str, ...] = ()
    if isinstance(judge, JudgeSetup):
        available, groups, default = tuple(node_tunables(judge)), GROUPS, 'noise'
    else:
        available, default = tuple(declared_tunables(judge)), 'all'
    if not available:
        problem = f'{judge.name} declares no parameter that can be tuned; take another judge'
        raise ParameterError('--judge', '', problem)
    selected: list[Tunable] = []
    for name in [default] if names is None else names:
        matches = [
            tunable for tunable in available if name in ('all', tunable.group, tunable.name)
        ]
        matches = matches or [
            tunable for tunable in available if tunable.name.startswith(f'{name}.')
        ]
        if not matches and name not in (*groups, 'all'):
            choices = (*groups, 'all', *(tunable.name for tunable in available))
            problem = not_among(f'{name!r} is not allowed', name, choices)
            raise ParameterError('--parameters', '', problem)
        selected += [tunable for tunable in matches if tunable not in selected]
    if not selected:
        requested = ','.join(names or [default])
        raise ParameterError(
            '--parameters', '', f'{judge.name} has no tunable parameter {requested}'
        )
    return tuple(selected)


def set_parameters(judge: Judge, parameters: Sequence[Tunable], values: Sequence[float]) -> Judge:
    """Return the judge with these values of its parameters."""
    for parameter, value in zip(parameters, values, strict=True):
        if value != parameter.start:
            judge = parameter.change(judge, value)
    return judge


_WIDTH = 96


def parameter_files(
    start: Judge, judge: Judge, header: Sequence[str], comments: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    r"""Return the parameter files of a tuned judge by name.

    For robot_localization they are ekf.yaml or ukf.yaml, the file of navsat_transform_node, and
    case.yaml if covariances of topics were tuned. `ros2 run robot_localization ekf_node
    --ros-args --params-file ekf.yaml` and `--judge-config ekf.yaml` take the same file. It has
    every parameter that the given file has for the node.

    For another judge it is judge.yaml, the file of parameters that --judge-config takes.

    Parameters
    ----------
    start, judge : Judge
        As given, and tuned.
    header : sequence of str
        Comments at the top.
    comments : mapping
        Comments above a parameter, by its name in the file.

    Examples
    --------
    >>> clean = JudgeSetup.load('clean')
    >>> list(parameter_files(clean, clean, ['Nothing was tuned.'], {}))
    ['ekf.yaml', 'ekf_navsat.yaml']
    >>> from sim2real_eval.judge.inertial.error_state import ErrorStateJudge
    >>> judge = ErrorStateJudge.load()
    >>> text = parameter_files(judge, judge, ['As given.'], {'gravity': ['kept']})['judge.yaml']
    >>> text.splitlines()[0], '# kept\ngravity: 9.80665\n' in text
    ('# As given.', True)
    """
    if isinstance(start, JudgeSetup) and isinstance(judge, JudgeSetup):
        texts = _node_files(start, judge, comments)
    else:
        assert judge.parameters is not None
        texts = {'judge.yaml': _declared_yaml(judge.parameters.to_mapping(), (), comments)}
    return {name: _comment_lines(header, '') + text for name, text in texts.items()}


def _node_files(
    start: JudgeSetup, setup: JudgeSetup, comments: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    kind = 'ekf' if setup.filter.sigma_points is None else 'ukf'
    path = setup.files[0]
    changes = _filter_changes(start, setup)
    texts = {f'{kind}.yaml': _node_yaml(path, node_of(path, setup.case), changes, comments)}
    if setup.navsat is not None and start.navsat is not None and setup.navsat.has_timer:
        changes = {}
        if setup.navsat.yaw_offset != start.navsat.yaw_offset:
            changes['yaw_offset'] = setup.navsat.yaw_offset
        text = _node_yaml(setup.files[-1], 'navsat_transform', changes, comments)
        texts[f'{kind}_navsat.yaml'] = text
    if setup.case.covariance:
        tree = {'covariance': dict(setup.case.covariance)}
        texts['case.yaml'] = yaml.safe_dump(tree, sort_keys=False)
    return texts


def _filter_changes(start: JudgeSetup, setup: JudgeSetup) -> dict[str, Any]:
    """Return the changed parameters of the filter; None for one that is to be absent."""
    changes: dict[str, Any] = {}
    noise = setup.filter.process_noise
    if not np.array_equal(noise, start.filter.process_noise):
        is_diagonal = np.array_equal(noise, np.diag(np.diag(noise)))
        # robot_localization reads the matrix by columns.
        changes['process_noise_covariance'] = (np.diag(noise) if is_diagonal else noise.T).ravel()
    for before, after in zip(start.filter.sources, setup.filter.sources, strict=True):
        if not np.array_equal(before.mask, after.mask):
            changes[f'{after.name}_config'] = [bool(used) for used in after.mask]
        if before.differential != after.differential:
            changes[f'{after.name}_differential'] = after.differential
        for field, key in gate_names(after).items():
            gate = getattr(after, field)
            if gate != getattr(before, field):
                changes[key] = None if np.isinf(gate) else gate
    return changes


def _node_yaml(
    path: Path, node: str, changes: Mapping[str, Any], comments: Mapping[str, Sequence[str]]
) -> str:
    node_parameters = read_node_parameters(path, node)
    text = f'{node_parameters.node}:\n  ros__parameters:\n'
    for name, value in {**to_declared_types(node_parameters.values), **changes}.items():
        if value is None:
            continue
        value = value.tolist() if isinstance(value, np.ndarray) else value
        text += _comment_lines(comments.get(name, ()), '    ') + '    ' + _yaml_line(name, value)
    return text


def _declared_yaml(
    values: Mapping[str, Any], path: tuple[str, ...], comments: Mapping[str, Sequence[str]]
) -> str:
    indent, text = '  ' * len(path), ''
    for name, value in values.items():
        full_path = (*path, name)
        text += _comment_lines(comments.get('.'.join(full_path), ()), indent)
        if isinstance(value, Mapping):
            text += f'{indent}{name}:\n{_declared_yaml(value, full_path, comments)}'
        else:
            text += indent + _yaml_line(name, value)
    return text


def _yaml_line(name: str, value: object) -> str:
    # PyYAML quotes names that need it, such as off.
    text = yaml.safe_dump({name: value}, default_flow_style=True, width=math.inf)
    return text.strip()[1:-1] + '\n'


def _comment_lines(texts: Sequence[str], indent: str) -> str:
    lines = [line for text in texts for line in textwrap.wrap(text, _WIDTH - len(indent))]
    return ''.join(f'{indent}# {line}\n' for line in lines)
