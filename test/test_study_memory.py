# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A study of thousands of recordings keeps scores in memory; its page shows some runs."""

from __future__ import annotations

import dataclasses
import gc
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from study_examples import drawn_study

from sim2real_eval.common.findings import Finding
from sim2real_eval.metrics import mean_wasserstein, scores
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.preflight.findings import SHORT
from sim2real_eval.report.page.figure import library
from sim2real_eval.report.page.page import study_page
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.record import decode_record, encode_record
from sim2real_eval.study.run import EstimateSignals, StudyRun
from sim2real_eval.study.run_store import RunStore
from sim2real_eval.study.secondary_results import metric_tables, study_uncertainty
from sim_sensors.core import blocks

FEW, MANY = 400, 1100
"""Recordings of two studies; a page shows 300 runs of a model in plots and 1000 in tables."""
RESAMPLES = 400


def large_study(recordings: int) -> StudyOutcome:
    """Return a study of many recordings, whose runs have drawn numbers and the same signals."""
    small = drawn_study(judges=('clean',), scenarios=('line',), runs=1, models={'ch_rw': 0.05})
    key = small.runs[0].key
    signals = _first_second(small.signals(key))
    rng = np.random.default_rng(recordings)
    runs = []
    for number in range(recordings):
        for run in small.runs:
            values = {
                name: value + 0.01 * rng.standard_normal() for name, value in run.values.items()
            }
            here = run.key._replace(recording=f'line_{number}')
            runs.append(dataclasses.replace(run, key=here, values=values, notes=(short(),)))
    names = [{'name': f'line_{number}', 'path': f'bags/line_{number}', 'sha256': f'{number:064x}'}
             for number in range(recordings)]  # fmt: skip
    options = {'resamples': RESAMPLES}
    record = {**small.record, 'recordings': names, 'uncertainty': options}
    return StudyOutcome(record, tuple(runs), lambda _: signals)


def _first_second(signals: EstimateSignals) -> EstimateSignals:
    fields = {field.name: getattr(signals, field.name) for field in dataclasses.fields(signals)}
    return EstimateSignals(
        **{
            name: values[: 100 if name.startswith('true_') and name != 'true_position' else 35]
            for name, values in fields.items()
        }
    )


def short() -> Finding:
    """Return a finding that every run has."""
    return SHORT(duration=1.0)


def peak_bytes(work: Callable[[], object]) -> int:
    """Return how much memory a function needs at most."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_statistics_need_few_bytes_for_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """400 draws take 3.2 kB. A single array of the weights of all draws would add 6.4 kB."""
    # Smaller parts, so that a few hundred recordings are already many.
    monkeypatch.setattr(blocks, '_AT_ONCE', 1 << 16)
    monkeypatch.setattr(scores, 'MAX_IN_MATRIX', 100)
    monkeypatch.setattr(mean_wasserstein, 'MAX_IN_PRODUCT', 100)

    def statistics(outcome: StudyOutcome) -> None:
        study_uncertainty.__wrapped__(outcome)
        metric_tables(outcome, MetricOptions())

    few, many = large_study(150), large_study(350)
    statistics(few)
    growth = (peak_bytes(lambda: statistics(many)) - peak_bytes(lambda: statistics(few))) / 200
    assert growth < 6_000, f'{growth:.0f} bytes per recording'


def test_a_page_of_a_thousand_runs_more_is_hardly_larger() -> None:
    studies = large_study(FEW), large_study(MANY)
    few, many = (study_page(outcome).replace(library(), '') for outcome in studies)
    assert len(many) < 1_000_000
    # The tables of recordings and runs end at 1000 rows.
    assert many.count('<tr>') == 1000 - 2 * FEW + 1000 - FEW + few.count('<tr>')
    assert 'the first 1000 of 1100' in many
    assert f'1000 of {2 * MANY} runs' in many
    worst = max(studies[1].runs, key=lambda run: run.values['rmse'])
    assert f'<td>{worst.key.recording}</td>' in many
    dots = json.loads(many.partition('type="application/json">')[2].partition('</script>')[0])
    lengths = [len(column) for column in dots['columns']]
    assert max(lengths) < 1100


def test_stored_runs_take_few_bytes(tmp_path: Path) -> None:
    """27 numbers take 216 bytes; as dictionaries with findings they took 9.6 kB."""
    store, count = RunStore(tmp_path), 200
    outcome = large_study(count)
    for run in outcome.runs:
        values = {f'number {place}': float(place) for place in range(27)}
        store.save(dataclasses.replace(run, values=values), outcome.signals(run.key))
    keys = [run.key for run in outcome.runs]
    del outcome
    # The store itself caches signals of a fixed number of runs.
    reader = RunStore(tmp_path)
    reader._load_if_cached = reader._load  # type: ignore[method-assign]
    assert reader.run(keys[0]) is not None
    runs: list[StudyRun | None] = []
    gc.collect()
    tracemalloc.start()
    runs += map(reader.run, keys)
    gc.collect()
    size = tracemalloc.get_traced_memory()[0] / len(keys)
    tracemalloc.stop()
    assert runs[-1] is not None
    assert runs[-1].values['number 26'] == 26.0
    assert runs[-1].notes == (short(),)
    assert size < 1000, f'{size:.0f} bytes per run'


def test_a_record_written_run_by_run_equals_one_written_at_once() -> None:
    record = {'title': 'µ "quoted"', 'state': 'finished', 'answer': {'doubts': []}}
    runs = [{'judge': 'clean', 'values': {'rmse': 0.1}, 'notes': []}, {'text': 'two\nlines'}]
    data = b''.join(encode_record(record, runs))
    content = decode_record(data.decode())
    assert {**content, 'sha256': ''} == {**record, 'runs': runs, 'sha256': ''}
    assert data.decode() == json.dumps(content, indent=1, ensure_ascii=False) + '\n'
