# SPDX-License-Identifier: Apache-2.0
"""`sim2real study`: a whole experiment from a file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sim2real_eval.cli.arguments import (
    add_jobs,
    add_json,
    add_overwrite,
    add_topics,
    at_least,
    scenario_label,
    sources,
)
from sim2real_eval.cli.declared import add_study_options, command_words, study_options
from sim2real_eval.cli.judge_arguments import add_judge, add_judge_kind, named_judges
from sim_sensors.core.errors import ParameterError

if TYPE_CHECKING:
    from sim2real_eval.study.study_file import Overrides


HELP = 'a whole experiment from a file: recordings, models, judges, conditions'
DESCRIPTION = (
    'Carry out a study file: judge every real recording and its simulated '
    'counterparts under every judge and condition, and compare them. Given again, the same '
    'command continues where it was interrupted. See docs/study.md.'
)
EPILOG = """\
examples:
  sim2real study b_gps_models --out study_b
  sim2real study b_gps_models --real bags/* --out study_b_mine
  sim2real study judge_sensitivity --runs 2 --out quick
  sim2real study b_gps_models --judge-config clean --warmup 5 --out study_b_clean
  sim2real study my_study.yaml --jobs 8 --out result
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        'study', metavar='NAME|FILE', help='name of a shipped study, or a YAML file'
    )
    parser.add_argument(
        '--real',
        nargs='+',
        metavar='PATH',
        help='real recordings with ground truth, in place of those of the study file',
    )
    add_topics(parser)
    parser.add_argument(
        '--scenario',
        type=scenario_label,
        metavar='LABEL',
        help='with --real: scenario label of all recordings',
    )
    parser.add_argument(
        '--runs',
        type=at_least(1, int),
        metavar='N',
        help='stand-in recordings per scenario, in place of those of the study file',
    )
    parser.add_argument(
        '--simulate-on',
        choices=('truth', 'drive'),
        help='true motion of the recordings, or independent drives, in place of what the study '
        'file says',
    )
    judge = parser.add_argument_group('judges, in place of those of the study file')
    add_judge(judge, '--judge-config', None, several=True)
    add_judge_kind(judge)
    add_study_options(parser, of='that of the study file, else ')
    parser.add_argument('--out', required=True, metavar='DIR', help='folder of the study')
    add_overwrite(parser)
    add_json(parser)
    add_jobs(parser)
    parser.add_argument(
        '--cluster',
        metavar='ADDRESS',
        help='scheduler of dask.distributed, such as tcp://host:8786, whose workers judge in '
        'place of processes of this machine; same bytes',
    )
    parser.set_defaults(parser=parser)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.cli.study_run import carry_out
    from sim2real_eval.study.plan import StudyPlan

    return carry_out(StudyPlan.load(options.study, overrides(options)), options)


def overrides(options: argparse.Namespace) -> Overrides:
    """Return what the options say in place of the study file."""
    from sim2real_eval.judge.protocol import takes_inputs
    from sim2real_eval.study.study_file import Overrides

    real, chosen = None, named_judges(options)
    if options.real is None:
        for option, value in (('--topic', options.topic), ('--scenario', options.scenario)):
            if value:
                raise ParameterError(option, '', 'goes with --real only')
    else:
        if options.runs is not None:
            raise ParameterError('--runs', '', 'goes with stand-ins only, not with --real')
        inputs = chosen is not None and takes_inputs(options.judge_kind)
        real = sources(
            options.real, options.topic, options.scenario, inputs=inputs, option='--real'
        )
    return Overrides(
        real,
        options.runs,
        options.simulate_on,
        chosen,
        lambda given: study_options(options, given),
        tuple(command_words(options.parser, options)),
    )
