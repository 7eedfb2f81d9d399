# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""How often fitted terms are within three sigma of what was simulated; takes minutes.

`--weak`: flicker of shares of the one whose plateau is white noise of 30 samples, how often it is
seen in 400 records of 16,384 samples, and how large it then is.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / 'test'))

from allan_examples import record, recovered, truth
from measuring import table

from sim2real_eval.characterization.allan import allan_curve
from sim2real_eval.characterization.allan_fit import fit_terms
from sim_sensors.core.seeding import stream

TERMS = ('white', 'bias_instability', 'random_walk')


def weak() -> None:
    rows, n = [], 1 << 14
    for share in (0.2, 0.15, 0.1):
        given = truth(n, 100.0, walk=False)
        given['bias_instability'] *= share
        seen = []
        for seed in range(400):
            values = record(given, n, 100.0, stream(seed, 'scores', 'test', 'recovery'))
            one = fit_terms(allan_curve(values, 100.0)).terms.bias_instability
            if one.observable:
                error = one.value - given['bias_instability']
                seen.append((error / one.std, one.value / given['bias_instability']))
        rows.append((f'{share:g}', f'{len(seen)}', *(f'{x:.2f}' for x in np.mean(seen, axis=0))))
    table(('share', 'seen of 400', 'mean error / stated', 'value / true'), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seeds', type=int, default=100, help='default %(default)s')
    parser.add_argument('--samples', type=int, default=360_000, help='default %(default)s')
    parser.add_argument('--weak', action='store_true', help='weak flicker instead')
    options = parser.parse_args()
    if options.weak:
        weak()
        return
    rows = []
    for rate in (10.0, 100.0, 1000.0):
        given = truth(options.samples, rate)
        good, found = 0, []
        for seed in range(options.seeds):
            rng = stream(seed, f'{rate:g}', 'benchmark', 'recovery')
            values = record(given, options.samples, rate, rng)
            terms = fit_terms(allan_curve(values, rate)).terms
            good += recovered(terms, given)
            found.append([getattr(terms, name) for name in TERMS])
        cells = []
        for k, name in enumerate(TERMS):
            seen = [row[k] for row in found if row[k].observable]
            scatter = np.std([one.value for one in seen]) / given[name]
            stated = np.median([one.std for one in seen]) / given[name]
            cells.append(f'{scatter:.2%} / {stated:.2%}')
        rows.append((f'{rate:g} Hz', f'{good} of {options.seeds}', *cells))
    table(('rate', 'all within 3 sigma', *(f'{name}: scatter / stated' for name in TERMS)), rows)


if __name__ == '__main__':
    main()
