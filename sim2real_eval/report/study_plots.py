# SPDX-License-Identifier: Apache-2.0
"""Plots of a study: scores, speeds over time and rankings.

The drawing functions are imported only when a plot is drawn, because that takes 0.4 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sim2real_eval.common.workers import Workers
from sim2real_eval.metrics.scores import RunScore
from sim2real_eval.metrics.series import REAL, VelocitySeries
from sim2real_eval.study.outcome import RunKey, StudyOutcome
from sim2real_eval.study.secondary_results import side_results
from .page.evidence import representative_runs
from .page.figure import thinned
from .page.ranking import Standing, standings
from .ranking_tables import RankLines, metric_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLOTS = 'plots'
"""Name of the folder of plots in the folder of a study."""

MOST_DRAWN = 4
"""Largest number of rankings (judges and groups) that have plots."""

_Drawing = tuple[Path, Callable[[], 'Figure']]
_Overlay = tuple[VelocitySeries, Mapping[str, VelocitySeries]]  # real and, by model, simulated


def begin_plots(
    folder: Path, outcome: StudyOutcome, workers: Workers
) -> Callable[[], list[list[Path]]]:
    """Begin to draw a study into plots/ in its folder; return a function that waits for the files.

    Each of the first judges (and groups) has plots of RMSE and entropy of every run, of the
    ranking, and of true and estimated speed. The ranks by other metrics are in metrics.png.
    """
    plots = folder / PLOTS
    synthetic = bool(outcome.record.get('synthetic'))
    real_label = 'stand-in (SYNTHETIC)' if synthetic else 'real'
    warmup = outcome.record['metric'].get('warmup', 0.0)
    left_out = f', first {warmup:g} s left out' if warmup else ''
    figures: dict[Path, Callable[[], Figure]] = {}
    for standing in standings(outcome)[:MOST_DRAWN]:
        place = plots / standing.judge / standing.group
        place.mkdir(parents=True, exist_ok=True)
        labels: dict[str, str] = {'real_label': real_label}
        subtitle = f'judge {standing.label}{left_out}'
        scores = {
            model: [run.score for run in runs]
            for model, runs in outcome.by_model(standing.judge, standing.group).items()
        }
        models = {model.model: scores[model.model] for model in standing.known.order}
        for name in ('rmse', 'entropy'):
            figures[place / f'{name}.png'] = partial(_scores, scores[REAL], models, name, **labels)
        figures[place / 'ranking.png'] = partial(
            _ranking, standing.uncertainty, subtitle=subtitle, **labels
        )
        if overlays := _overlays(outcome, standing):
            figures[place / 'velocity.png'] = partial(
                _speeds,
                overlays,
                speed_label=f'{outcome.record["component"]} speed',
                subtitle=subtitle,
                **labels,
            )
    # The slowest plots are drawn first.
    waits = [workers.begin_map(_save, list(figures.items())[::-1])]
    tables = side_results(outcome).overall_metrics[:MOST_DRAWN]
    if lines := [metric_lines(table) for table in tables]:
        ranks = (folder / 'metrics.png', partial(_ranks, lines))
        waits.append(workers.begin_map(_save, [ranks]))
    return lambda: [wait() for wait in waits]


def _save(drawing: _Drawing) -> Path:
    from .style import save_png

    path, make = drawing
    return save_png(make(), path)


def _scores(
    real: Sequence[RunScore], sim: Mapping[str, Sequence[RunScore]], axis: str, **how: Any
) -> Figure:
    from .run_plots import ENTROPY, RMSE, scores_figure

    return scores_figure(real, sim, {'rmse': RMSE, 'entropy': ENTROPY}[axis], **how)


def _ranking(*uncertainty: Any, **labels: Any) -> Figure:
    from .study_figures import ranking_figure

    return ranking_figure(*uncertainty, **labels)


def _speeds(overlays: Mapping[str, _Overlay], **how: Any) -> Figure:
    from .run_plots import Overlay, overlay_figure

    return overlay_figure({name: Overlay(*series) for name, series in overlays.items()}, **how)


def _ranks(panels: Sequence[RankLines]) -> Figure:
    from .study_figures import ranks_figure

    return ranks_figure(panels)


def _overlays(outcome: StudyOutcome, standing: Standing) -> Mapping[str, _Overlay]:
    """Return runs per scenario on the recording with the (lower) median RMSE of real sensors.

    Simulated sensors that follow other drives have no run on a real recording.
    """
    overlays: dict[str, _Overlay] = {}
    chosen = representative_runs([run for run in outcome.runs if run.key.judge == standing.judge])
    for scenario in outcome.scenarios:
        keys = chosen.get((standing.group, scenario), [])
        real = next((key for key in keys if key.model == REAL), None)
        if real is None:
            continue
        sim = {
            key.model: _drawn(outcome, key)
            for key in keys
            if key != real and (key.recording, key.repetition) == (real.recording, 1)
        }
        if sim:
            overlays[real.recording] = _drawn(outcome, real), sim
    return overlays


def _drawn(outcome: StudyOutcome, key: RunKey) -> VelocitySeries:
    """Return a run thinned to the points that a small plot can show."""
    whole = outcome.series(key)
    # A judge only predicts after the end of the truth.
    with_truth = slice(
        max(1, int(np.searchsorted(whole.se_time, whole.gt_time[-1], side='right')))
    )
    estimate = thinned(whole.se_time[with_truth], whole.se_vel[with_truth])
    return VelocitySeries(*estimate, *thinned(whole.gt_time, whole.gt_vel), whole.name)
