# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Do estimators rank GPS models equally? Markdown tables of studies with several judges.

The studies are made with `sim2real study examples/estimator_in_python/agreement.yaml bags/* ...`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from sim2real_eval.metrics.options import REAL
from sim2real_eval.metrics.scores import POOLED
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.sensitivity import ranking_pairs


def lines_of(folder: Path) -> list[str]:
    """Return a row per judge: RMSE of the real runs, VEPD and rank of each model, tau, interval.

    Tau is Kendall's, with the first judge.
    """
    outcome = StudyOutcome.read(folder)
    judges = [judge for judge, _ in outcome.compared_pairs]
    pairs = {pair.second: pair for pair in ranking_pairs(outcome) if pair.first == judges[0]}
    heads = [folder.name, 'RMSE, m/s', *outcome.models, 'tau', '95 %']
    lines = [f'| {" | ".join(heads)} |', '|---' * len(heads) + '|']
    for judge, group in outcome.compared_pairs:
        rows = {row.model: row for row in outcome.table(judge, group) if row.scenario == POOLED}
        rmse = np.mean([run.values['rmse'] for run in outcome.by_model(judge, group)[REAL]])
        cells = [f'{rows[name].vepd:.3f} ({rows[name].rank:g})' for name in outcome.models]
        pair = pairs.get(judge)
        ends = [f'{pair.agreement.kendall:.1f}', pair.interval or '-'] if pair else ['1', '']
        lines.append(f'| {" | ".join([judge, f"{rmse:.3f}", *cells, *ends])} |')
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('studies', type=Path, nargs='+', help='folders of finished studies')
    for folder in parser.parse_args().studies:
        print(*lines_of(folder), sep='\n', end='\n\n')


if __name__ == '__main__':
    main()
