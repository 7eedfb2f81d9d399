# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Functions that all plots share: sizes, legends, and PNG files with the same bytes every time."""

from __future__ import annotations

import contextlib
import io
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import (
    FixedFormatter,
    Formatter,
    FuncFormatter,
    Locator,
    LogFormatterMathtext,
    MaxNLocator,
    NullLocator,
    StrMethodFormatter,
)

from sim2real_eval.common.new_files import write_bytes
from sim2real_eval.common.results import fresh_files
from sim_sensors.core.errors import printable
from .text_fitting import fit_texts


def log_x(axes: Axes) -> None:
    """Make the x axis logarithmic, with `log_ticks`."""
    axes.set_xscale('log')
    mark_log(axes.xaxis)


def mark_log(axis: Axis) -> None:
    """Mark a logarithmic axis with `log_ticks` and plain numbers."""
    axis.set_major_locator(_LogTicks())
    axis.set_major_formatter(StrMethodFormatter('{x:g}'))
    axis.set_minor_locator(NullLocator())


_DIGITS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
_MIN_TICKS, _MAX_TICKS = 4, 9


def log_ticks(low: float, high: float) -> list[float]:
    """Return at least four ticks of a logarithmic axis, with as few digits as that allows.

    Powers of ten alone would leave an axis of two decades with two ticks.

    Examples
    --------
    >>> log_ticks(0.008, 0.9)
    [0.01, 0.03, 0.1, 0.3]
    >>> log_ticks(0.55, 2.1)
    [0.7, 1.0, 1.5, 2.0]
    >>> log_ticks(1.02, 1.19)
    [1.05, 1.1, 1.15]
    >>> len(log_ticks(1e-14, 1.0))
    8
    """
    first, last = math.floor(math.log10(low)), math.floor(math.log10(high))
    for digits in _DIGITS:
        ticks = [
            tick
            for exponent in range(first, last + 1)
            for digit in digits
            if low <= (tick := float(f'{digit}e{exponent}')) <= high
        ]
        if len(ticks) >= _MIN_TICKS:
            return ticks[:: math.ceil(len(ticks) / _MAX_TICKS)]
    steps = MaxNLocator(_MIN_TICKS).tick_values(low, high)
    return [float(f'{tick:.6g}') for tick in steps if low <= tick <= high]


class _LogTicks(Locator):
    def __call__(self) -> list[float]:
        assert self.axis is not None
        low, high = sorted(self.axis.get_view_interval())
        return self.tick_values(low, high)

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        return log_ticks(vmin, vmax) if 0.0 < vmin < vmax else []


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, with its size in inches, that is independent of pyplot."""
    figure = _PlainFigure(figsize=(width, height), dpi=120, layout='constrained')
    FigureCanvasAgg(figure)
    return figure


class _PlainFigure(Figure):
    """Figure that draws its texts as they stand, also if the user draws it."""

    def draw(self, renderer: Any) -> None:
        with plain_texts(self):
            super().draw(renderer)


@contextlib.contextmanager
def plain_texts(figure: Figure) -> Iterator[None]:
    """Draw the texts of a figure as they stand: names come from files that others wrote.

    Dollar signs would begin a formula, which Matplotlib refuses to draw if it has an error.
    """
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_parse_math(False)
        text.set_usetex(False)
        if not text.get_text().isprintable():
            text.set_text(printable(text.get_text(), '\n'))
    for axes in figure.findobj(Axes):
        assert isinstance(axes, Axes)
        for axis in (axes.xaxis, axes.yaxis):
            for ticker in (axis.major, axis.minor):
                if isinstance(ticker.formatter, _WITH_TEXTS):
                    ticker.formatter = _PlainLabels(ticker.formatter)
    plain = mpl.rc_context({'text.parse_math': False, 'text.usetex': False})
    with plain, warnings.catch_warnings():
        # A font without a character draws a box, which shows the problem.
        warnings.filterwarnings('ignore', 'Glyph .* missing from')
        yield


_WITH_TEXTS = (FixedFormatter, FuncFormatter, LogFormatterMathtext)
_SUPERSCRIPTS = str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹')


class _PlainLabels(Formatter):
    """Labels of ticks without formulas: names as they stand, and numbers such as 2·10⁻³."""

    def __init__(self, labels: Formatter) -> None:
        self._labels = labels

    def set_locs(self, locs: Any) -> None:
        self._labels.set_locs(locs)

    def __call__(self, x: float, pos: int | None = None) -> str:
        text = printable(self._labels(x, pos), '\n')
        if not isinstance(self._labels, LogFormatterMathtext):
            return text
        text = text.removeprefix(r'$\mathdefault{').removesuffix('}$').replace(r'\times', '·')
        return re.sub(r'\^\{(.*?)\}', lambda match: match[1].translate(_SUPERSCRIPTS), text)


def small_multiples(
    count: int,
    across: int,
    panel: tuple[float, float],
    edge: tuple[float, float],
    *,
    narrowest: float = 0.0,
    **shared: Any,
) -> tuple[Figure, list[Axes]]:
    """Return a figure and `count` panels in rows of `across`.

    `panel` is the size of a panel and `edge` the extra size of the figure, both in inches.
    `shared` is passed to `Figure.subplots`.
    """
    across = min(across, count)
    down = math.ceil(count / across)
    figure = new_figure(max(panel[0] * across + edge[0], narrowest), panel[1] * down + edge[1])
    panels = figure.subplots(down, across, squeeze=False, **shared).ravel()
    for unused in panels[count:]:
        unused.remove()
    return figure, list(panels[:count])


def tidy(axes: Axes, *, grid: bool = False) -> None:
    """Remove the frame lines without a scale, make tick labels small and draw a pale grid."""
    if grid:
        axes.grid(visible=True, color='#e5e5e5', linewidth=0.6)
    axes.spines[['top', 'right']].set_visible(False)
    axes.tick_params(labelsize=8)


def legend_line(label: str, colour: str, **style: Any) -> Line2D:
    """Return a line for a legend."""
    return Line2D([], [], color=colour, label=label, **style)


def figure_legend(
    figure: FigureBase,
    handles: Sequence[Artist],
    columns: int,
    title: str | None = None,
    *,
    below: bool = False,
) -> None:
    """Put a legend above all panels, with the title of the figure over it, or below them."""
    figure.legend(
        handles=handles, title=title, title_fontsize=10, fontsize=8, ncols=columns,
        loc='outside lower center' if below else 'outside upper center', frameon=False,
    )  # fmt: skip


def save_png(figure: Figure, path: str | Path) -> Path:
    """Write the figure as PNG without metadata: equal figures give equal bytes."""
    buffer = io.BytesIO()
    with plain_texts(figure):
        # The layout is computed before, because measuring text takes most of the time.
        fit_texts(figure)
        if figure.get_layout_engine() is not None:
            figure.set_layout_engine('none')
        canvas: Any = FigureCanvasAgg(figure)
        canvas.print_png(buffer, metadata={'Software': None})
    return write_bytes(path, buffer.getvalue())


def save_picture(figure: Figure, path: str | Path, *, overwrite: bool) -> None:
    """Write the figure as the only result of a command; see `fresh_files`."""
    target = Path(path)
    with fresh_files(target.parent, (target.name,), overwrite=overwrite) as folder:
        save_png(figure, folder / target.name)
