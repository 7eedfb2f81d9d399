# SPDX-License-Identifier: Apache-2.0
"""`sim2real models`: the sensor models that can be named."""

from __future__ import annotations

import argparse
from typing import Any

from sim2real_eval.cli.arguments import add_json
from sim2real_eval.cli.output import print_json

__all__ = ['add_parser', 'run']


def add_parser(verbs: Any) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        'models',
        help='list the sensor models and judge profiles',
        description='List the presets of GPS and IMU models, the judge profiles and the settings '
        'of the inertial judges, and where their files are: '
        'copy one, change it, and give its path wherever a name is taken.',
        epilog='example:\n  sim2real models\n  sim2real models --json',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.judge_setup import profiles
    from sim_sensors.catalogue import load_gps, load_imu, names
    from sim_sensors.resources import config_names, config_path

    gps = {name: load_gps(name).to_mapping() for name in names('gps')}
    imu = {name: load_imu(name).to_mapping() for name in names('imu')}
    inertial = config_names('inertial')
    if options.json:
        print_json({'gps': gps, 'imu': imu, 'judge': profiles(), 'inertial': inertial})
        return 0
    for kind, found in (
        ('gps', list(gps)),
        ('imu', list(imu)),
        ('judge', profiles()),
        ('inertial', inertial),
    ):
        print(f'{kind}: {", ".join(found)}')
        print(f'    files in {config_path(kind)}')
    return 0
