# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The verbs of `sim2real`, its parser and its help.

A verb is a module of this package or of another one. It has `run(options)`, which returns the exit
status, and optionally `add_arguments(parser)`, `DESCRIPTION` and `EPILOG`, which is a string or
a function that returns one. A verb of another package also has `HELP`, one line for the list of
verbs; `GROUPS` has that line for the verbs of this package, so that `--help` imports no verb.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn, Protocol

from sim_sensors.core.errors import ParameterError, did_you_mean, not_among, one_line
from sim_sensors.core.registry import Registry


class Verb(Protocol):
    """Module of a verb."""

    def run(self, options: argparse.Namespace) -> int:
        """Run the verb; return the exit status."""


GROUPS: dict[str, dict[str, str]] = {
    'compare real and simulated sensors': {
        'demo': 'a small study with plots; needs no input',
        'vepd': 'real recordings against sensors simulated on their true motion',
        'study': 'a whole experiment from a file: recordings, models, judges, conditions',
        'transfer': 'what it costs on the robot to tune a filter in simulation',
        'gate': 'compare a result with limits or an earlier result, for CI',
        'report': 'a study as one HTML page, with tables for a paper',
        'compare': 'signals of real and simulated sensors, each compared with its own truth',
    },
    'make models and recordings': {
        'characterize': 'a recording with a standstill -> models of its GPS and IMU',
        'allan': 'recording of an IMU at rest -> noise terms and a model',
        'match': 'recording of an IMU at rest -> simulator file, judged on drives',
        'export': 'IMU model -> file of another simulator, with the noise expected there',
        'fit': 'fit parameters of a model so that simulated runs are judged like real ones',
        'simulate': 'a motion or a recorded truth -> recordings with simulated sensors',
        'reference': 'recordings without truth -> recordings with a smoothed reference trajectory',
    },
    'judge and tune': {
        'judge': 'recordings -> velocity estimates, as from robot_localization',
        'sensitivity': 'smallest sensor errors that each judge can detect',
        'tune': 'recordings -> tuned parameter file of ekf_node, ukf_node or another judge',
    },
    'inspect': {
        'check': 'check and correct units, axes, clocks and covariances of recordings',
        'models': 'list the sensor models, worlds, judges, metrics and scenarios',
        'world': 'content and map of a world file: gravity, magnetic field, dipoles, tags',
    },
    'benches': {
        'follow': 'recorded path, driven by a simulated robot -> tracking errors, recordings',
        'scenario': 'preintegrate the IMU of a scenario as GTSAM does; covariance and Monte Carlo',
        'attitude': 'errors and consistency of a quaternion filter, on simulated or recorded data',
        'wheels': 'drift of wheel odometry alone and with poses from tags, by noise model',
    },
}
"""One line of help for each verb, in the groups and the order of `sim2real --help`."""

_OTHERS = 'from other packages'

_HELP = {name: text for group in GROUPS.values() for name, text in group.items()}


def _is_verb(module: object) -> bool:
    name = getattr(module, '__name__', '')
    is_ours = name.rpartition('.')[0] == __package__
    return callable(getattr(module, 'run', None)) and (is_ours or hasattr(module, 'HELP'))


def _help_line(name: str) -> str:
    return _HELP[name] if name in _HELP else str(getattr(VERBS.get(name), 'HELP'))  # noqa: B009


def complain(message: str) -> None:
    """Print an error as one line on standard error."""
    print(f'sim2real: error: {one_line(message)}', file=sys.stderr)


VERBS: Registry[Verb] = Registry(
    'sim2real_sensors.verbs',
    'a verb',
    _is_verb,
    {name: f'{__package__}.{name}' for name in _HELP},
    needs='HELP and run(options)',
    in_files=False,
)
"""The verbs by name, in the order of `sim2real --help`."""

_EPILOG = """\
exit status: 0 success; 1 finished, but a recording failed, an estimate
is not a number, or a limit of `gate` is exceeded; 2 bad input or options, nothing written

examples:
  sim2real demo
  sim2real vepd bags/* --models ch_gauss,ch_rw --out result
  sim2real VERB --help
"""


