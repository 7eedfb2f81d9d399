# SPDX-License-Identifier: Apache-2.0
"""Table of what a world is, for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from sim2real_eval.report.plain_table import plain_table

__all__ = ['world_table']

_KINDS = ('dipoles', 'landmarks', 'chessboards', 'tags')


def world_table(record: Mapping[str, Any]) -> Table:
    """Return a line per thing, in the units that people use: degrees, m, m/s^2, uT.

    Parameters
    ----------
    record : mapping
        From `sim2real_eval.world_record.world_record`.
    """
    table = plain_table(f'World {record["world"]}', gap=1)
    table.show_header = False
    table.add_column('')
    table.add_column('', overflow='fold')
    for name, text in _rows(record):
        table.add_row(name, Text(text))
    return table


def _rows(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    origin, gravity, earth = record['origin'], record['gravity'], record['earth_field']
    level = record['map']
    x0, x1, y0, y1 = level['area_m']
    made = (
        f'World Magnetic Model {earth["coefficients"]} at {earth["year"]:g}'
        if earth['coefficients']
        else 'constant'
    )
    east, north, up = earth['east_north_up_t']
    rows = [
        (
            'origin',
            f'{origin["latitude_deg"]:g}, {origin["longitude_deg"]:g} deg, '
            f'{origin["altitude_m"]:g} m above the ellipsoid',
        ),
        ('gravity', f'{gravity["value_m_s2"]:.6f} m/s^2 ({gravity["model"]})'),
        (
            "Earth's field",
            f'east {_ut(east)}, north {_ut(north)}, up {_ut(up)} uT ({made})',
        ),
        ('', f'intensity {_ut(earth["intensity_t"])} uT, inclination '
             f'{earth["inclination_deg"]:.2f}, declination {earth["declination_deg"]:.2f} deg'),
        (
            'holds',
            ', '.join(_counted(record[kind], kind) for kind in _KINDS),
        ),
        (
            'map',
            f'x {x0:.4g} to {x1:.4g} m, y {y0:.4g} to {y1:.4g} m, z {level["height_m"]:.4g} m',
        ),
    ]  # fmt: skip
    if not record['dipoles']:
        return [*rows, ('field on it', 'the same everywhere')]
    rows.append(
        (
            'field on it',
            f'{_ut(level["least_t"])} uT at {_place(level["least_at_m"])} to '
            f'{_ut(level["most_t"])} uT at {_place(level["most_at_m"])} m',
        )
    )
    if (turned := level['compass']) is not None:
        rows.append(
            (
                'compass on it',
                f'errs by {turned["median_deg"]:.1f} deg (median), by more than 5 in '
                f'{100.0 * turned["share_above_5_deg"]:.0f} % of the area, by more than 30 in '
                f'{100.0 * turned["share_above_30_deg"]:.0f} %',
            )
        )
    return rows


def _counted(count: int, kind: str) -> str:
    return f'{count} {kind if count != 1 else kind.removesuffix("s")}'


def _ut(field: float) -> str:
    return f'{1e6 * field:.3f}'


def _place(position: Sequence[float]) -> str:
    return f'({position[0]:.3g}, {position[1]:.3g})'
