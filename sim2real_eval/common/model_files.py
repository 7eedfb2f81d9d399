# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensor models as YAML files that `sim2real simulate` reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from sim_sensors.core.parameters import Parameters, to_variant

# Keys that are always written.
_ALWAYS = ('model', 'rate', 'variant')


def model_yaml(
    model: Parameters,
    header: Sequence[str] = (),
    comments: Mapping[str, str] | None = None,
    *,
    with_defaults: bool = False,
) -> str:
    """Return a model as YAML with units and comments.

    Parameters
    ----------
    model : Parameters
    header : sequence of str
        Comment lines at the top.
    comments : dict, optional
        Comments by dotted name; parameters with a comment are written even if they are defaults.
    with_defaults : bool
        Write parameters that have their default values. Parts that have only default values, such
        as outages when there are none, are still left out.
    """
    lines = [f'# {line}' if line else '#' for line in header]
    lines += _rows(model, to_variant(model), '', '', comments or {}, with_defaults)
    return '\n'.join(lines) + '\n'


def _rows(
    model: Parameters,
    mapping: Mapping[str, object],
    indent: str,
    path: str,
    comments: Mapping[str, str],
    with_defaults: bool,
) -> list[str]:
    parts, declared = model.parts(), model.declarations()
    defaults: Mapping[str, Any] = {} if with_defaults else to_variant(type(model)())
    rows = []
    for key, value in mapping.items():
        name = f'{path}{key}'
        if key in parts and isinstance(value, Mapping):
            is_default = 'model' not in value and parts[key] == type(parts[key])()
            if is_default and not any(comment.startswith(f'{name}.') for comment in comments):
                continue
            rows.append(f'{indent}{key}:')
            rows += _rows(parts[key], value, f'{indent}  ', f'{name}.', comments, with_defaults)
            continue
        is_default = key in defaults and value == defaults[key]
        if is_default and key not in _ALWAYS and name not in comments:
            continue
        unit = declared[key].unit if key in declared else ''
        # A reproduced defect of a simulator may take the numbers in another unit.
        unit = getattr(model, 'upstream_units', {}).get(key, unit)
        comment = '; '.join(filter(None, ('' if unit == '1' else unit, comments.get(name, ''))))
        rows.append(f'{indent}{key}: {_text(value)}' + (f'  # {comment}' if comment else ''))
    return rows


def _text(value: object) -> str:
    """Return a value on one line; numbers as Python writes them, which reads back exactly."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list) and all(isinstance(number, float) for number in value):
        return f'[{", ".join(map(repr, value))}]'
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix('\n').removesuffix('...').rstrip('\n')
