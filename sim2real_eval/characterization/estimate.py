# SPDX-License-Identifier: Apache-2.0
"""A number found in a record: with its uncertainty, or with why the record does not show it."""

from __future__ import annotations

import dataclasses
import math

__all__ = ['Estimate', 'read_off_value', 'unseen']


@dataclasses.dataclass(frozen=True)
class Estimate:
    """One parameter.

    Attributes
    ----------
    value : float
        Best value; of what is not observable, what the model file takes.
    std : float
        Standard uncertainty; NaN for what was read off, not estimated.
    unit : str
    observable : bool
    lower, upper : float
        95 % interval; 0 and infinity where a side is open.
    remark : str
        Why it is not observable, or how it was found.
    """

    value: float
    std: float
    unit: str
    observable: bool = True
    lower: float = 0.0
    upper: float = math.inf
    remark: str = ''

    def agrees_with(self, value: float) -> bool:
        """Say whether a true value above 0 is within three standard uncertainties of the
        logarithm; of what is not observable, within the 95 % interval widened by half of itself.
        """
        if not self.observable:
            return self.lower / 1.5 <= value <= self.upper * 1.5
        return abs(math.log(value / self.value)) <= 3.0 * self.std / self.value

    def shown(self) -> str:
        """Return it for a table."""
        if self.observable:
            error = '' if math.isnan(self.std) else f' ± {self.std:.2g}'
            return f'{self.value:.4g}{error}'
        if self.lower > 0.0 and math.isinf(self.upper):
            return f'> {self.lower:.2g}'
        return 'not observable' if math.isinf(self.upper) else f'< {self.upper:.2g}'


def unseen(
    unit: str, remark: str, *, value: float = 0.0, lower: float = 0.0, upper: float = math.inf
) -> Estimate:
    """Return what a record does not show."""
    return Estimate(value, math.nan, unit, False, lower, upper, remark)


def read_off_value(value: float, unit: str, remark: str) -> Estimate:
    """Return what was read off: an extreme of the record has no standard uncertainty."""
    return Estimate(value, math.nan, unit, True, 0.0, math.inf, remark)