def is_common(action: argparse.Action) -> bool:
    """Return whether --help shows an option; --help-all shows all of them."""
    return getattr(action, 'is_common', True)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help formatter that omits rarely needed options unless --help-all is given."""

    all_options: ClassVar[bool] = False

    def add_usage(
        self, usage: str | None, actions: Iterable[argparse.Action], *more: Any, **named: Any
    ) -> None:
        super().add_usage(
            usage, [action for action in actions if self._shows(action)], *more, **named
        )

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
    """Argument parser whose errors are one line without the usage, like all other errors."""

    command_line: ClassVar[Sequence[str]] = ()
    """Words of the whole command line."""

    hints: ClassVar[Sequence[str]] = ()
    """Hints about old spellings that were not printed yet."""

    verb: str = ''
    """Verb whose words are parsed; empty for the whole command."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse words; recordings may stand before, between and after the options.

        Argparse ends a list of recordings at the first option, and returns later ones as words
        that it does not know.
        """
        if not self.verb or args is None:
            return super().parse_known_args(args, namespace)
        from .deprecations import current_words, print_hint

        CommandParser.command_line = [self.verb, *args]
        try:
            words, CommandParser.hints = current_words(self.verb, args)
        except ParameterError as error:
            self.error(str(error))
        CommandParser.command_line = [self.verb, *words]
        options, rest = super().parse_known_args(words, namespace)
        for hint in self.hints:
            print_hint(hint)
        CommandParser.hints = ()
        recordings = getattr(options, 'recordings', None)
        if isinstance(recordings, list) and not any(word.startswith('-') for word in rest):
            options.recordings = [*recordings, *rest]
            rest = []
        return options, rest

    def format_help(self) -> str:
        """Return the help, with the number of options that are omitted."""
        hidden_options = (
            0 if _Formatter.all_options else sum(not is_common(action) for action in self._actions)
        )
        epilog = self.epilog
        if hidden_options:
            self.epilog = (
                f'{hidden_options} more options: {self.prog} --help-all\n\n{epilog or ""}'
            )
        try:
            return super().format_help()
        finally:
            self.epilog = epilog

    def error(self, message: str) -> NoReturn:
        """Report a wrong command line with the most similar option; exit with status 2."""
        # A mistyped option may also leave a required one missing.
        options = self._option_names()
        for word in self.command_line:
            option = word.partition('=')[0]
            if option.startswith('--') and not any(
                option_string.startswith(option) for option_string in options
            ):
                near = did_you_mean(option, options)
                message = f'{message}{near}' if option in message else f'{option}{near}: {message}'
                break
        message = '; '.join([message, *self.hints])
        CommandParser.hints = ()
        complain(f'{message} (see {self._verb_parser().prog} --help)')
        self.exit(2)

    def _option_names(self) -> list[str]:
        """Return the options of this command and of the verb on the command line."""
        options = self._option_string_actions
        return sorted({*options, *self._verb_parser()._option_string_actions})

    def _verb_parser(self) -> argparse.ArgumentParser:
        """Return the parser of the verb on the command line, or this parser."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return next(
                    (action.choices[n] for n in action.choices if n in self.command_line), self
                )
        return self

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            problem = not_among(f'invalid choice: {value!r}', value, map(str, action.choices))
            raise argparse.ArgumentError(action, problem)


def _add_verb(parsers: Any, name: str) -> None:
    verb = VERBS.get(name, where='verb')
    summary, epilog = _help_line(name), getattr(verb, 'EPILOG', None)
    parser = parsers.add_parser(
        name,
        help=summary,
        description=getattr(verb, 'DESCRIPTION', summary),
        epilog=epilog() if callable(epilog) else epilog,
        formatter_class=_Formatter,
    )
    parser.verb = name
    parser.add_argument('--help-all', action=_HelpAll, nargs=0, help='show all options and exit')
    if hasattr(verb, 'add_arguments'):
        verb.add_arguments(parser)
    parser.set_defaults(run=verb.run)


def build_parser(verb: str | None = None) -> CommandParser:
    """Return the parser of the command.

    Parameters
    ----------
    verb : str, optional
        The only verb whose module is imported; empty for none, which is enough for `--help`. By
        default the parser has all verbs.

    Raises
    ------
    UnknownNameError
        When there is no such verb.
    """
    parser = CommandParser(
        prog='sim2real',
        usage='sim2real [-h] [--version] VERB ...',
        epilog=_EPILOG,
        formatter_class=_Formatter,
    )
    parser.add_argument('--version', action='store_true', help='print the versions and exit')
    # The description lists the verbs in groups, which argparse cannot do.
    parsers = parser.add_subparsers(prog='sim2real', metavar='VERB', help=argparse.SUPPRESS)
    if verb:
        _add_verb(parsers, verb)
        return parser
    summaries: dict[str, str] = {}
    for name in VERBS.names():
        try:
            if verb is None:
                _add_verb(parsers, name)
            summaries[name] = _help_line(name)
        except ParameterError as error:
            # A verb of another package that cannot be imported is left out.
            import logging

            logging.getLogger(__name__).warning('%s', error)
    parser.description = _overview(summaries)
    return parser


def _overview(summaries: Mapping[str, str]) -> str:
    """Return the purpose of the command and the verbs by group."""
    other_verbs = {name: text for name, text in summaries.items() if name not in _HELP}
    lines = [
        'Measure how much simulated GPS and IMU differ from the real ones,',
        'for the estimator that uses them.',
    ]
    for title, verbs in {**GROUPS, _OTHERS: other_verbs}.items():
        listed = [f'  {name:<14}{text}' for name, text in verbs.items() if name in summaries]
        lines += ['', f'{title}:', *listed] if listed else []
    return '\n'.join(lines)
