# SPDX-License-Identifier: Apache-2.0
"""The `sim2real` command: how it runs and ends, and its exit statuses."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import os
import re
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from sim2real_eval.common.workers import single_threads
from sim_sensors.core.errors import Sim2RealError
from .output import complain, logged
from .parser import CommandParser, build_parser

# Ctrl-C and SIGTERM, heard also where they came at a bad moment.

# Seconds from a dropped exception to the next: longer than C code takes to come back from Python,
# shorter than anybody waits.
_SOON = 0.1


class Interruption:
    """Whether somebody asked for the end, and whether that went unheard.

    `error` is what the signal raised: KeyboardInterrupt for Ctrl-C, SystemExit for SIGTERM.
    `is_dropped` is True from when it was dropped until it is raised again.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.is_dropped = False
        self._handlers: dict[int, Any] = {}

    def listen(self, numbers: Iterable[int]) -> None:
        """Raise what these signals ask for in the main thread, which this must be called from."""
        self._handlers = {number: signal.signal(number, self._stop) for number in numbers}

    def drop(self) -> None:
        """Take note that what was raised was dropped: it is raised again soon after."""
        if threading.current_thread() is not threading.main_thread():
            return  # that has been raised in the main thread, too
        self.is_dropped = True
        # Not before it is needed: who started the command may have set an alarm to end it by.
        if signal.SIGALRM not in self._handlers:
            self._handlers[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._again)
        # A timer of the process, which ends with it, and whose signal interrupts what blocks.
        signal.setitimer(signal.ITIMER_REAL, _SOON)

    def close(self) -> None:
        """Leave timer and signals as they were; nothing is raised from here on."""
        self.is_dropped = False
        if signal.SIGALRM in self._handlers:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.error = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
        raise self.error

    def _again(self, number: int, frame: FrameType | None) -> None:
        if not self.is_dropped or self.error is None:
            return
        if sys.exc_info()[1] is not None:
            # What fails ends the command by itself; what it removes on its way must be removed.
            signal.setitimer(signal.ITIMER_REAL, _SOON)
            return
        self.is_dropped = False
        raise self.error.with_traceback(None)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGTERM, as from `timeout`, remove temporary files and worker processes like Ctrl-C.

    While loops are compiled, LLVM calls Python from C, which cannot pass an exception on: that of
    a signal is printed and dropped, and what was about to be compiled fails as if it were wrong.
    After a signal every failure is therefore taken for the end that was asked for. Where nothing
    fails, as in other callbacks of C and in `__del__`, what was dropped is raised again soon after
    from where the main thread then is, or at the end of the block, if that comes first.
    After Ctrl-C or SIGTERM KeyboardInterrupt or SystemExit is raised, also in place of a failure.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = Interruption()
    numbers = [signal.SIGTERM]
    # Ignored, as in a program that a shell runs in the background, it stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        numbers.append(signal.SIGINT)
    heard.listen(numbers)
    hook = sys.unraisablehook

    def quiet(dropped: sys.UnraisableHookArgs) -> None:
        if heard.error is None or not _comes_of(dropped.exc_value, heard.error):
            hook(dropped)
        else:
            heard.drop()

    sys.unraisablehook = quiet
    try:
        yield
        if heard.is_dropped and heard.error is not None:
            raise heard.error
    except Exception:
        if heard.error is not None:
            raise heard.error from None
        raise
    finally:
        heard.close()
        sys.unraisablehook = hook


def _comes_of(error: BaseException | None, first: BaseException) -> bool:
    """Return whether an exception is the first one, or what compiled code has made of it."""
    while error is not None and error is not first:
        error = error.__cause__ or error.__context__
    return error is not None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with arguments, by default those of the process; return its exit status."""
    if '_ARGCOMPLETE' in os.environ:
        # Asked by the shell at a press of TAB; prints the words and ends.
        import argcomplete

        argcomplete.autocomplete(build_parser())
    if arguments is None:
        # Imports and compilers leave objects by the hundred thousand. To look through them for
        # cycles takes 3 s of a first start and, at its end, the interpreter another 0.5 s.
        gc.set_threshold(200_000)
        atexit.register(gc.freeze)
    if sys.stdout is None:
        # Closed, as by `>&-`: what would be printed is not wanted.
        sys.stdout = Path(os.devnull).open('w')  # noqa: SIM115 - open to the end
    given = _with_negative_lists(sys.argv[1:] if arguments is None else arguments)
    verb = given[0] if given and not given[0].startswith('-') else None
    try:
        parser = build_parser(verb)
    except Sim2RealError as error:
        complain(f'{error} (see sim2real --help)')
        return 2
    except KeyboardInterrupt:
        # Modules are loaded.
        complain('interrupted; nothing was begun')
        return 130
    CommandParser.given = given
    options = parser.parse_args(given)
    if options.version:
        from sim2real_eval.common.results import versions

        for package, version in versions().items():
            print(f'{package} {version}')
        return 0
    if not hasattr(options, 'run'):
        parser.print_help()
        return 0
    try:
        log = contextlib.nullcontext() if getattr(options, 'quiet', False) else logged()
        with interruptible(), single_threads(), log, _held_out(options):
            # A verb of another package may end without a status.
            status = int(options.run(options) or 0)
            # Here and not at exit, where nobody could hear that the reader has gone away.
            sys.stdout.flush()
            return status
    except Sim2RealError as error:
        complain(str(error))
        return 2
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            # The reader of our output went away; keep Python from complaining at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
        where = error.filename or 'input or output'
        complain(f'{where}: {error.strerror or type(error).__name__}')
        return 2
    except ModuleNotFoundError as error:
        # No distribution of Linux packages bokeh, pygeomag and rosbags.
        library = str(error.name).partition('.')[0]
        complain(f'needs the Python package {library}: pip install {library}')
        return 2
    except MemoryError as error:
        # A duration of 1e9 s, say: numpy tells of the array that it could not have.
        complain(f'not enough memory; choose a shorter time or fewer runs ({error or "no more"})')
        return 2
    except KeyboardInterrupt:
        complain('interrupted; nothing is half written')
        return 130


def _held_out(options: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """Hold what --out names, whatever the verb, for as long as it works."""
    from sim2real_eval.common.locks import hold

    out = getattr(options, 'out', None)
    return hold(out) if isinstance(out, str) else contextlib.nullcontext()


# Numbers with commas of which the first is negative, which argparse takes for an option.
_NEGATIVE_LIST = re.compile(r'-[0-9.][-+0-9.eE]*(,[-+0-9.eE]+)+')


def _with_negative_lists(words: Sequence[str]) -> list[str]:
    """Return the words with `--origin -33.86,151.21` as one, `--origin=-33.86,151.21`."""
    joined: list[str] = []
    for word in words:
        if _NEGATIVE_LIST.fullmatch(word) and joined and re.fullmatch(r'--[^=]+', joined[-1]):
            joined[-1] += f'={word}'
        else:
            joined.append(word)
    return joined
