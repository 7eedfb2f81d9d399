# SPDX-License-Identifier: Apache-2.0
"""The folder that `sim2real follow` leaves behind: tables, series, plots and recordings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sim2real_eval.following import FollowedRun, driven_recording, pooled_statistics
from sim2real_eval.provenance import versions
from sim2real_eval.recording import Recording, write_recording
from sim2real_eval.recording.writing import Storage
from sim2real_eval.report.following_plot import save_following
from sim2real_eval.result_folder import fresh_folder
from sim2real_eval.tables import Field, write_csv, write_json
from sim2real_eval.twin import Twin
from sim_sensors.following import FollowSettings
from sim_sensors.tracking_error import ErrorStatistics
from sim_sensors.world import World

__all__ = ['ERROR_COLUMNS', 'MARK', 'following_record', 'write_following']

MARK = 'follow.json'
"""File that every result of this kind holds."""

ERROR_COLUMNS = (
    'run',
    'controller',
    *(
        f'{name}_{kind}_{"deg" if name == "yaw" else "m"}'
        for name in ('distance', 'across', 'along', 'yaw')
        for kind in ('mean', 'rms', 'max')
    ),
)
_SERIES = ('t', 'ref_x', 'ref_y', 'ref_theta', 'x', 'y', 'theta', 'speed', 'yaw_rate')
_SERIES_ERRORS = ('along', 'across', 'distance', 'yaw_error')


def following_record(
    runs: Sequence[FollowedRun], settings: FollowSettings, *, seed: int, notes: Sequence[str]
) -> dict[str, Any]:
    """Return everything that `follow` found, and what repeats it, as plain values.

    Angles are in degrees; `pooled` is over all runs together.
    """
    return {
        'format': 1,
        'versions': versions(),
        'seed': seed,
        'settings': settings.to_mapping(),
        'pooled': _plain(pooled_statistics(runs)),
        'runs': [
            {
                'run': run.name,
                'waypoints': len(run.reference.waypoints),
                'duration': run.reference.end,
                'origin': run.origin.to_mapping(),
                'controllers': _plain(run.statistics()),
            }
            for run in runs
        ],
        'notes': list(notes),
    }


def write_following(
    folder: str | Path,
    runs: Sequence[FollowedRun],
    record: Mapping[str, Any],
    twin: Twin,
    world: World | None = None,
    *,
    seed: int,
    scenarios: Mapping[str, str],
    storage: Storage = 'mcap',
    overwrite: bool = False,
    advance: Callable[[], None] = lambda: None,
) -> dict[str, list[Recording]]:
    """Write errors.csv, follow.json, and per run waypoints, series, plot and recordings.

    All or nothing.

    Parameters
    ----------
    folder : str or Path
    runs : sequence of FollowedRun
    record : mapping
        From `following_record`.
    twin : Twin
        Sensors of the recordings.
    seed : int
    scenarios : mapping
        Run to label of the scenario.
    storage : str
        Of the recordings.
    overwrite : bool
        Replace an older result of this kind.
    advance : callable
        Called after each run.

    Returns
    -------
    dict
        Controller to its recordings, in the order of the runs.

    Raises
    ------
    Sim2RealError
        When the folder exists and may not be replaced, or cannot be made.
    """
    recordings: dict[str, list[Recording]] = {}
    with fresh_folder(folder, MARK, overwrite=overwrite) as fresh:
        write_csv(fresh / 'errors.csv', ERROR_COLUMNS, _rows(runs))
        write_json(fresh / MARK, record)
        for run in runs:
            _write_run(fresh, run)
            for controller in run.drives:
                made = driven_recording(
                    run, controller, twin, world, seed=seed, scenario=scenarios[run.name]
                )
                write_recording(made, fresh / f'{run.name}_{controller}', storage=storage)
                recordings.setdefault(controller, []).append(made)
            advance()
    return recordings


def _write_run(folder: Path, run: FollowedRun) -> None:
    w = run.reference.waypoints
    table = zip(w.time, w.x, w.y, w.heading, strict=True)
    write_csv(folder / 'waypoints' / f'{run.name}.csv', ('t', 'x', 'y', 'theta'), table)
    for controller, drive in run.drives.items():
        wanted, errors = run.reference.poses(drive.time), drive.errors
        columns = [drive.time, *wanted.T, *drive.poses.T, drive.speed, drive.yaw_rate]
        columns += [errors.along, errors.across, errors.distance, errors.yaw]
        write_csv(
            folder / 'series' / f'{run.name}_{controller}.csv',
            _SERIES + _SERIES_ERRORS,
            zip(*columns, strict=True),
        )
    save_following(folder / f'{run.name}.png', run)


def _rows(runs: Sequence[FollowedRun]) -> list[list[Field]]:
    rows: list[list[Field]] = []
    for run in runs:
        for controller, found in _plain(run.statistics()).items():
            row: list[Field] = [run.name, controller]
            for name in ('distance', 'across', 'along', 'yaw'):
                row += [found[name][kind] for kind in ('mean', 'rms', 'max')]
            rows.append(row)
    return rows


def _plain(statistics: Mapping[str, Mapping[str, ErrorStatistics]]) -> dict[str, Any]:
    """Return statistics as plain values, yaw in degrees."""
    result: dict[str, Any] = {}
    for controller, found in statistics.items():
        result[controller] = {}
        for name, each in found.items():
            scale = 180.0 / math.pi if name == 'yaw' else 1.0
            values = {'mean': each.mean, 'rms': each.rms, 'max': each.maximum}
            result[controller][name] = {key: scale * value for key, value in values.items()}
    return result
