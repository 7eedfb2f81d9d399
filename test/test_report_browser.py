# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: `apt-get install chromium`, or SIM2REAL_BROWSER=/path/to/chrome."""

from __future__ import annotations

import base64
import dataclasses
import importlib.util
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_examples import Browser, browser_binary, running_browser
from report_examples import HOSTILE, hostile_study, small_study, with_record

from sim2real_eval.report.page.page import study_page
from sim2real_eval.study.answer import TransferView, study_answer
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.secondary_results import side_results

BINARY = browser_binary()
pytestmark = pytest.mark.skipif(BINARY is None, reason='no chromium or chrome on the path')

OVERFLOW = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
BACKGROUND = 'getComputedStyle(document.body).backgroundColor'
UNFOLD = 'document.querySelectorAll("details").forEach(e => { e.open = true; })'
MODELS = 'Bokeh.documents.flatMap(e => Array.from(e.all_models))'
ROWS = 'Array.from(document.querySelectorAll("table.runs tbody tr"))'


@pytest.fixture(scope='module')
def browser() -> Iterator[Browser]:
    assert BINARY is not None
    with running_browser(BINARY) as running:
        yield running


@pytest.fixture(scope='module')
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp('plain') / 'report.html'
    path.write_text(study_page(small_study(runs=3)), encoding='utf-8')
    return path


@pytest.fixture(scope='module')
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp('hostile') / 'report.html'
    path.write_text(study_page(hostile_study()), encoding='utf-8')
    return path


def full_page(outcome: StudyOutcome, transfer: dict[str, Any] | None = None) -> str:
    """The page with every section, as `sim2real study` writes it."""
    answer = study_answer(outcome)
    if transfer:
        loss = TransferView('clean', 'speed', answer.nearest, 0.04, 0.01, 0.08, 0.01, True)
        answer = dataclasses.replace(answer, transfer=loss)
    side = side_results(outcome)
    return study_page(
        outcome, command='sim2real study', side=side, answer=answer, transfer=transfer
    )


@pytest.fixture(scope='module')
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    one = small_study(judges=('clean',), scenarios=('line',), runs=6)
    record = {'recordings': [{'name': 'a', 'path': 'bags/a'}], 'phrases': PHRASES}
    pages = {
        'one judge': full_page(one),
        'judges and groups': full_page(
            small_study(scenarios=('line',), runs=3, groups=('grass', 'concrete'))
        ),
        'transfer': full_page(with_record(one, **record), TRANSFER),
    }
    folder = tmp_path_factory.mktemp('studies')
    paths = {}
    for name, page in pages.items():
        paths[name] = folder / f'{name}.html'
        paths[name].write_text(page, encoding='utf-8')
    return paths


PHRASES = dict.fromkeys(
    ('ch_rw', 'ch_gauss'), 'white noise of 3 cm and a covariance that converges, as in AirSim'
)
TRANSFER = {
    'tunings': 8, 'quantity': 'speed', 'blocks': 6, 'untuned': 0.3, 'reference': 0.1,
    'options': {'level': 0.95}, 'judge': {'name': 'clean'}, 'failures': {}, 'notes': [],
    'models': [
        {'model': model, 'loss': loss, 'low': loss - 0.03, 'high': loss + 0.05, 'adjusted': 0.01,
         'group': group, 'achieved': 0.1, 'promised': 0.1, 'landscape': 0.2, 'correlation': 0.9}
        for model, loss, group in (('ch_rw', 0.04, 'a'), ('ch_gauss', 0.4, 'b'))
    ],
}  # fmt: skip


