# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensor models from the numbers of a data sheet, in the units in which sheets print them.

A sheet is a YAML file with `name`, `source`, `rate` and the keys of `SHEET_KEYS` below `gyroscope`
and `accelerometer`. Each value is a text with a unit, or a list of three for x, y, z. Other
quantities stay 0, and findings name them.

Two numbers need an interpretation:

noise_density
    `spectrum: two-sided`, the default, takes it as N, the Allan deviation of white noise at 1 s,
    as [Kalibr] does. `spectrum: one-sided` takes it as the root of a one-sided power spectral
    density, which is 2 N^2 by [IEEE952]: N is smaller by sqrt(2). Then the RMS noise of the sheet
    is the density times the root of the bandwidth.
bias_instability
    `stability: minimum`, the default, takes it as the lowest point of the Allan curve,
    0.664 B [IEEE952]. `stability: coefficient` takes it as B itself.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sim2real_eval.common.findings import Finding, assumed
from sim2real_eval.common.model_files import model_yaml
from sim_sensors.core.config_files import branch, check_keys, read_yaml
from sim_sensors.core.errors import ParameterError
from sim_sensors.imu.chain import ImuChain
from .imu_file import dithered_white, passed_bandwidth
from .sheet_units import UnitError, parse_quantity, parse_unit

NOT_STATED = assumed(
    'sheet.not_stated',
    'the sheet does not state {keys}: 0 in the model',
    'The model lacks these errors, so it is better than the sensor.',
    'add them to the file, or measure them with sim2real allan',
)
TWO_SIDED = assumed(
    'sheet.spectrum',
    'noise_density is taken as the Allan deviation of white noise at 1 s',
    'For a one-sided spectrum the white noise of the model is 1.41 times too large.',
    'write spectrum: two-sided to confirm, or spectrum: one-sided if the RMS noise of the sheet '
    'is the density times the root of the bandwidth',
)
MINIMUM = assumed(
    'sheet.stability',
    'bias_instability is taken as the lowest point of the Allan curve, 0.664 B',
    'If the sheet means B, the flicker of the model is 1.51 times too large.',
    'write stability: minimum to confirm, or stability: coefficient for B',
)
NO_RATE = assumed(
    'sheet.no_rate',
    'the file has no rate: {rate:g Hz} in the model',
    'The rate is a setting of the driver.',
    'add the rate, such as rate: 200 Hz',
)
DISAGREE = assumed(
    'sheet.disagree',
    '{key} and {other} of the sheet give white noise of {value:.3g} and {compared:.3g} {unit}; '
    'the first is used',
    'They may hold for other ranges or filters.',
    'remove the one that does not apply',
)

_FLICKER = 0.664  # Allan deviation of the plateau over B [IEEE952]
_UNITS = {'gyroscope': 'rad/s', 'accelerometer': 'm/s^2'}
_WALKS = {'gyroscope': 'angle_random_walk', 'accelerometer': 'velocity_random_walk'}
_AXES = 3


@dataclasses.dataclass(frozen=True)
class SheetKey:
    """A number of a data sheet.

    Attributes
    ----------
    unit : str
        A unit of its dimension; {u} is rad/s or m/s^2.
    example : tuple of (str, str)
        What sheets of gyroscopes and accelerometers print.
    fields : tuple of str
        Fields of `ErrorChain` that have the value as it is; empty if it is converted first.
    """

    unit: str
    example: tuple[str, str]
    fields: tuple[str, ...] = ()


SHEET_KEYS = {
    'noise_density': SheetKey('{u}/sqrt(Hz)', ('0.005 deg/s/sqrt(Hz)', '400 ug/sqrt(Hz)')),
    'angle_random_walk': SheetKey('{u}/sqrt(Hz)', ('0.3 deg/sqrt(h)', '')),
    'velocity_random_walk': SheetKey('{u}/sqrt(Hz)', ('', '0.04 m/s/sqrt(h)')),
    'rms_noise': SheetKey('{u}', ('0.05 deg/s', '1.8 mg')),
    'noise_bandwidth': SheetKey('Hz', ('100 Hz', '52 Hz')),
    'bias_instability': SheetKey('{u}', ('8 deg/h', '13 ug')),
    'random_walk': SheetKey(
        '{u}/s/sqrt(Hz)', ('5 deg/h/sqrt(h)', '0.1 mg/sqrt(h)'), ('random_walk',)
    ),
    'turn_on_bias': SheetKey('{u}', ('0.5 deg/s', '20 mg'), ('turn_on_std',)),
    'scale_error': SheetKey('1', ('0.5 %', '0.5 %'), ('scale',)),
    'cross_axis': SheetKey('1', ('2 %', '0.05 deg'), ('cross_axis_upper', 'cross_axis_lower')),
    'temperature_bias': SheetKey('{u}/K', ('0.01 deg/s/K', '0.2 mg/K'), ('temperature_bias',)),
    'temperature_scale': SheetKey('1/K', ('0.02 %/K', '100 ppm/K'), ('temperature_scale',)),
    'bandwidth': SheetKey('Hz', ('47 Hz', '145 Hz')),
    'range': SheetKey('{u}', ('2000 deg/s', '16 g'), ('range',)),
    'sensitivity': SheetKey('LSB/({u})', ('16.4 LSB/(deg/s)', '0.061 mg/LSB'), ('quantisation',)),
}  # fmt: skip
"""Keys of a sheet, in the order of the documentation."""

