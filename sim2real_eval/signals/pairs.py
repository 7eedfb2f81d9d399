# SPDX-License-Identifier: Apache-2.0
"""Simulated and real runs of the same motion, sample beside sample."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sim2real_eval.signals.alignment import Lag, find_lag
from sim2real_eval.signals.measured import Measured, Quantity, RunSignals
from sim2real_eval.signals.options import SignalOptions
from sim2real_eval.signals.resampling import grid, median_rate, resample, wrap
from sim_sensors.measurements import FloatArray

__all__ = ['Pair', 'pairs_of']

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


def pairs_of(
    real: Sequence[RunSignals],
    simulated: Sequence[RunSignals],
    quantity: Quantity,
    options: SignalOptions,
) -> list[Pair]:
    """Return a pair for each simulated run whose name is that of exactly one real run.

    The slower of the two gives the times, the other is interpolated to them. Stamps are compared
    as they are; where the runs do not overlap in time at all, times since the start of each truth.
    """
    found = []
    names = [run.name for run in real]
    for run in simulated:
        if names.count(run.name) != 1:
            continue
        partner = real[names.index(run.name)]
        ours, theirs = run.measured[quantity.name], partner.measured[quantity.name]
        offset = (run.start_ns - partner.start_ns) * 1e-9
        if ours.time[-1] + offset < theirs.time[0] or ours.time[0] + offset > theirs.time[-1]:
            offset = 0.0
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
