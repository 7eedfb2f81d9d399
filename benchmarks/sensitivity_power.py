# Copyright 2026 The sim2real_sensors contributors
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

from sim2real_eval.benches.sensitivity import (
    Detectable,
    InjectedError,
    SensitivityOptions,
    sensitivity,
)
from sim2real_eval.benches.settings import LEVEL
from sim2real_eval.common.workers import map_in_processes
from sim2real_eval.judge.protocol import JudgeRequest, load_judge
from sim2real_eval.metrics.mean_wasserstein import MeanWasserstein
from sim2real_eval.metrics.options import UncertaintyOptions
from sim2real_eval.metrics.permutation_test import distance_p_values, permute_labels
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study.options import StudyOptions
from sim2real_eval.study.recordings import PathDrive, StandIn, StudyRecording
from sim2real_eval.study.run_plan import Judging, PlannedRun, RunPlan
from sim2real_eval.study.variants import StudyJudge
from sim_sensors import load_imu
from sim_sensors.core.seeding import stream
from sim_sensors.core.shipped import config_path
from sim_sensors.gps.gps import GpsModel
from sim_sensors.imu.imu import ImuModel
from sim_sensors.motion.paths import DRIVES

SENSORS = Twin(
    'stand_in',
    gps=GpsModel.load(config_path('demo', 'gps.yaml')),
    imu=ImuModel.load(config_path('demo', 'imu.yaml')),
)


def recordings(each: int, duration: float, sensors: Twin) -> list[StudyRecording]:
    """Return drives of every scenario."""
    return [
        StudyRecording(
            f'{scenario}_{k}',
            '',
            StandIn(PathDrive(scenario, 0, f'{scenario}_{k}', duration), sensors),
        )
        for scenario in DRIVES
        for k in range(each)
    ]


def revealed(
    trial: int,
    *,
    drives: list[StudyRecording],
    judge: StudyJudge,
    sensors: Twin,
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
            one = dataclasses.replace(one, origin=StandIn(drive, sensors))
        plan = RunPlan(one.read(), (sensors,), Judging(judge.setup, StudyOptions(
            seed=seed, repetitions=2)))  # fmt: skip
        first, second = plan.twins
        without.append(scored(plan, first, judge, plan.recording(first)))
        for side, (error, size) in zip(sides, sizes, strict=True):
            rng = stream(seed, 'benchmark', one.name, error.name)
            wrong = error.change(plan.recording(second), size, rng)
            side.append(scored(plan, second, judge, wrong))
    names = [one.name for one in drives]
    labels = permute_labels(names, names, UncertaintyOptions().resamples, seed)
    distances = [MeanWasserstein.from_values(np.array([*without, *side])) for side in sides]
    return [distance_p_values([one], labels).single[0] <= LEVEL for one in distances]


def scored(
    plan: RunPlan, run: PlannedRun, judge: StudyJudge, recording: Recording
) -> tuple[float, float]:
    """Return RMSE and difference of entropies of a simulated run."""
    judged = judge.setup.judge(recording, **plan.start_of(judge.setup)._asdict())
    score = plan.vepd_score(run, judged)
    return score.rmse, score.entropy_difference


def claims(one: Detectable, power: float) -> list[tuple[float, str, float, float]]:
    """Return sizes, what is said of each, and the bounds of its power."""
    if not one.points:
        return []
    if one.jump is not None:
        assert one.low is not None
        assert one.size is not None
        return [(one.low, 'not seen, below a jump', 0.0, power),
                (one.size, 'seen, above the jump', power, 1.0)]  # fmt: skip
    if one.size is not None:
        said = f'{power:.0%} power; {one.low:.3g} to {one.high:.3g}'
        return [(one.size, said, power - 0.05, power + 0.05)]
    if one.points[-1].power < power:
        return [(one.points[-1].size, 'not seen', 0.0, power)]
    return [(one.points[0].size, 'seen', power, 1.0)]


def main() -> None:
    """Find sizes, try each in fresh studies, and print and write a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--judges', default='clean,paper_released')
    parser.add_argument('--errors', default='all')
    parser.add_argument('--each', type=int, default=2, help='drives per scenario')
    parser.add_argument('--duration', type=float, default=8.0)
    parser.add_argument('--draws', type=int, default=60)
    parser.add_argument('--trials', type=int, default=400)
    parser.add_argument('--imu', help='preset in place of the stand-in, as for heading')
    parser.add_argument('--fresh-motions', action='store_true')
    parser.add_argument('--jobs', type=int, default=1)
    given = parser.parse_args()
    sensors = SENSORS
    if given.imu:
        sensors = dataclasses.replace(SENSORS, label=given.imu, imu=load_imu(given.imu))
    drives = recordings(given.each, given.duration, sensors)
    options = SensitivityOptions(errors=given.errors, draws=given.draws)
    rows: list[tuple[str, ...]] = []
    for name in given.judges.split(','):
        judge = StudyJudge(name, 'embedded', load_judge(JudgeRequest('embedded', config=name)))
        whole = sensitivity(drives, [judge], sensors, options, jobs=given.jobs)
        print(name, 'false alarms', whole.false_alarms[name], flush=True)
        said = [(one, *claim) for one in whole.detectable for claim in claims(one, options.power)]
        work = partial(
            revealed, drives=drives, judge=judge, sensors=sensors,
            sizes=[(one.error, size) for one, size, *_ in said],
            fresh_motions=given.fresh_motions,
        )  # fmt: skip
        seen = np.array(map_in_processes(work, range(given.trials), jobs=given.jobs))
        for (one, size, claim, low, high), share in zip(said, seen.mean(axis=0), strict=True):
            row = (name, one.error.name, f'{size:.3g} {one.error.unit}', claim,
                   f'{100.0 * share:.1f} % of {given.trials}',
                   'yes' if low <= share <= high else 'no')  # fmt: skip
            rows.append(row)
            print(*row, sep=' | ', flush=True)
    table(('judge', 'error', 'size', 'stated', 'revealed', 'true'), rows)


if __name__ == '__main__':
    main()
