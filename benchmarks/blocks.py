# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Effect on a study of recordings that depend on each other, with and without `block`.

`blocks.py same`: how often two sensors of one law differ significantly, where segments of a drive
share its errors, and how often intervals cover a known distance. `blocks.py drive0708`: one drive
below SIM2REAL_REAL in blocks of its segments.
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
FACTOR = 1.15


def same(trials: int) -> dict[str, str]:
    """Return how many studies called sensors of one law different, without and with blocks.

    Half of the variance of RMSE and entropy difference is the drive's own on each side. With
    blocks, return also how many intervals exclude zero, and how many cover the distance of
    sensors that differ by `FACTOR`.
    """
    names = tuple(f'{drive}_{k}' for drive in range(DRIVES) for k in range(SEGMENTS))
    blocks = tuple(name.partition('_')[0] for name in names)
    others = tuple(f'other {name}' for name in names)
    unpaired = others, tuple(f'other {block}' for block in blocks)
    settings = {
        'without blocks': (names, (), ()),
        'with blocks': (names, blocks, blocks),
        'with blocks, unpaired': (others, blocks, unpaired[1]),
    }
    options = UncertaintyOptions(resamples=1000)
    truth = (FACTOR - 1.0) * float(np.exp(0.1**2))
    counts: dict[str, int] = {}
    for trial in range(trials):
        rng = stream(trial, 'one law', 'benchmark', 'blocks')
        drive = np.repeat(rng.normal(size=(2, DRIVES, 2)), SEGMENTS, axis=1)
        real_values, sim_values = np.exp(0.1 * (drive + rng.normal(size=drive.shape)))
        for name, (sim_names, real_blocks, sim_blocks) in settings.items():
            scenario = ('',) * len(names)
            real = ScoredRuns(real_values, names, scenario, real_blocks)
            sims = {
                model: ScoredRuns(factor * sim_values, sim_names, scenario, sim_blocks)
                for model, factor in (('equal', 1.0), ('different', FACTOR))
            }
            equal, different = uncertainty(real, sims, options, seed=trial).models
            assert equal.p_value is not None
            found = {name: equal.p_value <= 0.05}
            if sim_blocks:
                found[f'{name}, excludes 0'] = bool(equal.low)
                found[f'{name}, covers'] = different.low <= truth <= different.high
            for key, is_found in found.items():
                counts[key] = counts.get(key, 0) + is_found
    return {name: f'{count}/{trials}' for name, count in counts.items()}


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
