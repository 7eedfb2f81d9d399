# SPDX-License-Identifier: Apache-2.0
"""Which parameters of a judge are tuned: those of robot_localization's nodes, or declared ones."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeGuard, TypeVar

import numpy as np

from sim2real_eval.judge.protocol import Judge
from sim2real_eval.judge.robot_localization.configuration import NAVSAT_TOPIC, SourceConfig
from sim2real_eval.judge.robot_localization.state import TWO_D_STATES
from sim2real_eval.judge.setup import JudgeSetup
from sim_sensors.core.errors import ParameterError, not_among
from sim_sensors.core.parameters import Parameter, Parameters

DECADES = (-4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Powers of ten by which a positive parameter is tried."""

_NEXT = 0.02


@dataclasses.dataclass(frozen=True)
class Tunable:
    """One parameter that can be tuned.

    Attributes
    ----------
    name : str
        As the judge calls it; a part of it behind a dot.
    group : str
        Of `GROUPS`; `declared` of judges that declare their parameters.
    start : float
        Value in the user's file; 1 of factors; 0 and 1 of switches.
    levels : tuple of float
        Other values that are tried.
    scale : {'log', 'linear', 'choice'}
        Of the values between the levels; a choice has none.
    change : callable
        Takes a judge and a value, and returns the judge with it.
    unit : str

    Examples
    --------
    >>> gate = Tunable('gate', 'gates', 2.0, (3.0, math.inf), 'choice', min, 'sigma')
    >>> gate.bounds, gate.shown(math.inf), gate.is_bound(math.inf)
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
        """Whether a value is a factor of what the file or the messages say."""
        return self.scale == 'log' and self.group != 'declared'

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest value."""
        values = (self.start, *self.levels)
        return min(values), max(values)

    def is_bound(self, value: float) -> bool:
        """Say whether a value of a scale is a bound, or next to it."""
        if self.scale == 'choice':
            return False
        low, high = map(self.coordinate, self.bounds)
        return min(self.coordinate(value) - low, high - self.coordinate(value)) < _NEXT

    def coordinate(self, value: float) -> float:
        """Return where a value is on the scale of the search: decades, or tenths of the unit."""
        return math.log10(value) if self.scale == 'log' else 10.0 * value

    def value(self, coordinate: float) -> float:
        """Return the value of a coordinate, as near as the bounds allow."""
        value = 10.0**coordinate if self.scale == 'log' else coordinate / 10.0
        return min(max(value, self.bounds[0]), self.bounds[1])

    def shown(self, value: float) -> str:
        """Return a value as people read it."""
        if self.scale == 'choice' and not self.unit:
            return 'true' if value else 'false'
        if math.isinf(value):
            return 'none'
        return f'x {value:.3g}' if self.is_factor else f'{value:.4g}'


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


P = TypeVar('P', bound=Parameters)


class DeclaredJudge(Judge, Protocol):
    """A judge whose parameters are declared."""

    @property
    def parameters(self) -> Parameters:
        """Its parameters."""

    def with_parameters(self, parameters: Any) -> Judge:
        """Return the judge with other ones."""


def has_parameters(judge: Judge) -> TypeGuard[DeclaredJudge]:
    """Say whether a judge declares parameters."""
    return isinstance(getattr(judge, 'parameters', None), Parameters)


def declared_tunables(judge: Judge) -> Iterator[Tunable]:
    """Yield the switches and the positive numbers among the parameters of a judge.

    A number is tried at powers of ten times its value, within what is allowed. 0 has no such
    neighbours, and of a negative number nothing says how far it may be changed.

    Examples
    --------
    >>> from sim2real_eval.judge.inertial.error_state import ErrorStateJudge
    >>> noise = next(declared_tunables(ErrorStateJudge.load()))
    >>> noise.name, noise.start, noise.shown(noise.bounds[1])
    ('gyroscope_noise', 0.003, '30')
    >>> noise.change(ErrorStateJudge.load(), 0.5).parameters.gyroscope_noise
    0.5
    """
    if has_parameters(judge):
        yield from _tunables(judge.parameters, ())


def _tunables(parameters: Parameters, path: tuple[str, ...]) -> Iterator[Tunable]:
    for name, declaration in parameters.declared().items():
        value, mine = getattr(parameters, name), (*path, name)
        full, change = '.'.join(mine), partial(_with_value, mine)
        if isinstance(value, bool):
            yield Tunable(full, 'declared', float(value), (1.0 - value,), 'choice', change)
        elif isinstance(value, float) and value > 0.0:
            levels = _levels(value, declaration)
            yield Tunable(full, 'declared', value, levels, 'log', change, declaration.unit)
    for name, part in parameters.parts().items():
        yield from _tunables(part, (*path, name))


def _levels(value: float, declaration: Parameter) -> tuple[float, ...]:
    low = max(declaration.minimum or 0.0, 0.0)
    high = math.inf if declaration.maximum is None else declaration.maximum
    tried = [value * 10.0**decade for decade in DECADES]
    found = {one for one in tried if low < one < high}
    if low >= tried[0] and not declaration.minimum_excluded:
        found.add(low)
    if high <= tried[-1]:
        found.add(high)
    # Zero has no logarithm.
    return tuple(sorted(found - {0.0, value}))


def _with_value(path: Sequence[str], judge: DeclaredJudge, value: float) -> Judge:
    return judge.with_parameters(_replaced(judge.parameters, path, value))


def _replaced(parameters: P, path: Sequence[str], value: float) -> P:
    first, *rest = path
    before = getattr(parameters, first)
    now: Any = bool(value) if isinstance(before, bool) else value
    if rest:
        now = _replaced(before, rest, value)
    return dataclasses.replace(parameters, **{first: now})


def tunables(judge: Judge, names: Sequence[str] | None = None) -> tuple[Tunable, ...]:
    """Return the parameters of these names, parts of names, or groups.

    None: the process noise of robot_localization's filters, all that another judge declares.
    ParameterError for a name that there is not, or a judge that has none.

    Examples
    --------
    >>> [one.name for one in tunables(JudgeSetup.load('clean'), ['imu0_config.ax', 'heading'])]
    ['imu0_config.ax', 'yaw_offset']
    """
    groups: tuple[str, ...] = ()
    if isinstance(judge, JudgeSetup):
        known, groups, usual = tuple(node_tunables(judge)), GROUPS, 'noise'
    else:
        known, usual = tuple(declared_tunables(judge)), 'all'
    found: list[Tunable] = []
    for name in [usual] if names is None else names:
        mine = [one for one in known if name in ('all', one.group, one.name)]
        mine = mine or [one for one in known if one.name.startswith(f'{name}.')]
        if not mine and name not in (*groups, 'all'):
            choices = (*groups, 'all', *(one.name for one in known))
            problem = not_among(f'{name!r} is not allowed', name, choices)
            raise ParameterError('--parameters', '', problem)
        found += [one for one in mine if one not in found]
    if not found:
        asked = ','.join(names or [usual])
        raise ParameterError('--parameters', '', f'{asked}: {judge.name} has none to tune')
    return tuple(found)


def tuned(judge: Judge, parameters: Sequence[Tunable], values: Sequence[float]) -> Judge:
    """Return the judge with these values of its parameters."""
    for one, value in zip(parameters, values, strict=True):
        if value != one.start:
            judge = one.change(judge, value)
    return judge
