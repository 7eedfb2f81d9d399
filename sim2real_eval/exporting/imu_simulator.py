# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Base of the simulators whose IMU files can be written and read."""

from __future__ import annotations

import abc
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from sim_sensors.core.errors import ParameterError, did_you_mean
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import from_variant, override, to_variant
from sim_sensors.imu.chain import ErrorChain, ImuChain
from sim_sensors.imu.imu import ImuModel, load_imu
from sim_sensors.sensor.catalogue import UPSTREAM
from .law_fit import QUANTITIES, Law

Numbers = float | tuple[float, ...]
Keys = Mapping[str, Mapping[str, tuple[str, float]]]
"""Per triad and parameter of the model: the key in the file, and its unit in SI units."""


class ImuSimulator(abc.ABC):
    """A simulator: the law of its IMU and the format of its file.

    Attributes
    ----------
    name : str
        Value of `--to`.
    kind : str
        Model with the law of the simulator, used as upstream.
    preset : str
        Preset with the values of keys that a file leaves out; empty: all are zero.
    laws : dict
        What the errors of `gyroscope` and `accelerometer` can be.
    rate : float or None
        Rate at which the simulator runs, Hz; None: that of the exported model.
    mark : str
        Text that every file of the simulator has.
    needs_walk : bool
        Whether a file without a random walk is incomplete.
    remarks : tuple of str
        What a user has to know, a sentence each.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    kind: ClassVar[str]
    preset: ClassVar[str] = ''
    laws: ClassVar[Mapping[str, Law]]
    rate: ClassVar[float | None] = None
    is_rate_fixed: ClassVar[bool] = False
    suffix: ClassVar[str]
    mark: ClassVar[str]
    needs_walk: ClassVar[bool] = False
    remarks: ClassVar[tuple[str, ...]] = ()

    @property
    def default(self) -> str:
        """Model of the simulator where nothing is set; most simulators then have no noise."""
        return f'{self.preset}{self._upstream}' if self.preset else 'ideal'

    @property
    def _upstream(self) -> str:
        return UPSTREAM if 'variant' in self._model_class().declarations() else ''

    @abc.abstractmethod
    def triad(self, quantity: str, part: ErrorChain, rate: float) -> dict[str, Any]:
        """Return the parameters of a triad of the model with these errors."""

    @abc.abstractmethod
    def errors(self, quantity: str, model: ImuModel) -> dict[str, Any]:
        """Return the errors of a triad that a model produces, as parameters of `ErrorChain`."""

    @abc.abstractmethod
    def write(self, model: ImuModel) -> str:
        """Return the text of the file."""

    @abc.abstractmethod
    def parse(self, text: str, where: str) -> dict[str, Any]:
        """Return what a file says, as parameters of the model; see `read`."""

    def model(self, chain: ImuChain, rate: float) -> ImuModel:
        """Return the model whose file is written for these errors."""
        mapping = {
            quantity: self.triad(quantity, getattr(chain, quantity), rate)
            for quantity in QUANTITIES
        }
        return self.build({'rate': rate, **mapping}, self.name)

    def read(self, text: str, where: str) -> ImuModel:
        """Return the model of a file; keys that are left out have the simulator's defaults."""
        return self.build(self.parse(text, where), where)

    def build(self, mapping: Mapping[str, Any], where: str) -> ImuModel:
        """Return the model with these parameters, as upstream, rounded as in files."""
        declared = self._model_class().declarations()
        base: dict[str, Any] = {'model': self.kind}
        if self.preset:
            base = to_variant(load_imu(self.default))
        rate = float(mapping.get('rate') or base.get('rate', 100.0))
        base = override(base, {'rate': rate, **mapping})
        if 'variant' in declared:
            base['variant'] = 'as_upstream'
        if 'std_rate' in declared:
            base['std_rate'] = rate
        model: ImuModel = from_variant(ImuModel.models, self.rounded(base, rate), where)
        return model

    def rounded(self, mapping: dict[str, Any], rate: float) -> dict[str, Any]:
        """Return the parameters with the six digits that are written."""
        return {
            key: {name: six_digits(value) for name, value in part.items()}
            if key in QUANTITIES else part
            for key, part in mapping.items()
        }  # fmt: skip

    def chain(self, model: ImuModel) -> ImuChain:
        """Return the errors that a model produces."""
        mapping = {quantity: self.errors(quantity, model) for quantity in QUANTITIES}
        return ImuChain.from_mapping({'rate': model.rate, **mapping}, self.name)

    def _model_class(self) -> type[ImuModel]:
        model_class: type[ImuModel] = ImuModel.models.get(self.kind)
        return model_class


