# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""How often `sim2real tune` finds parameters that are known, and leaves those that are right."""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / 'test'))

from measuring import table, write
from tuning_examples import VARIANCE, VELOCITY, Wander, wander_setup

from sim2real_eval.benches.tuning import TuneOptions, tune
from sim2real_eval.common.workers import map_in_processes
from sim_sensors.core.seeding import stream

NAMES = ('process_noise_covariance.velocity', 'covariance.pose')
OPTIONS = TuneOptions(objective='likelihood', parameters='noise,covariance')
MAX_DECADES = 1.5
SECONDS = 100.0


def trial(seed: int, *, off: bool) -> tuple[int, dict[str, tuple[bool, bool]]]:
    """Return how many parameters changed; of the known ones, whether, and whether recovered.

    The start is `off` by factors that are drawn, or right.
    """
    drawn = stream(seed, 'tuning', 'benchmark', 'recovery').uniform(-1.0, 1.0, 2)
    factors = (10.0 ** (MAX_DECADES * drawn) if off else np.ones(2)).tolist()
    with tempfile.TemporaryDirectory() as folder:
        setup = wander_setup(Path(folder), VELOCITY / factors[0])
        source = Wander('', seed=seed, seconds=SECONDS, stated=VARIANCE / factors[1])
        found = {one.parameter.name: one for one in tune([source], setup, OPTIONS).parameters}
    known = {}
    for name, factor in zip(NAMES, factors, strict=True):
        one = found[name]
        inside = (one.low or 0.0) <= factor <= (one.high or np.inf)
        known[name] = (one.changed, one.changed and inside)
    return sum(one.changed for one in found.values()), known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--trials', type=int, default=200, help='default %(default)s')
    parser.add_argument('--jobs', type=int, default=1, help='default %(default)s')
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results')
    options = parser.parse_args()
    seeds = range(options.trials)
    right = map_in_processes(partial(trial, off=False), seeds, jobs=options.jobs)
    claims = sum(changed > 0 for changed, _ in right)
    print(f'right from the start: {claims} of {len(right)} trials changed a parameter')
    off = map_in_processes(partial(trial, off=True), seeds, jobs=options.jobs)
    rows, held, tried = [], 0, 0
    for name in NAMES:
        changed = sum(known[name][0] for _, known in off)
        inside = sum(known[name][1] for _, known in off)
        held, tried = held + inside, tried + changed
        rows.append((name, f'{changed} of {len(off)}', f'{inside} ({inside / changed:.1%})'))
    others = sum(count > 2 for count, _ in off)
    table(('known parameter', 'changed', 'truth inside the interval'), rows)
    print(f'others changed too: {others} of {len(off)} trials')
    figures = {'changed': f'{claims}/{len(right)}', 'inside': f'{held}/{tried}'}
    write(options.out, 'tuning_recovery', {'figures': figures})


if __name__ == '__main__':
    main()
