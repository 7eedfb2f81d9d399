# SPDX-License-Identifier: Apache-2.0
"""VEPD tables from files: from the published data, or from the `series` folder of a study."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from sim2real_eval.metrics.distances import VepdRow, coverage_notes, vepd_table
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.scores import RunScore, score_run
from sim2real_eval.series_folder import REAL, SeriesKey, read_series_folder

__all__ = ['SeriesVepd', 'vepd_from_series']


@dataclasses.dataclass(frozen=True)
class SeriesVepd:
    """Result of `vepd_from_series`.

    Attributes
    ----------
    rows : list of VepdRow
        See `sim2real_eval.metrics.distances.vepd_table`.
    scores : mapping
        Score of every run.
    notes : tuple of str
        What was skipped, repaired or is uneven, one line each.
    """

    rows: list[VepdRow]
    scores: Mapping[SeriesKey, RunScore]
    notes: tuple[str, ...]


def vepd_from_series(folder: str | Path, options: MetricOptions | None = None) -> SeriesVepd:
    """Recompute the VEPD table from a folder in the layout of the published data.

    Tables I and II from the published `data2` folder: `MetricOptions(drop_zeros=True)`.

    Raises
    ------
    SeriesError, MetricError
        The folder or a file cannot be read, or a run cannot be scored; the file is named.
    """
    options = options or MetricOptions()
    read = read_series_folder(folder, drop_zeros=options.drop_zeros)
    scores = {key: score_run(series, options) for key, series in read.series.items()}
    real, sim = _split(scores)
    return SeriesVepd(vepd_table(real, sim), scores, (*read.notes, *coverage_notes(real, sim)))


def _split(
    scores: Mapping[SeriesKey, RunScore],
) -> tuple[dict[str, list[RunScore]], dict[str, dict[str, list[RunScore]]]]:
    real: dict[str, list[RunScore]] = {}
    sim: dict[str, dict[str, list[RunScore]]] = {}
    for key, score in scores.items():
        runs = real if key.source == REAL else sim.setdefault(key.source, {})
        runs.setdefault(key.scenario, []).append(score)
    return real, sim
