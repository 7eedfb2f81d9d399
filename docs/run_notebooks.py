# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Run the notebooks and store their outputs: `python docs/run_notebooks.py`, about two minutes.

The site shows the stored outputs: `make docs` runs no notebook. A test compares them with those of
a new run.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import nbclient
import nbformat

FOLDER = Path(__file__).with_name('notebooks')


def run_notebook(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with the outputs of a run in an empty folder."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        place = {'metadata': {'path': folder}}
        # Stamps of execution would differ in each run.
        nbclient.NotebookClient(
            notebook, timeout=300, resources=place, record_timing=False
        ).execute()
    return notebook


if __name__ == '__main__':
    os.environ['MPLBACKEND'] = 'module://matplotlib_inline.backend_inline'
    for path in sorted(FOLDER.glob('*.ipynb')):
        nbformat.write(run_notebook(path), path)
