# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Command-line options that are generated from the declarations of parameters."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from sim2real_eval.metrics.options import MetricOptions, UncertaintyOptions
from sim2real_eval.study.options import StudyOptions
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameter, Parameters, parameter

P = TypeVar('P', bound=Parameters)

_OF_OUTPUT = (
    'help', 'help_all', 'out', 'overwrite', 'json', 'jobs', 'cluster', 'published', 'verbose',
    'quiet',
)  # fmt: skip


def hide_from_help(action: argparse.Action) -> argparse.Action:
    """Hide an option from --help; --help-all shows it."""
    action.is_common = False  # type: ignore[attr-defined]
    return action


def optional_text(doc: str, **more: Any) -> Any:
    """Declare a text option whose default is None; see `parameter`."""
    return parameter(None, '', doc, optional=str, **more)


class OptionSet(Generic[P]):
    """Options for the parameters of one declared set.

    Values are stored under the names of the parameters. `names` are the parameters that have an
    option; the default is all of them. `flags` gives the spelling of options that differs from the
    name of the parameter, such as `factor='--outlier-factor'`; a second word is the name of the
    value in the help.

    Examples
    --------
    >>> from sim_sensors.world.geodesy import LocalFrame
    >>> place = OptionSet(LocalFrame, 'latitude_deg')
    >>> parser = argparse.ArgumentParser()
    >>> place.add(parser)
    >>> place.make(parser.parse_args(['--latitude-deg', '48.1'])).latitude_deg
    48.1
    """

    def __init__(self, declared: type[P], *names: str, **flags: str) -> None:
        self._declared = declared
        self._flags = {
            name: flags.get(name, f'--{name.replace("_", "-")}').split()
            for name in names or declared.declarations()
        }

    def flag(self, name: str) -> str:
        """Return the command-line option of a parameter, or its name if it has no option."""
        return self._flags.get(name, [name])[0]

    def add(
        self,
        parser: argparse._ActionsContainer,
        *names: str,
        of: str = '',
        base: P | None = None,
        kept: bool = False,
    ) -> None:
        """Add the options of some parameters, or of all, to a parser or group.

        In the help, `of` names another source of the value, such as `that of the study file,
        otherwise `, and `base` replaces the declared defaults. An option that is not given is None
        or, with `kept`, its default.
        """
        for name in names or self._flags:
            declaration = self._declared.declarations()[name]
            default = declaration.default if base is None else getattr(base, name)
            flags = [word for word in self._flags[name] if word.startswith('-')]
            form: dict[str, Any] = {'choices': declaration.choices}
            if declaration.kind is bool and flags[-1].startswith('--no-'):
                flags, form = flags[:-1], {'action': argparse.BooleanOptionalAction}
            elif declaration.kind is bool:
                form = {'action': 'store_const', 'const': True}
            elif not declaration.choices:
                last = self._flags[name][-1]
                form = {
                    'type': _parser(declaration),
                    'metavar': _metavar(declaration) if last in flags else last,
                }
            action = parser.add_argument(
                *flags,
                dest=name,
                default=default if kept else None,
                help=_help(declaration, default, of),
                **form,
            )
            if not declaration.common:
                hide_from_help(action)

    def explicit_values(self, options: argparse.Namespace) -> dict[str, Any]:
        """Return the values that the command line sets explicitly, by parameter."""
        values = {name: getattr(options, name, None) for name in self._flags}
        return {name: value for name, value in values.items() if value is not None}

    def make(self, options: argparse.Namespace, base: P | None = None, **more: Any) -> P:
        """Return the parameters with the values of the command line and of `more`.

        Other values are those of `base`. Invalid combinations of values are refused.
        """
        values = {**self.explicit_values(options), **more}
        try:
            return (
                self._declared(**values) if base is None else dataclasses.replace(base, **values)
            )
        except ParameterError as error:
            raise ParameterError(self.flag(error.key), '', error.problem) from None

    def words(self, values: P) -> list[str]:
        """Return the options, as words, for values that differ from the declared defaults."""
        words: list[str] = []
        for name in self._flags:
            declaration, value = self._declared.declarations()[name], getattr(values, name)
            if value != declaration.default:
                words += (
                    [self.flag(name)]
                    if declaration.kind is bool
                    else [self.flag(name), str(value)]
                )
        return words

    def refuse(self, options: argparse.Namespace, problem: str, *names: str) -> None:
        """Refuse an option that was set, because of a problem.

        `names` are the parameters to look at; the default is all of them. An option that repeats
        the default is not refused.
        """
        for name, value in self.explicit_values(options).items():
            if value != self._declared.declarations()[name].default and (
                not names or name in names
            ):
                raise ParameterError(self.flag(name), '', problem)


