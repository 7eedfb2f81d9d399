# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Faults that are planted in otherwise clean recordings, and the findings that name them.

Faults of each input are in a module of their own; `FAULTS` holds them all by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .sensors import GPS, IMU, ODOMETRY, TRUTH, Log
from .setups import Setup, draw_setup
from .vehicles import VEHICLES

TOPICS = {'imu': IMU, 'gps': GPS, 'truth': TRUTH, 'odom': ODOMETRY}


@dataclasses.dataclass(frozen=True)
class Fault:
    """A mistake of a driver, of a configuration or of a sensor.

    Attributes
    ----------
    name : str
    role : str
        The input that is wrong, a key of `TOPICS`; findings must be about it.
    plant : callable
        Changes a log.
    names : tuple of str or tuple of str
        Codes without `check.` and `_large`, each of which names the fault; of a tuple, all must be
        there together. A code with a role before a colon is about that role.
    correction : str
        What undoes it in recording.yaml; empty if nothing does.
    vehicles : tuple of str
        On which it shows.
    needs : dict
        Attributes of the setup.
    """

    name: str
    role: str
    plant: Callable[[Log], None]
    names: tuple[str | tuple[str, ...], ...]
    correction: str = ''
    vehicles: tuple[str, ...] = VEHICLES
    needs: dict[str, Any] = dataclasses.field(default_factory=dict)

    def is_named_by(self, findings: Iterable[tuple[str, str]]) -> bool:
        """Return whether any of the findings, pairs of code and role, names the fault."""
        found = {(_stem(code), role) for code, role in findings}

        def is_there(name: str) -> bool:
            role, _, code = name.rpartition(':')
            return any(code == stem and (role or self.role) == about for stem, about in found)

        return any(
            all(map(is_there, (name,) if isinstance(name, str) else name)) for name in self.names
        )


def _stem(code: str) -> str:
    return code.removeprefix('check.').removesuffix('_large')


FAULTS: dict[str, Fault] = {}


def load_faults() -> dict[str, Fault]:
    """Return all faults by name, in the order of their modules."""
    from . import gps_faults, imu_faults, odometry_faults, truth_faults  # noqa: F401 - declare

    return FAULTS


def fault(
    role: str, *names: str | tuple[str, ...], correction: str = '',
    vehicles: tuple[str, ...] = VEHICLES, **needs: Any,
) -> Callable[[Callable[[Log], None]], Callable[[Log], None]]:  # fmt: skip
    """Declare a function as the fault of its name; see `Fault`."""

    def declare(plant: Callable[[Log], None]) -> Callable[[Log], None]:
        add_fault(plant.__name__, role, plant, names, correction, vehicles, needs)
        return plant

    return declare


def add_fault(
    name: str, role: str, plant: Callable[[Log], None], names: tuple[str | tuple[str, ...], ...],
    correction: str, vehicles: tuple[str, ...], needs: dict[str, Any],
) -> None:  # fmt: skip
    """Declare a fault."""
    if name in FAULTS:
        raise ValueError(f'fault {name} is declared twice')
    FAULTS[name] = Fault(name, role, plant, names, correction, vehicles, needs)


def faulty_setups(seed: int, count: int, only: str = '') -> list[tuple[Fault, Setup]]:
    """Return faults and the setups in which they are planted, rounds of all kinds.

    Parameters
    ----------
    seed : int
    count : int
        Number of recordings. An incomplete round is spread over all kinds.
    only : str
        Text that the names of the faults contain.
    """
    kinds = [(n, one) for n, one in enumerate(load_faults().values()) if only in one.name]
    chosen: list[tuple[Fault, Setup]] = []
    for k in range(-(-count // len(kinds)) if kinds else 0):
        left = min(count - len(chosen), len(kinds))
        for number, kind in (kinds[i * len(kinds) // left] for i in range(left)):
            rng = np.random.default_rng([seed, 2, number, k])
            vehicle = kind.vehicles[(number + k) % len(kind.vehicles)]
            # The planted fault is to be the only one that matters.
            fixed = {'odometry': kind.role == 'odom', **kind.needs}
            chosen.append((kind, draw_setup(rng, vehicle, **fixed)))
    return chosen
