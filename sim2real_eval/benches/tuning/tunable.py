# SPDX-License-Identifier: Apache-2.0
"""One parameter of a judge that can be tuned."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

DECADES = (-4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Powers of ten by which a positive parameter is tried."""

_NEXT = 0.02


@dataclasses.dataclass(frozen=True)
class Tunable:
    """One parameter that can be tuned.

    Attributes
    ----------
    name : str
        As the judge calls it; a part of it behind a dot.
    group : str
        Of `node_parameters.GROUPS`; `declared` of judges that declare their parameters.
    start : float
        Value in the user's file; 1 of factors; 0 and 1 of switches.
    levels : tuple of float
        Other values that are tried.
    scale : {'log', 'linear', 'choice'}
        Of the values between the levels; a choice has none.
    change : callable
        Takes a judge and a value, and returns the judge with it.
    unit : str

    Examples
    --------
    >>> gate = Tunable('gate', 'gates', 2.0, (3.0, math.inf), 'choice', min, 'sigma')
    >>> gate.bounds, gate.shown(math.inf), gate.is_bound(math.inf)
    ((2.0, inf), 'none', False)
    """

    name: str
    group: str
    start: float
    levels: tuple[float, ...]
    scale: str
    change: Callable[[Any, float], Any]
    unit: str = ''

    @property
    def is_factor(self) -> bool:
        """Whether a value is a factor of what the file or the messages say."""
        return self.scale == 'log' and self.group != 'declared'

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest value."""
        values = (self.start, *self.levels)
        return min(values), max(values)

    def is_bound(self, value: float) -> bool:
        """Say whether a value of a scale is a bound, or next to it."""
        if self.scale == 'choice':
            return False
        low, high = map(self.coordinate, self.bounds)
        return min(self.coordinate(value) - low, high - self.coordinate(value)) < _NEXT

    def coordinate(self, value: float) -> float:
        """Return where a value is on the scale of the search: decades, or tenths of the unit."""
        return math.log10(value) if self.scale == 'log' else 10.0 * value

    def value(self, coordinate: float) -> float:
        """Return the value of a coordinate, as near as the bounds allow."""
        value = 10.0**coordinate if self.scale == 'log' else coordinate / 10.0
        return min(max(value, self.bounds[0]), self.bounds[1])

    def shown(self, value: float) -> str:
        """Return a value as people read it."""
        if self.scale == 'choice' and not self.unit:
            return 'true' if value else 'false'
        if math.isinf(value):
            return 'none'
        return f'x {value:.3g}' if self.is_factor else f'{value:.4g}'
