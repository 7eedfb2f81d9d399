# SPDX-License-Identifier: Apache-2.0
"""How often intervals cover and tests reject, for processes of known distance; takes long."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import table

from sim2real_eval.uncertainty import ScoredRuns, UncertaintyOptions, uncertainty
from sim_sensors.seeding import stream

_NORMAL, _LOGNORMAL, _GAMMA = stats.norm(), stats.lognorm(0.5), stats.gamma(2)
CASES: dict[str, tuple[Any, Any]] = {
    'normal, same': (_NORMAL, _NORMAL),
    'normal + 0.5 sd': (_NORMAL, stats.norm(0.5)),
    'normal + 1 sd': (_NORMAL, stats.norm(1.0)),
    'normal + 2 sd': (_NORMAL, stats.norm(2.0)),
    'normal x 2': (_NORMAL, stats.norm(0.0, 2.0)),
    'normal x 0.5': (_NORMAL, stats.norm(0.0, 0.5)),
    'log-normal, same': (_LOGNORMAL, _LOGNORMAL),
    'log-normal x 1.5': (_LOGNORMAL, stats.lognorm(0.5, scale=1.5)),
    'log-normal x 3': (_LOGNORMAL, stats.lognorm(0.5, scale=3.0)),
    'gamma, same': (_GAMMA, _GAMMA),
    'gamma x 2': (_GAMMA, stats.gamma(2, scale=2.0)),
}


def draw(law: Any, motion: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return runs with this law; normal scores of runs of one motion correlate by 0.7."""
    scores = np.sqrt(0.7) * motion + np.sqrt(0.3) * rng.normal(size=len(motion))
    return np.asarray(law.ppf(stats.norm.cdf(scores)))


def trial(case: str, n: int, paired: bool, coordinates: int, k: int) -> tuple[float, ...]:
    """Return distance, ends of the interval and chance; coordinates but the first are alike."""
    rng = stream(k, f'{case} {n} {paired} {coordinates}', 'benchmark', 'calibration')
    real, sim = [], []
    for coordinate in range(coordinates):
        one, other = CASES[case] if coordinate == 0 else (CASES[case][0],) * 2
        motion = rng.normal(size=n)
        real.append(draw(one, motion, rng))
        sim.append(draw(other, motion if paired else rng.normal(size=n), rng))
    names = tuple(f'{i}' for i in range(n))
    others = names if paired else tuple(f'drive {i}' for i in range(n))
    found = uncertainty(
        ScoredRuns(np.stack(real, 1), names, ('',) * n),
        {'m': ScoredRuns(np.stack(sim, 1), others, ('',) * n)},
        UncertaintyOptions(resamples=1000),
        seed=k,
    ).models[0]
    return found.distance, found.low or 0.0, found.high or 0.0, found.chance or 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--trials', type=int, default=2000, help='default %(default)s')
    parser.add_argument('--coordinates', type=int, default=2, help='default %(default)s')
    options = parser.parse_args()
    shares = (np.arange(200_000) + 0.5) / 200_000
    rows = []
    for case, (one, other) in CASES.items():
        truth = float(np.mean(np.abs(one.ppf(shares) - other.ppf(shares)))) / options.coordinates
        for n in (10, 30):
            for paired in (False, True):
                found = np.array(
                    [trial(case, n, paired, options.coordinates, k) for k in range(options.trials)]
                )
                seen, low, high, chance = found.T
                rows.append(
                    (
                        case,
                        f'{n}',
                        'pairs' if paired else 'apart',
                        f'{truth:.3f}',
                        f'{seen.mean():.3f}',
                        f'{np.mean((low <= truth) & (truth <= high)):.1%}',
                        f'{np.mean(low > truth):.1%}',
                        f'{np.mean(high < truth):.1%}',
                        f'{np.mean(chance <= 0.05):.1%}',
                    )
                )
    head = ('case', 'n', 'runs', 'true', 'mean seen', 'covers', 'above', 'below', 'p <= 0.05')
    table(head, rows)


if __name__ == '__main__':
    main()
