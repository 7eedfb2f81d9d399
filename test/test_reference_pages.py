# SPDX-License-Identifier: Apache-2.0
"""Reference pages say what the declarations say."""

from __future__ import annotations

import importlib
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
    """Folder of the documentation, with its writers on the path."""
    monkeypatch.syspath_prepend(repository / 'docs')
    return repository / 'docs'


@pytest.mark.parametrize('name', NAMES)
def test_a_reference_page_is_up_to_date(name: str, docs: Path) -> None:
    """`python docs/write_reference.py` writes them."""
    if name not in ('cli', 'findings'):
        pytest.importorskip('rclpy', reason='the nodes declare parameters too')
    writer = importlib.import_module('write_reference')
    assert set(writer.PAGES) == set(NAMES)
    written = (writer.FOLDER / f'{name}.md').read_text(encoding='utf-8')
    assert written == writer.PAGES[name]()
