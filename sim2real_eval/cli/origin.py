# SPDX-License-Identifier: Apache-2.0
"""`--origin`: where on the Earth a simulated motion takes place."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sim_sensors.errors import ParameterError

if TYPE_CHECKING:
    from sim_sensors.environment import LocalFrame

__all__ = ['add_origin', 'origin_of']

_FLAG = '--origin'


def add_origin(parser: argparse.ArgumentParser, what: str) -> None:
    """Add --origin; `what` says what lies there, and where it lies without."""
    parser.add_argument(
        _FLAG,
        metavar='LAT,LON[,ALT]',
        help=f'{what}; WGS84 degrees and m, such as -33.86,151.21',
    )


def origin_of(options: argparse.Namespace) -> LocalFrame | None:
    """Return the place that was given, if one was.

    Raises
    ------
    ParameterError
        When it is not two or three numbers, or none on the Earth.
    """
    text: str | None = options.origin
    if text is None:
        return None
    from sim_sensors.environment import LocalFrame

    parts = text.split(',')
    try:
        values = [float(part) for part in parts]
    except ValueError:
        values = []
    if len(values) not in (2, 3):
        raise ParameterError(
            _FLAG, '', f'{text!r} is not allowed; must be latitude,longitude or '
            'latitude,longitude,altitude in degrees and m'
        )  # fmt: skip
    names = ('latitude_deg', 'longitude_deg', 'altitude_m')
    return LocalFrame.from_mapping(dict(zip(names, values, strict=False)), _FLAG)
