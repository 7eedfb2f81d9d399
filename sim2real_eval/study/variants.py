# SPDX-License-Identifier: Apache-2.0
"""Sensor models in a study file, and the simulated variants that they make."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import REAL_SENSOR, Twin
from sim_sensors.core.measurements import IntArray
from sim_sensors.core.parameters import from_variant, to_variant
from sim_sensors.core.registry import is_in_file
from sim_sensors.core.shipped import config_path
from sim_sensors.gps.gps import PAPER_MODELS
from sim_sensors.sensor.catalogue import KINDS, preset_names
from sim_sensors.sensor.sensor import SensorModel
from .entry import Entry

P = TypeVar('P', bound='SensorModel[Any]')

STAND_IN = 'stand_in'
"""Names the sensors of the demo, which none of the compared models copies."""


def read_twins(models: Entry, folder: Path) -> tuple[Twin, ...]:
    """Return the variants that `models` stands for.

    `models`: lists of models by kind of sensor, whose combinations are the variants, or a list of
    variants; `folder`: paths of model files are relative to it. Raises ParameterError for what is
    no model, a variant without a simulated sensor, or a label given twice.
    """
    if isinstance(models.value, list):
        twins = [_variant(entry, folder) for entry in models.items('variants')]
    else:
        twins = _product(models, folder)
    models.refuse_twice([twin.label for twin in twins], 'label of several variants')
    return tuple(twins)


_BASIC = ('gps', 'imu')
"""Kinds without which there is no study of GPS and IMU; with another kind either may be left out,
and then stays real.
"""


def _by_kind(entry: Entry, *beside: str) -> dict[str, Entry]:
    """Return the models of a variant, or the lists of models, by kind of sensor."""
    others = [name for name in KINDS.names() if name not in _BASIC]
    given = entry.value if isinstance(entry.value, dict) else {}
    required = () if any(name in given for name in others) else _BASIC
    fields = entry.fields((*beside, *_BASIC, *others), required=(*beside, *required))
    real = {name: Entry(entry.where, entry.key, REAL_SENSOR) for name in _BASIC}
    return {**real, **{name: fields[name] for name in (*_BASIC, *others) if name in fields}}


def _variant(entry: Entry, folder: Path) -> Twin:
    chosen = _by_kind(entry, 'label')
    return _twin(entry, entry.field('label').label(REAL_SENSOR), chosen, folder)


def _product(models: Entry, folder: Path) -> list[Twin]:
    listed = {kind: _listed(entry, kind) for kind, entry in _by_kind(models).items()}
    twins = []
    for one in itertools.product(*listed.values()):
        chosen = dict(zip(listed, one, strict=True))
        named = [kind for kind, entry in chosen.items() if entry.value != REAL_SENSOR]
        shown = named
        # What all variants share need not be said in each.
        if len(listed) > len(_BASIC):
            shown = [kind for kind in named if len(listed[kind]) > 1] or named
        elif len(listed['imu']) == 1 and 'gps' in named:
            shown = ['gps']
        label = '+'.join(_label(chosen[kind]) for kind in shown)
        twin = _twin(models, label, chosen, folder)
        phrases = [
            words for kind in shown if (words := _phrase(KINDS.get(kind), chosen[kind], folder))
        ]
        is_shared = twin.imu is not None and len(listed['imu']) == 1
        shared = _label(chosen['imu']) if is_shared else ''
        twins.append(dataclasses.replace(twin, phrase='; '.join(phrases), shared_imu=shared))
    return twins


def _twin(owner: Entry, label: str, chosen: Mapping[str, Entry], folder: Path) -> Twin:
    models = {
        kind: read_model(KINDS.get(kind), entry, folder)
        for kind, entry in chosen.items()
        if entry.value != REAL_SENSOR
    }
    if not models:
        owner.refuse('GPS and IMU cannot both stay real: nothing to compare')
    return Twin(label, gps=models.pop('gps', None), imu=models.pop('imu', None), others=models)


def _phrase(kind: type[SensorModel[Any]], entry: Entry, folder: Path) -> str:
    """Return what a model is in a few words; nothing for one that is given by its parameters."""
    if not isinstance(entry.value, str) or entry.value in (REAL_SENSOR, STAND_IN):
        return ''
    return kind.phrase(entry.value, folder=folder)


def _listed(entry: Entry, kind: str) -> list[Entry]:
    """Return the entries of a list of models, the words paper and all written out."""
    found: list[Entry] = []
    for item in entry.items('models') if isinstance(entry.value, list) else [entry]:
        words = {'all': preset_names(kind), **({'paper': PAPER_MODELS} if kind == 'gps' else {})}
        values = words.get(str(item.value), [item.value])
        found += [Entry(item.where, item.key, value) for value in values]
    return found


def _label(entry: Entry) -> str:
    if isinstance(entry.value, dict):
        if 'label' not in entry.value:
            entry.field('label').refuse('is missing; a model given by its parameters needs one')
        return entry.field('label').label(REAL_SENSOR)
    name = entry.text()
    stem = Path(name).stem if name.endswith(('.yaml', '.yml')) else Path(name).name
    if is_in_file(name):
        stem = name.rpartition(':')[2]
    return Entry(entry.where, entry.key, stem.replace(':', '_')).label(REAL_SENSOR)


def read_model(kind: type[P], entry: Entry, folder: Path) -> P:
    """Return the model that an entry names or describes; paths are relative to `folder`."""
    if isinstance(entry.value, str):
        return _loaded(kind, entry, folder)
    if not isinstance(entry.value, dict):
        entry.refuse_value('a name, a file, or a mapping with the key base')
    given = {key: value for key, value in entry.value.items() if key not in ('label', 'base')}
    if 'base' in entry.value:
        base = _loaded(kind, entry.field('base'), folder)
        given = _over(to_variant(base), given)
    model: P = from_variant(kind.models, given, entry.where, entry.key)
    return model


def _loaded(kind: type[P], entry: Entry, folder: Path) -> P:
    name = entry.text()
    with entry.looked_up():
        if name == STAND_IN:
            return kind.load(config_path('demo', f'{kind.name}.yaml'))
        return kind.load(name, folder=folder)


def _over(base: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the base with what is given in its place; a part of another model replaces all."""
    result = dict(base)
    for key, value in given.items():
        old = result.get(key)
        result[key] = value
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            model = old.get('model')
            if value.get('model', model) == model:
                result[key] = _over(old, value)
    return result


