# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Uncertainty of the distances of a study: equal numbers in files, page and API."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path

import numpy as np
from study_examples import drawn_study
from study_file_examples import SMALL, write_study_file

from sim2real_eval.cli.main import main
from sim2real_eval.metrics.options import REAL
from sim2real_eval.metrics.uncertainty import uncertainty
from sim2real_eval.study.outcome import StudyOutcome, scored_runs
from sim2real_eval.study.secondary_results import study_uncertainty, uncertainty_records


def test_uncertainty_is_computed_for_every_scenario_judge_and_group() -> None:
    study = drawn_study(runs=6, groups=('grass', 'ice'))
    study.record['uncertainty'] = {'resamples': 300, 'level': 0.9}
    records = uncertainty_records(study)
    places = [(record['judge'], record['group'], record['scenario']) for record in records]
    assert places == list(
        itertools.product(['paper_released', 'clean'], ['grass', 'ice'], ['line', 'circle', 'all'])
    )
    uncertainties = study_uncertainty(study)
    alone = uncertainty(
        scored_runs(study.runs_of('clean', REAL, scenario='line', group='ice')),
        {
            model: scored_runs(study.runs_of('clean', model, scenario='line', group='ice'))
            for model in study.models
        },
        uncertainties['clean', 'ice']['line'].options,
        seed=study.record['seed'],
    )
    assert uncertainties['clean', 'ice']['line'] == alone


def test_the_files_of_a_study_contain_its_uncertainty(tmp_path: Path) -> None:
    path = write_study_file(tmp_path, SMALL)
    out = tmp_path / 'out'
    line = ['study', str(path), '--out', str(out), '--jobs', '1']
    line += ['--resamples', '150', '--level', '0.9']
    assert main(line) == 0
    outcome = StudyOutcome.read(out)
    assert outcome.record['uncertainty']['resamples'] == 150
    records = json.loads((out / 'uncertainty.json').read_text(encoding='utf-8'))
    assert records == json.loads(json.dumps(uncertainty_records(outcome)))
    with (out / 'vepd.csv').open(encoding='utf-8', newline='') as file:
        rows = list(csv.DictReader(file))
    models = {
        (record['judge'], record['group'], record['scenario'], model['model']): model
        for record in records
        for model in record['models']
    }
    for row in rows:
        model = models[row['judge'], row['group'], row['scenario'], row['model']]
        assert np.isclose(float(row['vepd']), model['distance'], rtol=1e-12)
        for name in ('estimate', 'low', 'high', 'null_median', 'p_value'):
            assert row[name] == ('' if model[name] is None else repr(model[name]))
