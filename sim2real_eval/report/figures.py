# SPDX-License-Identifier: Apache-2.0
"""What all plots share: colours, panels and PNG files with the same bytes every time."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sim2real_eval.report.colours import REAL_COLOUR, TRUTH_COLOUR, model_colours
from sim2real_eval.tables import write_bytes

__all__ = ['REAL_COLOUR', 'TRUTH_COLOUR', 'model_colours', 'new_figure', 'save_png', 'tidy']


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of so many inches that belongs to no pyplot state."""
    figure = Figure(figsize=(width, height), dpi=120, layout='constrained')
    FigureCanvasAgg(figure)
    return figure


def tidy(axes: Axes) -> None:
    """Take away the frame lines that carry no scale; small numbers on the ticks."""
    axes.spines[['top', 'right']].set_visible(False)
    axes.tick_params(labelsize=8)


def save_png(figure: Figure, path: str | Path) -> Path:
    """Write the figure as PNG without metadata: equal figures give equal bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format='png', metadata={'Software': None})
    return write_bytes(path, buffer.getvalue())
