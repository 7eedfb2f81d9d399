# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real study` of a file with `signals`: sensors are compared by their signals."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sim_sensors.core.errors import ParameterError
from .options import METRIC, STUDY, UNCERTAINTY
from .output import conclude, print_signals, progress_bar, report_failures

if TYPE_CHECKING:
    from sim2real_eval.study.study_file import Overrides, StudyFile

_COMMON_OPTIONS = ('seed', 'repetitions', 'match_rates')
"""Options of a study that also apply to signals."""


def carry_out_signals(file: StudyFile, over: Overrides, options: argparse.Namespace) -> int:
    """Compare the signals of a study file into the folder --out; return the exit status."""
    from sim2real_eval.benches.signals import SignalStudy, study_record, study_signals
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.report import signals as report
    from sim_sensors.world.world import load_world

    assert file.signals is not None
    _refuse_options_of_judges(options, over)
    check_result_folder(options.out, report.MARK, overwrite=options.overwrite)
    study = SignalStudy(
        twins=file.twins,
        repetitions=file.options.repetitions,
        match_rates=file.options.match_rates,
        world=load_world(file.world) if file.world else None,
    )
    total = len(file.recordings)
    with progress_bar(total, 'recordings', quiet=options.quiet) as progress:
        comparison, failures = study_signals(
            file.recordings, study, file.signals, jobs=options.jobs, progress=progress
        )
    record = {
        'title': file.title,
        'command': list(file.command),
        **study_record(comparison, failures, file.recordings, study),
    }
    report.write_signals(options.out, comparison, record, overwrite=options.overwrite)
    report_failures([str(failure) for failure in failures], of=total)

    def tell() -> None:
        if not options.quiet:
            print(file.title)
            if any(recording.synthetic for recording in file.recordings):
                print('Recordings are SYNTHETIC stand-ins, which are no real sensors.')
            print()
        print_signals(comparison, options.out, quiet=options.quiet)

    where = None if options.quiet else 'Tables, series and plots'
    return conclude(options, record, tell, where, failures)


def _refuse_options_of_judges(options: argparse.Namespace, over: Overrides) -> None:
    problem = f'cannot be used with {options.study}, which compares signals and has no judge'
    if over.judges is not None:
        raise ParameterError('--judge, --judge-config', '', problem)
    if over.simulate_on is not None:
        raise ParameterError('--simulate-on', '', problem)
    for group in (STUDY, METRIC, UNCERTAINTY):
        for name in group.explicit_values(options):
            if name not in _COMMON_OPTIONS:
                raise ParameterError(group.flag(name), '', problem)