class KeyedSimulator(ImuSimulator):
    """Simulator whose file has one key per parameter."""

    keys: ClassVar[Keys]

    def numbers_of(self, entry: Mapping[str, Any], where: str) -> dict[str, dict[str, float]]:
        """Return the numbers of one sensor of a file by triad and key.

        A key that is nearly one of the simulator's raises ParameterError.
        """
        known = [key for triad in self.keys.values() for key, _ in triad.values()]
        refuse_misspelt(entry, known, where)
        return {
            quantity: {
                key: number_in(str(entry[key]), where, key)
                for key, _ in keys.values()
                if key in entry
            }
            for quantity, keys in self.keys.items()
        }

    def unit(self, quantity: str, parameter: str, rate: float) -> float:
        """Return the unit of a key in SI units; that of noise per sample depends on the rate."""
        return self.keys[quantity][parameter][1]

    def rounded(self, mapping: dict[str, Any], rate: float) -> dict[str, Any]:
        """Return the parameters with the six digits that are written, in the unit of the file."""
        result = dict(mapping)
        for quantity, keys in self.keys.items():
            part = dict(mapping.get(quantity, {}))
            for parameter in keys:
                if parameter in part:
                    unit = self.unit(quantity, parameter, rate)
                    part[parameter] = scaled(six_digits(scaled(part[parameter], 1.0 / unit)), unit)
            result[quantity] = part
        return result

    def values(self, model: ImuModel) -> dict[str, dict[str, Numbers]]:
        """Return the numbers of the file by triad and key."""
        return {
            quantity: {
                key: six_digits(scaled(
                    getattr(getattr(model, quantity), parameter),
                    1.0 / self.unit(quantity, parameter, model.rate),
                ))
                for parameter, (key, _) in keys.items()
            }
            for quantity, keys in self.keys.items()
        }  # fmt: skip

    def parameters(
        self, values: Mapping[str, Mapping[str, Numbers]], rate: float
    ) -> dict[str, Any]:
        """Return the parameters of the model from the numbers of a file by triad and key."""
        return {
            quantity: {
                parameter: scaled(values[quantity][key], self.unit(quantity, parameter, rate))
                for parameter, (key, _) in keys.items()
                if key in values.get(quantity, {})
            }
            for quantity, keys in self.keys.items()
        }


def scaled(value: Any, factor: float) -> Any:
    """Return a number, or each of several, times a factor."""
    if isinstance(value, tuple | list):
        return tuple(entry * factor for entry in value)
    return value * factor


def six_digits(value: Any) -> Any:
    """Return a number, or each of several, rounded to six significant digits."""
    if isinstance(value, tuple | list | np.ndarray):
        return tuple(six_digits(float(entry)) for entry in value)
    return float(f'{value:.6g}') if isinstance(value, float) else value


def as_text(value: Numbers, separator: str = ' ') -> str:
    """Return one number or several as they are written in files."""
    if isinstance(value, tuple):
        return separator.join(f'{entry:.6g}' for entry in value)
    return f'{value:.6g}'


def refuse_misspelt(keys: Iterable[str], known: Sequence[str], where: str) -> None:
    """Refuse keys of a file that are nearly one that is read; ParameterError."""
    for key in keys:
        if key not in known and (near := did_you_mean(key, known)):
            raise ParameterError(where, key, f'is not read{near}')


def number_in(text: str | None, where: str, key: str) -> float:
    """Return the number in a text; ParameterError if it is none."""
    try:
        value = float(str(text))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ParameterError(where, key, f'{text!r} is not allowed; must be a number')
    return value


def numbers_in(text: str, where: str, key: str) -> Numbers:
    """Return the number in a text, or the three of a vector separated by spaces or commas."""
    entries = [entry for entry in re.split(r'[\s,]+', text.strip()) if entry]
    numbers = tuple(number_in(entry, where, key) for entry in entries)
    if len(numbers) not in (1, 3):
        raise ParameterError(where, key, f'{text!r} is not allowed; must be 1 or 3 numbers')
    return numbers if len(numbers) == 3 else numbers[0]


def one_number(values: Any) -> float:
    """Return the root mean square of the axes that are not zero, 0 if all are."""
    array: FloatArray = np.asarray(values, dtype=np.float64)
    active = array[array != 0.0]
    return float(np.sqrt(np.mean(active**2))) if len(active) else 0.0


def driving_density(part: ErrorChain) -> FloatArray:
    """Return the density that drives the Gauss-Markov bias of each axis, std sqrt(2 / time)."""
    return np.asarray(part.gauss_markov_std) * np.sqrt(2.0 / np.asarray(part.gauss_markov_time))
