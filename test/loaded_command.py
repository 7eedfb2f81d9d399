# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Import and compile what a command needs, in the process from which `command_copies` forks."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

from cli_examples import pictures_left_blank, write_runs

from sim2real_eval.cli.main import main

with (
    tempfile.TemporaryDirectory() as folder,
    pictures_left_blank(),
    contextlib.redirect_stdout(io.StringIO()),
    contextlib.redirect_stderr(io.StringIO()),
):
    bags = write_runs(Path(folder), ('drive_line', 1))
    options = '--models', 'ch_rw', '--resamples', '100', '--jobs', '1'
    assert main(['vepd', *map(str, bags), *options, '--out', f'{folder}/out']) == 0

with contextlib.suppress(ImportError):
    import sim2real_eval.judge.external.graph  # noqa: F401
