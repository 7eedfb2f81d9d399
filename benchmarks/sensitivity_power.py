# SPDX-License-Identifier: Apache-2.0
"""How often fresh studies reveal errors of the size that `sim2real sensitivity` states."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import table

from sim2real_eval.benches.sensitivity import InjectedError, SensitivityOptions, sensitivity
from sim2real_eval.common.workers import map_in_processes
from sim2real_eval.judge.protocol import JudgeRequest, load_judge
from sim2real_eval.metrics.uncertainty.interval import MeanWasserstein
from sim2real_eval.metrics.uncertainty.permutation_test import distance_p_values, permute_labels
from sim2real_eval.metrics.uncertainty.result import UncertaintyOptions
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.judges import StudyJudge
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.recordings import PathDrive, StandIn, StudyRecording
from sim2real_eval.study.run_plan import Judging, RunPlan
from sim_sensors.core.seeding import stream
from sim_sensors.core.shipped import config_path
from sim_sensors.gps.gps import GPS
from sim_sensors.imu.imu import IMU
from sim_sensors.motion.path_following import DRIVES

SENSORS = Twin(
    'stand_in',
    gps=GPS.load(config_path('demo', 'gps.yaml')),
    imu=IMU.load(config_path('demo', 'imu.yaml')),
)


def recordings(each: int, duration: float, seed: int = 0) -> list[StudyRecording]:
    """Return drives of every scenario."""
    return [
        StudyRecording(
            f'{scenario}_{k}',
            '',
            StandIn(PathDrive(scenario, seed, f'{scenario}_{k}', duration), SENSORS),
        )
        for scenario in DRIVES
        for k in range(each)
    ]


def revealed(
    trial: int,
    *,
    drives: list[StudyRecording],
    judge: StudyJudge,
    error: InjectedError,
    size: float,
    fresh_motions: bool,
) -> bool:
    """Return whether the permutation test of a study with another seed reveals the size."""
    seed = 1000 + trial
    sides: tuple[list[tuple[float, float]], ...] = ([], [])
    for one in drives:
        if fresh_motions:
            assert isinstance(one.origin, StandIn)
            drive = dataclasses.replace(one.origin.drive, seed=seed)
            one = dataclasses.replace(one, origin=StandIn(drive, SENSORS))
        plan = RunPlan(one.read(), (SENSORS,), Judging(judge.setup, StudyOptions(
            seed=seed, repetitions=2)))  # fmt: skip
        for side, run, share in zip(sides, plan.twins, (0.0, size), strict=True):
            recording = plan.recording(run)
            if share:
                rng = stream(seed, 'benchmark', one.name, error.name)
                recording = error.change(recording, share, rng)
            judged = judge.setup.judge(
                recording, start_ns=plan.maker.start_ns, start_heading=plan.start_heading
            )
            score = plan.score(run, judged).score
            side.append((score.rmse, score.entropy_difference))
    names = [one.name for one in drives]
    labels = permute_labels(names, names, UncertaintyOptions().resamples, seed)
    distance = MeanWasserstein.of(np.concatenate([np.array(side) for side in sides]))
    return distance_p_values([distance], labels).single[0] <= 0.05


def main() -> None:
    """Find sizes, try each in fresh studies, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--judges', default='clean,paper_released')
    parser.add_argument('--errors', default='gps_noise,gps_delay,lever_arm,accelerometer_bias')
    parser.add_argument('--each', type=int, default=3, help='drives per scenario')
    parser.add_argument('--duration', type=float, default=10.0)
    parser.add_argument('--draws', type=int, default=120)
    parser.add_argument('--trials', type=int, default=400)
    parser.add_argument('--fresh-motions', action='store_true')
    parser.add_argument('--jobs', type=int, default=1)
    given = parser.parse_args()
    drives = recordings(given.each, given.duration)
    options = SensitivityOptions(errors=given.errors, draws=given.draws)
    rows = []
    for name in given.judges.split(','):
        judge = StudyJudge(name, 'embedded', load_judge(JudgeRequest('embedded', config=name)))
        for one in sensitivity(drives, [judge], SENSORS, options, jobs=given.jobs).found:
            if one.size is None:
                rows.append((name, one.error.name, 'none', '', ''))
                continue
            work = partial(
                revealed, drives=drives, judge=judge, size=one.size,
                error=one.error,
                fresh_motions=given.fresh_motions,
            )  # fmt: skip
            seen = map_in_processes(work, range(given.trials), jobs=given.jobs)
            ends = f'{one.low:.3g} to {one.high:.3g} {one.error.unit}'
            share = f'{100.0 * np.mean(seen):.1f} % of {len(seen)}'
            rows.append((name, one.error.name, f'{one.size:.3g}', ends, share))
            print(*rows[-1], flush=True)
    table(('judge', 'error', 'size at 80 % power', 'interval', 'revealed'), rows)


if __name__ == '__main__':
    main()
