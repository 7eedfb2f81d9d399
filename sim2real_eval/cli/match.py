# SPDX-License-Identifier: Apache-2.0
"""`sim2real match`: a standstill recording becomes the file of a simulator, judged on drives."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from .allan import TABLE, add_table
from .arguments import add_out, add_shared

DESCRIPTION = (
    'Give a simulator the noise of a real IMU: fit a model to a recording at rest, write the file '
    'of the simulator, and, with drives, compare the simulator with that file and with its own '
    'default by VEPD. It runs allan, export, models and vepd, and prints each command.'
)
EPILOG = """\
examples:
  sim2real match standstill_bag --to sdf --out matched
  sim2real match standstill_bag --to airsim --drives bags/* --judge error_state --out matched
  sim2real match log.csv --sample-rate 100 --accel-unit g --to sdf --out matched
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument('recording', metavar='RECORDING', help='bag or table of the IMU at rest')
    parser.add_argument(
        '--to', required=True, metavar='SIMULATOR', help='simulator, as for `sim2real export`'
    )
    parser.add_argument(
        '--drives', nargs='+', default=[], metavar='PATH', help='recordings with ground truth'
    )
    parser.add_argument(
        '--judge',
        metavar='JUDGE',
        help='judge of the drives, as for `sim2real vepd`; error_state feels an IMU more '
        '(default: embedded)',
    )
    add_shared(parser, 'topic')
    add_table(parser.add_argument_group('table, as for `sim2real allan`'))
    add_out(parser, 'folder for all files', 'overwrite', 'seed', required=True)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the highest exit status of its commands."""
    from .parser import build_parser

    status = 0
    for words in commands(options):
        print('$ sim2real', shlex.join(words), flush=True)
        step = build_parser(words[0]).parse_args(words)
        status = max(status, int(step.run(step) or 0))
        print()
    return status


def commands(options: argparse.Namespace) -> list[list[str]]:
    """Return the commands of a match, in their order, as words."""
    from sim2real_eval.exporting.imu_export import find_simulator

    simulator = find_simulator(options.to)
    out = Path(options.out)
    sensors, file, matched = out / 'sensors', out / f'imu{simulator.suffix}', out / 'matched.yaml'
    topics = [word for topic in options.topic for word in ('--topic', topic)]
    seed = ['--seed', str(options.seed)]
    again = ['--overwrite'] if options.overwrite else []
    table = TABLE.words(TABLE.make(options))
    if options.columns:
        table.append(f'--columns={options.columns}')
    words = [
        ['allan', options.recording, '--out', str(sensors), *table, *topics, *seed, *again],
        ['export', str(sensors / 'imu.yaml'), '--to', simulator.name, '--out', str(file), *again],
        ['models', '--from', str(file), '--out', str(matched), *again],
    ]
    if options.drives:
        judge = ['--judge', options.judge] if options.judge else []
        pair = f'{simulator.default},{matched}'
        words.append([
            'vepd', '--real', *options.drives, '--models', 'real', '--imu', pair,
            '--out', str(out / 'vepd'), *judge, *topics, *seed, *again,
        ])  # fmt: skip
    return words
