# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""White noise behind a low pass: how well its density is found, and what else is claimed.

A record is white noise of density 1 through a Butterworth filter of order 1 or 2, sampled at its
output. Per rate over bandwidth, 1 to 50, and length, over five rates: the share of densities
within 5 %, the share within their 95 % interval, and the share of records in which a term is
claimed that is not there. `--random N` analyses N records of random length, filter and added
noise, and counts those that raise an error; a refusal in one line is none.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.signal import butter, lfilter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import table

from sim2real_eval.characterization.axis_fit import fit_axis
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray

RATES = (50.0, 100.0, 200.0, 400.0, 1000.0)
RATIOS = (1.0, 2.5, 5.0, 8.0, 12.0, 20.0, 30.0, 50.0)
LENGTHS = {'300 s': 300.0, '4 h': 14_400.0}
RESULTS = Path(__file__).resolve().parent / 'results' / 'allan_low_pass.md'
Case = tuple[float, float, float, int]


def filtered(noise: FloatArray, ratio: float, order: int) -> FloatArray:
    """White noise `(n,)` behind a low pass of rate / ratio; up to a ratio of 2 there is none."""
    if ratio <= 2.0:
        return noise
    return np.asarray(lfilter(*butter(order, 1.0 / ratio, fs=1.0), noise))


def measured(case: Case) -> tuple[float, float, float, bool, bool]:
    """Density, its interval, whether another term is claimed, and whether a low pass is."""
    ratio, rate, seconds, seed = case
    rng = np.random.default_rng([int(10 * ratio), int(rate), int(seconds), seed])
    noise = np.sqrt(rate) * rng.standard_normal(int(seconds * rate) + 4000)
    values = filtered(noise, ratio, 1 + seed % 2)[4000:]
    fit = fit_axis(values, rate)
    assert fit is not None
    terms = fit.choice.fit.terms
    claimed = {name for name, term in terms.coefficients().items() if term.observable} - {'white'}
    low_pass = 'bandwidth' in claimed
    false = bool(claimed - {'bandwidth'}) or (low_pass and ratio <= 2.0)
    white = terms.white
    return white.value, white.lower, white.upper, false, low_pass


def random_record(seed: int) -> str:
    """Return the error of an analysis of a random record, or nothing."""
    rng = np.random.default_rng([seed, 40])
    n = int(10.0 ** rng.uniform(0.8, 4.3))
    values = rng.standard_normal(n)
    if rng.random() < 0.7:
        order, share = int(rng.integers(1, 5)), rng.uniform(0.005, 0.49)
        values = np.asarray(lfilter(*butter(order, share, fs=1.0), values))
    for scale, part in (
        (rng.random() < 0.3, np.cumsum(rng.standard_normal(n)) * 10.0 ** rng.uniform(-4, 0)),
        (rng.random() < 0.3, np.arange(n) * 10.0 ** rng.uniform(-6, 0)),
        (rng.random() < 0.3, np.sin(np.arange(n) * rng.uniform(0.001, 3.0)) * rng.uniform(0, 3)),
        (rng.random() < 0.2, np.diff(rng.standard_normal(n + 1)) * rng.uniform(0, 3)),
        (rng.random() < 0.2, np.exp(-np.arange(n) / rng.uniform(1, n)) * rng.uniform(0, 30)),
    ):
        values = values + scale * part
    if rng.random() < 0.3:
        step = 10.0 ** rng.uniform(-3, 1)
        values = np.rint(values / step) * step
    values = values * 10.0 ** rng.uniform(-9, 6)
    try:
        fit_axis(values, 10.0 ** rng.uniform(0, 3))
    except Sim2RealError:
        return ''
    except Exception as error:  # counted: there must be none
        return f'seed {seed}: {type(error).__name__}: {error}'
    return ''


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seeds', type=int, default=20, help='default %(default)s')
    parser.add_argument('--random', type=int, default=0, metavar='N', help='random records')
    parser.add_argument('--jobs', type=int, default=os.cpu_count(), help='default: all cores')
    options = parser.parse_args()
    with ProcessPoolExecutor(options.jobs) as pool:
        if options.random:
            errors = list(
                filter(None, pool.map(random_record, range(options.random), chunksize=50))
            )
            print(f'{options.random} random records, {len(errors)} errors', *errors, sep='\n')
            return int(bool(errors))
        rows = []
        for (length, seconds), ratio in itertools.product(LENGTHS.items(), RATIOS):
            # Long records take long, and scatter less.
            seeds = options.seeds if seconds < 1000.0 else max(options.seeds // 5, 1)
            cases = [(ratio, rate, seconds, seed) for rate in RATES for seed in range(seeds)]
            fits = np.array(list(pool.map(measured, cases)))
            value, lower, upper, false, low_pass = fits.T
            rows.append(
                (
                    length,
                    f'{ratio:g}',
                    f'{np.mean(np.abs(value - 1.0) < 0.05):.1%}',
                    f'{np.abs(value - 1.0).max():.1%}',
                    f'{np.mean((lower <= 1.0) & (upper >= 1.0)):.1%}',
                    f'{np.mean(low_pass):.1%}',
                    f'{np.mean(false):.1%}',
                )
            )
            print(rows[-1], file=sys.stderr, flush=True)
    head = ('length', 'rate / bandwidth', 'N within 5 %', 'largest error', 'in 95 % interval',
            'low pass found', 'false term')  # fmt: skip
    table(head, rows)
    lines = [head, ('---',) * len(head), *rows]
    records = f'{len(RATES)} rates, {options.seeds} seeds each, a fifth of them for long records'
    text = '\n'.join(f'| {" | ".join(line)} |' for line in lines)
    if options.seeds >= 20:
        RESULTS.write_text(f'{records}\n\n{text}\n', encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
