# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Colours of plots and pages: one per model, the same wherever the model is drawn.

This module does not import Matplotlib, which takes 0.4 s to load and which a page does not need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

TRUTH_COLOUR = '#000000'
REAL_COLOUR = '#6d747d'

# Okabe and Ito's palette, which people with common colour deficiencies can distinguish, without
# its yellow; black and grey are taken by truth and reality. The last three are from Tol's muted
# palette. Darkened where thin lines on white need it, for a contrast of 3 and more (WCAG 2.2,
# 1.4.11); with each the hue for a dark page.
_HUES = {
    '#0072B2': '#4AA3E8',
    '#D55E00': '#F2793B',
    '#009E73': '#2FC79B',
    '#C8689B': '#E39AC6',
    '#B67D00': '#F2B740',
    '#2E8FC9': '#9AD2F5',
    '#882255': '#D06398',
    '#7F7F2A': '#C2C25C',
    '#332288': '#9388E8',
}
_PALETTE = tuple(_HUES)
BLUE, VERMILION, GREEN = _PALETTE[:3]
_KNOWN = ('ch_gauss', 'ch_rw', 'airsim', 'ch_gauss_airsim', 'ch_rw_airsim', 'baseline')

ON_DARK: Mapping[str, str] = _HUES
"""Colours of models to those on a dark page."""

# Colours show significance and not rank, so that nearly equal models look the same.
LIKE_REAL = '#0B5CAD'
UNLIKE_REAL = '#8A4B00'
UNKNOWN = '#555D68'

_WIDE = 12.0


def is_wide(values: Sequence[float]) -> bool:
    """Return whether positive values differ so much that they need a logarithmic axis."""
    return bool(len(values)) and min(values) > 0.0 and max(values) / min(values) > _WIDE


def model_colours(models: Iterable[str]) -> dict[str, str]:
    """Return a colour per model: the paper's five and the baseline always have the same one.

    Other models take the colours left over; with more models than colours they repeat, which is
    legible because every model has its own panel or row, or another dash.
    """
    names = list(models)
    colours = {name: _PALETTE[_KNOWN.index(name)] for name in names if name in _KNOWN}
    free = [colour for colour in _PALETTE if colour not in colours.values()] or list(_PALETTE)
    # Sorted names get the same colours in any order of the models.
    other_names = sorted(name for name in set(names) if name not in colours)
    colours |= {name: free[i % len(free)] for i, name in enumerate(other_names)}
    return colours
