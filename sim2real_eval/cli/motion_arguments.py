# SPDX-License-Identifier: Apache-2.0
"""Parameters of a motion on the command line, for every verb that simulates one."""

from __future__ import annotations

import argparse

from sim_sensors.errors import ParameterError

__all__ = ['add_set', 'motion_parameters']


def add_set(parser: argparse._ActionsContainer) -> None:
    """Add --set."""
    parser.add_argument(
        '--set',
        action='append',
        default=[],
        metavar='KEY=VALUE',
        help='parameter of an analytic motion; repeatable',
    )


def motion_parameters(options: argparse.Namespace) -> dict[str, object]:
    """Return the values of --set by their keys.

    Raises
    ------
    ParameterError
        For a text that is no KEY=VALUE, and for the duration, which has an option of its own.
    """
    parameters = dict(_key_value(text) for text in options.set)
    if 'duration' in parameters:
        raise ParameterError('--set', 'duration', 'is not set here but with --duration')
    return parameters


def _key_value(text: str) -> tuple[str, object]:
    import yaml

    key, equals, value = text.partition('=')
    if not equals:
        raise ParameterError('--set', '', f'{text!r} is not allowed; must be KEY=VALUE')
    try:
        return key, yaml.safe_load(value)
    except yaml.YAMLError:
        return key, value
