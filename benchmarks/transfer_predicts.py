# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Which measure tells what a filter tuned in simulation costs on drives that nobody has seen?

Realities with known errors, and sensor models of graded wrongness; see `realities.py`. The cost of
a model is the error of the filter tuned on its simulated drives over that of the filter tuned on
real drives, both on other real drives. Each measure is taken on the first drives alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import kendalltau

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import table, write
from realities import EXACT, MODELS, Models, Reality, allan_distance, scatter_distance

import sim2real_eval as s2r
from sim2real_eval.benches.transfer import (
    MemorySource,
    Transfer,
    TransferOptions,
    measure_transfer,
)
from sim2real_eval.benches.tuning.evaluations import JudgeLosses, TuningTask
from sim2real_eval.benches.tuning.parameters import set_parameters
from sim2real_eval.common.workers import map_in_processes
from sim2real_eval.judge.protocol import Judge, JudgeRequest, load_judge
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.metrics.scores import vepd
from sim2real_eval.recording.recording import Recording

EXAMPLES = Path(__file__).resolve().parents[1] / 'examples' / 'estimator_in_python'
NOISE = 'process_noise_covariance'


class Estimator(NamedTuple):
    """An estimator, its tuned parameters, and the number of tunings that all drives meet."""

    judge: Judge
    parameters: str
    tunings: int


def estimator_named(name: str) -> Estimator:
    """Return one of `ESTIMATORS`; all start with the true heading of the drives, east."""
    if name == 'clean':
        judge = JudgeSetup.load('clean').with_start(start_heading=0.0)
        return Estimator(judge, f'{NOISE}.velocity,{NOISE}.acceleration', 24)
    if name == 'error_state':
        judge = load_judge(JudgeRequest('error_state'))
        return Estimator(judge, 'accelerometer_noise,accelerometer_bias_walk', 16)
    judge = load_judge(JudgeRequest(f'{EXAMPLES / "vqf_kalman.py"}:VqfKalman'))
    return Estimator(judge, 'acceleration', 8)


ESTIMATORS = {'clean': 20, 'error_state': 10, 'vqf_kalman': 12}
"""Estimators, and the number of realities of each: 30 min on two cores in all."""

TRANSFER = 'transfer loss'
TUNED = 'VEPD, tuned filter'
COST = 'cost'
Scores = dict[str, dict[str, float]]


def sources(recordings: Sequence[Recording]) -> list[MemorySource]:
    return [MemorySource(recording) for recording in recordings]


def mean_errors(
    transfer: Transfer, options: TransferOptions, unseen: Sequence[Recording]
) -> list[float]:
    """Return the mean speed error on other drives, tuned on real drives and by each model."""
    task = TuningTask(
        tuple(sources(unseen)), transfer.judge, transfer.parameters, 'speed', 1, options.warmup
    )
    losses = JudgeLosses(task)
    tunings = [transfer.values, *(model.values for model in transfer.models)]
    return [float(losses.all_losses(values)['speed'].mean()) for values in tunings]


def vepd_by(judge: Judge, real: Sequence[Recording], twins: Sequence[Recording]) -> float:
    """Return VEPD between recordings and their twins."""
    scores = [
        [
            s2r.run_judge(recording, judge, start_heading=judge.lacks_heading(recording)).score
            for recording in side
        ]
        for side in (real, twins)
    ]
    return vepd(*scores).vepd


def measure_reality(number: int, *, name: str, runs: int) -> Scores:
    """Return the measures and the cost of each model in one reality, for one estimator."""
    estimator = estimator_named(name)
    judge = estimator.judge
    reality = Reality(number)
    seen = [reality.recording(run) for run in range(runs)]
    unseen = [reality.recording(runs + run) for run in range(runs)]
    models = Models(reality, seen)
    twins = {model: models.twins(model) for model in (EXACT, *MODELS)}
    options = TransferOptions(
        objective='speed', parameters=estimator.parameters, tunings=estimator.tunings
    )
    simulated = {model: sources(recordings) for model, recordings in twins.items()}
    transfer = measure_transfer(sources(seen), simulated, judge, options)
    least, *errors = mean_errors(transfer, options, unseen)
    scores: Scores = {}
    for model, error in zip(transfer.models, errors, strict=True):
        recordings = twins[model.model]
        tuned = set_parameters(judge, transfer.parameters, model.values)
        scores[model.model] = {
            TRANSFER: model.loss,
            'distance of landscapes': model.landscape,
            # A constant landscape has no correlation.
            '1 - correlation of landscapes': 1.0 - float(np.nan_to_num(model.correlation)),
            TUNED: vepd_by(tuned, seen, recordings),
            'VEPD, filter as given': vepd_by(judge, seen, recordings),
            **(
                {'innovation likelihood': model.other_losses['likelihood']}
                if 'likelihood' in model.other_losses
                else {}
            ),
            'Allan deviations': allan_distance(seen, recordings),
            'scatter of the fixes': scatter_distance(seen, recordings),
            COST: float(np.log(error / least)),
        }
    return scores


