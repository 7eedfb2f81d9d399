# SPDX-License-Identifier: Apache-2.0
"""Tracking errors of controllers as a table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.table import Table

from sim2real_eval.report.plain_table import plain_table
from sim_sensors.tracking_error import ErrorStatistics

__all__ = ['following_console_table']


def following_console_table(
    statistics: Mapping[str, Mapping[str, ErrorStatistics]], *, title: str
) -> Table:
    """Return a table with a row per controller: distance, across, along [m], and yaw [deg].

    Parameters
    ----------
    statistics : mapping
        Controller to the statistics of each error, as `pooled_statistics` gives them.
    title : str
        Line above the table.
    """
    table = plain_table(title)
    table.add_column('controller', overflow='fold')
    for head in ('distance\nmean\nm', '\nrms\nm', '\nmax\nm', 'across\nrms\nm', 'along\nrms\nm'):
        table.add_column(head, justify='right', no_wrap=True)
    for head in ('yaw\nmean\ndeg', '\nrms\ndeg', '\nmax\ndeg'):
        table.add_column(head, justify='right', no_wrap=True)
    for controller, found in statistics.items():
        distance, yaw = found['distance'], found['yaw']
        metres = (distance.mean, distance.rms, distance.maximum)
        lateral = (found['across'].rms, found['along'].rms)
        degrees = (math.degrees(value) for value in (yaw.mean, yaw.rms, yaw.maximum))
        cells = [f'{value:.3f}' for value in (*metres, *lateral)]
        table.add_row(controller, *cells, *(f'{value:.2f}' for value in degrees))
    return table
