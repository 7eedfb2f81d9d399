# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Allan deviations: table of noise terms, log-log plot, and the folder of `sim2real allan`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from rich.table import Table
from rich.text import Text

from sim2real_eval.characterization import imu_file
from sim2real_eval.characterization.allan import AllanCurve
from sim2real_eval.characterization.allan_covariance import TERMS
from sim2real_eval.characterization.analysis import AxisResult, RecordingResult
from sim2real_eval.characterization.noise_terms import (
    Coefficient,
    NoiseTerms,
    term_variances,
    with_error,
)
from sim2real_eval.characterization.options import AllanOptions
from sim2real_eval.characterization.recovered_parameters import RecoveredParameter, Reidentified
from sim2real_eval.characterization.sheet_units import sheet_units, si_unit
from sim2real_eval.characterization.signals import quantity_of, unit_of
from sim2real_eval.common.findings import to_records
from sim2real_eval.common.model_files import model_yaml
from sim2real_eval.common.new_files import write_text
from sim2real_eval.common.results import Field, fresh_files, versions, write_csv, write_json
from sim2real_eval.exporting.imu_export import LONGEST_TIME, export_imu
from sim2real_eval.exporting.text_simulators import Kalibr
from sim2real_eval.exporting.xml_simulators import GazeboSdf
from sim_sensors.imu.chain import ImuChain
from . import palette, style
from .console import add_numbers, add_words, plain_table
from .export import PLOT_UNITS, commented_text

_WORDS = {
    'quantisation': 'quantisation Q',
    'white': 'white noise N',
    'bias_instability': 'bias instab. B',
    'random_walk': 'random walk K',
    'rate_ramp': 'rate ramp R',
    'gauss_markov': 'Gauss-Markov g',
    'gauss_markov_time': 'correlation time T',
    'bandwidth': 'bandwidth f',
}


def allan_console_table(
    terms: Mapping[str, NoiseTerms],
    results: Sequence[RecordingResult],
    recovered_parameters: Sequence[RecoveredParameter] = (),
) -> Table:
    """Return a table with a row per axis and coefficient.

    `terms` are the fitted noise terms of the recordings, by axis. Discrete values are for the
    sample rate of the longest recording. A single recording also has the coefficients that
    straight lines give. `recovered_parameters` say for each coefficient whether the simulated
    sensor reproduces it.
    """
    rate = max(results, key=lambda result: result.samples).rate
    graphical_estimate = {
        axis_result.axis: axis_result.graphical_estimate for axis_result in results[0].axes
    }
    alone = len(results) == 1
    samples = sum(result.samples for result in results)
    seconds = sum(result.seconds for result in results)
    where = f' of {len(results)} recordings' if len(results) > 1 else ''
    table = plain_table(
        f'Noise terms: {samples} samples{where}, {seconds:.6g} s '
        f'at {rate:.6g} Hz (discrete: at this rate; <: upper bound, 95 %'
        + ('; read off: from straight lines' if alone else '')
        + ('; back: found again in a simulation of the model)' if recovered_parameters else ')'),
        gap=1,
    )
    add_words(table, 'axis')
    table.add_column('coefficient', no_wrap=True)
    add_numbers(table, 'data sheet')
    table.add_column('', no_wrap=True)
    add_numbers(table, 'SI density', 'discrete', *['read off'] * alone)
    if recovered_parameters:
        table.add_column('back', no_wrap=True)
    back = {
        (parameter.axis, parameter.coefficient): parameter.is_recovered
        for parameter in recovered_parameters
    }
    for axis, row in terms.items():
        quantity = quantity_of(axis)
        label = axis.replace('_', ' ')
        for name, coefficient in row.coefficients().items():
            unit = sheet_units(quantity, name)[0]
            step = imu_file.discrete(name, coefficient.value, rate)
            cells: list[Text | str] = [
                Text(label),
                _WORDS[name],
                _coefficient_text(coefficient, unit.size),
                unit.name,
                f'{coefficient.value:.3e}' if coefficient.observable else '-',
                f'{step:.2e}' if coefficient.observable else '-',
            ]
            if alone:
                read = graphical_estimate.get(axis, {}).get(name)
                cells.append('-' if read is None else f'{unit.of(read):.3g}')
            if recovered_parameters:
                word = 'yes' if coefficient.observable else '-'
                cells.append(word if back[axis, name] else Text('no', style='bold red'))
            table.add_row(*cells)
            label = ''
        table.add_section()
    return table


def _coefficient_text(coefficient: Coefficient, size: float) -> str:
    if not coefficient.observable:
        # A Gauss-Markov bias replaces flicker.
        if not coefficient.upper:
            return '-'
        return f'< {coefficient.upper / size:.2g}'
    return with_error(coefficient.value / size, coefficient.std / size)


