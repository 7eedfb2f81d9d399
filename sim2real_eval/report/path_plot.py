# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Driven paths of a study, as in figure 6 of [Mahajan2024]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from sim2real_eval.metrics.options import REAL
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.run import EstimateSignals
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.rotations import rotate
from . import palette, style

MAX_PATHS = 40
"""Largest number of paths in a panel."""
_MAX_POINTS = 500

Paths = Mapping[tuple[str, str], Sequence[FloatArray]]
"""Paths `(n, 2)` m, by environment and scenario."""


def driven_paths(outcome: StudyOutcome, real_label: str) -> Paths:
    """Return the true paths of the first judge's recordings, and of simulated drives of their own.

    Each begins in the origin: position is the integral of the true velocity, since recordings have
    different frames. Simulated sensors on the true motion of a recording have its path.
    """
    first_judge = outcome.runs[0].key.judge
    runs = [run for run in outcome.runs if run.key.judge == first_judge]
    model = next((run.key.model for run in runs if not run.is_real), '')
    recorded = {run.key.recording for run in runs if run.is_real}
    paths: dict[tuple[str, str], list[FloatArray]] = {}
    for run in sorted(runs, key=lambda run: not run.is_real):
        if run.key.repetition > 1 or run.key.model not in (REAL, model):
            continue
        if not run.is_real and run.key.recording in recorded:
            continue
        environment = ' '.join(
            filter(None, (real_label if run.is_real else 'simulated', run.group))
        )
        panel = paths.setdefault((environment, run.scenario), [])
        if len(panel) < MAX_PATHS:
            panel.append(path_of(outcome.signals(run.key)))
    return paths


def path_of(signals: EstimateSignals) -> FloatArray:
    """Return the path of the truth from its start, `(n, 2)` m, thinned for a plot."""
    velocity = rotate(signals.true_orientation, signals.true_velocity)[:, :2]
    steps = 0.5 * np.diff(signals.true_time)[:, None] * (velocity[1:] + velocity[:-1])
    path = np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])
    rows = np.unique(np.linspace(0, len(path) - 1, _MAX_POINTS).astype(int))
    return np.asarray(path[rows])


def paths_figure(paths: Paths) -> Figure:
    """Return a figure with a row per environment and a column per scenario, on equal axes."""
    environments = list(dict.fromkeys(environment for environment, _ in paths))
    scenarios = list(dict.fromkeys(scenario for _, scenario in paths))
    figure = style.new_figure(max(3.0 * len(scenarios) + 0.4, 5.0), 2.8 * len(environments) + 0.7)
    panels = figure.subplots(len(environments), len(scenarios), squeeze=False)
    for row, environment in zip(panels, environments, strict=True):
        for panel, scenario in zip(row, scenarios, strict=True):
            if (environment, scenario) not in paths:
                panel.remove()
                continue
            style.tidy(panel, grid=True)
            shown = paths[environment, scenario]
            for path in shown:
                panel.plot(
                    path[:, 0], path[:, 1], color=palette.TRUTH_COLOUR, linewidth=0.8, alpha=0.6
                )
            panel.plot(0.0, 0.0, 'o', color=palette.TRUTH_COLOUR, markersize=4)
            runs = f'{len(shown)} run{"s" if len(shown) > 1 else ""}'
            panel.set_title(f'{scenario}, {environment}: {runs}', fontsize=9, loc='left')
            panel.set_aspect('equal', adjustable='datalim')
    figure.supxlabel('east of the start [m]', fontsize=9)
    figure.supylabel('north of the start [m]', fontsize=9)
    figure.suptitle('Driven paths (truth), each from its start', fontsize=10)
    return figure
