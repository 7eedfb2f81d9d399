# SPDX-License-Identifier: Apache-2.0
"""Options of the command line that are made from declared parameters."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameter, Parameters

P = TypeVar('P', bound=Parameters)


class OptionSet(Generic[P]):
    """Options that stand for parameters of one declared set.

    Parameters
    ----------
    declared : type
        Set of parameters.
    *names : str
        Parameters with an option of the same name, `max_lag` being `--max-lag`.
    **flags : str
        Parameters whose option has another name, such as `factor='--outlier-factor'`.

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
        self._flags = {name: f'--{name.replace("_", "-")}' for name in names} | flags

    def add(self, parser: argparse._ActionsContainer, *, of: str = '') -> None:
        """Add the options; the value of one that is not given is None.

        Parameters
        ----------
        parser : parser or group
        of : str
            Where else a value may come from, for the help: `that of the study file, else `.
        """
        declarations = self._declared.declared()
        for name, flag in self._flags.items():
            add_option(parser, flag, declarations[name], of=of)

    def given(self, options: argparse.Namespace) -> dict[str, Any]:
        """Return what was given on the command line, by parameter."""
        found = {
            name: getattr(options, flag.removeprefix('--').replace('-', '_'))
            for name, flag in self._flags.items()
        }
        return {name: value for name, value in found.items() if value is not None}

    def make(self, options: argparse.Namespace, **more: Any) -> P:
        """Return the set with what was given, and with more values.

        Raises
        ------
        ParameterError
            When values that are each allowed do not go together.
        """
        try:
            return self._declared(**{**self.given(options), **more})
        except ParameterError as error:
            raise ParameterError(
                self._flags.get(error.key, error.key), '', error.problem
            ) from None

    def refuse(self, options: argparse.Namespace, problem: str) -> None:
        """Refuse the first option that was given, because of a problem; none: nothing is wrong."""
        for name in self.given(options):
            raise ParameterError(self._flags[name], '', problem)


def add_option(
    parser: argparse._ActionsContainer, flag: str, one: Parameter, *, of: str = ''
) -> None:
    """Add the option of one declaration, whose help has its unit, range and default."""
    meaning = one.doc.rstrip('.').replace('%', '%%')
    if meaning[1:2].islower():
        meaning = meaning[0].lower() + meaning[1:]
    if one.kind is bool:
        parser.add_argument(flag, action='store_const', const=True, help=meaning)
        return
    details = [_range(one)]
    if one.default not in (None, ''):
        details.append(f'default{":" if of else ""} {of}{_shown(one.default)}')
    extent = '; '.join(filter(None, details))
    form: Mapping[str, Any] = (
        {'choices': one.choices}
        if one.choices
        else {'type': _parser(one), 'metavar': _metavar(one)}
    )
    parser.add_argument(flag, help=f'{meaning} ({extent})' if extent else meaning, **form)


def _shown(value: Any) -> str:
    """Return a default as it is written on the command line."""
    if isinstance(value, tuple):
        return ','.join(map(_shown, value))
    return f'{value:g}' if isinstance(value, float) else str(value)


def _range(one: Parameter) -> str:
    bounds = []
    if one.minimum is not None:
        bounds.append(f'{">" if one.minimum_excluded else ">="} {one.minimum:.10g}')
    if one.maximum is not None:
        bounds.append(f'<= {one.maximum:.10g}')
    unit = '' if one.unit == '1' else one.unit
    return ' '.join(filter(None, (' and '.join(bounds), unit)))


def _metavar(one: Parameter) -> str:
    if one.kind is tuple:
        return 'LIST'
    return 'N' if one.kind is int else 'X' if one.kind is float else 'NAME'


def _parser(one: Parameter) -> Callable[[str], Any]:
    """Return an argparse type that takes what the declaration allows."""

    def parse(text: str) -> Any:
        try:
            value: Any = int(text) if one.kind is int else text
            return one.parse(text.split(',') if one.kind is tuple else value, '', '')
        except (ValueError, ParameterError):
            raise argparse.ArgumentTypeError(f'{text!r} must be {one.allowed()}') from None

    return parse
