# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""How often a study calls the nearest model distinguishable: equal sensors, and a noisy IMU.

A pool of synthetic drives is judged once, with several draws of one sensor set and with a noisier
IMU. A study is a random choice of 12 drives, in which any draw may be the real side. The segments
of a block are runs of similar RMSE, chosen for each side apart.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import table, write

from sim2real_eval.common.workers import map_in_processes
from sim2real_eval.judge.protocol import JudgeRequest, load_judge
from sim2real_eval.metrics.options import REAL, MetricOptions
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.metric import NIS, VEPD
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.recordings import PathDrive, StandIn
from sim2real_eval.study.run import EstimateSignals, RunKey, StudyRun
from sim2real_eval.study.run_plan import Judging, RunPlan
from sim2real_eval.study.secondary_results import LEVEL, metric_tables
from sim_sensors.core.seeding import stream
from sim_sensors.core.shipped import config_path
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.paths import DRIVES

EQUAL, NOISY = 'equal', 'noisy'
DRAWS = 6  # of the noise, for each drive
EACH = 4  # drives of each scenario in a study
BLOCKS, SEGMENTS = 8, 3
SIMILAR = 40  # runs among which the segments of a block are chosen
QUIETER = 0.1  # noise of the IMU over that of the demo's stand-in

Judged = tuple[StudyRun, EstimateSignals]
Pool = dict[tuple[str, str, int], Judged]  # by drive, sensor set and draw
POOL: Pool = {}


def sensors(label: str, noise: float) -> Twin:
    """Return the sensor set of the demo with an IMU of another noise."""
    imu: Any = load_imu(config_path('demo', 'imu.yaml'))
    gyroscope, accelerometer = imu.gyroscope, imu.accelerometer
    factor = QUIETER * noise
    imu = dataclasses.replace(
        imu,
        gyroscope=dataclasses.replace(
            gyroscope,
            angle_random_walk=factor * gyroscope.angle_random_walk,
            turn_on_bias=tuple(0.2 * bias for bias in gyroscope.turn_on_bias),
        ),
        accelerometer=dataclasses.replace(
            accelerometer,
            velocity_random_walk=factor * accelerometer.velocity_random_walk,
            turn_on_bias=tuple(0.2 * bias for bias in accelerometer.turn_on_bias),
        ),
    )
    return Twin(label, gps=load_gps(config_path('demo', 'gps.yaml')), imu=imu)


def judged_drive(name: str, *, judge_name: str, noise: float) -> Pool:
    """Return all runs of a drive, `line_3` being number 3 of the scenario `line`."""
    twins = (sensors(EQUAL, 1.0), sensors(NOISY, noise))
    judge = load_judge(JudgeRequest('embedded', config=judge_name))
    recording = StandIn(PathDrive(name.rpartition('_')[0], 7, name), twins[0]).read()
    options = StudyOptions(seed=7, repetitions=DRAWS, start_heading=True)
    plan = RunPlan(recording, twins, Judging(judge, options))
    pool: Pool = {}
    for run in plan.twins:
        made = plan.recording(run)
        judged = judge.judge(made, **plan.start_of(judge)._asdict())
        key = RunKey(judge_name, name, run.model, run.repetition)
        pool[key[1:]] = plan.evaluate(run, judge, made, judged, key, '')
    return pool


Choice = tuple[str, str, tuple[str, str, int], str]  # model, recording, run of the pool, block


def paired(rng: np.random.Generator, models: list[str]) -> Iterator[Choice]:
    """Choose runs of the same drives for all sides."""
    for drives in _drives().values():
        for drive in rng.choice(drives, EACH, replace=False).tolist():
            draws = (rng.permutation(DRAWS) + 1).tolist()
            for model, draw in zip((REAL, *models), draws, strict=False):
                yield model, drive, (drive, _kind(model), draw), ''


def unpaired(rng: np.random.Generator, models: list[str]) -> Iterator[Choice]:
    """Choose drives of their own for each side."""
    for drives in _drives().values():
        order = rng.permutation(drives).tolist()
        for k, model in enumerate((REAL, *models)):
            for drive in order[EACH * k : EACH * (k + 1)]:
                draw = int(rng.integers(DRAWS)) + 1
                yield model, f'{model} {drive}', (drive, _kind(model), draw), ''


