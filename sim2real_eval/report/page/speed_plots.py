# SPDX-License-Identifier: Apache-2.0
"""True and estimated speed of single runs, and where they went: real beside simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sim2real_eval.report.page.evidence import Evidence, RunEvidence
from sim2real_eval.report.page.figure import Captioned, Multiples
from sim2real_eval.report.page.panel import Panel
from sim_sensors.measurements import FloatArray

__all__ = ['speed_plots', 'track_plots']

_RANGES = 1.0
"""How far beyond the true values estimates are drawn, in ranges of the true values."""


def speed_plots(evidence: Evidence, colours: Mapping[str, str]) -> list[Multiples]:
    """Return the speeds of one run per scenario and model.

    Parameters
    ----------
    evidence : Evidence
    colours : mapping
        Model, and `real`, to the class of its colour, in the order of the panels.
    """
    found = []
    for (group, scenario), runs in evidence.shown.items():
        if not runs:
            continue
        true = np.concatenate([run.series.gt_vel for run in runs.values()])
        seen = np.concatenate([_known(run)[1] for run in runs.values()])
        span = max(float(np.ptp(true)), float(np.abs(true).max()), 0.1)
        low = max(float(seen.min()), float(true.min()) - _RANGES * span)
        high = min(float(seen.max()), float(true.max()) + _RANGES * span)
        low, high = min(low, float(true.min())), max(high, float(true.max()))
        margin = 0.05 * (high - low) or 0.1
        end = max(float(run.series.gt_time[-1]) for run in runs.values())
        panel = Panel((0.0, end), (low - margin, high + margin), unit_x='s', unit_y='m/s')
        panels = []
        for name, colour in colours.items():
            if name not in runs:
                continue
            series = runs[name].series
            time, speed = _known(runs[name])
            most = float(np.abs(speed).max()) if len(speed) else 0.0
            clipped = len(speed) and (speed.max() > high + margin or speed.min() < low - margin)
            # The truth on top but thin: an estimate that follows it stays visible around it.
            svg = panel.svg(
                panel.line(time, speed, 'estimate'),
                panel.line(series.gt_time, series.gt_vel, 'truth'),
                label=f'Speed over time, {evidence.called(name)}, {scenario}: estimate and truth',
            )
            remark = f'clipped, up to {most:.2g} m/s' if clipped else _rmse(runs[name])
            panels.append(Captioned(evidence.called(name), colour, svg, remark))
        found.append(Multiples(_heading(group, scenario, runs), panels))
    return found


def track_plots(evidence: Evidence, colours: Mapping[str, str]) -> list[Multiples]:
    """Return true and estimated positions on a plan, with one scale for both axes."""
    found = []
    for (group, scenario), runs in evidence.shown.items():
        tracks = {name: _track(run) for name, run in runs.items()}
        known = {name: track for name, track in tracks.items() if track is not None}
        if not known:
            continue
        true = np.concatenate([truth for _, truth in known.values()])
        low, high = true.min(axis=0), true.max(axis=0)
        reach = max(1.0, 0.15 * float(np.max(high - low)))
        seen = np.concatenate([estimate for estimate, _ in known.values()])
        low = np.clip(seen.min(axis=0), low - reach, low) - 0.1 * reach
        high = np.clip(seen.max(axis=0), high, high + reach) + 0.1 * reach
        panel = _plan(low, high)
        panels = []
        for name, colour in colours.items():
            if name not in known:
                continue
            estimate, truth = known[name]
            svg = panel.svg(
                panel.line(estimate[:, 0], estimate[:, 1], 'estimate'),
                panel.line(truth[:, 0], truth[:, 1], 'truth'),
                label=f'Track on a plan, {evidence.called(name)}, {scenario}: estimate and truth',
            )
            rmse = runs[name].position[1]
            remark = f'RMSE {rmse:.2f} m' if rmse == rmse else ''
            panels.append(Captioned(evidence.called(name), colour, svg, remark))
        found.append(Multiples(_heading(group, scenario, runs), panels))
    return found


def _plan(low: FloatArray, high: FloatArray) -> Panel:
    """Return a panel of the usual shape in which a metre east is as long as one north."""
    panel = Panel((0.0, 1.0), (0.0, 1.0), unit_x='m', unit_y='m')
    size = np.array(panel.inner)
    scale = float(np.max((high - low) / size))
    middle = (low + high) / 2.0
    x, y = np.stack([middle - scale * size / 2.0, middle + scale * size / 2.0], axis=1).tolist()
    return Panel(tuple(x), tuple(y), unit_x='m', unit_y='m')


def _track(run: RunEvidence) -> tuple[FloatArray, FloatArray] | None:
    """Return estimated and true positions, (n, 2), from the start of the truth."""
    signals = run.signals
    if signals is None:
        return None
    known = np.all(np.isfinite(signals.true_position[:, :2]), axis=1)
    known &= np.all(np.isfinite(signals.position[:, :2]), axis=1)
    if not known.any():
        return None
    truth = signals.true_position[known, :2]
    return signals.position[known, :2] - truth[0], truth - truth[0]


def _known(run: RunEvidence) -> tuple[FloatArray, FloatArray]:
    """Return the estimate as far as there is truth; beyond it the judge only predicts."""
    series = run.series
    known = (series.se_time >= 0.0) & (series.se_time <= series.gt_time[-1])
    return series.se_time[known], series.se_vel[known]


def _rmse(run: RunEvidence) -> str:
    return f'RMSE {run.run.score.rmse:.3f} m/s'


def _heading(group: str, scenario: str, runs: Mapping[str, RunEvidence]) -> str:
    recordings: Sequence[str] = list(dict.fromkeys(one.run.key.recording for one in runs.values()))
    place = ' · '.join(part for part in (group, scenario) if part)
    return f'{place} ({recordings[0]})' if len(recordings) == 1 else place
