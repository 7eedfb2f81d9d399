# SPDX-License-Identifier: Apache-2.0
"""The folder that a comparison leaves behind: tables, series, provenance and plots."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_eval.common.findings import to_records
from sim2real_eval.common.results import check_result_folder, file_digest, fresh_folder, versions
from sim2real_eval.common.tables import write_csv, write_json
from sim2real_eval.metrics.series_folder import REAL, write_series_folder
from sim2real_eval.metrics.uncertainty.by_scenario import UNCERTAINTY_COLUMNS, uncertainty_fields
from sim2real_eval.recording.metadata import recording_digest
from sim2real_eval.report.histograms import save_histograms
from sim2real_eval.report.overlays import Overlay, save_overlays
from sim2real_eval.report.ranking_plots import save_ranking
from sim2real_eval.study.comparison import Comparison, ComparisonOptions, JudgedScore, Source

__all__ = ['RUN_COLUMNS', 'check_target', 'comparison_record', 'write_comparison']

RUN_COLUMNS = (
    'model',
    'scenario',
    'run',
    'recording',
    'repetition',
    'rmse',
    'entropy_gt',
    'entropy_se',
    'entropy_difference',
    'forward_rmse',
    'n_samples',
    'duration',
    'estimates',
    'fixes_used',
)

_MARK = 'vepd.json'


def check_target(folder: str | Path, *, overwrite: bool) -> None:
    """Refuse a folder that would be overwritten; with `overwrite`, one that is not ours.

    Raises
    ------
    Sim2RealError
        See `result_folder.check_result_folder`.
    """
    check_result_folder(folder, _MARK, overwrite=overwrite)


def comparison_record(
    comparison: Comparison, sources: Sequence[Source], options: ComparisonOptions
) -> dict[str, Any]:
    """Return everything needed to repeat and to read a comparison, as plain values.

    It depends on inputs and options alone: not on the number of workers, the time or the place
    of the output, so that equal studies give equal bytes.
    """
    setup = options.setup
    failed = {failure.recording for failure in comparison.failures}
    return {
        'format': 1,
        'versions': versions(),
        'seed': options.seed,
        'component': options.component,
        'repetitions': options.repetitions,
        'match_rates': options.match_rates,
        'start_heading': options.start_heading,
        'metric': options.metric.to_mapping(),
        'judge': {
            'name': setup.name,
            'files': [
                {
                    'name': path.name,
                    'sha256': file_digest(path),
                    'text': path.read_text(encoding='utf-8'),
                }
                for path in setup.files
            ],
            **setup.settings(),
        },
        'models': {twin.label: twin.to_mapping() for twin in options.twins},
        'recordings': [
            {
                'path': source.path,
                'name': source.name,
                'scenario': source.scenario,
                'topics': dict(source.topics),
                # What could not be read may not even be there.
                'sha256': None if source.path in failed else recording_digest(source.path),
            }
            for source in sources
        ],
        'failures': [dataclasses.asdict(failure) for failure in comparison.failures],
        'vepd': [dataclasses.asdict(row) for row in comparison.rows],
        'uncertainty': {
            scenario: one.to_mapping() for scenario, one in comparison.uncertainty.items()
        },
        'forward_rmse': [
            {'model': model, 'scenario': scenario, 'mean': value}
            for (model, scenario), value in comparison.forward_rmse().items()
        ],
        'notes': to_records(comparison.notes()),
        'runs': [
            {
                'model': run.model,
                'recording': run.recording,
                'repetition': run.repetition,
                'notes': to_records(run.notes),
            }
            for run in comparison.runs
        ],
    }


def write_comparison(
    folder: str | Path,
    comparison: Comparison,
    record: Mapping[str, Any],
    *,
    speed_label: str,
    real_label: str = 'real',
    overwrite: bool = False,
) -> Path:
    """Write vepd.csv, runs.csv, vepd.json, series/ and the plots, all or nothing.

    Parameters
    ----------
    folder : str or Path
        Written under a temporary name beside it and then moved.
    comparison : Comparison
    record : mapping
        From `comparison_record`.
    speed_label : str
        What the speed is, for the plots.
    real_label : str
        What the recordings are, for the plots, when they only stand in for real ones.
    overwrite : bool
        Replace an older result of this kind.

    Raises
    ------
    Sim2RealError
        When the folder exists and may not be replaced.
    """
    with fresh_folder(folder, _MARK, overwrite=overwrite) as fresh:
        _fill(fresh, comparison, record, speed_label, real_label)
    return Path(folder)


def _fill(
    fresh: Path,
    comparison: Comparison,
    record: Mapping[str, Any],
    speed_label: str,
    real_label: str,
) -> None:
    keys = comparison.keys()
    known = comparison.uncertainty
    write_csv(
        fresh / 'vepd.csv',
        UNCERTAINTY_COLUMNS,
        [uncertainty_fields(row, known) for row in comparison.rows],
    )
    write_csv(
        fresh / 'runs.csv',
        RUN_COLUMNS,
        (_fields(run, key.run) for run, key in zip(comparison.runs, keys, strict=True)),
    )
    write_json(fresh / _MARK, record)
    write_series_folder(
        fresh / 'series',
        {key: run.series for run, key in zip(comparison.runs, keys, strict=True)},
    )
    models = list(dict.fromkeys(row.model for row in comparison.rows))
    scores = {model: comparison.scores(model) for model in models}
    save_histograms(fresh, comparison.scores(REAL), scores, real_label=real_label)
    save_ranking(
        fresh / 'ranking.png',
        known,
        real_label=real_label,
        about=_about(record),
    )
    save_overlays(
        fresh / 'velocity.png',
        _overlays(comparison, models),
        speed_label=speed_label,
        real_label=real_label,
        about=_about(record),
    )


def _about(record: Mapping[str, Any]) -> str:
    warmup = record['metric']['warmup']
    left_out = f', first {warmup:g} s left out' if warmup else ''
    return f'judge {record["judge"]["name"]}{left_out}'


def _fields(run: JudgedScore, number: int) -> tuple[str | int | float, ...]:
    score = run.score
    return (
        run.model,
        run.scenario,
        number,
        run.recording,
        run.repetition,
        score.rmse,
        score.entropy_gt,
        score.entropy_se,
        score.entropy_difference,
        run.forward.rmse,
        score.n_samples,
        score.duration,
        run.estimates,
        run.fixes_used,
    )


def _overlays(comparison: Comparison, models: Sequence[str]) -> dict[str, Overlay]:
    """Pick per scenario the recording whose real RMSE is the (lower) median: neither showcase."""
    overlays = {}
    for scenario in dict.fromkeys(run.scenario for run in comparison.runs):
        real = [run for run in comparison.runs if run.model == REAL and run.scenario == scenario]
        order = np.argsort([run.score.rmse for run in real], kind='stable')
        chosen = real[int(order[(len(real) - 1) // 2])]
        sim = {
            run.model: run.series
            for run in comparison.runs
            if run.recording == chosen.recording and run.model in models and run.repetition == 1
        }
        overlays[chosen.recording] = Overlay(chosen.series, sim)
    return overlays
