# SPDX-License-Identifier: Apache-2.0
"""Allan deviations: table of noise terms and log-log plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from rich.table import Table
from rich.text import Text

from sim2real_eval.characterization.allan import AllanCurve
from sim2real_eval.characterization.analysis import AxisResult, RecordingResult
from sim2real_eval.characterization.imu_file import discrete, sheet_units, si_unit
from sim2real_eval.characterization.noise_terms import (
    Coefficient,
    NoiseTerms,
    term_variances,
    with_error,
)
from sim2real_eval.characterization.recovered_parameters import RecoveredParameter
from sim2real_eval.characterization.signals import quantity_of, unit_of
from sim2real_eval.report.console import plain_table
from sim2real_eval.report.style import model_colours, new_figure, save_png, tidy

_WORDS = {
    'quantisation': 'quantisation Q',
    'white': 'white noise N',
    'bias_instability': 'bias instab. B',
    'random_walk': 'random walk K',
    'rate_ramp': 'rate ramp R',
}


def allan_console_table(
    terms: Mapping[str, NoiseTerms],
    results: Sequence[RecordingResult],
    recovered_parameters: Sequence[RecoveredParameter] = (),
) -> Table:
    """Return a table with a row per axis and coefficient.

    Parameters
    ----------
    terms : mapping
        By axis.
    results : sequence of RecordingResult
        Of the recordings that they are of. Discrete values are for the rate of the longest; of one
        recording alone there are the coefficients read off with straight lines, too.
    recovered_parameters : sequence of RecoveredParameter, optional
        What became of each coefficient in the simulated sensor.
    """
    rate = max(results, key=lambda one: one.samples).rate
    graphical_estimate = (
        {one.axis: one.graphical_estimate for one in results[0].axes}
        if len(results) == 1
        else None
    )
    samples = sum(one.samples for one in results)
    seconds = sum(one.seconds for one in results)
    where = f' of {len(results)} recordings' if len(results) > 1 else ''
    table = plain_table(
        f'Noise terms: {samples} samples{where}, {seconds:.6g} s '
        f'at {rate:.6g} Hz (discrete: at that rate; < is an upper bound, 95 %)',
        gap=1,
    )
    table.add_column('axis', overflow='fold')
    table.add_column('coefficient', no_wrap=True)
    table.add_column('data sheet', justify='right', no_wrap=True)
    table.add_column('', no_wrap=True)
    table.add_column('SI density', justify='right', no_wrap=True)
    table.add_column('discrete', justify='right', no_wrap=True)
    if graphical_estimate is not None:
        table.add_column('read off', justify='right', no_wrap=True)
    if recovered_parameters:
        table.add_column('back', no_wrap=True)
    back = {(one.axis, one.coefficient): one.is_recovered for one in recovered_parameters}
    for axis, row in terms.items():
        quantity = quantity_of(axis)
        label = axis.replace('_', ' ')
        for name, one in row.coefficients().items():
            unit = sheet_units(quantity, name)[0]
            step = discrete(name, one.value, rate)
            cells: list[Text | str] = [
                Text(label),
                _WORDS[name],
                _shown(one, unit.size),
                unit.name,
                f'{one.value:.3e}' if one.observable else '-',
                f'{step:.2e}' if one.observable else '-',
            ]
            if graphical_estimate is not None:
                read = graphical_estimate.get(axis, {}).get(name)
                cells.append('-' if read is None else f'{unit.of(read):.3g}')
            if recovered_parameters:
                cells.append('yes' if back[axis, name] else Text('no', style='bold red'))
            table.add_row(*cells)
            label = ''
        table.add_section()
    return table


def _shown(one: Coefficient, size: float) -> str:
    if not one.observable:
        return f'< {one.upper / size:.2g}'
    return with_error(one.value / size, one.std / size)


def units_legend(terms: Mapping[str, NoiseTerms]) -> str:
    """Return lines that name the SI units of the table; on their own, since a table wraps them."""
    quantities = list(dict.fromkeys(quantity_of(axis) for axis in terms))
    return '\n'.join(
        f'{quantity}: discrete in {unit_of(f"{quantity}_x")}, SI in '
        + ', '.join(f'{word[-1]} {si_unit(quantity, name)}' for name, word in _WORDS.items())
        for quantity in quantities
    )


# Allan deviations on log-log axes: measured with bands, fitted, and each fitted term.

_COLUMNS = 3
# Colours are for recordings.
_FIT_COLOUR = '#222222'
_LETTERS = {
    'quantisation': 'Q',
    'white': 'N',
    'bias_instability': 'B',
    'random_walk': 'K',
    'rate_ramp': 'R',
}
_SCALES = {'gyroscope': (math.pi / 180.0, 'deg/s'), 'accelerometer': (1.0, 'm/s²')}


def allan_figure(
    results: Sequence[RecordingResult],
    terms: Mapping[str, NoiseTerms],
    twins: Mapping[str, AllanCurve] | None = None,
) -> Figure:
    """Return one panel per axis.

    Parameters
    ----------
    results : sequence of RecordingResult
        Curves with one-sigma bands; several recordings take a colour each.
    terms : mapping
        By axis: the fit that is drawn, and its terms as thin lines.
    twins : mapping, optional
        Curve of the simulated sensor by axis, drawn as dots.
    """
    axes = list(terms)
    columns = min(_COLUMNS, len(axes))
    rows = math.ceil(len(axes) / columns)
    figure = new_figure(max(3.5 * columns, 4.8), 3.0 * rows + 0.8)
    panels = figure.subplots(rows, columns, squeeze=False)
    colours = model_colours([result.name for result in results])
    for index, axis in enumerate(axes):
        panel: Axes = panels.flat[index]
        factor, unit = _SCALES[quantity_of(axis)]
        for result in results:
            for one in result.axes:
                if one.axis == axis:
                    _draw_curve(panel, one, factor, colours[result.name])
        _draw_terms(panel, terms[axis], factor)
        if twins and axis in twins:
            twin = twins[axis]
            dots = panel.plot(twin.tau, twin.deviation / factor, 'o', color=_FIT_COLOUR, zorder=6)
            dots[0].set(markersize=4.0, markerfacecolor='white', markeredgewidth=0.8)
        _decorate(panel, axis, terms[axis], unit)
    for panel in panels.flat[len(axes) :]:
        panel.remove()
    figure.supxlabel('averaging time [s]', fontsize=9)
    figure.legend(
        handles=_handles(results, colours, bool(twins)),
        loc='outside upper center',
        ncols=4 if columns > 1 else 2,
        fontsize=8,
        frameon=False,
    )
    return figure


def save_allan_plot(
    path: str | Path,
    results: Sequence[RecordingResult],
    terms: Mapping[str, NoiseTerms],
    twins: Mapping[str, AllanCurve] | None = None,
) -> Path:
    """Write the figure as PNG; see `allan_figure`."""
    return save_png(allan_figure(results, terms, twins), path)


def _draw_curve(panel: Axes, one: AxisResult, factor: float, colour: str) -> None:
    tau = one.curve.tau
    panel.fill_between(
        tau, one.lower / factor, one.upper / factor, color=colour, alpha=0.25, linewidth=0
    )
    panel.plot(tau, one.curve.deviation / factor, color=colour, linewidth=1.3, zorder=3)


def _draw_terms(panel: Axes, terms: NoiseTerms, factor: float) -> None:
    low, high = panel.get_xlim()[0], panel.dataLim.x1
    tau = np.geomspace(max(panel.dataLim.x0, low), high, 200)
    parts = term_variances(terms, tau)
    if not parts:
        return
    bottom, top = panel.dataLim.y0, panel.dataLim.y1
    total = np.sqrt(np.sum(list(parts.values()), axis=0)) / factor
    panel.plot(tau, total, color=_FIT_COLOUR, linewidth=1.2, zorder=5)
    for name, variance in parts.items():
        line = np.sqrt(variance) / factor
        panel.plot(tau, line, color=_FIT_COLOUR, linewidth=0.8, linestyle='--', zorder=2)
        # The letter stands where the term matters most.
        share = (line / total) ** 2
        place = int(np.argmax(share)) if share.max() < 1 else len(tau) // 2
        place = min(max(place, 10), len(tau) - 20)
        panel.annotate(
            _LETTERS[name],
            (tau[place], line[place]),
            xytext=(0, -11),
            textcoords='offset points',
            fontsize=9,
            color=_FIT_COLOUR,
            ha='center',
            bbox={'facecolor': 'white', 'edgecolor': 'none', 'alpha': 0.8, 'pad': 0.6},
            zorder=7,
        )
    panel.set_ylim(bottom / 2.5, top * 2.0)


def _decorate(panel: Axes, axis: str, terms: NoiseTerms, unit: str) -> None:
    panel.set_xscale('log')
    panel.set_yscale('log')
    tidy(panel)
    panel.tick_params(which='minor', labelsize=7)
    panel.grid(visible=True, which='major', color='#e0e0e0', linewidth=0.6)
    quantity = quantity_of(axis)
    shown, unseen = [], []
    for name, one in terms.coefficients().items():
        if not one.observable:
            unseen.append(_LETTERS[name])
        else:
            unit_of_sheet = sheet_units(quantity, name)[0]
            shown.append(
                f'{_LETTERS[name]} = {unit_of_sheet.of(one.value):.3g} {unit_of_sheet.name}'
            )
    title = axis.replace('_', ' ')
    lines = [', '.join(shown[i : i + 2]) for i in range(0, len(shown), 2)]
    if unseen:
        lines.append(f'{", ".join(unseen)}: not observable')
    panel.set_title('\n'.join([title, *lines]), fontsize=8.5)
    panel.set_ylabel(f'Allan deviation [{unit}]', fontsize=8)


def _handles(
    results: Sequence[RecordingResult], colours: Mapping[str, str], twins: bool
) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = [
        Line2D([], [], color=colours[result.name], linewidth=1.3, label=result.name)
        for result in results[:6]
    ]
    # The band has the colour of its curve; that of several is said in grey.
    band = colours[results[0].name] if len(results) == 1 else 'grey'
    handles.append(Patch(color=band, alpha=0.25, linewidth=0, label='68 % band'))
    handles.append(Line2D([], [], color=_FIT_COLOUR, linewidth=1.2, label='fit and its terms'))
    if twins:
        handles.append(
            Line2D(
                [], [], color=_FIT_COLOUR, marker='o', linestyle='none', markersize=4,
                markerfacecolor='white', label='simulated from the fit',
            )
        )  # fmt: skip
    return handles
