# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Output of the verbs: results on standard output, everything else on standard error."""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import logging
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sim2real_eval.common.findings import FINDINGS, Finding, Severity, by_severity
from sim_sensors.core.errors import Sim2RealError, printable
from .parser import complain

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from sim2real_eval.report.answer import AnswerLine
    from sim2real_eval.signals.comparison import SignalComparison

MAX_FINDINGS = 3
"""Findings that are shown below an answer."""

MAX_COLUMNS = 80
"""Width of printed text and tables."""

_STYLE = re.compile(r'(\x1b\[(?:0|1|3|1;3)m)')
"""Escape sequences that begin and end bold text and italics in `rich`; they are harmless."""

Item = TypeVar('Item')
Result = TypeVar('Result')


class PrintableOutput(io.TextIOWrapper):
    """Standard output with escapes of characters that are not printable.

    Names of files, topics and frames come from outside. They may hold bytes that are not UTF-8,
    and sequences that move the cursor of a terminal or set its title.
    """

    @classmethod
    def replacing(cls, stream: io.TextIOWrapper) -> PrintableOutput:
        """Return the output that takes the place of another, which becomes unusable."""
        encoding, line_buffering = stream.encoding, stream.line_buffering
        return cls(
            stream.detach(), encoding, errors='backslashreplace', line_buffering=line_buffering
        )

    def write(self, text: str) -> int:
        """Write text; see `printable`."""
        parts = _STYLE.split(text)
        parts[::2] = [printable(part, '\n\t') for part in parts[::2]]
        super().write(''.join(parts))
        return len(text)


def report_failures(failures: Sequence[str], *, of: int) -> None:
    """Report each recording that was left out on a line of standard error.

    If all `of` recordings failed, raise Sim2RealError with the first reason and the number of
    others.
    """
    if len(failures) == of:
        more = f' (and {of - 1} more)' if of > 1 else ''
        raise Sim2RealError(f'{failures[0]}{more}')
    for failure in failures:
        complain(f'left out: {failure}')


def attempt_each(
    items: Sequence[Item], attempt: Callable[[Item], Result], what: str = 'recordings'
) -> tuple[list[Result], list[str]]:
    """Call a function for each item and return the results and the failures.

    Results are in the order of the items. An item whose call raises Sim2RealError does not affect
    the others; its error is reported and returned as text. `what` is the title of the progress
    bar. Raises Sim2RealError when all items fail.
    """
    results, failures = attempt_each_in_steps(items, lambda item, _: attempt(item), what, 1)
    report_failures(failures, of=len(items))
    return results, failures


def attempt_each_in_steps(
    items: Sequence[Item],
    attempt: Callable[[Item, Callable[[], None]], Result],
    what: str,
    steps: int,
) -> tuple[list[Result], list[str]]:
    """Do the same as `attempt_each` without reporting failures.

    The second argument of `attempt` is a function to call after each step.
    """
    results: list[Result] = []
    failures: list[str] = []
    done = 0
    with progress_bar(len(items) * steps, what) as advance:

        def step() -> None:
            nonlocal done
            done += 1
            advance()

        for number, item in enumerate(items, 1):
            try:
                results.append(attempt(item, step))
            except Sim2RealError as error:
                failures.append(str(error))
            # A failed item also counts its remaining steps as done.
            while done < number * steps:
                step()
    return results, failures


def conclude(
    options: argparse.Namespace,
    record: Any,
    print_result: Callable[[], object],
    where: str | None = None,
    failures: Sequence[object] = (),
) -> int:
    """Print a result and return the exit status, which is 1 if there are failures.

    The record is printed with --json. Otherwise `print_result` prints the result for people, and
    then the files in --out are named.
    """
    if options.json:
        print_json(record)
    else:
        print_result()
        if where and options.out:
            print(f'{where}: {options.out}')
    return 1 if failures else 0


def print_json(value: Any) -> None:
    """Print a result as JSON on standard output."""
    from sim2real_eval.common.results import json_text

    print(json_text(value))


def lines_text(
    lines: Sequence[AnswerLine], *, max_lines: int | None = None, end: str = ' ...'
) -> str:
    """Return lines as wrapped text, with the texts aligned behind their headings.

    Each text has at most `max_lines` lines; `end` replaces the end of a longer one.
    """
    gap = max((len(line.head) for line in lines), default=0) + 2
    return '\n'.join(
        wrap_text(line.text, f'{line.head:<{gap}}', max_lines=max_lines, end=end) for line in lines
    )


