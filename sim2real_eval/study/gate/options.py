# SPDX-License-Identifier: Apache-2.0
"""What a result is held against, with the defaults and what is allowed."""

from __future__ import annotations

import dataclasses

from sim_sensors.core.parameters import Parameters, parameter


@dataclasses.dataclass(frozen=True)
class GateOptions(Parameters):
    """What a result is held against.

    Attributes
    ----------
    models, scenarios, judges : tuple of str
        What is looked at; empty: everything.
    """

    max_vepd: float | None = parameter(
        None, '', 'Largest VEPD allowed.', optional=float, minimum=0.0
    )
    max_increase: float | None = parameter(
        None,
        '',
        'How much more than in the baseline is allowed (0 where it is not given); below 0: it '
        'must shrink.',
        optional=float,
    )
    by: str = parameter(
        'estimate',
        '',
        'What is held against a limit: estimate, VEPD itself; low, the lower bound of its '
        'interval, which breaks a limit only when that is sure; high, the upper bound, which '
        'breaks it unless it is sure to be kept.',
        choices=('estimate', 'low', 'high'),
    )
    confidence: float = parameter(0.95, '1', 'Level of the intervals.', minimum=0.5, maximum=0.999)
    resamples: int = parameter(
        10_000, '1', 'Resamples behind intervals and p-values.', minimum=100, maximum=10_000_000
    )
    seed: int = parameter(
        0, '1', 'Seed of all random draws; equal seeds give equal bytes.', minimum=0
    )
    models: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
