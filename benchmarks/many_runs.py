# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Memory and time of a study of many short recordings, and of one of many models; their pages."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

from long_recordings import Run, run
from measuring import table, write

from sim_sensors.core.shipped import config_path

_DURATION_S = 6.0
_FEW = 10
_VERB = [sys.executable, '-m', 'sim2real_eval.cli']


def models(count: int, folder: Path) -> list[str]:
    """Write GPS models whose deviation grows by 3 % from one to the next; return the files."""
    text = config_path('gps', 'ch_gauss.yaml').read_text(encoding='utf-8')
    files = [folder / f'gauss_{number:03}.yaml' for number in range(count)]
    for number, file in enumerate(files):
        std = f'std: {[round(0.03 * 1.03**number, 6)] * 3}'
        file.write_text(re.sub(r'std: \[.*\]', std, text), encoding='utf-8')
    return [str(file) for file in files]


def recordings(count: int, folder: Path) -> list[str]:
    """Return the command that simulates drives along lines and circles."""
    made = ['--duration', str(_DURATION_S), '--runs', str(count), '--out', str(folder)]
    return [*_VERB, 'simulate', '--motion', 'drive_line', *made]


def study(real: Path, count: int, named: list[str], out: Path) -> list[str]:
    """Return the command that compares the first recordings with models."""
    given = [str(real / f'line_{number}') for number in range(1, count + 1)]
    compared = ['--models', ','.join(named), '--jobs', '1', '--out', str(out)]
    return [*_VERB, 'vepd', *given, *compared]


def page_megabytes(folder: Path) -> float:
    """Return the size of the page of a study; nan where there is none."""
    page = folder / 'report.html'
    return page.stat().st_size / 1e6 if page.exists() else float('nan')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--recordings', type=int, default=1000)
    parser.add_argument('--models', type=int, default=100)
    parser.add_argument('--limit', type=float, default=3600.0, help='processor time of each, s')
    parser.add_argument('--keep', type=Path, help='folder for what is made, in place of /tmp')
    parser.add_argument('--out', type=Path, default=Path(__file__).parent / 'results')
    options = parser.parse_args()
    rows: list[tuple[str, int, Run, float]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        real, many, broad = folder / 'real', folder / 'many', folder / 'broad'
        steps = (
            ('simulate', options.recordings, recordings(options.recordings, real), real),
            (
                'vepd of many recordings, 2 models',
                3 * options.recordings,
                study(real, options.recordings, ['ch_rw', 'ch_gauss'], many),
                many,
            ),
            ('report of it', 3 * options.recordings, [*_VERB, 'report', str(many)], many),
            (
                f'vepd of {_FEW} recordings, many models',
                _FEW * (options.models + 1),
                study(real, _FEW, models(options.models, folder), broad),
                broad,
            ),
        )
        for name, count, arguments, place in steps:
            took = run(arguments, options.limit)
            rows.append((name, count, took, page_megabytes(place)))
            print(name, *(f'{value:.0f}' for value in took), file=sys.stderr, flush=True)
    table(
        ('', 'runs', 'peak MB', 's', 'ms per run', 'page MB', 'exit'),
        [
            (
                name,
                f'{count:,}',
                f'{took.megabytes:,.0f}',
                f'{took.seconds:,.1f}',
                f'{1e3 * took.seconds / count:.1f}',
                f'{page:.1f}',
                str(took.status),
            )
            for name, count, took, page in rows
        ],
    )
    result = [
        {'name': name, 'runs': count, **took._asdict(), 'page_mb': page}
        for name, count, took, page in rows
    ]
    write(options.out, 'many_runs', {'duration': _DURATION_S, 'steps': result})


if __name__ == '__main__':
    main()
