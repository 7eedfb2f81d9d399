# SPDX-License-Identifier: Apache-2.0
"""One quantity of all runs on a common time grid: trends and spectra; and runs of one motion,
sample beside sample.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.findings import Finding
from sim2real_eval.metrics.error_curves import Spectrum, default_segment, spectrum
from sim_sensors.core.blocks import by_blocks, column_of, rows_of
from sim_sensors.core.measurements import FloatArray
from . import agreement, findings
from .lag import lag_of
from .measured import Measured, Quantity, SensorSignals
from .options import SignalComparisonError, SignalOptions

_OFF_GRID = 0.05
_SAME_RATE = 1e-3
_LEAST_SAMPLES = 16
_LEAST_IN_PAIR = 32
_MOST_SHOWN = 1 << 15  # frequencies


@dataclasses.dataclass(frozen=True, eq=False)
class PreparedRun:
    """One quantity of one run: at the sensor's own stamps, and on the common grid."""

    sampled: Measured
    even: Measured
    _trends: dict[int, FloatArray] = dataclasses.field(init=False, default_factory=dict)

    def trend(self, window: int) -> FloatArray:
        """Return the running median of the size of the error, `(m, k)`; see `median_trend`."""
        if window not in self._trends:
            self._trends[window] = self._trend(window)
        return self._trends[window]

    def _trend(self, window: int) -> FloatArray:
        sizes = by_blocks(np.abs, self.even.error)
        trends = [
            agreement.median_trend(column_of(sizes, number), window)
            for number in range(sizes.shape[1])
        ]
        return by_blocks(lambda *parts: np.stack(parts, axis=1), *trends)


@dataclasses.dataclass(frozen=True, eq=False)
class PreparedQuantity:
    """One quantity of all runs.

    `rate` is that of the common grid, Hz; that of a run may differ by 0.1 %. `spectra` of
    `signal`, `true` and `error` are those of all runs, real ones first.
    """

    quantity: Quantity
    rate: float
    real: tuple[PreparedRun, ...]
    simulated: tuple[PreparedRun, ...]
    spectra: Mapping[str, tuple[Spectrum, ...]]
    notes: tuple[Finding, ...]

    @property
    def frequency(self) -> FloatArray:
        """Frequencies of all spectra, Hz."""
        return self.spectra['error'][0].frequency

    @property
    def shown(self) -> slice | NDArray[np.intp]:
        """Which frequencies are drawn and written: of very many, as even as a logarithmic axis."""
        count = len(self.frequency)
        if count <= _MOST_SHOWN:
            return slice(None)
        return np.unique(np.geomspace(1, count, _MOST_SHOWN).astype(np.intp)) - 1

    def runs(self, side: str) -> tuple[PreparedRun, ...]:
        """Return the `real` or the `simulated` runs."""
        return self.real if side == 'real' else self.simulated

    def density(self, kind: str, side: str) -> FloatArray:
        """Return the density of `signal`, `true` or `error` averaged over the `real` or
        `simulated` runs, `(m, k)`.
        """
        n = len(self.real)
        chosen = self.spectra[kind][:n] if side == 'real' else self.spectra[kind][n:]
        return np.asarray(np.mean([each.density for each in chosen], axis=0))

    def trend_window(self, options: SignalOptions) -> int:
        """Return the window of the trend: as asked for, or what the shortest run has."""
        shortest = min(len(run.even.time) for run in (*self.real, *self.simulated))
        return min(options.trend_window, shortest - (shortest + 1) % 2)


