# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Texts of a figure that stay on the canvas and beside each other, whatever names they hold."""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.figure import Figure, SubFigure
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator
from matplotlib.transforms import BboxBase

_PAD = 6.0  # pixels between a text and the end of its room
_HANDLE = 70.0  # pixels of the line and the gaps beside an entry of a legend
_MAX_LINES = 4
# Part of the figure that the labels of the ticks may take.
_TICK_SHARE = 0.35
_ROUNDS = 3


def fit_texts(figure: Figure) -> None:
    """Lay a figure out and wrap titles, labels and legends that are longer than their room.

    Longer texts than four lines lose their middle. The room of a title or a label of a panel ends
    half-way to the next panel, that of others at the edge of the canvas.
    """
    layout = figure.get_layout_engine()
    # Before the layout too, which fails for labels that leave no room for the panels.
    _shorten_texts(figure)
    for _ in range(_ROUNDS):
        if layout is not None:
            with warnings.catch_warnings():
                warnings.filterwarnings('ignore', 'constrained_layout not applied')
                layout.execute(figure)
        if not _shorten_texts(figure):
            return


def _shorten_texts(figure: Figure) -> bool:
    shortened = [_shorten(text, room) for text, room in _rooms(figure)]
    return any(shortened)


def _rooms(figure: Figure | SubFigure) -> Iterator[tuple[Text | Axis, float]]:
    """Yield the texts of a figure, and axes with names at their ticks, with the room in pixels."""
    canvas = figure.bbox
    for text in figure.texts:
        yield text, (canvas.height if _is_upright(text) else canvas.width) - _PAD
    for legend in figure.legends:
        yield from _legend_rooms(legend, canvas.width)
    panels = figure.axes
    for panel in panels:
        yield from _panel_rooms(panel, panels)
    for part in figure.subfigs:
        yield from _rooms(part)


def _legend_rooms(legend: Legend, room: float) -> Iterator[tuple[Text, float]]:
    legend.get_title().set_multialignment('center')
    yield legend.get_title(), room - 3.0 * _PAD
    if legend.get_window_extent().width > room - _PAD:
        columns = min(legend._ncols, len(legend.get_texts()))  # type: ignore[attr-defined]
        for text in legend.get_texts():
            yield text, room / columns - _HANDLE


def _panel_rooms(panel: Axes, panels: list[Axes]) -> Iterator[tuple[Text | Axis, float]]:
    box, canvas = panel.bbox, panel.figure.bbox
    others: list[BboxBase] = [other.bbox for other in panels if other is not panel]
    left, right, below, above = _surroundings(box, canvas, others)
    centre, middle = 0.5 * (box.x0 + box.x1), 0.5 * (box.y0 + box.y1)
    width = 2.0 * min(centre - left, right - centre) - _PAD
    yield panel.title, width
    yield panel._left_title, right - box.x0 - _PAD  # type: ignore[attr-defined]
    yield panel._right_title, box.x1 - left - _PAD  # type: ignore[attr-defined]
    yield panel.xaxis.label, width
    yield panel.yaxis.label, 2.0 * min(middle - below, above - middle) - _PAD
    yield panel.xaxis, _TICK_SHARE * canvas.height
    yield panel.yaxis, _TICK_SHARE * canvas.width
    for text in panel.texts:
        yield text, box.width - _PAD
    if (legend := panel.get_legend()) is not None:
        yield from _legend_rooms(legend, box.width)


def _surroundings(
    box: BboxBase, canvas: BboxBase, others: list[BboxBase]
) -> tuple[float, float, float, float]:
    """Return left, right, lower and upper ends of the room around a panel."""
    left, right, below, above = canvas.x0, canvas.x1, canvas.y0, canvas.y1
    for other in others:
        if other.y0 < box.y1 and box.y0 < other.y1:
            if other.x0 >= box.x1:
                right = min(right, 0.5 * (box.x1 + other.x0))
            elif other.x1 <= box.x0:
                left = max(left, 0.5 * (box.x0 + other.x1))
        elif other.x0 < box.x1 and box.x0 < other.x1:
            if other.y0 >= box.y1:
                above = min(above, 0.5 * (box.y1 + other.y0))
            elif other.y1 <= box.y0:
                below = max(below, 0.5 * (box.y0 + other.y1))
    return left, right, below, above


def _is_upright(text: Text) -> bool:
    return float(text.get_rotation()) % 180.0 == 90.0


def _shorten(text: Text | Axis, room: float) -> bool:
    """Wrap a text, or the labels of an axis, that is longer than its room."""
    if isinstance(text, Axis):
        return _shorten_ticks(text, room)
    if not text.get_visible() or not text.get_text():
        return False
    extent = text.get_window_extent()
    length = extent.height if _is_upright(text) else extent.width
    if length <= room + 1.0:
        return False
    text.set_text(_wrap(text.get_text(), room / length))
    return True


def _shorten_ticks(axis: Axis, room: float) -> bool:
    if not isinstance(axis.get_major_locator(), FixedLocator):
        return False
    labels = axis.get_majorticklabels()
    boxes = [label.get_window_extent() for label in labels]
    lengths = [box.height if isinstance(axis, XAxis) else box.width for box in boxes]
    if max(lengths, default=0.0) <= room + 1.0:
        return False
    longest = max(len(line) for label in labels for line in label.get_text().split('\n'))
    texts = [_wrap(label.get_text(), room / max(lengths), longest) for label in labels]
    axis.set_ticks(axis.get_majorticklocs(), labels=texts)
    return True


def _wrap(text: str, share: float, longest: int | None = None) -> str:
    """Return a text in lines of a share of its longest line, without its middle if too long."""
    lines = text.split('\n')
    characters = max(4, int(share * (longest or max(len(line) for line in lines))))
    wrapped = [piece for line in lines for piece in _balanced(line, characters)]
    if len(wrapped) > max(_MAX_LINES, len(lines)):
        half = _MAX_LINES * characters // 2 - characters
        flat = ' '.join(lines)
        wrapped = textwrap.wrap(f'{flat[:half]}…{flat[-half:]}', characters)
    return '\n'.join(wrapped)


def _balanced(line: str, characters: int) -> list[str]:
    """Return a line in as few pieces as fit, of similar lengths: no last piece of one word."""
    pieces = textwrap.wrap(line, characters) or ['']
    if len(pieces) < 2:
        return pieces
    for width in range(math.ceil(len(line) / len(pieces)), characters):
        if len(narrow := textwrap.wrap(line, width)) == len(pieces):
            return narrow
    return pieces
