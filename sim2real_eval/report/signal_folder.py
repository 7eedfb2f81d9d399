# SPDX-License-Identifier: Apache-2.0
"""The folder that a comparison of signals leaves behind: tables, series and plots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim2real_eval.common.results import fresh_folder
from sim2real_eval.common.tables import Field, write_csv, write_json
from sim2real_eval.report.signal_plots import PLOTS, save_signal_plots

if TYPE_CHECKING:
    from sim2real_eval.signals.comparison import SignalComparison, SignalRow

MARK = 'comparison.json'

ROW_COLUMNS = (
    'model',
    'signal',
    'unit',
    'n_real',
    'n_simulated',
    'rmse_real',
    'rmse_simulated',
    'r_real',
    'r_simulated',
    'mean_error_real',
    'mean_error_simulated',
    'rmse_between',
    'r_between',
    'lag_real_s',
    'lag_simulated_s',
    'lag_between_s',
    'error_distance',
    'error_split_half',
    'error_p',
    'spectrum_distance_db',
    'spectrum_split_half_db',
    'spectrum_p',
    'p_adjusted',
    'verdict',
)
RUN_COLUMNS = ('model', 'run', 'signal', 'unit', 'samples', 'rmse', 'r', 'mean_error', 'lag_s')
_TREND_RATE = 10.0


def write_signals(
    folder: str | Path,
    comparison: SignalComparison,
    record: Mapping[str, Any],
    *,
    overwrite: bool = False,
) -> Path:
    """Write comparison.csv and .json, runs.csv, trend.csv, psd.csv and the plots, all or nothing.

    Parameters
    ----------
    folder : str or Path
        Written under a temporary name beside it and then moved.
    comparison : SignalComparison
    record : mapping
        Plain values for comparison.json.
    overwrite : bool
        Replace an older result of this kind.

    Raises
    ------
    Sim2RealError
        When the folder exists and may not be replaced.
    """
    with fresh_folder(folder, MARK, overwrite=overwrite, older=lambda record: PLOTS) as fresh:
        write_csv(fresh / 'comparison.csv', ROW_COLUMNS, map(_row, comparison.rows))
        write_csv(fresh / 'runs.csv', RUN_COLUMNS, _runs(comparison))
        write_csv(
            fresh / 'trend.csv',
            ('model', 'run', 'signal', 'unit', 'time_s', 'error', 'trend'),
            _trends(comparison),
        )
        write_csv(
            fresh / 'psd.csv',
            ('model', 'signal', 'frequency_hz', 'unit', 'signal_psd', 'truth_psd', 'error_psd'),
            _densities(comparison),
        )
        write_json(fresh / MARK, record)
        save_signal_plots(fresh, comparison)
    return Path(folder)


def _row(row: SignalRow) -> tuple[Field, ...]:
    between = row.between
    return (
        row.model,
        row.signal,
        row.unit,
        row.n_real,
        row.n_simulated,
        row.real.rmse,
        row.simulated.rmse,
        row.real.correlation,
        row.simulated.correlation,
        row.real.mean,
        row.simulated.mean,
        None if between is None else between.rmse,
        None if between is None else between.correlation,
        row.lag_real,
        row.lag_simulated,
        row.lag_between,
        row.error_distance,
        row.error_split_half,
        row.error_p,
        row.spectrum_distance,
        row.spectrum_split_half,
        row.spectrum_p,
        row.p_adjusted,
        row.verdict,
    )


def _runs(comparison: SignalComparison) -> Iterator[tuple[Field, ...]]:
    for model, _, name, one in comparison.runs():
        lag = None if one.lag is None else one.lag.seconds
        for column, signal in enumerate(one.sampled.quantity.labels()):
            found = one.agreement(column)
            unit = one.sampled.quantity.unit
            yield (
                model, name, signal, unit, found.samples, found.rmse, found.correlation,
                found.mean, lag,
            )  # fmt: skip


def _trends(comparison: SignalComparison) -> Iterator[tuple[Field, ...]]:
    """Yield yaw errors and their trends, thinned to about 10 Hz."""
    for model, ready, name, one in comparison.runs():
        quantity = one.sampled.quantity
        if quantity.name != 'yaw':
            continue
        step = max(1, round(ready.rate / _TREND_RATE))
        error, trend = one.grid_error(), one.trend(ready.trend_window(comparison.options))
        for i in range(0, len(one.time), step):
            yield (
                model, name, quantity.name, quantity.unit, one.time[i], error[i, 0], trend[i, 0],
            )  # fmt: skip


def _densities(comparison: SignalComparison) -> Iterator[tuple[Field, ...]]:
    for model, side, ready in comparison.sides():
        kinds = [ready.density(kind, side) for kind in ('signal', 'true', 'error')]
        unit = f'({ready.quantity.unit})^2/Hz'
        for column, signal in enumerate(ready.quantity.labels()):
            for i, frequency in enumerate(ready.frequency):
                yield (model, signal, frequency, unit, *(kind[i, column] for kind in kinds))
