# SPDX-License-Identifier: Apache-2.0
"""Standard deviations that the judge states against its errors, a dot per run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from markupsafe import Markup

from sim2real_eval.report.page.evidence import Evidence
from sim2real_eval.report.page.figure import Captioned, Multiples
from sim2real_eval.report.page.markup import element
from sim2real_eval.report.page.panel import Panel
from sim2real_eval.report.page.scale import times
from sim_sensors.measurements import FloatArray

__all__ = ['covariance_consistency']


def covariance_consistency(
    evidence: Evidence, quantity: Literal['position', 'velocity'], colours: Mapping[str, str]
) -> Multiples:
    """Return the errors over the stated deviations, with the diagonal of a consistent judge.

    Parameters
    ----------
    evidence : Evidence
    quantity : str
        Horizontal `position`, m, or body `velocity`, m/s.
    colours : mapping
        Model, and `real`, to the class of its colour.
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
        svg = panel.svg(
            panel.line(ends, ends, 'reference'),
            others,
            _dots(panel, mine, 'dot'),
            label=f'Error over stated deviation of {quantity}, {evidence.called(name)}: '
            f'error {times(ratio)} times what is stated',
        )
        panels.append(
            Captioned(
                evidence.called(name),
                colours[name],
                svg,
                f'error {times(ratio)} \N{MULTIPLICATION SIGN} stated',
            )
        )
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
