# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""One declaration per parameter: type, unit, range and meaning.

A model declares its parameters as fields of a frozen dataclass that derives from `Parameters`. The
YAML loader, the command line and the ROS parameter descriptors are all generated from that
declaration, so they cannot disagree.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from inspect import isabstract
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from .errors import ParameterError, UnknownNameError, did_you_mean, not_among
from .registry import Registry, file_of, is_in_file

P = TypeVar('P', bound='Parameters')

_KEY = 'sim2real.parameter'

LARGEST = 1e15
"""Largest magnitude of a parameter: no physical quantity is larger, and products of several such
numbers do not overflow."""

_NUMBER = re.compile(r'\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*', re.ASCII)
_NOT_FINITE = re.compile(r'\s*[+-]?(nan|inf|infinity)\s*', re.ASCII | re.IGNORECASE)

_NAMES = {bool: 'true or false', int: 'an integer', float: 'a number', str: 'a string'}


@dataclasses.dataclass(frozen=True)
class Parameter:
    """Declaration of one parameter."""

    # Its type is the type of the parameter. A tuple of 3 is a number per axis x, y, z; another
    # tuple is a list of that length, and an empty one a list of any length. An optional parameter
    # has the default None and the type `optional`.
    default: Any
    unit: str  # SI unit, `'1'` if dimensionless, `''` for flags and strings
    doc: str  # meaning, one sentence
    # Closed bounds of every number; `minimum_excluded` opens the lower one
    minimum: float | None = None
    maximum: float | None = None
    minimum_excluded: bool = False
    choices: tuple[str, ...] = ()  # allowed strings; empty means any
    # True when a change needs a restart of the model (rates, initial values)
    read_only: bool = False
    optional: type | None = None  # type of a parameter that may be None
    # False for a rarely needed option, which only --help-all shows
    common: bool = True

    @property
    def kind(self) -> type:
        """Python type of the value: bool, int, float, str or tuple."""
        return self.optional or type(self.default)

    def allowed_text(self) -> str:
        """Return the allowed values as text, with the unit."""
        if self.choices:
            return 'one of ' + ', '.join(self.choices)
        text = self._name()
        if self.minimum is not None:
            text += f' {">" if self.minimum_excluded else ">="} {self.minimum:g}'
        if self.maximum is not None:
            text += f'{" and" if self.minimum is not None else ""} <= {self.maximum:g}'
        return f'{text} [{self.unit}]' if self.unit not in ('', '1') else text

    def _name(self) -> str:
        if self.kind is not tuple:
            return _NAMES[self.kind]
        if not self.default:
            return 'a list of numbers'
        axes = ' (x, y, z)' if len(self.default) == 3 else ''
        return f'a number or a list of {len(self.default)} numbers{axes}'

    def parse(self, value: object, where: str, key: str) -> Any:
        """Return `value` as the declared type.

        Raises ParameterError with `where`, `key`, the value and what is allowed.
        """
        if value is None and self.optional is not None:
            return None
        parsed = self._convert(value)
        if parsed is None or not self._is_allowed(parsed):
            near = did_you_mean(value, self.choices)
            size = f', at most {LARGEST:g} in size' if _is_too_large(value) else ''
            problem = f'{value!r} is not allowed{near}; must be {self.allowed_text()}{size}'
            raise ParameterError(where, key, problem)
        return parsed

    def _convert(self, value: object) -> Any:
        kind = self.kind
        if kind is bool or kind is str:
            return value if isinstance(value, kind) else None
        if kind is int:
            # Integers of ROS have 64 bits.
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            return value if is_whole and -(2**63) <= value < 2**63 else None  # type: ignore[operator]
        if kind is float:
            return parse_number(value)
        length = len(self.default)
        if not length and not isinstance(value, (list, tuple)):
            return None
        entries = list(value) if isinstance(value, (list, tuple)) else [value] * length
        numbers = [parse_number(entry) for entry in entries]
        if (length and len(numbers) != length) or any(number is None for number in numbers):
            return None
        return tuple(numbers)

    def _is_allowed(self, value: Any) -> bool:
        if self.kind is str:
            return not self.choices or value in self.choices
        if self.kind is bool:
            return True
        low = -math.inf if self.minimum is None else self.minimum
        high = math.inf if self.maximum is None else self.maximum
        numbers = value if isinstance(value, tuple) else (value,)
        return all(
            low <= number <= high and not (self.minimum_excluded and number == low)
            for number in numbers
        )


