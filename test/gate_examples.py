# SPDX-License-Identifier: Apache-2.0
"""What tests of the gate share: results as `vepd` writes them, with scores that are drawn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from sim2real_eval.common.tables import write_csv
from sim2real_eval.metrics.distances import vepd_table
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.scores import RunScore
from sim2real_eval.metrics.series_folder import REAL


def write_result(
    folder: Path,
    models: dict[str, float],
    *,
    scenarios: tuple[str, ...] = ('line', 'circle'),
    runs: int = 10,
    seed: int = 0,
    failures: tuple[str, ...] = (),
    warmup: float = 0.0,
    judge_digest: str = 'aa',
    with_runs: bool = True,
) -> Path:
    """Write vepd.json and runs.csv; a model is by how much its RMSE lies above that of reality."""
    rows = []
    scores: dict[str, dict[str, list[RunScore]]] = {}
    for index, (model, offset) in enumerate({REAL: 0.0, **models}.items()):
        # Real runs do not depend on which models there are, and models on their own name only.
        rng = np.random.default_rng([seed, index and sum(model.encode())])
        for scenario in scenarios:
            for number in range(1, runs + 1):
                rmse = 0.1 + offset + 0.01 * float(rng.random())
                entropy = 0.05 * float(rng.random())
                score = RunScore(rmse, entropy, 0.0, entropy, 300, 20.0)
                scores.setdefault(model, {}).setdefault(scenario, []).append(score)
                rows.append((model, scenario, f'{scenario}_{number}', 1, rmse, entropy))
    table = vepd_table(scores[REAL], {model: scores[model] for model in models})
    record = {
        'format': 1,
        'component': 'horizontal',
        'start_heading': False,
        'metric': MetricOptions(warmup=warmup).to_mapping(),
        'judge': {'name': 'clean', 'files': [{'name': 'clean.yaml', 'sha256': judge_digest}]},
        'failures': [{'recording': name, 'reason': 'gone'} for name in failures],
        'vepd': [
            {'model': row.model, 'scenario': row.scenario, 'vepd': row.vepd} for row in table
        ],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'vepd.json').write_text(json.dumps(record), encoding='utf-8')
    if with_runs:
        header = ('model', 'scenario', 'recording', 'repetition', 'rmse', 'entropy_difference')
        write_csv(folder / 'runs.csv', header, rows)
    return folder
