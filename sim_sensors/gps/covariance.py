# SPDX-License-Identifier: Apache-2.0
"""The covariance that a GPS states: none, AirSim's converging HDOP, or a constant.

It is independent of the error that the positions have, as in the paper's grid of models.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar, Protocol

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.parameters import Parameters, non_negative, parameter, variants
from sim_sensors.core.shared_parameters import Axes, axes
from sim_sensors.noise.electronics import Decay

# sensor_msgs/NavSatFix position_covariance_type.
COVARIANCE_TYPES = {'unknown': 0, 'approximated': 1, 'diagonal_known': 2, 'known': 3}


class CovarianceSource(Protocol):
    """Covariance with its state."""

    def advance(self, dt: FloatArray) -> FloatArray:
        """Return the variances east, north, up of the next fixes, `(n, 3)` m^2; `dt` `(n,)` s is
        the time since the fix before, 0 for the first.
        """


def _type(default: str) -> Any:
    doc = 'position_covariance_type of the message.'
    return parameter(default, '', doc, choices=tuple(COVARIANCE_TYPES), read_only=True)


@dataclasses.dataclass(frozen=True)
class PositionCovariance(Parameters, abc.ABC):
    """Covariance that a GPS states: parameters that start a source of variances."""

    type: str = _type('unknown')

    @abc.abstractmethod
    def start(self) -> CovarianceSource:
        """Return the source with its state."""


@dataclasses.dataclass(frozen=True)
class ZeroCovariance(PositionCovariance):
    """A matrix of zeros, as all Ch models send; robot_localization takes it as 1e-9 m^2.

    Readers take zeros as `unknown`. Chrono's current ROS code sends type 2 and calls it
    approximated; in NavSatFix 1 is approximated and 2 is diagonal known.
    """

    kind: ClassVar[str] = 'zero'

    def start(self) -> CovarianceSource:
        """Return zeros."""
        return _Fixed(np.zeros(3))


@dataclasses.dataclass(frozen=True)
class ConstantCovariance(PositionCovariance):
    """The same diagonal at every fix; it is consistent if it equals that of the noise."""

    kind: ClassVar[str] = 'constant'

    type: str = _type('diagonal_known')
    std: Axes = axes('m', 'Stated standard deviation (east, north, up).', 0.03, minimum=0.0)

    def start(self) -> CovarianceSource:
        """Return the squares of `std`."""
        return _Fixed(np.asarray(self.std) ** 2)


@dataclasses.dataclass(frozen=True)
class HdopCovariance(PositionCovariance):
    """AirSim's covariance, which converges like a first-order low pass.

    The positions do not change: AirSim reports the true position with an accuracy that converges.
    Exact at every step, with t since the first fix, which has hdop_initial::

        hdop[k+1] = a hdop[k] + (1 - a) hdop_limit,   a = exp(-dt / time_constant)
        hdop(t)   = hdop_limit + (hdop_initial - hdop_limit) exp(-t / time_constant)
        P         = diag((k hdop)^2, (k hdop)^2, (vertical_factor k hdop)^2)   (eq. 5 of the paper)

    The defaults are the paper's calibration (`*_airsim`). Its east variance is 4.00 m^2 at the
    first fix, 3.94 after 0.1 s, 0.814 after 10 s, 0.170 after 20 s and 1.07e-3 after 60 s. The
    limit is 2.89e-4 (17 mm). A run of 20 s is therefore judged during the convergence.

    - `*_airsim_default` has AirSim's limit 0.1 and 0.9 s.
    - `airsim_code` and `airsim_docs` are AirSim itself with the defaults of its code (from HDOP
      100) and of its documentation (from 25). They run at 50 Hz, 0.2 s late, and are silent for
      the first second, during which the HDOP already converges.
    - k = 0.02 m is nmea_navsat_driver's value for an RTK fix. That driver's vertical variance is
      (4 k hdop)^2 (`vertical_factor: 4`); the paper's port has 2.
    - AirSim computes an EPV and never uses it; it is left out.

    References
    ----------
    [AirSim] `GpsSimple.hpp`, `GpsSimpleParams.hpp`; [NmeaNavsat]; [Mahajan2024].
    """

    kind: ClassVar[str] = 'airsim'

    type: str = _type('approximated')
    hdop_initial: float = non_negative(100.0, '1', 'HDOP at the first fix.', read_only=True)
    hdop_limit: float = non_negative(0.85, '1', 'HDOP after a long time.')
    time_constant: float = parameter(12.4, 's', 'Time constant of the convergence.', above=0.0)
    k: float = non_negative(0.02, 'm', 'Standard deviation east and north at HDOP 1 (RTK fix).')
    vertical_factor: float = non_negative(2.0, '1', 'Vertical over horizontal standard deviation.')

    def start(self) -> CovarianceSource:
        """Return the low pass at `hdop_initial`."""
        return _Hdop(self)


class _Fixed:
    def __init__(self, variance: FloatArray) -> None:
        self._variance = variance

    def advance(self, dt: FloatArray) -> FloatArray:
        return np.array(np.broadcast_to(self._variance, (len(dt), 3)))


class _Hdop:
    def __init__(self, parameters: HdopCovariance) -> None:
        self._hdop = Decay(
            parameters.hdop_initial, parameters.hdop_limit, parameters.time_constant
        )
        self._std = parameters.k * np.array([1.0, 1.0, parameters.vertical_factor])

    def advance(self, dt: FloatArray) -> FloatArray:
        std: FloatArray = self._std * self._hdop.advance(dt)
        return std * std


POSITION_COVARIANCES = variants('a position covariance', PositionCovariance)
