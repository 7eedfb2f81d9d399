# SPDX-License-Identifier: Apache-2.0
"""Real against simulated signals: agreement with truth, distances, significance."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sim2real_eval.common.findings import Finding, by_severity, merge_findings
from sim2real_eval.metrics.uncertainty import permutation_test
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.blocks import column_of
from sim_sensors.core.scratch import joined, release
from .agreement import (
    ErrorDistance,
    SeriesAgreement,
    SpectrumDistance,
    log_spectral_distance,
    mean_agreement,
    wasserstein,
)
from .features import FeatureAgreement, FeatureRow
from .findings import TOO_FEW_RUNS, YAW_INTEGRATED, YAW_PUBLISHED, YAW_UNLIKE
from .measured import QUANTITIES, Measured, SensorSignals, run_signals
from .options import SignalComparisonError, SignalOptions
from .prepared import PreparedQuantity, PreparedRun, pairs_of, partners, prepare


@dataclasses.dataclass(frozen=True)
class SignalRow:
    """One signal of one set of simulated runs, held against that of the real runs."""

    # Label of the simulated set, and such as `angular_rate_x`, `rad/s`
    model: str
    signal: str
    unit: str
    # Runs
    n_real: int
    n_simulated: int
    # With their own truth
    real: SeriesAgreement
    simulated: SeriesAgreement
    # Of paired runs with each other, simulated less real; None without pairs
    between: SeriesAgreement | None
    # Mean over the runs where one could be told, s; one lag for all axes of a quantity
    lag_real: float | None
    lag_simulated: float | None
    lag_between: float | None
    # Standard uncertainty of that mean, s, the larger of what runs state and how they scatter
    lag_real_std: float | None
    lag_simulated_std: float | None
    lag_between_std: float | None
    # Wasserstein distance of the errors, unit of the signal, and their log spectral one, dB
    error_distance: float
    spectrum_distance: float
    # Median of the same distances between halves of the real runs; None with one real run
    error_split_half: float | None
    spectrum_split_half: float | None
    # Chance of so large a distance if all runs were alike; None when there are too few runs to
    # tell
    error_p: float | None = None
    spectrum_p: float | None = None
    # Smaller of the two, adjusted for looking at all distances of this model
    p_adjusted: float | None = None
    verdict: str = 'too few runs'  # `different`, `not significant` or `too few runs`


@dataclasses.dataclass(frozen=True, eq=False)
class SignalComparison:
    """Result of a comparison of signals.

    Attributes
    ----------
    rows : tuple of SignalRow
        Model by model.
    prepared : dict of str to dict of str to PreparedQuantity
        By model, then by name of the quantity: trends and spectra for plots and files.
    names : dict of str to tuple of str
        Names of the runs by model, and those of the real ones as `real`.
    options : SignalOptions
    notes : tuple of Finding
    features : tuple of FeatureRow
        Of models whose runs and real runs all have a camera that sees landmarks.
    """

    rows: tuple[SignalRow, ...]
    prepared: Mapping[str, Mapping[str, PreparedQuantity]]
    names: Mapping[str, tuple[str, ...]]
    options: SignalOptions
    notes: tuple[Finding, ...]
    features: tuple[FeatureRow, ...] = ()

    @property
    def models(self) -> list[str]:
        """Labels of the simulated sets."""
        return list(self.prepared)

    def sides(self) -> Iterator[tuple[str, str, PreparedQuantity]]:
        """Yield label, side (`real` or `simulated`) and quantity: real runs first, and once.

        Real runs are brought to the rate of the simulated ones where those are slower, so their
        spectra are those beside the first model that has
        the quantity.
        """
        told: set[str] = set()
        for model in self.models:
            for name, ready in self.prepared[model].items():
                if name not in told:
                    yield 'real', 'real', ready
                told.add(name)
        for model in self.models:
            for ready in self.prepared[model].values():
                yield model, 'simulated', ready

    def runs(self) -> Iterator[tuple[str, PreparedQuantity, str, PreparedRun]]:
        """Yield label, quantity, name of the run, and the quantity of that run."""
        for label, side, ready in self.sides():
            for name, run in zip(self.names[label], ready.runs(side), strict=True):
                yield label, ready, name, run


def compare_signals(
    real: Sequence[Recording],
    simulated: Sequence[Recording] | Mapping[str, Sequence[Recording]],
    options: SignalOptions | None = None,
) -> SignalComparison:
    """Compare the sensors of real and simulated recordings, each with its own truth.

    The simulated ones may be several sets by label. Runs of the name and time of a real run are
    paired with it; see `partners`. Raises Sim2RealError when a recording has no truth, or the sets
    have no quantity in common.
    """
    options = options or SignalOptions()
    sets = simulated if isinstance(simulated, Mapping) else {'simulated': simulated}
    return compare_runs(
        [run_signals(one, options) for one in real],
        {label: [run_signals(one, options) for one in runs] for label, runs in sets.items()},
        options,
    )


def compare_runs(
    real: Sequence[SensorSignals],
    simulated: Mapping[str, Sequence[SensorSignals]],
    options: SignalOptions,
) -> SignalComparison:
    """Compare signals that were held against their truth already; see `compare_signals`."""
    rows: list[SignalRow] = []
    prepared: dict[str, dict[str, PreparedQuantity]] = {}
    notes: list[Finding] = []
    few: dict[Finding, list[str]] = {}
    for model, runs in simulated.items():
        if not real or not runs:
            raise SignalComparisonError(
                f'{model}: no run; must be one real and one simulated or more'
            )
        mine, ready, said, lack = _compare_model(model, real, runs, options)
        rows += mine
        prepared[model] = ready
        notes += said
        if lack is not None:
            few.setdefault(lack, []).append(model)
    notes += [
        one if len(few) == 1 and len(who) == len(simulated) else one.of(', '.join(who))
        for one, who in few.items()
    ]
    about = [('real', run.notes) for run in real]
    about += [('simulated', run.notes) for runs in simulated.values() for run in runs]
    names = {label: tuple(run.name for run in runs) for label, runs in simulated.items()}
    return SignalComparison(
        tuple(rows),
        prepared,
        {'real': tuple(run.name for run in real), **names},
        options,
        tuple(by_severity([*merge_findings(about), *notes])),
        tuple(filter(None, (_features(*one, real) for one in simulated.items()))),
    )


def _features(
    model: str, runs: Sequence[SensorSignals], real: Sequence[SensorSignals]
) -> FeatureRow | None:
    first, second = ([run.features for run in side if run.features] for side in (real, runs))
    if not first or not second:
        return None
    mean = FeatureAgreement.mean
    return FeatureRow(model, len(first), len(second), mean(first), mean(second))


def _compare_model(
    model: str,
    real: Sequence[SensorSignals],
    runs: Sequence[SensorSignals],
    options: SignalOptions,
) -> tuple[list[SignalRow], dict[str, PreparedQuantity], list[Finding], Finding | None]:
    """Return rows, quantities, notes, and why no difference can be significant, if so."""
    everywhere = [
        quantity
        for quantity in QUANTITIES
        if all(quantity.name in run.measured for run in (*real, *runs))
    ]
    said: dict[Finding, list[str]] = {}
    if unlike := _unlike_yaw((*real, *runs)):
        everywhere = [quantity for quantity in everywhere if quantity.name != 'yaw']
        said[unlike] = [model]
    if not everywhere and _features(model, runs, real) is not None:
        return [], {}, list(said), None
    if not everywhere:
        lacking = unlike or (
            'real and simulated runs have no sensor in common; each must have an IMU, or each a '
            'GPS receiver, or each a camera that finds landmarks of the world'
        )
        raise SignalComparisonError(f'{model}: {lacking}')
    numbers = partners(real, runs)
    permutations = permutation_test.permute_labels(
        [f'{i}' for i in range(len(real))],
        [f'alone {i}' if number is None else f'{number}' for i, number in enumerate(numbers)],
        options.permutations,
        options.seed,
    )
    enough = permutations.least <= options.level
    n = len(real)
    lack = None
    if not enough:
        pairing = 'paired' if permutations.paired else 'unpaired'
        lack = TOO_FEW_RUNS(real=n, simulated=len(runs), least=permutations.least, pairing=pairing)
    rows: list[SignalRow] = []
    ready: dict[str, PreparedQuantity] = {}
    distances: list[permutation_test.Divisible] = []
    for quantity in everywhere:
        one = prepare(
            [run.measured[quantity.name] for run in real],
            [run.measured[quantity.name] for run in runs],
            options,
        )
        for note in one.notes:
            said.setdefault(note, []).append(quantity.name)
        ready[quantity.name] = one
        pairs = pairs_of(real, runs, numbers, quantity, options)
        lags = _mean_lags(
            real=[run.sampled for run in one.real],
            simulated=[run.sampled for run in one.simulated],
            between=pairs,
        )
        for column, signal in enumerate(quantity.labels()):
            errors = [column_of(run.sampled.error, column) for run in (*one.real, *one.simulated)]
            density = joined(np.stack([each.density[:, column] for each in one.spectra['error']]))
            if enough:
                distances += ErrorDistance.of(errors), SpectrumDistance(density)
            split_half: list[float | None] = [None, None]
            if n > 1:
                split_half = [
                    permutation_test.split_half_distance(each, n, options.seed)
                    for each in (ErrorDistance.of(errors[:n]), SpectrumDistance(density[:n]))
                ]
            spectra = density[:n].mean(axis=0), density[n:].mean(axis=0)
            rows.append(
                SignalRow(
                    model=model,
                    signal=signal,
                    unit=quantity.unit,
                    n_real=n,
                    n_simulated=len(runs),
                    real=_mean_agreement([run.sampled for run in one.real], column),
                    simulated=_mean_agreement([run.sampled for run in one.simulated], column),
                    between=_mean_agreement(pairs, column) if pairs else None,
                    **lags,
                    error_distance=wasserstein(errors[:n], errors[n:]),
                    spectrum_distance=float(log_spectral_distance(*spectra)),
                    error_split_half=split_half[0],
                    spectrum_split_half=split_half[1],
                )
            )
            release()
    if enough:
        found = permutation_test.distance_p_values(distances, permutations)
        rows = [
            _judged(row, found.single[2 * i :][:2], found.adjusted[2 * i :][:2], options.level)
            for i, row in enumerate(rows)
        ]
    notes = [note.of(', '.join(who)) for note, who in said.items()]
    return rows, ready, notes, lack


def _unlike_yaw(runs: Sequence[SensorSignals]) -> Finding | None:
    """Return why yaw is not compared: some runs publish it, of others it is integrated."""
    published, integrated = (
        sum(any(note.kind == kind for note in run.notes) for run in runs)
        for kind in (YAW_PUBLISHED, YAW_INTEGRATED)
    )
    if not published or not integrated:
        return None
    return YAW_UNLIKE(published=published, integrated=integrated)


def _judged(
    row: SignalRow, single: Sequence[float], adjusted: Sequence[float], level: float
) -> SignalRow:
    least = min(adjusted)
    return dataclasses.replace(
        row,
        error_p=single[0],
        spectrum_p=single[1],
        p_adjusted=least,
        verdict='different' if least <= level else 'not significant',
    )


def _mean_agreement(runs: Sequence[Measured], column: int) -> SeriesAgreement:
    return mean_agreement([run.agreements[column] for run in runs])


def _mean_lags(**sides: Sequence[Measured]) -> dict[str, Any]:
    """Return the fields `lag_...` of a row."""
    found: dict[str, Any] = {}
    for side, runs in sides.items():
        known = [run.lag for run in runs if run.lag is not None]
        found[f'lag_{side}'] = float(np.mean([lag.seconds for lag in known])) if known else None
        own = np.mean([lag.std**2 for lag in known]) if known else np.nan
        scatter = np.var([lag.seconds for lag in known], ddof=1) if len(known) > 1 else 0.0
        std = float(np.sqrt(np.fmax(own, scatter) / max(len(known), 1)))
        found[f'lag_{side}_std'] = std if std == std and known else None
    return found
