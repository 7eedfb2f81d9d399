# SPDX-License-Identifier: Apache-2.0
"""What every sensor needs: parameters, seeds, compilation, rotations and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .faces import lazily

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
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__, __all__, 'errors', 'measurements', 'parameters', 'registry', 'seeding'
    )
