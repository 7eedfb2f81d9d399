# SPDX-License-Identifier: Apache-2.0
"""Ends commands by faults and gives them again: nothing is lost, half-written or left over.

A command gets SIGKILL, SIGTERM or SIGINT just before one of its changes of the file system, which
Python's audit events tell, or at some share of its time, which may be within one; or the disk is
full from a change on, or within a file, or read-only, which has to end it in one line. The same
command, given again, has to end with the bytes of one that nobody ended; or, where it was done but
for its report, to find that result. What others have beside and in its folders stays, and nothing
else is left, neither there nor in the folder for temporary files, nor a process. After all but
SIGKILL that holds at once. `make fuzz` does this 100 times.

    python test/killing.py --kills 100 --seed 1
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import functools
import io
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO
from unittest import mock

from cli_examples import contents, pictures_left_blank
from killed_verbs import PREPARED, VERBS, Verb

from sim2real_eval.cli.main import main as sim2real

_CHANGES = frozenset(
    ['os.mkdir', 'os.rename', 'os.remove', 'os.rmdir', 'os.truncate', 'os.link', 'os.symlink']
)
THEIRS = 'theirs.txt'


_SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
FAULTS = (*_SIGNALS, errno.ENOSPC, errno.EFBIG, errno.EROFS)
"""Signals, and what a disk answers: it is full, a file has no more room, it is read-only."""
_ROOM = frozenset(['open', 'os.mkdir', 'os.link', 'os.symlink'])
# Of a child that does not end; the slowest takes a few seconds on a quiet machine.
_LONGEST_S = 300.0


def _is_change(event: str, given: tuple[Any, ...]) -> bool:
    if event != 'open':
        return event in _CHANGES
    flags = given[2]
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def in_process(
    work: Callable[[], int],
    at: int = 0,
    seconds: float | None = None,
    count: Path = Path(os.devnull),
    fault: int = signal.SIGKILL,
) -> int:
    """Do work in a copy of this process; return its status, or minus the signal that ended it.

    The fault comes before its change number `at` of the file system, or after some seconds; a file
    has no room after byte `at`. How many changes there were is written to `count`. Processes that
    the copy leaves are an error.
    """
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as on a terminal
        _do(work, at, count, fault)
    timers = [threading.Timer(_LONGEST_S, os.kill, (child, signal.SIGKILL))]
    if seconds is not None:
        timers.append(threading.Timer(seconds, os.kill, (child, fault)))
    for timer in timers:
        timer.start()
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        for timer in timers:
            timer.cancel()
            timer.join()
        _expect_no_more(child)


def _expect_no_more(group: int) -> None:
    """Hold the processes of a group to end soon: workers hear of the end of who started them."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.killpg(group, signal.SIGKILL)
    raise AssertionError('a process is left')


def _do(work: Callable[[], int], at: int, count: Path, fault: int) -> NoReturn:
    changes, watched, status = 0, os.getpid(), 70

    def hook(event: str, given: tuple[Any, ...]) -> None:
        nonlocal changes
        if os.getpid() == watched and _is_change(event, given):
            changes += 1
            if fault in _SIGNALS:
                if changes == at:
                    os.kill(watched, fault)
            elif (
                0 < at <= changes
                and (fault == errno.EROFS or event in _ROOM)
                and given[0] != os.devnull
            ):
                raise OSError(fault, os.strerror(fault), given[0])

    try:
        if fault == errno.EFBIG:
            _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (at, most))
            at = 0
        sys.addaudithook(hook)
        status = work()
    except SystemExit as stop:
        status = int(stop.code or 0)
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    finally:
        watched = 0
        count.write_text(str(changes))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