_WORDS = {'spectrum': ('two-sided', 'one-sided'), 'stability': ('minimum', 'coefficient')}
# Alternatives of the density of white noise, the plainest first.
_WHITE = ('angle_random_walk', 'velocity_random_walk', 'noise_density', 'rms_noise')
_REPORTED = (
    'bias_instability', 'random_walk', 'turn_on_bias', 'scale_error', 'cross_axis', 'bandwidth',
    'range', 'sensitivity',
)  # fmt: skip

Triple = tuple[float, float, float]


@dataclasses.dataclass(frozen=True, eq=False)
class DataSheet:
    """Sensor model of a data sheet, and what the sheet leaves open."""

    name: str
    source: str
    model: ImuChain
    notes: tuple[Finding, ...]

    def to_yaml(self) -> str:
        """Return the model as YAML for `sim2real simulate --imu FILE`, with the notes."""
        header = [f'{self.name} by its data sheet', *filter(None, [self.source])]
        return model_yaml(self.model, [*header, *(str(note) for note in self.notes)])


def read_sheet(path: str | Path) -> DataSheet:
    """Read a file with the numbers of a data sheet.

    Raises
    ------
    ParameterError
        When a key or a unit is unknown, or a unit measures another quantity.
    """
    path = Path(path)
    where, tree = str(path), read_yaml(path)
    if not isinstance(tree, Mapping):
        raise ParameterError(where, '', 'is no mapping; must have gyroscope or accelerometer')
    if not any(tree.get(quantity) for quantity in _UNITS):
        raise ParameterError(
            where, '', 'has neither gyroscope nor accelerometer; only sheets of an IMU are read. '
            'For a receiver, copy a preset such as zed_f9p_rtk (sim2real models), set its noise, '
            'or measure it: sim2real characterize'
        )  # fmt: skip
    check_keys(tree, ('name', 'source', 'rate', *_UNITS), where)
    for key in ('name', 'source'):
        if not isinstance(tree.get(key, ''), str):
            raise ParameterError(where, key, f'{tree[key]!r} is not allowed; must be a string')
    notes: list[Finding] = []
    mapping: dict[str, Any] = {}
    if 'rate' in tree:
        mapping['rate'] = _parse(tree['rate'], 'Hz', '200 Hz', where, 'rate')[0]
    else:
        notes.append(NO_RATE(rate=ImuChain().rate))
    rate = mapping.get('rate', ImuChain().rate)
    for quantity in _UNITS:
        if tree.get(quantity):
            part = branch(tree, quantity, where)
            mapping[quantity] = _triad(part, quantity, rate, where, notes)
        else:
            notes.append(NOT_STATED(quantity, keys='any number'))
    name = tree.get('name', path.stem)
    model = ImuChain.from_mapping(_rounded(mapping), where)
    return DataSheet(name, tree.get('source', ''), model, tuple(notes))


def _rounded(value: Any) -> Any:
    """Return a tree with its numbers rounded to 9 digits, for a file that people read."""
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(entry) for entry in value]
    return float(f'{value:.9g}')


