# SPDX-License-Identifier: Apache-2.0
"""Columns of tables that hold times: their units, and doubts about them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim_sensors.measurements import IntArray

__all__ = ['TIME_COLUMNS', 'nanoseconds', 'rate_warnings']

TIME_COLUMNS = {
    'stamp_ns': 1.0, 'time_ns': 1.0, 'time_us': 1e3, 'time_ms': 1e6,
    'time': 1e9, 't': 1e9, 'timestamp': 1e9, 'time_s': 1e9,
}  # fmt: skip
"""Nanoseconds in 1 of a column, by its name in lower case."""

# s between samples; no inertial sensor is slower or faster, but milliseconds read as seconds are,
# or seconds as milliseconds.
_LONGEST_STEP = 2.0
_SHORTEST_STEP = 2e-5


def nanoseconds(column: NDArray[Any], name: str) -> IntArray:
    """Return the times of a column, `(n,)` ns.

    Parameters
    ----------
    column : (n,) real
        In the unit that its name tells.
    name : str
        Of `TIME_COLUMNS`, in any case.

    Raises
    ------
    ValueError
        For what is no time, or steps that no inertial sensor has: the unit is another.
    """
    size = TIME_COLUMNS[name.lower()]
    unit = {1.0: 'ns', 1e3: 'us', 1e6: 'ms'}.get(size, 's')
    other = f'in {unit}; name it stamp_ns, time_us, time_ms or time (s) in --columns'
    if np.issubdtype(column.dtype, np.integer) and size == 1.0:
        stamps = np.asarray(column, np.int64)
    else:
        exact = np.asarray(column, np.float64) * size
        good = np.abs(exact) < 2.0**63
        if not good.all():
            bad = int(np.argmin(good))
            raise ValueError(f'{name} of sample {bad} is {column[bad]}; must be a time {other}')
        stamps = np.asarray(np.rint(exact), np.int64)
    steps = np.diff(stamps) * 1e-9
    steps = steps[steps != 0.0]  # every stamp may be there twice
    step = abs(float(np.median(steps))) if len(stamps) > 2 and len(steps) else _SHORTEST_STEP
    if not _SHORTEST_STEP <= step <= _LONGEST_STEP:
        raise ValueError(
            f'{name} steps by {step:.3g} s; must be {_SHORTEST_STEP:g} to {_LONGEST_STEP:g} s '
            f'{other}'
        )
    return stamps


def rate_warnings(rate: float | None, stamp_ns: IntArray) -> tuple[str, ...]:
    """Return notes: stamps look like numbers of samples, or a rate that was given is not taken
    since they tell another.

    Parameters
    ----------
    rate : float or None
        Hz, as given.
    stamp_ns : (n,) int64
    """
    if len(stamp_ns) < 2:
        return ()
    steps = np.diff(stamp_ns)
    step = float(np.median(steps)) * 1e-9
    if rate is None:
        if not (steps == 1_000_000_000).all():
            return ()
        return (
            'all samples are 1 s apart: if their time is a number of samples, name that column - '
            'in --columns and give the --rate',
        )
    if abs(rate * step - 1.0) < 0.01:
        return ()
    told = f'{1.0 / step:.6g} Hz' if step > 0.0 else 'no rate'
    return (
        f'its stamps tell {told}, so the given {rate:g} Hz are not taken; name that column - in '
        '--columns to leave the stamps out',
    )