def wrap_text(
    text: str,
    head: str = '',
    more_indent: str = '',
    *,
    max_lines: int | None = None,
    end: str = ' ...',
) -> str:
    """Return text in lines that fit the terminal; the first line begins with a heading.

    The other lines are indented by the width of the heading and `more_indent`. If there are more
    than `max_lines`, `end` replaces the end of the text.
    """
    return textwrap.fill(
        text,
        text_width(),
        initial_indent=head,
        subsequent_indent=' ' * len(head) + more_indent,
        break_on_hyphens=False,
        break_long_words=False,
        max_lines=max_lines,
        placeholder=end,
    )


def text_width() -> int:
    """Return the width of printed text: that of the terminal, at most 80 columns."""
    return min(shutil.get_terminal_size((MAX_COLUMNS, 24)).columns, MAX_COLUMNS)


def print_table(table: RenderableType) -> None:
    """Print a table, or several, on standard output."""
    # Output to a pipe is not wrapped.
    _console(None if sys.stdout.isatty() else 200).print(table)


def table_lines(table: RenderableType) -> list[str]:
    """Return the lines of a table that fits the terminal, with the styles of a terminal."""
    console = _console(text_width())
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in capture.get().splitlines()]


def _console(width: int | None) -> Console:
    from rich.console import Console

    # Cells hold names, which may look like markup of rich.
    return Console(highlight=False, markup=False, emoji=False, width=width)


def print_signals(
    comparison: SignalComparison,
    folder: str | Path,
    *,
    published: bool = False,
    quiet: bool = False,
) -> None:
    """Print the tables of a comparison of signals, and the answer below them.

    With `quiet`, only the answer is printed. `folder` has the complete result.
    """
    from sim2real_eval.report.signals import doubts, signal_answer_lines, signal_tables

    # There is no answer if only features were compared.
    answer = lines_text(signal_answer_lines(comparison))
    if not (quiet and answer):
        print_table(signal_tables(comparison, published=published))
    if quiet:
        print(answer, end='\n' if answer else '')
        return
    if answer:
        print(f'\n{answer}')
    skipped = 1 if answer else 0
    if more_doubts := doubts(comparison)[skipped : skipped + MAX_FINDINGS]:
        print('\nAlso:' if answer else '\nPlease note:')
    for finding in more_doubts:
        print(wrap_text(str(finding), '- '))
    if comparison.notes:
        print(f'\nAll {len(comparison.notes)} findings: {Path(folder) / FINDINGS}')


def print_notes(notes: Iterable[Finding], *, verbose: bool = False) -> None:
    """Print findings on standard error, the most severe first.

    Routine findings without a remedy are printed only if `verbose`.
    """
    notes = [
        note
        for note in by_severity(notes)
        if verbose or note.remedy or note.severity is not Severity.ROUTINE
    ]
    if notes:
        print('Please note:', *(wrap_text(str(note), '  - ') for note in notes), sep='\n',
              file=sys.stderr)  # fmt: skip


def _say(line: str) -> None:
    """Print on the current standard error, also while a progress bar is shown."""
    print(f'sim2real: {printable(line)}', file=sys.stderr, flush=True)


class _LogLines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _say(record.getMessage())


@contextlib.contextmanager
def log_to_stderr() -> Iterator[None]:
    """Show log messages on standard error, such as those about slow compilation."""
    handler = _LogLines()
    levels = {'sim_sensors': logging.INFO, 'sim2real_eval': logging.WARNING}
    before = {name: logging.getLogger(name).level for name in levels}
    for name, level in levels.items():
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).setLevel(level)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
            logging.getLogger(name).removeHandler(handler)


@contextlib.contextmanager
def progress_bar(total: int, what: str, *, quiet: bool = False) -> Iterator[Callable[[], None]]:
    """Yield a function that advances a progress bar.

    In a pipe there is a line every 10 s instead; with `quiet`, nothing is shown.
    """
    if not sys.stderr.isatty():
        from sim_sensors.core.heartbeat import heartbeat

        done: list[None] = []
        with (
            contextlib.nullcontext()
            if quiet
            else heartbeat(_say, lambda: f'{what}: {len(done)} of {total}' if total > 1 else what)
        ):
            yield lambda: done.append(None)
        return
    from rich import progress
    from rich.console import Console

    bar = progress.Progress(
        progress.TextColumn('{task.description}'),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn('left'),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


@contextlib.contextmanager
def progress_rounds(
    what: str, *, quiet: bool = False
) -> Iterator[Callable[[int], Callable[[], None]]]:
    """Yield a function that begins a round with a given number of tasks and its own progress bar.

    It is used if the number of rounds is not known in advance. `{}` in the title is the number of
    the round.
    """
    rounds = itertools.count(1)
    with contextlib.ExitStack() as bars:

        def begin(tasks: int) -> Callable[[], None]:
            bars.close()
            return bars.enter_context(progress_bar(tasks, what.format(next(rounds)), quiet=quiet))

        yield begin


PRELOADED = 'sim2real_eval.cli.preload'
"""Module that the workers of a study share."""
