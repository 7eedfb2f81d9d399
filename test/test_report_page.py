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

from sim2real_eval.report.answer import answer_lines
from sim2real_eval.report.console import decimal, span
from sim2real_eval.report.page.figure import library, thinned
from sim2real_eval.report.page.page import study_page
from sim2real_eval.report.page.section import ranking_plot
from sim2real_eval.report.page.tables import differs, gather, standings
from sim2real_eval.report.study_report import study_report
from sim2real_eval.study.answer import study_answer
from sim2real_eval.study.options import WARMUP
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.secondary_results import side_results
from sim_sensors.core.errors import Sim2RealError

SCRIPTS = 3  # data of the plots, Bokeh, the page's own
VOID = {'meta', 'link', 'img', 'br', 'hr', 'input'}


class Reader(HTMLParser):
    """Elements that are open must be closed in order; keeps tags, attributes and texts."""

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
    return study_page(study, answer=answer_lines(study_answer(study)))


def test_the_page_needs_nothing_but_itself(page: str) -> None:
    reader = read(page)
    assert reader.tags.count('script') == SCRIPTS
    assert 'src' not in dict(reader.attributes)
    links = [value for name, value in reader.attributes if name == 'href']
    assert all(str(link).startswith(('#', 'data:')) for link in links)
    # Bokeh's script names its own site and that of namespaces; it asks for none of them.
    assert not re.search(r'@import|url\(|https?:', page.replace(library(), ''))


def test_the_page_says_what_was_adapted_and_how_severe_findings_are(
    smallest: StudyOutcome, page: str
) -> None:
    warmup = WARMUP(warmup=5.0, count=3, most=2.5)
    adapted = with_record(smallest, adapted=[warmup.to_record()])
    warned_page = study_page(adapted, findings=[warmup])
    assert '<span class="unbroken">--warmup 0</span>' in warned_page  # no line breaks within it
    text = ' '.join(read(warned_page).texts)
    assert 'Adapted to the recordings: the first 5 s are left out' in text
    assert 'assumed' in text
    assert 'Adapted' not in page


def test_every_link_leads_to_a_section(page: str) -> None:
    reader = read(page)
    ids = [value for name, value in reader.attributes if name == 'id']
    assert len(ids) == len(set(ids))
    links = [str(value) for name, value in reader.attributes if name == 'href']
    assert {link[1:] for link in links if link.startswith('#')} <= set(ids)


def test_equal_studies_give_equal_bytes(study: StudyOutcome, page: str) -> None:
    assert study_page(study, answer=answer_lines(study_answer(study))) == page


def test_the_first_words_are_the_closest_model_and_its_number(
    study: StudyOutcome, page: str
) -> None:
    """ch_rw is drawn with the very deviation of the real runs, the others with larger ones."""
    best = min((row for row in study.table('paper_released') if row.scenario == 'all'),
               key=lambda row: row.vepd)  # fmt: skip
    assert best.model == 'ch_rw'
    lead = re.search(r'<div class="lead"><dt>(.*?)</dt><dd>(.*?)</dd>', page, re.S)
    assert lead is not None
    assert lead[2].startswith(f'ch_rw, of 3: VEPD {best.vepd:.3g}')


def test_the_ranking_holds_what_vepd_says(study: StudyOutcome, page: str) -> None:
    rows = read(page).rows
    for row in study.table('clean'):
        if row.scenario == 'all':
            matching_rows = [
                cells for cells in rows if cells[1:2] == [row.model] and len(cells) > 8
            ]
            numbers = [cell for cells in matching_rows for cell in cells]
            assert decimal(row.vepd) in numbers
            assert decimal(row.w_rmse) in numbers


def test_every_run_is_in_the_table_of_runs(study: StudyOutcome, page: str) -> None:
    rows = [cells for cells in read(page).rows if cells[0] in study.judges]
    listed_runs = {(cells[0], cells[2], cells[3]) for cells in rows if len(cells) > 8}
    names = {'real': 'stand-in for real'}
    assert {
        (run.key.judge, names.get(run.key.model, run.key.model), run.key.recording)
        for run in study.runs
    } <= listed_runs


