# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Draw gps_catalogue.png: how the errors of the GPS presets change, and a receiver whose fix does.

Run it in this folder, from an environment with the package: `python draw_gps_catalogue.py`. It
takes ten seconds.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from sim2real_eval.report.style import new_figure, save_png, tidy
from sim_sensors.core.measurements import FloatArray
from sim_sensors.gps.events import FIX_STATES
from sim_sensors.gps.gps import GpsMeasurement, GpsModel, load_gps
from sim_sensors.motion.scenarios import Standstill

SECONDS = 7200.0
RATES = (2.5, 10.0)
PRESETS = {
    'hector_gps': '#999933',
    'px4_classic_gps': '#CC79A7',
    'gnss_ins_sim_gps': '#7f7f7f',
    'chrono_default': '#882255',
    'gnss_urban': '#000000',
    'gz_navsat': '#D55E00',
    'carla_gnss': '#E69F00',
    'gazebo_classic_gps': '#56B4E9',
    'ch_rw': '#009E73',
    'ch_gauss': '#AA4499',
    'px4_sensor_gps_sim': '#332288',
    'zed_f9p_rtk': '#0072B2',
}
# Of single, sbas, float and rtk.
STATE_COLOURS = {1: '#882255', 2: '#D55E00', 3: '#E69F00', 4: '#0072B2'}


def main() -> None:
    """Write gps_catalogue.png beside this file."""
    figure = new_figure(10.0, 8.0)
    upper, lower = figure.subplots(2, 1)
    for name, colour in PRESETS.items():
        for rate in RATES:
            # Outages are left out: a position that is repeated does not change.
            model = GpsModel(noise=load_gps(name).noise, rate=rate)
            draw_change(upper, at_rest(model).position_error, rate, colour, name)
    upper.set_title(
        'Change of the position error within a time: 10 Hz (lines), 2.5 Hz (dots)',
        loc='left',
        fontsize=10,
    )
    upper.set_xlabel('time between two fixes, s')
    upper.set_ylabel('horizontal change / sqrt(2), m')
    upper.legend(loc='center left', bbox_to_anchor=(1.0, 0.5), frameon=False)
    draw_states(lower, dataclasses.replace(load_gps('zed_f9p_changing'), rate=RATES[-1]))
    for axes in (upper, lower):
        axes.grid(which='major', color='0.9')
        tidy(axes)
    save_png(figure, Path(__file__).with_name('gps_catalogue.png'))


def at_rest(model: GpsModel, seconds: float = SECONDS) -> GpsMeasurement:
    """Return the fixes of a receiver at rest."""
    times = np.arange(round(seconds * model.rate)) / model.rate
    return model.start(2, 'figure').measure(Standstill(duration=seconds).at(times))


def draw_change(axes: Axes, error: FloatArray, rate: float, colour: str, name: str) -> None:
    """Add the root mean square of the change of a horizontal error, over sqrt(2)."""
    is_line = rate == RATES[-1]
    longest = len(error) // 8
    lags = np.unique(np.geomspace(1, longest, 40 if is_line else 16).astype(int))
    change = [np.sqrt(np.mean((error[lag:, :2] - error[:-lag, :2]) ** 2) / 2.0) for lag in lags]
    style = '-' if is_line else 'o'
    axes.loglog(
        lags / rate, change, style, color=colour, lw=1.3, ms=2.5, label=name if is_line else None
    )


def draw_states(axes: Axes, model: GpsModel) -> None:
    """Add the horizontal error of a receiver whose fix changes, and what it states."""
    seconds = 900.0
    fixes = at_rest(model, seconds)
    times = np.arange(len(fixes.status)) / model.rate
    states = model.states.start(2, 'figure', 'gps').advance(times)
    error = np.hypot(fixes.position_error[:, 0], fixes.position_error[:, 1])
    for state, colour in STATE_COLOURS.items():
        chosen = (states == state) & (fixes.status >= 0)
        axes.semilogy(
            times[chosen], error[chosen], '.', color=colour, ms=1.5, label=FIX_STATES[state]
        )
    covariance = fixes.position_covariance
    stated = np.sqrt(covariance[:, 0, 0] + covariance[:, 1, 1])
    axes.semilogy(times, np.where(stated > 0.0, stated, np.nan), color='0.2', lw=1, label='stated')
    for start in np.flatnonzero(np.diff((fixes.status < 0).astype(int), prepend=0) == 1):
        end = start + int(np.argmax(fixes.status[start:] >= 0))
        axes.axvspan(times[start], times[end], color='0.85', lw=0)
    axes.set_title(
        'zed_f9p_changing at rest: error by kind of fix; grey: no fix', loc='left', fontsize=10
    )
    axes.set_xlabel('time, s')
    axes.set_ylabel('horizontal error, m')
    axes.legend(loc='center left', bbox_to_anchor=(1.0, 0.5), frameon=False, markerscale=5)


if __name__ == '__main__':
    main()
