# SPDX-License-Identifier: Apache-2.0
"""The folder that `sim2real attitude` writes: errors, record and plots."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sim2real_eval.attitude.errors import ANGLES, BOUND
from sim2real_eval.attitude.published import PUBLISHED_REAL, PUBLISHED_SIMULATED
from sim2real_eval.attitude.study import AttitudeStudy
from sim2real_eval.metrics.normalised_squares import Squares
from sim2real_eval.provenance import versions
from sim2real_eval.report.attitude_plot import save_attitude_plot
from sim2real_eval.report.consistency_plot import save_consistency
from sim2real_eval.result_folder import check_result_folder, fresh_folder
from sim2real_eval.tables import write_csv, write_json

__all__ = ['attitude_record', 'check_attitude_folder', 'write_attitude']

_MARK = 'attitude.json'
_COMPONENTS = 'xyzw'


def attitude_record(study: AttitudeStudy, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything but the series as a plain mapping, for JSON; rad.

    Parameters
    ----------
    study : AttitudeStudy
    inputs : mapping
        What was estimated, as plain values.
    """
    return {
        'versions': versions(),
        **inputs,
        'angles': list(ANGLES),
        'rmse_rad': study.overall.tolist(),
        'published_rmse_rad': {
            # [Ligorio2015] has no number of the whole rotation.
            'simulated': [*PUBLISHED_SIMULATED, None],
            'real': [*PUBLISHED_REAL, None],
        },
        'inside_99': dict(zip(_COMPONENTS, study.inside.mean(axis=0).tolist(), strict=True)),
        'consistency': [row.summary() for row in study.consistency()],
        'runs': [
            {'name': name, 'rmse_rad': rmse, 'inside_99': inside}
            for name, rmse, inside in zip(
                study.names, study.rmse.tolist(), study.inside.tolist(), strict=True
            )
        ],
    }


def check_attitude_folder(folder: str | Path, *, overwrite: bool) -> None:
    """Refuse a folder that may not be written, before the work; see `check_result_folder`."""
    check_result_folder(folder, _MARK, overwrite=overwrite)


def write_attitude(
    folder: str | Path, study: AttitudeStudy, record: Mapping[str, Any], *, overwrite: bool
) -> Path:
    """Write the folder whole; return its path.

    Raises
    ------
    Sim2RealError
        When it exists and may not be replaced.
    """
    first = study.first
    errors = first.errors
    columns = {
        'time_s': errors.time,
        **{f'{name}_rad': errors.angles[:, i] for i, name in enumerate(ANGLES)},
        **{f'q{name}': errors.quaternion[:, i] for i, name in enumerate(_COMPONENTS)},
        **{
            f'q{name}_bound_99': BOUND * errors.quaternion_std[:, i]
            for i, name in enumerate(_COMPONENTS)
        },
        'nees': errors.nees.squares,
    }
    number = len(study.names)
    # Sums over runs are stamped since their start already.
    start = int(errors.stamp_ns[0])
    nees = study.squares[0] if number > 1 else _since(start, errors.nees)
    nis = [_since(start, squares) for squares in first.estimate.innovations]
    with fresh_folder(folder, _MARK, overwrite=overwrite) as fresh:
        write_csv(fresh / 'errors.csv', tuple(columns), np.column_stack([*columns.values()]))
        write_json(fresh / _MARK, record)
        save_attitude_plot(fresh / 'errors.png', first, f'Attitude errors of {first.name}')
        several = f'NEES summed over {number} runs, NIS of {first.name}'
        save_consistency(
            fresh / 'consistency.png',
            [nees, *nis],
            title=several if number > 1 else first.name,
        )
    return Path(folder)


def _since(start: int, squares: Squares) -> Squares:
    return dataclasses.replace(squares, stamp_ns=squares.stamp_ns - start)
