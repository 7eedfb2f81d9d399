# SPDX-License-Identifier: Apache-2.0
"""Parser of the `sim2real` command and its exit statuses.

Nothing heavy is imported here: `--help` and a mistyped option answer at once. Each verb imports
what it needs when it runs.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

from sim2real_eval.cli import (
    allan,
    attitude,
    characterize,
    compare,
    demo,
    fit,
    follow,
    gate,
    judge,
    models,
    reference,
    report,
    scenario,
    simulate,
    study,
    vepd,
    wheels,
    world,
)
from sim2real_eval.cli.interruption import interruptible
from sim2real_eval.cli.output import complain, logged_on_terminal
from sim2real_eval.workers import single_threads
from sim_sensors.errors import Sim2RealError

__all__ = ['build_parser', 'main']

_EPILOG = """\
exit status: 0 done; 1 done, but not for every recording, or an
estimate is not a number, or a limit of `gate` is broken; 2 bad input or options, nothing written

examples:
  sim2real demo
  sim2real vepd --real bags/* --models ch_gauss,ch_rw --out result
  sim2real VERB --help
"""

# Numbers with commas of which the first is negative, which argparse takes for an option.
_NEGATIVE_LIST = re.compile(r'-[0-9.][-+0-9.eE]*(,[-+0-9.eE]+)+')


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as all other errors; not below a page of usage."""

    given: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        unknown = message.removeprefix('unrecognized arguments: ')
        if unknown != message and (near := self._near(unknown.partition(' ')[0])):
            message = f'{message}; did you mean {near}?'
        complain(f'{message} (see {self.prog} --help)')
        self.exit(2)

    def _near(self, option: str) -> str:
        """Return the option of this command, or of one of its verbs, most like the given one."""
        known = set(self._option_string_actions)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                verb = next((name for name in action.choices if name in self.given), None)
                known |= set(action.choices[verb]._option_string_actions) if verb else set()
        near = difflib.get_close_matches(option.split('=')[0], sorted(known), n=1)
        return near[0] if near else ''


def build_parser() -> _Parser:
    """Return the parser with all verbs."""
    parser = _Parser(
        prog='sim2real',
        description='Find out how far simulated GPS and IMU are from the real ones, for the '
        'estimator that uses them.',
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('--version', action='store_true', help='print the versions and exit')
    verbs = parser.add_subparsers(title='verbs', metavar='VERB')
    for verb in (
        demo, simulate, follow, judge, vepd, study, gate, report, compare, reference,
        allan, characterize, fit, scenario, attitude, wheels, world, models,
    ):  # fmt: skip
        verb.add_parser(verbs)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; default: those of the process.
    """
    parser = build_parser()
    parser.given = _with_negative_lists(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(parser.given)
    if options.version:
        from sim2real_eval.provenance import versions

        for package, version in versions().items():
            print(f'{package} {version}')
        return 0
    if not hasattr(options, 'run'):
        parser.error('no verb given')
    try:
        with interruptible(), single_threads(), logged_on_terminal():
            status = int(options.run(options))
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
    except MemoryError as error:
        # A duration of 1e9 s, say: numpy tells of the array that it could not have.
        complain(f'not enough memory; choose a shorter time or fewer runs ({error or "no more"})')
        return 2
    except KeyboardInterrupt:
        complain('interrupted; nothing is half written')
        return 130


def _with_negative_lists(words: Sequence[str]) -> list[str]:
    """Return the words with `--origin -33.86,151.21` as one, `--origin=-33.86,151.21`."""
    joined: list[str] = []
    for word in words:
        if _NEGATIVE_LIST.fullmatch(word) and joined and re.fullmatch(r'--[^=]+', joined[-1]):
            joined[-1] += f'={word}'
        else:
            joined.append(word)
    return joined
