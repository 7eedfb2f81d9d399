# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real transfer`: what it costs on the robot to tune a filter in simulation."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sim2real_eval.common.findings import Finding, by_severity, to_records
from sim2real_eval.metrics.options import REAL
from sim2real_eval.study.options import PROFILE, ComparedSensors, TransferOptions
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.input_files import match_paths
from .arguments import (
    add_judge,
    add_judge_kind,
    add_out,
    add_recordings,
    add_scenario,
    add_shared,
    judge_setup,
    judged_sources,
)
from .options import STUDY, OptionSet, study_options
from .output import conclude, lines_text, print_notes, print_table, report_failures
from .sensors import add_sensor_set, sensor_settings, set_parameters
from .transfer_request import TransferRequest, add_to_report
from .vepd import comparison_title

if TYPE_CHECKING:
    from sim2real_eval.benches.tuning.evaluations import TuningSource
    from sim2real_eval.judge.protocol import Judge
    from sim2real_eval.recording.reading import RecordingSource
    from sim2real_eval.study.options import StudyOptions
    from sim2real_eval.study.plan import StudyPlan

DESCRIPTION = (
    'Tune the judge on the simulated recordings of each model and run it on the real recordings. '
    'The transfer loss is its error there over that of the judge tuned on the real recordings, '
    'which are held out block by block: the cost of developing on this simulation. Repeat the '
    'command to continue an interrupted transfer.'
)
EPILOG = """\
examples:
  sim2real transfer bags/* --models ch_rw,airsim --imu chrono --out cost
  sim2real transfer bags/* --models real --imu chrono,bno055 --judge error_state --out cost
  sim2real transfer bags/* --simulated 'gazebo=sim_bags/*' --judge-config my.yaml --out cost
  sim2real transfer bags/* --models ch_rw --objective position --out cost
"""

_SENSORS = OptionSet(ComparedSensors, models='--models --gps LIST', imu='--imu LIST')
_METHOD = OptionSet(TransferOptions, parameters='--parameters LIST')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    inputs = parser.add_argument_group('recordings')
    add_recordings(inputs, 'recording of the robot')
    inputs.add_argument(
        '--simulated',
        action='append',
        default=[],
        metavar='NAME=PATTERN',
        help="recordings of your own simulator, such as 'gazebo=sim_bags/*'; may be given "
        'several times, instead of --models and --imu or beside them',
    )
    add_shared(inputs, 'topic')
    add_scenario(inputs)
    sensors = parser.add_argument_group('sensors, simulated on the true motion of the recordings')
    _SENSORS.add(sensors)
    add_sensor_set(sensors)
    judge = parser.add_argument_group('judge')
    add_judge(judge, '--judge-config', PROFILE)
    add_judge_kind(judge)
    _METHOD.add(parser.add_argument_group('parameters and method'))
    runs = parser.add_argument_group('runs')
    STUDY.add(runs, 'seed', 'repetitions', 'match_rates', 'adapt', 'block')
    parser.add_argument(
        '--study', metavar='DIR', help='finished study; its report then shows the transfer loss'
    )
    contents = 'folder for transfer.json, transfer.csv, transfer.png and tunings.csv'
    add_out(parser, contents, 'overwrite', 'json', 'verbose', 'jobs', required=True)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.benches.transfer.sources import study_sources
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.recording.drives import recording_blocks
    from sim2real_eval.report import transfer as report
    from sim2real_eval.report.search_layout import recording_record
    from sim2real_eval.study.outcome import StudyOutcome
    from sim2real_eval.study.transfer_record import TRANSFER_FILE

    check_result_folder(options.out, TRANSFER_FILE, overwrite=options.overwrite)
    outcome = None if options.study is None else StudyOutcome.read(options.study)
    judge, study = judge_setup(options), study_options(options)
    sources = judged_sources(options, options.recordings, 'recordings')
    recordings = _own_recordings(options, judge)
    simulated: dict[str, Sequence[TuningSource]] = dict(recordings)
    if simulated and not (_SENSORS.explicit_values(options) or options.set):
        real: Sequence[TuningSource] = _with_mountings(sources, judge)
        blocks = recording_blocks(sources, study.block)
    else:
        plan = _plan(options, judge, sources, study)
        real, twins = study_sources(plan, judge)
        if common := simulated.keys() & twins.keys():
            raise ParameterError('--simulated', min(common), 'is the name of a model; rename it')
        simulated |= twins
        study = plan.file.options
        blocks = [recording.block for recording in plan.recordings if recording.has_real_run]
    request = TransferRequest(judge, _METHOD.make(options), real, simulated, blocks, study)
    transfer, record = request.measure(request.store(options.out), options.jobs)
    checked = _recording_findings({REAL: sources, **recordings}, judge)
    notes = by_severity([*checked, *transfer.notes])
    record['notes'] = to_records(notes)
    record['recordings'] = [recording_record(source, source.expected_name()) for source in sources]
    report.write_transfer(options.out, transfer, record, overwrite=options.overwrite)
    if outcome is not None:
        add_to_report(outcome, options.study, record)
    failures = [f'{model}: {problem}' for model, problem in transfer.failures.items()]
    report_failures(failures, of=len(failures) + len(transfer.models))

    def print_result() -> None:
        print_transfer(record)
        if options.verbose:
            print()
            print_notes(notes)

    return conclude(options, record, print_result, 'table, plot and tunings', failures=failures)


