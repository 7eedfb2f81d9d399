# SPDX-License-Identifier: Apache-2.0
"""docs/reference/parameters.md says what the declarations say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='the nodes declare parameters too')


def test_the_reference_is_that_of_the_declarations(repository: Path) -> None:
    """`python docs/write_parameters.py` writes it."""
    path = repository / 'docs' / 'write_parameters.py'
    spec = importlib.util.spec_from_file_location('write_parameters', path)
    assert spec is not None
    assert spec.loader is not None
    written = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(written)
    assert written.page() == written.PAGE.read_text(encoding='utf-8')
