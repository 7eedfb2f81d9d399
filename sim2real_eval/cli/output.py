# SPDX-License-Identifier: Apache-2.0
"""What the verbs print: results on standard output, everything else on standard error."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sim2real_eval.common.findings import Finding, by_severity
from sim_sensors.core.errors import Sim2RealError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sim2real_eval.metrics.distances import VepdRow
    from sim2real_eval.metrics.uncertainty.result import Uncertainty

Item = TypeVar('Item')
Result = TypeVar('Result')


def complain(message: str) -> None:
    """Print an error as one line on standard error."""
    line = ' '.join(message.split())
    print(f'sim2real: error: {line}', file=sys.stderr)


def report_failures(failures: Sequence[str], *, of: int) -> None:
    """Name each recording that was left out, one line each on standard error.

    Raises
    ------
    Sim2RealError
        When none of the `of` recordings is left: the first reason, and how many more there are.
    """
    if len(failures) == of:
        more = f' (and {of - 1} more)' if of > 1 else ''
        raise Sim2RealError(f'{failures[0]}{more}')
    for failure in failures:
        complain(f'left out: {failure}')


def successes(
    items: Iterable[Item],
    attempt: Callable[[Item], Result],
    failures: list[str],
    advance: Callable[[], None],
) -> Iterator[Result]:
    """Yield what each attempt gives, so that an item that is broken spoils no other.

    Parameters
    ----------
    items : iterable
        Recordings, as a rule.
    attempt : callable
        Takes an item and returns the result.
    failures : list of str
        Grows by the reason when an attempt ends in a `Sim2RealError`; for `report_failures`.
    advance : callable
        Called once per item, failed ones too; see `progress_bar`.

    Yields
    ------
    Result
        In the order of the items; the next attempt begins when it has been dealt with.
    """
    for item in items:
        try:
            result = attempt(item)
        except Sim2RealError as error:
            failures.append(str(error))
        else:
            yield result
        advance()


def print_json(value: Any) -> None:
    """Print a result as JSON on standard output."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write('\n')


def print_table(table: RenderableType) -> None:
    """Print a table, or several, on standard output."""
    from rich.console import Console

    # In a pipe nothing need be wrapped to fit a screen.
    width = None if sys.stdout.isatty() else 200
    Console(highlight=False, width=width).print(table)


def print_notes(notes: Iterable[Finding]) -> None:
    """Print what the user should know, on standard error, the most severe first."""
    notes = by_severity(notes)
    if not notes:
        return
    if not sys.stderr.isatty():
        print('Please note:', *(f'  - {note}' for note in notes), sep='\n', file=sys.stderr)
        return
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    console.print('Please note:', style='bold')
    for note in notes:
        console.print(Padding(Text(f'- {note}'), (0, 0, 0, 2)))


class _LogLines(logging.Handler):
    """Writes records to the standard error of the moment, also above a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        print(f'sim2real: {record.getMessage()}', file=sys.stderr, flush=True)


@contextlib.contextmanager
def logged_on_terminal() -> Iterator[None]:
    """Show what takes long for a reason of its own, such as compiling, unless in a pipe."""
    if not sys.stderr.isatty():
        yield
        return
    log = logging.getLogger('sim_sensors')
    handler = _LogLines(logging.INFO)
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.setLevel(before)
        log.removeHandler(handler)


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


def print_uncertainty(known: Mapping[str, Uncertainty], rows: Sequence[VepdRow]) -> list[Finding]:
    """Print the uncertainty of the distances; return what would reduce it."""
    from sim2real_eval.report.ranking_tables import pair_lines, uncertainty_table

    scenarios = list(dict.fromkeys(row.scenario for row in rows))
    print_table(uncertainty_table({name: known[name] for name in scenarios}))
    return pair_lines(known[scenarios[-1]], scenarios[-1])


def shown(rows: Sequence[VepdRow]) -> list[VepdRow]:
    """Leave the pooled rows out when there is one scenario: they would say the same again."""
    pooled = len({row.scenario for row in rows}) > 2
    return [row for row in rows if pooled or row.scenario != 'all']
