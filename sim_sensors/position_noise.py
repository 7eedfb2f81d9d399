# SPDX-License-Identifier: Apache-2.0
"""What every position error of a GPS is."""

from __future__ import annotations

import abc
import dataclasses

import numpy as np

from sim_sensors.measurements import FloatArray
from sim_sensors.noise import Process
from sim_sensors.parameters import Parameters
from sim_sensors.upstream import Upstream

__all__ = ['PositionNoise', 'ProcessSum', 'UpstreamNoise']


@dataclasses.dataclass(frozen=True)
class PositionNoise(Parameters, abc.ABC):
    """Position error of a GPS: parameters that start a process of metres east, north, up."""

    @property
    def is_angular(self) -> bool:
        """Whether the error is degrees of longitude, degrees of latitude and metres up instead."""
        return False

    @abc.abstractmethod
    def start(self, seed: int, run: str, sensor: str) -> Process:
        """Return the process with its state, three axes; its first interval is 0 s."""


@dataclasses.dataclass(frozen=True)
class UpstreamNoise(Upstream, PositionNoise):
    """Error of a GPS of another simulator, as it should be or with the defects that it has."""


class ProcessSum:
    """Sum of processes, added in the order given."""

    def __init__(self, *parts: Process) -> None:
        self._parts = parts

    @property
    def value(self) -> FloatArray:
        """Value at the latest sample, `(3,)`."""
        total = np.zeros(3)
        for part in self._parts:
            total = total + part.value
        return total

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the values at the next samples, `(n, 3)`."""
        total = np.zeros((len(dt), 3))
        for part in self._parts:
            total = total + part.advance(dt)
        return total
