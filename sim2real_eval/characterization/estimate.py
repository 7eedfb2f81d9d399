# SPDX-License-Identifier: Apache-2.0
"""A number found in a record: with its uncertainty, or with why the record does not show it."""

from __future__ import annotations

import dataclasses
import math

__all__ = ['ParameterEstimate', 'read_off_value', 'unseen', 'with_error']

# Below it an uncertainty is that of double precision.
_ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True)
class ParameterEstimate:
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
            return with_error(self.value, self.std)
        if self.lower > 0.0 and math.isinf(self.upper):
            return f'> {self.lower:.2g}'
        return 'not observable' if math.isinf(self.upper) else f'< {self.upper:.2g}'


def with_error(value: float, std: float) -> str:
    """Return a value with its uncertainty, both to two digits of the uncertainty; the value alone,
    to four of its own, where it has none: NaN, or rounding errors.

    Examples
    --------
    >>> with_error(33.3416, 3.27), with_error(0.0021293, 0.00022), with_error(2.5e-7, 9.1e-17)
    ('33.3 ± 3.3', '0.00213 ± 0.00022', '2.5e-07')
    >>> with_error(6.1234e-7, 1.2e-8), with_error(-1e-4, 0.02), with_error(12345.6, 700.0)
    ('(6.12 ± 0.12)e-07', '0.000 ± 0.020', '12350 ± 700')
    """
    if not math.isfinite(std) or std <= _ROUNDING * abs(value):
        return f'{value + 0.0:.4g}'
    exponent = math.floor(math.log10(max(abs(value), std)))
    shift = exponent if exponent < -4 or exponent > 5 else 0
    value, std = value / 10.0**shift, std / 10.0**shift
    # Of .2g, since 0.0996 has its first digit before the point that its logarithm says.
    digits = 1 - math.floor(math.log10(float(f'{std:.1e}')))
    places = max(digits, 0)
    # A rounded negative zero plus zero has no sign.
    shown = f'{round(value, digits) + 0.0:.{places}f} ± {round(std, digits):.{places}f}'
    return f'({shown})e{shift:+03d}' if shift else shown


def unseen(
    unit: str, remark: str, *, value: float = 0.0, lower: float = 0.0, upper: float = math.inf
) -> ParameterEstimate:
    """Return what a record does not show."""
    return ParameterEstimate(value, math.nan, unit, False, lower, upper, remark)


def read_off_value(value: float, unit: str, remark: str) -> ParameterEstimate:
    """Return what was read off: an extreme of the record has no standard uncertainty."""
    return ParameterEstimate(value, math.nan, unit, True, 0.0, math.inf, remark)
