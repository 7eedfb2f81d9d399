# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""How often intervals cover and tests reject, for processes of known distance; takes long.

Runs of one motion correlate by 0.7. Every trial is a study of its own with its own seed, so that
the tables are the same for any number of processes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import table, write

from sim2real_eval.metrics.interval import ScoredRuns
from sim2real_eval.metrics.options import UncertaintyOptions
from sim2real_eval.metrics.uncertainty import uncertainty
from sim_sensors.core.seeding import stream

CORRELATION = 0.7
RUNS = (10, 30)
_NORMAL, _LOGNORMAL, _GAMMA = stats.norm(), stats.lognorm(0.5), stats.gamma(2)
SAME = {'normal': _NORMAL, 'log-normal': _LOGNORMAL, 'gamma': _GAMMA}
DIFFERENT: dict[str, tuple[Any, Any]] = {
    'normal + 0.5 sd': (_NORMAL, stats.norm(0.5)),
    'normal + 1 sd': (_NORMAL, stats.norm(1.0)),
    'normal + 2 sd': (_NORMAL, stats.norm(2.0)),
    'normal x 2': (_NORMAL, stats.norm(0.0, 2.0)),
    'normal x 0.5': (_NORMAL, stats.norm(0.0, 0.5)),
    'log-normal + 0.5 sd': (_LOGNORMAL, stats.lognorm(0.5, loc=0.5 * _LOGNORMAL.std())),
    'log-normal x 1.5': (_LOGNORMAL, stats.lognorm(0.5, scale=1.5)),
    'log-normal x 3': (_LOGNORMAL, stats.lognorm(0.5, scale=3.0)),
    'gamma x 2': (_GAMMA, stats.gamma(2, scale=2.0)),
}
# Reality and two models, which are equally far from it except in the last.
PAIRS: dict[str, tuple[Any, Any, Any]] = {
    'equal, as reality': (_NORMAL, _NORMAL, _NORMAL),
    'equal, + 1 sd': (_NORMAL, stats.norm(1.0), stats.norm(1.0)),
    'opposite, 0.5 sd': (_NORMAL, stats.norm(0.5), stats.norm(-0.5)),
    'opposite, 1 sd': (_NORMAL, stats.norm(1.0), stats.norm(-1.0)),
    'opposite, 2 sd': (_NORMAL, stats.norm(2.0), stats.norm(-2.0)),
    '+ 0.5 and + 1.5 sd': (_NORMAL, stats.norm(0.5), stats.norm(1.5)),
}


