# SPDX-License-Identifier: Apache-2.0
"""Any sensor model as a file that the catalogue reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml

from sim_sensors.parameters import Parameters
from sim_sensors.variants import to_variant

__all__ = ['model_yaml']


def model_yaml(
    model: Parameters, about: Sequence[str] = (), remarks: Mapping[str, str] | None = None
) -> str:
    """Return a model as YAML, with units and what there is to say of each parameter.

    Parts that are as by default throughout, such as outages when there are none, are left out.

    Parameters
    ----------
    model : GpsModel or ImuModel
    about : sequence of str
        Lines of comment at the top.
    remarks : mapping, optional
        Comment by dotted name.
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
