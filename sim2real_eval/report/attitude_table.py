# SPDX-License-Identifier: Apache-2.0
"""Table of the attitude filter's errors for the terminal, beside those of [Ligorio2015]."""

from __future__ import annotations

import numpy as np
from rich.table import Table

from sim2real_eval.attitude.errors import ANGLES
from sim2real_eval.attitude.published import PUBLISHED_REAL, PUBLISHED_SIMULATED
from sim2real_eval.attitude.study import AttitudeStudy
from sim2real_eval.report.plain_table import plain_table

__all__ = ['attitude_table']


def attitude_table(study: AttitudeStudy, title: str) -> Table:
    """Return a line per angle: RMSE of all runs, their range, and as published where it is."""
    table = plain_table(title, gap=1, min_width=min(len(title) + 1, 78))
    table.add_column('RMSE, deg')
    table.add_column('all runs', justify='right', style='bold', no_wrap=True)
    several = len(study.names) > 1
    if several:
        table.add_column('least', justify='right', no_wrap=True)
        table.add_column('most', justify='right', no_wrap=True)
    table.add_column('Ligorio2015\nsimulated', justify='right', no_wrap=True)
    table.add_column('\nreal', justify='right', no_wrap=True)
    each = np.degrees(study.rmse)
    for i, name in enumerate(ANGLES):
        cells = [name, f'{np.degrees(study.overall[i]):.3f}']
        if several:
            cells += [f'{each[:, i].min():.3f}', f'{each[:, i].max():.3f}']
        for published in (PUBLISHED_SIMULATED, PUBLISHED_REAL):
            cells.append(f'{np.degrees(published[i]):.2f}' if i < len(published) else '')
        table.add_row(*cells)
    return table
