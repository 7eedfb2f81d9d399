# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Speed-up of a study by workers: processes of this machine, and a dask.distributed cluster on it.

Only the judging is timed, not statistics and report. The workers have loaded the compiled code.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import distributed
from measuring import parse, seconds, spread, table, write

from sim2real_eval.common.workers import Workers
from sim2real_eval.study.cluster import cluster_of
from sim2real_eval.study.plan import StudyPlan
from sim2real_eval.study.run_store import RunStore
from sim2real_eval.study.runner import judge_here

STUDY = {
    'title': 'Speed of a cluster',
    'recordings': [{'stand_in': {'scenarios': ['line', 'circle'], 'runs': 5, 'duration': 5.0}}],
    'models': {'gps': ['ch_gauss', 'ch_rw'], 'imu': ['chrono']},
    'repetitions': 40,
    'judges': ['paper_released'],
}
"""Ten recordings of 5 s, 81 runs each."""


def plan_of(repetitions: int) -> StudyPlan:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, 'study.yaml')
        file.write_text(yaml.safe_dump({**STUDY, 'repetitions': repetitions}), encoding='utf-8')
        return StudyPlan.load(file)


def in_processes(workers: Workers, plan: StudyPlan) -> None:
    with tempfile.TemporaryDirectory() as folder:
        judge_here(plan.units(workers.jobs), Path(folder), workers)


def on_cluster(address: str, plan: StudyPlan) -> None:
    with tempfile.TemporaryDirectory() as folder, cluster_of(address) as cluster:
        cluster.judge(plan.units(cluster.threads), RunStore(Path(folder)))


def main() -> None:
    options = parse(__doc__, 5)
    plan, warm_up = plan_of(STUDY['repetitions']), plan_of(1)
    runs = len(plan.run_groups())
    local = {'dashboard_address': None, 'threads_per_worker': 1}
    with (
        Workers(2) as two,
        distributed.LocalCluster(n_workers=1, **local) as single,
        distributed.LocalCluster(n_workers=2, **local) as pair,
    ):
        ways: dict[str, Callable[[StudyPlan], None]] = {
            '1 process': lambda plan: in_processes(Workers(), plan),
            '2 processes': lambda plan: in_processes(two, plan),
            'cluster, 1 worker': lambda plan: on_cluster(single.scheduler_address, plan),
            'cluster, 2 workers': lambda plan: on_cluster(pair.scheduler_address, plan),
        }
        for way in ways.values():
            way(warm_up)
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(options.repetitions):
            for name, way in ways.items():
                times[name].append(seconds(lambda way=way: way(plan)))
    rows, results = [], {}
    for name, values in times.items():
        ratio = spread([one / own for one, own in zip(times['1 process'], values, strict=True)])
        rate = spread([runs / value for value in values])
        results[name] = {'runs_per_s': rate, 'speed_up': ratio}
        rows.append(
            (name, f'{rate["median"]:.1f}', f'{ratio["median"]:.2f}',
             f'{ratio["lower_quartile"]:.2f} - {ratio["upper_quartile"]:.2f}')
        )  # fmt: skip
    print(f'{runs} runs of 5 s')
    table(('judged by', 'runs/s', 'speed-up', 'quartiles'), rows)
    write(options.out, 'cluster_speed', {'runs': runs, 'ways': results})


if __name__ == '__main__':
    main()
