# SPDX-License-Identifier: Apache-2.0
"""What tuning may be told, and what is allowed."""

from __future__ import annotations

import dataclasses

from sim_sensors.core.parameters import Parameters, non_negative, parameter

RMS = {'speed': 'm/s', 'position': 'm', 'heading': 'rad'}
"""Errors by their root mean square, and units; gains are shares of the mean at the start."""

SCORES = ('nees', 'likelihood')
"""Losses that count what the filter states as well: minus the logarithm of the density that it
gave, up to a constant, of the true position, heading and velocity, or of the next measurement."""

KINDS = (*RMS, *SCORES)

LEAST_BLOCKS = 6
"""With fewer no interval of 95 % has ends."""


@dataclasses.dataclass(frozen=True)
class TuneOptions(Parameters):
    """How is tuned."""

    objective: str | None = parameter(
        None,
        '',
        'What is made small: the error of speed, position or heading; nees, which counts the '
        'stated covariance as well; or minus the likelihood of the innovations, which needs no '
        'truth (speed with truth, else likelihood, where it is not given).',
        optional=str,
        choices=KINDS,
    )
    parameters: str | None = parameter(
        None,
        '',
        'What is tuned, by comma: noise (process noise by block), gates, inputs (which inputs and '
        'components), heading (yaw_offset), covariance (a factor by topic), all, or single names '
        'such as process_noise_covariance.velocity (noise, or all that another --judge declares, '
        'where it is not given).',
        optional=str,
    )
    blocks: int = parameter(
        10,
        '1',
        'Parts into which recordings are dealt, each held out once; whole drives where there are '
        'as many.',
        minimum=LEAST_BLOCKS,
        maximum=1000,
    )
    warmup: float = non_negative(
        5.0, 's', 'Beginning of each recording that does not count.', maximum=1e6
    )
    level: float = parameter(0.95, '1', 'Level of the intervals.', minimum=0.5, maximum=0.999)


def gain_text(kind: str, gain: float) -> str:
    """Return a gain as people read it: per cent of an error, or the difference of scores.

    Examples
    --------
    >>> gain_text('speed', 0.25), gain_text('likelihood', 0.25)
    ('25.0 %', '0.250')
    """
    return f'{100.0 * gain:.1f} %' if kind in RMS else f'{gain:.3f}'