def units_legend(terms: Mapping[str, NoiseTerms]) -> str:
    """Return lines that name the SI units of the table; as a caption they would be wrapped."""
    quantities = list(dict.fromkeys(quantity_of(axis) for axis in terms))
    names = dict.fromkeys(name for row in terms.values() for name in row.coefficients())
    return '\n'.join(
        f'{quantity}: discrete in {unit_of(f"{quantity}_x")}, SI in '
        + ', '.join(f'{_LETTERS[name]} {si_unit(quantity, name)}' for name in names)
        for quantity in quantities
    )


# Colours are for recordings.
_FIT_COLOUR = '#222222'
_LETTERS = {name: words[-1] for name, words in _WORDS.items()}


def allan_figure(
    results: Sequence[RecordingResult],
    terms: Mapping[str, NoiseTerms],
    twins: Mapping[str, AllanCurve] | None = None,
) -> Figure:
    """Return a figure with a panel per axis.

    `terms` holds the fit of each axis, whose terms are thin lines. The curves of the recordings
    have one-sigma bands; several recordings have a colour each. Dots show the curves of the
    simulated sensor, `twins`, by axis.
    """
    figure, panels = style.small_multiples(len(terms), 3, (3.5, 3.0), (0.0, 0.8), narrowest=4.8)
    colours = palette.model_colours([result.name for result in results])
    for panel, axis in zip(panels, terms, strict=True):
        factor, unit = PLOT_UNITS[quantity_of(axis)]
        for result in results:
            for axis_result in result.axes:
                if axis_result.axis == axis:
                    _draw_curve(panel, axis_result, factor, colours[result.name])
        _draw_terms(panel, terms[axis], factor)
        if twins and axis in twins:
            twin = twins[axis]
            dots = panel.plot(twin.tau, twin.deviation / factor, 'o', color=_FIT_COLOUR, zorder=6)
            dots[0].set(markersize=4.0, markerfacecolor='white', markeredgewidth=0.8)
        _decorate(panel, axis, terms[axis], unit)
    figure.supxlabel('averaging time [s]', fontsize=9)
    style.figure_legend(
        figure, _handles(results, colours, bool(twins)), 4 if len(terms) > 1 else 2
    )
    return figure


def _draw_curve(panel: Axes, axis_result: AxisResult, factor: float, colour: str) -> None:
    tau = axis_result.curve.tau
    panel.fill_between(
        tau,
        axis_result.lower / factor,
        axis_result.upper / factor,
        color=colour,
        alpha=0.25,
        linewidth=0,
    )
    panel.plot(tau, axis_result.curve.deviation / factor, color=colour, linewidth=1.3, zorder=3)


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
        # The letter is placed where the term has its largest share.
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
    style.tidy(panel)
    panel.tick_params(which='minor', labelsize=7)
    panel.grid(visible=True, which='major', color='#e0e0e0', linewidth=0.6)
    quantity = quantity_of(axis)
    labels, unseen = [], []
    for name, coefficient in terms.coefficients().items():
        if not coefficient.observable:
            unseen.append(_LETTERS[name])
        else:
            sheet_unit = sheet_units(quantity, name)[0]
            labels.append(
                f'{_LETTERS[name]} = {sheet_unit.of(coefficient.value):.3g} {sheet_unit.name}'
            )
    title = axis.replace('_', ' ')
    lines = [', '.join(labels[i : i + 2]) for i in range(0, len(labels), 2)]
    if unseen:
        lines.append(f'{", ".join(unseen)}: not observable')
    panel.set_title('\n'.join([title, *lines]), fontsize=8.5)
    panel.set_ylabel(f'Allan deviation [{unit}]', fontsize=8)


def _handles(
    results: Sequence[RecordingResult], colours: Mapping[str, str], twins: bool
) -> list[Artist]:
    handles: list[Artist] = [
        style.legend_line(result.name, colours[result.name], linewidth=1.3)
        for result in results[:6]
    ]
    # A band has the colour of its curve. With several curves, the legend shows a grey band.
    band = colours[results[0].name] if len(results) == 1 else 'grey'
    handles.append(Patch(color=band, alpha=0.25, linewidth=0, label='68 % band'))
    handles.append(style.legend_line('fit and its noise terms', _FIT_COLOUR, linewidth=1.2))
    if twins:
        dots = {'marker': 'o', 'linestyle': 'none', 'markersize': 4, 'markerfacecolor': 'white'}
        handles.append(style.legend_line('simulated from the fit', _FIT_COLOUR, **dots))
    return handles


FILES = ('allan.csv', 'allan.json', 'allan.png', 'imu.yaml', 'kalibr_imu.yaml', 'noise.sdf')
_HEADER = (
    'recording', 'axis', 'tau_s', 'deviation', 'lower', 'upper', 'degrees_of_freedom',
    'simple_relative_error', 'samples_per_mean', 'model', *(f'model_{term}' for term in TERMS),
)  # fmt: skip


