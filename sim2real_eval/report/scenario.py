# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A scenario run: tables, plot and result folder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table
from rich.text import Text
from scipy.stats import chi2

from sim2real_eval.benches.preintegration.runner import ScenarioStudy
from sim2real_eval.common.results import fresh_folder, versions, write_csv, write_json
from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.trajectory import NavState
from . import palette, style
from .console import add_numbers, plain_table

_UNITS = ('rad', 'm', 'm/s', 'm/s^2', 'rad/s')
_NAMES = ('rotation', 'position', 'velocity', 'accelerometer bias', 'gyroscope bias')


def covariance_table(study: ScenarioStudy) -> Table:
    """Return a line per component: error of the first run, predicted and sampled deviation."""
    table = plain_table(
        f'{study.setup.name}, {study.pim.delta_tij():g} s: error of the prediction, and its '
        f'standard deviation over {study.setup.runs} runs',
        gap=1,
    )
    table.add_column('')
    table.add_column('unit')
    add_numbers(table, 'error of\nfirst run', 'deviation\npredicted', 'Monte\nCarlo')
    add_numbers(table, 'ratio', style='bold')
    predicted = np.sqrt(np.diag(study.predicted_covariance))
    estimated = np.sqrt(np.diag(study.estimated_covariance))
    # Standard error of a standard deviation from n Gaussian samples.
    doubt = math.sqrt(0.5 / (study.setup.runs - 1))
    for i, name in enumerate(study.components):
        kind = i // 3
        error = f'{study.error[i]: .6f}' if i < 9 else ''
        cells = [f'{_NAMES[kind]} {name[-1]}', _UNITS[kind], error]
        has_prediction = predicted[i] > 0.0
        ratio = f'{estimated[i] / predicted[i]:.3f} +- {doubt:.3f}' if has_prediction else '-'
        table.add_row(*cells, f'{predicted[i]:.4g}', f'{estimated[i]:.4g}', ratio)
        if i % 3 == 2:
            table.add_section()
    return table


def state_table(study: ScenarioStudy) -> Table:
    """Return the deltas, and the predicted and the true state side by side."""
    table = plain_table('Preintegrated measurements of the first run', gap=1)
    table.add_column('')
    add_numbers(table, 'x', 'y', 'z')
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


# Errors of many predictions with the ellipses of their predicted and sampled covariances.
_SHARE = 0.95
_LABELS = (
    'rotation about {} [rad]',
    'position {} [m]',
    'velocity {} [m/s]',
    'accelerometer bias {} [m/s²]',
    'gyroscope bias {} [rad/s]',
)
# Pairs of components: rotations, positions and velocities among themselves, and coupled pairs
# (gravity turns a tilt about y into a velocity along x).
_PAIRS = ((0, 1), (3, 4), (6, 7), (3, 5), (1, 6), (6, 3))
_BIAS_PAIRS = ((9, 6), (13, 1), (13, 6))


def scenario_figure(study: ScenarioStudy) -> Figure:
    """Return small multiples: a dot per run with the 95 % ellipses of both covariances.

    The line is the predicted ellipse, and the dashes are the sampled one. The title of a panel
    states the share of dots inside the predicted ellipse, which should be 95 %.
    """
    walking = len(study.components) == 15
    pairs = _PAIRS + (_BIAS_PAIRS if walking else ())
    rows = len(pairs) // 3
    figure = style.new_figure(9.0, 2.7 * rows + 0.7)
    panels = figure.subplots(rows, 3, squeeze=False)
    for panel, pair in zip(panels.flat, pairs, strict=True):
        _draw(panel, study, list(pair))
    handles = [
        style.legend_line('one run', palette.REAL_COLOUR, marker='.', linestyle=''),
        style.legend_line('95 %, predicted', palette.BLUE, linewidth=1.6),
        style.legend_line('95 %, sampled', palette.VERMILION, linewidth=1.6, linestyle='--'),
    ]
    title = (
        f'{study.setup.name}: prediction errors after {study.pim.delta_tij():g} s, '
        f'{study.setup.runs} runs, in the axes of the body at the end'
    )
    style.figure_legend(figure, handles, 3, title)
    return figure


