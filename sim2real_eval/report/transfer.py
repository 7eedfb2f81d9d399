# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Answer, tables, plot and result folder of `sim2real transfer`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sim2real_eval.benches.transfer.result import ModelTransfer, Transfer
from sim2real_eval.benches.tuning.parameters import Tunable
from sim2real_eval.common.file_list import list_files
from sim2real_eval.common.findings import FINDINGS, findings_text, from_records, to_records
from sim2real_eval.common.results import write_json
from sim2real_eval.metrics.options import REAL
from sim2real_eval.study.answer import TransferView
from sim2real_eval.study.options import MIN_BLOCKS, RMS_UNITS, TransferOptions
from sim2real_eval.study.outcome import MARK as STUDY_MARK
from sim2real_eval.study.transfer_record import TRANSFER_FILE, loss_text
from . import palette, style
from .answer import GENERAL_DOUBT, AnswerLine, cost_text
from .console import (
    DataTable,
    TableColumn,
    count_text,
    numeric,
    p_value_text,
    round_text,
    short_number,
)
from .search_layout import (
    TABLE_UNITS,
    finite_or_none,
    judge_record,
    result_header,
    to_table_unit,
    write_search_result,
)

_MAX_DRAWN = 4


def transfer_record(transfer: Transfer, options: TransferOptions) -> dict[str, Any]:
    """Return everything needed to repeat and to interpret a transfer, as JSON values."""
    return {
        **result_header(),
        'options': {**options.to_mapping(), 'objective': transfer.quantity},
        'judge': judge_record(transfer.judge),
        'quantity': transfer.quantity,
        'unit': RMS_UNITS.get(transfer.quantity, ''),
        'untuned': transfer.untuned,
        'reference': transfer.reference,
        'blocks': transfer.blocks,
        'drives': transfer.drives,
        'tunings': len(transfer.tunings),
        'parameters': [
            {
                'name': parameter.name,
                'unit': parameter.unit,
                'is_factor': parameter.is_factor,
                'start': finite_or_none(parameter.start),
                'real': finite_or_none(value),
            }
            for parameter, value in zip(transfer.parameters, transfer.values, strict=True)
        ],
        'models': [
            _model_record(model, transfer.parameters, options.level) for model in transfer.models
        ],
        'failures': dict(transfer.failures),
        'notes': to_records(transfer.notes),
    }


def _model_record(
    model: ModelTransfer, parameters: Sequence[Tunable], level: float
) -> dict[str, Any]:
    numbers = (
        'loss', 'low', 'high', 'p_value', 'adjusted', 'promised', 'achieved', 'landscape',
        'correlation',
    )  # fmt: skip
    return {
        'model': model.model,
        **{name: finite_or_none(getattr(model, name)) for name in numbers},
        'distinguishable': model.adjusted <= 1.0 - level,
        'group': model.group,
        'other_losses': _finite(model.other_losses),
        'error_ratios': _finite(model.error_ratios),
        'values': {
            parameter.name: finite_or_none(value)
            for parameter, value in zip(parameters, model.values, strict=True)
        },
        'differences': [
            {
                'parameter': difference.parameter.name,
                'simulated': finite_or_none(difference.simulated),
                'real': finite_or_none(difference.real),
                'share': difference.share,
            }
            for difference in model.differences
        ],
    }


def _finite(numbers: Mapping[str, float]) -> dict[str, float | None]:
    return {name: finite_or_none(number) for name, number in numbers.items()}