def draw(law: Any, motion: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return runs with this law; normal scores of runs of one motion correlate."""
    own = rng.normal(size=len(motion))
    scores = np.sqrt(CORRELATION) * motion + np.sqrt(1.0 - CORRELATION) * own
    return np.asarray(law.ppf(stats.norm.cdf(scores)))


def sides(
    laws: tuple[Any, ...], n: int, paired: bool, coordinates: int, rng: np.random.Generator
) -> list[ScoredRuns]:
    """Return real runs and those of models, which share their motions; the first coordinate has
    the laws, the others that of the first side."""
    columns: list[list[np.ndarray]] = [[] for _ in laws]
    for coordinate in range(coordinates):
        real = rng.normal(size=n)
        motions = real if paired else rng.normal(size=n)
        for side, law in enumerate(laws):
            chosen = law if coordinate == 0 else laws[0]
            columns[side].append(draw(chosen, motions if side else real, rng))
    names = tuple(f'{i}' for i in range(n))
    others = names if paired else tuple(f'drive {i}' for i in range(n))
    return [
        ScoredRuns(np.stack(values, 1), others if side else names, ('',) * n)
        for side, values in enumerate(columns)
    ]


def distance_trial(
    laws: tuple[Any, Any],
    name: str,
    n: int,
    paired: bool,
    coordinates: int,
    resamples: int,
    k: int,
) -> tuple[float, ...]:
    """Return distance, ends of the interval and chance."""
    rng = stream(k, f'{name} {n} {paired} {coordinates}', 'benchmark', 'calibration')
    real, sim = sides(laws, n, paired, coordinates, rng)
    options = UncertaintyOptions(resamples=resamples)
    found = uncertainty(real, {'m': sim}, options, seed=k).models[0]
    assert found.low is not None
    assert found.high is not None
    assert found.p_value is not None
    return found.distance, found.low, found.high, found.p_value


def pair_trial(
    laws: tuple[Any, Any, Any], name: str, n: int, paired: bool, coordinates: int, resamples: int,
    k: int,
) -> tuple[float, ...]:  # fmt: skip
    """Return difference, ends of its interval, and its significance."""
    rng = stream(k, f'{name} {n} {paired} {coordinates}', 'benchmark', 'calibration of pairs')
    real, *sims = sides(laws, n, paired, coordinates, rng)
    models = dict(zip('ab', sims, strict=True))
    found = uncertainty(real, models, UncertaintyOptions(resamples=resamples), seed=k).pairs[0]
    assert found.low is not None
    assert found.high is not None
    return found.difference, found.low, found.high, float(bool(found.distinguishable))


def mean_distance(one: Any, other: Any) -> float:
    """Return W1 of two laws."""
    shares = (np.arange(200_000) + 0.5) / 200_000
    return float(np.mean(np.abs(one.ppf(shares) - other.ppf(shares))))


class Trials:
    """Many studies of every case, in processes."""

    def __init__(self, options: argparse.Namespace, pool: ProcessPoolExecutor) -> None:
        self.options = options
        self.pool = pool

    def run(
        self,
        trial: Callable[..., tuple[float, ...]],
        cases: dict[str, tuple[Any, ...]],
        trials: int,
    ) -> Iterator[tuple[str, int, bool, np.ndarray]]:
        """Yield case, runs, whether paired, and the columns of all trials."""
        settings = (self.options.coordinates, self.options.resamples)
        for name, laws in cases.items():
            if self.options.only not in name:
                continue
            for n in RUNS:
                for paired in (False, True):
                    work = partial(trial, laws, name, n, paired, *settings)
                    found = list(self.pool.map(work, range(trials), chunksize=25))
                    yield name, n, paired, np.array(found).T


HEAD = ('case', 'n', 'runs', 'trials', 'true', 'mean seen', 'covers', 'above', 'below', 'rejects')


def row(
    name: str, n: int, paired: bool, truth: float, found: np.ndarray, rejected: np.ndarray
) -> tuple[str, ...]:
    """Return what a table says of a case."""
    seen, low, high, _ = found
    shares = (
        np.mean((low <= truth + 1e-12) & (truth <= high + 1e-12)),
        np.mean(low > truth + 1e-12),
        np.mean(high < truth - 1e-12),
        np.mean(rejected),
    )
    return (
        name,
        f'{n}',
        'pairs' if paired else 'unpaired',
        f'{len(seen)}',
        f'{truth:.3f}',
        f'{seen.mean():.3f}',
        *(f'{100 * share:.1f} %' for share in shares),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--trials', type=int, default=2000, help='default %(default)s')
    parser.add_argument('--coordinates', type=int, default=2, help='default %(default)s')
    parser.add_argument('--resamples', type=int, default=1000, help='default %(default)s')
    parser.add_argument('--jobs', type=int, default=2, help='processes, default %(default)s')
    parser.add_argument('--only', default='', help='cases with this text in their name')
    parser.add_argument(
        'tables', nargs='*', default=['same', 'different', 'pairs'], help='default all three'
    )
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results')
    options = parser.parse_args()
    settings = {
        key: getattr(options, key) for key in ('trials', 'coordinates', 'resamples', 'only')
    }
    with ProcessPoolExecutor(options.jobs) as pool:
        trials = Trials(options, pool)
        for title in options.tables:
            rows = []
            if title == 'pairs':
                for name, n, paired, found in trials.run(pair_trial, PAIRS, options.trials):
                    real, *models = PAIRS[name]
                    one, other = (mean_distance(real, model) for model in models)
                    truth = (one - other) / options.coordinates
                    rows.append(row(name, n, paired, truth, found, found[3]))
                    print('  '.join(rows[-1]), flush=True)
            else:
                same = {f'{name}, same': (law, law) for name, law in SAME.items()}
                cases = same if title == 'same' else DIFFERENT
                for name, n, paired, found in trials.run(distance_trial, cases, options.trials):
                    truth = mean_distance(*cases[name]) / options.coordinates
                    rows.append(row(name, n, paired, truth, found, found[3] <= 0.05))
                    print('  '.join(rows[-1]), flush=True)
            print(f'\n{title}')
            table(HEAD, rows)
            told = [dict(zip(HEAD, one, strict=True)) for one in rows]
            write(options.out, f'uncertainty_calibration_{title}', {**settings, 'rows': told})


if __name__ == '__main__':
    main()
