# SPDX-License-Identifier: Apache-2.0
"""Which parameters of a model are tuned, between which bounds and on which scale."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from sim2real_eval.simulation.twin import Twin
from sim_sensors.core.errors import ParameterError, not_among
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, from_variant, to_variant
from sim_sensors.gps.gps import GpsModel
from sim_sensors.imu.imu import ImuModel
from sim_sensors.sensor.sensor import SensorModel

OPTION = '--tune'
_KINDS: tuple[type[SensorModel[Any]], ...] = (GpsModel, ImuModel)
_AXES = 'xyz'
_DIGITS = 4
_DECADE = 10.0
_FORM = 'must be such as gps.noise.std=0.01:1 or imu.gyroscope.drift=1e-5:1e-2:log'


@dataclasses.dataclass(frozen=True)
class ParameterTarget:
    """Where in a model a tuned value goes."""

    sensor: str  # gps or imu
    path: tuple[str, ...]  # keys of the model file, outermost first
    # Axes of a parameter with one number per axis that get the value, out of `xyz`; empty: all, or
    # a parameter that is one number.
    axes: str = ''

    def __str__(self) -> str:
        return '.'.join([self.sensor, *self.path, *([self.axes] if self.axes else [])])


@dataclasses.dataclass(frozen=True)
class Tuned:
    """A number that is tuned.

    Attributes
    ----------
    targets : tuple of ParameterTarget
        Everything that is set to the number.
    low, high : float
        Bounds, in the unit of the parameter.
    log : bool
        Whether equal ratios count as equal steps, instead of equal differences.
    unit : str
    start : float
        What the model had; the mean of several axes.
    """

    targets: tuple[ParameterTarget, ...]
    low: float
    high: float
    log: bool
    unit: str
    start: float

    @property
    def name(self) -> str:
        """Targets as text."""
        return '+'.join(str(target) for target in self.targets)

    def value(self, unit: float) -> float:
        """Return the value at a coordinate from 0 (low) to 1 (high), to four digits.

        What is judged is then what the model file says.
        """
        if self.log:
            value = self.low * (self.high / self.low) ** unit
        else:
            value = self.low + (self.high - self.low) * unit
        rounded = float(f'{value:.{_DIGITS}g}')
        return min(max(rounded, self.low), self.high)

    def coordinate(self, value: float) -> float:
        """Return the coordinate of a value; not held to 0 to 1, for a start may be outside."""
        if self.log:
            least = self.low * 1e-3
            return math.log(max(value, least) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def tunable(twin: Twin) -> dict[str, tuple[float | tuple[float, ...], str]]:
    """Return value and unit of every number of the simulated sensors by its dotted name."""
    return {
        f'{kind.name}.{name}': (value, unit)
        for kind in _KINDS
        if (model := getattr(twin, kind.name)) is not None
        for name, value, unit in _numbers(model)
    }


def _numbers(
    owner: Parameters, prefix: str = ''
) -> Iterator[tuple[str, float | tuple[float, ...], str]]:
    """Yield dotted name, value and unit of every real number in a parameter set."""
    for name, declaration in owner.declared().items():
        value = getattr(owner, name)
        if declaration.kind is float or (declaration.kind is tuple and len(declaration.default)):
            yield f'{prefix}{name}', value, declaration.unit
    for name, part in owner.parts().items():
        if isinstance(part, Parameters):
            yield from _numbers(part, f'{prefix}{name}.')


def parse_tuned(texts: Sequence[str], twin: Twin) -> tuple[Tuned, ...]:
    """Return what --tune asks for; a ParameterError names what is wrong with which text.

    Each text has one or several, by comma, of `NAME[+NAME...][=LOW:HIGH[:log|:lin]]`. NAME is the
    dotted name of a parameter, with `gps.` or `imu.` before it unless one sensor alone is
    simulated, and with axes such as `.x` or `.xy` behind it where only those are meant. Without
    bounds: a decade to either side of the value that the model has. A sensor of `twin`, the models
    to start from, that stays real has no parameters.
    """
    entries = [entry.strip() for text in texts for entry in text.split(',') if entry.strip()]
    if not entries:
        raise ParameterError(OPTION, '', f'is missing; {_FORM}')
    found = [_parse(entry, twin) for entry in entries]
    taken: set[tuple[str, tuple[str, ...], str]] = set()
    for target in (target for tuned in found for target in tuned.targets):
        for axis in target.axes or _AXES:
            place = (target.sensor, target.path, axis)
            if place in taken:
                raise ParameterError(OPTION, '', f'{target} is given twice; must be given once')
            taken.add(place)
    return tuple(found)


def _parse(entry: str, twin: Twin) -> Tuned:
    names, equals, bounds = entry.partition('=')
    known = tunable(twin)
    targets = tuple(_target(name.strip(), known) for name in names.split('+'))
    value, unit = known['.'.join([targets[0].sensor, *targets[0].path])]
    if isinstance(value, tuple):
        chosen = [value[_AXES.index(axis)] for axis in targets[0].axes] or [*value[:3]]
    else:
        chosen = [value]
    start = chosen[0] if len(set(chosen)) == 1 else sum(chosen) / len(chosen)
    low, high, log = _bounds(entry, bounds if equals else None, start)
    tuned = Tuned(targets, low, high, log, unit, start)
    for bound in (low, high):
        # What the declaration does not allow is said in its own words.
        set_values(twin, (tuned,), (bound,))
    return tuned


def _target(
    name: str, known: Mapping[str, tuple[float | tuple[float, ...], str]]
) -> ParameterTarget:
    simulated = {whole.partition('.')[0] for whole in known}
    whole = name
    if name.partition('.')[0] not in [kind.name for kind in _KINDS]:
        if len(simulated) != 1:
            raise ParameterError(
                OPTION, '', f'{name!r} names no sensor; must begin with gps. or imu.'
            )
        whole = f'{min(simulated)}.{name}'
    if whole in known:
        sensor, *path = whole.split('.')
        return ParameterTarget(sensor, tuple(path))
    stem, _, axes = whole.rpartition('.')
    value, _ = known.get(stem, (0.0, ''))
    are_axes = axes and re.fullmatch('x?y?z?', axes)
    if isinstance(value, tuple) and len(value) == len(_AXES) and are_axes:
        sensor, *path = stem.split('.')
        return ParameterTarget(sensor, tuple(path), axes)
    raise ParameterError(OPTION, '', not_among(f'{name!r} is unknown', whole, known))


def _bounds(entry: str, text: str | None, start: float) -> tuple[float, float, bool]:
    if text is None:
        if start <= 0.0:
            raise ParameterError(
                OPTION, '', f'{entry!r} needs bounds, since the model has {start:g}; {_FORM}'
            )
        return float(f'{start / _DECADE:.4g}'), float(f'{start * _DECADE:.4g}'), True
    parts = text.split(':')
    try:
        low, high = float(parts[0]), float(parts[1])
        scale = parts[2] if len(parts) > 2 else ''
        known = len(parts) <= 3 and scale in ('', 'log', 'lin')
        if not known or not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError
    except (ValueError, IndexError):
        raise ParameterError(OPTION, '', f'{entry!r} is not allowed; {_FORM}') from None
    if not low < high:
        raise ParameterError(
            OPTION, '', f'{entry!r} is not allowed; the lower bound must be below the upper'
        )
    if scale == 'log' and low <= 0.0:
        raise ParameterError(OPTION, '', f'{entry!r} is not allowed; log needs bounds > 0')
    return low, high, low > 0.0 if not scale else scale == 'log'


def set_values(twin: Twin, tuned: Sequence[Tuned], values: Sequence[float] | FloatArray) -> Twin:
    """Return the twin with the tuned parameters set.

    Raises ParameterError for a value that a declaration does not allow.
    """
    models = {kind: getattr(twin, kind.name) for kind in _KINDS}
    mappings = {kind.name: to_variant(model) for kind, model in models.items() if model}
    for one, value in zip(tuned, values, strict=True):
        for target in one.targets:
            _set(mappings[target.sensor], target, float(value))
    made: dict[str, Any] = {
        kind.name: from_variant(kind.models, mappings[kind.name], OPTION, kind.name)
        for kind, model in models.items()
        if model
    }
    return dataclasses.replace(twin, **made)


def _set(mapping: Mapping[str, Any], target: ParameterTarget, value: float) -> None:
    owner: Any = mapping
    for key in target.path[:-1]:
        owner = owner[key]
    last = target.path[-1]
    if isinstance(owner[last], list):
        axes = target.axes
        owner[last] = [
            value if not axes or _AXES[i : i + 1] in axes else old
            for i, old in enumerate(owner[last])
        ]
    else:
        owner[last] = value


def model_yaml(
    model: Parameters, about: Sequence[str] = (), remarks: Mapping[str, str] | None = None
) -> str:
    """Return a model as YAML, with units and what there is to say of each parameter.

    Parts that are as by default throughout, such as outages when there are none, are left out.
    `about` are lines of comment at the top, `remarks` comments by dotted name.
    """
    lines = [f'# {line}' if line else '#' for line in about]
    lines += _lines(model, to_variant(model), '', '', remarks or {})
    return '\n'.join(lines) + '\n'


def _lines(
    owner: Parameters,
    mapping: Mapping[str, object],
    indent: str,
    path: str,
    remarks: Mapping[str, str],
) -> list[str]:
    parts, declared = owner.parts(), owner.declared()
    lines = []
    for key, value in mapping.items():
        if key in parts and isinstance(value, Mapping):
            if (
                'model' not in value
                and parts[key] == type(parts[key])()
                and not any(name.startswith(f'{path}{key}.') for name in remarks)
            ):
                continue
            lines.append(f'{indent}{key}:')
            lines += _lines(parts[key], value, f'{indent}  ', f'{path}{key}.', remarks)
            continue
        unit = declared[key].unit if key in declared else ''
        comment = '; '.join(filter(None, (unit, remarks.get(f'{path}{key}', ''))))
        lines.append(f'{indent}{key}: {_plain(value)}' + (f'  # {comment}' if comment else ''))
    return lines


def _plain(value: object) -> str:
    """Return a value on one line; numbers as Python writes them, which reads back exactly."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list) and all(isinstance(one, float) for one in value):
        return f'[{", ".join(map(repr, value))}]'
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix('\n').removesuffix('...').rstrip('\n')
