# SPDX-License-Identifier: Apache-2.0
"""Options of the verbs that analyse an IMU at rest."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from sim2real_eval.cli.arguments import at_least
from sim_sensors.errors import ParameterError

__all__ = ['add_fit_from', 'add_motion', 'add_units', 'given_once']


def add_units(parser: argparse._ActionsContainer) -> None:
    """Add --gyro-unit and --accel-unit."""
    parser.add_argument(
        '--gyro-unit',
        choices=('rad/s', 'deg/s'),
        default='rad/s',
        help='unit of the rates, in recordings too (default rad/s)',
    )
    parser.add_argument(
        '--accel-unit',
        choices=('m/s^2', 'g', 'mg'),
        default='m/s^2',
        help='unit of the accelerations, in recordings too (default m/s^2)',
    )


def add_motion(parser: argparse._ActionsContainer) -> None:
    """Add --motion."""
    parser.add_argument(
        '--motion',
        choices=('reject', 'keep'),
        default='reject',
        help='reject: analyse the longest standstill of the IMU only (default); keep: all of it',
    )


def add_fit_from(parser: argparse._ActionsContainer) -> None:
    """Add --fit-from."""
    parser.add_argument(
        '--fit-from',
        type=at_least(0, float),
        default=0.0,
        metavar='S',
        help='shortest averaging time that is fitted, for a sensor with a low pass (default 0)',
    )


def given_once(recordings: Sequence[str]) -> None:
    """Refuse a recording that is named twice: it would count as two that agree.

    Raises
    ------
    ParameterError
    """
    places = [Path(one).resolve() for one in recordings]
    for one, place in zip(recordings, places, strict=True):
        if places.count(place) > 1:
            raise ParameterError('recordings', one, 'is given twice; must be given once')
