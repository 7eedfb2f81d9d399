# SPDX-License-Identifier: Apache-2.0
"""Arguments that say which speed is compared and how, and the options that they stand for."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sim2real_eval.cli.arguments import at_least

if TYPE_CHECKING:
    from sim2real_eval.metrics.options import MetricOptions
    from sim2real_eval.metrics.uncertainty.result import UncertaintyOptions


__all__ = ['add_metric', 'add_resampling', 'metric_options', 'resampling_options']


def add_metric(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options of the metric as a group of their own, and return it."""
    metric = parser.add_argument_group('metric (defaults: the paper)')
    metric.add_argument(
        '--component',
        choices=('horizontal', 'forward', 'x', 'y'),
        default='horizontal',
        help='speed that is compared (default horizontal)',
    )
    metric.add_argument(
        '--rate',
        type=at_least(0, float, above=True),
        default=15.0,
        metavar='HZ',
        help='rate of the common time grid (default 15)',
    )
    metric.add_argument(
        '--warmup',
        type=at_least(0, float),
        default=0.0,
        metavar='S',
        help='start of every run that does not count (default 0)',
    )
    metric.add_argument(
        '--window',
        type=at_least(1, int),
        default=2,
        metavar='N',
        help='moving average over the estimate, samples (default 2)',
    )
    metric.add_argument(
        '--rezero',
        choices=('none', 'each', 'common'),
        default='none',
        help='each: truth and estimate each start at their own first sample, as in the '
        "paper's experiment D (default none)",
    )
    metric.add_argument('--spectrum', choices=('magnitude', 'power'), default='magnitude')
    metric.add_argument('--detrend', choices=('none', 'mean'), default='none')
    return metric


def metric_options(options: argparse.Namespace, *, drop_zeros: bool = False) -> MetricOptions:
    """Return what --rate, --warmup, --window, --rezero, --spectrum and --detrend say.

    Parameters
    ----------
    options : argparse.Namespace
    drop_zeros : bool
        For files padded with zeros, as the published ones.

    Raises
    ------
    Sim2RealError
        For a value beyond its bounds.
    """
    from sim2real_eval.metrics.options import MetricOptions

    return MetricOptions(
        rate=options.rate,
        moving_average=options.window,
        warmup=options.warmup,
        rezero=options.rezero,
        spectrum=options.spectrum,
        detrend=options.detrend,
        drop_zeros=drop_zeros,
    )


# -------- Arguments of uncertainty and significance, and the options that they set.


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
    from sim2real_eval.metrics.uncertainty.result import UncertaintyOptions

    return UncertaintyOptions.from_mapping(
        {'resamples': options.resamples, 'level': options.level}, 'sim2real', '--'
    )
