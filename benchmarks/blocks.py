# SPDX-License-Identifier: Apache-2.0
"""Effect on a study of recordings that depend on each other, with and without `block`.

`blocks.py same`: how often two sensors of one law differ significantly, where segments of a drive
share its errors. `blocks.py drive0708`: one drive below SIM2REAL_REAL in blocks of its segments.
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import write

import sim2real_eval as s2r
from sim2real_eval.metrics.interval import ScoredRuns
from sim2real_eval.metrics.options import UncertaintyOptions
from sim2real_eval.metrics.uncertainty import uncertainty
from sim_sensors.core.seeding import stream

DRIVES, SEGMENTS = 8, 4
SIZES = (1, 2, 3)
MODELS = ('ch_gauss', 'ch_rw')


def same(trials: int) -> dict[str, str]:
    """Return how many studies called sensors of one law different, without and with blocks.

    Half of the variance of RMSE and entropy difference is the drive's own on each side.
    """
    names = tuple(f'{drive}_{k}' for drive in range(DRIVES) for k in range(SEGMENTS))
    blocks = tuple(name.partition('_')[0] for name in names)
    options = UncertaintyOptions(resamples=1000)
    rejected = {'without blocks': 0, 'with blocks': 0}
    for trial in range(trials):
        rng = stream(trial, 'one law', 'benchmark', 'blocks')
        drive = np.repeat(rng.normal(size=(2, DRIVES, 2)), SEGMENTS, axis=1)
        sides = np.exp(0.1 * (drive + rng.normal(size=drive.shape)))
        for name, given in (('without blocks', ()), ('with blocks', blocks)):
            real, sim = (ScoredRuns(values, names, ('',) * len(names), given) for values in sides)
            found = uncertainty(real, {'m': sim}, options, seed=trial).models[0].p_value
            assert found is not None
            rejected[name] += found <= 0.05
    return {name: f'{count}/{trials}' for name, count in rejected.items()}


def drive(jobs: int) -> dict[str, list[float]]:
    """Return p-values and intervals of `MODELS` by size of the blocks; nothing without drive."""
    real = Path(os.environ.get('SIM2REAL_REAL') or Path(__file__).parents[2] / 'shared' / 'real')
    bags = sorted((real / 'drive0708' / 'segments').glob('*/bag'))
    found: dict[str, list[float]] = {}
    for size in SIZES if bags else ():
        file = {
            'title': f'blocks of {size}',
            'recordings': [
                {'path': str(bag), 'name': bag.parent.name, 'block': f'{k // size}'}
                for k, bag in enumerate(bags)
            ],
            'models': {'gps': list(MODELS), 'imu': ['real']},
            'judges': ['clean'],
            'metric': {'warmup': 5.0},
            'adapt': 'none',
            'start_heading': True,
            'off_ticks': True,
        }
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, 'study.yaml')
            path.write_text(yaml.safe_dump(file), encoding='utf-8')
            s2r.run_study(path, f'{folder}/out', jobs=jobs)
            with Path(folder, 'out', 'vepd.csv').open(encoding='utf-8') as table:
                rows = [row for row in csv.DictReader(table) if row['scenario'] == 'all']
        for row in rows:
            for column in ('p_value', 'low', 'high'):
                if row[column]:
                    found.setdefault(f'{column}, blocks of {size}', []).append(float(row[column]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('what', choices=['same', 'drive0708'])
    parser.add_argument('--trials', type=int, default=400, help='default %(default)s')
    parser.add_argument('--jobs', type=int, default=1, help='default %(default)s')
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results')
    options = parser.parse_args()
    figures: Mapping[str, str | list[float]] = (
        same(options.trials) if options.what == 'same' else drive(options.jobs)
    )
    for name, value in figures.items():
        print(f'{name}: {value}')
    write(options.out, f'blocks_{options.what}', {'figures': figures})


if __name__ == '__main__':
    main()
