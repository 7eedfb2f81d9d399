# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real report`: a study as one HTML page, tables for a paper, and bags of its runs."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from sim_sensors.core.registry import is_in_file
from .arguments import add_out, add_shared
from .deprecations import place_files
from .output import conclude, lines_text, progress_bar
from .parser import complain

if TYPE_CHECKING:
    from sim2real_eval.study.outcome import StudyOutcome

DESCRIPTION = (
    'Write the report of a study, or of `sim2real vepd`, as one HTML file that needs no '
    'network, and its tables as Markdown and LaTeX. See docs/howto/report.md.'
)
EPILOG = """\
examples:
  sim2real report study_b
  sim2real report study_b --out paper
  sim2real report study_b --mcap bags
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument(
        'folder', metavar='STUDY', help='folder written by `sim2real study`, `vepd` or `demo`'
    )
    meaning = (
        'folder for report.html, tables.md and tables.tex (default: the folder of the study, '
        'whose report is replaced)'
    )
    add_out(parser, meaning)
    parser.add_argument(
        '--mcap',
        metavar='BAGS',
        help='also write every run as a bag into this new folder, for Foxglove and PlotJuggler',
    )
    parser.add_argument(
        '--overwrite', action='store_true', help='replace existing files and older bags'
    )
    parser.add_argument(
        '--run-metrics',
        action='store_true',
        help='also compute metrics of the study that are defined in files; this runs their code',
    )
    add_shared(parser, 'json')


def _without_file_metrics(outcome: StudyOutcome, run_metrics: bool) -> StudyOutcome:
    """Omit metrics defined in files unless allowed: a result from others may name their code."""
    metrics = outcome.record.get('more_metrics', ())
    in_files = [name for name in metrics if is_in_file(name)]
    if run_metrics or not in_files:
        return outcome
    for name in in_files:
        complain(f'left out: metric {name} from a file; --run-metrics runs its code')
    trusted = [name for name in metrics if name not in in_files]
    return dataclasses.replace(outcome, record={**outcome.record, 'more_metrics': trusted})


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.common.results import check_result_files, fresh_files
    from sim2real_eval.report.answer import answer_lines
    from sim2real_eval.report.study_report import PAGE, TABLES, study_report, write_report
    from sim2real_eval.study.bags import check_bags, write_bags
    from sim2real_eval.study.outcome import StudyOutcome
    from sim2real_eval.study.secondary_results import SIDE_FILES, has_many_runs, side_results

    page = Path(options.folder, PAGE)
    if options.out is not None:
        page = Path(*place_files('report', options.out, PAGE))
    outcome = _without_file_metrics(StudyOutcome.read(options.folder), options.run_metrics)
    # `sim2real study` does not write all of these files if the study has many runs.
    side_files = SIDE_FILES if has_many_runs(outcome) else ()
    names = (page.name, *TABLES, *side_files)
    if options.out is not None:
        check_result_files(page.parent, names, overwrite=options.overwrite)
    if options.mcap is not None:
        check_bags(options.mcap, overwrite=options.overwrite)
    outcome = dataclasses.replace(outcome, complete=True)
    report = study_report(outcome, options.folder)
    overwrite = options.overwrite or options.out is None
    with fresh_files(page.parent, names, overwrite=overwrite) as folder:
        files = [page.with_name(file.name) for file in write_report(report, folder / page.name)]
        if side_files:
            side_results(outcome).write(folder)
        if options.mcap is not None:
            with progress_bar(len(outcome.runs), 'bags') as advance:
                write_bags(outcome, options.mcap, overwrite=options.overwrite, progress=advance)
    record = {
        'page': str(files[0]),
        'tables': [str(path) for path in files[1:]],
        'mcap': options.mcap,
        'answer': report.answer.to_mapping(),
        'sensitivity': report.sensitivity,
    }

    def print_result() -> None:
        if outcome.record.get('synthetic'):
            print('SYNTHETIC stand-in: the results do not describe a real sensor.')
        print(lines_text(answer_lines(report.answer)))
        print(f'Page: {files[0]}; tables: {files[1]}, {files[2]}')
        if options.mcap is not None:
            print(f'Bags: {options.mcap}')

    return conclude(options, record, print_result)
