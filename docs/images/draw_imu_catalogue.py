# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Draw imu_catalogue.png: Allan deviations of the IMU presets, at rest, at two rates.

Run it in this folder, from an environment with the package and allantools:
`python draw_imu_catalogue.py`. It takes half a minute.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import allantools
import numpy as np
from matplotlib.axes import Axes

from sim2real_eval.report.style import new_figure, save_png, tidy
from sim_sensors.core.measurements import FloatArray
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.scenarios import Standstill

SECONDS = 3600.0
RATES = (25.0, 100.0)
# Neither those that share their errors with another nor those that have none.
PRESETS = {
    'chrono': '#882255',
    'gz_imu': '#D55E00',
    'carla_imu': '#E69F00',
    'hector_imu': '#999933',
    'px4_iim42653': '#CC79A7',
    'rotors_adis16448': '#332288',
    'adis16448': '#0072B2',
    'kalibr': '#56B4E9',
    'airsim': '#009E73',
    'bno055_thesis': '#000000',
    'gnss_ins_sim_high': '#7f7f7f',
}


def main() -> None:
    """Write imu_catalogue.png beside this file."""
    figure = new_figure(10.0, 5.2)
    panels = figure.subplots(1, 2)
    for name, colour in PRESETS.items():
        for rate in RATES:
            model = dataclasses.replace(load_imu(name), rate=rate)
            times = np.arange(round(SECONDS * rate)) / rate
            measured = model.start(1, 'figure').measure(Standstill(duration=SECONDS).at(times))
            values = measured.angular_velocity[:, 0], measured.linear_acceleration[:, 0]
            for axes, signal, scale in zip(panels, values, (math.degrees(1.0), 1.0), strict=True):
                label = name if rate == RATES[-1] else None
                draw(axes, signal * scale, rate, colour, label)
    for axes, title, unit in zip(
        panels, ('Gyroscopes', 'Accelerometers'), ('deg/s', 'm/s²'), strict=True
    ):
        axes.set_title(f'{title}: x axis, one hour at rest', loc='left', fontsize=10)
        axes.set_xlabel('averaging time, s')
        axes.set_ylabel(f'Allan deviation, {unit}')
        axes.grid(which='major', color='0.9')
        tidy(axes)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc='outside right center', frameon=False
    )
    figure.suptitle('Presets at 100 Hz (lines) and at 25 Hz (dots)', x=0.01, ha='left')
    save_png(figure, Path(__file__).with_name('imu_catalogue.png'))


def draw(axes: Axes, signal: FloatArray, rate: float, colour: str, label: str | None) -> None:
    """Add the Allan deviation of one signal, where there is any."""
    if not np.ptp(signal):
        if label is not None:
            axes.plot([], [], color=colour, label=label)
        return
    taus = np.geomspace(1.0 / rate, SECONDS / 8.0, 30 if label else 18)
    taus, deviations, _, _ = allantools.oadev(signal, rate=rate, data_type='freq', taus=taus)
    style = '-' if label else 'o'
    axes.loglog(taus, deviations, style, color=colour, label=label, lw=1.3, ms=2.5)


if __name__ == '__main__':
    main()
