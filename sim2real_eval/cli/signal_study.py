# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real study` of a file with `signals`: sensors are compared by their signals."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sim_sensors.core.errors import ParameterError
from .compare import compare_and_write
from .options import METRIC, STUDY, UNCERTAINTY

if TYPE_CHECKING:
    from sim2real_eval.study.study_file import Overrides, StudyFile

_COMMON_OPTIONS = ('seed', 'repetitions', 'match_rates')
"""Options of a study that also apply to signals."""


def carry_out_signals(file: StudyFile, over: Overrides, options: argparse.Namespace) -> int:
    """Compare the signals of a study file into the folder --out; return the exit status."""
    from sim2real_eval.benches.signals import SignalStudy
    from sim2real_eval.common.results import check_result_folder
    from sim2real_eval.report.signals import MARK
    from sim_sensors.world.world import load_world

    assert file.signals is not None
    _refuse_options_of_judges(options, over)
    check_result_folder(options.out, MARK, overwrite=options.overwrite)
    study = SignalStudy(
        twins=file.twins,
        repetitions=file.options.repetitions,
        match_rates=file.options.match_rates,
        world=load_world(file.world) if file.world else None,
    )
    heading = file.title
    if any(recording.synthetic for recording in file.recordings):
        heading += '\nRecordings are SYNTHETIC stand-ins, which are no real sensors.'
    more = {'title': file.title, 'command': list(file.command)}
    return compare_and_write(options, file.recordings, study, file.signals, more, heading=heading)


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
