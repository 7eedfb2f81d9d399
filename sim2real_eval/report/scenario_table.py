# SPDX-License-Identifier: Apache-2.0
"""Tables of a scenario run for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from rich.table import Table
from rich.text import Text

from sim2real_eval.preintegration.study import ScenarioStudy
from sim2real_eval.report.plain_table import plain_table

__all__ = ['covariance_table', 'state_table']

_UNITS = ('rad', 'm', 'm/s', 'm/s^2', 'rad/s')
_NAMES = ('rotation', 'position', 'velocity', 'accelerometer bias', 'gyroscope bias')


def covariance_table(study: ScenarioStudy, page: Sequence[float] = ()) -> Table:
    """Return a line per component: error of the first run, deviation predicted and found.

    Parameters
    ----------
    study : ScenarioStudy
    page : (9,), optional
        Published errors of the first run, shown beside it.
    """
    table = plain_table(
        f'{study.setup.name}, {study.pim.delta_tij():g} s: error of the prediction, and its '
        f'standard deviation over {study.setup.runs} runs',
        gap=1,
    )
    table.add_column('')
    table.add_column('unit')
    table.add_column('error of\nfirst run', justify='right', no_wrap=True)
    if page:
        table.add_column('on the\npage', justify='right', no_wrap=True)
    table.add_column('deviation\npredicted', justify='right', no_wrap=True)
    table.add_column('Monte\nCarlo', justify='right', no_wrap=True)
    table.add_column('ratio', justify='right', style='bold', no_wrap=True)
    predicted = np.sqrt(np.diag(study.predicted_covariance))
    found = np.sqrt(np.diag(study.estimated_covariance))
    # Of a standard deviation from n Gaussian samples.
    doubt = math.sqrt(0.5 / (study.setup.runs - 1))
    for i, name in enumerate(study.components):
        kind = i // 3
        error = f'{study.error[i]: .6f}' if i < 9 else ''
        cells = [f'{_NAMES[kind]} {name[-1]}', _UNITS[kind], error]
        if page:
            cells.append(f'{page[i]: .6f}' if i < 9 else '')
        known = predicted[i] > 0.0
        ratio = f'{found[i] / predicted[i]:.3f} +- {doubt:.3f}' if known else '-'
        table.add_row(*cells, f'{predicted[i]:.4g}', f'{found[i]:.4g}', ratio)
        if i % 3 == 2:
            table.add_section()
    return table


def state_table(study: ScenarioStudy) -> Table:
    """Return the deltas, and the state that they predict beside the true one."""
    table = plain_table('Preintegrated measurements of the first run', gap=1)
    table.add_column('')
    for axis in ('x', 'y', 'z'):
        table.add_column(axis, justify='right', no_wrap=True)
    pim = study.pim
    for i, axis in enumerate('xyz'):
        table.add_row(f'delta R, row {axis}', *(f'{value: .6f}' for value in pim.delta_rij()[i]))
    rows = {
        'delta p [m]': pim.delta_pij(),
        'delta v [m/s]': pim.delta_vij(),
        'position predicted [m]': study.predicted.position,
        'position true [m]': study.truth.position,
        'velocity predicted [m/s]': study.predicted.velocity,
        'velocity true [m/s]': study.truth.velocity,
    }
    for name, values in rows.items():
        table.add_row(Text(name), *(f'{value: .6f}' for value in values))
    return table
