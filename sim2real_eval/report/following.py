# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Table, plots and result folder of path-following runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from sim2real_eval.benches.following import FollowedRun, driven_recording, pooled_statistics
from sim2real_eval.common.findings import Finding, to_records
from sim2real_eval.common.results import Field, fresh_folder, versions, write_csv, write_json
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import Storage, write_recording
from sim2real_eval.simulation.twin import Twin
from sim_sensors.following.follower import FollowSettings
from sim_sensors.following.tracking import ErrorStatistics
from sim_sensors.world.world import World
from . import palette, style
from .console import add_numbers, add_words, plain_table


def following_console_table(
    statistics: Mapping[str, Mapping[str, ErrorStatistics]], *, title: str
) -> Table:
    """Return a table with a row per controller: distance, across, along [m], and yaw [deg].

    `statistics` has the statistics of each error by controller, as from `pooled_statistics`.
    """
    table = plain_table(title)
    add_words(table, 'controller')
    add_numbers(table, 'distance\nmean\nm', '\nrms\nm', '\nmax\nm', 'across\nrms\nm')
    add_numbers(table, 'along\nrms\nm', 'yaw\nmean\ndeg', '\nrms\ndeg', '\nmax\ndeg')
    for controller, errors in statistics.items():
        distance, yaw = errors['distance'], errors['yaw']
        metres = (distance.mean, distance.rms, distance.maximum)
        components = (errors['across'].rms, errors['along'].rms)
        degrees = (math.degrees(value) for value in (yaw.mean, yaw.rms, yaw.maximum))
        cells = [f'{value:.3f}' for value in (*metres, *components)]
        table.add_row(controller, *cells, *(f'{value:.2f}' for value in degrees))
    return table


_LABELS = {
    'distance': 'distance [m]',
    'across': 'to the left [m]',
    'along': 'ahead [m]',
    'yaw': 'yaw error [°]',
}
# Smallest plotted distance, m: 0 has no logarithm, and smaller distances are rounding errors.
_MIN_DISTANCE = 1e-9


def following_figure(run: FollowedRun) -> Figure:
    """Draw the reference and the paths on the left, and four errors over time on the right.

    The errors are relative to the reference, the interpolated path. The plan shows only the
    surroundings of the reference, so paths of controllers that diverge are cut off. The distance
    over time is on a logarithmic axis, which begins at a tenth of the smallest rms distance.
    """
    figure = style.new_figure(11.0, 6.2)
    plan, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(1.0, 1.15))[0]
    axes = plan.subplots()
    style.tidy(axes, grid=True)
    x, y, _ = run.reference.poses(next(iter(run.drives.values())).time).T
    axes.plot(x, y, color=palette.TRUTH_COLOUR, linewidth=1.0, label='reference', zorder=5)
    axes.plot(x[0], y[0], 'o', color=palette.TRUTH_COLOUR, markersize=4, zorder=6)
    panels = right.subplots(len(_LABELS), 1, sharex=True)
    colours = palette.model_colours(run.drives)
    distances = [errors['distance'].rms for errors in run.statistics().values()]
    least = max(0.1 * min(distances), _MIN_DISTANCE)
    for controller, drive in run.drives.items():
        controller_style = {'color': colours[controller], 'linewidth': 1.2}
        axes.plot(drive.poses[:, 0], drive.poses[:, 1], label=controller, **controller_style)
        for panel, name in zip(panels, _LABELS, strict=True):
            values = getattr(drive.errors, name)
            plotted = np.degrees(values) if name == 'yaw' else values
            panel.plot(drive.time, plotted, **controller_style)
    for panel, label in zip(panels, _LABELS.values(), strict=True):
        style.tidy(panel, grid=True)
        panel.set_ylabel(label, fontsize=8)
    panels[0].set_yscale('log')
    panels[0].set_ylim(bottom=least)
    style.mark_log(panels[0].yaxis)
    panels[-1].set_xlabel('time since the first waypoint [s]', fontsize=9)
    margin = 0.15 * max(float(np.ptp(x)), float(np.ptp(y)), 1.0)
    axes.set_xlim(float(x.min()) - margin, float(x.max()) + margin)
    axes.set_ylim(float(y.min()) - margin, float(y.max()) + margin)
    axes.set_aspect('equal', adjustable='box')
    axes.set_anchor('N')
    axes.set_xlabel('x [m]', fontsize=9)
    axes.set_ylabel('y [m]', fontsize=9)
    title = f'{run.name}: reference (dot: start) and simulated robot'
    style.figure_legend(plan, axes.get_legend_handles_labels()[0], 3, title)
    right.suptitle('errors of the robot against the reference', fontsize=10)
    return figure