def blocks(rng: np.random.Generator, models: list[str]) -> Iterator[Choice]:
    """Choose blocks of similar runs for each side."""
    ranked = sorted(
        (key for key in POOL if key[1] == EQUAL), key=lambda key: POOL[key][0].values['rmse']
    )
    for model in (REAL, *models):
        for block in range(BLOCKS):
            start = int(rng.integers(len(ranked) - SIMILAR))
            for k in rng.choice(SIMILAR, SEGMENTS, replace=False).tolist():
                drive, _, draw = ranked[start + k]
                name = f'{model} {block} {k}'
                yield model, name, (drive, _kind(model), draw), f'{model} {block}'


DESIGNS = {'paired': paired, 'unpaired': unpaired, 'blocks': blocks}


@functools.cache
def _drives() -> dict[str, list[str]]:
    names = dict.fromkeys(drive for drive, _, _ in POOL)
    return {
        scenario: [name for name in names if name.rpartition('_')[0] == scenario]
        for scenario in DRIVES
    }


def _kind(model: str) -> str:
    return NOISY if model == NOISY else EQUAL


def study(choices: Iterator[Choice], seed: int) -> StudyOutcome:
    """Return the study of the chosen runs."""
    runs, signals, recordings = [], {}, []
    for model, recording, place, block in choices:
        run, signals_of_run = POOL[place]
        key = RunKey(run.key.judge, recording, model, 1)
        scenario = '' if block else run.scenario
        runs.append(dataclasses.replace(run, key=key, scenario=scenario))
        signals[key] = signals_of_run
        recordings.append({'name': recording, 'block': block})
    record = {'seed': seed, 'component': 'horizontal', 'recordings': recordings}
    return StudyOutcome(record, tuple(runs), signals.__getitem__)


def detected(trial: int, *, design: str, models: list[str]) -> list[str]:
    """Return the metrics by which the nearest model of a study is distinguishable."""
    choose: Callable[..., Iterator[Choice]] = DESIGNS[design]
    rng = stream(trial, design, 'benchmark', 'distinguishable')
    outcome = study(choose(rng, models), trial)
    pooled = metric_tables(outcome, MetricOptions())[-1]
    distances = pooled.rows[0].distances
    nearest = min(range(len(models)), key=lambda k: distances[k] or 0.0)
    return pooled.detected_by(pooled.models[nearest])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--trials', type=int, default=1000, help='default %(default)s')
    parser.add_argument('--drives', type=int, default=40, help='per scenario; %(default)s')
    parser.add_argument('--noise', type=float, default=3.0, help='factor; default %(default)s')
    parser.add_argument('--jobs', type=int, default=2, help='default %(default)s')
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results')
    options = parser.parse_args()
    names = [f'{scenario}_{k}' for scenario in DRIVES for k in range(options.drives)]
    many = [f'{EQUAL}{k}' for k in range(1, DRAWS)]
    cases = [
        ('clean', 'paired', many[:1], options.trials),
        ('clean', 'paired', many, options.trials // 2),
        ('clean', 'unpaired', many[:1], options.trials),
        ('clean', 'blocks', many[:1], options.trials),
        ('clean', 'paired', [NOISY], options.trials // 5),
        ('paper_released', 'paired', [NOISY], options.trials // 5),
    ]
    rows, figures = [], {}
    judged = ''
    for judge, design, models, trials in cases:
        if judge != judged:
            judged = judge
            work = functools.partial(judged_drive, judge_name=judge, noise=options.noise)
            POOL.clear()
            for pool in map_in_processes(work, names, jobs=options.jobs):
                POOL.update(pool)
        # A forked process has the pool.
        with ProcessPoolExecutor(
            options.jobs, mp_context=multiprocessing.get_context('fork')
        ) as executor:
            trial = functools.partial(detected, design=design, models=models)
            found = list(executor.map(trial, range(trials), chunksize=20))
        counts = [
            sum(map(bool, found)),
            sum(VEPD in metrics for metrics in found),
            sum(NIS in metrics for metrics in found),
        ]
        sides = 'noisy IMU' if models == [NOISY] else f'{len(models)} equal'
        shares = [f'{100.0 * count / trials:.1f} %' for count in counts]
        rows.append((judge, design, sides, str(trials), *shares))
        figures[f'{judge}, {design}, {sides}'] = [f'{count}/{trials}' for count in counts]
        print(*rows[-1], flush=True)
    table(('judge', 'runs', 'models', 'studies', 'any metric', VEPD, NIS), rows)
    write(options.out, 'distinguishable', {'level': LEVEL, 'figures': figures})


if __name__ == '__main__':
    main()
