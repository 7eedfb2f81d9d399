# SPDX-License-Identifier: Apache-2.0
"""What a histogram of scores shows, and its bins: those of figure 3 of the VEPD paper."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from sim_sensors.measurements import FloatArray

__all__ = ['ENTROPY', 'RMSE', 'HistogramAxis']

_MAX_BINS = 64
_LEAST_BINS = 6


@dataclasses.dataclass(frozen=True)
class HistogramAxis:
    """What a histogram shows.

    Attributes
    ----------
    field : str
        Field of `RunScore`.
    label : str
        Text under the axis, with unit.
    title : str
        Text above the figure.
    bin_width, upper : float
        Bins of the paper, from 0 to `upper`; fewer when the data end before, more when they lie
        beyond, wider when they become too many.
    """

    field: str
    label: str
    title: str
    bin_width: float
    upper: float

    def edges(self, values: Sequence[float]) -> FloatArray:
        """Return bin edges that hold all values, of the paper's width, at least 6 bins.

        The width is doubled until at most 64 bins are left.
        """
        width = self.bin_width
        largest = max(values, default=self.upper)
        count = max(math.floor(largest / width) + 1, _LEAST_BINS)
        while count > _MAX_BINS:
            width *= 2
            count = math.floor(largest / width) + 1
        return np.arange(count + 1, dtype=np.float64) * width


RMSE = HistogramAxis('rmse', 'RMSE of speed [m/s]', 'RMSE of estimated speed', 0.025, 0.8)
ENTROPY = HistogramAxis(
    'entropy_difference',
    'Wiener entropy difference [1]',
    'Wiener entropy difference of estimated and true speed',
    0.00675,
    0.2,
)
