# SPDX-License-Identifier: Apache-2.0
"""`sim2real tune`: parameters of a filter from recordings."""

from __future__ import annotations

import argparse
import dataclasses

from sim2real_eval.benches.tuning.options import TuneOptions
from sim2real_eval.study.options import PROFILE
from sim_sensors.core.errors import ParameterError
from .arguments import add_out, add_recordings, add_shared
from .judge_arguments import add_judge, add_judge_kind, judge_setup, judged_sources
from .options import OptionSet
from .output import conclude, print_notes, print_table, progress_rounds

HELP = 'recordings -> tuned parameter file of ekf_node, ukf_node or another judge'
DESCRIPTION = (
    'Tune parameters of robot_localization, or of a judge that declares its parameters, to '
    'recordings: by an error against truth or, without truth, by the likelihood of the '
    'innovations. Each parameter has to prove its gain on blocks of recordings that its value was '
    'not found on; the others are left as they are. Where robot_localization is installed, its '
    'node judges once with the result.'
)
EPILOG = """\
examples:
  sim2real tune bags/* --judge-config ekf.yaml --out tuned
  sim2real tune bags/* --judge-config ekf.yaml --objective likelihood --out tuned
  sim2real tune bags/* --judge-config ekf.yaml --parameters noise,gates --test others/* --out tuned
  ros2 run robot_localization ekf_node --ros-args --params-file tuned/ekf.yaml
  sim2real tune bags/* --judge my_filter.py:MyFilter --out tuned
"""

_OPTIONS = OptionSet(TuneOptions, parameters='--parameters LIST')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_recordings(parser)
    about = 'recordings to try the result on, which are not looked at before'
    parser.add_argument('--test', nargs='+', default=[], metavar='RECORDING', help=about)
    add_judge(parser, '--judge-config', PROFILE)
    add_judge_kind(parser)
    add_shared(parser, 'topic')
    _OPTIONS.add(parser.add_argument_group('what is tuned, and how'))
    about = 'folder for parameter files, tables and plot'
    add_out(parser, about, 'overwrite', 'json', 'jobs', required=True)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.benches.tuning.tuning import tune
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.report import tuning as report

    check_result_folder(options.out, report.MARK, overwrite=options.overwrite)
    judge = judge_setup(options)
    both = [
        dataclasses.replace(source, transforms=judge.transforms)
        for source in judged_sources(options, [*options.recordings, *options.test], 'recordings')
    ]
    searched, tested = both[: len(options.recordings)], both[len(options.recordings) :]
    labels = [source.own_name() for source in both]
    for label in labels:
        if labels.count(label) > 1:
            raise ParameterError('recordings', label, 'is the name of several; must be of one')
    method = _OPTIONS.make(options)
    with progress_rounds('tuning') as begin:
        found = tune(searched, judge, method, tests=tested, jobs=options.jobs, progress=begin)
    record = report.tuning_record(found, method, searched, tested)
    report.write_tuning(options.out, found, record, overwrite=options.overwrite)

    def tell() -> None:
        print(found.notes[0].problem)
        print()
        print_table(report.parameter_table(found, method.level))
        for measures, title in (
            (found.measures, 'Recordings of the search'),
            (found.tests, 'Recordings of --test'),
        ):
            if measures:
                print()
                print_table(report.measure_table(measures, title))
        print_notes(found.notes[1:])

    return conclude(options, record, tell, 'parameter files, tables and plot')
