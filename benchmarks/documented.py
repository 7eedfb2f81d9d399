# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Results that the documentation prints: experiment B, speed errors of real drives.

`documented.py study` runs shipped studies; `documented.py drives` judges the recordings below
SIM2REAL_REAL.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import yaml
from scipy.stats import kendalltau

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import write

import sim2real_eval as s2r
from sim2real_eval.judge.protocol import JudgeRequest, load_judge
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.truth import true_heading
from sim2real_eval.study.recordings import OFF_TICKS_NS
from sim_sensors.core.shipped import config_path

ROOT = Path(__file__).resolve().parents[1]
WARM = s2r.MetricOptions(warmup=5.0)
PATHS = {'drive0708': 'drive0708/segments', 'comma2k19': 'comma2k19/segments'}


def study(jobs: int) -> dict[str, float | list[float]]:
    """Return VEPD by judge and model of experiments B and C on stand-ins, seed 0, and how far the
    same car on springs, on a road of class C, changes values and order.
    """
    file = config_path('studies', 'b_gps_models.yaml')
    springs = yaml.safe_load(file.read_text('utf-8'))
    springs['recordings'][0]['stand_in']['vehicle'] = {'road': 'C'}
    with tempfile.TemporaryDirectory() as folder:
        rough = Path(folder, 'springs.yaml')
        rough.write_text(yaml.safe_dump(springs), 'utf-8')
        tables = [_vepd(one, f'{folder}/{one.stem}', jobs) for one in (file, rough)]
    plane, other = (found.pop('all') for found in tables)
    judges = sorted({judge for judge, _ in plane})
    taus = [kendalltau(*(_of(judge, one) for one in (plane, other))).statistic for judge in judges]
    return {
        **{f'{judge} {model}': value for (judge, model), value in plane.items()},
        **{
            f'{model} by manoeuvre': [one['paper_released', model] for one in tables[0].values()]
            for model in ('ch_gauss', 'ch_rw')
        },
        'change on springs': max(abs(other[key] - plane[key]) for key in plane),
        'order on springs': float(min(taus)),
    }


def _vepd(file: Path, folder: str, jobs: int) -> dict[str, dict[tuple[str, str], float]]:
    """Return VEPD by scenario, judge and model."""
    s2r.run_study(str(file), folder, seed=0, jobs=jobs)
    found: dict[str, dict[tuple[str, str], float]] = {}
    with Path(folder, 'vepd.csv').open(encoding='utf-8') as table:
        for row in csv.DictReader(table):
            each = found.setdefault(row['scenario'], {})
            each[row['judge'], row['model']] = float(row['vepd'])
    return found


def _of(judge: str, found: dict[tuple[str, str], float]) -> list[float]:
    return [value for (name, _), value in found.items() if name == judge]


def drives() -> dict[str, float]:
    """Return mean RMSE of horizontal speed by recording and judge, m/s; nothing where none is."""
    real = Path(os.environ.get('SIM2REAL_REAL') or ROOT.parent / 'shared' / 'real')
    found = {}
    for name, path in PATHS.items():
        bags = sorted((real / path).glob('*/bag'))
        recordings = [s2r.read_recording(bag) for bag in bags]
        for judge in ('clean', 'paper_released', 'error_state', 'gtsam') if bags else ():
            errors = []
            for one in recordings:
                if judge in ('clean', 'paper_released'):
                    heading = true_heading(one.require('truth'))
                    made = JudgeSetup.load(judge).with_start(start_heading=heading)
                    start_ns = int(one.require('truth').stamp_ns[0])
                    late = made.splits_fixes(one, start_ns, start_ns + OFF_TICKS_NS)
                    run = s2r.run_judge(one, made, metric=WARM, off_ticks=late)
                else:
                    run = s2r.run_judge(one, load_judge(JudgeRequest(judge)))
                errors.append(run.score.rmse)
            found[f'{name} {judge}'] = float(np.mean(errors))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('what', choices=['study', 'drives'])
    parser.add_argument('--jobs', type=int, default=1, help='default %(default)s')
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results')
    options = parser.parse_args()
    figures: Mapping[str, float | list[float]]
    figures = drives() if options.what == 'drives' else study(options.jobs)
    for name, value in figures.items():
        print(f'{name}:', *(f'{one:.4g}' for one in np.atleast_1d(value)))
    write(options.out, f'documented_{options.what}', {'figures': figures})


if __name__ == '__main__':
    main()
