# SPDX-License-Identifier: Apache-2.0
"""`sim2real vepd`: real recordings against simulated sensors."""

from __future__ import annotations

import argparse

from sim2real_eval.cli.arguments import (
    add_jobs,
    add_json,
    add_overwrite,
    add_seed,
    add_simulated_runs,
    add_topics,
    scenario_label,
    sources,
)
from sim2real_eval.cli.judge_arguments import add_judge, add_judge_kind, judge_setup
from sim2real_eval.cli.metric_arguments import (
    add_metric,
    add_resampling,
    metric_options,
    resampling_options,
)
from sim2real_eval.cli.model_lists import twins
from sim2real_eval.cli.output import (
    print_json,
    print_notes,
    print_table,
    progress_bar,
    report_failures,
)
from sim2real_eval.common.findings import to_records
from sim_sensors.core.errors import ParameterError

__all__ = ['add_arguments', 'run']

HELP = 'real recordings against sensors simulated on their true motion'
DESCRIPTION = (
    'For each real recording, simulate the sensors on its true motion, judge '
    'both, and compare the two sets of velocity errors: VEPD, smaller is closer.'
)
EPILOG = """\
examples:
  sim2real vepd --real bags/* --models paper --out result
  sim2real vepd --real bags/* --judge-config clean --warmup 5 --start-heading --out result
  sim2real vepd --real bags/* --gps real --imu chrono,airsim --out result_imu
  sim2real vepd --real run7 --topic truth=/ins/odometry --models my_receiver.yaml --out result
  sim2real vepd --series published_data --drop-zeros
"""


