# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Check the prose of the pages with proselint and the style of this project.

`python docs/prose.py` checks all pages, `python docs/prose.py PAGE ...` some. Code, tables,
headings, targets of links and generated blocks are not prose. The exit status is 1 if there is a
finding.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from proselint import checks
from proselint.registry import CheckRegistry
from proselint.registry.checks import Check, CheckResult, types
from proselint.tools import LintFile

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 30
"""Words of the longest sentence."""

_NOT_PROSE = re.compile(
    r"""
    \A---\n.*?\n---\n                             # front matter
    | ^[ ]*(```|~~~).*?^[ ]*\1[ ]*$               # code
    | <!--[ ]\w+:[ ]?[\w.]*[ ]-->.*?<!--[ ]end[ ]-->  # generated blocks
    | <!--.*?-->
    | ^[ ]*\|.*?$ | ^\#.*?$                       # tables, headings
    | ^[ ]{4}>>>.*?(?=\n\n|\Z)                   # a session of Python
    | ^[ ]{4}[^\n]*\n(?=\n|\Z)                    # a formula
    """,
    re.M | re.S | re.X,
)
_CODE = re.compile(
    r'`[^`]+`|<[^>\s][^>]*>|\*\*|\[(?=[^\]]*\]\()|!(?=\[)|\]\([^)\s]*(?:\s+"[^"]*")?\)'
)
_ITEM = re.compile(r'\n\s*\n|\n(?=[ \t]*(?:[-*]|\d+\.)[ \t])')
_END = re.compile(r'(?<=[.?!;:])(?<!e\.g\.)(?<!i\.e\.)["*)_]*\s+')
_MARKER = re.compile(r'[\s*_("]*(?:(?:[-*]|\d+\.)[ \t]+)?[\s*_("]*')
_INVERTED = re.compile(
    r'(?:Of|Who|Whoever|What|Whatever|Which|Those|None:|(?:From|By|In) which|Beside|Behind)\b'
)


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence with its place in a text."""
    start = 0
    for part in [*_ITEM.finditer(text), None]:
        end = part.start() if part else len(text)
        for stop in [*_END.finditer(text, start, end), None]:
            sentence = text[start : stop.start() if stop else end]
            marker = _MARKER.match(sentence)
            skipped = marker.end() if marker else 0
            if sentence[skipped:].strip():
                yield start + skipped, sentence[skipped:].rstrip()
            start = stop.end() if stop else end


def _long(text: str, check: Check) -> Iterator[CheckResult]:
    for start, sentence in _sentences(text):
        count = len(re.findall(r'\w\S*', sentence))
        if count > LONGEST:
            message = check.message.format(count)
            yield CheckResult(check.path, message, (start, start + len(sentence)), None)


def _inverted(text: str, check: Check) -> Iterator[CheckResult]:
    for start, sentence in _sentences(text):
        opening = _INVERTED.match(sentence)
        if opening and not sentence.endswith('?'):
            message = check.message.format(opening[0])
            yield CheckResult(check.path, message, (start, start + opening.end()), None)


PROJECT = (
    Check(_long, path='project.long', message=f'a sentence of {{}} words, more than {LONGEST}'),
    Check(_inverted, path='project.inverted', message="opens with '{}': begin with the subject"),
    Check(
        types.Existence(items=(r'\b(?:things?|stuff|a lot of|lots of|sort of|very)\b',)),
        path='project.vague',
        message="'{}' is vague: name it",
    ),
)
"""The style of this project, as checks of proselint."""

_ENABLED = {
    **{check.path.partition('.')[0]: True for check in (*checks.__register__, *PROJECT)},
    # Lists of the most frequent words, for those who write with these alone.
    'restricted': False,
    # Pages have straight quotes, and spaces stand for code here.
    'typography': False,
    # 24 V is no time of the day, p = 0.0005 is not 0, and some names are more false than others.
    'dates_times': False,
    'psychology': False,
    'uncomparables': False,
    # Its one word is among the vague ones of the project.
    'weasel_words': False,
}


def findings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the message of each finding in a page."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r'\S', ' ', match[0])

    def code(match: re.Match[str]) -> str:
        # A word in the place of code keeps the sentence whole.
        return 'x' + blank(match)[1:] if match[0][0] in '`' else blank(match)

    prose = _CODE.sub(code, _NOT_PROSE.sub(blank, text))
    for result in LintFile('page', prose).lint({'max_errors': 1000, 'checks': _ENABLED}):
        line, _ = result.pos
        yield line, f'{result.check_result.message} ({result.check_result.check_path})'


def pages() -> list[Path]:
    """Return the pages that are written by hand, at least in part."""
    documents = [
        *ROOT.glob('*.md'),
        *(ROOT / 'examples').rglob('*.md'),
        *(ROOT / 'docs').rglob('*.md'),
    ]
    return [
        path
        for path in sorted(documents)
        if not re.search(r'\A(?:---\n.*?\n---\n\s*)?<!-- Made by', path.read_text('utf-8'), re.S)
    ]


def register() -> None:
    """Let proselint use its own checks and those of the project."""
    registry = CheckRegistry()
    if not registry.checks:
        registry.register_many((*checks.__register__, *PROJECT))


def main() -> int:
    """Print the findings; return the exit status."""
    register()
    count = 0
    for path in [Path(name).resolve() for name in sys.argv[1:]] or pages():
        for line, message in findings(path.read_text('utf-8')):
            print(f'{path.relative_to(ROOT)}:{line}: {message}')
            count += 1
    return int(count > 0)


if __name__ == '__main__':
    sys.exit(main())
