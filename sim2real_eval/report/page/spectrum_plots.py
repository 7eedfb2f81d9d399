# SPDX-License-Identifier: Apache-2.0
"""Spectra of the speed error: median over runs, and where the middle 80 % of them lie."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim2real_eval.report.page.evidence import Evidence
from sim2real_eval.report.page.figure import Captioned, Multiples
from sim2real_eval.report.page.panel import Panel
from sim2real_eval.report.page.scale import times
from sim2real_eval.series_folder import REAL
from sim_sensors.measurements import FloatArray

__all__ = ['spectra']

_DECADES = 6.0


def spectra(evidence: Evidence, colours: Mapping[str, str]) -> Multiples:
    """Return the spectrum of each model with that of the real runs behind it.

    Parameters
    ----------
    evidence : Evidence
    colours : mapping
        Model, and `real`, to the class of its colour.
    """
    frequency, densities = evidence.densities()
    rows: dict[str, FloatArray] = {}
    for name in colours:
        mine = [
            densities[place]
            for place, one in enumerate(evidence.runs)
            if one.run.key.model == name
        ]
        if mine and len(frequency) > 1:
            rows[name] = np.quantile(np.stack(mine), (0.1, 0.5, 0.9), axis=0)
    medians = [row[1][row[1] > 0.0] for row in rows.values()]
    if REAL not in rows or not any(len(median) for median in medians):
        return Multiples('', [])
    top = 3.0 * max(float(median.max()) for median in medians if len(median))
    least = min(float(median.min()) for median in medians if len(median)) / 3.0
    low = max(least, top / 10.0**_DECADES)
    panel = Panel(
        (float(frequency[0]), float(frequency[-1])), (low, top),
        log_x=True, log_y=True, unit_x='Hz', unit_y='m²/s',
    )  # fmt: skip
    panels = []
    for name, row in rows.items():
        if name == REAL:
            continue
        real = rows[REAL]
        svg = panel.svg(
            panel.band(frequency, np.maximum(real[0], low), real[2], 'behind'),
            panel.line(frequency, real[1], 'reference'),
            panel.band(frequency, np.maximum(row[0], low), row[2], 'spread'),
            panel.line(frequency, row[1], 'estimate'),
            label=f'Spectrum of the speed error of {name} and of {evidence.called(REAL)}',
        )
        power = float(row[1].sum() / real[1].sum())
        panels.append(
            Captioned(
                name, colours[name], svg, f'{times(power)} \N{MULTIPLICATION SIGN} the power'
            )
        )
    return Multiples('', panels)
