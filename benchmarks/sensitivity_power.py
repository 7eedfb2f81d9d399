# SPDX-License-Identifier: Apache-2.0
"""How often fresh studies reveal errors of the size that `sim2real sensitivity` states."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import table

from sim2real_eval.benches.sensitivity import InjectedError, SensitivityOptions, sensitivity
from sim2real_eval.common.workers import map_in_processes
from sim2real_eval.judge.protocol import JudgeRequest, load_judge
from sim2real_eval.metrics.uncertainty.interval import MeanWasserstein
from sim2real_eval.metrics.uncertainty.permutation_test import distance_p_values, permute_labels
from sim2real_eval.metrics.uncertainty.result import UncertaintyOptions
from sim2real_eval.recording.recording import Recording
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
    sizes: list[tuple[InjectedError, float]],
    fresh_motions: bool,
) -> list[bool]:
    """Return which errors the permutation test of a study with another seed reveals."""
    seed = 1000 + trial
    without: list[tuple[float, float]] = []
    # One side without an error stands against those with one.
    sides: list[list[tuple[float, float]]] = [[] for _ in sizes]
    for one in drives:
        if fresh_motions:
            assert isinstance(one.origin, StandIn)
            drive = dataclasses.replace(one.origin.drive, seed=seed)
            one = dataclasses.replace(one, origin=StandIn(drive, SENSORS))
        plan = RunPlan(one.read(), (SENSORS,), Judging(judge.setup, StudyOptions(
            seed=seed, repetitions=2)))  # fmt: skip
        first, second = plan.twins
        without.append(scored(plan, judge, first, plan.recording(first)))
        other = plan.recording(second)
        for side, (error, size) in zip(sides, sizes, strict=True):
            rng = stream(seed, 'benchmark', one.name, error.name)
            side.append(scored(plan, judge, second, error.change(other, size, rng)))
    names = [one.name for one in drives]
    labels = permute_labels(names, names, UncertaintyOptions().resamples, seed)
    distances = [MeanWasserstein.of(np.array([*without, *side])) for side in sides]
    return [distance_p_values([one], labels).single[0] <= 0.05 for one in distances]


def scored(
    plan: RunPlan, judge: StudyJudge, run: Any, recording: Recording
) -> tuple[float, float]:
    """Return RMSE and difference of entropies of a simulated run."""
    judged = judge.setup.judge(
        recording, start_ns=plan.maker.start_ns, start_heading=plan.start_heading
    )
    score = plan.score(run, judged).score
    return score.rmse, score.entropy_difference


def main() -> None:
    """Find sizes, try each in fresh studies, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--judges', default='clean,paper_released')
    parser.add_argument('--errors', default='all')
    parser.add_argument('--each', type=int, default=3, help='drives per scenario')
    parser.add_argument('--duration', type=float, default=10.0)
    parser.add_argument('--draws', type=int, default=120)
    parser.add_argument('--trials', type=int, default=300)
    parser.add_argument('--fresh-motions', action='store_true')
    parser.add_argument('--jobs', type=int, default=1)
    given = parser.parse_args()
    drives = recordings(given.each, given.duration)
    options = SensitivityOptions(errors=given.errors, draws=given.draws)
    rows = []
    for name in given.judges.split(','):
        judge = StudyJudge(name, 'embedded', load_judge(JudgeRequest('embedded', config=name)))
        found = sensitivity(drives, [judge], SENSORS, options, jobs=given.jobs).found
        sizes = [(one.error, one.size) for one in found if one.size is not None]
        work = partial(
            revealed, drives=drives, judge=judge, sizes=sizes, fresh_motions=given.fresh_motions
        )
        seen = np.array(map_in_processes(work, range(given.trials), jobs=given.jobs))
        shares = dict(zip((error.name for error, _ in sizes), seen.T, strict=True))
        for one in found:
            row = (name, one.error.name, 'none', '', '')
            if one.size is not None:
                ends = f'{one.low:.3g} to {one.high:.3g} {one.error.unit}'
                mine = shares[one.error.name]
                share = f'{100.0 * mine.mean():.1f} % of {len(mine)}'
                row = (name, one.error.name, f'{one.size:.3g}', ends, share)
            rows.append(row)
            print(*row, flush=True)
    table(('judge', 'error', 'size at 80 % power', 'interval', 'revealed'), rows)


if __name__ == '__main__':
    main()
