# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real match`: a standstill recording becomes the file of a simulator, judged on drives."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from sim_sensors.core.errors import ParameterError
from sim_sensors.core.input_files import read_json
from .allan import TABLE, add_table
from .arguments import add_out, add_recordings, add_shared, topic_roles

DESCRIPTION = (
    'Give a simulator the noise of a real IMU: fit a model to a recording at rest, write the file '
    'of the simulator, and, with drives, compare the simulator with that file and with its own '
    'default by VEPD. It runs allan, export, models and vepd, and prints each command.'
)
EPILOG = """\
examples:
  sim2real match standstill_bag --to sdf --out matched
  sim2real match standstill_bag bags/* --to airsim --judge error_state --out matched
  sim2real match log.csv --sample-rate 100 --accel-unit g --to sdf --out matched
"""

_IN_DOUBT = ('signals.unit_is_g', 'signals.unit_is_degrees', 'signals.not_gravity')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument('standstill', metavar='STANDSTILL', help='bag or table of the IMU at rest')
    add_recordings(parser, 'drive with ground truth, to judge the simulator', nargs='*')
    parser.add_argument(
        '--to', required=True, metavar='SIMULATOR', help='simulator, as for `sim2real export`'
    )
    parser.add_argument(
        '--judge',
        metavar='JUDGE',
        help='judge of the drives, as for `sim2real vepd`; error_state feels an IMU more '
        '(default: embedded)',
    )
    add_shared(parser, 'topic')
    add_table(parser.add_argument_group('table, as for `sim2real allan`'))
    meaning = (
        'folder for sensors/, the file of the simulator, matched/imu.yaml and vepd/report.html'
    )
    add_out(parser, meaning, 'overwrite', 'seed', required=True)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the highest exit status of its commands."""
    from .parser import build_parser

    steps = commands(options)
    _check_folder(options)
    _check_drives(options)
    status = 0
    for words in steps:
        print('$ sim2real', shlex.join(words), flush=True)
        step = build_parser(words[0]).parse_args(words)
        status = max(status, int(step.run(step) or 0))
        print()
        if words[0] == 'allan':
            _check_units(Path(options.out) / 'sensors' / 'allan.json')
    if not options.recordings:
        options.recordings = ['BAGS']
        print('Next, to judge the file on drives with ground truth:')
        print('  sim2real', shlex.join(commands(options)[-1]))
    return status


def _check_folder(options: argparse.Namespace) -> None:
    """Refuse a folder that has a fitted model already, and name what goes on from it."""
    fitted = Path(options.out) / 'sensors' / 'imu.yaml'
    if fitted.exists() and not options.overwrite:
        export = shlex.join(['sim2real', 'export', str(fitted), '--to', options.to])
        problem = f'has a fitted model; export it with `{export} --out DIR`, or give --overwrite'
        raise ParameterError('--out', options.out, problem)


def _check_drives(options: argparse.Namespace) -> None:
    """Refuse, before anything is written, a judge or drives that cannot be judged."""
    from sim2real_eval.judge.protocol import takes_inputs
    from sim2real_eval.recording.reading import read_recording

    if options.judge:
        takes_inputs(options.judge)
    for path in options.recordings:
        if read_recording(path, topics=dict(topic_roles(options.topic))).truth is None:
            problem = 'has no ground truth; name its topic, --topic truth='
            raise ParameterError('recordings', path, problem)


def _check_units(record: Path) -> None:
    """Refuse to go on with a sensor whose units are in doubt."""
    result = read_json(record)
    for recording in result['recordings']:
        for note in recording['notes']:
            if note['code'] in _IN_DOUBT:
                raise ParameterError(
                    'match', '', f'{note["text"]}, and --overwrite; nothing is exported'
                )


def commands(options: argparse.Namespace) -> list[list[str]]:
    """Return the commands of a match, in their order, as words."""
    from sim2real_eval.exporting.imu_export import find_simulator

    simulator = find_simulator(options.to)
    out = Path(options.out)
    sensors, file, matched = out / 'sensors', out / f'imu{simulator.suffix}', out / 'matched'
    topics = [word for topic in options.topic for word in ('--topic', topic)]
    seed = ['--seed', str(options.seed)]
    again = ['--overwrite'] if options.overwrite else []
    table = TABLE.words(TABLE.make(options))
    if options.columns:
        table.append(f'--columns={options.columns}')
    words = [
        ['allan', options.standstill, '--out', str(sensors), *table, *topics, *seed, *again],
        ['export', str(sensors / 'imu.yaml'), '--to', simulator.name, '--out', str(out), *again],
        ['models', '--from', str(file), '--out', str(matched), *again],
    ]
    if options.recordings:
        judge = ['--judge', options.judge] if options.judge else []
        pair = f'{simulator.default},{matched / "imu.yaml"}'
        words.append([
            'vepd', *options.recordings, '--models', 'real', '--imu', pair,
            '--out', str(out / 'vepd'), *judge, *topics, *seed, *again,
        ])  # fmt: skip
    return words
