# SPDX-License-Identifier: Apache-2.0
"""Simulated and real runs of the same motion, sample beside sample."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sim2real_eval.signals.agreement import Lag, find_lag, grid, median_rate, resample, wrap
from sim2real_eval.signals.measured import Measured, Quantity, SensorSignals
from sim2real_eval.signals.options import SignalOptions
from sim_sensors.core.measurements import FloatArray

_LEAST_SAMPLES = 32


@dataclasses.dataclass(frozen=True, eq=False)
class Pair:
    """What two sensors measured at the same times.

    Attributes
    ----------
    simulated, real : (n, k) float
    circular : bool
    lag : Lag or None
        Delay of the simulated measurements behind the real ones.
    """

    simulated: FloatArray
    real: FloatArray
    circular: bool
    lag: Lag | None

    @property
    def error(self) -> FloatArray:
        """Simulated less real, wrapped if need be."""
        error = self.simulated - self.real
        return wrap(error) if self.circular else error


def partners(
    real: Sequence[SensorSignals], simulated: Sequence[SensorSignals]
) -> list[int | None]:
    """Return for each simulated run the number of the real run whose motion it follows, or None.

    That has its name, or the longest name that its own continues with an underscore (`drive` for
    `drive_2`), and at least half of its time. Names that several real runs have pair nothing.
    """
    names = [run.name for run in real]
    found: list[int | None] = []
    for run in simulated:
        known = [name for name in names if run.name == name or run.name.startswith(f'{name}_')]
        name = max(known, key=len, default=None)
        if name is None or names.count(name) > 1:
            found.append(None)
            continue
        number = names.index(name)
        other = real[number]
        common = min(run.end_ns, other.end_ns) - max(run.start_ns, other.start_ns)
        span = min(run.end_ns - run.start_ns, other.end_ns - other.start_ns)
        found.append(number if 2 * common >= span else None)
    return found


def pairs_of(
    real: Sequence[SensorSignals],
    simulated: Sequence[SensorSignals],
    numbers: Sequence[int | None],
    quantity: Quantity,
    options: SignalOptions,
) -> list[Pair]:
    """Return a pair for each simulated run that has a partner (see `partners`).

    The slower of the two gives the times, the other is interpolated to them.
    """
    found = []
    for run, number in zip(simulated, numbers, strict=True):
        if number is None:
            continue
        partner = real[number]
        offset = (run.start_ns - partner.start_ns) * 1e-9
        ours, theirs = run.measured[quantity.name], partner.measured[quantity.name]
        pair = _pair(ours, theirs, offset, options)
        if pair is not None:
            found.append(pair)
    return found


def _pair(ours: Measured, theirs: Measured, offset: float, options: SignalOptions) -> Pair | None:
    time = ours.time + offset
    lag = None
    if options.align != 'none':
        rate = min(median_rate(time), median_rate(theirs.time))
        low, high = max(time[0], theirs.time[0]), min(time[-1], theirs.time[-1])
        at = grid(np.array([low, max(high, low)]), rate)
        lag = find_lag(
            resample(time, ours.measured, at),
            resample(theirs.time, theirs.measured, at),
            rate,
            options.max_lag,
        )
        if lag is not None and options.align == 'apply':
            time = time - lag.seconds
    low, high = max(time[0], theirs.time[0]), min(time[-1], theirs.time[-1])
    slower = time if median_rate(time) <= median_rate(theirs.time) else theirs.time
    at = slower[(slower >= low) & (slower <= high)]
    if len(at) < _LEAST_SAMPLES:
        return None
    return Pair(
        resample(time, ours.measured, at),
        resample(theirs.time, theirs.measured, at),
        ours.quantity.circular,
        lag,
    )
