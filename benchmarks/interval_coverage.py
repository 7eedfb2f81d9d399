# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""How often the 95 % interval holds the true distance, law by law, and when the output warns.

Both coordinates change alike; runs of one motion correlate by 0.7. A cell is right when the
interval covers in 93 to 97 % of the trials without the finding `uncertainty.skewed`, or more.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import table, write
from uncertainty_calibration import draw

from sim2real_eval.metrics.interval import ScoredRuns
from sim2real_eval.metrics.options import UncertaintyOptions
from sim2real_eval.metrics.uncertainty import uncertainty
from sim_sensors.core.seeding import stream


class Mixture:
    """Two normal laws; quantiles by interpolation."""

    def __init__(self, share: float, one: tuple[float, float], other: tuple[float, float]) -> None:
        grid = np.linspace(-40.0, 40.0, 80_001)
        below = (1.0 - share) * stats.norm.cdf(grid, *one) + share * stats.norm.cdf(grid, *other)
        self.shares, first = np.unique(below, return_index=True)
        self.values = grid[first]

    def ppf(self, share: Any) -> Any:
        return np.interp(share, self.shares, self.values)


LAWS: dict[str, Any] = {
    'normal': stats.norm(),
    't3': stats.t(3),
    'bimodal': Mixture(0.5, (-2.0, 0.7), (2.0, 0.7)),
    'log-normal 0.5': stats.lognorm(0.5),
    'log-normal 0.9': stats.lognorm(0.9),
    'contaminated': Mixture(0.1, (0.0, 1.0), (0.0, 5.0)),
}
CHANGES = {'shift': (1.0, 1.0), 'scale': (1.6, 0.0), 'both': (1.6, 1.0)}
SHARES = (np.arange(200_000) + 0.5) / 200_000


def changed(law: Any, change: str, share: np.ndarray) -> np.ndarray:
    """Return quantiles of the simulated side: scaled, and shifted by a robust deviation."""
    scale, shift = CHANGES[change]
    sigma = float(law.ppf(0.8413) - law.ppf(0.1587)) / 2.0
    return np.asarray(scale * law.ppf(share) + shift * sigma)


class Changed:
    """The law of the simulated side."""

    def __init__(self, law: Any, change: str) -> None:
        self.law, self.change = law, change

    def ppf(self, share: Any) -> np.ndarray:
        return changed(self.law, self.change, share)


def trial(
    name: str, change: str, n: int, paired: bool, resamples: int, together: bool, k: int
) -> tuple[float, ...]:
    """Return distance, ends of the interval, and whether the output warns.

    `together`: the motions move both coordinates.
    """
    rng = stream(k, f'{name} {change} {n} {paired}', 'benchmark', 'coverage')
    law = LAWS[name]
    columns: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    motion = other = np.zeros(n)
    for coordinate in range(2):
        moves = coordinate == 0 or not together
        motion = rng.normal(size=n) if moves else motion
        columns[0].append(draw(law, motion, rng))
        if moves:
            other = motion if paired else rng.normal(size=n)
        columns[1].append(draw(Changed(law, change), other, rng))
    names = tuple(f'{i}' for i in range(n))
    others = names if paired else tuple(f'drive {i}' for i in range(n))
    real, sim = (
        ScoredRuns(np.stack(values, 1), side, ('',) * n)
        for values, side in zip(columns, (names, others), strict=True)
    )
    known = uncertainty(real, {'m': sim}, UncertaintyOptions(resamples=resamples), seed=k)
    found = known.models[0]
    assert found.low is not None
    assert found.high is not None
    warned = any(note.code == 'uncertainty.skewed' for note in known.notes)
    return found.distance, found.low, found.high, float(warned)


HEAD = (
    'law',
    'change',
    'n',
    'runs',
    'true',
    'covers',
    'above',
    'below',
    'warns',
    'covers without',
)


Cell = tuple[str, str, int, bool]