def parse_float(text: str) -> float | None:
    """Return the number that a string represents, or None.

    `float` also accepts 1_000 and non-ASCII digits, which other programs do not.
    """
    return float(text) if _NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text) else None


def parse_number(value: object) -> float | None:
    """Return an int, a float, or a string such as 1e-3 as a float; None for anything else.

    YAML reads `1e-3` as a string. Numbers that are not finite or larger than `LARGEST` give None.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    number = parse_float(value) if isinstance(value, str) else value
    # All comparisons with NaN are false.
    return float(number) if number is not None and abs(number) <= LARGEST else None


def _is_too_large(value: object) -> bool:
    entries = value if isinstance(value, (list, tuple)) else [value]
    numbers = [entry for entry in entries if isinstance(entry, (int, float))]
    return any(LARGEST < abs(number) < math.inf for number in numbers)


def parameter(
    default: Any,
    unit: str,
    doc: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    minimum_excluded: bool = False,
    choices: tuple[str, ...] = (),
    read_only: bool = False,
    optional: type | None = None,
    common: bool = True,
) -> Any:
    """Declare a dataclass field as a parameter; see `Parameter` for the arguments.

    `above` is an exclusive minimum.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True)
    ... class Lamp(Parameters):
    ...     power: float = parameter(5.0, 'W', 'Electrical power.', minimum=0.0)
    >>> Lamp.from_mapping({'power': 7.0}, 'lamp.yaml')
    Lamp(power=7.0)
    >>> Lamp.from_mapping({'power': -1.0}, 'lamp.yaml')
    Traceback (most recent call last):
    sim_sensors.core.errors.ParameterError: lamp.yaml: power: -1.0 is not allowed; must be ...
    """
    if above is not None:
        minimum, minimum_excluded = above, True
    declaration = Parameter(
        default, unit, doc, minimum, maximum, minimum_excluded, choices, read_only, optional,
        common,
    )  # fmt: skip
    return dataclasses.field(default=default, metadata={_KEY: declaration})


def non_negative(default: Any, unit: str, doc: str, **options: Any) -> Any:
    """Declare a parameter whose numbers are not below 0; see `parameter`."""
    return parameter(default, unit, doc, minimum=0.0, **options)


def positive(default: Any, unit: str, doc: str, **options: Any) -> Any:
    """Declare a parameter whose numbers are above 0; see `parameter`."""
    return parameter(default, unit, doc, above=0.0, **options)


def rare(default: Any, unit: str, doc: str, **options: Any) -> Any:
    """Declare a parameter whose option only --help-all shows; see `parameter`."""
    return parameter(default, unit, doc, common=False, **options)


@dataclasses.dataclass(frozen=True)
class Parameters:
    """Base class of all parameter sets.

    They are immutable, are checked when they are created, and can be read from and written to
    plain mappings. Fields that are themselves `Parameters` are read from nested mappings.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True)
    ... class White(Parameters):
    ...     std: float = parameter(0.1, 'm', 'Standard deviation per sample.', minimum=0.0)
    >>> White.from_mapping({'std': -1}, 'white.yaml')
    Traceback (most recent call last):
    sim_sensors.core.errors.ParameterError: white.yaml: std: -1 is not allowed; must be ...
    """

    kind: ClassVar[str] = ''

    def __post_init__(self) -> None:
        kind = type(self)
        undeclared = [
            name
            for name, attribute in vars(kind).items()
            if isinstance(attribute, dataclasses.Field)
        ]
        if undeclared:
            # The dataclass would neither read nor use them.
            raise ParameterError(
                kind.__name__, ', '.join(undeclared),
                'in a class without @dataclasses.dataclass(frozen=True); add this decorator',
            )  # fmt: skip
        for name, declaration in self.declarations().items():
            object.__setattr__(
                self, name, declaration.parse(getattr(self, name), type(self).__name__, name)
            )
        self._check()

    def _check(self) -> None:
        """Refuse invalid combinations of allowed values; subclasses override this."""

    @classmethod
    def declarations(cls) -> dict[str, Parameter]:
        """Return the declarations of the scalar and per-axis parameters, in order."""
        return {
            field.name: field.metadata[_KEY]
            for field in dataclasses.fields(cls)
            if _KEY in field.metadata
        }

    def parts(self) -> dict[str, Parameters]:
        """Return the nested parameter sets by name, in order."""
        return {name: getattr(self, name) for name in self._nested()}

    @classmethod
    def _nested(cls) -> dict[str, type[Parameters]]:
        return {
            field.name: field.default_factory  # type: ignore[misc]
            for field in dataclasses.fields(cls)
            if isinstance(field.default_factory, type)
            and issubclass(field.default_factory, Parameters)
        }

    @classmethod
    def from_mapping(cls: type[P], mapping: Mapping[str, object], where: str, path: str = '') -> P:
        """Build from a plain mapping; unknown keys and wrong values are refused.

        Nested sets are nested mappings, and missing keys take their default. `where` is the file
        or option of the mapping and `path` its dotted path in it, for messages.

        Raises
        ------
        ParameterError
            For the first error.
        """
        if not isinstance(mapping, Mapping):
            raise ParameterError(
                where, path, f'{mapping!r} is not allowed; must be a mapping of parameters'
            )
        declared, nested = cls.declarations(), cls._nested()
        values: dict[str, Any] = {}
        for name, value in mapping.items():
            key = f'{path}.{name}' if path else str(name)
            if name in declared:
                values[name] = declared[name].parse(value, where, key)
            elif name in nested:
                values[name] = nested[name].from_mapping(value, where, key)  # type: ignore[arg-type]
            else:
                problem = not_among('unknown parameter', name, [*declared, *nested])
                raise ParameterError(where, key, problem)
        try:
            return cls(**values)
        except ParameterError as error:
            key = f'{path}.{error.key}' if path and error.key else error.key or path
            raise ParameterError(where, key, error.problem) from None

    def to_mapping(self) -> dict[str, Any]:
        """Return a plain mapping that `from_mapping` reads back to an equal set."""
        values = {name: getattr(self, name) for name in self.declarations()}
        return {
            **{name: list(v) if isinstance(v, tuple) else v for name, v in values.items()},
            **{name: part.to_mapping() for name, part in self.parts().items()},
        }


Varied = TypeVar('Varied', bound=Parameters)
V = TypeVar('V', bound='VariedParameters')


def variants(what: str, *bases: Any) -> Registry[Any]:
    """Return the registry of the parameter sets that derive from one of `bases`, by their `kind`.

    `what` names one such set in messages, with its article: 'a lens model'. Built-in sets are
    those in the package of the first base. Others come from files, or from entry points of the
    group `sim2real_sensors.sensor_models`, whose name must be the `kind` of the class.
    """
    return Registry(
        'sim2real_sensors.sensor_models',
        what,
        lambda candidate: (
            isinstance(candidate, type)
            and issubclass(candidate, bases)
            and not isabstract(candidate)
        ),
        # A top-level module belongs to no package.
        packages=tuple(filter(None, [bases[0].__module__.rpartition('.')[0]])),
        name_of=lambda candidate: str(vars(candidate).get('kind', '')),
        is_shared=True,
    )


def from_variant(
    models: Registry[type[Varied]], mapping: object, where: str, path: str = ''
) -> Varied:
    """Build the parameter set that `mapping['model']` names from the rest of `mapping`.

    The name may be a class in a file, `my_model.py:MyModel`. The path is relative to the folder of
    `where` if `where` is a file.

    Raises ParameterError if `mapping` is not a mapping, its model is missing or unknown, or a
    parameter is wrong.
    """
    if not isinstance(mapping, Mapping):
        raise ParameterError(
            where, path, f'{mapping!r} is not allowed; must be a mapping with the key model'
        )
    key = f'{path}.model' if path else 'model'
    name = mapping.get('model')
    if not isinstance(name, str):
        problem = f'{name!r} is not allowed' if 'model' in mapping else 'is missing'
        raise ParameterError(where, key, not_among(problem, '', models.names()))
    folder = Path(where).parent if Path(where).is_file() else None
    try:
        variant = models.get(name, where=where, key=key, folder=folder)
    except UnknownNameError as error:
        # Callers catch UnknownNameError to add a location; this error already has one.
        raise ParameterError(error.where, error.key, error.problem) from None
    if not is_in_file(name) and variant.kind != name:
        raise ParameterError(
            where,
            key,
            f'{name!r} is a class whose kind is {variant.kind!r}; the two must be equal',
        )
    parameters = {name: value for name, value in mapping.items() if name != 'model'}
    return variant.from_mapping(parameters, where, path)


def to_variant(parameters: Parameters) -> dict[str, Any]:
    """Return a mapping that `from_variant` reads back to an equal set."""
    variant = type(parameters)
    path = file_of(variant)
    name = variant.kind if path is None else f'{path}:{variant.__name__}'
    return {'model': name, **parameters.to_mapping()}


def override(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a nested mapping with some keys changed.

    Nested mappings are merged. A part whose `model` changes is replaced as a whole, because the
    keys of another model differ.

    Examples
    --------
    >>> override({'rate': 10, 'noise': {'std': 1, 'seed': 2}}, {'noise': {'std': 3}})
    {'rate': 10, 'noise': {'std': 3, 'seed': 2}}
    """
    merged = dict(base)
    for key, change in changes.items():
        part = merged.get(key)
        merged[key] = change
        if isinstance(part, Mapping) and isinstance(change, Mapping):
            model = part.get('model')
            if change.get('model', model) == model:
                merged[key] = override(part, change)
    return merged


