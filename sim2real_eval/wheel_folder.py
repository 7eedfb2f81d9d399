# SPDX-License-Identifier: Apache-2.0
"""The folder that `sim2real wheels` writes: a row per run, record and plot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim2real_eval.provenance import versions
from sim2real_eval.report.wheel_plot import save_wheel_plot
from sim2real_eval.result_folder import check_result_folder, fresh_folder
from sim2real_eval.tables import write_csv, write_json
from sim2real_eval.wheel_study import Driven, WheelStudy
from sim_sensors.variants import to_variant

__all__ = ['check_wheel_folder', 'wheel_record', 'write_wheels']

_MARK = 'wheels.json'
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
        'drives': [_of_drive(each) for each in study.driven],
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
        'notes': study.notes(),
    }


def check_wheel_folder(folder: str | Path, *, overwrite: bool) -> None:
    """Refuse a folder that may not be written, before the work; see `check_result_folder`."""
    check_result_folder(folder, _MARK, overwrite=overwrite)


def write_wheels(folder: str | Path, study: WheelStudy, *, overwrite: bool) -> Path:
    """Write the folder whole; return its path.

    Raises
    ------
    Sim2RealError
        When it exists and may not be replaced.
    """
    with fresh_folder(folder, _MARK, overwrite=overwrite) as fresh:
        write_csv(fresh / 'runs.csv', _COLUMNS, _rows(study))
        write_json(fresh / _MARK, wheel_record(study))
        save_wheel_plot(fresh / 'wheels.png', study)
    return Path(folder)


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
        'poses_taken': driven.taken,
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
                    run.taken, run.longest_blind,
                ])  # fmt: skip
    return rows