def _help(declaration: Parameter, default: Any, of: str) -> str:
    """Return the help of an option: meaning, range, unit and default."""
    meaning = declaration.doc.rstrip('.').replace('%', '%%')
    if meaning[1:2].islower():
        meaning = meaning[0].lower() + meaning[1:]
    if declaration.kind is bool:
        return meaning
    bounds = []
    if declaration.minimum is not None:
        bounds.append(
            f'{">" if declaration.minimum_excluded else ">="} {declaration.minimum:.10g}'
        )
    if declaration.maximum is not None:
        bounds.append(f'<= {declaration.maximum:.10g}')
    unit = '' if declaration.unit == '1' else declaration.unit
    details = [' '.join(filter(None, (' and '.join(bounds), unit)))]
    if default not in (None, '', ()):
        details.append(f'default{":" if of else ""} {of}{_default_text(default)}')
    extent = '; '.join(filter(None, details))
    return f'{meaning} ({extent})' if extent else meaning


def _default_text(value: Any) -> str:
    """Return a default value in the syntax of the command line."""
    if isinstance(value, tuple):
        return ','.join(map(_default_text, value))
    return f'{value:g}' if isinstance(value, float) else str(value)


def _metavar(declaration: Parameter) -> str:
    if declaration.unit.isalpha():
        return declaration.unit.upper()
    return {tuple: 'LIST', int: 'N', float: 'X'}.get(declaration.kind, 'NAME')


def _parser(declaration: Parameter) -> Callable[[str], Any]:
    """Return an argparse type that accepts the declared values."""

    def parse(text: str) -> Any:
        try:
            value: Any = int(text) if declaration.kind is int else text
            return declaration.parse(
                text.split(',') if declaration.kind is tuple else value, '', ''
            )
        except (ValueError, ParameterError):
            raise argparse.ArgumentTypeError(
                f'{text!r} must be {declaration.allowed_text()}'
            ) from None

    return parse


STUDY = OptionSet(
    StudyOptions,
    start_heading='--start-heading --no-start-heading',
    off_ticks='--off-ticks --no-off-ticks',
    match_rates='--match-rates --no-match-rates',
    block='--block none|auto|FILE',
)
METRIC = OptionSet(MetricOptions, moving_average='--window')
UNCERTAINTY = OptionSet(UncertaintyOptions)

_RUNS = ('seed', 'repetitions', 'match_rates', 'start_heading', 'off_ticks', 'adapt', 'block')
# Published files are padded with zeros, recordings are not.
_OF_METRIC = tuple(name for name in MetricOptions.declarations() if name != 'drop_zeros')


def add_metric(parser: argparse.ArgumentParser, *, of: str = '') -> None:
    """Add --component and the options of the metric, except that of its file format."""
    group = parser.add_argument_group('metric (defaults: the paper)')
    STUDY.add(group, 'component', of=of)
    METRIC.add(group, *_OF_METRIC, of=of)


def add_study_options(parser: argparse.ArgumentParser, *, of: str = '') -> None:
    """Add the options of `StudyOptions` and its parts."""
    STUDY.add(parser.add_argument_group('runs'), *_RUNS, of=of)
    add_metric(parser, of=of)
    UNCERTAINTY.add(parser.add_argument_group('uncertainty'), of=of)


def study_options(options: argparse.Namespace, base: StudyOptions | None = None) -> StudyOptions:
    """Return the study options of the command line; other values are those of `base`."""
    base = base or StudyOptions()
    merged = STUDY.make(
        options,
        base,
        metric=METRIC.make(options, base.metric),
        uncertainty=UNCERTAINTY.make(options, base.uncertainty),
    )
    return merged.without_deriving(
        [*STUDY.explicit_values(options), *METRIC.explicit_values(options)]
    )


def study_words(options: StudyOptions) -> list[str]:
    """Return the study options, as words, that differ from the declared defaults."""
    parts = METRIC.words(options.metric), UNCERTAINTY.words(options.uncertainty)
    return [*STUDY.words(options), *parts[0], *parts[1]]


def command_words(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[str]:
    """Return the words that repeat the study: recordings, and options but those of the output."""
    words: list[str] = []
    for action in parser._actions:
        value: Any = getattr(options, action.dest, None)
        if not action.option_strings or action.dest in _OF_OUTPUT or value == action.default:
            continue
        option = action.option_strings[0]
        if action.nargs == 0:
            words.append(option if value else action.option_strings[-1])
        else:
            for item in value if isinstance(value, list) else [value]:
                words += [option, str(item)]
    return [*(getattr(options, 'recordings', None) or ()), '--out', 'result', *words]