def write_transfer(
    folder: str | Path, transfer: Transfer, record: Mapping[str, Any], *, overwrite: bool = False
) -> None:
    """Write transfer.json, transfer.csv, tunings.csv, findings.txt and the plot, or nothing."""
    names = [parameter.name for parameter in transfer.parameters]
    places = list(transfer.landscapes)
    write_search_result(
        folder,
        TRANSFER_FILE,
        record,
        tables={
            'transfer.csv': (
                ('model', *_CSV, *(f'tuned {name}' for name in names)),
                [
                    (model['model'], *(model[name] for name in _CSV), *model['values'].values())
                    for model in record['models']
                ],
            ),
            'tunings.csv': (
                (*names, *(f'{transfer.quantity} {place}' for place in places)),
                [
                    (*values, *(transfer.landscapes[place][k] for place in places))
                    for k, values in enumerate(transfer.tunings)
                ],
            ),
        },
        texts={FINDINGS: findings_text(from_records(record['notes']))},
        figures={'transfer.png': transfer_figure(transfer)},
        overwrite=overwrite,
    )


_CSV = (
    'loss', 'low', 'high', 'p_value', 'adjusted', 'group', 'achieved', 'promised', 'landscape',
    'correlation',
)  # fmt: skip


def add_to_study(study: str | Path, record: Mapping[str, Any]) -> None:
    """Write a transfer into the folder of a study, so that its report shows it."""
    list_files(Path(study), STUDY_MARK, [TRANSFER_FILE])
    write_json(Path(study) / TRANSFER_FILE, record, allow_nan=False)


