# SPDX-License-Identifier: Apache-2.0
"""A characterised GPS as model files that `simulate` and `vepd` take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sim_sensors.gps import GpsModel
from sim_sensors.parameters import Parameters

__all__ = ['gps_yaml']


def gps_yaml(
    model: GpsModel, about: Sequence[str] = (), remarks: Mapping[str, str] | None = None
) -> str:
    """Return a model as YAML; keys that have their default are left out.

    Parameters
    ----------
    model : GpsModel
    about : sequence of str
        Lines of comment at the top.
    remarks : mapping, optional
        Comment by key: where its value is from.
    """
    remarks = remarks or {}
    plain = GpsModel()
    mapping = model.to_mapping()
    lines = [f'# {line}' if line else '#' for line in about]
    lines += ['model: gps', f'rate: {model.rate!r}  # Hz']
    for name in ('frame_id', 'lever_arm'):
        if getattr(model, name) != getattr(plain, name):
            lines.append(f'{name}: {mapping[name]!r}' + _unit(model, name))
    for part in ('noise', 'covariance'):
        values: dict[str, Any] = mapping[part]
        own: Parameters = getattr(model, part)
        default = type(own)()
        lines += [f'{part}:', f'  model: {values["model"]}']
        for name in own.declared():
            # What was fitted is said even where it happens to be the default.
            if getattr(own, name) != getattr(default, name) or name in remarks:
                said = f'; {remarks[name]}' if name in remarks else ''
                lines.append(f'  {name}: {values[name]!r}{_unit(own, name)}{said}')
    return '\n'.join(lines) + '\n'


def _unit(owner: Parameters, name: str) -> str:
    unit = owner.declared()[name].unit
    return f'  # {unit}' if unit else ''
