# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Comparison of real and simulated signals: agreement with truth, distances, significance."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from sim2real_eval.common.findings import Finding, by_severity, merge_findings
from sim2real_eval.metrics import permutation_test
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.measurements import FloatArray
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
from .measured import FEATURE, SensorSeries, SensorSignals, run_signals
from .options import SignalComparisonError, SignalOptions
from .prepared import GriddedRun, PreparedQuantity, pairs_of, partners, prepare
from .quantities import QUANTITIES


@dataclasses.dataclass(frozen=True)
class SignalRow:
    """Comparison of a signal of a set of simulated runs with that of the real runs."""

    # Label of the simulated set, name of the signal such as `angular_rate_x`, and unit
    model: str
    signal: str
    unit: str
    # Runs
    n_real: int
    n_simulated: int
    # With their own truth
    real: SeriesAgreement
    simulated: SeriesAgreement
    # Agreement of paired runs, simulated minus real; None without pairs
    between: SeriesAgreement | None
    # Mean over the runs with a lag, s; one lag for all axes of a quantity
    lag_real: float | None
    lag_simulated: float | None
    lag_between: float | None
    # Standard uncertainty of that mean, s: the larger of the stated and the scatter of the runs
    lag_real_std: float | None
    lag_simulated_std: float | None
    lag_between_std: float | None
    # Wasserstein distance of the errors, unit of the signal, and their log spectral one, dB: None
    # where a side has no errors but rounding, and so no spectrum
    error_distance: float
    spectrum_distance: float | None
    # Median of the same distances between halves of the real runs; None with one real run
    error_split_half: float | None
    spectrum_split_half: float | None
    # P-values of the permutation test; None with too few runs
    error_p: float | None = None
    spectrum_p: float | None = None
    # Smaller of the two, adjusted for testing all distances of this model
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
        Trends and spectra for plots and files, by model and name of the quantity.
    names : dict of str to tuple of str
        Names of the runs by model; those of the real runs are under `real`.
    options : SignalOptions
    notes : tuple of Finding
    features : tuple of FeatureRow
        Comparison of features for models whose runs, like the real ones, have a camera that sees
        landmarks.
    track : tuple of str, SensorSeries and SensorSeries, or None
        Model, and one feature of the first real and of the first simulated run.
    """

    rows: tuple[SignalRow, ...]
    prepared: Mapping[str, Mapping[str, PreparedQuantity]]
    names: Mapping[str, tuple[str, ...]]
    options: SignalOptions
    notes: tuple[Finding, ...]
    features: tuple[FeatureRow, ...] = ()
    track: tuple[str, SensorSeries, SensorSeries] | None = None

    @property
    def models(self) -> list[str]:
        """Labels of the simulated sets."""
        return list(self.prepared)

    def sides(self) -> Iterator[tuple[str, str, PreparedQuantity]]:
        """Yield label, side (`real` or `simulated`) and quantity; the real runs come first, once.

        The spectra of the real runs are on the grid of the first model that has the quantity,
        because slower simulated runs lower the common rate.
        """
        listed: set[str] = set()
        for model in self.models:
            for name, prepared in self.prepared[model].items():
                if name not in listed:
                    yield 'real', 'real', prepared
                listed.add(name)
        for model in self.models:
            for prepared in self.prepared[model].values():
                yield model, 'simulated', prepared

    def runs(self) -> Iterator[tuple[str, PreparedQuantity, str, GriddedRun]]:
        """Yield label, quantity, name of the run, and the quantity of that run."""
        for label, side, prepared in self.sides():
            for name, run in zip(self.names[label], prepared.runs(side), strict=True):
                yield label, prepared, name, run


def compare_signals(
    real: Sequence[Recording],
    simulated: Sequence[Recording] | Mapping[str, Sequence[Recording]],
    options: SignalOptions | None = None,
) -> SignalComparison:
    """Compare the sensors of real and simulated recordings, each with its own truth.

    The simulated recordings may be several sets by label. A run with the name and time of a real
    run is paired with it; see `partners`. Raises Sim2RealError when a recording has no truth, or
    the sets have no quantity in common.
    """
    options = options or SignalOptions()
    sets = simulated if isinstance(simulated, Mapping) else {'simulated': simulated}
    return compare_runs(
        [run_signals(recording, options) for recording in real],
        {
            label: [run_signals(recording, options) for recording in runs]
            for label, runs in sets.items()
        },
        options,
    )


def compare_runs(
    real: Sequence[SensorSignals],
    simulated: Mapping[str, Sequence[SensorSignals]],
    options: SignalOptions,
) -> SignalComparison:
    """Compare the signals of `run_signals`; see `compare_signals`."""
    rows: list[SignalRow] = []
    prepared: dict[str, dict[str, PreparedQuantity]] = {}
    notes: list[Finding] = []
    models_with_few_runs: dict[Finding, list[str]] = {}
    for model, runs in simulated.items():
        if not real or not runs:
            raise SignalComparisonError(
                f'{model}: no run; needs at least one real and one simulated run'
            )
        model_rows, ready, model_findings, too_few = _compare_model(model, real, runs, options)
        rows += model_rows
        prepared[model] = ready
        notes += model_findings
        if too_few is not None:
            models_with_few_runs.setdefault(too_few, []).append(model)
    notes += [
        finding
        if len(models_with_few_runs) == 1 and len(models) == len(simulated)
        else finding.restrict_to(', '.join(models))
        for finding, models in models_with_few_runs.items()
    ]
    run_findings = [('real', run.notes) for run in real]
    run_findings += [('simulated', run.notes) for runs in simulated.values() for run in runs]
    names = {label: tuple(run.name for run in runs) for label, runs in simulated.items()}
    return SignalComparison(
        tuple(rows),
        prepared,
        {'real': tuple(run.name for run in real), **names},
        options,
        tuple(by_severity([*merge_findings(run_findings), *notes])),
        tuple(filter(None, (_features(*finding, real) for finding in simulated.items()))),
        _track(real[0], simulated, options.feature),
    )


def _track(
    real: SensorSignals, simulated: Mapping[str, Sequence[SensorSignals]], feature: int | None
) -> tuple[str, SensorSeries, SensorSeries] | None:
    """Return the feature to draw of the first model with a camera; see `SignalComparison.track`.

    Raises SignalComparisonError if real and simulated camera do not both find the `feature`.
    """
    pairs = [(model, real.tracks, runs[0].tracks) for model, runs in simulated.items()]
    model, *sides = next((pair for pair in pairs if None not in pair), ('', None, None))
    first, second = sides
    if first is None or second is None:
        if feature is None:
            return None
        raise SignalComparisonError('--feature needs a --camera and a --world that both sides see')
    ids, counts = np.unique(first.ids, return_counts=True)
    simulated_ids, simulated_counts = np.unique(second.ids, return_counts=True)
    common, at, simulated_at = np.intersect1d(ids, simulated_ids, return_indices=True)
    if feature is None:
        if not len(common):
            return None
        frames = np.minimum(counts[at], simulated_counts[simulated_at])
        feature = int(common[np.argmax(frames)])
    elif feature not in common:
        allowed = f'must be one of {", ".join(map(str, common[:20]))}'
        raise SignalComparisonError(
            f'--feature {feature} is not found by both cameras; '
            f'{allowed if len(common) else "they have no feature in common"}'
        )
    quantity = dataclasses.replace(FEATURE, name=f'feature_{feature}')
    series = [
        SensorSeries(quantity, side.frame_times, *side.track(feature), None)
        for side in (first, second)
    ]
    return model, series[0], series[1]


def _features(
    model: str, runs: Sequence[SensorSignals], real: Sequence[SensorSignals]
) -> FeatureRow | None:
    real_features, simulated_features = (
        [run.features for run in side if run.features] for side in (real, runs)
    )
    if not real_features or not simulated_features:
        return None
    mean = FeatureAgreement.mean
    return FeatureRow(
        model,
        len(real_features),
        len(simulated_features),
        mean(real_features),
        mean(simulated_features),
    )


def _compare_model(
    model: str,
    real: Sequence[SensorSignals],
    runs: Sequence[SensorSignals],
    options: SignalOptions,
) -> tuple[list[SignalRow], dict[str, PreparedQuantity], list[Finding], Finding | None]:
    """Return rows, quantities, findings, and the finding of too few runs or None."""
    quantities = [
        quantity
        for quantity in QUANTITIES
        if quantity.name in options.quantity_names
        and all(quantity.name in run.measured for run in (*real, *runs))
    ]
    subjects_by_finding: dict[Finding, list[str]] = {}
    unlike = _unlike_yaw((*real, *runs)) if 'yaw' in options.quantity_names else None
    if unlike:
        quantities = [quantity for quantity in quantities if quantity.name != 'yaw']
        subjects_by_finding[unlike] = [model]
    if not quantities and _features(model, runs, real) is not None:
        return [], {}, list(subjects_by_finding), None
    if not quantities:
        lacking: object = (
            'real and simulated runs have no sensor in common; all must have an IMU, or all a '
            'GPS receiver, or all a camera that finds landmarks of the world'
        )
        if unlike:
            lacking = unlike
        elif options.quantities:
            lacking = (
                f'quantities: {options.quantities} is not allowed; at least one must be measured '
                'by all real and simulated runs'
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
    too_few = None
    if not enough:
        pairing = 'paired' if permutations.paired else 'unpaired'
        too_few = TOO_FEW_RUNS(
            real=n, simulated=len(runs), least=permutations.least, pairing=pairing
        )
    rows: list[SignalRow] = []
    prepared: dict[str, PreparedQuantity] = {}
    distances: list[list[permutation_test.Divisible]] = []  # of each row
    for quantity in quantities:
        ready_quantity = prepare(
            [run.measured[quantity.name] for run in real],
            [run.measured[quantity.name] for run in runs],
            options,
        )
        for note in ready_quantity.notes:
            subjects_by_finding.setdefault(note, []).append(quantity.name)
        prepared[quantity.name] = ready_quantity
        pairs = pairs_of(real, runs, numbers, quantity, options)
        lags = _mean_lags(
            real=[run.sampled for run in ready_quantity.real],
            simulated=[run.sampled for run in ready_quantity.simulated],
            between=pairs,
        )
        for column, signal in enumerate(quantity.labels()):
            errors = [
                np.abs(error) if options.sizes else error
                for run in (*ready_quantity.real, *ready_quantity.simulated)
                for error in [run.sampled.error_of(column)]
            ]
            density, signal_density = (
                np.stack([one.density[:, column] for one in ready_quantity.spectra[kind]])
                for kind in ('error', 'signal')
            )
            has_spectra = _has_spectra(density[:n], density[n:], signal_density)
            found: list[permutation_test.Divisible] = [ErrorDistance.of(errors)]
            halves: list[permutation_test.Divisible] = [ErrorDistance.of(errors[:n])]
            if has_spectra:
                found.append(SpectrumDistance(density))
                halves.append(SpectrumDistance(density[:n]))
            if enough:
                distances.append(found)
            split_half: list[float | None] = [None, None]
            if n > 1:
                for k, half in enumerate(halves):
                    split_half[k] = permutation_test.split_half_distance(half, n, options.seed)
            spectra = density[:n].mean(axis=0), density[n:].mean(axis=0)
            rows.append(
                SignalRow(
                    model=model,
                    signal=signal,
                    unit=quantity.unit,
                    n_real=n,
                    n_simulated=len(runs),
                    real=_mean_agreement([run.sampled for run in ready_quantity.real], column),
                    simulated=_mean_agreement(
                        [run.sampled for run in ready_quantity.simulated], column
                    ),
                    between=_mean_agreement(pairs, column) if pairs else None,
                    **lags,
                    error_distance=wasserstein(errors[:n], errors[n:]),
                    spectrum_distance=(
                        float(log_spectral_distance(*spectra)) if has_spectra else None
                    ),
                    error_split_half=split_half[0],
                    spectrum_split_half=split_half[1],
                )
            )
    if enough:
        p_values = permutation_test.distance_p_values([*chain(*distances)], permutations)
        single, adjusted = iter(p_values.single), iter(p_values.adjusted)
        rows = [
            _add_verdict(
                row,
                [*islice(single, len(of_row))],
                [*islice(adjusted, len(of_row))],
                options.level,
            )
            for row, of_row in zip(rows, distances, strict=True)
        ]
    notes = [
        note.restrict_to(', '.join(subjects)) for note, subjects in subjects_by_finding.items()
    ]
    return rows, prepared, notes, too_few


_ROUNDING = 1e-18
"""Share of the power of the signal, or of the other errors, below which errors are rounding."""


def _has_spectra(real: FloatArray, simulated: FloatArray, signal: FloatArray) -> bool:
    """Return whether the errors of both sides are more than rounding; see `_ROUNDING`."""
    powers = [float(side.mean(axis=0).sum()) for side in (real, simulated, signal)]
    return min(powers[:2]) > _ROUNDING * max(powers)


def _unlike_yaw(runs: Sequence[SensorSignals]) -> Finding | None:
    """Return the finding that only some runs publish yaw, so that it is not compared, or None."""
    published, integrated = (
        sum(any(note.kind == kind for note in run.notes) for run in runs)
        for kind in (YAW_PUBLISHED, YAW_INTEGRATED)
    )
    if not published or not integrated:
        return None
    return YAW_UNLIKE(published=published, integrated=integrated)


def _add_verdict(
    row: SignalRow, single: Sequence[float], adjusted: Sequence[float], level: float
) -> SignalRow:
    smallest = min(adjusted)
    return dataclasses.replace(
        row,
        error_p=single[0],
        spectrum_p=single[1] if len(single) > 1 else None,
        p_adjusted=smallest,
        verdict='different' if smallest <= level else 'not significant',
    )


def _mean_agreement(runs: Sequence[SensorSeries], column: int) -> SeriesAgreement:
    return mean_agreement([run.agreements[column] for run in runs])


def _mean_lags(**sides: Sequence[SensorSeries]) -> dict[str, Any]:
    """Return the fields `lag_...` of a row."""
    fields: dict[str, Any] = {}
    for side, runs in sides.items():
        lags = [run.lag for run in runs if run.lag is not None]
        fields[f'lag_{side}'] = float(np.mean([lag.seconds for lag in lags])) if lags else None
        stated_variance = np.mean([lag.std**2 for lag in lags]) if lags else np.nan
        scatter = np.var([lag.seconds for lag in lags], ddof=1) if len(lags) > 1 else 0.0
        std = float(np.sqrt(np.fmax(stated_variance, scatter) / max(len(lags), 1)))
        fields[f'lag_{side}_std'] = std if std == std and lags else None
    return fields
