# SPDX-License-Identifier: Apache-2.0
"""Does a smaller VEPD mean that a filter tuned in simulation works better on reality?

Realities with known errors, sensor models of graded wrongness, and what a user would lose by each.
The errors of a reality (reflections by place, resonances, bursts, vibration with the wheels) are
laws that no model of the package has. A judge is tuned by the losses of `sim2real tune`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import kendalltau

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import table, write
from realities import EXACT, MODELS, Models, Reality, allan_distance, scatter_distance
from tuned_judge import RMS, TunedJudge, at_start

import sim2real_eval as s2r
from sim2real_eval.common.workers import map_in_processes
from sim2real_eval.metrics.scores import vepd
from sim2real_eval.recording.recording import Recording

JUDGES = ('clean', 'paper_released', 'error_state')
OUTCOMES = {
    'loss': 'loss by tuning in simulation',
    'speed': 'predicted speed error',
    'position': 'predicted position error',
}
Scores = dict[str, dict[str, Any]]


def scored(recordings: Sequence[Recording], name: str) -> list[Any]:
    """Return the scores of recordings by a judge."""
    judge = name if name == 'error_state' else at_start(name)
    return [s2r.run_judge(one, judge).score for one in recordings]


def of_reality(number: int, *, runs: int, models: Sequence[str], evaluations: int) -> Scores:
    """Return what each model scores, and what it costs, in one reality."""
    reality = Reality(number)
    seen = [reality.recording(run) for run in range(runs)]
    unseen = [reality.recording(runs + run) for run in range(runs)]
    made = Models(reality, seen)
    best = TunedJudge(seen, evaluations)
    least = best.errors(unseen)
    real = {judge: scored(seen, judge) for judge in JUDGES}
    found: Scores = {}
    for name in models:
        twins = made.twins(name)
        mine = TunedJudge(twins, evaluations)
        believed, true = mine.errors(made.twins(name, unseen)), mine.errors(unseen)
        simulated = {judge: scored(twins, judge) for judge in JUDGES}
        rmse = [np.mean([one.rmse for one in side['clean']]) for side in (real, simulated)]
        found[name] = {
            **{f'VEPD, {judge}': vepd(real[judge], simulated[judge]).vepd for judge in JUDGES},
            'VEPD, the tuned judge': vepd(mine.scores(seen), mine.scores(twins)).vepd,
            'RMSE alone, clean': float(abs(rmse[0] - rmse[1])),
            'scatter of the fixes': scatter_distance(seen, twins),
            'Allan deviations': allan_distance(seen, twins),
            'loss': float(np.log(true['speed'] / least['speed'])),
            **{kind: float(abs(np.log(believed[kind] / true[kind]))) for kind in RMS},
            'errors': {'believed': believed, 'true': true, 'least': least},
            'values': mine.values,
        }
    return found


def indicators(found: Scores) -> list[str]:
    """Return what is held against the outcomes, in order."""
    first = next(iter(found.values()))
    return list(first)[: list(first).index('loss')]


def candidates(found: Scores) -> list[dict[str, Any]]:
    """Return what there is to choose from: nobody has the exact law."""
    return [one for name, one in found.items() if name != EXACT]


def first_choice(realities: Sequence[Scores], indicator: str) -> np.ndarray:
    """Return what each reality's model with the least of an indicator loses, `(n,)`."""
    chosen = [min(candidates(found), key=lambda one: one[indicator]) for found in realities]
    return np.array([one['loss'] for one in chosen])


def taus(realities: Sequence[Scores], indicator: str, outcome: str) -> np.ndarray:
    """Return Kendall's tau over the models of each reality, `(n,)`."""
    rows = []
    for found in realities:
        pairs = [(one[indicator], one[outcome]) for one in candidates(found)]
        rows.append(kendalltau(*zip(*pairs, strict=True)).statistic)
    return np.array(rows)


def interval(values: np.ndarray, draws: int = 10_000) -> tuple[float, float, float]:
    """Return a mean over realities with the ends of its 95 % interval, which resamples them."""
    chosen = np.random.default_rng(0).integers(0, len(values), (draws, len(values)))
    low, high = np.quantile(values[chosen].mean(axis=1), (0.025, 0.975))
    return float(values.mean()), float(low), float(high)


def summary(realities: Sequence[Scores]) -> list[dict[str, Any]]:
    """Return mean tau and interval by indicator and outcome, also less that of the first."""
    names = indicators(realities[0])
    rows = []
    for name in names:
        row: dict[str, Any] = {'indicator': name}
        for outcome in OUTCOMES:
            own, first = (taus(realities, one, outcome) for one in (name, names[0]))
            row[outcome] = interval(own)
            row[f'{outcome}, less the first'] = interval(own - first)
        row['loss of the first choice'] = interval(first_choice(realities, name))
        rows.append(row)
    return rows


def by_model(realities: Sequence[Scores]) -> list[dict[str, Any]]:
    """Return medians over realities by model."""
    names = (*indicators(realities[0]), *OUTCOMES)
    return [
        {
            'model': model,
            **{
                name: float(np.median([found[model][name] for found in realities]))
                for name in names
            },
        }
        for model in realities[0]
    ]


def report(found: Sequence[Scores], settings: dict[str, int], out: Path) -> None:
    """Print and write what the realities come to."""
    rows = summary(found)
    columns = (*OUTCOMES, 'loss of the first choice')
    table(('indicator', *columns), [
        (row['indicator'], *('{:.2f} [{:.2f}, {:.2f}]'.format(*row[one]) for one in columns))
        for row in rows
    ])  # fmt: skip
    models = by_model(found)
    table(tuple(models[0]), [
        tuple(f'{v:.3g}' if isinstance(v, float) else v for v in row.values()) for row in models
    ])  # fmt: skip
    figures = {f'{row["indicator"]}: {one}': row[one] for row in rows for one in columns}
    told = {'figures': figures, 'rows': rows, 'models': models, 'found': found}
    write(out, 'vepd_predicts', {**settings, **told})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--realities', type=int, default=10, help='default %(default)s')
    parser.add_argument('--runs', type=int, default=6, help='default %(default)s')
    parser.add_argument('--evaluations', type=int, default=20, help='default %(default)s')
    parser.add_argument('--jobs', type=int, default=2, help='processes, default %(default)s')
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results')
    options = parser.parse_args()
    settings = {key: getattr(options, key) for key in ('realities', 'runs', 'evaluations')}
    work = partial(of_reality, models=(EXACT, *MODELS), runs=options.runs,
                   evaluations=options.evaluations)  # fmt: skip
    found = map_in_processes(work, range(options.realities), jobs=options.jobs)
    report(found, settings, options.out)


if __name__ == '__main__':
    main()
