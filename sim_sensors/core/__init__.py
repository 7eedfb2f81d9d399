# SPDX-License-Identifier: Apache-2.0
"""What every sensor needs: parameters, seeds, compilation, rotations and errors."""

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
    """Return `__getattr__` and `__dir__` of a package that loads its names late (PEP 562).

    Importing a module imports the packages above it first: if these loaded all that they show, the
    smallest import would cost seconds.

    `package` is its `__name__` and `names` its `__all__`. The first of the modules, in it or
    below it, that has a name gives it.
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
