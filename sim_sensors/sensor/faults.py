# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Faults of a sensor in operation: given by time, or switched on and off while it measures.

A fault acts on the measurements of its time only. The others have the bits that they would have
without it, and what a switched fault does is repeated by a given one at the same times. Only an
orientation that an IMU estimates from its own signals keeps the error afterwards.
"""

from __future__ import annotations

import abc
import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.config_files import check_keys, read_yaml_mapping
from sim_sensors.core.errors import ParameterError, not_among
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter
from sim_sensors.core.seeding import Streams
from .catalogue import kinds

BoolArray = NDArray[np.bool_]

# Stamps are whole nanoseconds: half of one is the tolerance of a time, and a fault that is
# switched acts after the latest measurement.
_TOLERANCE = 0.5e-9
_AFTER = 1e-9


@dataclasses.dataclass(frozen=True)
class Fault(Parameters, abc.ABC):
    """Fault of a sensor from `start` to `end`; the class attribute `kind` is its name."""

    kind: ClassVar[str] = ''

    start: float = non_negative(0.0, 's', 'Begin, since the start of the motion.')
    end: float | None = parameter(
        None, 's', 'End, since the start of the motion; by default that of the motion.',
        minimum=0.0, optional=float,
    )  # fmt: skip

    def _check(self) -> None:
        if self.end is not None and self.end <= self.start:
            problem = f'{self.end!r} is not allowed; must be > start, {self.start!r} [s]'
            raise ParameterError(type(self).__name__, 'end', problem)

    def is_active(self, times: FloatArray) -> BoolArray:
        """Return whether the fault acts at the times, `(n,)` s."""
        now = times + _TOLERANCE
        return np.asarray(
            (self.start <= now) & (now < (math.inf if self.end is None else self.end))
        )

    @abc.abstractmethod
    def disturb(
        self, signals: Any, rows: BoolArray, age: FloatArray, rng: np.random.Generator
    ) -> None:
        """Change the signals of a sensor in place.

        Parameters
        ----------
        signals
            Signals of the kind of sensor, with `n` rows.
        rows : (n,) bool
            Rows in which the fault acts; at least one.
        age : (m,) float
            Time since its begin in these rows, s.
        rng : numpy.random.Generator
            Stream of this kind of fault; only the rows of the fault may use it.
        """


class FaultProcess:
    """Faults of one sensor over time. At most one fault of each kind acts at a time: the earlier.

    Parameters
    ----------
    kinds : sequence of type
        Kinds of faults of the sensor, in the order in which they act.
    faults : sequence of Fault
        Given faults.
    rng : callable
        Returns the random stream of a kind.
    """

    def __init__(
        self, kinds: Sequence[type[Fault]], faults: Sequence[Fault], rng: Streams
    ) -> None:
        self._kinds = tuple(kind.kind for kind in kinds)
        self._make_rng = rng
        self._rng: dict[str, np.random.Generator] = {}
        self._faults = list(faults)
        self._latest: float | None = None

    @property
    def faults(self) -> tuple[Fault, ...]:
        """All faults, given and switched, in the order of their begin."""
        return tuple(sorted(self._faults, key=lambda fault: fault.start))

    @property
    def active(self) -> tuple[Fault, ...]:
        """Faults that act at the latest measurement, or will at the next."""
        now = np.array([self._next])
        return tuple(fault for fault in self.faults if fault.is_active(now)[0])

    @property
    def _next(self) -> float:
        """Time just after the latest measurement, s."""
        # Rounded, so that the text of a scenario is readable.
        return 0.0 if self._latest is None else round(self._latest + _AFTER, 9)

    def switch_on(self, fault: Fault) -> None:
        """Let a fault act from the next measurement on.

        It replaces one of its kind and ends with it, or when a given one of its kind begins.
        """
        ends = [other.end for other in self.active if other.kind == fault.kind]
        self.switch_off(fault.kind)
        ends += [
            other.start
            for other in self._faults
            if other.kind == fault.kind and other.start > self._next
        ]
        end = min((end for end in ends if end is not None), default=None)
        self._faults.append(dataclasses.replace(fault, start=self._next, end=end))

    def switch_off(self, kind: str) -> None:
        """End the faults of a kind that act now."""
        ended = [fault for fault in self.active if fault.kind == kind]
        self._faults = [fault for fault in self._faults if fault not in ended]
        # One that was switched on since the latest measurement has not acted at all.
        self._faults += [
            dataclasses.replace(fault, end=self._next)
            for fault in ended
            if fault.start < self._next
        ]

    def disturb(self, times: FloatArray, signals: Any) -> None:
        """Let the faults act on the signals at the next times, `(n,)` s."""
        if len(times):
            self._latest = float(times[-1])
        faults = self.faults
        for kind in self._kinds if faults else ():
            is_free = np.ones(len(times), dtype=np.bool_)
            for fault in faults:
                if fault.kind == kind and (rows := fault.is_active(times) & is_free).any():
                    if kind not in self._rng:
                        self._rng[kind] = self._make_rng(kind)
                    fault.disturb(signals, rows, times[rows] - fault.start, self._rng[kind])
                    is_free &= ~rows


def faults_from(
    mapping: Mapping[str, object], kinds: Sequence[type[Fault]], where: str, path: str = ''
) -> tuple[Fault, ...]:
    """Return the faults in the list `faults` of a mapping; none if there is no such list.

    Each is a mapping with the key `fault` and its parameters. `where` and `path` are the file of
    the mapping and its key in it, for messages.

    ParameterError for an unknown fault, a wrong parameter, or two faults of one kind at a time.
    """
    if not kinds or 'faults' not in mapping:
        return ()
    key = f'{path}.faults' if path else 'faults'
    faults = [
        (place, _fault_from(entry, kinds, where, place))
        for place, entry in _entries(mapping['faults'], where, key)
    ]
    return _one_at_a_time(faults, where)


def _fault_from(
    entry: Mapping[str, object], kinds: Sequence[type[Fault]], where: str, place: str
) -> Fault:
    """Return the fault in a mapping."""
    by_kind = {kind.kind: kind for kind in kinds}
    name = entry.get('fault')
    if not isinstance(name, str) or name not in by_kind:
        problem = not_among(f'{name!r} is unknown', name, by_kind)
        raise ParameterError(where, f'{place}.fault', problem)
    parameters = {key: value for key, value in entry.items() if key != 'fault'}
    return by_kind[name].from_mapping(parameters, where, place)


def _one_at_a_time(faults: Sequence[tuple[str, Fault]], where: str) -> tuple[Fault, ...]:
    """Return faults, each given with its key; ParameterError if two of a kind act at a time."""
    in_order = sorted(faults, key=lambda keyed: (keyed[1].kind, keyed[1].start))
    for (_, first), (key, second) in itertools.pairwise(in_order):
        is_over = first.end is not None and first.end <= second.start
        if first.kind == second.kind and not is_over:
            problem = f'{second.start!r} is within another {second.kind}; must be after its end'
            raise ParameterError(where, f'{key}.start', problem)
    return tuple(fault for _, fault in faults)


def _entries(entries: object, where: str, key: str) -> list[tuple[str, Mapping[str, object]]]:
    """Return the mappings of a list, each with its key."""
    if not isinstance(entries, list):
        problem = f'{entries!r} is not allowed; must be a list of mappings'
        raise ParameterError(where, key, problem)
    for number, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            problem = f'{entry!r} is not allowed; must be a mapping'
            raise ParameterError(where, f'{key}[{number}]', problem)
    return [(f'{key}[{number}]', entry) for number, entry in enumerate(entries)]


def to_entries(faults: Sequence[Fault], **labels: str) -> dict[str, list[dict[str, Any]]]:
    """Return the mapping that `faults_from` reads back, empty without faults.

    `read_faults` reads it if the label `sensor` is given.
    """
    entries = [
        {
            **labels,
            'fault': fault.kind,
            **{key: value for key, value in fault.to_mapping().items() if value is not None},
        }
        for fault in faults
    ]
    return {'faults': entries} if entries else {}


def read_faults(path: str | Path) -> dict[str, tuple[Fault, ...]]:
    """Read a scenario of faults; return the faults by the label of their sensor.

    The file has a list `faults`; each has the label of its `sensor`, such as `gps` or `front/imu`.

    Raises
    ------
    ParameterError
        With the file and the key of what is wrong.

    Examples
    --------
    A file of two faults::

        faults:
          - {sensor: gps, fault: outage, start: 20, end: 30}
          - {sensor: imu, fault: stuck, start: 40, end: 40.5}
    """
    where = str(path)
    mapping = read_yaml_mapping(Path(path))
    check_keys(mapping, ('faults',), where)
    kinds_of = {kind.name: kind.fault_kinds for kind in kinds() if kind.fault_kinds}
    by_sensor: dict[str, list[tuple[str, Fault]]] = {}
    for place, entry in _entries(mapping.get('faults', []), where, 'faults'):
        sensor = str(entry.get('sensor'))
        name = sensor.rpartition('/')[2]
        if name not in kinds_of:
            problem = not_among(f'{sensor!r} has no faults', sensor, kinds_of)
            raise ParameterError(where, f'{place}.sensor', problem)
        parameters = {key: value for key, value in entry.items() if key != 'sensor'}
        fault = _fault_from(parameters, kinds_of[name], where, place)
        by_sensor.setdefault(sensor, []).append((place, fault))
    return {sensor: _one_at_a_time(faults, where) for sensor, faults in by_sensor.items()}


def add_faults(model: Any, faults: Sequence[Fault], where: str) -> Any:
    """Return a model with further faults, which come from `where`.

    ParameterError if one acts together with another of its kind.
    """
    if not faults:
        return model
    together = [('faults', fault) for fault in (*model.faults, *faults)]
    return dataclasses.replace(model, faults=_one_at_a_time(together, where))


def with_faults(models: Mapping[str, Any], path: str | Path) -> dict[str, Any]:
    """Return models by sensor with the faults of a file besides their own.

    ParameterError also for a fault of a sensor that is not among the models.
    """
    faulty = dict(models)
    for sensor, faults in read_faults(path).items():
        if sensor not in models:
            problem = not_among(f'{sensor!r} is not simulated', sensor, models)
            raise ParameterError(str(path), 'faults', problem)
        faulty[sensor] = add_faults(models[sensor], faults, str(path))
    return faulty
