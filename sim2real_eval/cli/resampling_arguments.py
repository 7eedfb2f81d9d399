# SPDX-License-Identifier: Apache-2.0
"""Arguments of uncertainty and significance, and the options that they set."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sim2real_eval.cli.arguments import at_least

if TYPE_CHECKING:
    from sim2real_eval.uncertainty import UncertaintyOptions

__all__ = ['add_resampling', 'resampling_options']


def add_resampling(parser: argparse.ArgumentParser, *, of: str = '') -> None:
    """Add the options of the uncertainty as a group of their own.

    Parameters
    ----------
    parser : ArgumentParser
    of : str
        Where else the numbers may come from; they are then None when not given.
    """
    group = parser.add_argument_group('uncertainty')
    group.add_argument(
        '--resamples',
        type=at_least(100, int),
        default=None if of else 10_000,
        metavar='N',
        help=f'permutations and resamples behind intervals and p-values (default: {of}10000)',
    )
    group.add_argument(
        '--level',
        type=at_least(0.5, float),
        default=None if of else 0.95,
        metavar='P',
        help=f'level of intervals; a p-value below 1 - P is significant (default: {of}0.95)',
    )


def resampling_options(options: argparse.Namespace) -> UncertaintyOptions:
    """Return the options of the uncertainty.

    Raises
    ------
    ParameterError
        When a number is out of range.
    """
    from sim2real_eval.uncertainty import UncertaintyOptions

    return UncertaintyOptions.from_mapping(
        {'resamples': options.resamples, 'level': options.level}, 'sim2real', '--'
    )
