# SPDX-License-Identifier: Apache-2.0
"""What --help, --version and the page about the command say."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli_examples import VERBS, call, environment

from sim2real_eval.cli.main import build_parser

Capture = pytest.CaptureFixture[str]


def verb_parsers() -> dict[str, argparse.ArgumentParser]:
    (action,) = (
        action
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return dict(action.choices)


def test_these_are_all_verbs() -> None:
    assert tuple(verb_parsers()) == VERBS


@pytest.mark.parametrize('verb', ['', *VERBS])
def test_help_has_examples_and_they_parse(verb: str) -> None:
    parser = verb_parsers()[verb] if verb else build_parser()
    text = parser.format_help()
    lines = [line.strip() for line in text.splitlines() if line.startswith('  sim2real ')]
    assert lines
    for line in lines:
        words = shlex.split(line)[1:]
        if 'VERB' in words:
            continue
        assert build_parser().parse_args(words).run is not None


@pytest.mark.parametrize('verb', ['', *VERBS])
def test_every_option_is_explained(verb: str) -> None:
    parser = verb_parsers()[verb] if verb else build_parser()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            continue
        assert action.help or action.choices, action.option_strings


def test_help_is_quick_and_imports_nothing_heavy() -> None:
    """All of them in one process: below 0.5 s of CPU each, and no numpy."""
    code = (
        'import sys, time\n'
        'from sim2real_eval.cli.main import main\n'
        f'for verb in {["", *VERBS]!r}:\n'
        '    try:\n'
        '        main([verb, "--help"] if verb else ["--help"])\n'
        '    except SystemExit as stop:\n'
        '        assert stop.code == 0\n'
        'heavy = {"numpy", "scipy", "numba", "yaml", "rich", "rosbags", "matplotlib"}\n'
        'print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n'
        'print(time.process_time(), file=sys.stderr)\n'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=True,
        env=environment(), timeout=60,
    )  # fmt: skip
    heavy, seconds = done.stderr.splitlines()
    assert heavy == '[]'
    assert float(seconds) < 0.5
    for verb in VERBS:
        assert f'usage: sim2real {verb}' in done.stdout


def test_version_names_what_shapes_results(capsys: Capture) -> None:
    outcome = call(capsys, '--version')
    assert outcome.status == 0
    names = [line.split()[0] for line in outcome.out.splitlines()]
    assert names[:3] == ['python', 'sim2real_sensors', 'numpy']


def test_examples_of_the_page_parse_and_every_option_is_on_it(repository: Path) -> None:
    page = (repository / 'docs' / 'cli.md').read_text(encoding='utf-8')
    lines = [line.strip()[2:] for line in page.splitlines() if line.startswith('    $ sim2real ')]
    assert len(lines) >= 10
    for line in lines:
        assert build_parser().parse_args(shlex.split(line)[1:]).run is not None
    for parser in verb_parsers().values():
        for action in parser._actions:
            for option in action.option_strings:
                assert option in page or option == '-h', option
