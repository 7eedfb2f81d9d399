# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The page of a study: what it says follows from the runs, and labels stay text."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_examples import HOSTILE, hostile_study, renamed, small_study, with_record

from sim2real_eval.report.console import decimal
from sim2real_eval.report.page.figure import library, thin_line
from sim2real_eval.report.page.page import study_page
from sim2real_eval.report.page.tables import gather, speeds, standings
from sim2real_eval.report.study_report import study_report
from sim2real_eval.study.answer import study_answer
from sim2real_eval.study.options import WARMUP
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.secondary_results import side_results
from sim_sensors.core.errors import Sim2RealError

SCRIPTS = 3  # data of the plots, Bokeh, the page's own
VOID = {'meta', 'link', 'img', 'br', 'hr', 'input'}


class Reader(HTMLParser):
    """Parser that keeps tags, attributes and texts and checks the nesting of elements."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag == 'tr':
            self.rows.append([])
        if tag in ('td', 'th') and self.rows:
            self.rows[-1].append('')
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ('script', 'style'):
            self.texts.append(data)
            if 'td' in self.open or 'th' in self.open:
                self.rows[-1][-1] += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope='module')
def study() -> StudyOutcome:
    return small_study(scenarios=('line', 'circle'), runs=5)


@pytest.fixture(scope='module')
def smallest() -> StudyOutcome:
    return small_study(judges=('clean',), scenarios=('line',), runs=2, models={'m': 0.1})


@pytest.fixture(scope='module')
def page(study: StudyOutcome) -> str:
    return study_page(study, answer=study_answer(study))


def test_the_page_loads_no_external_resources(page: str) -> None:
    reader = read(page)
    assert reader.tags.count('script') == SCRIPTS
    assert 'src' not in dict(reader.attributes)
    links = [value for name, value in reader.attributes if name == 'href']
    assert all(str(link).startswith(('#', 'data:')) for link in links)
    # Bokeh's script names its own site and that of namespaces; it asks for none of them.
    assert not re.search(r'@import|url\(|https?:', page.replace(library(), ''))


def test_the_page_lists_adapted_options_with_severity(smallest: StudyOutcome, page: str) -> None:
    warmup = WARMUP(warmup=5.0, count=3, most=2.5)
    adapted = with_record(smallest, adapted=[warmup.to_record()])
    warned_page = study_page(adapted, findings=[warmup])
    assert '<span class="unbroken">--warmup 0</span>' in warned_page  # no line breaks within it
    assert 'assumed' in ' '.join(read(warned_page).texts)
    assert 'Adapted' not in page


def test_every_link_of_the_page_has_a_target_section(page: str) -> None:
    reader = read(page)
    ids = [value for name, value in reader.attributes if name == 'id']
    assert len(ids) == len(set(ids))
    links = [str(value) for name, value in reader.attributes if name == 'href']
    assert {link[1:] for link in links if link.startswith('#')} <= set(ids)


def test_the_page_begins_with_the_nearest_model(study: StudyOutcome, page: str) -> None:
    """ch_rw is drawn with the deviation of the real runs, the others with larger ones."""
    best = min((row for row in study.table('paper_released') if row.scenario == 'all'),
               key=lambda row: row.vepd)  # fmt: skip
    assert best.model == 'ch_rw'
    lead = re.search(r'<p class="lead">(.*?)</p>', page, re.S)
    assert lead[1].startswith('Of 3 simulated sensors, ch_rw')
    # The sentence uses no word that a newcomer does not know.
    assert not re.search('VEPD|NIS|RMSE|judge', lead[1])
    assert page.index('class="lead"') < page.index('class="ranking"')


def test_the_ranking_on_the_page_equals_that_of_the_study(study: StudyOutcome, page: str) -> None:
    rows = read(page).rows
    for row in study.table('clean'):
        if row.scenario == 'all':
            cells = {cell for r in rows if row.model in r[:2] for cell in r}
            assert {decimal(row.vepd), decimal(row.w_rmse)} <= cells


def test_only_stand_in_recordings_are_labelled_synthetic(
    smallest: StudyOutcome, page: str
) -> None:
    assert 'SYNTHETIC' in page
    real = study_page(with_record(smallest, synthetic=False))
    assert 'SYNTHETIC' not in real


def plots(page: str) -> list[dict[str, Any]]:
    """Return the plots that Bokeh draws, from strict JSON: NaN and infinity are refused."""
    (text,) = re.findall(r'<script id="plots" type="application/json">(.*?)</script>', page, re.S)
    plot_records: list[dict[str, Any]] = json.loads(text, parse_constant=float.fromhex)['plots']
    return plot_records


def test_every_plot_is_placed_on_the_page_with_a_label(page: str) -> None:
    # Two judges: ranking, two scores, spectrum, speed and track of two scenarios, two deviations.
    assert len(plots(page)) == 2 * (1 + 2 + 1 + 2 * 2 + 2)
    places = re.findall(r'id="plot-(\d+)" data-plot="\1" role="figure" aria-label="[^"]+"', page)
    assert places == [str(number) for number in range(len(plots(page)))]


def test_labels_with_html_are_shown_as_text() -> None:
    page = study_page(hostile_study())
    reader = read(page)
    assert reader.tags.count('script') == SCRIPTS
    assert not {'img', 'b'} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith('on')]
    text = ' '.join(reader.texts)
    assert all(label in text for label in HOSTILE)


def test_runs_that_cannot_be_read_are_named_and_left_out_of_plots() -> None:
    study = small_study(judges=('clean',), runs=3)
    lost = study.runs[0].key

    def load(key):  # type: ignore[no-untyped-def]
        if key == lost:
            raise Sim2RealError('runs/x.npz: cannot be read')
        return study.signals(key)

    page = study_page(StudyOutcome(study.record, study.runs, load))
    assert 'runs/x.npz' in page


def test_a_report_without_runs_is_refused(tmp_path: Path) -> None:
    study = small_study(judges=('clean',), scenarios=('line',), runs=1, models={})
    with pytest.raises(Sim2RealError, match='at least one'):
        study_report(study, tmp_path)


def test_thinning_a_line_keeps_its_extremes() -> None:
    x = np.linspace(0.0, 100.0, 20_000)
    y = np.sin(x)
    y[7_000], y[12_000] = 500.0, -300.0
    thinned_x, thinned_y = thin_line(x, y)
    assert len(thinned_x) <= 1000
    assert np.all(np.diff(thinned_x) >= 0.0)
    assert (thinned_y.min(), thinned_y.max()) == (-300.0, 500.0)


def test_the_page_of_a_study_of_360_runs_is_below_3_mb() -> None:
    study = small_study(
        scenarios=('line', 'circle', 'half_sine'), runs=10,
        models={f'm{number}': 0.05 + 0.03 * number for number in range(5)},
    )  # fmt: skip
    assert len(study.runs) == 360
    assert len(study_page(study).encode()) < 3e6


def test_a_scenario_is_compared_with_its_column_of_the_paper() -> None:
    """Table II of the paper has the half-sine, Table I all three pooled."""
    study = small_study(judges=('clean',), scenarios=('half_sine',), runs=3)
    (standing,) = standings(study)
    assert standing.published_vepd('ch_rw') == 0.0796
    page = study_page(study, side=side_results(study))
    cells = next(row for row in read(page).rows if row[1:2] == ['ch_rw'])
    assert cells[-1] == '0.0796'
    # The drawn runs have no NIS.
    assert 'NIS <small>' not in page


def test_each_condition_has_separate_plots() -> None:
    study = small_study(judges=('clean',), groups=('', 'tunnel'), scenarios=('line',), runs=3)
    names = {f'tunnelline_{n}': f'line_{n}@tunnel' for n in (1, 2, 3)}
    names |= {f'line_{n}': f'line_{n}@sky' for n in (1, 2, 3)}
    study = renamed(study, recording=names, group={'': 'sky'})
    study = with_record(study, conditions=[{'label': 'sky'}, {'label': 'tunnel'}])
    page = study_page(study)
    spectra = page.split('<h3>Spectrum of the speed error</h3>')[1].split('<h3>')[0]
    assert re.findall(r'<h4>(.*?)</h4>', spectra) == ['sky', 'tunnel']
    (judge,) = study.judges
    signals = gather(study, judge)
    assert [len(signals.select_group(group).runs) for group in study.groups] == [12, 12]


def test_a_run_without_ground_truth_is_not_called_an_estimate_that_is_not_finite() -> None:
    study = small_study(judges=('clean',), scenarios=('line',), runs=3)
    signals = study.signals(study.runs[0].key)
    without_truth = dataclasses.replace(
        signals,
        true_time=signals.true_time[:0],
        true_velocity=signals.true_velocity[:0],
        true_orientation=signals.true_orientation[:0],
    )
    with pytest.raises(Sim2RealError, match='line_1: has no ground truth'):
        speeds(without_truth, 'horizontal', 'line_1')