def _draw(panel: Axes, study: ScenarioStudy, pair: list[int]) -> None:
    block = np.ix_(pair, pair)
    predicted, estimated = study.predicted_covariance[block], study.estimated_covariance[block]
    errors = study.errors[:, pair]
    panel.plot(
        errors[:, 0], errors[:, 1], '.', color=palette.REAL_COLOUR, markersize=2, alpha=0.5,
        rasterized=True,
    )  # fmt: skip
    panel.plot(*_ellipse(predicted), color=palette.BLUE, linewidth=1.6)
    middle = errors.mean(axis=0)[:, None]
    panel.plot(*_ellipse(estimated) + middle, '--', color=palette.VERMILION, linewidth=1.6)
    title = 'no predicted ellipse: no variance'
    if np.linalg.matrix_rank(predicted, hermitian=True) == 2:
        distance = np.sum(errors * np.linalg.solve(predicted, errors.T).T, axis=1)
        inside = float(np.mean(distance < chi2.ppf(_SHARE, 2)))
        title = f'{100.0 * inside:.1f} % inside the prediction'
    panel.set_title(title, fontsize=9)
    for axis, i in zip((panel.xaxis, panel.yaxis), pair, strict=True):
        axis.set_label_text(_LABELS[i // 3].format('xyz'[i % 3]), fontsize=8)
    panel.locator_params(nbins=5)
    style.tidy(panel, grid=True)


def _ellipse(covariance: FloatArray) -> FloatArray:
    """Return the contour, `(2, n)`, that holds 95 % of a Gaussian."""
    values, vectors = np.linalg.eigh(covariance)
    angle = np.linspace(0.0, 2.0 * np.pi, 121)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    size = np.sqrt(chi2.ppf(_SHARE, 2) * np.maximum(values, 0.0))
    return np.asarray((vectors * size) @ circle)


MARK = 'scenario.json'
"""File that every result of this kind holds."""
_AXES = tuple(f'{what}_{axis}' for what in ('force', 'rate') for axis in 'xyz')


def scenario_record(study: ScenarioStudy) -> dict[str, Any]:
    """Return everything but the series as a plain mapping, for JSON; SI units."""
    setup, pim = study.setup, study.pim
    return {
        'versions': versions(),
        'scenario': setup.name,
        # Adding up the sample times, as GTSAM does, would give 1.9999999999999996.
        'duration_s': round(pim.delta_tij() / setup.dt) * setup.dt,
        'sample_time_s': setup.dt,
        'seed': setup.seed,
        'noise': setup.noise,
        'form': setup.params.form,
        'gravity': setup.params.n_gravity.tolist(),
        'bias': setup.bias.vector.tolist(),
        'estimated_bias': setup.estimated_bias.vector.tolist(),
        'delta_rij': pim.delta_rij().tolist(),
        'delta_pij': pim.delta_pij().tolist(),
        'delta_vij': pim.delta_vij().tolist(),
        'preint_meas_cov': pim.preint_meas_cov().tolist(),
        'predicted': _state(study.predicted),
        'truth': _state(study.truth),
        'error': study.error.tolist(),
        'error_without_noise': study.step_error.tolist(),
        'components': list(study.components),
        'runs': setup.runs,
        'predicted_covariance': study.predicted_covariance.tolist(),
        'estimated_covariance': study.estimated_covariance.tolist(),
        'agreement': {
            'statistic': study.agreement.statistic,
            'degrees_of_freedom': study.agreement.freedom,
            'probability': study.agreement.probability,
        },
    }


def write_scenario(folder: str | Path, study: ScenarioStudy, *, overwrite: bool) -> None:
    """Write the complete folder or nothing.

    An existing folder is refused unless it may be replaced.
    """
    with fresh_folder(folder, MARK, overwrite=overwrite) as fresh:
        write_csv(
            fresh / 'measurements.csv',
            ('time_s', *_AXES, *(f'ideal_{name}' for name in _AXES)),
            np.column_stack([study.time, study.measured, study.ideal]).tolist(),
        )
        write_csv(fresh / 'errors.csv', study.components, study.errors.tolist())
        write_json(fresh / MARK, scenario_record(study))
        style.save_png(scenario_figure(study), fresh / 'scenario.png')


def _state(state: NavState) -> dict[str, list[float]]:
    return {
        'orientation_xyzw': state.orientation.tolist(),
        'position': state.position.tolist(),
        'velocity': state.velocity.tolist(),
    }
