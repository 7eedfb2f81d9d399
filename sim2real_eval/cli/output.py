# SPDX-License-Identifier: Apache-2.0
"""What the verbs print: results on standard output, everything else on standard error."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ['complain', 'print_json', 'print_notes', 'print_table', 'progress_bar']


def complain(message: str) -> None:
    """Print an error as one line on standard error."""
    line = ' '.join(message.split())
    print(f'sim2real: error: {line}', file=sys.stderr)


def print_json(value: Any) -> None:
    """Print a result as JSON on standard output."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write('\n')


def print_table(table: Table) -> None:
    """Print a table on standard output."""
    from rich.console import Console

    Console(highlight=False).print(table)


def print_notes(notes: Iterable[str]) -> None:
    """Print what the user should know, on standard error, a line or paragraph each."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    notes = list(notes)
    if notes:
        console.print('Please note:', style='bold')
    for note in notes:
        console.print(Padding(Text(f'- {note}'), (0, 0, 0, 2)))


@contextlib.contextmanager
def progress_bar(total: int, what: str) -> Iterator[Callable[[], None]]:
    """Yield a function that advances a progress bar; none is shown unless on a terminal."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn('{task.description}'),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn('left'),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
