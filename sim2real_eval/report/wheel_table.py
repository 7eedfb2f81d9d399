# SPDX-License-Identifier: Apache-2.0
"""Table of a wheel study for the terminal."""

from __future__ import annotations

import numpy as np
from rich.table import Table

from sim2real_eval.report.plain_table import plain_table
from sim2real_eval.wheel_study import WheelStudy

__all__ = ['wheel_table']


def wheel_table(study: WheelStudy) -> Table:
    """Return a line per variant: drift alone and with the camera, NEES, VEPD by judge."""
    runs = len(study.variants[0].runs)
    table = plain_table(
        f'{study.title}: error of the pose, root mean square over {runs} '
        'runs, wheels alone and with the camera',
        gap=1,
    )
    table.add_column('wheels')
    for head in (
        'alone\nm', 'with\nm', 'at end,\nalone m', 'with\nm', 'heading\nalone °', 'with\n°',
        'NEES\n(2)', 'VEPD\nalone', 'VEPD\nwith',
    ):  # fmt: skip
        table.add_column(head, justify='right', no_wrap=True)
    for variant in study.variants:
        cells = []
        for drifts in (variant.odometry, variant.fused):
            cells.append(f'{_rms([each.rms for each in drifts]):.3f}')
        for drifts in (variant.odometry, variant.fused):
            cells.append(f'{_rms([float(each.error[-1]) for each in drifts]):.3f}')
        for drifts in (variant.odometry, variant.fused):
            cells.append(f'{np.degrees(_rms([each.heading_rms for each in drifts])):.2f}')
        cells.append(f'{np.mean(variant.nees):.1f}')
        cells += [f'{value:.4f}' for value in variant.vepd.values()]
        table.add_row(variant.label, *cells)
    return table


def _rms(values: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))
