# SPDX-License-Identifier: Apache-2.0
"""MetricOptions: every choice in the VEPD pipeline, declared once."""

from __future__ import annotations

import dataclasses

from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.parameters import Parameters, parameter, rare

SPEED_COMPONENTS = ('horizontal', 'forward', 'x', 'y')


class MetricError(Sim2RealError):
    """A score or distance cannot be computed from what was given."""


@dataclasses.dataclass(frozen=True)
class MetricOptions(Parameters):
    """Options of the pipeline of [Mahajan2024], as its scripts [SBEL] have it.

    See docs/explanation/metric.md for what each does to the number. `MetricOptions()` is the
    pipeline of the paper's Tables I and II for files without zero padding.

    Examples
    --------
    >>> MetricOptions(warmup=3.0).rate
    15.0
    """

    rate: float = rare(15.0, 'Hz', 'Rate of the common time grid.', above=0.0, maximum=1e4)
    moving_average: int = rare(
        2,
        '1',
        'Samples in the moving average over the estimate and its times; 1 means none.',
        minimum=1,
    )
    rezero: str = rare(
        'none',
        '',
        'none: times as given, the grid starts at 0 (Tables I and II); each: estimate and truth '
        'each start at their own first sample (experiment D); common: both start at the earlier '
        'first sample.',
        choices=('none', 'each', 'common'),
    )
    warmup: float = parameter(
        0.0, 's', 'Start of every run that is left out of estimate and truth.', minimum=0.0
    )
    spectrum: str = rare(
        'magnitude',
        '',
        'Spectrum whose flatness is the entropy: magnitude (paper) or power (textbook).',
        choices=('magnitude', 'power'),
    )
    detrend: str = rare(
        'none',
        '',
        'mean: the mean is taken from each signal before the spectrum; none: it stays (paper).',
        choices=('none', 'mean'),
    )
    spectrum_floor: float = rare(
        1e-10,
        '1',
        'Added to the spectrum before the logarithm, in the unit of the spectrum.',
        above=0.0,
    )
    drop_zeros: bool = parameter(
        False,
        '',
        'Read files whose truth is padded with zeros, as the published ones: zeros are dropped '
        'from gt_time and from gt_vel separately.',
    )
