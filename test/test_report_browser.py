# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: `apt-get install chromium`, or SIM2REAL_BROWSER=/path/to/chrome."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_examples import Browser, browser_binary, running_browser
from report_examples import HOSTILE, hostile_study, small_study

from sim2real_eval.report.page.page import study_page

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