def allan_record(
    results: Sequence[RecordingResult],
    terms: Mapping[str, NoiseTerms],
    rate: float,
    options: AllanOptions,
    again: Reidentified | None,
    seed: int,
) -> dict[str, Any]:
    """Return everything but the curves as a plain mapping, for JSON."""
    return {
        'versions': versions(),
        'options': dataclasses.asdict(options),
        'rate_hz': rate,
        'axes': {axis: _terms_record(axis, row, rate) for axis, row in terms.items()},
        'recordings': [
            {
                'name': result.name,
                'rate_hz': result.rate,
                'samples': result.samples,
                'seconds': result.seconds,
                'notes': to_records(result.notes),
                'axes': {
                    axis_result.axis: _axis_record(axis_result, result.rate)
                    for axis_result in result.axes
                },
            }
            for result in results
        ],
        'reidentified': None
        if again is None
        else {
            'seed': seed,
            'all_recovered': not again.lost,
            'coefficients': [
                dataclasses.asdict(parameter) for parameter in again.recovered_parameters
            ],
        },
    }


def _axis_record(axis_result: AxisResult, rate: float) -> dict[str, Any]:
    return {
        'mean': axis_result.mean,
        'resolution': axis_result.resolution,
        'outliers_replaced': axis_result.replaced,
        'misfit_of_variance': axis_result.fit.misfit,
        'chi_square': axis_result.fit.chi_square,
        'degrees_of_freedom': axis_result.fit.freedom,
        'gauss_markov_gain': axis_result.choice.gain,
        'flicker_separated_from_gauss_markov': axis_result.choice.separated,
        'graphical_estimate': axis_result.graphical_estimate,
        **_terms_record(axis_result.axis, axis_result.terms, rate),
    }


def _terms_record(axis: str, terms: NoiseTerms, rate: float) -> dict[str, Any]:
    quantity = quantity_of(axis)
    return {
        'seconds': terms.seconds,
        'terms': {
            name: {
                **dataclasses.asdict(coefficient),
                'unit': si_unit(quantity, name),
                'discrete': imu_file.discrete(name, coefficient.value, rate),
                'data_sheet': {
                    unit.name: unit.of(coefficient.value) for unit in sheet_units(quantity, name)
                },
            }
            for name, coefficient in terms.coefficients().items()
        },
    }


def write_allan_folder(
    folder: str | Path,
    results: Sequence[RecordingResult],
    terms: Mapping[str, NoiseTerms],
    model: ImuChain,
    record: Mapping[str, Any],
    again: Reidentified | None,
    topic: str,
    *,
    overwrite: bool,
) -> None:
    """Write the files, all of them or none."""
    figure = allan_figure(results, terms, again.curves if again else None)
    comments = [
        'A sensor model made by `sim2real allan` from: '
        + ', '.join(
            f'{result.name} ({result.seconds:.0f} s at {result.rate:.6g} Hz)' for result in results
        ),
        'Use it with: sim2real simulate --imu THIS_FILE. Missing keys are zero.',
        'Bias instability B is flicker noise with an Allan plateau of 0.664 B.',
    ]
    longest_result = max(results, key=lambda result: result.seconds)
    measured = {
        axis_result.axis: (axis_result.curve.tau, axis_result.curve.deviation)
        for axis_result in longest_result.axes
        if axis_result.curve.variance.all()
    }
    longest = min(LONGEST_TIME, longest_result.seconds / 10.0)
    exports = {
        name: export_imu(model, simulator, longest=longest, measured=measured)
        for name, simulator in (('kalibr_imu.yaml', Kalibr(topic)), ('noise.sdf', GazeboSdf()))
    }
    with fresh_files(folder, FILES, overwrite=overwrite) as target:
        write_csv(target / 'allan.csv', _HEADER, _rows(results))
        style.save_png(figure, target / 'allan.png')
        for name, text in {
            'imu.yaml': model_yaml(model, comments),
            **{name: commented_text(export) for name, export in exports.items()},
        }.items():
            write_text(target / name, text)
        write_json(target / 'allan.json', record)


def _rows(results: Sequence[RecordingResult]) -> list[list[Field]]:
    rows: list[list[Field]] = []
    for result in results:
        for axis_result in result.axes:
            columns = (
                axis_result.curve.tau, axis_result.curve.deviation, axis_result.lower,
                axis_result.upper, axis_result.freedom, axis_result.simple_error,
                axis_result.curve.factors, axis_result.model.sum(axis=1) ** 0.5,
                *(axis_result.model.T**0.5),
            )  # fmt: skip
            rows += [
                [result.name, axis_result.axis, *values] for values in zip(*columns, strict=True)
            ]
    return rows