def wheel_figure(run: FollowedRun) -> Figure:
    """Draw the rates of both wheels and their difference over time, a row per controller.

    Each panel shows the rates that lead from waypoint to waypoint, the commands and the rates of
    the robot.
    """
    figure = style.new_figure(12.0, 1.7 * len(run.drives) + 1.3)
    panels = figure.subplots(len(run.drives), 3, squeeze=False, sharex=True, sharey='col')
    colours = palette.model_colours(run.drives)
    edges = run.reference.waypoints.time
    reference_rates = run.reference.wheel_rates(run.robot)[:-1]
    for row, (controller, drive) in zip(panels, run.drives.items(), strict=True):
        for panel, (name, weights) in zip(row, _WHEELS.items(), strict=True):
            robot_style = {'color': colours[controller], 'linewidth': 1.8}
            panel.plot(drive.time, drive.wheel_rates @ weights, **robot_style)
            command_style = {'color': palette.UNKNOWN, 'linewidth': 0.8, 'where': 'post'}
            panel.step(drive.time, drive.wheel_commands @ weights, **command_style)
            reference_style = {'color': palette.TRUTH_COLOUR, 'linewidth': 0.8, 'linestyle': ':'}
            panel.stairs(reference_rates @ weights, edges, baseline=None, **reference_style)
            panel.set_title(f'{controller}: {name}', fontsize=9)
            style.tidy(panel, grid=True)
    handles = [
        style.legend_line('needed between waypoints', palette.TRUTH_COLOUR, linestyle=':'),
        style.legend_line('commanded', palette.UNKNOWN, linewidth=0.8),
        *(style.legend_line(f'driven, {name}', colours[name]) for name in run.drives),
    ]
    style.figure_legend(figure, handles, 4, f'{run.name}: rates of the wheels')
    figure.supxlabel('time since the first waypoint [s]', fontsize=9)
    figure.supylabel('rate [rad/s]', fontsize=9)
    return figure


_WHEELS = {'left': [1.0, 0.0], 'right': [0.0, 1.0], 'right minus left': [-1.0, 1.0]}

MARK = 'follow.json'
"""File by which a folder is recognised as a result of `follow`."""

_ERRORS = ('distance', 'across', 'along', 'yaw')
_STATISTICS = ('mean', 'rms', 'max')
ERROR_COLUMNS = (
    'run',
    'controller',
    *(
        f'{name}_{statistic}_{"deg" if name == "yaw" else "m"}'
        for name in _ERRORS
        for statistic in _STATISTICS
    ),
)
WAYPOINT_COLUMNS = ('t', 'x', 'y', 'theta', 'left_rate', 'right_rate')
_SERIES_COLUMNS = (
    't', 'ref_x', 'ref_y', 'ref_theta', 'x', 'y', 'theta', 'speed', 'yaw_rate',
    'along', 'across', 'distance', 'yaw_error',
    'left_rate', 'right_rate', 'left_command', 'right_command',
)  # fmt: skip


