# SPDX-License-Identifier: Apache-2.0
"""The names that a folder shows, each loaded when it is first asked for (PEP 562).

Importing a module imports the folders above it first: if these loaded all that they show, the
smallest import would cost seconds.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence


def lazily(
    package: str, names: Sequence[str], *modules: str
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package that loads its names late.

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