class Killer:
    """A folder with recordings and a study, in which commands are given and killed.

    Parameters
    ----------
    folder : Path
        Empty.
    verbs : sequence of Verb
        Which will be killed: what they read is made.
    """

    def __init__(self, folder: Path, verbs: Sequence[Verb] = VERBS) -> None:
        self._count, self._place = folder / 'count', folder / 'place'
        self._temporary = folder / 'tmp'
        self._place.mkdir()
        self._temporary.mkdir()
        self._older, self._complained = folder / 'older', folder / 'complained'
        self._known: dict[Verb, tuple[dict[str, bytes], int, float]] = {}
        verbs = [*verbs, *(PREPARED[-1:] if any('study' in verb.words for verb in verbs) else ())]
        read = ' '.join(word for verb in verbs for word in verb.words)
        for one in PREPARED:
            if one.words[-1] in read:
                self._finish(one.words)
        (self._place / THEIRS).write_text('theirs')

    def _finish(
        self,
        words: Sequence[str],
        at: int = 0,
        seconds: float | None = None,
        fault: int = signal.SIGKILL,
    ) -> int:
        """Give a command in a copy of this process; see `in_process`."""
        # Opened here, where that is no change of the command's.
        with self._complained.open('w', buffering=1) as complained:
            work = functools.partial(self._give, words, complained)
            return in_process(work, at, seconds, self._count, fault)

    def _give(self, words: Sequence[str], complained: TextIO) -> int:
        """Give a command here, in the place for it."""
        with (
            contextlib.chdir(self._place),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(complained),
        ):
            return sim2real(list(words))

    def _undisturbed(self, verb: Verb) -> tuple[dict[str, bytes], int, float]:
        """Return what a command writes, by how many changes, and how long it takes."""
        if verb not in self._known:
            if verb.older:
                self._give(verb.older, io.StringIO())
                place = self._place / verb.writes
                (place / THEIRS).write_text('theirs')
                place.rename(self._older_of(verb))
            self._prepare(verb)
            # Compiles and imports, once for all copies of this process.
            self._give(verb.words, io.StringIO())
            self._prepare(verb)
            start = time.monotonic()
            status = self._finish(verb.words)
            took = time.monotonic() - start
            if status not in (0, 1):  # 1: it says what is wrong with the recording
                raise AssertionError(f'{verb.words}: status {status}: {self._complaint}')
            self._known[verb] = self._contents(), int(self._count.read_text()), took
        return self._known[verb]

    def _older_of(self, verb: Verb) -> Path:
        self._older.mkdir(exist_ok=True)
        return self._older / str(VERBS.index(verb))

    def _clear(self, verb: Verb) -> None:
        """Remove what the command wrote or left."""
        for path in self._place.iterdir():
            if path.name.startswith((verb.writes, f'.{verb.writes}', Path(verb.writes).stem)):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in self._temporary.iterdir():
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()

    def _prepare(self, verb: Verb) -> None:
        """Make the place as the command is to find it: empty, or with an older result."""
        self._clear(verb)
        if verb.older:
            shutil.copytree(self._older_of(verb), self._place / verb.writes)

    @property
    def _complaint(self) -> str:
        return self._complained.read_text()

    def _contents(self) -> dict[str, bytes]:
        """Return every file; a report of a gate says when it was made."""
        found = contents(self._place)
        return {name: re.sub(rb'timestamp="[^"]*"', b'', data) for name, data in found.items()}

    def _left(self) -> list[str]:
        """Return what is hidden, or temporary."""
        return [str(path) for path in [*self._place.rglob('.*'), *self._temporary.iterdir()]]

    def kill(self, verb: Verb, rng: random.Random, faults: Sequence[int] = FAULTS) -> str:
        """End a command once and give it again; return what is wrong, or nothing."""
        whole, changes, took = self._undisturbed(verb)
        self._prepare(verb)
        before = self._contents()
        fault = rng.choice(faults)
        seconds, at = None, rng.randint(1, changes)
        if fault in _SIGNALS and rng.random() < 0.4:
            seconds, at = rng.uniform(0.0, took), 0
        elif fault == errno.EROFS:
            at = 1
        elif fault == errno.EFBIG:
            # Complaints have to fit.
            at = rng.randint(4096, max(4096, *map(len, whole.values())))
        status = self._finish(verb.words, at, seconds, fault)
        problems, between = [], self._contents()
        if fault != signal.SIGKILL:
            ended, line = 2, r'(?s)(.*\n)?sim2real: error: [^\n]*\n'
            if fault in _SIGNALS:
                ended, line = 128 + fault, '(?s).*'
            is_line = status != ended or re.fullmatch(line, self._complaint)
            if status not in (0, 1, ended) or not is_line or 'Traceback' in self._complaint:
                problems.append(f'status {status}: {self._complaint}')
            if left := self._left():
                problems.append(f'left at once: {left[:5]}')
            # The mark of a study says that it is not finished.
            parts = {name: data for name, data in between.items() if name != 'out/study.json'}
            is_part = verb.continues and parts.items() <= whole.items()
            if between not in (before, whole) and not is_part:
                problems.append('half a result at once')
        again = self._finish(verb.words)
        if again not in (0, 1) and 'exists' not in self._complaint:
            problems.append(f'status {again}: {self._complaint}')
        found = self._contents()
        if found != whole and 'give --overwrite' in self._complaint:
            again = self._finish((*verb.words, '--overwrite'))
            found = self._contents()
        if found != whole:
            wrong = {name for name in {*found, *whole} if found.get(name) != whole.get(name)}
            problems.append(f'other bytes than undisturbed (status {again}): {sorted(wrong)[:5]}')
        if left := self._left():
            problems.append(f'left: {left[:5]}')
        self._clear(verb)
        if not problems:
            return ''
        name = signal.Signals(fault).name if fault in _SIGNALS else errno.errorcode[fault]
        when = f'{name} at {at} of {changes} changes, or after {seconds} of {took:.3f} s'
        changed = sorted(
            name for name in {*before, *between} if before.get(name) != between.get(name)
        )
        return f'{" ".join(verb.words)}: {when} ({status}), then {changed[:6]}: ' + '; '.join(
            problems
        )


@contextlib.contextmanager
def killer(verbs: Sequence[Verb] = VERBS) -> Iterator[Killer]:
    """Provide a folder for killing, with temporary files in it, too.

    Pictures are empty: drawing changes no other file.
    """
    shared = Path('/dev/shm')
    with (
        tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder,
        mock.patch.object(tempfile, 'tempdir', str(Path(folder) / 'tmp')),
        pictures_left_blank(),
    ):
        yield Killer(Path(folder), verbs)


def main() -> int:
    """Kill some times; return 1 where something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--kills', type=int, default=100)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--verb', default='')
    options = parser.parse_args()
    rng, counts, problems = random.Random(options.seed), Counter[str](), []
    verbs = [verb for verb in VERBS if verb.name.startswith(options.verb)]
    with killer(verbs) as place:
        for number in range(options.kills):
            verb = verbs[number % len(verbs)]
            counts[verb.name] += 1
            if problem := place.kill(verb, rng):
                problems.append(problem)
                print(f'{problem}\n', flush=True)
    print(f'seed {options.seed}: {options.kills} kills, {len(problems)} defects; ', end='')
    print(', '.join(f'{name} {count}' for name, count in sorted(counts.items())))
    return bool(problems)


if __name__ == '__main__':
    sys.exit(main())
