# SPDX-License-Identifier: Apache-2.0
"""Kills commands with SIGKILL and gives them again: nothing is lost, half-written or left over.

A command is killed just before one of its changes of the file system, which Python's audit events
tell, or at some share of its time, which may be within one. The same command, given again, has to
end with the bytes of one that was never killed; or, where the killed one was done but for its
report, to find that result. What others have beside and in its folders stays, and nothing else
is left, neither there nor in the folder for temporary files. `make fuzz` does this 100 times.

    python test/killing.py --kills 100 --seed 1
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from cli_examples import contents

from sim2real_eval.cli.main import main as sim2real

_CHANGES = frozenset(
    ['os.mkdir', 'os.rename', 'os.remove', 'os.rmdir', 'os.truncate', 'os.link', 'os.symlink']
)
THEIRS = 'theirs.txt'


@dataclasses.dataclass(frozen=True)
class Verb:
    """A command that writes, and what it writes: below the folder it is given in."""

    words: tuple[str, ...]
    writes: str

    @property
    def name(self) -> str:
        return ' '.join(self.words[:1])


def _verb(line: str, writes: str = 'out') -> Verb:
    return Verb(tuple(line.split()), writes)


PREPARED = (
    _verb(
        'simulate --motion drive_line --duration 4 --runs 2 --gps ch_rw --imu airsim --out bags'
    ),
    _verb('simulate --motion standstill --duration 40 --gps ch_rw --imu chrono --out still'),
    _verb('vepd --real bags/line_1 --models ch_rw --jobs 1 --resamples 100 --out study'),
)
"""What commands read; each is made for those that name it."""
VERBS = (
    _verb('vepd --real bags/line_1 --models ch_rw,ch_gauss --jobs 1 --resamples 100 --out out'),
    _verb('vepd --real bags/line_1 bags/line_2 --models ch_rw --jobs 2 --resamples 100 --out out'),
    _verb('simulate --motion circle --duration 3 --runs 2 --gps ch_rw --imu chrono --out out'),
    _verb('judge bags/line_1 bags/line_2 --config clean --out out'),
    _verb('judge bags/line_1 --config clean --consistency --out out.csv', 'out.csv'),
    _verb('compare --real bags/line_1 --models ch_rw --imu chrono --jobs 1 --out out'),
    _verb('characterize still/standstill_1 --out out'),
    _verb('allan still/standstill_1 --out out'),
    _verb(
        'fit --real bags/line_1 bags/line_2 --tune gps.noise.std=0.1:1 --gps ch_gauss '
        '--imu chrono --candidates 8 --resamples 100 --jobs 1 --out out'
    ),
    _verb('follow bags/line_1 --out out'),
    _verb('scenario --runs 20 --out out'),
    _verb('attitude --runs 2 --duration 5 --camera none --out out'),
    _verb('wheels --models differential --runs 2 --out out'),
    _verb('world default --out out.png', 'out.png'),
    _verb('check bags/line_1 --plot out.png', 'out.png'),
    _verb('gate study --max-vepd 100 --junit out.xml', 'out.xml'),
    _verb('report study --out page/report.html', 'page'),
    _verb('reference bags/line_1 --replace-truth --out out'),
)


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
) -> int:
    """Do work in a copy of this process; return its status, or minus the signal that ended it.

    SIGKILL ends it before its change number `at` of the file system, or after some seconds. How
    many there were otherwise is written to `count`.
    """
    child = os.fork()
    if not child:
        _do(work, at, count)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _do(work: Callable[[], int], at: int, count: Path) -> NoReturn:
    changes, own, status = 0, os.getpid(), 70

    def hook(event: str, given: tuple[Any, ...]) -> None:
        nonlocal changes
        if os.getpid() == own and _is_change(event, given):
            changes += 1
            if changes == at:
                os.kill(own, signal.SIGKILL)

    try:
        sys.addaudithook(hook)
        status = work()
    except SystemExit as stop:
        status = int(stop.code or 0)
    finally:
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
        self._known: dict[Verb, tuple[dict[str, bytes], int, float]] = {}
        verbs = [*verbs, *(PREPARED[-1:] if any('study' in verb.words for verb in verbs) else ())]
        read = ' '.join(word for verb in verbs for word in verb.words)
        for one in PREPARED:
            if one.words[-1] in read:
                self._finish(one.words)
        (self._place / THEIRS).write_text('theirs')
        self._before = contents(self._place)

    def _finish(self, words: Sequence[str], at: int = 0, seconds: float | None = None) -> int:
        """Give a command; see `in_process`."""

        return in_process(lambda: self._give(words), at, seconds, self._count)

    def _give(self, words: Sequence[str]) -> int:
        """Give a command here, in the place for it."""
        before = Path.cwd()
        os.chdir(self._place)
        try:
            with (
                (self._place.parent / 'complained').open('w') as complained,
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(complained),
            ):
                return sim2real(list(words))
        finally:
            os.chdir(before)

    def _undisturbed(self, verb: Verb) -> tuple[dict[str, bytes], int, float]:
        """Return what a command writes, by how many changes, and how long it takes."""
        if verb not in self._known:
            # Compiles and imports, once for all copies of this process.
            self._give(verb.words)
            self._clear(verb)
            start = time.monotonic()
            status = self._finish(verb.words)
            took = time.monotonic() - start
            if status not in (0, 1):  # 1: it says what is wrong with the recording
                raise AssertionError(f'{verb.words}: status {status}: {self._complaint}')
            self._known[verb] = self._contents(), int(self._count.read_text()), took
            self._clear(verb)
        return self._known[verb]

    @property
    def _complaint(self) -> str:
        return (self._place.parent / 'complained').read_text()

    def _contents(self) -> dict[str, bytes]:
        """Return every file; a report of a gate says when it was made."""
        found = contents(self._place)
        return {name: re.sub(rb'timestamp="[^"]*"', b'', data) for name, data in found.items()}

    def _clear(self, verb: Verb) -> None:
        for path in self._place.iterdir():
            if path.name.startswith((verb.writes, f'.{verb.writes}', Path(verb.writes).stem)):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def kill(self, verb: Verb, rng: random.Random) -> str:
        """Kill a command once and give it again; return what is wrong, or nothing."""
        whole, changes, took = self._undisturbed(verb)
        if rng.random() < 0.6:
            at = rng.randint(1, changes)
            status, when = self._finish(verb.words, at), f'before change {at} of {changes}'
        else:
            after = rng.uniform(0.0, took)
            status = self._finish(verb.words, seconds=after)
            when = f'after {after:.3f} s of {took:.3f} s'
        killed = sorted(set(contents(self._place)) - set(self._before))
        again = self._finish(verb.words)
        problems = []
        if again not in (0, 1) and 'exists' not in self._complaint:
            problems.append(f'status {again}: {self._complaint}')
        found = self._contents()
        if found != whole:
            wrong = {name for name in {*found, *whole} if found.get(name) != whole.get(name)}
            problems.append(f'other bytes than undisturbed (status {again}): {sorted(wrong)[:5]}')
        hidden = list(self._place.rglob('.*'))
        hidden += list(self._temporary.iterdir())
        if hidden:
            problems.append(f'left: {[str(path) for path in hidden][:5]}')
        self._clear(verb)
        for path in self._temporary.iterdir():
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
        if not problems:
            return ''
        return (
            f'{" ".join(verb.words)}: killed {when} ({status}), left {killed[:6]}: '
            + '; '.join(problems)
        )


@contextlib.contextmanager
def killer(verbs: Sequence[Verb] = VERBS) -> Iterator[Killer]:
    """Provide a folder for killing, with temporary files in it, too."""
    shared, before = Path('/dev/shm'), tempfile.tempdir
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        tempfile.tempdir = str(Path(folder) / 'tmp')
        try:
            yield Killer(Path(folder), verbs)
        finally:
            tempfile.tempdir = before


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
