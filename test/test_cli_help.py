# SPDX-License-Identifier: Apache-2.0
"""Content and cost of --help, --version and shell completion."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli_examples import VERBS, call, environment

from sim2real_eval.cli.parser import build_parser
from sim_sensors.core.config_files import config_path

Capture = pytest.CaptureFixture[str]


def verb_parsers() -> dict[str, argparse.ArgumentParser]:
    (action,) = (
        action
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return dict(action.choices)


def test_the_parser_has_exactly_the_listed_verbs() -> None:
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


def test_help_imports_no_heavy_library_and_twelve_modules_at_most() -> None:
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
    for verb in VERBS:
        assert f'usage: sim2real {verb}' in done.stdout


def value_of(action: argparse.Action) -> object:
    """Return the kind of value of an option: none, its choices, or its metavar."""
    if action.nargs == 0 or (action.choices and not action.metavar):
        return action.choices and tuple(action.choices)
    # These metavars all stand for models, by name or by file.
    return {'LIST': 'MODEL', 'NAME': 'MODEL', 'NAME|FILE': 'MODEL'}.get(
        str(action.metavar), action.metavar
    )


def test_an_option_takes_the_same_in_every_verb() -> None:
    """Only --out differs between verbs: it is a file or a folder."""
    values_by_option: dict[str, set[object]] = {}
    for parser in verb_parsers().values():
        for action in parser._actions:
            for option in action.option_strings:
                values_by_option.setdefault(option, set()).add(value_of(action))
    several = {option for option, values in values_by_option.items() if len(values) > 1}
    assert several == {'--out'}


def test_bare_command_prints_the_help(capsys: Capture) -> None:
    bare = call(capsys)
    assert bare.status == 0
    assert bare.out == call(capsys, '--help').out


def test_rarely_needed_options_are_in_the_long_help_only(capsys: Capture) -> None:
    short, whole = call(capsys, 'vepd', '--help').out, call(capsys, 'vepd', '--help-all').out
    assert 'more options: sim2real vepd --help-all' in short
    assert 'more options' not in whole
    for option, is_common in (('--real', True), ('--out', True), ('--spectrum-floor', False)):
        assert (f'{option} ' in short) == is_common
        assert f'{option} ' in whole


def test_the_help_of_study_lists_what_is_shipped(capsys: Capture) -> None:
    text = call(capsys, 'study', '--help').out
    for path in config_path('studies').glob('*.yaml'):
        assert f'\n  {path.stem} ' in text


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


def test_version_names_what_shapes_results(capsys: Capture) -> None:
    outcome = call(capsys, '--version')
    assert outcome.status == 0
    names = [line.split()[0] for line in outcome.out.splitlines()]
    assert names[:3] == ['python', 'sim2real_sensors', 'numpy']