@dataclasses.dataclass(frozen=True)
class Condition:
    """A condition under which the receiver works."""

    label: str = ''  # empty for a study that has none
    # From and until when there are no fixes, seconds since the first stamp of the
    # truth; the beginning belongs to the outage, the end does not.
    outages: tuple[tuple[float, float], ...] = ()
    # Hz; fixes that come sooner after the last one that is kept are left out.
    gps_rate: float | None = None

    def apply(self, recording: Recording, origin_ns: int) -> Recording:
        """Return the recording as it would be under the condition.

        Raises RecordingError when no fix is left.
        """
        fixes = recording.gps
        if fixes is None or (not self.outages and self.gps_rate is None):
            return recording
        kept = np.ones(len(fixes), dtype=np.bool_)
        for start, end in self.outages:
            since = (fixes.stamp_ns - origin_ns) * 1e-9
            kept &= (since < start) | (since >= end)
        if self.gps_rate is not None:
            kept[kept] = _thinned(fixes.stamp_ns[kept], self.gps_rate)
        if not kept.any():
            raise RecordingError(f'{recording.name}: condition {self.label} leaves no fix')
        return recording.with_messages('gps', fixes.take(kept))

    def to_mapping(self) -> dict[str, Any]:
        """Return the condition as plain values."""
        return {
            'label': self.label,
            'outages': [list(outage) for outage in self.outages],
            'gps_rate': self.gps_rate,
        }


def _thinned(stamp_ns: IntArray, rate: float) -> NDArray[np.bool_]:
    """Return which fixes come nearest to a grid of the rate that begins at the first fix."""
    slot = (stamp_ns - stamp_ns[0]) * (rate * 1e-9)
    # Jitter of stamps must not make every other gap twice as long: slots are half-way between.
    number = np.floor(slot + 0.5)
    kept = np.zeros(len(stamp_ns), dtype=np.bool_)
    for one in np.unique(number):
        inside = np.flatnonzero(number == one)
        kept[inside[np.argmin(np.abs(slot[inside] - one))]] = True
    return kept


def read_conditions(conditions: Entry | None) -> tuple[Condition, ...]:
    """Return the conditions of a study; one without a label where it has none.

    Raises ParameterError for a wrong entry, or a label given twice.
    """
    if conditions is None:
        return (Condition(),)
    found = [_read_of_condition(entry) for entry in conditions.items('conditions')]
    conditions.refuse_twice([one.label for one in found], 'label of several conditions')
    return tuple(found)


def _read_of_condition(entry: Entry) -> Condition:
    fields = entry.fields(('label', 'outages', 'gps_rate'), required=('label',))
    outages = []
    for outage in fields['outages'].items('outages') if 'outages' in fields else []:
        if not isinstance(outage.value, list) or len(outage.value) != 2:
            outage.refuse_value('[start, end] in seconds')
        start, end = (one.number('s', minimum=0.0) for one in outage.items('times'))
        if end <= start:
            outage.refuse_value('[start, end] with start < end')
        outages.append((start, end))
    rate = (
        fields['gps_rate'].number('Hz', minimum=0.0, above=True) if 'gps_rate' in fields else None
    )
    return Condition(fields['label'].label(), tuple(outages), rate)
