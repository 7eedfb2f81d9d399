# SPDX-License-Identifier: Apache-2.0
"""`sim2real demo`: the main job on synthetic stand-ins for real recordings."""

from __future__ import annotations

import argparse
from typing import Any

from sim2real_eval.cli.arguments import add_jobs, add_json, add_seed, at_least
from sim2real_eval.cli.output import print_json, print_notes, print_table, progress_bar

__all__ = ['add_parser', 'run']


def add_parser(verbs: Any) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        'demo',
        help='a small study with plots; needs no input',
        description='Drive a vehicle through line, circle and half-sine, record it with sensors '
        'that stand in for real ones (synthetic, and labelled so), and compare the five GPS '
        'models of the paper with them under both judge profiles.',
        epilog='example:\n  sim2real demo\n  sim2real demo --runs 10 --seed 1 --out my_demo',
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        '--out',
        default='sim2real_demo',
        metavar='DIR',
        help='folder to write; an older demo in it is replaced (default sim2real_demo)',
    )
    parser.add_argument(
        '--runs',
        type=at_least(1, int),
        default=5,
        metavar='N',
        help='recordings per manoeuvre (default 5)',
    )
    add_json(parser)
    add_seed(parser)
    add_jobs(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the verb; return the exit status."""
    from pathlib import Path

    from sim2real_eval.cli.result import print_uncertainty
    from sim2real_eval.demo import Demo
    from sim2real_eval.report.console import vepd_console_table

    demo = Demo(Path(options.out), runs=options.runs, seed=options.seed)
    with progress_bar(demo.steps, 'demo') as advance:
        results = demo.run(jobs=options.jobs, progress=advance)
    if options.json:
        print_json({result.judge: result.record for result in results})
        return 0
    print('Real recordings are replaced by SYNTHETIC stand-ins: the numbers show how the tool')
    print('works, not how good a sensor model is.\n')
    suggestions: dict[str, list[str]] = {}
    for result in results:
        print_table(
            vepd_console_table(
                result.comparison.rows,
                forward_rmse=result.comparison.forward_rmse(),
                title=f'VEPD of horizontal speed, judge {result.judge}: smaller is closer '
                '(SYNTHETIC stand-in)',
            )
        )
        print()
        suggestions[result.judge] = print_uncertainty(
            result.comparison.uncertainty, result.comparison.rows
        )
        print()
    found = {
        result.judge: [*result.comparison.notes(), *suggestions[result.judge]]
        for result in results
    }
    shared = set.intersection(*(set(notes) for notes in found.values()))
    print_notes(
        note if note in shared else f'judge {judge}: {note}'
        for judge, notes in found.items()
        for note in notes
        if judge == results[0].judge or note not in shared
    )
    print(f'Recordings: {demo.recordings}')
    for result in results:
        print(f'Judge {result.judge}: {result.folder}')
        for plot in sorted(result.folder.glob('*.png')):
            print(f'    {plot}')
    print('\nNext, with your own bags:')
    print('    sim2real vepd --real MY_BAGS/* --models paper --out result')
    return 0