def test_a_stand_in_is_called_so_and_real_recordings_are_not(
    smallest: StudyOutcome, page: str
) -> None:
    assert 'SYNTHETIC' in page
    real = study_page(with_record(smallest, synthetic=False))
    assert 'SYNTHETIC' not in real
    assert 'stand-in' not in real


def plots(page: str) -> list[dict[str, Any]]:
    """Return the plots that Bokeh draws, from strict JSON: NaN and infinity are refused."""
    (text,) = re.findall(r'<script id="plots" type="application/json">(.*?)</script>', page, re.S)
    plot_records: list[dict[str, Any]] = json.loads(text, parse_constant=float.fromhex)['plots']
    return plot_records


def test_every_plot_has_its_place_and_is_described(page: str) -> None:
    # Two judges: ranking, two scores, spectrum, speed and track of two scenarios, two deviations.
    assert len(plots(page)) == 2 * (1 + 2 + 1 + 2 * 2 + 2)
    places = re.findall(r'id="plot-(\d+)" data-plot="\1" role="figure" aria-label="[^"]+"', page)
    assert places == [str(number) for number in range(len(plots(page)))]


def test_colour_says_what_is_significant_and_never_the_rank(study: StudyOutcome) -> None:
    standing = standings(study)[0]
    text = json.dumps(ranking_plot(standing, {}).item(len))
    unlike = [model for model in standing.known.models if differs(standing.known, model)]
    assert unlike
    assert '--unlike' in text
    assert ('--like' in text) == (len(unlike) < len(standing.known.models))
    assert '--c0' not in text


def test_hostile_labels_are_text_everywhere() -> None:
    """Also in attributes, SVG and Jinja's own marks."""
    page = study_page(hostile_study())
    reader = read(page)
    assert reader.tags.count('script') == SCRIPTS
    assert not {'img', 'b'} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith('on')]
    text = ' '.join(reader.texts)
    for label in HOSTILE:
        assert label in text


def test_without_positions_the_page_has_speeds_only() -> None:
    study = small_study(judges=('clean',), runs=3)

    def blind(key):  # type: ignore[no-untyped-def]
        signals = study.signals(key)
        nothing = np.full_like(signals.position, np.nan)
        return dataclasses.replace(signals, true_position=nothing, position_sigma=nothing)

    page = study_page(StudyOutcome(study.record, study.runs, blind))
    assert '<h3>Tracks</h3>' not in page
    assert '<h3>One run: stand-in, simulated and true speed</h3>' in page
    assert 'nan' not in page.split('<main>')[1].split('id="provenance"')[0].replace('tenan', '')


def test_runs_that_cannot_be_read_are_left_out_of_plots_and_said() -> None:
    study = small_study(judges=('clean',), runs=3)
    lost = study.runs[0].key

    def load(key):  # type: ignore[no-untyped-def]
        if key == lost:
            raise Sim2RealError('runs/x.npz: cannot be read')
        return study.signals(key)

    page = study_page(StudyOutcome(study.record, study.runs, load))
    assert 'Not in the plots: runs/x.npz: cannot be read' in page


def test_the_title_says_how_many_recordings_gave_no_run() -> None:
    study = small_study(judges=('clean',), runs=3)
    names = [*dict.fromkeys(run.key.recording for run in study.runs), 'damaged']
    record = {**study.record, 'recordings': [{'name': name} for name in names]}
    page = study_page(StudyOutcome(record, study.runs, study.signals))
    assert f'; 1 of {len(names)} left out</title>' in page
    # Under conditions, runs are called recording@label.
    rainy = renamed(study, recording={name: f'{name}@rain' for name in names})
    record = {**record, 'conditions': [{'label': 'rain'}], 'recordings': record['recordings'][:-1]}
    assert 'left out</title>' not in study_page(StudyOutcome(record, rainy.runs, rainy.signals))


def test_groups_and_unpaired_runs_have_their_places() -> None:
    study = small_study(judges=('clean',), runs=3, groups=('grass', 'concrete'), models={'m': 0.1})
    names = {run.key.recording: f'drive_{run.key.recording}' for run in study.runs}
    sims = renamed(study, recording=names)
    mixed = tuple(
        run if run.is_real else other for run, other in zip(study.runs, sims.runs, strict=True)
    )

    def load(key):  # type: ignore[no-untyped-def]
        return (study if key.model == 'real' else sims).signals(key)

    outcome = StudyOutcome(study.record, mixed, load)
    representatives = gather(outcome, 'clean').representatives
    assert {place[0] for place in representatives} == {'grass', 'concrete'}
    assert all(set(labels) == {'real', 'm'} for labels in representatives.values())
    page = study_page(outcome)
    assert 'judge clean, grass' in page
    assert '<h3>concrete</h3>' in page


