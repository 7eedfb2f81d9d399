# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real judge`: velocity estimates from recordings."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim2real_eval.common.findings import Finding, by_severity, merge_findings, to_records
from sim2real_eval.study.options import PROFILE, START_HEADING
from sim_sensors.core.errors import ParameterError, Sim2RealError
from .arguments import (
    add_judge,
    add_judge_kind,
    add_out,
    add_recordings,
    add_shared,
    judge_setup,
    judged_sources,
)
from .deprecations import place_files
from .options import STUDY
from .output import attempt_each, print_json, print_notes, print_table, wrap_text
from .parser import complain

if TYPE_CHECKING:
    from sim2real_eval.judge.estimate import JudgedRun
    from sim2real_eval.judge.protocol import Judge
    from sim2real_eval.metrics.consistency import ConsistencyCheck, Squares
    from sim2real_eval.metrics.judged_world import WorldFrameTruth
    from sim2real_eval.metrics.trajectory_errors import TrajectoryError
    from sim2real_eval.recording.reading import RecordingSource
    from sim2real_eval.recording.recording import Recording


DESCRIPTION = (
    'Run ekf_node (and navsat_transform_node), or another estimator, on recordings, offline. '
    'The embedded judge is repeatable bit for bit. Writes a CSV row per published estimate: '
    'stamp_ns, recv_ns, position, quaternion x y z w, body twist, and the covariances of pose and '
    'twist.'
)
EPILOG = """\
examples:
  sim2real judge my_bag --config ekf.yaml --navsat-config navsat.yaml --out estimates
  sim2real judge my_bag --out estimates
  sim2real judge bags/* --config paper_released --out estimates
  sim2real judge my_bag --config clean --latency /gps/fix=0.2 --correct gravity --out late
  sim2real judge my_bag --config clean --judge robot_localization --out estimates
  sim2real judge my_bag --judge error_state --out estimates
  sim2real judge my_bag --config clean --consistency --out estimates
  sim2real judge my_bag --config clean --tum --out estimates
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    add_recordings(parser)
    add_judge(parser, '--config', PROFILE)
    add_judge_kind(parser)
    STUDY.add(parser, 'start_heading')
    add_shared(parser, 'topic')
    add_out(parser, 'folder for NAME.csv of each recording NAME', required=True)
    parser.add_argument(
        '--filtered-gps',
        action='store_true',
        help='also write gps/filtered of navsat_transform, the estimate as latitude and '
        'longitude, to NAME_gps_filtered.csv',
    )
    parser.add_argument(
        '--consistency',
        action='store_true',
        help='also check the consistency of the filter: NIS of each input and, with truth, NEES, '
        'with 95 %% bounds; prints a table and writes the plot NAME_consistency.png',
    )
    parser.add_argument(
        '--tum',
        action='store_true',
        help='also write the estimate, and the truth at its stamps in the same frame, as '
        'NAME_estimate.tum and NAME_truth.tum for evo',
    )
    add_shared(parser, 'overwrite', 'json', 'verbose')


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.common.results import check_result_files, fresh_files
    from sim2real_eval.judge.setup import JudgeSetup
    from sim2real_eval.metrics.consistency import (
        check_consistency,
        is_planar,
        known_axes,
        pool_runs,
    )
    from sim2real_eval.metrics.trajectory_errors import trajectory_errors, write_tum_pair
    from sim2real_eval.preflight.checks import remarks

    sources = judged_sources(options, options.recordings)
    out, pattern = place_files('judge', options.out, 'NAME.csv')
    if len(sources) > 1 and pattern != 'NAME.csv':
        problem = f'{options.out!r} is not allowed; must be a folder for several recordings'
        raise ParameterError('--out', '', problem)
    # Errors appear before anything is judged, unless each recording has its own case file.
    cases = {source.path: _case_next_to(source, options) for source in sources}
    setup = None if all(cases.values()) else judge_setup(options)
    written: set[Path] = set()
    checks: list[ConsistencyCheck] = []
    all_notes: list[list[Finding]] = []
    diverged: list[str] = []

    def attempt(source: RecordingSource) -> dict[str, Any]:
        recording = source.read()
        target = out / (f'{recording.name}.csv' if pattern == 'NAME.csv' else pattern)
        names = [target.name]
        names += [f'{target.stem}_gps_filtered.csv'] if options.filtered_gps else []
        tum_names = [f'{target.stem}_{part}.tum' for part in ('estimate', 'truth')]
        names += tum_names if options.tum else []
        names += [f'{target.stem}_consistency.png'] if options.consistency else []
        for name in names:
            _check_target(target.with_name(name), written)
        check_result_files(target.parent, names, overwrite=options.overwrite)
        case = cases[source.path]
        judge = setup if setup and not case else judge_setup(options, case)
        heading = _start_heading(judge, recording, options.start_heading)
        judged = judge.judge(recording, start_heading=heading)
        if not len(judged):
            why = by_severity(judged.notes)
            problem = f': {why[0]}' if why else '; check the topics of the recording'
            raise Sim2RealError(f'{source.path}: the judge publishes no estimate{problem}')
        if isinstance(judge, JudgeSetup):
            judged = judge.with_start(start_heading=heading).try_gates(recording, judged)
        if options.filtered_gps and judged.filtered_gps is None:
            raise Sim2RealError(
                f'{source.path}: --filtered-gps: no gps/filtered: {_filtered_gps_problem(judge)}'
            )
        check = check_consistency(judge, recording, judged) if options.consistency else None
        world, no_errors = check.world if check else None, ''
        if world is None:
            needed_by = '--tum' if options.tum else ''
            world, no_errors = _world(judge, recording, judged, needed_by=needed_by)
        errors = (
            [] if world is None else trajectory_errors(judged, world.truth, known_axes(judge)[0])
        )
        title = f'{recording.name}, judge {Path(judge.name).stem}'
        with fresh_files(target.parent, names, overwrite=options.overwrite) as folder:
            judged.write_csv(folder / target.name)
            if options.filtered_gps:
                judged.write_filtered_gps(folder / names[1])
            if options.tum and world is not None:
                write_tum_pair(folder, target.stem, judged, world.truth)
            if check is not None:
                _save_consistency(check.squares, folder / names[-1], title)
        written.update(target.with_name(name) for name in names)
        diverged.extend(f'{source.path}: {why}' for why in judged.divergence_findings[:1])
        recording_notes = remarks(recording, recording.notes, base_frame=judge.base_link_frame)
        notes: list[Finding] = [
            *([] if heading is None else [START_HEADING(judges=Path(judge.name).stem)]),
            *recording_notes,
            *_certain_parts(judge, recording, recording_notes),
            *judged.notes,
            *(() if world is None or check else world.notes),
        ]
        summary = {
            'recording': source.path, 'out': str(target), **judged.summary(),
            'errors': [dataclasses.asdict(error) for error in errors], 'no_errors': no_errors,
        }  # fmt: skip
        if not options.json:
            print(f'{source.path}: {judged}; written to {target}{_errors_text(errors, sources)}')
            table = errors if len(sources) == 1 else []
            _show_errors(table, no_errors, is_planar=is_planar(judge))
            if options.tum:
                files = [str(target.with_name(name)) for name in tum_names]
                plane = ' --project_to_plane xy' if is_planar(judge) else ''
                print(f'compare: evo_ape tum {shlex.join(files[::-1])}{plane}')
        if check is not None:
            checks.append(check)
            notes += check.notes
            path = target.with_name(names[-1])
            plot = str(path) if path.exists() else None
            heading_line = f'Consistency of {title}: ratio 1 is consistent'
            rows = _show_consistency(check.squares, heading_line, quiet=options.json)
            summary |= {'consistency': rows, 'consistency_plot': plot}
            if plot and not options.json:
                print(f'plot: {plot}')
        all_notes.append(notes)
        return {**summary, 'notes': to_records(notes)}

    summaries, failures = attempt_each(sources, attempt)
    if not options.json:
        groups = (('recorded', notes) for notes in all_notes)
        notes = merge_findings(groups) if len(sources) > 1 else chain(*all_notes)
        print_notes(notes, verbose=options.verbose)
    for line in diverged:
        complain(line)
    if len(checks) > 1:
        together = [summary['recording'] for summary in summaries]
        heading_line = (
            f'Consistency of {len(checks)} runs: NIS of all runs, NEES summed at equal times'
        )
        squares = pool_runs([run.squares for run in checks])
        rows = _show_consistency(squares, heading_line, quiet=options.json)
        summaries.append({'recordings': together, 'consistency': rows})
    if options.json:
        print_json(summaries)
    return 1 if failures or diverged else 0


def _world(
    judge: Judge, recording: Recording, judged: JudgedRun, *, needed_by: str
) -> tuple[WorldFrameTruth | None, str]:
    """Return the truth in the world frame of the judge, or None and the reason.

    The reason is empty for a recording without ground truth. `needed_by` is the option that needs
    the truth, or an empty string.
    """
    from sim2real_eval.metrics.consistency import judged_world

    truth = recording.truth
    if truth is None or len(truth) < 2 or not judged.finite.any():
        if needed_by:
            problem = 'needs a recording with ground truth, and finite estimates'
            raise ParameterError(needed_by, '', problem)
        return None, '' if truth is None else 'truth or estimate is empty or not finite'
    try:
        return judged_world(judge, recording, truth, judged), ''
    except Sim2RealError as error:
        if needed_by:
            raise
        return None, str(error)


def _errors_text(errors: Sequence[TrajectoryError], sources: Sequence[RecordingSource]) -> str:
    """Return the RMSE of speed and position for the line of a recording, if there are several."""
    parts = [
        f'{error.quantity} {error.rmse:.3g} {error.unit}'
        for error in errors
        if error.quantity in ('horizontal speed', 'position')
    ]
    return f'; RMSE: {", ".join(parts)}' if parts and len(sources) > 1 else ''


def _show_errors(errors: Sequence[TrajectoryError], why_none: str, *, is_planar: bool) -> None:
    """Print the errors of an estimate, or the reason why it has none."""
    from sim2real_eval.report.consistency import errors_table

    if errors:
        axes = 'x and y' if is_planar else 'x, y and z'
        title = f'Errors against the truth; position and velocity in {axes}'
        print_table(errors_table(errors, title))
    if why_none:
        print(wrap_text(f'no errors against the truth: {why_none}', '  '))


def _certain_parts(
    judge: Judge, recording: Recording, recording_notes: Iterable[Finding]
) -> list[Finding]:
    """Return findings about fused quantities without a variance, unless a check names them."""
    from sim2real_eval.judge.setup import JudgeSetup

    if not isinstance(judge, JudgeSetup):
        return []
    remedies = ' '.join(note.remedy for note in recording_notes)
    notes = judge.certain_parts(recording)
    return [note for note in notes if note.words['setting'].partition(' in ')[0] not in remedies]


def _start_heading(setup: Judge, recording: Recording, is_wanted: bool | None) -> float | None:
    """Return the initial yaw of the filter, rad from east, or None for its default.

    The default is the true yaw if the recording has a truth and the IMU has no orientation.
    """
    from sim2real_eval.recording.truth import true_heading
    from sim2real_eval.simulation.twin_maker import TwinMaker

    if is_wanted is None:
        is_wanted = recording.truth is not None and setup.lacks_heading(recording)
    if not is_wanted:
        return None
    return true_heading(TwinMaker(recording, seed=0, base_frame=setup.base_link_frame).truth)


def _case_next_to(source: RecordingSource, options: argparse.Namespace) -> Path | None:
    from sim2real_eval.judge.protocol import takes_inputs

    beside = Path(source.path) / 'case.yaml'
    takes_case = takes_inputs(options.judge_kind) and options.case is None
    return beside if takes_case and beside.is_file() else None


def _filtered_gps_problem(setup: Judge) -> str:
    """Return the reason why a judge publishes no gps/filtered."""
    from sim2real_eval.judge.setup import JudgeSetup

    if isinstance(setup, JudgeSetup) and setup.case.front_end == 'enu':
        return 'the front end enu does not publish it; use navsat_transform'
    return 'needs navsat_transform with publish_filtered_gps, and a fix'


def _check_target(target: Path, written: set[Path]) -> None:
    if target in written:
        raise Sim2RealError(f'{target.stem}: several recordings have this name; rename one')
    if target.is_dir():
        raise Sim2RealError(f'{target}: is a folder; choose another --out')


def _show_consistency(
    squares: Sequence[Squares], title: str, *, quiet: bool
) -> list[Mapping[str, object]]:
    """Print the consistency of filters unless `quiet`; return it for --json."""
    from sim2real_eval.metrics.consistency import consistency
    from sim2real_eval.report.consistency import consistency_table

    rows = [consistency(square) for square in squares]
    if not quiet:
        print_table(consistency_table(rows, title))
    return [row.summary() for row in rows]


def _save_consistency(squares: Sequence[Squares], path: Path, title: str) -> None:
    """Plot the consistency of one run into a file, unless there is nothing to plot."""
    from sim2real_eval.report.consistency import consistency_figure
    from sim2real_eval.report.style import save_png

    if any(len(square) for square in squares):
        save_png(consistency_figure(squares, title=title), path)