_WITH_REAL = {
    'topic': '--topic',
    'scenario': '--scenario',
    'gps': '--models',
    'imu': '--imu',
    'match_rates': '--match-rates',
    'repetitions': '--repetitions',
    'config': '--judge-config',
    'navsat_config': '--navsat-config',
    'case': '--case',
    'filter_kind': '--filter',
    'section': '--section',
    'correct': '--correct',
    'latency': '--latency',
    'transforms': '--transforms',
    'front_end': '--front-end',
    'judge_kind': '--judge',
    'navsat_node': '--navsat-node',
    'start_heading': '--start-heading',
    'component': '--component',
}
"""Options that mean nothing to a folder of series, where all that has happened."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    inputs = parser.add_argument_group('input')
    where = inputs.add_mutually_exclusive_group(required=True)
    where.add_argument(
        '--real', nargs='+', metavar='PATH', help='real recordings with ground truth'
    )
    where.add_argument(
        '--series',
        metavar='DIR',
        help='recompute from a folder of speeds in the layout of the published data '
        '(Real/, Sim/<model>/)',
    )
    add_topics(inputs)
    inputs.add_argument(
        '--scenario',
        type=scenario_label,
        metavar='LABEL',
        help='scenario label of all recordings',
    )
    sensors = parser.add_argument_group('sensors')
    sensors.add_argument(
        '--models',
        '--gps',
        dest='gps',
        default='paper',
        metavar='LIST',
        help='GPS models, by comma: presets (see `sim2real models`), YAML files, paper, all, or '
        'real to keep the recorded GPS (default paper)',
    )
    sensors.add_argument(
        '--imu',
        default='chrono',
        metavar='LIST',
        help='IMU models likewise, or real (default chrono, as in the paper)',
    )
    add_simulated_runs(sensors)
    judge = parser.add_argument_group('judge')
    add_judge(judge, '--judge-config', 'paper_released')
    add_judge_kind(judge)
    judge.add_argument(
        '--start-heading',
        action='store_true',
        help='start the filter with the true heading, for recordings whose IMU has no orientation',
    )
    metric = add_metric(parser)
    metric.add_argument(
        '--drop-zeros', action='store_true', help='with --series: drop the zero padding'
    )
    add_resampling(parser)
    output = parser.add_argument_group('output')
    output.add_argument('--out', metavar='DIR', help='folder for tables, series and plots')
    add_overwrite(output)
    output.add_argument(
        '--published', action='store_true', help="show the paper's numbers beside ours"
    )
    add_json(output)
    add_seed(parser)
    add_jobs(parser)
    of_real = {dest: parser.get_default(dest) for dest in _WITH_REAL}
    parser.set_defaults(of_real=of_real)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from sim2real_eval.judge.protocol import takes_inputs

    if options.series:
        for dest, default in options.of_real.items():
            if getattr(options, dest) != default:
                raise ParameterError(_WITH_REAL[dest], '', 'goes with --real only')
        return _recompute(options)
    if not options.out:
        raise ParameterError('--out', '', 'is missing; must be the folder to write')
    if options.drop_zeros:
        raise ParameterError('--drop-zeros', '', 'goes with --series only')
    import dataclasses

    from sim2real_eval.cli.output import print_comparison, write_result
    from sim2real_eval.report.comparison_folder import check_target
    from sim2real_eval.study.comparison import ComparisonOptions, compare

    check_target(options.out, overwrite=options.overwrite)
    setup = judge_setup(options)
    # The sensors of twins sit where the judge is told that they do.
    recordings = [
        dataclasses.replace(source, transforms=setup.transforms)
        for source in sources(
            options.real,
            options.topic,
            options.scenario,
            inputs=takes_inputs(options.judge_kind),
            option='--real',
        )
    ]
    study = ComparisonOptions(
        twins=twins(options.gps, options.imu),
        setup=setup,
        metric=metric_options(options),
        component=options.component,
        seed=options.seed,
        repetitions=options.repetitions,
        match_rates=options.match_rates,
        start_heading=options.start_heading,
        resampling=resampling_options(options),
    )
    with progress_bar(len(recordings), 'recordings') as progress:
        comparison = compare(recordings, study, jobs=options.jobs, progress=progress)
    record, folder = write_result(
        options.out, comparison, recordings, study, overwrite=options.overwrite
    )
    report_failures([str(failure) for failure in comparison.failures], of=len(recordings))
    if options.json:
        print_json(record)
    else:
        print_comparison(
            comparison,
            component=options.component,
            judge=study.setup.name,
            folder=folder,
            published=options.published,
        )
    return 1 if comparison.failures else 0


def _recompute(options: argparse.Namespace) -> int:
    from sim2real_eval.cli.output import print_uncertainty, shown
    from sim2real_eval.common.tables import write_csv
    from sim2real_eval.metrics.published import vepd_from_series
    from sim2real_eval.metrics.uncertainty.by_scenario import (
        UNCERTAINTY_COLUMNS,
        series_uncertainty,
        uncertainty_fields,
        uncertainty_notes,
    )
    from sim2real_eval.report.console import vepd_console_table
    from sim_sensors.core.errors import Sim2RealError

    result = vepd_from_series(
        options.series, metric_options(options, drop_zeros=options.drop_zeros)
    )
    known = series_uncertainty(result, resampling_options(options), seed=options.seed)
    if options.out:
        from pathlib import Path

        target = Path(options.out)
        if (target / 'vepd.csv').exists() and not options.overwrite:
            raise Sim2RealError(
                f'{target / "vepd.csv"}: exists; choose another --out or give --overwrite'
            )
        target.mkdir(parents=True, exist_ok=True)
        rows = [uncertainty_fields(row, known) for row in result.rows]
        write_csv(target / 'vepd.csv', UNCERTAINTY_COLUMNS, rows)
    if options.json:
        import dataclasses

        print_json(
            {
                'vepd': [dataclasses.asdict(row) for row in result.rows],
                'uncertainty': {name: one.to_mapping() for name, one in known.items()},
                'notes': to_records(result.notes),
            }
        )
    else:
        print_table(vepd_console_table(shown(result.rows), published=options.published))
        print()
        suggestions = print_uncertainty(known, shown(result.rows))
        told = uncertainty_notes(known, list(known)[:-1])
        print_notes([*result.notes, *told, *suggestions])
    return 0
