# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Examples and cost of --help and shell completion."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli_examples import VERBS, environment

from sim2real_eval.cli.parser import build_parser


def verb_parsers() -> dict[str, argparse.ArgumentParser]:
    (action,) = (a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(action.choices)


def test_the_parser_has_exactly_the_listed_verbs() -> None:
    assert tuple(verb_parsers()) == VERBS


@pytest.mark.parametrize('verb', ['', *VERBS])
def test_help_has_examples_and_they_parse(verb: str) -> None:
    parser = verb_parsers()[verb] if verb else build_parser()
    text = parser.format_help()
    lines = [line.strip() for line in text.splitlines() if line.startswith('  sim2real ')]
    assert lines
    for words in (shlex.split(line)[1:] for line in lines if 'VERB' not in line):
        assert build_parser().parse_args(words).run is not None


def test_help_imports_no_heavy_library_and_at_most_12_modules() -> None:
    code = (
        'import sys\n'
        'from sim2real_eval.cli.main import main\n'
        f'for verb in {["", *VERBS]!r}:\n'
        '    try:\n'
        '        main([verb, "--help"] if verb else ["--help"])\n'
        '    except SystemExit as stop:\n'
        '        assert stop.code == 0\n'
        '    if not verb:\n'
        '        ours = [m for m in sys.modules if m.startswith(("sim_sensors", "sim2real_"))]\n'
        '        assert len(ours) <= 12, ours\n'
        'heavy = {"numpy", "scipy", "numba", "yaml", "rich", "rosbags", "matplotlib"}\n'
        'print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=True,
        env=environment(), timeout=300,
    )  # fmt: skip
    assert done.stderr.strip() == '[]'


def test_shell_completion_imports_no_heavy_library(tmp_path: Path) -> None:
    """The protocol of argcomplete: the shell passes a line, the command writes the words."""
    words = {}
    for line in ('sim2real ve', 'sim2real vepd --front', 'sim2real vepd --front-end '):
        out = tmp_path / 'words'
        shell = {
            '_ARGCOMPLETE': '1', '_ARGCOMPLETE_IFS': ' ', 'COMP_LINE': line,
            'COMP_POINT': str(len(line)), '_ARGCOMPLETE_STDOUT_FILENAME': str(out),
            '_ARGCOMPLETE_SUPPRESS_SPACE': '1',
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, '-X', 'importtime', '-m', 'sim2real_eval.cli'],
            env={**environment(), **shell}, capture_output=True, text=True, timeout=300,
            check=True,
        )  # fmt: skip
        loaded = {log_line.rpartition('|')[2].strip() for log_line in done.stderr.splitlines()}
        assert not {'numpy', 'scipy', 'numba', 'yaml', 'rich', 'matplotlib'} & loaded
        words[line] = out.read_text(encoding='utf-8').split()
    assert list(words.values()) == [['vepd'], ['--front-end'], ['navsat_transform', 'enu']]
