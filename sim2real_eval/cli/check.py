# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real check`: check that recordings can be judged and compared."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim_sensors.core.errors import ParameterError
from .arguments import add_recordings, add_shared, sources
from .output import attempt_each, print_json, print_table, wrap_text

if TYPE_CHECKING:
    from sim2real_eval.preflight.outcome import Preflight
    from sim2real_eval.preflight.truth_speed import TruthSpeed
    from sim2real_eval.preflight.vehicle import Pooled
    from sim2real_eval.recording.reading import RecordingSource

_MIN_DIFFERENT_VALUES = 10

DESCRIPTION = (
    'Check recordings before they are used: topics, stamps, rates and gaps; units, signs, '
    'mounting, bias and delay of the IMU against gravity and the truth; axes, units and heading '
    'of the truth; delay, jumps and covariances of the fixes. A line per recording names the '
    'checks that warn or fail. Below is the option or the entry of recording.yaml that corrects '
    'each problem. The file is in the folder of the recording; for a single file it is '
    'NAME.recording.yaml beside it. '
    'Without truth, fewer checks are possible. Several recordings are taken for those of one '
    'vehicle: scales, mountings, delays and deviations get one value for all of them, if it works '
    'in each. A correction is proposed only if the corrected recording passes.'
)
EPILOG = """\
exit status: 0 no check fails; 1 a check fails, or a recording cannot be read; 2 bad input, or no
recording can be read

examples:
  sim2real check my_bag
  sim2real check bags/* --topic truth=/ins/odometry
  sim2real check bags/* -v --plot check.png
  sim2real check my_bag --json
  sim2real check bags/* --write
  sim2real check straight_line/* --straight 30
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_recordings(parser)
    add_shared(parser, 'topic', 'base_frame', 'straight')
    parser.add_argument(
        '--write',
        action='store_true',
        help='write the corrections into the recording.yaml of each recording, and check again',
    )
    parser.add_argument('--plot', metavar='FILE.png', help='picture to write')
    add_shared(parser, 'overwrite', 'json', 'verbose')


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.common.findings import Severity, by_severity, to_records
    from sim2real_eval.common.results import check_result_files
    from sim2real_eval.preflight.checks import check_run_count
    from sim2real_eval.preflight.entries import write_entries
    from sim2real_eval.preflight.outcome import FAIL, PASS, WARN, lines, merge_runs
    from sim2real_eval.preflight.truth_speed import TruthSpeed
    from sim2real_eval.study.outcome import find_copies

    if options.plot:
        if Path(options.plot).suffix.lower() != '.png':
            raise ParameterError(
                '--plot', '', f'{options.plot!r} is not allowed; must end in .png'
            )
        plot = Path(options.plot)
        check_result_files(plot.parent, (plot.name,), overwrite=options.overwrite)
    speed = None if options.straight is None else TruthSpeed(options.straight)

    all_sources = sources(options.recordings, options.topic)
    readable, runs, constants, failures = _check(all_sources, options, speed)
    written = write_entries(runs) if options.write else None
    if written:
        speed = None if options.straight is None else TruthSpeed(options.straight)
        _, runs, constants, new_failures = _check(readable, options, speed)
        failures += new_failures
    speed_findings = [] if speed is None else speed.findings
    values = {run.path: tuple(outcome.measure.value for outcome in run.outcomes) for run in runs}
    # Runs with few different values agree by chance.
    values = {path: row for path, row in values.items() if len({*row}) >= _MIN_DIFFERENT_VALUES}
    count_findings = check_run_count(len(runs)) if len(runs) > 1 else []
    joint_findings = [*speed_findings, *find_copies(values), *count_findings]
    findings = by_severity([*merge_runs(runs), *joint_findings])
    failed = sum(finding.severity is Severity.DECISIVE for finding in joint_findings)
    fails = failed > 0 or any(run.status == FAIL for run in runs)
    if options.plot:
        from sim2real_eval.report.preflight import preflight_figure
        from sim2real_eval.report.style import save_picture

        save_picture(
            preflight_figure(runs, title=_title(runs)), options.plot, overwrite=options.overwrite
        )
    if options.json:
        record: dict[str, Any] = {
            'status': FAIL if fails or failures else PASS,
            'recordings': [run.to_record() for run in runs],
            'vehicle': [constant.to_record() for constant in constants],
            'findings': to_records(findings),
            'failures': failures,
        }
        if written is not None:
            record['written'] = [str(path) for path in written]
        if speed is not None:
            record['truth_speed'] = speed.to_record()
        print_json(record)
        return 1 if fails or failures else 0
    from sim2real_eval.report.preflight import (
        correction_hint,
        preflight_lines,
        preflight_table,
        recording_lines,
    )

    if options.verbose:
        print_table(preflight_table(runs, title=_title(runs)))
        print()
        for run in runs:
            print_table(preflight_table([run], title=run.recording, by_subject=True))
            print()
    print(*recording_lines(runs), '', sep='\n')
    if speed is not None and len(speed.runs) > 1:
        print(f'{speed}\n')
    has_entries = options.verbose and not options.write
    remedies = preflight_lines(findings, runs, constants, entries=has_entries)
    for line in remedies:
        text = line.lstrip()
        indent = line[: len(line) - len(text)]
        # Entries of files are to be copied.
        print(line if len(indent) == 4 else wrap_text(text, indent, '  '))
    if not (options.verbose or options.write):
        for line in correction_hint(runs):
            print(wrap_text(line))
    if written is not None:
        _print_written(written, runs)
    counts = [line.status for line in lines(runs)]
    warned = len(joint_findings) - failed + counts.count(WARN)
    failed += counts.count(FAIL)
    print(f'{counts.count(PASS)} checks pass, {warned} warn, {failed} fail')
    if options.plot:
        print(f'Picture: {options.plot}')
    return 1 if fails or failures else 0


def _check(
    all_sources: Sequence[RecordingSource], options: argparse.Namespace, speed: TruthSpeed | None
) -> tuple[list[RecordingSource], list[Preflight], list[Pooled], list[str]]:
    """Return readable recordings, their results and common corrections, and the failures."""
    from sim2real_eval.preflight.checks import check, check_vehicle
    from sim2real_eval.preflight.consequence import add_speed_errors

    def attempt(source: RecordingSource) -> tuple[Preflight, RecordingSource]:
        recording = source.read()
        if speed is not None:
            speed.add(recording, base_frame=options.base_frame)
        return check(recording, base_frame=options.base_frame), source

    pairs, failures = attempt_each(all_sources, attempt, 'checks')
    runs, constants = check_vehicle(
        [run for run, _ in pairs],
        lambda position: pairs[position][1].read(),
        base_frame=options.base_frame,
    )
    runs = [
        add_speed_errors(source.read(), run, options.base_frame)
        if run.changes or run.lever_arms
        else run
        for run, (_, source) in zip(runs, pairs, strict=True)
    ]
    return [source for _, source in pairs], runs, constants, failures


def _print_written(written: Mapping[Path, tuple[str, ...]], runs: Sequence[Preflight]) -> None:
    """Print the written files with their entries, and how many recordings still fail."""
    from sim2real_eval.preflight.outcome import FAIL
    from sim2real_eval.report.preflight import file_lines

    print('Written:' if written else 'Nothing to write: no recording.yaml needs a change.')
    for line in file_lines({str(path): entries for path, entries in written.items()}):
        print(line)
    if failing := sum(run.status == FAIL for run in runs):
        print(f'Not corrected: {failing} of {len(runs)} recordings fail, for the reasons above.')


def _title(runs: list[Preflight]) -> str:
    return runs[0].recording if len(runs) == 1 else f'{len(runs)} recordings'
