# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the benchmarks: clocks, the machine, result files."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Above it others take what the figures need: drivers and nodes want a core each.
QUIET_LOAD = 2.0
MIN_REPETITIONS = 3
# Before the benchmark adds its own.
LOAD_BEFORE = [round(load, 2) for load in os.getloadavg()]
PACKAGES = ('numpy', 'scipy', 'numba', 'pyproj', 'filterpy')


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def machine() -> dict[str, Any]:
    """Versions and hardware that affect the figures, without a host name."""
    return {
        'processor': _processor(),
        'cpus': os.cpu_count(),
        'load_before': LOAD_BEFORE,
        'quiet': LOAD_BEFORE[0] <= QUIET_LOAD,
        'load': [round(load, 2) for load in os.getloadavg()],
        'system': f'{platform.system()} {platform.machine()}',
        'python': platform.python_version(),
        **{package: version(package) for package in PACKAGES},
    }


def _processor() -> str:
    try:
        lines = Path('/proc/cpuinfo').read_text(encoding='utf-8').splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(':', 1)[1].strip() for line in lines if line.startswith('model name')]
    return names[0] if names else platform.processor()


def spread(values: list[float]) -> dict[str, float]:
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(values, n=4, method='inclusive')
    return {'median': middle, 'lower_quartile': low, 'upper_quartile': high}


def parse(description: str, repetitions: int, *, json_option: bool = False) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        '--repetitions',
        type=int,
        default=repetitions,
        help=f'at least {MIN_REPETITIONS}, default %(default)s',
    )
    parser.add_argument(
        '--out',
        type=Path,
        default=Path(__file__).parent / 'results',
        metavar='DIR',
        help='folder of the JSON result, default %(default)s',
    )
    if json_option:
        parser.add_argument('--json', action='store_true', help='print JSON and write no file')
    options = parser.parse_args()
    if options.repetitions < MIN_REPETITIONS:
        parser.error(
            f'--repetitions: {options.repetitions} is not allowed; '
            f'must be {MIN_REPETITIONS} or more'
        )
    if options.out.suffix == '.json':
        parser.error(f'--out: {str(options.out)!r} is not allowed; must be a folder')
    if LOAD_BEFORE[0] > QUIET_LOAD:
        print(
            f'{parser.prog}: warning: load {LOAD_BEFORE[0]} before the start, above '
            f'{QUIET_LOAD:g}: these are not the figures of a quiet machine',
            file=sys.stderr,
        )
    return options


def end_processes(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """Interrupt processes, and kill those that do not end within 20 s."""
    running = list(processes)
    for process in running:
        process.send_signal(signal.SIGINT)
    for process in running:
        try:
            process.wait(20.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def write(out: Path, name: str, result: dict[str, Any]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    path = out / f'{name}.json'
    text = json.dumps({'machine': machine(), **result}, indent=2)
    path.write_text(text + '\n', encoding='utf-8')
    print(f'\n{path}')


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[k]) for row in (header, *rows)) for k in range(len(header))]
    for row in (header, tuple('-' * width for width in widths), *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print('  '.join(cells))
