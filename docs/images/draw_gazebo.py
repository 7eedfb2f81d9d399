# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Draw gazebo_*.png: drives in Gazebo, the delay of its twist, its gyroscope beside the model.

Run it in this folder: `python draw_gazebo.py RUNS`, where RUNS has logs of Gazebo in folders
line_1, circle_1, half_sine_1 (the car of sim2real_field.sdf), robot_1 (the URDF robot, on the
half-sine) and still_1 (an IMU of the numbers of gz_imu at 50 Hz on /gazebo/imu, one hour at rest).
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import allantools
import numpy as np
from matplotlib.axes import Axes

from sim2real_eval.characterization.recovered_parameters import simulated_standstill
from sim2real_eval.recording.gazebo_log import read_gazebo_log
from sim2real_eval.report.palette import BLUE, GREEN, VERMILION
from sim2real_eval.report.style import new_figure, save_png, tidy
from sim_sensors.core.measurements import FloatArray, ImuArray, OdometryArray
from sim_sensors.imu.imu import load_imu

TRUTH = '/ground_truth/odometry'
PATHS = {'line_1': 'line', 'circle_1': 'circle', 'half_sine_1': 'half-sine', 'robot_1': 'path'}
RATE, SEEDS = 50.0, 8


def main(runs: Path) -> None:
    """Write the three pictures beside this file."""
    with picture('gazebo_drives') as axes:
        draw_drives(axes, runs)
    with picture('gazebo_twist') as axes:
        draw_delay(axes, truth(runs / 'line_1'))
    with picture('gazebo_gyroscope') as axes:
        draw_gyroscope(axes, runs / 'still_1')


@contextlib.contextmanager
def picture(name: str) -> Iterator[Axes]:
    """Give axes to draw in, and write them."""
    figure = new_figure(6.0, 4.0)
    axes = figure.subplots()
    yield axes
    axes.legend(frameon=False, fontsize=8)
    tidy(axes, grid=True)
    save_png(figure, Path(__file__).with_name(f'{name}.png'))


def draw_drives(axes: Axes, runs: Path) -> None:
    """Draw where the car and the robot went."""
    colours = (BLUE, VERMILION, GREEN, '#882255')
    for (folder, label), colour in zip(PATHS.items(), colours, strict=True):
        place = truth(runs / folder).position
        style = '--' if label == 'path' else '-'
        axes.plot(place[:, 0], place[:, 1], style, color=colour, label=label)
    axes.set_aspect('equal')
    label_axes(axes, 'Driven in Gazebo', 'east, m', 'north, m')


def truth(folder: Path) -> OdometryArray:
    """Return the true odometry of a run."""
    found = read_gazebo_log(folder).messages[TRUTH]
    assert isinstance(found, OdometryArray)
    return found


def draw_delay(axes: Axes, odometry: OdometryArray) -> None:
    """Draw the published speed and that of the positions while the car starts."""
    time = odometry.stamp_ns * 1e-9
    moved = odometry.position[2:, 0] - odometry.position[:-2, 0]
    shown = (time[1:-1] > 1.95) & (time[1:-1] < 2.15)
    speed = (moved / (time[2:] - time[:-2]))[shown]
    axes.plot(time[1:-1][shown], speed, color=BLUE, label='from positions')
    twist = odometry.linear_velocity[1:-1, 0][shown]
    axes.plot(time[1:-1][shown], twist, color=VERMILION, label='twist of OdometryPublisher')
    label_axes(axes, 'The twist is 5 ms late', 'time, s', 'speed, m/s')


def draw_gyroscope(axes: Axes, folder: Path) -> None:
    """Draw Allan deviations of Gazebo's gyroscope and of gz_imu with other seeds."""
    imu = read_gazebo_log(folder).messages['/gazebo/imu']
    assert isinstance(imu, ImuArray)
    for name, colour in (('gz_imu', GREEN), ('gz_imu:as_upstream', BLUE)):
        model = dataclasses.replace(load_imu(name), rate=RATE)
        curves = []
        for seed in range(SEEDS):
            values = simulated_standstill(model, len(imu), seed=seed)[:, :3]
            taus, deviation = allan(values)
            curves.append(deviation)
        low, high = np.min(curves, axis=0), np.max(curves, axis=0)
        label = f'{name}, {SEEDS} seeds'
        axes.fill_between(taus, low, high, color=colour, alpha=0.3, label=label, linewidth=0)
    taus, deviation = allan(imu.angular_velocity)
    axes.loglog(taus, deviation, color='black', label='Gazebo')
    label_axes(axes, 'Gyroscope, one hour at rest', 'averaging time, s', 'Allan deviation, deg/s')


def allan(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return averaging times, s, and the deviation of three axes together, deg/s."""
    taus = np.geomspace(1.0 / RATE, 600.0, 25)
    found = [allantools.oadev(one, rate=RATE, data_type='freq', taus=taus) for one in values.T]
    deviation = np.sqrt(np.mean([one[1] ** 2 for one in found], axis=0))
    return found[0][0], np.asarray(deviation * math.degrees(1.0))


def label_axes(axes: Axes, title: str, across: str, up: str) -> None:
    """Name a panel and its axes."""
    axes.set_title(title, loc='left', fontsize=10)
    axes.set_xlabel(across)
    axes.set_ylabel(up)


if __name__ == '__main__':
    main(Path(sys.argv[1]))
