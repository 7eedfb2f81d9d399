# SPDX-License-Identifier: Apache-2.0
"""Plots of a study: scores as histograms, speeds over time, rankings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.report.histograms import save_histograms
from sim2real_eval.report.overlays import Overlay, save_overlays
from sim2real_eval.report.page.standing import Standing
from sim2real_eval.report.ranking_plots import save_ranking, save_ranks
from sim2real_eval.report.ranking_tables import metric_lines

if TYPE_CHECKING:
    from sim2real_eval.study.outcome import StudyOutcome
    from sim2real_eval.study.secondary_results import SideResults

PLOTS = 'plots'
"""Folder of the plots in that of a study."""

MOST_DRAWN = 4
"""Judges, or judges and groups, of which there are plots."""


def save_plots(
    folder: Path, outcome: StudyOutcome, standing: list[Standing], side: SideResults
) -> list[Path]:
    """Draw a study into plots/ in its folder; return the files.

    Of each of the first judges (and groups) the histograms of RMSE and entropy, the ranking and
    true and estimated speed; of all together the ranks by other metrics, in metrics.png.
    """
    plots = folder / PLOTS
    synthetic = bool(outcome.record.get('synthetic'))
    real_label = 'stand-in (SYNTHETIC)' if synthetic else 'real'
    warmup = outcome.record['metric'].get('warmup', 0.0)
    left_out = f', first {warmup:g} s left out' if warmup else ''
    files = []
    for one in standing[:MOST_DRAWN]:
        place = plots / one.judge / one.group
        place.mkdir(parents=True, exist_ok=True)
        about = f'judge {one.label}{left_out}'
        scores = {
            model: [run.score for run in runs]
            for model, runs in outcome.by_model(one.judge, one.group).items()
        }
        files += save_histograms(place, scores.pop(REAL), scores, real_label=real_label)
        files.append(
            save_ranking(
                place / 'ranking.png', one.uncertainty, real_label=real_label, about=about
            )
        )
        if overlays := _overlays(outcome, one):
            files.append(
                save_overlays(
                    place / 'velocity.png',
                    overlays,
                    speed_label=f'{outcome.record["component"]} speed',
                    real_label=real_label,
                    about=about,
                )
            )
    if lines := [metric_lines(table) for table in side.overall_metrics[:MOST_DRAWN]]:
        files.append(save_ranks(folder / 'metrics.png', lines))
    return files


def _overlays(outcome: StudyOutcome, standing: Standing) -> dict[str, Overlay]:
    """Pick per scenario the recording whose real RMSE is the (lower) median: neither showcase.

    Simulated sensors that follow drives of their own have no run beside a real one.
    """
    overlays = {}
    for scenario in outcome.scenarios:
        real = outcome.of(standing.judge, REAL, scenario=scenario, group=standing.group)
        if not real:
            continue
        order = np.argsort([run.score.rmse for run in real], kind='stable')
        chosen = real[int(order[(len(real) - 1) // 2])].key
        sim = {
            run.key.model: outcome.series(run.key)
            for run in outcome.runs
            if not run.is_real
            and (run.key.judge, run.key.recording) == (chosen.judge, chosen.recording)
            and run.key.repetition == 1
        }
        if sim:
            overlays[chosen.recording] = Overlay(outcome.series(chosen), sim)
    return overlays
