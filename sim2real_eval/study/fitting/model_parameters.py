# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of sensor models that are fitted: names, bounds, scales, and model files."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
    """Place in a model that a fitted value is written to.

    Attributes
    ----------
    sensor : str
        `gps` or `imu`.
    path : tuple of str
        Keys of the model file, outermost first.
    axes : str
        Letters of `xyz` that get the value, for a parameter with one number per axis. Empty for
        all axes and for a parameter that is one number.
    """

    sensor: str
    path: tuple[str, ...]
    axes: str = ''

    def __str__(self) -> str:
        return '.'.join([self.sensor, *self.path, *([self.axes] if self.axes else [])])


@dataclasses.dataclass(frozen=True)
class ModelParameter:
    """A number of a sensor model that is fitted.

    Attributes
    ----------
    targets : tuple of ParameterTarget
        Every place that is set to the number.
    low, high : float
        Bounds, in the unit of the parameter.
    log : bool
        Whether the search steps by equal ratios instead of equal differences.
    unit : str
    start : float
        Value of the given model; the mean of several axes.
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

    def value(self, coordinate: float) -> float:
        """Return the value at a coordinate from 0 (low) to 1 (high), to four digits.

        Rounding makes the judged value equal to that in the model file.
        """
        if self.log:
            value = self.low * (self.high / self.low) ** coordinate
        else:
            value = self.low + (self.high - self.low) * coordinate
        rounded = float(f'{value:.{_DIGITS}g}')
        return min(max(rounded, self.low), self.high)

    def coordinate(self, value: float) -> float:
        """Return the coordinate of a value; not clipped to 0 to 1, as a start may be outside."""
        if self.log:
            least = self.low * 1e-3
            return math.log(max(value, least) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


_Number = tuple[float | tuple[float, ...], str]
"""Value or values of a parameter, and its unit."""


def list_numbers(twin: Twin) -> dict[str, _Number]:
    """Return value and unit of every number of the simulated sensors, by dotted name."""
    return {
        f'{kind.name}.{name}': (value, unit)
        for kind in _KINDS
        if (model := getattr(twin, kind.name)) is not None
        for name, value, unit in _walk_numbers(model)
    }


def _walk_numbers(
    model: Parameters, prefix: str = ''
) -> Iterator[tuple[str, float | tuple[float, ...], str]]:
    for name, declaration in model.declarations().items():
        value = getattr(model, name)
        if declaration.kind is float or (declaration.kind is tuple and len(declaration.default)):
            yield f'{prefix}{name}', value, declaration.unit
    for name, part in model.parts().items():
        if isinstance(part, Parameters):
            yield from _walk_numbers(part, f'{prefix}{name}.')


def parse_parameters(texts: Sequence[str], twin: Twin) -> tuple[ModelParameter, ...]:
    """Return the parameters of the option --tune.

    Each text holds one or several, separated by commas, of `NAME[+NAME...][=LOW:HIGH[:log|:lin]]`.
    NAME is the dotted name of a parameter. It begins with `gps.` or `imu.` unless only one sensor
    is simulated, and ends with axes such as `.x` or `.xy` if only those are meant. The default
    bounds are a decade to either side of the value of the model.

    `twin` holds the models to start from; a sensor that stays real has no parameters. Raises
    ParameterError for a text that is wrong.
    """
    requests = [part.strip() for text in texts for part in text.split(',') if part.strip()]
    if not requests:
        raise ParameterError(OPTION, '', f'is missing; {_FORM}')
    parameters = [_parse_parameter(request, twin) for request in requests]
    occupied: set[tuple[str, tuple[str, ...], str]] = set()
    for target in (target for parameter in parameters for target in parameter.targets):
        for axis in target.axes or _AXES:
            place = (target.sensor, target.path, axis)
            if place in occupied:
                raise ParameterError(OPTION, '', f'{target} is given twice; must be given once')
            occupied.add(place)
    return tuple(parameters)


def _parse_parameter(request: str, twin: Twin) -> ModelParameter:
    names, equals, bounds = request.partition('=')
    numbers = list_numbers(twin)
    targets = tuple(_parse_target(name.strip(), numbers) for name in names.split('+'))
    value, unit = numbers['.'.join([targets[0].sensor, *targets[0].path])]
    if isinstance(value, tuple):
        axis_values = [value[_AXES.index(axis)] for axis in targets[0].axes] or [*value[:3]]
    else:
        axis_values = [value]
    start = axis_values[0]
    if len(set(axis_values)) > 1:
        start = sum(axis_values) / len(axis_values)
    low, high, log = _parse_bounds(request, bounds if equals else None, start)
    parameter = ModelParameter(targets, low, high, log, unit, start)
    for bound in (low, high):
        # The declaration of the parameter refuses bounds that it does not allow.
        set_values(twin, (parameter,), (bound,))
    return parameter


def _parse_target(name: str, numbers: Mapping[str, _Number]) -> ParameterTarget:
    sensors = {full_name.partition('.')[0] for full_name in numbers}
    full_name = name
    if name.partition('.')[0] not in [kind.name for kind in _KINDS]:
        if len(sensors) != 1:
            raise ParameterError(
                OPTION, '', f'{name!r} has no sensor; must begin with gps. or imu.'
            )
        full_name = f'{min(sensors)}.{name}'
    if full_name in numbers:
        sensor, *path = full_name.split('.')
        return ParameterTarget(sensor, tuple(path))
    stem, _, axes = full_name.rpartition('.')
    value, _ = numbers.get(stem, (0.0, ''))
    are_axes = axes and re.fullmatch('x?y?z?', axes)
    if isinstance(value, tuple) and len(value) == len(_AXES) and are_axes:
        sensor, *path = stem.split('.')
        return ParameterTarget(sensor, tuple(path), axes)
    raise ParameterError(OPTION, '', not_among(f'{name!r} is unknown', full_name, numbers))


def _parse_bounds(request: str, text: str | None, start: float) -> tuple[float, float, bool]:
    """Return lower and upper bound, and whether the scale is logarithmic."""
    if text is None:
        if start <= 0.0:
            raise ParameterError(
                OPTION, '', f'{request!r} needs bounds, since the model has {start:g}; {_FORM}'
            )
        return float(f'{start / _DECADE:.4g}'), float(f'{start * _DECADE:.4g}'), True
    parts = text.split(':')
    try:
        low, high = float(parts[0]), float(parts[1])
        scale = parts[2] if len(parts) > 2 else ''
        is_scale = len(parts) <= 3 and scale in ('', 'log', 'lin')
        if not is_scale or not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError
    except (ValueError, IndexError):
        raise ParameterError(OPTION, '', f'{request!r} is not allowed; {_FORM}') from None
    if not low < high:
        raise ParameterError(
            OPTION, '', f'{request!r} is not allowed; the lower bound must be below the upper'
        )
    if scale == 'log' and low <= 0.0:
        raise ParameterError(OPTION, '', f'{request!r} is not allowed; log needs bounds > 0')
    return low, high, low > 0.0 if not scale else scale == 'log'


def set_values(
    twin: Twin, parameters: Sequence[ModelParameter], values: Sequence[float] | FloatArray
) -> Twin:
    """Return the twin with the values of the parameters set.

    Raises ParameterError for a value that a declaration does not allow.
    """
    models = {kind: getattr(twin, kind.name) for kind in _KINDS}
    mappings = {kind.name: to_variant(model) for kind, model in models.items() if model}
    for parameter, value in zip(parameters, values, strict=True):
        for target in parameter.targets:
            _set_value(mappings[target.sensor], target, float(value))
    changed: dict[str, Any] = {
        kind.name: from_variant(kind.models, mappings[kind.name], OPTION, kind.name)
        for kind, model in models.items()
        if model
    }
    return dataclasses.replace(twin, **changed)


def _set_value(mapping: Mapping[str, Any], target: ParameterTarget, value: float) -> None:
    section: Any = mapping
    for key in target.path[:-1]:
        section = section[key]
    last = target.path[-1]
    if isinstance(section[last], list):
        section[last] = [
            value if not target.axes or _AXES[i : i + 1] in target.axes else old
            for i, old in enumerate(section[last])
        ]
    else:
        section[last] = value
