# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Parameters that several kinds of sensors share: mounting, axes, rate and latency."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from .measurements import FloatArray
from .parameters import Parameter, Parameters, non_negative, parameter

if TYPE_CHECKING:
    from scipy.spatial.transform import Rotation

P = TypeVar('P', bound=Parameters)


def mounting_quaternion(rpy: ArrayLike) -> FloatArray:
    """Return the quaternion x y z w, `(1, 4)`, of roll, pitch, yaw about fixed axes, rad."""
    if not np.any(rpy):
        return np.array([[0.0, 0.0, 0.0, 1.0]])
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_euler('xyz', np.asarray(rpy)).as_quat()[None, :])


def with_lever_arm(model: P, translation: ArrayLike) -> P:
    """Return a sensor model with the `lever_arm` `translation`, `(3,)` m in the body."""
    changes: Any = {'lever_arm': tuple(np.asarray(translation, dtype=np.float64).tolist())}
    return dataclasses.replace(model, **changes)


def with_mounting(model: P, rotation: Rotation) -> P:
    """Return a sensor model with the mounting `rotation`, sensor to body."""
    changes: Any = {'mounting_rpy': tuple(rotation.as_euler('xyz').tolist())}
    return dataclasses.replace(model, **changes)


@dataclasses.dataclass(frozen=True)
class Upstream(Parameters):
    """A model of another simulator, corrected or with the defects of the original."""

    variant: str = parameter(
        'exact',
        '',
        'exact, or as_upstream: with the defects that the documentation of the model lists.',
        choices=('exact', 'as_upstream'),
    )

    @property
    def is_exact(self) -> bool:
        """Whether the defects are left out."""
        return self.variant == 'exact'

    @property
    def has_defects(self) -> bool:
        """Whether `as_upstream` is anything else than `exact`."""
        return True


Axes = tuple[float, float, float]
"""One number for each of the axes x, y, z."""


def axes(unit: str, doc: str, default: float | Axes = 0.0, **bounds: Any) -> Any:
    """Declare a number for each of the axes x, y, z; `bounds` are those of `parameter`."""
    values = default if isinstance(default, tuple) else (default, default, default)
    return parameter(values, unit, doc, **bounds)


def share(default: float, doc: str) -> Any:
    """Declare a share of something, 0 to 1."""
    return non_negative(default, '1', doc, maximum=1.0)


LONGEST_DELAY = 1e6
"""Of a message that still arrives, s."""


LOWEST_RATE, HIGHEST_RATE = 1e-6, 1e5
"""Of any sensor, Hz: a measurement in eleven days, and ten times what the fastest IMUs do."""


def sample_rate(default: float, doc: str) -> Any:
    """Declare how often a sensor measures, Hz."""
    return parameter(default, 'Hz', doc, minimum=LOWEST_RATE, maximum=HIGHEST_RATE, read_only=True)


def lever_arm(what: str, default: float | Axes = 0.0) -> Any:
    """Declare the position of the sensitive point of a sensor in the body, m."""
    return axes('m', f'Position of the {what} in the body (forward, left, up).', default)


def latency() -> Any:
    """Declare the constant delay of messages; `Delivery` has the random part."""
    doc = 'Time from the stamp to the arrival of the message.'
    # A latency in nanoseconds by mistake is refused before it exceeds the 64 bits of a stamp.
    return non_negative(0.0, 's', doc, maximum=LONGEST_DELAY)


@dataclasses.dataclass(frozen=True)
class AxisParameters(Parameters):
    """Base of parameter sets that are declared once for gyroscopes and accelerometers.

    In the units of the declarations, `{u}` is the unit of the sensor and `{i}` that of its
    integral over time. A subclass for each kind of sensor defines them.
    """

    unit: ClassVar[str] = ''
    integral_unit: ClassVar[str] = ''

    @classmethod
    def declarations(cls) -> dict[str, Parameter]:
        """Declarations of the parameters, in order, with the units of the sensor."""
        return {
            name: dataclasses.replace(
                declaration, unit=declaration.unit.format(u=cls.unit, i=cls.integral_unit)
            )
            for name, declaration in super().declarations().items()
        }


class OfGyroscope:
    """Units of a gyroscope, as the first base class of a set of `AxisParameters`."""

    unit: ClassVar[str] = 'rad/s'
    integral_unit: ClassVar[str] = 'rad'


class OfAccelerometer:
    """Units of an accelerometer, as the first base class of a set of `AxisParameters`."""

    unit: ClassVar[str] = 'm/s^2'
    integral_unit: ClassVar[str] = 'm/s'
