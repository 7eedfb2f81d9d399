# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Whether fits to a receiver at standstill are as sure as they say, on logs of known law.

Each log has three axes of one kind. A score is the error of the logarithm of an observable
parameter over its stated standard uncertainty. The halves of real standstills, if
`SIM2REAL_REAL` has them, are fitted apart and compared.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / 'test'))

from gps_standstill_examples import KINDS, known_errors, recording_of
from measuring import table, write

from sim2real_eval.characterization.gps_characterization import characterize_gps, check_models
from sim2real_eval.characterization.markov_fit import fit_markov
from sim2real_eval.characterization.noise_terms import ParameterEstimate
from sim2real_eval.characterization.standstill_fixes import StandingOptions, standing_runs
from sim2real_eval.recording.reading import read_recording
from sim_sensors.core.seeding import stream

PERIOD, FIXES = 1.0, 1800
PARAMETERS = ('white', 'wander', 'time', 'walk')


def score(estimate: ParameterEstimate, truth: float) -> float:
    return math.log(estimate.value / truth) / (estimate.std / estimate.value)


def simulated(logs: int) -> tuple[list[tuple[str, ...]], dict[str, list[str]]]:
    """Return a row per kind, and the figures."""
    scores: dict[str, list[float]] = defaultdict(list)
    passed: dict[str, list[bool]] = defaultdict(list)
    covered: list[bool] = []
    for seed in range(logs):
        kind = KINDS[seed % len(KINDS)]
        rng = stream(seed, kind, 'benchmark', 'recovery')
        columns, truths = zip(
            *(known_errors(kind, rng, FIXES, PERIOD) for _ in range(3)), strict=True
        )
        truth = truths[0]
        std = math.hypot(truth.get('white', 0.0), truth.get('wander', 0.0))
        recording = recording_of(np.stack(columns, axis=1), PERIOD, stated=std)
        result = characterize_gps([recording], options=StandingOptions(reject_motion=False))
        for fit in result.axes:
            for name, value in truth.items():
                estimate = getattr(fit, name)
                if estimate.observable:
                    scores[f'{kind} {name}'].append(score(estimate, value))
        passed[kind].append(check_models(result, seed)[0].is_consistent)
        if kind not in ('walk', 'steps', 'both 600 s'):
            covered += [test.lower <= 1.0 <= test.upper for test in result.consistency]
    rows = []
    for kind in KINDS:
        cells = []
        for name in PARAMETERS:
            values = scores.get(f'{kind} {name}', [])
            cells.append(f'{np.std(values):.2f} ({len(values)})' if len(values) > 2 else '')
        rows.append((kind, *cells, f'{sum(passed[kind])} of {len(passed[kind])}'))
    together = np.concatenate(list(scores.values()))
    failed = [
        not is_passed
        for kind in KINDS
        if kind not in ('steps', 'rounded')
        for is_passed in passed[kind]
    ]
    return rows, {
        'scatter': [f'{together.std():.3g}'],
        'largest': [f'{np.abs(together).max():.3g}'],
        'beyond three': [f'{int(np.sum(np.abs(together) > 3.0))}/{len(together)}'],
        'false alarms': [f'{sum(failed)}/{len(failed)}'],
        'steps found': [f'{passed["steps"].count(False)}/{len(passed["steps"])}'],
        'covered': [f'{sum(covered)}/{len(covered)}'],
    }


def real_halves(folder: Path) -> list[str]:
    """Return how far the halves of real standstills are apart, over their uncertainty."""
    path = folder / 'drive0708' / 'drive0708_mcap'
    if not path.exists():
        return []
    runs, _ = standing_runs(read_recording(path))
    apart = []
    for run in runs:
        middle = len(run.time) // 2
        for column in run.error.T:
            first, second = (
                fit_markov([(run.time[part], column[part])])
                for part in (slice(middle), slice(middle, None))
            )
            for name in ('white', 'walk'):
                early, late = getattr(first, name), getattr(second, name)
                if early.observable and late.observable:
                    std = math.hypot(early.std / early.value, late.std / late.value)
                    apart.append(abs(math.log(early.value / late.value)) / std)
    return [f'{value:.3g}' for value in apart]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--logs', type=int, default=180, help='default %(default)s')
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results')
    options = parser.parse_args()
    rows, figures = simulated(options.logs)
    table(('kind', *(f'score of {name}' for name in PARAMETERS), 'gps.yaml passes'), rows)
    figures['halves'] = real_halves(Path(os.environ.get('SIM2REAL_REAL', '../shared/real')))
    print(*(f'{name}: {", ".join(values)}' for name, values in figures.items()), sep='\n')
    write(options.out, 'gps_recovery', {'rows': rows, 'figures': figures})


if __name__ == '__main__':
    main()
