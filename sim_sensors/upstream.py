# SPDX-License-Identifier: Apache-2.0
"""Models carried over from other simulators: as they should be, or with the defects they have."""

from __future__ import annotations

import dataclasses

from sim_sensors.parameters import Parameters, parameter

__all__ = ['Upstream']


@dataclasses.dataclass(frozen=True)
class Upstream(Parameters):
    """A model of another simulator, as it should be or with the defects that it has."""

    variant: str = parameter(
        'exact',
        '',
        'exact, or as_upstream: with the defects that the page of the model lists.',
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
