# SPDX-License-Identifier: Apache-2.0
"""`sim2real world`: what a world holds, in numbers and as a map."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real_eval.cli.arguments import add_json
from sim2real_eval.cli.output import print_json, print_table
from sim_sensors.core.errors import ParameterError

if TYPE_CHECKING:
    from sim_sensors.world.world import World

HELP = 'what a world file holds: gravity, magnetic field, dipoles, tags; and a map of it'
DESCRIPTION = (
    "Print a world's place, gravity, Earth field and contents, and how the "
    'magnetic field is on a level map, which --out draws (docs/world.md).'
)
EPILOG = """\
examples:
  sim2real world default
  sim2real world dipole_room --area 0,8,0,10 --height 1.2 --out room.png
  sim2real world my_room.yaml --year 2027.5 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        'world', metavar='WORLD', help='world, which `sim2real models` lists, or file'
    )
    parser.add_argument('--out', metavar='FILE', help='picture of the map to write, FILE.png')
    parser.add_argument(
        '--overwrite', action='store_true', help='replace the picture if it is there'
    )
    parser.add_argument(
        '--height',
        type=_number,
        metavar='Z',
        help='z of the map, m (default: half way between the lowest and the highest dipole, '
        'landmark and tag)',
    )
    parser.add_argument(
        '--area',
        type=_edges,
        metavar='X0,X1,Y0,Y1',
        help='edges of the map, m (default: where dipoles, landmarks and tags are, with a margin)',
    )
    parser.add_argument(
        '--year',
        type=_number,
        metavar='YEAR',
        help='decimal year of the World Magnetic Model, 2010 to 2030 (default: that of the world)',
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.benches.world import world_map, world_record
    from sim_sensors.world.world import load_world

    if options.out is not None:
        _check_out(options.out, overwrite=options.overwrite)
    world = load_world(options.world)
    if options.year is not None:
        world = _at(world, options.year)
    name = Path(options.world).stem
    found = world_map(world, options.area, options.height)
    record = world_record(found, name)
    if options.out is not None:
        from sim2real_eval.report.style import save_png
        from sim2real_eval.report.world import world_figure

        save_png(world_figure(found, name), options.out)
    if options.json:
        print_json({**record, 'picture': options.out})
        return 0
    from sim2real_eval.report.world import world_table

    print_table(world_table(record))
    if options.out is not None:
        print(f'Map: {options.out}')
    return 0


def _check_out(out: str, *, overwrite: bool) -> None:
    from sim2real_eval.common.results import check_result_files

    path = Path(out)
    if path.is_dir() or not path.name:
        raise ParameterError('--out', '', f'{out!r} is a folder; must be a file')
    if path.suffix.lower() != '.png':
        raise ParameterError('--out', '', f'{out!r} is not allowed; must end in .png')
    check_result_files(path.parent, (path.name,), overwrite=overwrite)


def _at(world: World, year: float) -> World:
    """Return the world at another time."""
    import dataclasses

    from sim_sensors.world.fields import EarthField

    if world.earth_field.model != 'wmm':
        raise ParameterError(
            '--year', '', f'goes with an earth_field of the model wmm only; this one is '
            f'{world.earth_field.model}'
        )  # fmt: skip
    value = EarthField.declared()['year'].parse(year, '--year', '')
    earth = dataclasses.replace(world.earth_field, year=value)
    return dataclasses.replace(world, earth_field=earth)


def _number(text: str) -> float:
    """Argparse type: a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f'{text!r} must be a number')
    return value


def _edges(text: str) -> tuple[float, ...]:
    """Argparse type: the edges of a map."""
    try:
        edges = tuple(float(part) for part in text.split(','))
    except ValueError:
        edges = ()
    if len(edges) != 4 or not all(map(math.isfinite, edges)):
        raise argparse.ArgumentTypeError(f'{text!r} must be 4 numbers, separated by commas')
    return edges
