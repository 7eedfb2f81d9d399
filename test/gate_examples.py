# SPDX-License-Identifier: Apache-2.0
"""Study records with drawn scores, shared by the tests of `gate`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np

from sim2real_eval.metrics.options import REAL, MetricOptions
from sim2real_eval.metrics.scores import RunScore
from sim2real_eval.study.outcome import seal_record


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
) -> Path:
    """Write study.json; a model is by how much its RMSE lies above that of reality."""
    rows = []
    for index, (model, offset) in enumerate({REAL: 0.0, **models}.items()):
        # Real runs do not depend on which models there are, and models on their own name only.
        rng = np.random.default_rng([seed, index and sum(model.encode())])
        for scenario in scenarios:
            for number in range(1, runs + 1):
                rmse = 0.1 + offset + 0.01 * float(rng.random())
                entropy = 0.05 * float(rng.random())
                score = RunScore(rmse, entropy, 0.0, entropy, 300, 20.0)
                values = dataclasses.asdict(score)
                rows.append(
                    {
                        'judge': 'clean', 'recording': f'{scenario}_{number}', 'model': model,
                        'repetition': 1, 'scenario': scenario, 'group': '', 'values': values,
                        'notes': [],
                    }
                )  # fmt: skip
    files = [{'name': 'clean.yaml', 'sha256': judge_digest}]
    record = {
        'state': 'finished',
        'component': 'horizontal',
        'start_heading': False,
        'metric': MetricOptions(warmup=warmup).to_mapping(),
        'judges': [{'label': 'clean', 'files': files}],
        'failures': [{'recording': name, 'reason': 'gone'} for name in failures],
        'runs': rows,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'study.json').write_text(json.dumps(seal_record(record)), encoding='utf-8')
    return folder
