# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Time of everything that resampling tells of 5 models and 30 runs, against a loop over scipy."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from scipy.stats import wasserstein_distance

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sim2real_eval.metrics.interval import ScoredRuns
from sim2real_eval.metrics.options import UncertaintyOptions
from sim2real_eval.metrics.uncertainty import uncertainty

_LOOPED = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--resamples', type=int, default=10_000, help='default %(default)s')
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    motions = tuple(f'{i}' for i in range(30))
    scenarios = tuple(('line', 'circle', 'sine')[i % 3] for i in range(30))
    real = ScoredRuns(rng.normal(size=(30, 2)), motions, scenarios)
    sims = {
        f'm{k}': ScoredRuns(rng.normal(0.3 * k, 1.0, (30, 2)), motions, scenarios)
        for k in range(5)
    }
    settings = UncertaintyOptions(resamples=options.resamples)
    times = []
    for _ in range(5):
        start = time.process_time()
        uncertainty(real, sims, settings)
        times.append(time.process_time() - start)
    start = time.process_time()
    for _ in range(_LOOPED):
        for runs in sims.values():
            drawn = rng.integers(30, size=30)
            for k in range(2):
                wasserstein_distance(real.values[drawn, k], runs.values[drawn, k])
    # That was one resample of the motions, 10 distances; the permutation test takes 10 for the
    # models and 40 for the pairs. Intervals are left out of the loop's account.
    loop = 6 * (time.process_time() - start) / _LOOPED * options.resamples
    best = min(times)
    print(f'uncertainty of 5 models, 30 runs, {options.resamples} resamples: {best:.2f} s')
    print(f'as many distances by scipy in a loop: {loop:.1f} s, {loop / best:.0f} times')


if __name__ == '__main__':
    main()
