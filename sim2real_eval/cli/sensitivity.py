# SPDX-License-Identifier: Apache-2.0
"""`sim2real sensitivity`: the smallest errors of sensors that a judge can see."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real_eval.benches.sensitivity.options import SensitivityOptions
from sim2real_eval.study.options import PROFILE
from sim_sensors.core.errors import ParameterError
from .arguments import add_out, add_recordings, add_scenario, add_shared
from .judge_arguments import add_judge, add_judge_kind, judged_sources, judges
from .options import STUDY, OptionSet, add_metric, study_options
from .output import conclude, print_notes, print_table, progress_rounds

if TYPE_CHECKING:
    from sim2real_eval.simulation.twin import Twin
    from sim2real_eval.study.recordings import StudyRecording

HELP = 'smallest errors of sensors that each judge can see'
DESCRIPTION = (
    'Inject errors of known size into sensors and find, per judge, the smallest that a study of '
    'so many runs reveals at 80 % power, by the permutation test of VEPD. Without recordings, '
    'simulated drives are used. Recordings must be 9 or more, or 6 with simulated sensors '
    '(--gps, --imu).'
)
EPILOG = """\
examples:
  sim2real sensitivity --judge-config clean --judge-config paper_released --out seen
  sim2real sensitivity bags/* --gps stand_in --imu stand_in --errors gyro_bias,heading --out seen
  sim2real sensitivity bags/* --study result --out seen
"""

_OPTIONS = OptionSet(
    SensitivityOptions, errors='--errors LIST', gps='--gps NAME|FILE', imu='--imu NAME|FILE'
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_recordings(parser, 'bag or CSV folder with ground truth', nargs='*')
    add_shared(parser, 'topic')
    add_scenario(parser)
    _OPTIONS.add(parser.add_argument_group('what is injected, and into what'))
    judge = parser.add_argument_group('judges')
    add_judge(judge, '--judge-config', PROFILE, several=True)
    add_judge_kind(judge)
    runs = parser.add_argument_group('runs')
    STUDY.add(runs, 'seed', 'match_rates', 'start_heading', 'off_ticks', 'adapt')
    add_metric(parser)
    parser.add_argument(
        '--study',
        metavar='DIR',
        help='finished study whose report then shows the result beside its answer',
    )
    about = 'folder for table, plot and sensitivity.json'
    add_out(parser, about, 'overwrite', 'json', 'jobs', required=True)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.benches.sensitivity import sensitivity
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.report import sensitivity as report
    from sim2real_eval.report.answer import MARK, beside
    from sim2real_eval.report.study_report import PAGE, study_report, write_report
    from sim2real_eval.study.outcome import StudyOutcome

    check_result_folder(options.out, MARK, overwrite=options.overwrite)
    outcome = None if options.study is None else StudyOutcome.read(options.study)
    method, who = _OPTIONS.make(options), judges(options)
    if outcome is not None and not {one.label for one in who} & set(outcome.judges):
        problem = f'{options.study} has judges {", ".join(outcome.judges)}; must share one'
        raise ParameterError('--study', '', problem)
    twin = _twin(method, simulated=not options.recordings)
    study = study_options(options)
    recordings = _recordings(options, method, twin, study.seed)
    with progress_rounds('sensitivity, round {}') as begin:
        found = sensitivity(
            recordings, who, twin, method, study, jobs=options.jobs, progress=begin
        )
    record = report.sensitivity_record(found, who, twin, recordings)
    report.write_sensitivity(options.out, found, record, overwrite=options.overwrite)
    if outcome is not None:
        beside(options.study, record)
        write_report(study_report(outcome, options.study), Path(options.study, PAGE))

    def tell() -> None:
        print_table(report.sensitivity_table(found))
        print_notes(found.notes)

    return conclude(options, record, tell, 'table and plot')


def _twin(method: SensitivityOptions, *, simulated: bool) -> Twin | None:
    """Return the sensors that are simulated; None where recordings keep their own."""
    from sim2real_eval.simulation.twin import Twin
    from sim2real_eval.study.entry import Entry
    from sim2real_eval.study.variants import STAND_IN, read_model
    from sim_sensors.sensor.catalogue import KINDS

    if not simulated and method.gps is None and method.imu is None:
        return None
    here = Path()
    return Twin(
        'simulated',
        gps=read_model(KINDS.get('gps'), Entry('--gps', '', method.gps or STAND_IN), here),
        imu=read_model(KINDS.get('imu'), Entry('--imu', '', method.imu or STAND_IN), here),
    )


def _recordings(
    options: argparse.Namespace, method: SensitivityOptions, twin: Twin | None, seed: int
) -> tuple[StudyRecording, ...]:
    """Return the recordings that are given, or simulated drives."""
    from sim2real_eval.study.recordings import PathDrive, StandIn, StudyRecording, of_sources
    from sim_sensors.motion.path_following import DRIVES

    if options.recordings:
        return of_sources(judged_sources(options, options.recordings, 'recordings'))
    assert twin is not None
    return tuple(
        StudyRecording(f'{one}_{k}', '', StandIn(PathDrive(one, seed, f'{one}_{k}'), twin))
        for one in DRIVES
        for k in range(1, method.runs + 1)
    )