def interval_text(record: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    """Return the interval of a loss, such as `3 to 12 %`, or `unknown`."""
    if model['low'] is None or model['high'] is None:
        return 'unknown'
    low, high = (loss_text(record['quantity'], model[end]) for end in ('low', 'high'))
    return f'{low.removesuffix(" %")} to {high}'


def transfer_answer(record: Mapping[str, Any]) -> list[AnswerLine]:
    """Return the answer of a transfer: best model, its cost, a comparison, and the main doubt."""
    best, *others = record['models']
    quantity = record['quantity']
    choice = f' (the best of {1 + len(others)})' if others else ''
    blocks = count_text(record['blocks'], 'block')
    if best['low'] is None:
        verdict = f'{blocks} cannot prove a difference; {MIN_BLOCKS} are needed'
    else:
        proof = 'proven' if best['distinguishable'] else 'not proven'
        verdict = f'the difference is {proof} (adjusted p {p_value_text(best["adjusted"])})'
    cost = cost_text(TransferView.from_record(record, best['model']))
    lines = [AnswerLine('Develop on', f'{best["model"]}{choice}: {cost}; {verdict}')]
    compared = [f'the filter as given {loss_text(quantity, _given_loss(record))}']
    compared += [f'{model["model"]} {loss_text(quantity, model["loss"])}' for model in others[:1]]
    if len(others) > 1:
        worst = others[-1]
        compared.append(f'the worst, {worst["model"]}, {loss_text(quantity, worst["loss"])}')
    lines.append(AnswerLine('For comparison', '; '.join(compared)))
    notes = from_records(record['notes'])
    doubt = str(notes[0]) if notes else GENERAL_DOUBT
    return [*lines, AnswerLine('Main doubt', doubt)]


def _given_loss(record: Mapping[str, Any]) -> float:
    """Return the transfer loss of the judge without tuning."""
    excess: float = record['untuned'] - record['reference']
    return excess / record['reference'] if record['quantity'] in RMS_UNITS else excess


def transfer_table(record: Mapping[str, Any]) -> DataTable:
    """Return a table with a row per model, the smallest loss first."""
    quantity = record['quantity']
    unit = TABLE_UNITS.get(quantity, '')
    errors = f'{quantity} error' if unit else f'{quantity} score'

    def number(value: float | None) -> str:
        return short_number(to_table_unit(quantity, value))

    columns = [
        TableColumn('model'),
        numeric('loss'),
        TableColumn(f'{100 * record["options"]["level"]:g} % interval'),
        numeric('p adj.'),
        TableColumn('group'),
        numeric('on the robot', unit),
        numeric('promised', unit),
        numeric('landscape'),
        numeric('SRCC'),
    ]
    rows = [
        [
            model['model'],
            loss_text(quantity, model['loss']),
            interval_text(record, model),
            p_value_text(model['adjusted']),
            model['group'],
            number(model['achieved']),
            number(model['promised']),
            round_text(model['landscape'], 2),
            round_text(model['correlation'], 2),
        ]
        for model in record['models']
    ]
    rows.append(
        ['tuned on the robot', loss_text(quantity, 0.0), '', '', '', number(record['reference']),
         *[''] * 3]
    )  # fmt: skip
    untuned = loss_text(quantity, _given_loss(record)), '', '', '', number(record['untuned'])
    rows.append(['as given', *untuned, *[''] * 3])
    title = (
        f'Cost on the robot of a filter tuned in simulation: {errors}, judge '
        f'{record["judge"]["name"]}'
    )
    notes = [f'{model}: left out: {problem}' for model, problem in record['failures'].items()]
    notes += [str(note) for note in from_records(record['notes'])]
    return DataTable(title, columns, rows, notes=notes)


def transfer_figure(transfer: Transfer) -> Figure:
    """Plot losses with intervals, and the errors of the tunings in simulation against reality."""
    count = len(transfer.models)
    figure = style.new_figure(10.0, max(3.6, 1.4 + 0.32 * count))
    losses, errors = figure.subplots(1, 2)
    _draw_losses(losses, transfer)
    _draw_landscapes(errors, transfer)
    return figure


def _draw_losses(panel: Axes, transfer: Transfer) -> None:
    rows = np.arange(len(transfer.models))[::-1]
    scale = 100.0 if transfer.is_error else 1.0
    colours = palette.model_colours([model.model for model in transfer.models])
    for row, model in zip(rows.tolist(), transfer.models, strict=True):
        colour = colours[model.model]
        if np.isfinite([model.low, model.high]).all():
            panel.plot([scale * model.low, scale * model.high], [row, row], color=colour, lw=2.0)
        panel.plot(scale * model.loss, row, 'o', color=colour)
    panel.axvline(0.0, color='black', linewidth=0.8)
    panel.set_yticks(rows, [model.model for model in transfer.models], fontsize=9)
    panel.set_ylim(-0.6, len(rows) - 0.4)
    unit = '%' if transfer.is_error else 'natural logarithm'
    panel.set_xlabel(
        f'transfer loss of {transfer.quantity} [{unit}], 0: tuned on the robot', fontsize=9
    )
    style.tidy(panel, grid=True)


def _draw_landscapes(panel: Axes, transfer: Transfer) -> None:
    colours = palette.model_colours([model.model for model in transfer.models])
    factor = to_table_unit(transfer.quantity, 1.0) or 1.0
    real = factor * transfer.landscapes[REAL]
    drawn = transfer.models[: _MAX_DRAWN - 1] + transfer.models[_MAX_DRAWN - 1 :][-1:]
    for model in drawn:
        simulated = factor * transfer.landscapes[model.model]
        panel.plot(real, simulated, 'o', ms=3.5, alpha=0.7, color=colours[model.model],
                   label=f'{model.model}, SRCC {model.correlation:.2f}')  # fmt: skip
    ends = [float(real.min()), float(real.max())]
    panel.plot(ends, ends, color='black', linewidth=0.8, label='equal errors')
    if transfer.is_error:
        style.log_x(panel)
        panel.set_yscale('log')
        style.mark_log(panel.yaxis)
    unit = f' [{TABLE_UNITS[transfer.quantity]}]' if transfer.is_error else ''
    noun = 'error' if transfer.is_error else 'score'
    panel.set_xlabel(
        f'{transfer.quantity} {noun} on the robot{unit}, one point per tuning', fontsize=9
    )
    panel.set_ylabel(f'{transfer.quantity} {noun} in simulation{unit}', fontsize=9)
    panel.legend(fontsize=8, frameon=False)
    style.tidy(panel, grid=True)
