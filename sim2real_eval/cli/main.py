# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The `sim2real` command: runs a verb and turns errors and signals into exit statuses."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from sim2real_eval.common.process import interruptible
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.installation import pip_install
from .parser import CommandParser, build_parser, complain


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; the default is the command of the process."""
    if '_ARGCOMPLETE' in os.environ:
        # The shell asks for the completions of a word; this prints them and exits.
        import argcomplete

        argcomplete.autocomplete(build_parser())
    if arguments is None:
        # Imports and compilers make hundreds of thousands of objects that stay. Searching them
        # for cycles takes 3 s of a first start, and 0.5 s at the end of the interpreter.
        gc.set_threshold(200_000)
        atexit.register(gc.freeze)
    if sys.stdout is None:
        # A shell can close a stream with `>&-`.
        sys.stdout = Path(os.devnull).open('w')  # noqa: SIM115 - stays open
    if arguments is None and isinstance(sys.stdout, io.TextIOWrapper):
        from .output import PrintableOutput

        sys.stdout = PrintableOutput.replacing(sys.stdout)
    words = _join_dashed_lists(sys.argv[1:] if arguments is None else arguments)
    # Without a verb the parser only shows help; it imports none.
    verb = next((word for word in words if not word.startswith('-')), '')
    try:
        parser = build_parser(verb)
    except Sim2RealError as error:
        complain(f'{error} (see sim2real --help)')
        return 2
    except KeyboardInterrupt:
        complain('interrupted')
        return 130
    CommandParser.command_line = words
    options = parser.parse_args(words)
    if options.version:
        from sim2real_eval.common.results import versions

        for package, version in versions().items():
            print(f'{package} {version}')
        return 0
    if not hasattr(options, 'run'):
        parser.print_help()
        return 0
    from sim2real_eval.common.process import single_threads
    from .output import log_to_stderr

    try:
        log = contextlib.nullcontext() if getattr(options, 'quiet', False) else log_to_stderr()
        with interruptible(), single_threads(), log, _hold_out(options):
            # Verbs of other packages may return None.
            status = int(options.run(options) or 0)
            # At exit it would be too late to handle a reader that has closed the pipe.
            sys.stdout.flush()
            return status
    except Sim2RealError as error:
        from sim2real_eval.common.findings import UnusableFitError

        complain(str(error))
        return 1 if isinstance(error, UnusableFitError) else 2
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            # The reader has closed the pipe; Python would complain about that at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
        where = error.filename or 'input or output'
        complain(f'{where}: {error.strerror or type(error).__name__}')
        return 2
    except ModuleNotFoundError as error:
        # Linux distributions have no packages of bokeh, pygeomag and rosbags.
        library = str(error.name).partition('.')[0]
        complain(f'needs the Python package {library}: {pip_install(library)}')
        return 2
    except MemoryError as error:
        # The error of NumPy names the size of the array.
        details = f' ({error})' if str(error) else ''
        complain(f'not enough memory; choose a shorter time or fewer runs{details}')
        return 2
    except KeyboardInterrupt:
        complain(f'interrupted; {_describe_results(options)}')
        return 130
    except SystemExit as end:
        if end.code == 128 + signal.SIGTERM:
            complain(f'terminated; {_describe_results(options)}')
        raise


def _describe_results(options: argparse.Namespace) -> str:
    """Describe the files that an interrupted verb has left in --out."""
    out = getattr(options, 'out', None)
    if isinstance(out, str) and Path(out, 'study.json').exists():
        return f'finished runs are in {out}; repeat the command to continue'
    return 'no incomplete results were written'


def _hold_out(options: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """Lock the folder of --out while a verb runs."""
    from sim2real_eval.common.results import hold

    out = getattr(options, 'out', None)
    return hold(out) if isinstance(out, str) else contextlib.nullcontext()


# Numbers with commas, or the names of columns whose first is not used (-); argparse takes what
# begins with a dash for an option.
_DASHED_LIST = re.compile(r'-[0-9.][-+0-9.eE]*(,[-+0-9.eE]+)+|-(,.*)')


def _join_dashed_lists(words: Sequence[str]) -> list[str]:
    """Return the words with `--origin -33.86,151.21` joined as `--origin=-33.86,151.21`."""
    joined: list[str] = []
    for word in words:
        if _DASHED_LIST.fullmatch(word) and joined and re.fullmatch(r'--[^=]+', joined[-1]):
            joined[-1] += f'={word}'
        else:
            joined.append(word)
    return joined
