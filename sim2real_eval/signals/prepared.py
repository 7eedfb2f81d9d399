# SPDX-License-Identifier: Apache-2.0
"""One quantity of all runs on a common time grid: trends and spectra."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sim2real_eval.common.findings import Finding
from sim2real_eval.metrics.error_curves import Spectrum, default_segment, spectrum
from sim2real_eval.signals import findings
from sim2real_eval.signals.agreement import (
    Lag,
    SeriesAgreement,
    agreement,
    grid,
    median_rate,
    median_trend,
    off_grid,
    resample,
    wrap,
)
from sim2real_eval.signals.measured import Measured, Quantity
from sim2real_eval.signals.options import SignalComparisonError, SignalOptions
from sim_sensors.core.measurements import FloatArray

_OFF_GRID = 0.05
_SAME_RATE = 1e-3
_LEAST_SAMPLES = 16


@dataclasses.dataclass(frozen=True, eq=False)
class PreparedRun:
    """One quantity of one run.

    Attributes
    ----------
    sampled : Measured
        At the sensor's own stamps.
    error : (n, k) float
        There.
    lag : Lag or None
    time : (m,) float
        Common grid, s since the start of the truth.
    measured, true : (m, k) float
        On the grid; angles continuous.
    """

    sampled: Measured
    error: FloatArray
    lag: Lag | None
    time: FloatArray
    measured: FloatArray
    true: FloatArray

    def agreement(self, column: int) -> SeriesAgreement:
        """Return the agreement with truth at the sensor's own stamps."""
        one = self.sampled
        return agreement(one.measured[:, column], one.true[:, column], self.error[:, column])

    def grid_error(self) -> FloatArray:
        """Return the error on the grid, `(m, k)`; of angles in [-pi, pi)."""
        error = self.measured - self.true
        return wrap(error) if self.sampled.quantity.circular else error

    def trend(self, window: int) -> FloatArray:
        """Return the running median of the size of the error, `(m, k)`; see `median_trend`."""
        size = np.abs(self.grid_error())
        return np.stack([median_trend(column, window) for column in size.T], axis=1)


@dataclasses.dataclass(frozen=True, eq=False)
class PreparedQuantity:
    """One quantity of all runs.

    Attributes
    ----------
    quantity : Quantity
    rate : float
        Of the common grid, Hz; that of a run may differ by 0.1 %.
    nperseg : int
        Samples per segment of the spectra.
    real, simulated : tuple of PreparedRun
    signal_spectra, true_spectra, error_spectra : tuple of Spectrum
        Of all runs, real ones first.
    notes : tuple of Finding
    """

    quantity: Quantity
    rate: float
    nperseg: int
    real: tuple[PreparedRun, ...]
    simulated: tuple[PreparedRun, ...]
    signal_spectra: tuple[Spectrum, ...]
    true_spectra: tuple[Spectrum, ...]
    error_spectra: tuple[Spectrum, ...]
    notes: tuple[Finding, ...]

    @property
    def frequency(self) -> FloatArray:
        """Frequencies of all spectra, Hz."""
        return self.error_spectra[0].frequency

    def density(self, kind: str, side: str) -> FloatArray:
        """Return a density averaged over runs, `(m, k)`.

        Parameters
        ----------
        kind : {'signal', 'true', 'error'}
        side : {'real', 'simulated'}
        """
        spectra: tuple[Spectrum, ...] = getattr(self, f'{kind}_spectra')
        n = len(self.real)
        chosen = spectra[:n] if side == 'real' else spectra[n:]
        mean: FloatArray = np.mean([each.density for each in chosen], axis=0)
        return mean

    def trend_window(self, options: SignalOptions) -> int:
        """Return the window of the trend: as asked for, or what the shortest run has."""
        shortest = min(len(run.time) for run in (*self.real, *self.simulated))
        return min(options.trend_window, shortest - (shortest + 1) % 2)


def prepare(
    real: Sequence[Measured], simulated: Sequence[Measured], options: SignalOptions
) -> PreparedQuantity:
    """Bring runs to a common rate and take their spectra.

    Every spectrum has segments of the same length, so that all are on the same frequencies.

    Raises
    ------
    SignalComparisonError
        When the grid has fewer than 16 samples in a run.
    """
    quantity = real[0].quantity
    runs = [*real, *simulated]
    notes: list[Finding] = []
    slowest = min(median_rate(run.time) for run in runs)
    rate = options.rate or slowest
    if rate > 1.01 * slowest:
        notes.append(findings.GRID_TOO_FAST(grid=rate, sensor=slowest, half=0.5 * slowest))
    else:
        stray = max(off_grid(run.time, _rate(run, rate)) for run in runs)
        if stray > _OFF_GRID:
            notes.append(findings.OFF_GRID(off=stray, grid=rate))
    rates = [_rate(run, rate) for run in runs]
    ready = [_on_grid(run, own) for run, own in zip(runs, rates, strict=True)]
    shortest = min(len(run.time) for run in ready)
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

    def spectra(kind: str) -> tuple[Spectrum, ...]:
        found = []
        for run, own in zip(ready, rates, strict=True):
            if kind == 'error':
                values = run.measured - run.true
            else:
                values = run.measured if kind == 'signal' else run.true
            found.append(spectrum(values, own, nperseg, options.window))
        return tuple(found)

    return PreparedQuantity(
        quantity,
        rate,
        nperseg,
        tuple(ready[: len(real)]),
        tuple(ready[len(real) :]),
        spectra('signal'),
        spectra('true'),
        spectra('error'),
        tuple(notes),
    )


def _rate(run: Measured, rate: float) -> float:
    """Return the rate of a run's grid: its own where that is the common one but for its clock.

    Its samples then need no interpolation; its frequencies are off by 0.1 % at most.
    """
    own = median_rate(run.time)
    return own if abs(own / rate - 1.0) < _SAME_RATE else rate


def _on_grid(run: Measured, rate: float) -> PreparedRun:
    at = grid(run.time, rate)
    return PreparedRun(
        run,
        run.error,
        run.lag,
        at,
        resample(run.time, run.measured, at),
        resample(run.time, run.true, at),
    )
