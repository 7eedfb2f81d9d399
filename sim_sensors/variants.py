# SPDX-License-Identifier: Apache-2.0
"""Parameter sets that are one of several kinds, distinguished by the key `model`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from sim_sensors.errors import ParameterError
from sim_sensors.parameters import Parameters

__all__ = ['VariedParameters', 'by_kind', 'from_variant', 'to_variant']

P = TypeVar('P', bound=Parameters)
V = TypeVar('V', bound='VariedParameters')


def by_kind(*variants: type[P]) -> dict[str, type[P]]:
    """Return a registry of parameter sets by their `kind`."""
    return {variant.kind: variant for variant in variants}


def from_variant(
    variants: Mapping[str, type[P]], mapping: object, where: str, path: str = ''
) -> P:
    """Build the parameter set that `mapping['model']` names from the rest of `mapping`.

    Raises
    ------
    ParameterError
        When it is no mapping, names no model or an unknown one, or a parameter is wrong.
    """
    allowed = 'one of ' + ', '.join(variants)
    if not isinstance(mapping, Mapping):
        raise ParameterError(
            where, path, f'{mapping!r} is not allowed; must be a mapping with the key model'
        )
    key = f'{path}.model' if path else 'model'
    if 'model' not in mapping:
        raise ParameterError(where, key, f'is missing; must be {allowed}')
    name = mapping['model']
    if not isinstance(name, str) or name not in variants:
        raise ParameterError(where, key, f'{name!r} is not allowed; must be {allowed}')
    rest = {name: value for name, value in mapping.items() if name != 'model'}
    return variants[name].from_mapping(rest, where, path)


def to_variant(parameters: Parameters) -> dict[str, Any]:
    """Return a mapping that `from_variant` reads back to an equal set."""
    return {'model': parameters.kind, **parameters.to_mapping()}


@dataclasses.dataclass(frozen=True)
class VariedParameters(Parameters):
    """A parameter set some of whose fields are each one of several kinds."""

    varied: ClassVar[Mapping[str, Mapping[str, type[Parameters]]]] = {}
    """Registry of the kinds of each such field."""

    @classmethod
    def from_mapping(cls: type[V], mapping: Mapping[str, object], where: str, path: str = '') -> V:
        """Build from a plain mapping in which the fields of `varied` each name their `model`."""
        if not isinstance(mapping, Mapping):
            return super().from_mapping(mapping, where, path)
        rest = {name: value for name, value in mapping.items() if name not in cls.varied}
        built = super().from_mapping(rest, where, path)
        for name, variants in cls.varied.items():
            if name in mapping:
                key = f'{path}.{name}' if path else name
                chosen = from_variant(variants, mapping[name], where, key)
                built = dataclasses.replace(built, **{name: chosen})
        return built

    def to_mapping(self) -> dict[str, Any]:
        """Return a plain mapping that `from_mapping` reads back to an equal set."""
        own = {name: to_variant(getattr(self, name)) for name in self.varied}
        return {**super().to_mapping(), **own}
