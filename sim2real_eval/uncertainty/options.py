# SPDX-License-Identifier: Apache-2.0
"""How often is resampled, and at which level is judged."""

from __future__ import annotations

import dataclasses

from sim_sensors.parameters import Parameters, parameter

__all__ = ['UncertaintyOptions']


@dataclasses.dataclass(frozen=True)
class UncertaintyOptions(Parameters):
    """Options of `uncertainty`; see docs/uncertainty.md for what they do."""

    resamples: int = parameter(
        10_000,
        '1',
        'Permutations and resamples of the motions. Where all permutations are fewer, each is '
        'taken once and the chance is exact.',
        minimum=100,
        maximum=10_000_000,
    )
    level: float = parameter(
        0.95,
        '1',
        'Share of studies whose intervals hold the true distance; differences with an adjusted '
        'chance of at most one minus it are called real.',
        minimum=0.5,
        maximum=0.999,
    )
    power: float = parameter(
        0.8,
        '1',
        'Power: probability to detect a difference of two models, for the number of further '
        'motions.',
        minimum=0.5,
        maximum=0.999,
    )
    most_motions: int = parameter(
        1000, '1', 'Beyond so many further motions only "more than" is said.', minimum=1
    )
