# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Samples per second of the simulated sensors, as one array and sample by sample."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import parse, seconds, spread, table, write

from sim_sensors.gps import gps
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu import imu
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.scenarios import FigureEight

IMUS = ('ideal', 'chrono', 'chrono_ahrs', 'airsim')
RECEIVERS = ('baseline', 'ch_gauss', 'ch_rw', 'airsim', 'ch_rw_airsim')
STEPPED = 2_000


def measure(model: Any, kind: Any, repetitions: int) -> dict[str, Any]:
    """Rates of `simulate`, of `measure` on motion that is there already, and of single steps."""
    duration = 1000.0 if kind is imu else 10_000.0
    motion = FigureEight(duration=duration)
    n = len(kind.simulate(model, motion, seed=1, run='benchmark').stamp_ns)
    truth = motion.at(np.arange(n) / model.rate)
    singles = [motion.at(truth.time[k : k + 1]) for k in range(STEPPED)]

    def step_by_step() -> None:
        sensor = model.start(1, 'benchmark')
        for single in singles:
            sensor.measure(single)

    rates: dict[str, list[float]] = {'simulate': [], 'measure': [], 'step': []}
    for _ in range(repetitions):
        whole = seconds(lambda: kind.simulate(model, motion, seed=1, run='benchmark'))
        rates['simulate'].append(n / whole)
        rates['measure'].append(n / seconds(lambda: model.start(1, 'benchmark').measure(truth)))
        rates['step'].append(STEPPED / seconds(step_by_step))
    return {name: spread(values) for name, values in rates.items()}


def main() -> None:
    options = parse(__doc__ or '', repetitions=5)
    result = {}
    for kind, load, names in ((imu, load_imu, IMUS), (gps, load_gps, RECEIVERS)):
        label = 'imu' if kind is imu else 'gps'
        for name in names:
            result[f'{label} {name}'] = measure(load(name), kind, options.repetitions)
    table(
        ('samples/s', 'simulate', 'measure only', 'sample by sample'),
        [
            (name, *(f'{found[way]["median"]:,.0f}' for way in ('simulate', 'measure', 'step')))
            for name, found in result.items()
        ],
    )
    write(options.out, 'sensors_speed', {'samples_per_second': result})


if __name__ == '__main__':
    main()
