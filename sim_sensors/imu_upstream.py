# SPDX-License-Identifier: Apache-2.0
"""What the IMUs of other simulators share."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.imu import ImuModel
from sim_sensors.measurements import FloatArray
from sim_sensors.parameters import parameter
from sim_sensors.upstream import Upstream

__all__ = ['SampledImu', 'UpstreamImu']


@dataclasses.dataclass(frozen=True)
class UpstreamImu(Upstream, ImuModel):
    """An IMU of another simulator, as it should be or with the defects that it has."""


@dataclasses.dataclass(frozen=True)
class SampledImu(UpstreamImu):
    """An IMU whose white noise is given as a deviation per sample.

    That alone would make it another sensor at every rate, since a density std / sqrt(rate) is
    what reaches whoever integrates. The exact variant keeps the density that the numbers have at
    `std_rate`.
    """

    std_rate: float = parameter(
        100.0,
        'Hz',
        'Rate at which a sample has the noise given per sample; at others the exact variant keeps '
        'the density, and as_upstream the deviation.',
        minimum=0.0,
        minimum_excluded=True,
    )

    def deviation(self, std: ArrayLike) -> FloatArray:
        """Return the deviation of a sample at the rate of the sensor."""
        scale = math.sqrt(self.rate / self.std_rate) if self.is_exact else 1.0
        return np.asarray(np.asarray(std, dtype=np.float64) * scale)
