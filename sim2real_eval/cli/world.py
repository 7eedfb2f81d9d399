# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real world`: the properties of a world as numbers and as a map."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, parameter
from .arguments import add_out
from .deprecations import place_files
from .options import OptionSet
from .output import conclude, print_table

if TYPE_CHECKING:
    from sim_sensors.world.world import World

DESCRIPTION = (
    'Print the place, gravity, Earth field and contents of a world, and its magnetic field on a '
    'level map, which --out draws (docs/explanation/world.md).'
)
EPILOG = """\
examples:
  sim2real world default
  sim2real world dipole_room --area 0,8,0,10 --height 1.2 --out room
  sim2real world dipole_room --area 0,8,0,10 --height 1.2 --components --out room
  sim2real world my_room.yaml --year 2027.5 --json
"""


@dataclasses.dataclass(frozen=True)
class WorldOptions(Parameters):
    """Part of a world that the map shows."""

    height: float | None = parameter(
        None,
        'm',
        'z of the map (default: half way between the lowest and the highest dipole, '
        'landmark and tag).',
        optional=float,
    )
    area: tuple[float, float, float, float] = parameter(
        (),
        'm',
        'Edges of the map (default: the extent of dipoles, landmarks and tags, with a margin).',
    )
    year: float | None = parameter(
        None,
        '1',
        'Decimal year of the World Magnetic Model, 2010 to 2030 (default: that of the world).',
        optional=float,
    )

    def _check(self) -> None:
        if len(self.area) not in (0, 4):
            area = ','.join(f'{edge:g}' for edge in self.area)
            problem = f'{area!r} must be 4 numbers, separated by commas'
            raise ParameterError('', 'area', problem)


_WORLD = OptionSet(
    WorldOptions, height='--height Z', area='--area X0,X1,Y0,Y1', year='--year YEAR'
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        'world', metavar='WORLD', help='world listed by `sim2real models`, or file'
    )
    meaning = 'folder for map.png, or components.png with --components'
    add_out(parser, meaning, 'overwrite', 'json')
    _WORLD.add(parser)
    parser.add_argument(
        '--components',
        action='store_true',
        help='draw the x, y and z components of the disturbance by the dipoles, as in figure 8 of '
        '[Ligorio2015], instead of strength and compass error',
    )


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.benches.world import world_map, world_record
    from sim2real_eval.common.results import check_result_files
    from sim_sensors.world.world import load_world

    chosen = _WORLD.make(options)
    picture: Path | None = None
    if options.out is not None:
        name = 'components.png' if options.components else 'map.png'
        picture = Path(*place_files('world', options.out, name))
        check_result_files(picture.parent, (picture.name,), overwrite=options.overwrite)
    elif options.components:
        raise ParameterError('--components', '', 'needs --out DIR')
    world = load_world(options.world)
    if options.components and not len(world.dipoles):
        problem = f'needs a world with dipoles, which {options.world} has not; try dipole_room'
        raise ParameterError('--components', '', problem)
    if chosen.year is not None:
        world = _at(world, chosen.year)
    name = Path(options.world).stem
    map_data = world_map(world, chosen.area or None, chosen.height)
    record = world_record(map_data, name)
    if picture is not None:
        from sim2real_eval.report.style import save_picture
        from sim2real_eval.report.world import components_figure, world_figure

        draw = components_figure if options.components else world_figure
        save_picture(draw(map_data, name), picture, overwrite=options.overwrite)

    def print_result() -> None:
        from sim2real_eval.report.world import world_table

        print_table(world_table(record))
        if picture is not None:
            print(f'Map: {picture}')

    record = {**record, 'picture': None if picture is None else str(picture)}
    return conclude(options, record, print_result)


def _at(world: World, year: float) -> World:
    """Return the world at another time."""
    from sim_sensors.world.earth import EarthField

    if world.earth_field.model != 'wmm':
        raise ParameterError(
            '--year', '', f'needs an earth_field of the model wmm; this world has '
            f'{world.earth_field.model}'
        )  # fmt: skip
    value = EarthField.declarations()['year'].parse(year, '--year', '')
    earth = dataclasses.replace(world.earth_field, year=value)
    return dataclasses.replace(world, earth_field=earth)