def prepare(
    real: Sequence[Measured], simulated: Sequence[Measured], options: SignalOptions
) -> PreparedQuantity:
    """Bring runs to a common rate and take their spectra.

    Every spectrum has segments of the same length, so that all are on the same frequencies.
    SignalComparisonError when the grid has fewer than 16 samples in a run.
    """
    quantity = real[0].quantity
    runs = [*real, *simulated]
    notes: list[Finding] = []
    slowest = min(run.rate for run in runs)
    rate = options.rate or slowest
    if rate > 1.01 * slowest:
        notes.append(findings.GRID_TOO_FAST(grid=rate, sensor=slowest, half=0.5 * slowest))
    else:
        stray = max(agreement.off_grid(run.time, _rate(run, rate)) for run in runs)
        if stray > _OFF_GRID:
            notes.append(findings.OFF_GRID(off=stray, grid=rate))
    rates = [_rate(run, rate) for run in runs]
    even = [run.on_grid(own) for run, own in zip(runs, rates, strict=True)]
    shortest = min(len(run.time) for run in even)
    if shortest < _LEAST_SAMPLES:
        raise SignalComparisonError(
            f'rate: {rate:.4g} Hz leaves {shortest} samples of {quantity.name} in the '
            f'shortest run; must give {_LEAST_SAMPLES} or more'
        )
    if quantity.name == 'yaw' and options.trend_window > shortest:
        notes.append(findings.TREND_IS_MEDIAN(samples=shortest))
    nperseg = options.nperseg or default_segment(shortest)
    if nperseg == -1:
        nperseg = shortest
    elif nperseg > shortest:
        notes.append(findings.SEGMENTS_CUT(asked=nperseg, taken=shortest))
        nperseg = shortest

    values = {
        'signal': [run.measured for run in even],
        'true': [run.true for run in even],
        # A spectrum needs angles that are not wrapped.
        'error': [
            by_blocks(np.subtract, run.measured, run.true) if quantity.circular else run.error
            for run in even
        ],
    }
    made: dict[tuple[int, float], Spectrum] = {}

    def spectrum_of(values: FloatArray, rate: float) -> Spectrum:
        # Runs with the same stamps often have the very same truth.
        key = id(values), rate
        if key not in made:
            made[key] = spectrum(values, rate, nperseg, options.window)
        return made[key]

    ready = [PreparedRun(*both) for both in zip(runs, even, strict=True)]
    return PreparedQuantity(
        quantity,
        rate,
        tuple(ready[: len(real)]),
        tuple(ready[len(real) :]),
        {kind: tuple(map(spectrum_of, found, rates)) for kind, found in values.items()},
        tuple(notes),
    )


def _rate(run: Measured, rate: float) -> float:
    """Return the rate of a run's grid: its own where that is the common one but for its clock.

    Its samples then need no interpolation; its frequencies are off by 0.1 % at most.
    """
    own = run.rate
    return own if abs(own / rate - 1.0) < _SAME_RATE else rate


# Simulated and real runs of the same motion.
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
) -> list[Measured]:
    """Return what each simulated run that has a partner (see `partners`) measured, with what its
    partner did as truth.

    The slower of the two gives the times, the other is interpolated to them.
    """
    found = []
    for run, number in zip(simulated, numbers, strict=True):
        if number is None:
            continue
        offset = (run.start_ns - real[number].start_ns) * 1e-9
        ours, theirs = (one.measured[quantity.name] for one in (run, real[number]))
        pair = _pair(ours, theirs, offset, options)
        if pair is not None:
            found.append(pair)
    return found


def _pair(
    ours: Measured, theirs: Measured, offset: float, options: SignalOptions
) -> Measured | None:
    time = by_blocks(lambda each: each + offset, ours.time)
    lag = None
    if options.align != 'none':
        rate = min(ours.rate, theirs.rate)
        low, high = max(time[0], theirs.time[0]), min(time[-1], theirs.time[-1])
        at = agreement.grid(np.array([low, max(high, low)]), rate)
        lag, late = lag_of(
            agreement.resample(time, ours.measured, at),
            agreement.resample(theirs.time, theirs.measured, at),
            rate,
            options,
        )
        if late:
            time = by_blocks(lambda each: each - late, time)
    low, high = max(time[0], theirs.time[0]), min(time[-1], theirs.time[-1])
    slower = time if ours.rate <= theirs.rate else theirs.time
    at = rows_of(slower, by_blocks(lambda each: (each >= low) & (each <= high), slower))
    if len(at) < _LEAST_IN_PAIR:
        return None
    measured = agreement.resample(time, ours.measured, at)
    true = agreement.resample(theirs.time, theirs.measured, at)
    return Measured(ours.quantity, at, measured, true, lag)
