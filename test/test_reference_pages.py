# SPDX-License-Identifier: Apache-2.0
"""Reference pages say what the declarations say."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

SENSORS = ('index', 'imu', 'gps', 'magnetometer', 'camera', 'wheels', 'vision')
ROS = ('launch', 'nodes', 'evaluation_node')
NAMES = [
    *('cli', 'findings', 'parameters', 'recordings'),
    *(f'sensors/{name}' for name in SENSORS),
    *(f'ros/{name}' for name in ROS),
]


@pytest.fixture
def docs(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Their writers can be imported."""
    monkeypatch.syspath_prepend(repository / 'docs')
    return repository / 'docs'


@pytest.mark.parametrize('name', NAMES)
def test_a_page_is_what_the_declarations_make_of_it(name: str, docs: Path) -> None:
    """`python docs/write_reference.py` writes them."""
    if name not in ('cli', 'findings'):
        pytest.importorskip('rclpy', reason='the nodes declare parameters too')
    writer = importlib.import_module('write_reference')
    assert set(writer.PAGES) == set(NAMES)
    written = (writer.FOLDER / f'{name}.md').read_text(encoding='utf-8')
    assert written == writer.PAGES[name]()


def test_every_parameter_of_sensors_nodes_and_recordings_is_on_a_page(docs: Path) -> None:
    pytest.importorskip('rclpy', reason='the nodes declare parameters too')
    blocks = importlib.import_module('writers.blocks')
    parameters = importlib.import_module('writers.parameters')
    shown = blocks.shown()
    declared = {
        s for s in parameters.declared_sets() if s.__module__.startswith(parameters.ELSEWHERE)
    }
    # What a set has from another is shown with either.
    hidden = {
        one
        for one in declared
        if not any(
            issubclass(s, one) or (issubclass(one, s) and one.declarations() == s.declarations())
            for s in shown
        )
    }
    assert len(declared) > 50
    assert not hidden


def test_the_reference_names_only_tests_that_exist(docs: Path) -> None:
    for page in (docs / 'reference').rglob('*.md'):
        for name in re.findall(r'`(test/\w+\.py)`', page.read_text(encoding='utf-8')):
            assert (docs.parent / name).is_file(), f'{page.name} names {name}'


def test_what_is_written_by_hand_stays_short_enough_to_read(repository: Path) -> None:
    words = 0
    generated = {'api.md', 'cli.md', 'findings.md', 'parameters.md'}
    for page in (repository / 'README.md', *(repository / 'docs').rglob('*.md')):
        if page.name not in generated:
            text = re.sub(
                r'<!-- \w+: [\w.]+ -->.*?<!-- end -->', '', page.read_text('utf-8'), flags=re.S
            )
            text = re.sub(r'^ *```.*?^ *```', '', text, flags=re.S | re.M)
            # Not the bars of tables.
            words += sum(any(map(str.isalnum, word)) for word in text.split())
    assert words <= 40_000, 'say it once, or in a generated block'
