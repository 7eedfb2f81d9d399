# SPDX-License-Identifier: Apache-2.0
"""Options of the command line that declared parameters stand for."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameter, Parameters

if TYPE_CHECKING:
    from sim2real_eval.study.options import StudyOptions

_NAMES = {'moving_average': 'window'}
"""Options that are not called as their parameter."""

_OF_OUTPUT = ('help', 'out', 'overwrite', 'json', 'jobs', 'cluster', 'published')


def add_declared(
    parser: argparse._ActionsContainer, declared: Mapping[str, Parameter], *, of: str = ''
) -> None:
    """Add an option per declaration; its value is None where it is not given.

    Parameters
    ----------
    parser : parser or group
    declared : mapping
        Name to declaration, as from `Parameters.declared`.
    of : str
        Where else a value may come from, for the help, such as `that of the study file, else `.
    """
    for name, one in declared.items():
        option = _option(name)
        meaning = one.doc.rstrip('.').replace('%', '%%')
        if one.kind is bool:
            parser.add_argument(option, action='store_const', const=True, dest=name, help=meaning)
            continue
        shown = f'{one.default:g}' if isinstance(one.default, float) else f'{one.default}'
        unit = f' [{one.unit}]' if one.unit not in ('', '1') else ''
        allowed: dict[str, Any] = (
            {'choices': one.choices}
            if one.choices
            else {'type': _kind(one), 'metavar': one.unit.upper() if unit else 'N'}
        )
        parser.add_argument(
            option, dest=name, help=f'{meaning}{unit} (default: {of}{shown})', **allowed
        )


def _option(name: str) -> str:
    return '--' + _NAMES.get(name, name).replace('_', '-')


def _kind(one: Parameter) -> Callable[[str], Any]:
    """Return an argparse type that takes what the declaration allows."""

    def parse(text: str) -> Any:
        try:
            value: Any = int(text) if one.kind is int else text
            return one.parse(value, '', '')
        except (ValueError, ParameterError):
            raise argparse.ArgumentTypeError(f'{text!r} must be {one.allowed()}') from None

    return parse


def given_values(options: argparse.Namespace, declared: type[Parameters]) -> dict[str, Any]:
    """Return what was given on the command line of declared parameters, by name."""
    found = {name: getattr(options, name, None) for name in declared.declared()}
    return {name: value for name, value in found.items() if value is not None}


def add_metric(parser: argparse.ArgumentParser, *, of: str = '') -> argparse._ArgumentGroup:
    """Add --component and the options of the metric as a group of their own, and return it."""
    from sim2real_eval.metrics.options import MetricOptions
    from sim2real_eval.study.options import StudyOptions

    metric = parser.add_argument_group('metric (defaults: the paper)')
    add_declared(metric, {'component': StudyOptions.declared()['component']}, of=of)
    declared = MetricOptions.declared()
    # Published files are padded with zeros, recordings are not.
    del declared['drop_zeros']
    add_declared(metric, declared, of=of)
    return metric


def add_study_options(parser: argparse.ArgumentParser, *, of: str = '') -> None:
    """Add the options of `StudyOptions`, that of the metric's file format left out."""
    from sim2real_eval.metrics.uncertainty.result import UncertaintyOptions
    from sim2real_eval.study.options import StudyOptions

    declared = StudyOptions.declared()
    del declared['component']
    add_declared(parser.add_argument_group('runs'), declared, of=of)
    add_metric(parser, of=of)
    add_declared(parser.add_argument_group('uncertainty'), UncertaintyOptions.declared(), of=of)


def study_options(options: argparse.Namespace, base: StudyOptions | None = None) -> StudyOptions:
    """Return what the options say, in place of what `base` or else the declaration says.

    Raises
    ------
    ParameterError
        When values that are each allowed do not go together.
    """
    from sim2real_eval.study.options import StudyOptions

    base = base or StudyOptions()
    values: dict[str, Any] = {**base.to_mapping(), **given_values(options, StudyOptions)}
    for name, part in base.parts().items():
        values[name] = {**part.to_mapping(), **given_values(options, type(part))}
    return StudyOptions.from_mapping(values, 'sim2real', '--')


def declared_words(given: Parameters) -> list[str]:
    """Return the options that say what is not as declared, parts included."""
    words: list[str] = []
    for name, one in given.declared().items():
        value = getattr(given, name)
        if value != one.default:
            option = _option(name)
            words += [option] if one.kind is bool else [option, str(value)]
    for part in given.parts().values():
        words += declared_words(part)
    return words


def command_words(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[str]:
    """Return the options that give the same study again: all that were given but for output."""
    words: list[str] = []
    last: list[str] = []
    for action in parser._actions:
        value: Any = getattr(options, action.dest, None)
        if not action.option_strings or action.dest in _OF_OUTPUT or value == action.default:
            continue
        option = action.option_strings[0]
        if action.nargs == '+':
            # Last, where the words that follow it cannot be taken for paths.
            last += [option, *value]
        elif action.nargs == 0:
            words.append(option)
        else:
            for one in value if isinstance(value, list) else [value]:
                words += [option, str(one)]
    return ['--out', 'result', *words, *last]
