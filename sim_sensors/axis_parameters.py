# SPDX-License-Identifier: Apache-2.0
"""Parameters that gyroscopes and accelerometers have alike, but in their own units."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from sim_sensors.parameters import Parameter, Parameters

__all__ = ['AxisParameters']


@dataclasses.dataclass(frozen=True)
class AxisParameters(Parameters):
    """Base of parameter sets that are declared once for both kinds of sensors.

    In the units of its declarations `{u}` is the unit of the sensor and `{i}` that of its integral
    over time; each kind is a subclass that says what they are.
    """

    unit: ClassVar[str] = ''
    integral_unit: ClassVar[str] = ''

    @classmethod
    def declared(cls) -> dict[str, Parameter]:
        """Declarations of the parameters, in order, with the units of the sensor."""
        return {
            name: dataclasses.replace(
                declaration, unit=declaration.unit.format(u=cls.unit, i=cls.integral_unit)
            )
            for name, declaration in super().declared().items()
        }
