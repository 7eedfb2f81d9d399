# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Quantities of all runs on a common time grid with trends and spectra, and pairs of runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.findings import Finding
from sim2real_eval.metrics.error_curves import PowerSpectrum, default_segment, spectrum
from sim_sensors.core.measurements import FloatArray
from . import agreement, findings
from .lag import lag_of
from .measured import SensorSeries, SensorSignals
from .options import SignalComparisonError, SignalOptions
from .quantities import Quantity

_OFF_GRID = 0.05
_SAME_RATE = 1e-3
_MIN_SAMPLES = 16
_MIN_IN_PAIR = 32
_MAX_SHOWN = 1 << 15  # frequencies


@dataclasses.dataclass(frozen=True, eq=False)
class GriddedRun:
    """Quantity of a run at the stamps of the sensor and on the common grid."""

    sampled: SensorSeries
    even: SensorSeries
    _trends: dict[int, FloatArray] = dataclasses.field(init=False, default_factory=dict)

    def trend(self, window: int) -> FloatArray:
        """Return the running median of the size of the error, `(m, k)`; see `median_trend`."""
        if window not in self._trends:
            self._trends[window] = self._trend(window)
        return self._trends[window]

    def _trend(self, window: int) -> FloatArray:
        sizes = np.abs(self.even.error)
        trends = [
            agreement.median_trend(sizes[:, number], window) for number in range(sizes.shape[1])
        ]
        return np.stack(trends, axis=1)


@dataclasses.dataclass(frozen=True, eq=False)
class PreparedQuantity:
    """Quantity of all runs on a common grid.

    `rate` is that of the grid in Hz; the rate of a run may differ by 0.1 %. `spectra` has those of
    `signal`, `true` and `error` of all runs, the real runs first.
    """

    quantity: Quantity
    rate: float
    real: tuple[GriddedRun, ...]
    simulated: tuple[GriddedRun, ...]
    spectra: Mapping[str, tuple[PowerSpectrum, ...]]
    notes: tuple[Finding, ...]

    @property
    def frequency(self) -> FloatArray:
        """Frequencies of all spectra, Hz."""
        return self.spectra['error'][0].frequency

    @property
    def shown(self) -> slice | NDArray[np.intp]:
        """Frequencies that are drawn and written, thinned evenly on a logarithmic axis."""
        count = len(self.frequency)
        if count <= _MAX_SHOWN:
            return slice(None)
        return np.unique(np.geomspace(1, count, _MAX_SHOWN).astype(np.intp)) - 1

    def runs(self, side: str) -> tuple[GriddedRun, ...]:
        """Return the `real` or the `simulated` runs."""
        return self.real if side == 'real' else self.simulated

    def density(self, kind: str, side: str) -> FloatArray:
        """Return the density of `signal`, `true` or `error` averaged over the `real` or
        `simulated` runs, `(m, k)`.
        """
        n = len(self.real)
        chosen = self.spectra[kind][:n] if side == 'real' else self.spectra[kind][n:]
        return np.asarray(np.mean([spectrum.density for spectrum in chosen], axis=0))

    def trend_window(self, options: SignalOptions) -> int:
        """Return the window of the trend: as asked for, or what the shortest run has."""
        shortest = min(len(run.even.time) for run in (*self.real, *self.simulated))
        return min(options.trend_window, shortest - (shortest + 1) % 2)