def _triad(
    part: Mapping[str, Any], quantity: str, rate: float, where: str, notes: list[Finding]
) -> dict[str, Any]:
    """Return the parameters of a triad in SI units, and add to the notes."""
    walk = _WALKS[quantity]
    keys = [key for key in SHEET_KEYS if key not in _WALKS.values() or key == walk]
    check_keys(part, (*keys, *_WORDS), where, f'{quantity}.')
    for key, words in _WORDS.items():
        if part.get(key, words[0]) not in words:
            problem = f'{part[key]!r} is not allowed; must be one of {", ".join(words)}'
            raise ParameterError(where, f'{quantity}.{key}', problem)
    sizes: dict[str, Triple] = {}
    for key in keys:
        if key in part:
            sheet_key = SHEET_KEYS[key]
            example = sheet_key.example[list(_UNITS).index(quantity)]
            unit = sheet_key.unit.format(u=_UNITS[quantity])
            sizes[key] = _parse(part[key], unit, example, where, f'{quantity}.{key}')
    values: dict[str, Any] = {
        field: sizes[key] for key in sizes for field in SHEET_KEYS[key].fields
    }
    if 'bandwidth' in sizes:
        values['bandwidth'] = sizes['bandwidth'][0]
    if 'bias_instability' in sizes:
        is_minimum = part.get('stability', 'minimum') == 'minimum'
        factor = 1.0 / _FLICKER if is_minimum else 1.0
        values['bias_instability'] = [factor * value for value in sizes['bias_instability']]
        if 'stability' not in part:
            notes.append(MINIMUM(quantity))
    density = _density(part, sizes, quantity, where, notes)
    if density is not None:
        steps = sizes.get('sensitivity', (0.0, 0.0, 0.0))
        passed = passed_bandwidth(values['bandwidth'], 2) if 'bandwidth' in values else None
        # The noise that a sheet states includes the rounding.
        values['noise_density'] = [
            dithered_white(value, rate, step, passed)[0]
            for value, step in zip(density, steps, strict=True)
        ]
    missing = [key for key in _REPORTED if key not in sizes]
    if density is None:
        missing.insert(0, 'noise_density')
    if missing:
        notes.append(NOT_STATED(quantity, keys=', '.join(missing)))
    return values


def _density(
    part: Mapping[str, Any],
    sizes: Mapping[str, Triple],
    quantity: str,
    where: str,
    notes: list[Finding],
) -> list[float] | None:
    """Return the white noise N of each axis, in SI units, or None if the sheet does not tell."""
    densities: dict[str, list[float]] = {}
    for key in _WHITE:
        if key not in sizes:
            continue
        factor = 1.0
        if key == 'noise_density' and part.get('spectrum') == 'one-sided':
            factor = math.sqrt(0.5)
        if key == 'rms_noise':
            if 'noise_bandwidth' not in sizes:
                problem = 'needs noise_bandwidth, Hz, over which that noise is measured'
                raise ParameterError(where, f'{quantity}.rms_noise', problem)
            # The two-sided density N^2 fills both sides of the band.
            factor = 1.0 / math.sqrt(2.0 * sizes['noise_bandwidth'][0])
        densities[key] = [factor * value for value in sizes[key]]
    if not densities:
        return None
    (key, density), *alternatives = densities.items()
    for other, compared in alternatives:
        pairs = zip(density, compared, strict=True)
        if any(not math.isclose(a, b, rel_tol=0.1) for a, b in pairs):
            numbers = {'value': density[0], 'compared': compared[0]}
            unit = f'{_UNITS[quantity]}/sqrt(Hz)'
            notes.append(DISAGREE(quantity, key=key, other=other, unit=unit, **numbers))
    if key == 'noise_density' and 'spectrum' not in part:
        notes.append(TWO_SIDED(quantity))
    return density


def _parse(value: object, unit: str, example: str, where: str, key: str) -> Triple:
    """Return a number per axis in SI units; a sensitivity becomes a step per LSB."""
    entries = value if isinstance(value, list) else [value] * _AXES
    if len(entries) != _AXES:
        problem = (
            f'{value!r} is not allowed; must be a string or a list of {_AXES} strings (x, y, z)'
        )
        raise ParameterError(where, key, problem)
    x, y, z = (_parse_one(entry, unit, example, where, key) for entry in entries)
    return x, y, z


def _parse_one(entry: object, unit: str, example: str, where: str, key: str) -> float:
    expected = parse_unit(unit)
    allowed = f'must be a number and a unit of {unit}, such as {example}'
    try:
        size, entry_unit = parse_quantity(str(entry))
    except UnitError as error:
        raise ParameterError(where, key, f'{error}; {allowed}') from None
    is_step = unit.startswith('LSB')
    if is_step and entry_unit.is_like(expected):
        size = 1.0 / size if size else 0.0
    elif is_step and entry_unit.is_like(expected.raised(-1.0)):
        pass
    elif not entry_unit.is_like(expected) and not (
        unit == '1' and entry_unit.is_like(parse_unit('rad'))
    ):
        raise ParameterError(where, key, f'{entry!r} measures something else; {allowed}')
    if size < 0.0 or (size == 0.0 and (is_step or unit == 'Hz')):
        raise ParameterError(where, key, f'{entry!r} is too small; {allowed}')
    return size