def _recording_findings(
    recordings: Mapping[str, Sequence[RecordingSource]], judge: Judge
) -> list[Finding]:
    """Return what `sim2real check` finds in the recordings of each name, as for `vepd`."""
    from sim2real_eval.common.findings import merge_findings
    from sim2real_eval.preflight.checks import remarks

    base, runs = judge.base_link_frame, []
    for name, sources in recordings.items():
        for source in sources:
            recording = source.read()
            runs.append((name, remarks(recording, recording.notes, base_frame=base)))
    return merge_findings(runs)


def print_transfer(record: Mapping[str, Any]) -> None:
    """Print the table and the answer."""
    from sim2real_eval.report.console import console_table
    from sim2real_eval.report.transfer import transfer_answer, transfer_table

    print_table(console_table(transfer_table(record)))
    print()
    print(lines_text(transfer_answer(record)))


def _own_recordings(options: argparse.Namespace, judge: Judge) -> dict[str, list[RecordingSource]]:
    """Return the recordings of --simulated by name."""
    simulated: dict[str, list[RecordingSource]] = {}
    for text in options.simulated:
        name, equals, pattern = text.partition('=')
        if not (name and equals and pattern):
            problem = "must be NAME=PATTERN, such as 'gazebo=bags/*'"
            raise ParameterError('--simulated', text, problem)
        paths = match_paths(pattern)
        if not paths:
            raise ParameterError('--simulated', text, f'no recording matches {pattern}')
        sources = judged_sources(options, paths, '--simulated')
        simulated.setdefault(name, []).extend(_with_mountings(sources, judge))
    return simulated


def _with_mountings(sources: Sequence[RecordingSource], judge: Judge) -> list[RecordingSource]:
    """Return recordings with the mountings of the judge."""
    return [dataclasses.replace(source, transforms=judge.transforms) for source in sources]


def _plan(
    options: argparse.Namespace,
    judge: Judge,
    sources: Sequence[RecordingSource],
    study: StudyOptions,
) -> StudyPlan:
    """Return the study whose twins are simulated."""
    from sim2real_eval.judge.protocol import judge_label
    from sim2real_eval.study.plan import StudyPlan
    from sim2real_eval.study.recordings import recordings_from_sources
    from sim2real_eval.study.study_file import StudyFile
    from sim2real_eval.study.variants import StudyJudge
    from .sensors import twins

    sensors = _SENSORS.make(options)
    models = set_parameters(twins(sensors.models, sensors.imu), options.set)
    label = judge_label(options.judge_kind, options.config)
    plan = StudyPlan.from_file(
        StudyFile(
            title=comparison_title(sources, models),
            options=study,
            recordings=recordings_from_sources(sources),
            twins=models,
            judges=(StudyJudge(label, options.judge_kind, judge),),
            settings=sensor_settings(options.set),
        )
    )
    # The plan has read the recordings, unless they are large.
    for source, recording in zip(sources, plan.recordings, strict=True):
        if recording.read().truth is None:
            raise ParameterError(
                'recordings', source.path, 'has no ground truth, on whose motion --models are '
                "simulated; give recordings of your simulator, --simulated 'NAME=PATTERN'",
            )  # fmt: skip
    return plan