def prepare(
    real: Sequence[SensorSeries], simulated: Sequence[SensorSeries], options: SignalOptions
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
    even = [run.on_grid(run_rate) for run, run_rate in zip(runs, rates, strict=True)]
    shortest = min(len(run.time) for run in even)
    if shortest < _MIN_SAMPLES:
        raise SignalComparisonError(
            f'rate: {rate:.4g} Hz leaves {shortest} samples of {quantity.name} in the '
            f'shortest run; must give {_MIN_SAMPLES} or more'
        )
    if quantity.name == 'yaw' and options.trend_window > shortest:
        notes.append(
            findings.RUN_SHORT(window='trend', asked=options.trend_window, taken=shortest)
        )
    nperseg = options.nperseg or default_segment(shortest)
    if nperseg == -1:
        nperseg = shortest
    elif nperseg > shortest:
        notes.append(findings.RUN_SHORT(window='segments', asked=nperseg, taken=shortest))
        nperseg = shortest

    computed_spectra: dict[tuple[int, float], PowerSpectrum] = {}

    def spectrum_of(values: FloatArray, rate: float) -> PowerSpectrum:
        return spectrum(values, rate, nperseg, options.window)

    def true_spectrum(values: FloatArray, rate: float) -> PowerSpectrum:
        # Runs with the same stamps often have the very same truth.
        key = id(values), rate
        if key not in computed_spectra:
            computed_spectra[key] = spectrum_of(values, rate)
        return computed_spectra[key]

    by_rate = list(zip(even, rates, strict=True))
    spectra = {
        'signal': tuple(spectrum_of(run.measured, run_rate) for run, run_rate in by_rate),
        'true': tuple(true_spectrum(run.true, run_rate) for run, run_rate in by_rate),
        'error': tuple(
            spectrum_of(_spectral_error(run, options), run_rate) for run, run_rate in by_rate
        ),
    }
    ready = [GriddedRun(*both) for both in zip(runs, even, strict=True)]
    return PreparedQuantity(
        quantity, rate, tuple(ready[: len(real)]), tuple(ready[len(real) :]), spectra, tuple(notes)
    )


def _spectral_error(run: SensorSeries, options: SignalOptions) -> FloatArray:
    """Return the error for a spectrum, which needs angles that are not wrapped."""
    error = run.measured - run.true
    return np.abs(error) if options.sizes else error


def _rate(run: SensorSeries, rate: float) -> float:
    """Return the rate of a run's grid: its own where that is the common one but for its clock.

    Its samples then need no interpolation; its frequencies are off by 0.1 % at most.
    """
    own_rate = run.rate
    return own_rate if abs(own_rate / rate - 1.0) < _SAME_RATE else rate


# Simulated and real runs of the same motion.
def followed_name(name: str, real_names: Iterable[str]) -> str | None:
    """Return the name of the real run that a simulated run follows by its name, or None.

    Examples
    --------
    >>> followed_name('drive_2_1', ['drive', 'drive_2'])
    'drive_2'
    """
    candidates = [real for real in real_names if name == real or name.startswith(f'{real}_')]
    return max(candidates, key=len, default=None)


def partners(
    real: Sequence[SensorSignals], simulated: Sequence[SensorSignals]
) -> list[int | None]:
    """Return for each simulated run the number of the real run whose motion it follows, or None.

    The real run has the same name, or the longest name that the simulated one continues with an
    underscore (`drive` for `drive_2`), and at least half of its time. Names of several real runs
    are not paired.
    """
    names = [run.name for run in real]
    numbers: list[int | None] = []
    for run in simulated:
        name = followed_name(run.name, names)
        if name is None or names.count(name) > 1:
            numbers.append(None)
            continue
        number = names.index(name)
        other = real[number]
        common = min(run.end_ns, other.end_ns) - max(run.start_ns, other.start_ns)
        span = min(run.end_ns - run.start_ns, other.end_ns - other.start_ns)
        numbers.append(number if 2 * common >= span else None)
    return numbers


def pairs_of(
    real: Sequence[SensorSignals],
    simulated: Sequence[SensorSignals],
    numbers: Sequence[int | None],
    quantity: Quantity,
    options: SignalOptions,
) -> list[SensorSeries]:
    """Return each paired simulated run (see `partners`) with its real partner as the truth.

    The slower of the two gives the times, the other is interpolated to them.
    """
    pairs = []
    for run, number in zip(simulated, numbers, strict=True):
        if number is None:
            continue
        offset = (run.start_ns - real[number].start_ns) * 1e-9
        simulated_series, real_series = (
            signals.measured[quantity.name] for signals in (run, real[number])
        )
        pair = _pair(simulated_series, real_series, offset, options)
        if pair is not None:
            pairs.append(pair)
    return pairs


def _pair(
    simulated: SensorSeries, real: SensorSeries, offset: float, options: SignalOptions
) -> SensorSeries | None:
    time = simulated.time + offset
    lag = None
    if options.align != 'none':
        rate = min(simulated.rate, real.rate)
        low, high = max(time[0], real.time[0]), min(time[-1], real.time[-1])
        at = agreement.grid(np.array([low, max(high, low)]), rate)
        lag, late = lag_of(
            agreement.resample(time, simulated.measured, at),
            agreement.resample(real.time, real.measured, at),
            rate,
            options,
        )
        if late:
            time = time - late
    low, high = max(time[0], real.time[0]), min(time[-1], real.time[-1])
    slower = time if simulated.rate <= real.rate else real.time
    at = slower[(slower >= low) & (slower <= high)]
    if len(at) < _MIN_IN_PAIR:
        return None
    measured = agreement.resample(time, simulated.measured, at)
    true = agreement.resample(real.time, real.measured, at)
    return SensorSeries(simulated.quantity, at, measured, true, lag)
