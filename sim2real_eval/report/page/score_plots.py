# SPDX-License-Identifier: Apache-2.0
"""Histograms of the scores of all runs, simulated in front of real."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim2real_eval.report.histogram_axis import HistogramAxis
from sim2real_eval.report.page.figure import Captioned, Multiples
from sim2real_eval.report.page.panel import Panel
from sim2real_eval.report.page.score_tables import shown_model
from sim2real_eval.series_folder import REAL
from sim2real_eval.study import StudyOutcome

__all__ = ['histograms']


def histograms(
    outcome: StudyOutcome, judge: str, axis: HistogramAxis, colours: Mapping[str, str]
) -> Multiples:
    """Return a histogram per model, with the real runs as an outline behind it.

    Parameters
    ----------
    outcome : StudyOutcome
    judge : str
    axis : HistogramAxis
        `RMSE` or `ENTROPY`.
    colours : mapping
        Model, and `real`, to the class of its colour.
    """
    values = {
        name: [run.values[axis.field] for run in outcome.of(judge, name)] for name in colours
    }
    values = {name: [v for v in found if np.isfinite(v)] for name, found in values.items()}
    edges = axis.edges([value for found in values.values() for value in found])
    counts = {name: np.histogram(found, edges)[0] for name, found in values.items()}
    most = max((int(count.max()) for count in counts.values()), default=1)
    panel = Panel(
        (0.0, float(edges[-1])),
        (0.0, 1.08 * max(most, 1)),
        unit_x='m/s' if axis.field == 'rmse' else '',
        unit_y='runs',
    )
    real = shown_model(REAL, synthetic=bool(outcome.record.get('synthetic')))
    panels = []
    for name, found in values.items():
        if name == REAL or not found:
            continue
        svg = panel.svg(
            panel.bars(edges, counts[REAL].astype(float), 'behind', step=False),
            panel.bars(edges, counts[name].astype(float), 'bar', step=False),
            panel.bars(edges, counts[REAL].astype(float), 'outline', step=True),
            label=f'{axis.title}: {name} ({len(found)} runs) and '
            f'{real} ({len(values[REAL])} runs)',
        )
        remark = f'mean {np.mean(found):.3f}'
        panels.append(Captioned(name, colours[name], svg, remark))
    return Multiples('', panels)
