# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Reference pages are up to date, and every cited source is in references.md."""

from __future__ import annotations

import functools
import importlib
import re
from pathlib import Path

import pytest

from sim2real_eval.cli.parser import GROUPS

ROOT = Path(__file__).parents[1]
FOLDERS = (
    *('sim_sensors', 'sim2real_eval', 'config', 'launch', 'gazebo_ws_plugins'),
    *('docs', 'test', 'benchmarks'),
)
SUFFIXES = {'.py', '.md', '.yaml', '.xacro', '.toml'}

# A key with a year anywhere, one without where prose has it: no list, no index and no link.
DATED = re.compile(r'\[([A-Z][A-Za-z]+(?:19|20)\d\d[a-z]?)\]')
UNDATED = re.compile(r'(?:^|[ (])\[([A-Z][A-Za-z0-9]{2,})\](?=[\s,.;:)])', re.M)
PROSE = re.compile(r'"""(.*?)"""|#(.*?)$', re.M | re.S)
DEFINED = re.compile(r'^- \*\*\[(\w+)\]\*\* ', re.M)


@functools.cache
def documents() -> dict[str, str]:
    """Return the texts of the tree by path."""
    paths = [*ROOT.glob('*.md')]
    for folder in FOLDERS:
        paths += (p for p in (ROOT / folder).rglob('*') if p.suffix in SUFFIXES)
    paths.remove(Path(__file__))
    return {str(p.relative_to(ROOT)): p.read_text(encoding='utf-8') for p in paths}


def cited(path: str, text: str) -> set[str]:
    """Return the keys that a text cites."""
    prose = text
    if path.endswith('.py'):
        prose = '\n'.join(' '.join(groups) for groups in PROSE.findall(text))
    return {*DATED.findall(text), *UNDATED.findall(prose)}


def test_every_cited_key_is_listed_once() -> None:
    listed = DEFINED.findall((ROOT / 'docs/reference/references.md').read_text(encoding='utf-8'))
    assert len(listed) == len(set(listed)) > 50
    unknown = {(p, key) for p, text in documents().items() for key in cited(p, text) - {*listed}}
    assert not unknown


SENSORS = ('index', 'imu', 'gps', 'magnetometer', 'camera', 'wheels', 'vision')


ROS = ('launch', 'nodes', 'evaluation_node')


NAMES = [
    *('cli', 'findings', 'parameters', 'recordings'),
    *(f'cli/{verb}' for group in GROUPS.values() for verb in group),
    *(f'sensors/{name}' for name in SENSORS),
    *(f'ros/{name}' for name in ROS),
]


@pytest.fixture
def docs(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the documentation, with its writers on the path."""
    monkeypatch.syspath_prepend(repository / 'docs')
    return repository / 'docs'


@pytest.mark.parametrize('name', NAMES)
def test_a_reference_page_is_up_to_date(name: str, docs: Path) -> None:
    """`python docs/write_reference.py` writes them."""
    if name.partition('/')[0] not in ('cli', 'findings'):
        pytest.importorskip('rclpy', reason='the nodes declare parameters too')
    writer = importlib.import_module('write_reference')
    assert set(writer.PAGES) == set(NAMES)
    written = (writer.FOLDER / f'{name}.md').read_text(encoding='utf-8')
    assert written == writer.PAGES[name]()


def test_each_page_of_a_verb_has_its_verb(docs: Path) -> None:
    """A verb that is removed takes its page along."""
    pages = {f'cli/{page.stem}' for page in (docs / 'reference' / 'cli').iterdir()}
    assert pages == {name for name in NAMES if name.startswith('cli/')}
