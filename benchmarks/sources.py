# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Run every line of docs/sources.md, compare with the printed numbers, and write the page.

`sources.py` runs all documents, `sources.py --only Ligorio2015` one. Outputs of commands that
succeeded are kept in build/sources until their document is finished, so that an interrupted run
continues. `--write` runs nothing and writes the page from docs/sources/*.yaml and the figures of
the last run.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import doctest
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent))

from measuring import machine

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / 'build' / 'sources'
FIGURES = Path(__file__).parent / 'results' / 'sources.json'
DOCUMENTS = ROOT / 'docs' / 'sources'
PAGE = ROOT / 'docs' / 'sources.md'
_BLOCK = re.compile(r'(<!-- (source|run): ?(\w*) -->\n).*?(<!-- end -->)', re.S)


@dataclasses.dataclass(frozen=True)
class Number:
    """A printed number, and where a command writes ours.

    `ours` is FILE.json#/json/pointer (~1 is a slash of a key), or
    FILE.csv?column=value&column=value#column. It is multiplied by `times`, for a printed unit.
    """

    name: str
    printed: str
    ours: str
    unit: str = ''
    reason: str = ''
    times: float = 1.0

    def read(self, folder: Path) -> float:
        """Return our number from the files of a folder."""
        path, _, wanted = self.ours.partition('#')
        path, _, chosen = path.partition('?')
        text = (folder / path).read_text(encoding='utf-8')
        if path.endswith('.json'):
            value = json.loads(text)
            for key in wanted.strip('/').split('/'):
                name = key.replace('~1', '/')
                value = value[int(key)] if isinstance(value, list) else value[name]
            return float(value) * self.times
        lines = [line for line in text.splitlines() if not line.startswith('#')]
        conditions = dict(parse_qsl(chosen, strict_parsing=True)) if chosen else {}
        rows = [
            row for row in csv.DictReader(lines)
            if all(row[column] == value for column, value in conditions.items())
        ]  # fmt: skip
        if len(rows) != 1:
            raise ValueError(f'{self.ours}: {len(rows)} rows')
        return float(rows[0][wanted]) * self.times

    def is_met(self, ours: float) -> bool:
        """Return whether ours, rounded like the printed number, is the printed number."""
        step = Decimal(1).scaleb(int(Decimal(self.printed).as_tuple().exponent))
        return abs(Decimal(ours) - Decimal(self.printed)) <= Decimal('0.5001') * step


@dataclasses.dataclass(frozen=True)
class Row:
    """A part of a document, what it shows, and what makes it here."""

    where: str
    what: str
    page: str
    command: str = ''
    python: str = ''
    small: str | dict[str, str] = ''  # arguments that shorten each command, or each by its verb
    missing: str = ''
    files: tuple[str, ...] = ()
    numbers: tuple[Number, ...] = ()

    @property
    def commands(self) -> list[str]:
        """Commands of the row, with continued lines joined."""
        return [line.strip() for line in self.command.replace('\\\n', ' ').splitlines() if line]

    @property
    def is_live(self) -> bool:
        """Whether the row needs ROS."""
        return any(line.startswith('ros2 ') for line in self.commands)

    @property
    def is_script(self) -> bool:
        """Whether the row runs a script of this tree, which tests run only in small form."""
        return any(line.startswith('python ') for line in self.commands)


@dataclasses.dataclass(frozen=True)
class Document:
    """A document that the package follows; `numbered` are its figures, tables and equations."""

    key: str
    title: str
    authors: str
    words: tuple[str, ...]
    numbered: dict[str, str]
    rows: tuple[Row, ...]


def documents() -> list[Document]:
    """Return the documents of docs/sources."""
    read = []
    for path in sorted(DOCUMENTS.glob('*.yaml')):
        fields = yaml.safe_load(path.read_text(encoding='utf-8'))
        rows = []
        for row in fields.pop('rows'):
            numbers = [
                Number(**{**number, 'printed': str(number['printed'])})
                for number in row.pop('numbers', ())
            ]
            rows.append(Row(**{**row, 'files': tuple(row.get('files', ()))}, numbers=(*numbers,)))
        words = tuple(fields.pop('words'))
        numbered = fields.pop('numbered', {})
        read.append(Document(path.stem, rows=(*rows,), words=words, numbered=numbered, **fields))
    return read


# Runs.


def run(document: Document) -> dict[str, float]:
    """Run the rows of a document in one folder; return our numbers by their names."""
    commands = '\n'.join(line for row in document.rows for line in row.commands)
    folder = FOLDER / f'{document.key}_{_digest(commands)}'
    folder.mkdir(parents=True, exist_ok=True)
    ours = {}
    for row in document.rows:
        if not row.is_live:
            for line in row.commands:
                _run_once(line, folder)
            run_python(row)
            for name in row.files:
                if not (folder / name).exists():
                    raise SystemExit(f'{document.key}, {row.where}: {name} was not written')
            ours.update(
                (f'{row.where}: {number.name}', number.read(folder)) for number in row.numbers
            )
    shutil.rmtree(folder)
    return ours


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _run_once(line: str, folder: Path) -> None:
    done = folder / f'.done_{_digest(line)}'
    if done.exists():
        return
    began = time.perf_counter()
    tools = {'PATH': f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}'}
    process = subprocess.run(
        words_of(line, folder), cwd=folder, env={**os.environ, **tools}, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if process.returncode:
        raise SystemExit(f'{process.stdout}\n{line}: exit status {process.returncode} in {folder}')
    done.touch()
    print(f'{time.perf_counter() - began:6.0f} s  {line}', flush=True)


def words_of(line: str, folder: Path) -> list[str]:
    """Return the words of a command: patterns of paths expanded, benchmarks/ of this tree."""
    words: list[str] = []
    for word in shlex.split(line):
        paths = sorted(folder.glob(word)) if '*' in word else []
        words += [str(path.relative_to(folder)) for path in paths] or [word]
    if words[0] == 'python':
        return [sys.executable, str(ROOT / words[1]), *words[2:]]
    return words


def run_python(row: Row) -> None:
    """Run the Python lines of a row; end with a message if they print something else."""
    test = doctest.DocTestParser().get_doctest(row.python, {}, row.where, None, None)
    if doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed:
        raise SystemExit(f'{row.where}: its Python lines fail')


# The page.


def page(results: dict[str, Any]) -> str:
    """Return the page with its blocks written anew; `results` are those of the last run."""
    by_key = {document.key: document for document in documents()}

    def block(match: re.Match[str]) -> str:
        if match[2] == 'run':
            lines = [_summary(results, by_key)]
        else:
            lines = _section(by_key[match[3]], results['figures'].get(match[3], {}))
        return '\n'.join([match[1], *lines, '', match[4]])

    return _BLOCK.sub(block, PAGE.read_text(encoding='utf-8'))


def _summary(results: dict[str, Any], by_key: dict[str, Document]) -> str:
    lines = sum(len(document.rows) for document in by_key.values())
    return f'{lines} table rows. Run on {results["date"]}, Python {results["machine"]["python"]}.'


def numbers_of(document: Document) -> dict[str, Number]:
    """Return the printed numbers of a document by place and name."""
    return {
        f'{row.where}: {number.name}': number for row in document.rows for number in row.numbers
    }


def _section(document: Document, figures: dict[str, float]) -> list[str]:
    lines = [
        f'*{document.title}*, {document.authors} [{document.key}]: {", ".join(document.words)}.',
        '',
        '| In the document | What | Read | Run | Look at |',
        '|---|---|---|---|---|',
    ]
    for row in document.rows:
        name = row.page.partition('#')[0].removesuffix('.md').rpartition('/')[2]
        link = f'[{name.replace("_", " ")}]({row.page})'
        files = ', '.join(f'`{name}`' for name in row.files)
        lines.append(f'| {row.where} | {row.what} | {link} | {_command_cell(row)} | {files} |')
    for row in document.rows:
        if row.python:
            lines += _folded(
                f'Python: {row.where}', ['```python', *row.python.splitlines(), '```']
            )
    if figures:
        table = ['| In | Number | Printed | Ours | Why |', '|---|---|---|---|---|']
        reasons: dict[str, int] = {'': 0}
        numbers = numbers_of(document)
        for row in document.rows:
            place = row.where
            for number in row.numbers:
                ours = figures[f'{row.where}: {number.name}']
                reason = '' if number.is_met(ours) else number.reason
                why = reasons.setdefault(reason, len(reasons)) or ''
                table.append(f'| {place} | {number.name} | {_both(number, ours)} | {why} |')
                place = ''
        table += ['', *(f'{number}. {reason}' for reason, number in reasons.items() if number)]
        met = sum(number.is_met(figures[name]) for name, number in numbers.items())
        title = f'{len(numbers)} printed numbers of {document.key} and ours; {met} agree'
        lines += _folded(f'{title} to the printed digits', table)
    return lines


def _folded(title: str, lines: list[str]) -> list[str]:
    """Return lines that open on a click, here and on GitHub."""
    return [
        '',
        '<details markdown="1">',
        f'<summary>{title}</summary>',
        '',
        *lines,
        '',
        '</details>',
    ]


def _both(number: Number, ours: float) -> str:
    """Return the cells of the printed number and of ours, with one more digit."""
    unit = f' {number.unit}' if number.unit else ''
    digits = max(-int(Decimal(number.printed).as_tuple().exponent), 0)
    rounded = f'{ours:.{digits + 1}f}' if abs(ours) < 1e4 and digits < 9 else f'{ours:.4g}'
    return f'{number.printed}{unit} | {rounded}{unit}'


def _command_cell(row: Row) -> str:
    if row.missing:
        return f'missing: {row.missing}'
    if row.python:
        return 'Python, below'
    needs = ' (needs ROS)' if row.is_live else ''
    return '<br>'.join(f'`{line}`' for line in row.commands) + needs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--only', metavar='KEY', help='one document')
    parser.add_argument('--write', action='store_true', help='run nothing, write the page')
    options = parser.parse_args()
    results = json.loads(FIGURES.read_text(encoding='utf-8'))
    if not options.write:
        keys = [document.key for document in documents()]
        if options.only not in (None, *keys):
            parser.error(f'--only {options.only}: must be one of {", ".join(keys)}')
        for document in documents():
            if options.only in (None, document.key):
                figures = results['figures'] | {document.key: run(document)}
                results = {
                    'date': time.strftime('%Y-%m-%d'), 'machine': machine(), 'figures': figures
                }  # fmt: skip
                # A later document that fails loses nothing of this one.
                FIGURES.write_text(json.dumps(results, indent=1) + '\n', encoding='utf-8')
    PAGE.write_text(page(results), encoding='utf-8')
    unexplained = [
        f'{document.key}, {name}: printed {number.printed}, ours {ours:.4g}, without a reason'
        for document in documents()
        for name, number in numbers_of(document).items()
        if (ours := results['figures'].get(document.key, {}).get(name)) is not None
        and not (number.is_met(ours) or number.reason)
    ]
    print('\n'.join(unexplained))
    sys.exit(bool(unexplained))


if __name__ == '__main__':
    main()