def test_one_run_of_each_gives_a_page() -> None:
    study = small_study(judges=('clean',), scenarios=('line',), runs=1, models={'m': 0.1})
    lines = answer_lines(study_answer(study))
    text = ' '.join(read(study_page(study, answer=lines)).texts)
    assert 'm: VEPD' in text
    assert 'not known from 1 recording' in text


def test_no_runs_are_refused_in_a_line(tmp_path: Path) -> None:
    study = small_study(judges=('clean',), scenarios=('line',), runs=1, models={})
    with pytest.raises(Sim2RealError, match='at least one real and one simulated run'):
        study_report(study, tmp_path)


def test_a_line_keeps_its_spikes_when_it_is_thinned() -> None:
    x = np.linspace(0.0, 100.0, 20_000)
    y = np.sin(x)
    y[7_000], y[12_000] = 500.0, -300.0
    thinned_x, thinned_y = thinned(x, y)
    assert len(thinned_x) <= 1000
    assert np.all(np.diff(thinned_x) >= 0.0)
    assert (thinned_y.min(), thinned_y.max()) == (-300.0, 500.0)


def test_numbers_of_tables_have_a_minus_and_no_digits_that_say_nothing() -> None:
    assert decimal(-0.25, 2) == '\N{MINUS SIGN}0.25'
    assert decimal(None) == '\N{EN DASH}'
    assert span(5.1e-13, 0.0055) == '0 to 0.0055'
    assert span(0.0024, 0.0055) == '0.0024 to 0.0055'


def test_a_page_of_a_study_of_the_papers_size_is_small() -> None:
    """180 runs under two judges: below 3 MB."""
    study = small_study(
        scenarios=('line', 'circle', 'half_sine'), runs=10,
        models={f'm{number}': 0.05 + 0.03 * number for number in range(5)},
    )  # fmt: skip
    assert len(study.runs) == 360
    ranking = standings(study)
    page = study_page(study, standing=ranking)
    assert len(page.encode()) < 3e6


def test_a_study_of_one_scenario_is_set_beside_its_own_column_of_the_paper() -> None:
    """As experiments A and D: Table II has the half-sine, Table I all three pooled."""
    study = small_study(judges=('clean',), scenarios=('half_sine',), runs=3)
    (standing,) = standings(study)
    assert standing.published('ch_rw') == 0.0796
    page = study_page(study, side=side_results(study))
    assert 'VEPD in half_sine, judge clean' in page
    cells = next(row for row in read(page).rows if row[1:2] == ['ch_rw'])
    assert cells[-1] == '0.0796'
    for title in ('Other metrics', 'Options'):
        assert f'<h2>{title}</h2>' in page


def test_conditions_are_no_recordings_and_each_has_its_own_plots() -> None:
    study = small_study(judges=('clean',), groups=('', 'tunnel'), scenarios=('line',), runs=3)
    names = {f'tunnelline_{n}': f'line_{n}@tunnel' for n in (1, 2, 3)}
    names |= {f'line_{n}': f'line_{n}@sky' for n in (1, 2, 3)}
    study = renamed(study, recording=names, group={'': 'sky'})
    study = with_record(study, conditions=[{'label': 'sky'}, {'label': 'tunnel'}])
    page = study_page(study)
    assert '<dt>recordings</dt><dd>3 in 1 scenario</dd>' in page
    assert '<dt>conditions</dt><dd>2</dd>' in page
    spectra = page.split('<h3>Spectrum of the speed error</h3>')[1].split('<h3>')[0]
    assert re.findall(r'<h4>(.*?)</h4>', spectra) == ['sky', 'tunnel']
    (judge,) = study.judges
    signals = gather(study, judge)
    assert [len(signals.select_group(group).runs) for group in study.groups] == [12, 12]
