# SPDX-License-Identifier: Apache-2.0
"""Plots of a page: scores, speeds, spectra, and stated against actual deviations.

`colours` are the class of the colour of each model and of `real`, in the order of the panels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from markupsafe import Markup

from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.report.page.evidence import Evidence, RunEvidence
from sim2real_eval.report.page.figure import Captioned, Multiples, Panel, times
from sim2real_eval.report.page.markup import element
from sim2real_eval.report.page.tables import shown_model
from sim2real_eval.report.run_plots import HistogramAxis
from sim2real_eval.study.outcome import StudyOutcome
from sim_sensors.core.measurements import FloatArray


def covariance_consistency(
    evidence: Evidence, quantity: Literal['position', 'velocity'], colours: Mapping[str, str]
) -> Multiples:
    """Return the errors over the stated deviations, with the diagonal of a consistent judge: of
    horizontal `position`, m, or body `velocity`, m/s.
    """
    points: dict[str, FloatArray] = {}
    for name in colours:
        pairs = np.array([getattr(one, quantity) for one in evidence.of(name)]).reshape(-1, 2)
        pairs = pairs[np.all(np.isfinite(pairs) & (pairs > 0.0), axis=1)]
        if len(pairs):
            points[name] = pairs
    if not points:
        return Multiples('', [])
    everything = np.concatenate(list(points.values()))
    unit = 'm' if quantity == 'position' else 'm/s'
    panel = Panel(
        _range(everything), _range(everything),
        log_x=True, log_y=True, unit_x=f'stated, {unit}', unit_y=f'error, {unit}',
    )  # fmt: skip
    ends = np.array([everything.min() / 10.0, everything.max() * 10.0])
    others = _dots(panel, everything, 'others')
    panels = []
    for name, mine in points.items():
        ratio = float(np.sqrt(np.mean(mine[:, 1] ** 2) / np.mean(mine[:, 0] ** 2)))
        called = evidence.called(name)
        svg = panel.svg(
            panel.line(ends, ends, 'reference'),
            others,
            _dots(panel, mine, 'dot'),
            label=f'Error over stated deviation of {quantity}, {called}: '
            f'error {times(ratio)} times what is stated',
        )
        remark = f'error {times(ratio)} \N{MULTIPLICATION SIGN} stated'
        panels.append(Captioned(called, colours[name], svg, remark))
    return Multiples('', panels)


def _range(values: FloatArray) -> tuple[float, float]:
    """Return a range around values that is at least a factor of four wide."""
    low, high = float(values.min()), float(values.max())
    margin = max(1.25, 2.0 / np.sqrt(high / low))
    return low / margin, high * margin


def _dots(panel: Panel, points: FloatArray, kind: str) -> Markup:
    """Return one path for all dots: a stroke of no length with round ends."""
    x, y = np.rint(panel.across(points[:, 0])), np.rint(panel.up(points[:, 1]))
    d = ''.join(f'M{a:.0f} {b:.0f}h0' for a, b in sorted(set(zip(x, y, strict=True))))
    return element('path', class_=kind, d=d)


# Histograms of the scores of all runs, simulated in front of real.


def histograms(
    outcome: StudyOutcome, judge: str, axis: HistogramAxis, colours: Mapping[str, str]
) -> Multiples:
    """Return a histogram of `RMSE` or `ENTROPY` per model, with the real runs as an outline behind
    it.
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


# Spectra of the speed error: median over runs, and where the middle 80 % of them lie.

_DECADES = 6.0


def spectra(evidence: Evidence, colours: Mapping[str, str]) -> Multiples:
    """Return the spectrum of each model with that of the real runs behind it."""
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
        remark = f'{times(power)} \N{MULTIPLICATION SIGN} the power'
        panels.append(Captioned(name, colours[name], svg, remark))
    return Multiples('', panels)


# True and estimated speed of single runs, and where they went: real beside simulated.

_RANGES = 1.0
"""How far beyond the true values estimates are drawn, in ranges of the true values."""


def speed_plots(evidence: Evidence, colours: Mapping[str, str]) -> list[Multiples]:
    """Return the speeds of one run per scenario and model."""
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
            remark = (
                f'clipped, up to {most:.2g} m/s'
                if clipped
                else f'RMSE {runs[name].run.score.rmse:.3f} m/s'
            )
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


def _heading(group: str, scenario: str, runs: Mapping[str, RunEvidence]) -> str:
    recordings: Sequence[str] = list(dict.fromkeys(one.run.key.recording for one in runs.values()))
    place = ' · '.join(part for part in (group, scenario) if part)
    return f'{place} ({recordings[0]})' if len(recordings) == 1 else place