def row(cell: Cell, found: np.ndarray) -> tuple[str, ...]:
    """Return the row of a cell, law, change, runs and whether in pairs, from its trials."""
    name, change, n, paired = cell
    truth = float(np.mean(np.abs(changed(LAWS[name], change, SHARES) - LAWS[name].ppf(SHARES))))
    _, low, high, warned = found.T
    holds = (low <= truth + 1e-12) & (truth <= high + 1e-12)
    quiet = holds[warned == 0.0]
    shares = (holds.mean(), (low > truth).mean(), (high < truth).mean(), warned.mean())
    return (
        name, change, f'{n}', 'pairs' if paired else 'unpaired', f'{truth:.3f}',
        *(f'{100 * share:.1f} %' for share in shares),
        f'{100 * quiet.mean():.1f} %' if len(quiet) >= 0.1 * len(found) else '-',
    )  # fmt: skip


def cells(only: str = '') -> list[Cell]:
    """Return the cells of the laws with this text in their names."""
    every = product(LAWS, CHANGES, (5, 10, 30), (False, True))
    return [cell for cell in every if only in cell[0]]


def compact(rows: list[tuple[str, ...]]) -> list[str]:
    """Return the table of the README: coverage in %, in brackets how often the output warns."""
    found = {one[:4]: f'{float(one[5][:-2]):.0f} ({float(one[8][:-2]):.0f})' for one in rows}
    kinds = [(f'{n}', runs) for n in (5, 10, 30) for runs in ('unpaired', 'pairs')]
    lines = ['| | ' + ' | '.join(' '.join(kind) for kind in kinds) + ' |', '|---' * 7 + '|']
    for name, change in dict.fromkeys(one[:2] for one in rows):
        each = ' | '.join(found[name, change, n, runs] for n, runs in kinds)
        lines.append(f'| {name}, {change} | {each} |')
    return lines


def warnings(rows: list[tuple[str, ...]]) -> str:
    """Return how often the output warns where intervals cover too little, and elsewhere."""
    covers = np.array([float(one[5][:-2]) for one in rows])
    warns = np.array([float(one[8][:-2]) for one in rows])
    text = []
    for low, high in ((0.0, 90.0), (90.0, 93.0), (93.0, 100.1)):
        inside = (covers >= low) & (covers < high)
        told = f'{warns[inside].mean():.0f} %' if inside.any() else '-'
        text.append(
            f'coverage {low:g} to {min(high, 100):g} %: {inside.sum()} cells, warns {told}'
        )
    return '; '.join(text)


def by_law(rows: list[tuple[str, ...]], trials: int) -> dict[str, list[str]]:
    """Return in how many trials of each setting of a law the interval covers, and, of those with
    10 and 30 runs, the output warns.
    """
    found: dict[str, list[str]] = {}
    for one in rows:
        for name, column in (('covers', 5), ('warns', 8)):
            if name == 'covers' or one[2] != '5':
                count = round(float(one[column][:-2]) / 100.0 * trials)
                found.setdefault(f'{one[0]}: {name}', []).append(f'{count}/{trials}')
    return found


def report(rows: list[tuple[str, ...]], settings: dict[str, Any], out: Path) -> None:
    """Print the tables, and write the rows to `out`."""
    table(HEAD, rows)
    print(*compact(rows), warnings(rows), sep='\n')
    told = [dict(zip(HEAD, one, strict=True)) for one in rows]
    figures = by_law(rows, settings['trials'])
    name = 'interval_coverage' + ('_together' if settings['together'] else '')
    write(out, name, {**settings, 'figures': figures, 'rows': told})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--trials', type=int, default=1000, help='default %(default)s')
    parser.add_argument('--resamples', type=int, default=1000, help='default %(default)s')
    parser.add_argument(
        '--together', action='store_true', help='coordinates of a run correlate, too, by 0.7'
    )
    parser.add_argument('--jobs', type=int, default=2, help='processes, default %(default)s')
    parser.add_argument('--only', default='', help='laws with this text in their name')
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results')
    options = parser.parse_args()
    rows = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for cell in cells(options.only):
            work = partial(trial, *cell, options.resamples, options.together)
            found = np.array(list(pool.map(work, range(options.trials), chunksize=25)))
            rows.append(row(cell, found))
            print('  '.join(rows[-1]), flush=True)
    settings = {key: getattr(options, key) for key in ('trials', 'resamples', 'only', 'together')}
    report(rows, settings, options.out)


if __name__ == '__main__':
    main()
