# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The notebooks of the documentation run."""

from __future__ import annotations

from pathlib import Path

import pytest

nbformat = pytest.importorskip('nbformat', reason='no notebooks: pip install nbclient ipykernel')
nbclient = pytest.importorskip('nbclient', reason='no notebooks: pip install nbclient ipykernel')
pytest.importorskip('ipykernel', reason='no notebooks: pip install nbclient ipykernel')

FOLDER = Path(__file__).resolve().parent.parent / 'docs' / 'notebooks'


@pytest.mark.parametrize('path', sorted(FOLDER.glob('*.ipynb')), ids=lambda p: p.stem)
def test_every_notebook_runs_without_errors(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('IPYTHONDIR', str(tmp_path / 'ipython'))
    monkeypatch.setenv('MPLBACKEND', 'module://matplotlib_inline.backend_inline')
    notebook = nbformat.read(path, as_version=4)
    place = {'metadata': {'path': str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=place).execute()
    pictures = [
        output
        for cell in notebook.cells
        for output in cell.get('outputs', [])
        if 'image/png' in output.get('data', {})
    ]
    assert pictures
