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
# its yellow. Black and grey are the colours of truth and reality. The last three are from Tol's
# muted palette. Some are darkened so that thin lines on white have a contrast of at least 3 (WCAG
# 2.2, 1.4.11). The values are the corresponding colours on a dark page.
ON_DARK: Mapping[str, str] = {
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
"""Colour on a dark page for each colour of the palette."""
_PALETTE = tuple(ON_DARK)
BLUE, VERMILION, GREEN = _PALETTE[:3]
_PAPER_MODELS = ('ch_gauss', 'ch_rw', 'airsim', 'ch_gauss_airsim', 'ch_rw_airsim', 'baseline')

# Colours show significance and not rank, so that nearly equal models look the same.
LIKE_REAL = '#0B5CAD'
UNLIKE_REAL = '#8A4B00'
UNKNOWN = '#555D68'

_LOG_AXIS_RATIO = 12.0


def needs_log_axis(values: Sequence[float]) -> bool:
    """Return whether all values are positive and spread too widely for a linear axis."""
    return bool(len(values)) and min(values) > 0.0 and max(values) / min(values) > _LOG_AXIS_RATIO


def model_colours(models: Iterable[str]) -> dict[str, str]:
    """Return a colour per model: the paper's five and the baseline always have the same one.

    Other models take the remaining colours. With more models than colours they repeat; the plots
    stay legible because every model has its own panel, row or dash pattern.
    """
    names = list(models)
    colours = {
        name: _PALETTE[_PAPER_MODELS.index(name)] for name in names if name in _PAPER_MODELS
    }
    free = [colour for colour in _PALETTE if colour not in colours.values()] or list(_PALETTE)
    # Sorted names get the same colours in any order of the models.
    other_names = sorted(name for name in set(names) if name not in colours)
    colours |= {name: free[i % len(free)] for i, name in enumerate(other_names)}
    return colours
