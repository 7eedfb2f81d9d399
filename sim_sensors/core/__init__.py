# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Foundations of all sensors: parameters, seeds, compilation, rotations and errors."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .errors import ParameterError, Sim2RealError
    from .measurements import FixArray, ImuArray, OdometryArray
    from .parameters import Parameters, parameter
    from .registry import Registry
    from .seeding import stream

__all__ = [
    'FixArray',
    'ImuArray',
    'OdometryArray',
    'ParameterError',
    'Parameters',
    'Registry',
    'Sim2RealError',
    'parameter',
    'stream',
]


def lazily(
    package: str, names: Sequence[str], *modules: str
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package that loads its names on access (PEP 562).

    Importing a module imports the packages above it first. If these loaded all their names, the
    smallest import would take seconds. `package` is the `__name__` of the package and `names` its
    `__all__`. A name is taken from the first of the modules, in the package or below it, that has
    it.
    """

    def get(name: str) -> object:
        if name in names:
            for module in modules:
                imported = importlib.import_module(f'{package}.{module}')
                if name in vars(imported):
                    value: object = vars(imported)[name]
                    setattr(sys.modules[package], name, value)
                    return value
        raise AttributeError(f'module {package!r} has no attribute {name!r}')

    return get, lambda: list(names)


if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__, __all__, 'errors', 'measurements', 'parameters', 'registry', 'seeding'
    )
