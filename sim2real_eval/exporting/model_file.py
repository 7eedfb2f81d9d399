# SPDX-License-Identifier: Apache-2.0
"""Sensor models as YAML files that `sim2real simulate` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sim_sensors.core.parameters import Parameters, to_variant


def model_yaml(model: Parameters, about: Sequence[str] = ()) -> str:
    """Return a model as YAML, without what is the default, with `about` as comment at its top."""
    lines = [f'# {line}' if line else '#' for line in about]
    plain = to_variant(type(model)())
    return '\n'.join([*lines, *_rows(to_variant(model), plain, model, '')]) + '\n'


def _rows(
    mapping: Mapping[str, Any], plain: Mapping[str, Any], declared: Parameters, indent: str
) -> list[str]:
    """Return a line per parameter that is not the default; kind and rate are always there."""
    rows = []
    declarations, parts = declared.declarations(), declared.parts()
    for name, value in mapping.items():
        if value == plain.get(name) and name not in ('model', 'rate', 'variant'):
            continue
        if name in parts and isinstance(value, Mapping):
            rows.append(f'{indent}{name}:')
            default = plain.get(name, {})
            rows += _rows(value, default, parts[name], f'{indent}  ')
            continue
        unit = declarations[name].unit if name in declarations else ''
        note = f'  # {unit}' if unit not in ('', '1') else ''
        rows.append(f'{indent}{name}: {json.dumps(value)}{note}')
    return rows
