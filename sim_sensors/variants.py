# SPDX-License-Identifier: Apache-2.0
"""Parameter sets that are one of several kinds, told apart by the key `model`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from sim_sensors.errors import ParameterError
from sim_sensors.parameters import Parameters

__all__ = ['by_kind', 'from_variant', 'to_variant']

P = TypeVar('P', bound=Parameters)


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
