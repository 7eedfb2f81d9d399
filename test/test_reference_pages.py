# SPDX-License-Identifier: Apache-2.0
"""Reference pages say what the declarations say."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest


@pytest.mark.parametrize('name', ['cli', 'findings', 'parameters'])
def test_a_page_is_what_the_declarations_make_of_it(
    name: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python docs/write_reference.py` writes them."""
    if name == 'parameters':
        pytest.importorskip('rclpy', reason='the nodes declare parameters too')
    monkeypatch.syspath_prepend(repository / 'docs')
    writer = importlib.import_module('write_reference')
    written = (writer.FOLDER / f'{name}.md').read_text(encoding='utf-8')
    assert written == writer.PAGES[name]()