@pytest.mark.parametrize('name', ['one judge', 'judges and groups', 'transfer'])
@pytest.mark.parametrize(('width', 'dark'), [(375, False), (1280, True)])
def test_axe_finds_no_violation_of_wcag_a_and_aa(
    browser: Browser, studies: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    package = importlib.util.find_spec('axe_core_python')
    if package is None or package.origin is None:
        pytest.skip('needs axe-core-python')
    browser.open(studies[name], width=width, dark=dark)
    browser.value(UNFOLD)
    settled(browser, f'{MODELS}.filter(e => e.type === "Figure").length')
    script = Path(package.origin).with_name('axe.min.js').read_text(encoding='utf-8')
    browser.value(f'{script}; 0')
    tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']
    answer = browser.call(
        'Runtime.evaluate', awaitPromise=True, returnByValue=True,
        expression=f'axe.run(document, {{runOnly: {tags}}}).then(result => ({{'
        'checked: result.passes.length,'
        f'violations: result.violations.map(e => [e.id, e.nodes.map(n => n.html)])}}))',
    )['result']['value']  # fmt: skip
    assert answer['checked'] > 10
    assert answer['violations'] == []


@pytest.mark.parametrize(('width', 'height'), [(1280, 800), (820, 1180), (375, 812)])
@pytest.mark.parametrize('name', ['one judge', 'judges and groups', 'transfer'])
def test_the_first_screen_has_answer_doubt_next_command_and_ranking(
    browser: Browser, studies: dict[str, Path], name: str, width: int, height: int
) -> None:
    browser.open(studies[name], width=width, height=height)
    ends = browser.value(
        '[".lead", ".answer", ".answer .command", ".ranking tbody"].map('
        'selector => document.querySelector(selector).getBoundingClientRect().bottom)'
    )
    assert max(ends) <= height
    region = 'document.querySelector(".ranking").parentElement'
    assert browser.value(f'{region}.scrollWidth - {region}.clientWidth') <= 0
    heads = browser.value(
        'Array.from(document.querySelector(".answer").querySelectorAll("dt"), e => e.textContent)'
    )
    assert heads == ['Cost', 'Main doubt', 'Next']


def test_every_control_is_reached_by_keyboard_with_a_name_and_a_visible_focus(
    browser: Browser, studies: dict[str, Path]
) -> None:
    browser.open(studies['one judge'])
    settled(browser, f'{MODELS}.filter(e => e.type === "Figure").length')
    focused = (
        '(() => { let e = document.activeElement;'
        'while (e.shadowRoot && e.shadowRoot.activeElement) e = e.shadowRoot.activeElement;'
        'const style = getComputedStyle(e);'
        'const label = e.labels && e.labels[0] ? e.labels[0].textContent : "";'
        'return [e.tagName, e.getAttribute("aria-label") || label || e.textContent.trim(),'
        '  style.outlineStyle !== "none" || style.boxShadow !== "none"]; })()'
    )
    reached = []
    while len(reached) < 200:
        for kind in ('keyDown', 'keyUp'):
            browser.call(
                'Input.dispatchKeyEvent', type=kind, key='Tab', code='Tab',
                windowsVirtualKeyCode=9,
            )  # fmt: skip
        stop = browser.value(focused)
        if stop[0] == 'BODY':
            break
        reached.append(stop)
    names = [name for _, name, _ in reached]
    assert all(names), reached
    assert [stop for stop in reached if not stop[2]] == []
    assert {'Skip to the answer', 'Save', 'Reset', 'Dark', 'ch_rw'} <= set(names)
    # Links, switches, folds, command and tables; two plots with four tools each.
    assert names.count('Save') == 2


@pytest.mark.parametrize('name', ['one judge', 'judges and groups', 'transfer'])
def test_the_page_prints_on_at_most_four_sheets(
    browser: Browser, studies: dict[str, Path], name: str
) -> None:
    browser.open(studies[name])
    settled(browser, f'{MODELS}.filter(e => e.type === "Figure").length')
    sheets = base64.b64decode(
        browser.call('Page.printToPDF', paperWidth=8.27, paperHeight=11.69)['data']
    )
    assert 1 <= len(re.findall(rb'/Type\s*/Page\b', sheets)) <= 4


def test_a_logarithmic_axis_has_at_least_four_ticks_also_after_a_zoom(
    browser: Browser, studies: dict[str, Path]
) -> None:
    browser.open(studies['one judge'])
    browser.value(UNFOLD)
    settled(browser, f'{MODELS}.filter(e => e.type === "Figure").length')
    figures = f'{MODELS}.filter(e => e.type === "Figure" && e.x_scale.type === "LogScale")'
    visible = (
        f'{figures}.map(e => e.below[0].ticker.ticks'
        '.filter(t => t >= e.x_range.start && t <= e.x_range.end).length)'
    )
    counts = browser.value(visible)
    assert counts
    assert min(counts) >= 4
    browser.value(
        f'{figures}.forEach(e => {{ e.x_range.setv({{ end: 1.3 * e.x_range.start }}); }})'
    )
    assert min(browser.value(visible)) >= 3


@pytest.mark.parametrize('width', [320, 375, 768, 1280])
@pytest.mark.parametrize('kind', ['plain', 'hostile'])
def test_the_page_fits_the_screen_without_errors_or_requests(
    browser: Browser, plain: Path, hostile: Path, kind: str, width: int
) -> None:
    path = plain if kind == 'plain' else hostile
    browser.open(path, width=width)
    assert browser.value('innerWidth') == width
    assert browser.value(OVERFLOW) == 0
    assert browser.complaints() == []
    assert browser.requests() == [path.resolve().as_uri()]


def test_dark_mode_follows_the_system_setting_and_the_button(
    browser: Browser, plain: Path
) -> None:
    browser.open(plain)
    light = browser.value(BACKGROUND)
    browser.open(plain, dark=True)
    dark = browser.value(BACKGROUND)
    assert luminance(light) > 0.9
    assert luminance(dark) < 0.05
    browser.value('document.getElementById("theme").click()')
    assert browser.value(BACKGROUND) == light
    browser.value('document.getElementById("theme").click()')
    assert browser.value(BACKGROUND) == dark


def test_plots_follow_the_switches_and_dark_mode(browser: Browser, plain: Path) -> None:
    browser.open(plain)
    drawn = settled(browser, f'{MODELS}.filter(e => e.type === "Figure").length')
    assert drawn == 2  # ranking and overlay; the others are folded
    browser.value(UNFOLD)
    total = browser.value('document.querySelectorAll(".plot").length')
    assert settled(browser, f'{MODELS}.filter(e => e.type === "Figure").length') == total
    lines = f'{MODELS}.filter(e => e.type === "GlyphRenderer" && e.glyph.type === "Line"'
    lines += ' && e.name === "ch_gauss")'
    assert browser.value(f'{lines}.length') > 2
    assert browser.value(f'{lines}.every(e => e.visible)')
    label = 'Array.from(document.querySelectorAll(".switches label"))'
    browser.value(f'{label}.find(e => e.textContent === "ch_gauss").control.click()')
    assert not browser.value(f'{lines}.some(e => e.visible)')
    inks = f'{MODELS}.filter(a => a.type === "LinearAxis").map(a => a.axis_label_text_color)'
    assert set(browser.value(inks)) == {'#555d68'}
    browser.value('document.getElementById("theme").click()')
    assert set(browser.value(inks)) == {'#a5adb8'}
    assert browser.complaints() == []


def settled(browser: Browser, expression: str) -> int:
    """The value of an expression once it stops changing: plots are drawn one after the other."""
    last, deadline = -1, time.monotonic() + 300.0
    while (now := int(browser.value(expression))) != last or not now:
        assert time.monotonic() < deadline
        last = now
        time.sleep(0.3)
    return last


@pytest.mark.parametrize('dark', [False, True])
def test_the_contrast_meets_wcag(browser: Browser, tmp_path: Path, dark: bool) -> None:
    """4.5 for text, 3 for lines and marks of nine models (WCAG 2.2, 1.4.3 and 1.4.11)."""
    models = {f'm{number}': 0.05 for number in range(9)}
    path = tmp_path / 'report.html'
    path.write_text(study_page(small_study(runs=1, judges=('one',), models=models)), 'utf-8')
    browser.open(path, dark=dark)
    page = luminance(browser.value(BACKGROUND))

    def colours(selector: str, what: str) -> set[str]:
        colour_list: list[str] = browser.value(
            f'Array.from(document.querySelectorAll("{selector}"), e => getComputedStyle(e).{what})'
        )
        return set(colour_list)

    texts = colours('p, td, th, a, figcaption, small, dt, dd, summary', 'color')
    for colour in texts - colours('.badge, .badge *', 'color'):
        assert contrast(luminance(colour), page) >= 4.5, colour
    marks = colours('.switches label .stroke', 'borderTopColor')
    assert len(marks) == 10
    for colour in marks:
        assert contrast(luminance(colour), page) >= 3.0, colour


def test_table_columns_are_sorted_in_both_directions_by_keyboard_and_pointer(
    browser: Browser, plain: Path
) -> None:
    browser.open(plain)
    browser.value(UNFOLD)
    browser.value('document.querySelectorAll("table.runs th button")[5].focus()')
    for key in ('keyDown', 'keyUp'):
        browser.call(
            'Input.dispatchKeyEvent', type=key, key='Enter', code='Enter', text='\r',
            windowsVirtualKeyCode=13,
        )  # fmt: skip
    values = f'{ROWS}.map(row => parseFloat(row.cells[5].textContent))'
    up = browser.value(values)
    assert up == sorted(up)
    assert up != sorted(up, reverse=True)
    head = 'document.querySelectorAll("table.runs th")[5].getAttribute("aria-sort")'
    assert browser.value(head) == 'ascending'
    browser.value('document.querySelectorAll("table.runs th button")[5].click()')
    assert browser.value(values) == sorted(up, reverse=True)
    assert browser.value(head) == 'descending'


def test_labels_in_tooltips_are_not_interpreted_as_html(browser: Browser, hostile: Path) -> None:
    """The second model is an image that would run a script, which the console would name."""
    browser.open(hostile)
    assert settled(browser, f'{MODELS}.filter(e => e.type === "Figure").length') == 2
    view = 'Array.from(Bokeh.index)[0]'
    x, y = browser.value(
        f'(() => {{ const view = {view}, box = view.el.getBoundingClientRect();'
        'const dots = view.model.renderers.find(e => e.glyph.type === "Scatter"'
        '  && e.data_source.data.x.length > 1).data_source.data;'
        'return [box.left + view.frame.x_scale.compute(dots.x[1]),'
        '  box.top + view.frame.y_scale.compute(dots.y[1])]; })()'
    )
    for shift in (3.0, 0.0):
        browser.call('Input.dispatchMouseEvent', type='mouseMoved', x=x + shift, y=y)
    tip = 'document.querySelector(".bk-Tooltip")'
    assert settled(browser, f'+!!{tip}') == 1
    assert HOSTILE[1] in browser.value(f'{tip}.shadowRoot.textContent')
    assert browser.complaints() == []


def test_an_injected_script_is_not_executed(browser: Browser, plain: Path) -> None:
    """The page's own policy names the one script that may run."""
    slipped = plain.with_name('slipped.html')
    text = plain.read_text(encoding='utf-8')
    script = '<script>document.title = "owned"</script>'
    slipped.write_text(text.replace('<main>', f'<main>{script}'), 'utf-8')
    browser.open(slipped)
    assert browser.value('document.title') == 'Drawn study'
    assert any('Content Security Policy' in line for line in browser.complaints())


def test_the_page_can_be_read_without_scripts(plain: Path) -> None:
    assert BINARY is not None
    with running_browser(BINARY, scripts=False) as browser:
        browser.open(plain, width=375)
        assert browser.value(f'{ROWS}.length') == 2 * 2 * 3 * 4
        assert browser.value('document.querySelector("th button") === null')
        assert browser.value('document.querySelector(".filters").getClientRects().length') == 0
        assert browser.value(OVERFLOW) == 0


def luminance(colour: str) -> float:
    """Relative luminance of `rgb(r, g, b)` (WCAG 2.2)."""
    channels = [float(part) / 255.0 for part in colour[colour.index('(') + 1 : -1].split(',')[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: float, second: float) -> float:
    return (max(first, second) + 0.05) / (min(first, second) + 0.05)
