# SPDX-License-Identifier: Apache-2.0
"""The verbs of `sim2real`, its parser and its help.

A verb is a module, of this package or of another one. It has `HELP`, one line for the list of
verbs; `run(options)`, which returns the exit status; and, where it wants them,
`add_arguments(parser)`, `DESCRIPTION` and `EPILOG`, a text or a function that returns it. Nothing
heavy is imported before it runs, so that `--help`, completion and a mistyped option are quick.
"""

from __future__ import annotations

import argparse
import logging
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn, Protocol

from sim_sensors.core.errors import ParameterError, did_you_mean, not_among
from sim_sensors.core.registry import Registry
from .options import is_common
from .output import complain


class Verb(Protocol):
    """What a verb's module has at least."""

    HELP: str

    def run(self, options: argparse.Namespace) -> int:
        """Run the verb; return the exit status."""


GROUPS = {
    'compare real and simulated sensors': (
        'demo', 'vepd', 'study', 'gate', 'report', 'compare',
    ),
    'make models and recordings': ('characterize', 'allan', 'fit', 'simulate', 'reference'),
    'judge and tune': ('judge', 'sensitivity', 'tune'),
    'inspect': ('check', 'models', 'world'),
    'benches': ('follow', 'scenario', 'attitude', 'wheels'),
}  # fmt: skip
_OTHERS = 'of other packages'

VERBS: Registry[Verb] = Registry(
    'sim2real_sensors.verbs',
    'a verb',
    lambda module: hasattr(module, 'HELP') and callable(getattr(module, 'run', None)),
    {name: f'sim2real_eval.cli.{name}' for group in GROUPS.values() for name in group},
    needs='HELP and run(options)',
    in_files=False,
)
"""The verbs by name, in the order of `sim2real --help`."""

_EPILOG = """\
exit status: 0 done; 1 done, but not for every recording, or an
estimate is not a number, or a limit of `gate` is broken; 2 bad input or options, nothing written

examples:
  sim2real demo
  sim2real vepd --real bags/* --models ch_gauss,ch_rw --out result
  sim2real VERB --help
"""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Leaves options out that are rarely needed, unless all are asked for."""

    all_options: ClassVar[bool] = False

    def add_usage(
        self, usage: str | None, actions: Iterable[argparse.Action], *more: Any, **named: Any
    ) -> None:
        super().add_usage(usage, [one for one in actions if self._shows(one)], *more, **named)

    def add_argument(self, action: argparse.Action) -> None:
        if self._shows(action):
            super().add_argument(action)

    def _shows(self, action: argparse.Action) -> bool:
        return self.all_options or is_common(action)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if '\n' in text:
            return super()._fill_text(text, width, indent)
        return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent)


class _HelpAll(argparse.Action):
    """`--help-all`."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        _Formatter.all_options = True
        parser.print_help()
        parser.exit()


class CommandParser(argparse.ArgumentParser):
    """Says what is wrong in one line, as all other errors; not below a page of usage."""

    given: ClassVar[Sequence[str]] = ()
    """The whole line."""

    def format_help(self) -> str:
        """Return the help; where options are left out it says so."""
        rest = 0 if _Formatter.all_options else sum(not is_common(one) for one in self._actions)
        epilog = self.epilog
        if rest:
            self.epilog = f'{rest} more options: {self.prog} --help-all\n\n{epilog or ""}'
        try:
            return super().format_help()
        finally:
            self.epilog = epilog

    def error(self, message: str) -> NoReturn:
        """Complain of a line, with the nearest option there is, and exit with status 2."""
        # A mistyped option may also leave a required one missing.
        known = self._known()
        for word in self.given:
            option = word.partition('=')[0]
            if option.startswith('--') and not any(one.startswith(option) for one in known):
                near = did_you_mean(option, known)
                message = f'{message}{near}' if option in message else f'{option}{near}: {message}'
                break
        complain(f'{message} (see {self._of_verb().prog} --help)')
        self.exit(2)

    def _known(self) -> list[str]:
        """Return the options of this command, and of the verb that is given."""
        own = self._option_string_actions
        return sorted({*own, *self._of_verb()._option_string_actions})

    def _of_verb(self) -> argparse.ArgumentParser:
        """Return the parser of the verb that is given, or this one."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return next((action.choices[n] for n in action.choices if n in self.given), self)
        return self

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            problem = not_among(f'invalid choice: {value!r}', value, map(str, action.choices))
            raise argparse.ArgumentError(action, problem)


def _add_verb(parsers: Any, name: str, verb: Verb) -> None:
    epilog = getattr(verb, 'EPILOG', None)
    parser = parsers.add_parser(
        name,
        help=verb.HELP,
        description=getattr(verb, 'DESCRIPTION', verb.HELP),
        epilog=epilog() if callable(epilog) else epilog,
        formatter_class=_Formatter,
    )
    parser.add_argument('--help-all', action=_HelpAll, nargs=0, help='show all options and exit')
    if hasattr(verb, 'add_arguments'):
        verb.add_arguments(parser)
    parser.set_defaults(run=verb.run)


def build_parser(verb: str | None = None) -> CommandParser:
    """Return the parser with all verbs, or with one alone, whose module is the only one imported.

    A verb of another package that cannot be imported is left out with a warning. That there is no
    verb of the given name is an error.
    """
    parser = CommandParser(
        prog='sim2real',
        usage='sim2real [-h] [--version] VERB ...',
        epilog=_EPILOG,
        formatter_class=_Formatter,
    )
    parser.add_argument('--version', action='store_true', help='print the versions and exit')
    # Listed in groups, which argparse cannot do.
    parsers = parser.add_subparsers(prog='sim2real', metavar='VERB', help=argparse.SUPPRESS)
    if verb is not None:
        _add_verb(parsers, verb, VERBS.get(verb, where='verb'))
        return parser
    found: dict[str, Verb] = {}
    for name in VERBS.names():
        try:
            found[name] = VERBS.get(name)
            _add_verb(parsers, name, found[name])
        except ParameterError as error:
            logging.getLogger(__name__).warning('%s', error)
    parser.description = _overview(found)
    return parser


def _overview(verbs: Mapping[str, Verb]) -> str:
    """Return what the command is for, and the verbs by group."""
    ours = {name for group in GROUPS.values() for name in group}
    groups = {**GROUPS, _OTHERS: tuple(name for name in verbs if name not in ours)}
    lines = [
        'Find out how far simulated GPS and IMU are from the real ones,',
        'for the estimator that uses them.',
    ]
    for title, names in groups.items():
        shown = [f'  {name:<14}{verbs[name].HELP}' for name in names if name in verbs]
        lines += ['', f'{title}:', *shown] if shown else []
    return '\n'.join(lines)
