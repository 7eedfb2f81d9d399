# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A wheel study: table, plot and result folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from sim2real_eval.benches.wheels import Driven, WheelStudy
from sim2real_eval.common.findings import to_records
from sim2real_eval.common.results import fresh_folder, versions, write_csv, write_json
from sim_sensors.core.parameters import to_variant
from . import palette, style
from .console import add_numbers, plain_table


def wheel_table(study: WheelStudy) -> Table:
    """Return a table with a row per variant.

    The columns are the drift of the odometry alone and with the camera, NEES, and VEPD by judge.
    """
    runs = len(study.variants[0].runs)
    table = plain_table(
        f'{study.title}: RMS pose error over {runs} runs, wheels alone and with the camera', gap=1
    )
    table.add_column('wheels')
    add_numbers(table, 'alone\nm', 'with\nm', 'at end,\nalone m', 'with\nm')
    add_numbers(table, 'heading\nalone °', 'with\n°', 'NEES\n(2)', 'VEPD\nalone', 'VEPD\nwith')
    for variant in study.variants:
        ways = (variant.odometry, variant.fused)
        table.add_row(
            variant.label,
            *(f'{_rms([drift.rms for drift in drifts]):.3f}' for drifts in ways),
            *(f'{_rms([float(drift.error[-1]) for drift in drifts]):.3f}' for drifts in ways),
            *(
                f'{np.degrees(_rms([drift.heading_rms for drift in drifts])):.2f}'
                for drifts in ways
            ),
            f'{np.mean(variant.nees):.1f}',
            *(f'{value:.4f}' for value in variant.vepd.values()),
        )
    return table


def _rms(values: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def wheel_figure(study: WheelStudy) -> Figure:
    """Return a column per variant: the first run from above, and the errors of all runs below."""
    count = len(study.variants)
    figure = style.new_figure(max(2.6 * count, 5.2) + 0.6, 5.9)
    panels = figure.subplots(2, count, squeeze=False, sharey='row')
    motion = study.driven[0].drive.motion
    time = np.linspace(motion.start, motion.end, 2000)
    true = motion.at(time).position
    for ways, errors, variant in zip(*panels, study.variants, strict=True):
        ways.plot(true[:, 0], true[:, 1], color=palette.REAL_COLOUR, linewidth=2.5, alpha=0.5)
        for drifts, colour in (
            (variant.odometry, palette.VERMILION),
            (variant.fused, palette.BLUE),
        ):
            place = drifts[0].position
            ways.plot(place[:, 0], place[:, 1], color=colour, linewidth=0.9)
            for drift in drifts:
                error = np.maximum(drift.error, 1e-3)
                errors.semilogy(drift.time, error, color=colour, linewidth=0.6, alpha=0.35)
        ways.set_aspect('equal', adjustable='datalim')
        ways.set_title(variant.label, fontsize=9)
        ways.set_xlabel('x [m]', fontsize=8)
        errors.set_xlabel('time [s]', fontsize=8)
        for axes in (ways, errors):
            style.tidy(axes, grid=True)
    first = 'first run' if len(study.driven) == 1 else f'first run of {study.driven[0].drive.name}'
    panels[0, 0].set_ylabel(f'y [m], {first}', fontsize=8)
    panels[1, 0].set_ylabel('position error [m], all runs', fontsize=8)
    handles = [
        style.legend_line('true', palette.REAL_COLOUR, linewidth=2.5, alpha=0.5),
        style.legend_line('wheels alone', palette.VERMILION),
        style.legend_line('wheels and camera', palette.BLUE),
    ]
    title = f'{study.title}, {len(study.variants[0].runs)} runs of each'
    style.figure_legend(figure, handles, 3, title)
    return figure


MARK = 'wheels.json'
"""File that every result of this kind holds."""
_COLUMNS = (
    'variant', 'drive', 'run', 'alone_rms_m', 'alone_end_m', 'alone_heading_rms_rad',
    'with_rms_m', 'with_end_m', 'with_heading_rms_rad', 'with_nees', 'poses', 'poses_taken',
    'longest_blind_s',
)  # fmt: skip


def wheel_record(study: WheelStudy) -> dict[str, Any]:
    """Return everything but the series as a plain mapping, for JSON; SI units."""
    setup = study.setup
    rows = _rows(study)
    return {
        'versions': versions(),
        'drives': [_of_drive(driven) for driven in study.driven],
        'seed': setup.seed,
        'runs': setup.runs,
        'vision': to_variant(setup.vision),
        'variants': [
            {
                'label': variant.label,
                'model': to_variant(setup.variants[variant.label]),
                'vepd': dict(variant.vepd),
                'runs': [
                    dict(zip(_COLUMNS[1:], row[1:], strict=True))
                    for row in rows
                    if row[0] == variant.label
                ],
            }
            for variant in study.variants
        ],
        'notes': to_records(study.notes()),
    }


def write_wheels(folder: str | Path, study: WheelStudy, *, overwrite: bool) -> None:
    """Write the complete folder or nothing.

    An existing folder is refused unless it may be replaced.
    """
    with fresh_folder(folder, MARK, overwrite=overwrite) as fresh:
        write_csv(fresh / 'runs.csv', _COLUMNS, _rows(study))
        write_json(fresh / MARK, wheel_record(study))
        style.save_png(wheel_figure(study), fresh / 'wheels.png')


def _of_drive(driven: Driven) -> dict[str, Any]:
    drive = driven.drive
    return {
        'name': drive.name,
        'path': drive.recording.path,
        'duration_s': drive.duration,
        'way_m': drive.way,
        'height_change_m': drive.height,
        'tilt_rad': drive.tilt,
        'planar_error_rms_m': drive.planar_error,
        'frames': driven.frames,
        'frames_with_tags': driven.in_view,
        'poses': driven.poses,
        'poses_taken': driven.fused_poses,
        'longest_blind_s': driven.longest_blind,
    }


def _rows(study: WheelStudy) -> list[list[Any]]:
    rows: list[list[Any]] = []
    for variant in study.variants:
        for driven in study.driven:
            for number, run in enumerate(driven.runs[variant.label], 1):
                parts = [
                    value
                    for drift in (run.odometry, run.fused)
                    for value in (drift.rms, float(drift.error[-1]), drift.heading_rms)
                ]
                rows.append([
                    variant.label, driven.drive.name, number, *parts, run.nees, run.poses,
                    run.fused_poses, run.longest_blind,
                ])  # fmt: skip
    return rows
