# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Time of a study of the paper's size: 30 drives x 20 s, 5 GPS models and a real receiver.

10 drives each of line, circle and half-sine; Chrono's IMU at 100 Hz and a GPS at 10 Hz; the judge
as released with the paper, in one thread and in two; the score of every run. For the real
recordings stand those of a receiver without noise, which take the judge as long.

Then the command `sim2real study` on 30 bags in two processes, from the first import to the last
file: sensors, judge, metrics, statistics with 10 000 resamples, page.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import parse, seconds, spread, table, write

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.robot_localization.configuration import FilterConfig, NavsatConfig
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.metrics.scores import RunScore, score_run
from sim2real_eval.metrics.series import VelocitySeries, speed
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.study.study_file import StudyFile
from sim_sensors.core.shipped import config_path
from sim_sensors.gps import gps
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu import imu
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.paths import DRIVES, drive
from sim_sensors.motion.trajectory import Trajectory

MODELS = ('baseline', 'ch_gauss', 'ch_rw', 'airsim', 'ch_gauss_airsim', 'ch_rw_airsim')
RUNS = 10
SEED = 1
TRUTH_RATE = 5.0
T = TypeVar('T')


class Stages:
    """Seconds spent per stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def time(self, stage: str, work: Callable[[], T]) -> T:
        found: list[T] = []
        self.seconds[stage] += seconds(lambda: found.append(work()))
        return found[0]


def score(run: JudgedRun, truth: Trajectory) -> RunScore:
    velocity = speed(run.linear_velocity, run.orientation)
    step = round(1.0 / (TRUTH_RATE * (truth.time[1] - truth.time[0])))
    horizontal = np.hypot(truth.velocity[::step, 0], truth.velocity[::step, 1])
    return score_run(VelocitySeries(run.stamp_ns * 1e-9, velocity, truth.time[::step], horizontal))


def study(config: FilterConfig, navsat: NavsatConfig) -> dict[str, float]:
    stages = Stages()
    chrono = load_imu('chrono')
    receivers = {name: load_gps(name) for name in MODELS}
    recordings, truths = [], []
    for scenario in DRIVES:
        for number in range(RUNS):
            label = f'{scenario}_{number}'
            truth = stages.time('drive', lambda s=scenario, r=label: drive(s, seed=SEED, run=r))
            inertial = stages.time(
                'sensors', lambda t=truth, r=label: imu.simulate(chrono, t, seed=SEED, run=r)
            )
            for receiver in receivers.values():
                fixes = stages.time(
                    'sensors',
                    lambda m=receiver, t=truth, r=label: gps.simulate(m, t, seed=SEED, run=r),
                )
                run = Recording(
                    label,
                    scenario,
                    'memory',
                    {'/imu/data': inertial, '/gps/fix': fixes},
                    {'imu': '/imu/data', 'gps': '/gps/fix'},
                )
                recordings.append(run)
                truths.append(truth)
    judged = stages.time('judge', lambda: [judge(run, config, navsat) for run in recordings])
    for one, truth in zip(judged, truths, strict=True):
        stages.time('score', lambda j=one, t=truth: score(j, t))
    stages.seconds['total'] = sum(stages.seconds.values())
    with ThreadPoolExecutor(2) as pool:
        judge_run = functools.partial(judge, config=config, navsat=navsat)
        stages.time('judge, 2 threads', lambda: list(pool.map(judge_run, recordings)))
    return dict(stages.seconds)


_STUDY = """\
title: speed
recordings: [{path: bags/*}]
models: {gps: [paper], imu: [chrono]}
judges: [paper_released]
"""


def command(repetitions: int) -> list[float]:
    """Seconds of whole studies after one that warms up the caches of compiled code."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / 'study.yaml').write_text(_STUDY, encoding='utf-8')
        for one in StudyFile.read('b_gps_models').recordings:
            write_recording(one.read(), folder / 'bags' / one.name)
        root = Path(__file__).resolve().parents[1]
        environment = {**os.environ, 'PYTHONPATH': str(root), 'MPLBACKEND': 'Agg'}

        def run(number: int) -> None:
            line = [sys.executable, '-m', 'sim2real_eval.cli', 'study', str(folder / 'study.yaml')]
            line += ['--jobs', '2', '--out', str(folder / f'out_{number}')]
            subprocess.run(line, check=True, capture_output=True, env=environment, cwd=folder)

        run(0)
        return [seconds(lambda n=number: run(n)) for number in range(1, repetitions + 1)]


def main() -> None:
    options = parse(__doc__ or '', repetitions=3)
    config = FilterConfig.from_file(config_path('judge', 'paper_released.yaml'))
    navsat = NavsatConfig.from_file(config_path('judge', 'paper_released_navsat.yaml'))
    first = study(config, navsat)
    runs = [study(config, navsat) for _ in range(options.repetitions)]
    result: dict[str, Any] = {stage: spread([run[stage] for run in runs]) for stage in runs[0]}
    judged = len(MODELS) * len(DRIVES) * RUNS
    table(
        (f'{judged} judged runs of 20 s', 'seconds', 'ms per judged run'),
        [
            (stage, f'{found["median"]:.2f}', f'{1e3 * found["median"] / judged:.1f}')
            for stage, found in result.items()
        ],
    )
    whole = spread(command(options.repetitions))
    print(f'sim2real study on 30 bags, 2 processes, page included: {whole["median"]:.1f} s')
    print(f'first study of the process, with loading of machine code: {first["total"]:.1f} s')
    figures = {'seconds': result, 'first_study_seconds': first, 'command_seconds': whole}
    write(options.out, 'study_speed', figures)


if __name__ == '__main__':
    main()
