# SPDX-License-Identifier: Apache-2.0
"""Which parameters of a judge are tuned: those of robot_localization's nodes, or declared ones."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Protocol, TypeGuard, TypeVar

from sim2real_eval.judge.protocol import Judge
from sim2real_eval.judge.setup import JudgeSetup
from sim_sensors.core.errors import ParameterError, not_among
from sim_sensors.core.parameters import Parameter, Parameters
from .node_parameters import GROUPS, node_tunables
from .tunable import DECADES, Tunable

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
