# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real export`: a sensor model as the file of another simulator."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.parameters import Parameters, parameter
from .arguments import add_out
from .deprecations import place_files
from .options import OptionSet
from .output import conclude, print_table

if TYPE_CHECKING:
    from sim2real_eval.exporting.comparison import Export

DESCRIPTION = (
    'Write a model of an IMU or a GPS as the file of another simulator, with the best parameters '
    "of that simulator's own law, and say what it will make of them and where it cannot follow."
)
EPILOG = """\
examples:
  sim2real export noise/imu.yaml --to sdf --out gazebo
  sim2real export noise/imu.yaml --to airsim
  sim2real export noise/imu.yaml --to kalibr --range 0.1,100 --out kalibr
  sim2real export sensors/gps.yaml --to hector
  sim2real models --from settings.json
"""


@dataclasses.dataclass(frozen=True)
class ExportOptions(Parameters):
    """Choices of an export."""

    rate: float | None = parameter(
        None,
        'Hz',
        'Rate of the simulated sensor (default: that of the simulator, or else of the model).',
        above=0.0,
        optional=float,
    )
    range: tuple[float, float] = parameter(
        (),
        's',
        'Averaging times of the fit (default: from one sample, or from where a low pass no longer '
        'shows, to a tenth of the record, at most 1000); of a GPS the lags (default: to 100).',
    )

    def _check(self) -> None:
        if len(self.range) not in (0, 2):
            raise ParameterError('', 'range', 'must be FROM,TO, 2 numbers with a comma')


_EXPORT = OptionSet(ExportOptions, range='--range FROM,TO')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        'file', metavar='FILE', help='model of an IMU or a GPS: a YAML file or a preset'
    )
    parser.add_argument(
        '--to',
        required=True,
        metavar='SIMULATOR',
        help='sdf, kalibr, airsim, carla, px4, rotors, hector, pegasus, isaac, webots, mujoco, '
        'gnss_ins_sim or matlab',
    )
    _EXPORT.add(parser)
    parser.add_argument(
        '--record',
        metavar='CSV',
        help='allan.csv of `sim2real allan`, whose measured curve is followed (default: the one '
        'beside FILE if that is the imu.yaml of `sim2real allan`)',
    )
    add_out(
        parser,
        'folder for the file, imu.sdf or gps.sdf with the suffix of the simulator, and its plot '
        'imu.sdf.png (default: print the file)',
        'overwrite',
        'json',
    )


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.common.new_files import write_text
    from sim2real_eval.common.results import fresh_files
    from sim2real_eval.exporting.gps_export import GpsExport
    from sim2real_eval.report import export as report
    from sim2real_eval.report.style import save_png

    chosen = _EXPORT.make(options)
    export = _export(options, chosen)
    file: Path | None = None
    if options.out:
        sensor = 'gps' if isinstance(export, GpsExport) else 'imu'
        out, name = place_files('export', options.out, f'{sensor}{export.simulator.suffix}')
        file, names = out / name, (name, f'{name}.png')
        with fresh_files(out, names, overwrite=options.overwrite) as folder:
            write_text(folder / names[0], report.commented_text(export))
            # A file such as imu.yaml is known by its folder.
            figure = report.export_figure(export, '/'.join(Path(options.file).parts[-2:]))
            save_png(figure, folder / names[1])

    def print_result() -> None:
        print_table(report.export_table(export))
        print('\n'.join(report.export_lines(export)))
        print(f'\n{export.text}' if file is None else f'File: {file}\n', end='')

    return conclude(options, report.export_record(export), print_result)


def _export(options: argparse.Namespace, chosen: ExportOptions) -> Export:
    """Return the export of the IMU or the GPS in the file."""
    from sim2real_eval.exporting.gps_export import export_gps
    from sim2real_eval.exporting.imu_export import LONGEST_TIME, export_imu, find_simulator
    from sim2real_eval.report import export as report
    from sim_sensors.gps.gps import GpsModel, load_gps
    from sim_sensors.imu.chain import ImuChain
    from sim_sensors.imu.imu import load_imu

    source: Any
    try:
        source = load_imu(options.file)
    except ParameterError as error:
        try:
            source = load_gps(options.file)
        except ParameterError as gps_error:
            # A file of a receiver with another mistake is refused as an IMU by its kind.
            is_gps = error.key in ('base', 'model') and gps_error.key not in ('base', 'model')
            raise (gps_error if is_gps else error) from None
    simulator = find_simulator(options.to)
    span = chosen.range or None
    if isinstance(source, GpsModel):
        return export_gps(source, options.to, rate=chosen.rate, span=span)
    if not isinstance(source, ImuChain):
        raise ParameterError(
            options.file, 'model', f'{source.kind!r} is not exported; must be chain, as '
            '`sim2real allan` writes'
        )  # fmt: skip
    file = Path(options.file)
    record = Path(options.record) if options.record else file.with_name('allan.csv')
    curves = {}
    # The curve beside a preset's name or another model is not that of the model.
    if options.record or (file.name == 'imu.yaml' and record.exists()):
        curves = report.read_allan_curves(record)
    return export_imu(
        source,
        simulator,
        rate=chosen.rate,
        span=span,
        longest=report.longest_time(curves, LONGEST_TIME),
        measured=curves,
    )