def following_record(
    runs: Sequence[FollowedRun], settings: FollowSettings, *, seed: int, notes: Sequence[Finding]
) -> dict[str, Any]:
    """Return the result of `follow` and everything needed to repeat it, as JSON values.

    Angles are in degrees; `pooled` is over all runs together.
    """
    return {
        'format': 1,
        'versions': versions(),
        'seed': seed,
        'settings': settings.to_mapping(),
        'pooled': _json_values(pooled_statistics(runs)),
        'runs': [
            {
                'run': run.name,
                'waypoints': len(run.reference.waypoints),
                'duration': run.reference.end,
                'origin': run.origin.to_mapping(),
                'controllers': _json_values(run.statistics()),
            }
            for run in runs
        ],
        'notes': to_records(notes),
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
    beside: Callable[[Path, Mapping[str, Sequence[Recording]]], None] = lambda folder, made: None,
) -> None:
    """Write the result folder: errors.csv, follow.json, and the files of each run.

    The files of a run are waypoints, series, plot and recordings. The folder is written completely
    or not at all; with `overwrite` it replaces an older result of `follow`. `record` is from
    `following_record`. The recordings have the sensors of `twin` and, by run, the labels of
    `scenarios`. `advance` is called after each run. At the end, `beside` gets the new folder and
    the recordings by controller, in the order of the runs; it may write further files.
    """
    recordings: dict[str, list[Recording]] = {}
    with fresh_folder(folder, MARK, overwrite=overwrite) as fresh:
        write_csv(fresh / 'errors.csv', ERROR_COLUMNS, _rows(runs))
        write_json(fresh / MARK, record)
        for run in runs:
            _write_run(fresh, run)
            for controller in run.drives:
                recording = driven_recording(
                    run, controller, twin, world, seed=seed, scenario=scenarios[run.name]
                )
                write_recording(recording, fresh / f'{run.name}_{controller}', storage=storage)
                recordings.setdefault(controller, []).append(recording)
            advance()
        beside(fresh, recordings)


def _write_run(folder: Path, run: FollowedRun) -> None:
    waypoints = run.reference.waypoints
    rates = run.reference.wheel_rates(run.robot)
    table = zip(waypoints.time, waypoints.x, waypoints.y, waypoints.heading, *rates.T, strict=True)
    write_csv(folder / 'waypoints' / f'{run.name}.csv', WAYPOINT_COLUMNS, table)
    for controller, drive in run.drives.items():
        reference, errors = run.reference.poses(drive.time), drive.errors
        columns = [drive.time, *reference.T, *drive.poses.T, drive.speed, drive.yaw_rate]
        columns += [errors.along, errors.across, errors.distance, errors.yaw]
        columns += [*drive.wheel_rates.T, *drive.wheel_commands.T]
        write_csv(
            folder / 'series' / f'{run.name}_{controller}.csv',
            _SERIES_COLUMNS,
            zip(*columns, strict=True),
        )
    style.save_png(following_figure(run), folder / f'{run.name}.png')
    style.save_png(wheel_figure(run), folder / f'{run.name}_wheels.png')


def _rows(runs: Sequence[FollowedRun]) -> list[list[Field]]:
    return [
        [
            run.name,
            controller,
            *(errors[name][statistic] for name in _ERRORS for statistic in _STATISTICS),
        ]
        for run in runs
        for controller, errors in _json_values(run.statistics()).items()
    ]


def _json_values(statistics: Mapping[str, Mapping[str, ErrorStatistics]]) -> dict[str, Any]:
    """Return statistics as JSON values, yaw in degrees."""
    result: dict[str, Any] = {}
    for controller, errors in statistics.items():
        for name, error_statistics in errors.items():
            scale = 180.0 / math.pi if name == 'yaw' else 1.0
            values = (
                scale * value
                for value in (
                    error_statistics.mean,
                    error_statistics.rms,
                    error_statistics.maximum,
                )
            )
            result.setdefault(controller, {})[name] = dict(zip(_STATISTICS, values, strict=True))
    return result
