# SPDX-License-Identifier: Apache-2.0
"""What every sensor needs: parameters, seeds, compilation, rotations and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim_sensors.core.faces import lazily

if TYPE_CHECKING:
    from sim_sensors.core.errors import ParameterError, Sim2RealError
    from sim_sensors.core.measurements import FixArray, ImuArray, OdometryArray
    from sim_sensors.core.parameters import Parameters, parameter
    from sim_sensors.core.registry import Registry
    from sim_sensors.core.seeding import stream

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
