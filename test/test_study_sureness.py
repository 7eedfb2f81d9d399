# SPDX-License-Identifier: Apache-2.0
"""Uncertainty of the distances of a study: equal numbers in files, page and API."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from pathlib import Path

import numpy as np
from rich.console import Console
from study_examples import drawn_study
from study_file_examples import SMALL, write_study_file

from sim2real_eval.cli.main import main
from sim2real_eval.cli.parser import build_parser
from sim2real_eval.cli.study import overrides
from sim2real_eval.common.results import write_columns, write_csv
from sim2real_eval.metrics.options import REAL
from sim2real_eval.metrics.uncertainty import uncertainty
from sim2real_eval.report.page.tables import standings
from sim2real_eval.report.ranking_tables import uncertainty_table
from sim2real_eval.study.outcome import StudyOutcome, scored_runs
from sim2real_eval.study.secondary_results import study_uncertainty, uncertainty_records
from sim2real_eval.study.study_file import StudyFile


def test_every_scenario_of_every_judge_and_group_has_its_uncertainty() -> None:
    study = drawn_study(runs=6, groups=('grass', 'ice'))
    study.record['uncertainty'] = {'resamples': 300, 'level': 0.9}
    records = uncertainty_records(study)
    places = [(record['judge'], record['group'], record['scenario']) for record in records]
    assert places == list(
        itertools.product(['paper_released', 'clean'], ['grass', 'ice'], ['line', 'circle', 'all'])
    )
    uncertainties = study_uncertainty(study)
    alone = uncertainty(
        scored_runs(study.of('clean', REAL, scenario='line', group='ice')),
        {
            model: scored_runs(study.of('clean', model, scenario='line', group='ice'))
            for model in study.models
        },
        uncertainties['clean', 'ice']['line'].options,
        seed=study.record['seed'],
    )
    assert uncertainties['clean', 'ice']['line'] == alone
    assert len(alone.pairs) == 3
    assert alone.options.resamples == 300
    (standing, *_) = standings(study)
    assert standing.known is uncertainties['paper_released', 'grass']['all']


def test_no_two_heads_of_the_table_run_together_on_a_narrow_terminal() -> None:
    study = drawn_study(judges=('clean',), models={'ch_gauss_airsim': 0.05, 'ch_rw': 0.06})
    (scenarios,) = study_uncertainty(study).values()
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(uncertainty_table(scenarios))
    _, first, second, *body = console.export_text().splitlines()
    assert re.split(' {2,}', first.strip()) == [
        'tied',
        'true VEPD',
        'null dist.',
        'p-value',
        'best',
    ]
    assert re.split(' {2,}', second)[-4:] == ['0.95 level', 'med. 0.95', 'adj.', 'prob.']
    assert any('ch_gauss_airsim' in line for line in body)


def test_the_command_line_overrides_the_study_file(tmp_path: Path) -> None:
    path = write_study_file(tmp_path, {**SMALL, 'uncertainty': {'resamples': 200, 'power': 0.9}})
    options = StudyFile.read(path).options.uncertainty
    assert (options.resamples, options.level, options.power) == (200, 0.95, 0.9)
    parsed = build_parser().parse_args(
        ['study', str(path), '--out', 'o', '--resamples', '150', '--level', '0.8']
    )
    options = StudyFile.read(path, overrides(parsed)).options.uncertainty
    assert (options.resamples, options.level, options.power) == (150, 0.8, 0.9)


def test_files_and_terminal_of_a_study_have_its_uncertainty(
    tmp_path: Path, capsys: object
) -> None:
    path = write_study_file(tmp_path, SMALL)
    out = tmp_path / 'out'
    line = ['study', str(path), '--out', str(out), '--jobs', '1']
    line += ['--resamples', '150', '--level', '0.9']
    assert main(line) == 0
    assert 'not known from' in capsys.readouterr().out  # type: ignore[attr-defined]
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
        assert float(row['vepd']) == np.float64(model['distance']) or np.isclose(
            float(row['vepd']), model['distance'], rtol=1e-12
        )
        for name in ('estimate', 'low', 'high', 'null_median', 'p_value'):
            assert row[name] == ('' if model[name] is None else repr(model[name]))


def test_columns_and_rows_give_the_same_bytes(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=50) * 10.0 ** np.arange(-25, 25)
    columns = [np.array([*values, np.nan, -0.0, np.inf]), np.array([1.0, 2.5e-300])]
    rows = list(itertools.zip_longest(*(column.tolist() for column in columns)))
    quick = write_columns(tmp_path / 'a.csv', ('x', 'y'), columns)
    slow = write_csv(tmp_path / 'b.csv', ('x', 'y'), rows)
    assert quick.read_bytes() == slow.read_bytes()
