# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real tune`: tune parameters of a judge to recordings."""

from __future__ import annotations

import argparse
import dataclasses

from sim2real_eval.study.options import PROFILE, TuneOptions
from sim_sensors.core.errors import ParameterError
from .arguments import (
    add_judge,
    add_judge_kind,
    add_out,
    add_patterns,
    add_recordings,
    add_shared,
    judge_setup,
    judged_sources,
    matched_paths,
)
from .options import OptionSet
from .output import conclude, print_notes, print_table, progress_rounds

DESCRIPTION = (
    'Tune parameters of robot_localization, or of a judge that declares its parameters, to '
    'recordings: by an error against truth or, without truth, by the likelihood of the '
    'innovations. A parameter changes only if its gain is significant on held-out blocks of '
    'recordings. If robot_localization is installed, its node is run once with the result. '
    'Repeat the command to continue an interrupted tuning.'
)
EPILOG = """\
examples:
  sim2real tune bags/* --judge-config ekf.yaml --out tuned
  sim2real tune bags/* --judge-config ekf.yaml --objective likelihood --out tuned
  sim2real tune bags/* --judge-config ekf.yaml --parameters gates --test 'others/*' --out tuned
  ros2 run robot_localization ekf_node --ros-args --params-file tuned/ekf.yaml
  sim2real tune bags/* --judge my_filter.py:MyFilter --out tuned
"""

_OPTIONS = OptionSet(TuneOptions, parameters='--parameters LIST')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_recordings(parser)
    add_patterns(parser, '--test', 'recording used only to test the result')
    add_judge(parser, '--judge-config', PROFILE)
    add_judge_kind(parser)
    add_shared(parser, 'topic')
    _OPTIONS.add(parser.add_argument_group('parameters and method'))
    contents = (
        'folder for the parameter files, tune.json, tuning.png, parameters.csv and measures.csv'
    )
    add_out(parser, contents, 'overwrite', 'json', 'jobs', required=True)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.benches.tuning.tuning import tune
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.report import tuning as report
    from sim2real_eval.report.search_layout import search_identity
    from sim2real_eval.study.search.engine import EvaluationStore

    check_result_folder(options.out, report.MARK, overwrite=options.overwrite)
    judge, tests = judge_setup(options), matched_paths(options.test, '--test')
    sources = [
        dataclasses.replace(source, transforms=judge.transforms)
        for source in judged_sources(options, [*options.recordings, *tests], 'recordings')
    ]
    names = [source.expected_name() for source in sources]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(
                'recordings', name, 'is the name of several recordings; rename one'
            )
    count = len(options.recordings)
    searched, tested = sources[:count], sources[count:]
    method = _OPTIONS.make(options)
    identity = search_identity('tune', judge, *searched, method=method)
    with EvaluationStore.for_folder(options.out, identity) as store:
        with progress_rounds('tuning') as begin:
            tuning = tune(
                searched, judge, method, tests=tested, jobs=options.jobs, progress=begin,
                store=store,
            )  # fmt: skip
        record = report.tuning_record(tuning, method, searched, tested)
        report.write_tuning(options.out, tuning, record, overwrite=options.overwrite)

    def print_result() -> None:
        print(tuning.notes[0].problem)
        print()
        print_table(report.parameter_table(tuning, method.level))
        for comparisons, title in (
            (tuning.comparisons, 'Recordings of the search'),
            (tuning.tests, 'Recordings of --test'),
        ):
            if comparisons:
                print()
                print_table(report.comparison_table(comparisons, title))
        print_notes(tuning.notes[1:])

    return conclude(options, record, print_result, 'parameter files, tables and plot')
