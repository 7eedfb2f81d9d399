# SPDX-License-Identifier: Apache-2.0
"""Faults of a sensor in operation: given by time, or switched on and off while it measures.

A fault acts on the measurements of its time only. The others have the bits that they would have
without it, and what a switched fault does is repeated by a given one at the same times.
"""

from __future__ import annotations

import abc
import dataclasses
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
        return 0.0 if self._latest is None else self._latest + _AFTER

    def switch_on(self, fault: Fault) -> None:
        """Let a fault act from the next measurement on.

        It replaces one of its kind, and then ends with it.
        """
        end = next((other.end for other in self.active if other.kind == fault.kind), None)
        self.switch_off(fault.kind)
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
        if not self._faults:
            return
        for kind in self._kinds:
            is_free = np.ones(len(times), dtype=np.bool_)
            for fault in self.faults:
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
    faults: list[Fault] = []
    for place, entry in _entries(mapping['faults'], where, f'{path}.faults' if path else 'faults'):
        faults.append(_fault_from(entry, kinds, faults, where, place))
    return tuple(faults)


def _fault_from(
    entry: Mapping[str, object],
    kinds: Sequence[type[Fault]],
    others: Sequence[Fault],
    where: str,
    place: str,
) -> Fault:
    """Return the fault in a mapping, which must not act together with `others` of its kind."""
    by_kind = {kind.kind: kind for kind in kinds}
    name = entry.get('fault')
    if name not in by_kind:
        problem = not_among(f'{name!r} is unknown', name, by_kind)
        raise ParameterError(where, f'{place}.fault', problem)
    parameters = {key: value for key, value in entry.items() if key != 'fault'}
    fault = by_kind[str(name)].from_mapping(parameters, where, place)
    for other in others:
        if other.kind == fault.kind and _overlap(other, fault):
            problem = f'{fault.start!r} is within another {name}; must be after its end'
            raise ParameterError(where, f'{place}.start', problem)
    return fault


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


def _overlap(first: Fault, second: Fault) -> bool:
    first_end, second_end = (
        math.inf if fault.end is None else fault.end for fault in (first, second)
    )
    return first.start < second_end and second.start < first_end


def to_entries(faults: Sequence[Fault], **labels: str) -> dict[str, list[dict[str, Any]]]:
    """Return the mapping that `faults_from` reads back, empty without faults.

    With the label `sensor`, `read_faults` reads it.
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
    by_sensor: dict[str, list[Fault]] = {}
    for place, entry in _entries(mapping.get('faults', []), where, 'faults'):
        sensor = str(entry.get('sensor'))
        name = sensor.rpartition('/')[2]
        if name not in kinds_of:
            problem = not_among(f'{sensor!r} has no faults', sensor, kinds_of)
            raise ParameterError(where, f'{place}.sensor', problem)
        parameters = {key: value for key, value in entry.items() if key != 'sensor'}
        faults = by_sensor.setdefault(sensor, [])
        faults.append(_fault_from(parameters, kinds_of[name], faults, where, place))
    return {sensor: tuple(faults) for sensor, faults in by_sensor.items()}


def with_faults(models: Mapping[str, Any], path: str | Path) -> dict[str, Any]:
    """Return models by sensor with the faults of a file besides their own.

    ParameterError also for a fault of a sensor that is not among the models.
    """
    faulty = dict(models)
    for sensor, faults in read_faults(path).items():
        if sensor not in models:
            problem = not_among(f'{sensor!r} is not simulated', sensor, models)
            raise ParameterError(str(path), 'faults', problem)
        model = models[sensor]
        faulty[sensor] = dataclasses.replace(model, faults=(*model.faults, *faults))
    return faulty