def candidates(scores: Scores) -> list[dict[str, float]]:
    """Return the models that a user may have: not the exact law."""
    return [values for model, values in scores.items() if model != EXACT]


def taus(realities: Sequence[Scores], measure: str) -> np.ndarray:
    """Return Kendall's tau of a measure with the cost over the models, by reality, `(n,)`."""
    pairs = [[(m[measure], m[COST]) for m in candidates(scores)] for scores in realities]
    return np.array([kendalltau(*zip(*rows, strict=True)).statistic for rows in pairs])


def first_choices(realities: Sequence[Scores], measure: str) -> np.ndarray:
    """Return the extra error of the model with the least of a measure, by reality, `(n,)`."""
    chosen = [min(candidates(scores), key=lambda m: m[measure]) for scores in realities]
    return np.expm1([model[COST] for model in chosen])


def mean_interval(values: np.ndarray, draws: int = 10_000) -> tuple[float, float, float]:
    """Return a mean over realities with its 95 % interval, which resamples them."""
    rows = np.random.default_rng(0).integers(0, len(values), (draws, len(values)))
    low, high = np.quantile(values[rows].mean(axis=1), (0.025, 0.975))
    return float(values.mean()), float(low), float(high)


def summarise(realities: Sequence[Scores]) -> list[dict[str, Any]]:
    """Return tau, the tau that the transfer loss has more, and the cost of the first choice."""
    measures = [name for name in next(iter(realities[0].values())) if name != COST]
    own = taus(realities, TRANSFER)
    return [
        {
            'measure': measure,
            'tau': mean_interval(taus(realities, measure)),
            'transfer loss more': mean_interval(own - taus(realities, measure)),
            'first choice': mean_interval(first_choices(realities, measure)),
        }
        for measure in measures
    ]


def medians(realities: Sequence[Scores]) -> list[dict[str, Any]]:
    """Return medians over realities by model."""
    return [
        {'model': model}
        | {
            name: float(np.median([s[model][name] for s in realities if model in s]))
            for name in realities[0][model]
        }
        for model in realities[0]
    ]


def show(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    print(f'\n{name}')
    columns = ('tau', 'transfer loss more', 'first choice')
    table(('measure', *columns), [
        (row['measure'], *('{:.2f} [{:.2f}, {:.2f}]'.format(*row[column]) for column in columns))
        for row in rows
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--realities', type=int, help='by default as in ESTIMATORS')
    parser.add_argument('--runs', type=int, default=6, help='default %(default)s')
    parser.add_argument('--first', type=int, default=0, help='number of the first reality')
    parser.add_argument('--estimators', nargs='+', default=list(ESTIMATORS), choices=ESTIMATORS)
    parser.add_argument('--jobs', type=int, default=2, help='processes, default %(default)s')
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results')
    options = parser.parse_args()
    figures, results = {}, {}
    for name in options.estimators:
        began = time.perf_counter()
        count = options.realities or ESTIMATORS[name]
        numbers = range(options.first, options.first + count)
        work = partial(measure_reality, name=name, runs=options.runs)
        realities = map_in_processes(work, numbers, jobs=options.jobs)
        rows = summarise(realities)
        show(name, rows)
        seconds = round(time.perf_counter() - began)
        print(f'{seconds} s', flush=True)
        figures |= {
            f'{name}: {row["measure"]}: {column}': row[column]
            for row in rows
            for column in ('tau', 'transfer loss more', 'first choice')
        }
        results[name] = {
            'realities': count, 'seconds': seconds, 'rows': rows, 'models': medians(realities),
            'scores': realities,
        }  # fmt: skip
    settings = {key: getattr(options, key) for key in ('runs', 'first')}
    write(options.out, 'transfer_predicts', {**settings, 'figures': figures, **results})


if __name__ == '__main__':
    main()
