# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Comparison of a sensor with the output of a simulator that reads its exported file."""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import Any

import numpy as np

from sim_sensors.core.measurements import FloatArray

TOLERANCE = 0.10
"""Largest relative difference of the deviations at which a simulator matches a sensor."""
# Smallest relative difference that is reported as a misfit. A measured curve scatters beyond a
# share of its longest averaging time, and needs a larger one there.
_MISFIT, _SCATTERED_MISFIT = 0.20, 0.50
_RELIABLE_SHARE = 1.0 / 3.0


@dataclasses.dataclass(frozen=True, eq=False)
class AxisComparison:
    """Deviation of one axis as a function of time, `(k,)` each, of sensor and simulator.

    For an IMU it is the Allan deviation, for a position the standard deviation of the increments.
    The deviation of the sensor is measured if `is_measured` is True, and otherwise computed from
    its model. If the simulator has one number for three axes, `axis` names the triad, and the
    deviations are root mean squares over its axes.
    """

    axis: str
    times: FloatArray
    sensor_deviation: FloatArray
    simulated_deviation: FloatArray
    is_measured: bool = False

    @property
    def ratio(self) -> FloatArray:
        """Ratio of the simulated deviation to that of the sensor, `(k,)`."""
        return self.simulated_deviation / self.sensor_deviation

    def ranges(self, *, matched: bool) -> list[slice]:
        """Return the ranges of averaging times where the curves differ by at most 10 %.

        If `matched` is False, return the ranges where they differ by more.
        """
        is_close = np.abs(self.ratio - 1.0) <= TOLERANCE
        edges = np.flatnonzero(np.diff(np.concatenate([[False], is_close == matched, [False]])))
        return [slice(first, last) for first, last in zip(edges[::2], edges[1::2], strict=True)]

    @property
    def matched_range(self) -> tuple[float, float] | None:
        """The longest range of averaging times, s, with a difference of at most 10 %, or None."""
        ranges = self.ranges(matched=True)
        if not ranges:
            return None
        times = self.times[max(ranges, key=lambda part: part.stop - part.start)]
        return float(times[0]), float(times[-1])

    def deviations_at(self, time: float) -> tuple[float, float]:
        """Return the deviation of the sensor and of the simulator at a time, NaN where unknown."""
        if not self.times[0] * 0.999 <= time <= self.times[-1] * 1.001:
            return math.nan, math.nan
        sensor, simulated = (
            float(np.exp(np.interp(math.log(time), np.log(self.times), np.log(curve))))
            if curve.all() else 0.0
            for curve in (self.sensor_deviation, self.simulated_deviation)
        )  # fmt: skip
        return sensor, simulated


@dataclasses.dataclass(frozen=True)
class Misfit:
    """Range of averaging times, s, in which a simulator does not follow a model.

    `ratio` is the largest difference in the range: the simulated deviation over that of the
    sensor. `cause` is the effect that the simulator's noise model lacks: 'low_pass',
    'noise_at_rest', 'drift', 'flicker' or 'shape'.
    """

    axis: str
    first: float
    last: float
    ratio: float
    cause: str


@dataclasses.dataclass(frozen=True, eq=False)
class Export(abc.ABC):
    """A sensor file for a simulator, and the noise that the simulator makes from it.

    `model` is the sensor model of the simulator, including its defects. `omitted` are the
    parameters of the source that the simulator cannot express.
    """

    simulator: Any
    model: Any
    text: str
    axes: tuple[AxisComparison, ...]
    omitted: tuple[str, ...]

    @abc.abstractmethod
    def cause(self, axis: AxisComparison, last: float, ratio: float) -> str:
        """Return the cause of a misfit that ends at the averaging time `last`, s; see `Misfit`."""

    @property
    def misfits(self) -> tuple[Misfit, ...]:
        """The ranges in which the simulator is off by 20 % or more somewhere, by axis.

        The limit is 50 % where a measured curve scatters.
        """
        misfits = []
        for axis in self.axes:
            limit = axis.times[-1] * (_RELIABLE_SHARE if axis.is_measured else 1.0)
            least = np.where(axis.times <= limit, _MISFIT, _SCATTERED_MISFIT)
            for part in axis.ranges(matched=False):
                errors = np.abs(np.log(np.maximum(axis.ratio[part], 1e-9)))
                ratio = float(axis.ratio[part][errors.argmax()])
                first, last = float(axis.times[part][0]), float(axis.times[part][-1])
                if (np.abs(axis.ratio[part] - 1.0) >= least[part]).any():
                    cause = self.cause(axis, last, ratio)
                    misfits.append(Misfit(axis.axis, first, last, ratio, cause))
        return tuple(misfits)