def set_parameter(
    models: Registry[type[Varied]], base: Varied, path: str, value: object, where: str, prefix: str
) -> Varied:
    """Return a model with the parameter at a dotted path changed.

    Parameters
    ----------
    models : Registry
        Allowed classes of the model.
    base : Parameters
        Model that keeps all other parameters.
    path : str
        Dotted path of the parameter, such as `noise.std`.
    value : object
        New value, or a mapping of the changed keys of a nested set.
    where, prefix : str
        Option or file, and the key before the path, for messages.

    Raises
    ------
    ParameterError
        When there is no such parameter, or the value is not allowed.
    """
    *parents, name = path.split('.')
    mapping = to_variant(base)
    part: Any = mapping
    for depth, parent in enumerate(parents):
        if not isinstance(part.get(parent), Mapping):
            key = '.'.join([prefix, *parents[: depth + 1]])
            problem = f'has no parameter {".".join([*parents[depth + 1 :], name])!r}'
            if parent not in part:
                allowed = [name for name in part if name != 'model']
                problem = not_among('unknown parameter', parent, allowed)
            raise ParameterError(where, key, problem)
        part = part[parent]
    changes: dict[str, Any] = {name: value}
    for parent in reversed(parents):
        changes = {parent: changes}
    return from_variant(models, override(mapping, changes), where, prefix)


@dataclasses.dataclass(frozen=True)
class VariedParameters(Parameters):
    """Parameter set with fields whose class the key `model` selects."""

    varied: ClassVar[Mapping[str, Registry[Any]]] = {}
    """Registry of the allowed classes of each such field."""

    @classmethod
    def from_mapping(cls: type[V], mapping: Mapping[str, object], where: str, path: str = '') -> V:
        """Build from a plain mapping; the fields in `varied` name their class as `model`."""
        if not isinstance(mapping, Mapping):
            return super().from_mapping(mapping, where, path)
        fixed = {name: value for name, value in mapping.items() if name not in cls.varied}
        built = super().from_mapping(fixed, where, path)
        for name, models in cls.varied.items():
            if name in mapping:
                key = f'{path}.{name}' if path else name
                chosen = from_variant(models, mapping[name], where, key)
                try:
                    built = dataclasses.replace(built, **{name: chosen})
                except ParameterError as error:
                    raise ParameterError(where, error.key, error.problem) from None
        return built

    def to_mapping(self) -> dict[str, Any]:
        """Return a plain mapping that `from_mapping` reads back to an equal set."""
        parts = {name: to_variant(getattr(self, name)) for name in self.varied}
        return {**super().to_mapping(), **parts}
