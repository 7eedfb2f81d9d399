# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The notebooks of the documentation run, and show what a run shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

REASON = 'no notebooks: pip install nbclient ipykernel'
nbformat = pytest.importorskip('nbformat', reason=REASON)
for library in ('nbclient', 'ipykernel'):
    pytest.importorskip(library, reason=REASON)

FOLDER = Path(__file__).resolve().parent.parent / 'docs' / 'notebooks'
NUMBER = re.compile(r'-?\d+(?:\.\d+)?(?:e-?\d+)?')


def outputs(notebook: Any) -> tuple[list[float], int]:
    """Return the numbers in the texts, and the number of pictures."""
    shown = [output for cell in notebook.cells for output in cell.get('outputs', [])]
    pictures = sum('image/png' in output.get('data', {}) for output in shown)
    texts = (
        output.get('text') or output['data']['text/plain']
        for output in shown
        if 'image/png' not in output.get('data', {})
    )
    return [float(number) for text in texts for number in NUMBER.findall(text)], pictures


@pytest.mark.parametrize('path', sorted(FOLDER.glob('*.ipynb')), ids=lambda p: p.stem)
def test_a_notebook_shows_what_a_run_shows(
    path: Path, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python docs/run_notebooks.py` stores the outputs."""
    monkeypatch.syspath_prepend(repository / 'docs')
    monkeypatch.setenv('IPYTHONDIR', str(tmp_path / 'ipython'))
    monkeypatch.setenv('MPLBACKEND', 'module://matplotlib_inline.backend_inline')
    from run_notebooks import run_notebook

    stored, pictures = outputs(nbformat.read(path, as_version=4))
    numbers, drawn = outputs(run_notebook(path))
    assert pictures == drawn > 0
    # Versions of numpy and scipy differ in the last digits.
    assert stored == pytest.approx(numbers, rel=0.02)
    assert len(numbers) > 3
