# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real sensitivity`: the smallest errors of sensors that a judge can detect."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real_eval.benches.settings import SensitivityOptions
from sim2real_eval.study.options import PROFILE
from sim_sensors.core.errors import ParameterError
from .arguments import (
    add_judge,
    add_judge_kind,
    add_out,
    add_recordings,
    add_scenario,
    add_shared,
    judged_sources,
    judges,
)
from .options import STUDY, OptionSet, add_metric, study_options
from .output import conclude, print_notes, print_table, progress_rounds

if TYPE_CHECKING:
    from sim2real_eval.simulation.twin import Twin
    from sim2real_eval.study.recordings import StudyRecording

DESCRIPTION = (
    'Inject errors of known size into sensors. For each judge, find the smallest error that the '
    'permutation test of VEPD detects at 80 % power in a study of as many runs. Without '
    'recordings, simulated drives are used. At least 9 recordings are needed, or 6 with simulated '
    'sensors (--gps, --imu). Repeat the command to continue an interrupted search.'
)
EPILOG = """\
examples:
  sim2real sensitivity --judge-config clean --judge-config paper_released --out seen
  sim2real sensitivity bags/* --gps stand_in --imu stand_in --errors gyro_bias,heading --out seen
  sim2real sensitivity bags/* --study result --out seen
"""

_OPTIONS = OptionSet(
    SensitivityOptions, errors='--errors LIST', gps='--gps MODEL', imu='--imu MODEL'
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_recordings(parser, 'bag or CSV folder with ground truth', nargs='*')
    add_shared(parser, 'topic')
    add_scenario(parser)
    _OPTIONS.add(parser.add_argument_group('injected errors and sensors'))
    judge = parser.add_argument_group('judges')
    add_judge(judge, '--judge-config', PROFILE, several=True)
    add_judge_kind(judge)
    runs = parser.add_argument_group('runs')
    STUDY.add(runs, 'seed', 'match_rates', 'start_heading', 'off_ticks', 'adapt')
    add_metric(parser)
    parser.add_argument(
        '--study',
        metavar='DIR',
        help='finished study; the result is added to the answer in its report',
    )
    contents = 'folder for sensitivity.json, sensitivity.png and errors.csv'
    add_out(parser, contents, 'overwrite', 'json', 'jobs', required=True)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.benches.sensitivity import sensitivity
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.report import sensitivity as report
    from sim2real_eval.report.answer import MARK, write_sensitivity
    from sim2real_eval.report.search_layout import search_identity
    from sim2real_eval.report.study_report import PAGE, study_report, write_report
    from sim2real_eval.study.outcome import StudyOutcome
    from sim2real_eval.study.search.engine import EvaluationStore

    check_result_folder(options.out, MARK, overwrite=options.overwrite)
    outcome = None if options.study is None else StudyOutcome.read(options.study)
    method, study_judges = _OPTIONS.make(options), judges(options)
    if outcome is not None and not {judge.label for judge in study_judges} & set(outcome.judges):
        problem = f'{options.study} has judges {", ".join(outcome.judges)}; choose one of them'
        raise ParameterError('--study', '', problem)
    twin = _twin(method, simulated=not options.recordings)
    study = study_options(options)
    recordings = _recordings(options, method, twin, study.seed)
    inputs = [judge.to_mapping() for judge in study_judges]
    inputs += [recording.to_mapping() for recording in recordings]
    identity = search_identity(
        'sensitivity', study_judges[0].setup, *inputs, twin, method=method, study=study
    )
    with EvaluationStore.for_folder(options.out, identity) as store:
        with progress_rounds('sensitivity, round {}') as begin:
            result = sensitivity(
                recordings, study_judges, twin, method, study, jobs=options.jobs, progress=begin,
                store=store,
            )  # fmt: skip
        record = report.sensitivity_record(result, study_judges, twin, recordings)
        report.write_sensitivity(options.out, result, record, overwrite=options.overwrite)
    if outcome is not None:
        write_sensitivity(options.study, record)
        write_report(study_report(outcome, options.study), Path(options.study, PAGE))

    def print_result() -> None:
        print_table(report.sensitivity_table(result))
        print_notes(result.notes)

    return conclude(options, record, print_result, 'table and plot')


def _twin(method: SensitivityOptions, *, simulated: bool) -> Twin | None:
    """Return the simulated sensors, or None if recordings keep their own."""
    from sim2real_eval.simulation.twin import STAND_IN
    from .sensors import JUDGED, named_twin, sensor_names

    if not simulated and method.gps is None and method.imu is None:
        return None
    refused = {**JUDGED, **({'real': 'there are no recordings'} if simulated else {})}
    named = {'gps': method.gps or STAND_IN, 'imu': method.imu or STAND_IN}
    names = {kind: sensor_names(kind, text, refused)[0] for kind, text in named.items()}
    twin = named_twin('simulated', names)
    return twin if twin.models else None


def _recordings(
    options: argparse.Namespace, method: SensitivityOptions, twin: Twin | None, seed: int
) -> tuple[StudyRecording, ...]:
    """Return the given recordings, or simulated drives if there are none."""
    from sim2real_eval.study.recordings import (
        PathDrive,
        StandIn,
        StudyRecording,
        recordings_from_sources,
    )
    from sim_sensors.motion.paths import DRIVES

    if options.recordings:
        return recordings_from_sources(judged_sources(options, options.recordings, 'recordings'))
    assert twin is not None
    return tuple(
        StudyRecording(name, '', StandIn(PathDrive(drive, seed, name), twin))
        for drive in DRIVES
        for name in (f'{drive}_{k}' for k in range(1, method.runs + 1))
    )
