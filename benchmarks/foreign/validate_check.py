# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Hold `sim2real check` against recordings of the foreign generator.

Clean recordings must pass, faults must be named, and remedies must help: the error against the
known motion is measured before and after the corrections that `check` prints.

    python -m benchmarks.foreign.validate_check                      # 60 clean, 120 faulty
    python -m benchmarks.foreign.validate_check --only mounted --keep OUT
    python -m benchmarks.foreign.validate_check --only clean --seed 7
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import json
import logging
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.spatial.transform import Rotation

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import machine

from foreign.errors import growth, is_mended, measure_errors
from foreign.faults import TOPICS, Fault, faulty_setups, load_faults
from foreign.sensors import TRUTH, Log, Stream, make_log
from foreign.setups import Setup, clean_setups
from foreign.writer import START_NS, write_bag

RESULTS = Path(__file__).resolve().parents[1] / 'results'
ROUTINE = ('no_orientation', 'moving_start', 'missing', 'short')
"""Findings that a good recording may have, without `check.`."""
BOUNDS = {'clean failed': 1, 'faulty unnamed': 4, 'remedies worse': 0}
_HEARTBEAT_S = 30.0


@dataclasses.dataclass(frozen=True)
class Task:
    """A recording that is to be made and checked; without a fault it is `clean`."""

    name: str
    setup: Setup
    kind: str = 'clean'

    @property
    def fault(self) -> Fault | None:
        """The fault of this kind; functions that plant one cannot be sent to a process."""
        return load_faults().get(self.kind)


@dataclasses.dataclass
class Row:
    """Result of one recording.

    Attributes
    ----------
    name, kind, vehicle, peculiarity : str
    verdict : str
        Of a clean recording `pass`, `warn` or `fail`; of a faulty one `named`, `other` where only
        other causes are found, or `silent`; of either `refused`, or `crashed`.
    status : str
        Of the command: pass, warn or fail.
    codes : list of str
        Findings as `role:code`.
    corrections : dict
        Content of recording.yaml as the remedies have it.
    before, after : dict
        Errors by quantity; `after` is empty without corrections.
    worse : list of str
        Quantities that the corrections make worse.
    mended : bool or None
        Whether the input with the fault has no greater errors than without it; None without
        corrections.
    status_after : str
        Of the command with the corrections in recording.yaml.
    message : str
        Of an error.
    """

    name: str
    kind: str
    vehicle: str
    peculiarity: str = ''
    verdict: str = ''
    status: str = ''
    codes: list[str] = dataclasses.field(default_factory=list)
    corrections: dict[str, Any] = dataclasses.field(default_factory=dict)
    before: dict[str, float] = dataclasses.field(default_factory=dict)
    after: dict[str, float] = dataclasses.field(default_factory=dict)
    worse: list[str] = dataclasses.field(default_factory=list)
    mended: bool | None = None
    status_after: str = ''
    message: str = ''

    def __str__(self) -> str:
        words = [f'{self.name}: {self.verdict}', self.status]
        words += [f'({self.peculiarity})'] if self.peculiarity else []
        words.append(' '.join(self.codes) or '-')
        if self.corrections:
            words.append(_one_line(self.corrections))
            words.append(f'then {self.status_after}')
        if self.mended is not None:
            words.append('mended' if self.mended else 'not mended')
        words += [
            f'WORSE {name}: {self.before[name]:.3g} -> {self.after.get(name, np.inf):.3g}'
            for name in self.worse
        ]
        return ' | '.join([*filter(None, words), *filter(None, [self.message])])


def _one_line(settings: dict[str, Any]) -> str:
    return yaml.safe_dump(settings, default_flow_style=True, width=10_000).strip()


def run_check(path: Path) -> tuple[dict[str, Any] | None, str]:
    """Run the command `sim2real check PATH --json`; return its record, and what went wrong."""
    from sim2real_eval.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(['check', str(path), '--json'])
        except SystemExit as end:
            status = int(end.code or 0)
    if status == 2 or not out.getvalue():
        return None, err.getvalue().strip().partition('\n')[0]
    record: dict[str, Any] = json.loads(out.getvalue())
    if not record['recordings']:
        return None, str(record.get('failures'))
    return record, ''


def read_streams(path: Path) -> tuple[dict[str, Stream], dict[str, Any]]:
    """Return the messages as the package reads and corrects them, and declared transforms."""
    from sim2real_eval import read_recording

    recording = read_recording(path)
    names = {
        'imu': ('angular_velocity rate', 'linear_acceleration force', 'orientation orientation'),
        'fix': ('latitude latitude', 'longitude longitude', 'altitude altitude', 'status status'),
        'odometry': (
            'position position', 'orientation orientation', 'linear_velocity velocity',
            'angular_velocity rate',
        ),
    }  # fmt: skip
    covariances = {
        'imu': (
            'angular_velocity_covariance rate_covariance',
            'linear_acceleration_covariance force_covariance',
            'orientation_covariance orientation_covariance',
        ),
        'fix': ('position_covariance covariance',),
        'odometry': ('twist_covariance twist_covariance',),
    }
    kinds = {TOPICS['imu']: 'imu', TOPICS['gps']: 'fix'}
    streams = {}
    for topic in TOPICS.values():
        if topic not in recording.messages:
            continue
        array = recording.messages[topic]
        kind = kinds.get(topic, 'odometry')
        stamps = (array.stamp_ns - START_NS) * 1e-9
        values = {}
        for pair in names[kind]:
            theirs, ours = pair.split()
            values[ours] = np.array(getattr(array, theirs), dtype=float)
        for pair in covariances[kind]:
            theirs, ours = pair.split()
            values[ours] = np.array(getattr(array, theirs)).reshape(len(stamps), -1)
        streams[topic] = Stream(kind, array.frame, '', stamps, stamps, values)
    transforms = {
        one.child: (np.array(one.translation), Rotation.from_quat(one.rotation))
        for one in recording.transforms
    }
    return streams, transforms


def examine(task: Task, folder: Path, *, keep: bool) -> Row:
    """Make a recording, check it, follow the remedies and measure the errors."""
    row = Row(task.name, task.kind, task.setup.vehicle, task.setup.peculiarity)
    path = folder / task.name
    try:
        log = make_log(task.setup)
        clean = measure_errors(log, log.streams, log.transforms)
        if task.fault is not None:
            task.fault.plant(log)
        write_bag(log, path)
        _check(task, log, path, clean, row)
    except Exception:
        row.verdict = 'crashed'
        row.message = traceback.format_exc().strip().replace('\n', ' / ')[-600:]
    if not keep:
        shutil.rmtree(path, ignore_errors=True)
    return row


def _check(task: Task, log: Log, path: Path, clean: dict[str, float], row: Row) -> None:
    record, problem = run_check(path)
    if record is None:
        row.verdict, row.message = 'refused', problem
        return
    (recording,) = record['recordings']
    row.status = recording['status']
    findings = [_code_and_role(finding) for finding in record['findings']]
    row.codes = [f'{role}:{code}' if role else code for code, role in findings]
    row.verdict = _verdict(task, row.status, findings)
    row.corrections = _remedies(recording['corrections'], record['findings'])
    if not row.corrections:
        return
    row.before = measure_errors(log, *read_streams(path))
    topics = {'topics': {'truth': TRUTH}} if log.streams[TRUTH].kind == 'pose' else {}
    text = yaml.safe_dump({**topics, **row.corrections})
    (path / 'recording.yaml').write_text(text, encoding='utf-8')
    row.after = measure_errors(log, *read_streams(path))
    row.worse = growth(row.before, row.after)
    if task.fault is not None:
        row.mended = is_mended(_affected(task.fault, clean), row.before, row.after)
    again, problem = run_check(path)
    row.status_after = again['recordings'][0]['status'] if again else f'refused: {problem}'


def _remedies(corrections: dict[str, Any], findings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what the findings ask to set in recording.yaml; corrections hold in total."""
    remedies: dict[str, Any] = {}
    for finding in findings:
        for text in re.findall(r'set `([^`]*)` in recording\.yaml', finding['remedy']):
            entry = yaml.safe_load(text)
            if 'corrections' not in entry:
                remedies |= entry
    return remedies | ({'corrections': corrections} if corrections else {})


def _affected(fault: Fault, clean: dict[str, float]) -> dict[str, float]:
    """Return the errors that a fault changes and its correction mends."""
    # A remedy that states a deviation leaves the errors themselves.
    ending = 'stated' if 'std' in fault.correction else ''
    return {
        name: error
        for name, error in clean.items()
        if name.startswith(fault.role) and name.endswith(ending)
    }


def _code_and_role(finding: dict[str, Any]) -> tuple[str, str]:
    roles = {topic.strip('/'): role for role, topic in TOPICS.items()}
    subject = finding['subject'].strip('/')
    return finding['code'].removeprefix('check.'), roles.get(subject, subject)


def _verdict(task: Task, status: str, findings: Sequence[tuple[str, str]]) -> str:
    if task.fault is None:
        return status
    if task.fault.is_named_by(findings):
        return 'named'
    return 'other' if any(code not in ROUTINE for code, _ in findings) else 'silent'


def tasks_of(seed: int, clean: int, faulty: int, only: str) -> list[Task]:
    """Return the recordings of a seed; `only` is part of the name of a fault, or `clean`."""
    tasks = []
    if only in ('', 'clean'):
        tasks += [
            Task(f'{k:03d}_clean_{setup.vehicle}', setup)
            for k, setup in enumerate(clean_setups(seed, clean))
        ]
    if only != 'clean':
        tasks += [
            Task(f'{k:03d}_{fault.name}_{setup.vehicle}', setup, fault.name)
            for k, (fault, setup) in enumerate(faulty_setups(seed, faulty, only))
        ]
    return tasks


def run_all(tasks: Sequence[Task], folder: Path, jobs: int, *, keep: bool) -> list[Row]:
    """Examine all recordings; print a line for each, in the order of their completion."""
    rows: dict[str, Row] = {}
    told = time.monotonic()
    with ProcessPoolExecutor(jobs, initializer=_silence) as pool:
        running = [pool.submit(examine, task, folder, keep=keep) for task in tasks]
        for future in as_completed(running):
            row = future.result()
            rows[row.name] = row
            print(row, flush=True)
            if sys.stderr.isatty():
                print(f'{len(rows)} of {len(tasks)}', end='\r', file=sys.stderr, flush=True)
            elif time.monotonic() - told > _HEARTBEAT_S:
                told = time.monotonic()
                print(f'{len(rows)} of {len(tasks)} recordings', file=sys.stderr, flush=True)
    return [rows[task.name] for task in tasks]


def _silence() -> None:
    logging.disable(logging.WARNING)


def figures_of(rows: Sequence[Row]) -> dict[str, str]:
    """Return the counts of the acceptance as `k/n`."""
    clean = [row for row in rows if row.kind == 'clean']
    faulty = [row for row in rows if row.kind != 'clean']
    remedied = [row for row in rows if row.corrections]
    faults = load_faults()
    mendable = [row for row in faulty if faults[row.kind].correction]
    counts = {
        'clean failed': (sum(row.verdict not in ('pass', 'warn') for row in clean), clean),
        'clean warned': (
            sum(any(not code.endswith(ROUTINE) for code in row.codes) for row in clean),
            clean,
        ),
        'faulty named': (sum(row.verdict == 'named' for row in faulty), faulty),
        'faulty with another cause only': (sum(row.verdict == 'other' for row in faulty), faulty),
        'faulty unnamed': (sum(row.verdict != 'named' for row in faulty), faulty),
        'faulty mended': (sum(row.mended is True for row in mendable), mendable),
        'remedies worse': (sum(bool(row.worse) for row in remedied), remedied),
        'remedies after which check fails': (
            sum(row.status_after not in ('pass', 'warn') for row in remedied), remedied,
        ),
    }  # fmt: skip
    return {name: f'{count}/{len(group)}' for name, (count, group) in counts.items()}


def page(rows: Sequence[Row], seed: int) -> str:
    """Return the tables as Markdown."""
    lines = [
        '# `sim2real check` on recordings of a foreign generator', '',
        f'`python -m benchmarks.foreign.validate_check --seed {seed}`, part of `make validation`.',
        '', '| count | measured | must be |', '|---|---|---|',
    ]  # fmt: skip
    for name, value in figures_of(rows).items():
        bound = f'≤ {BOUNDS[name]}' if name in BOUNDS else ''
        lines.append(f'| {name} | {value} | {bound} |')
    lines += ['', '## Clean recordings', '', '| recording | peculiarity | status | findings |',
              '|---|---|---|---|']  # fmt: skip
    for row in rows:
        if row.kind == 'clean':
            codes = ' '.join(row.codes) or row.message
            lines.append(f'| {row.name} | {row.peculiarity} | {row.verdict} | {codes} |')
    lines += [
        '', '## Faulty recordings', '',
        '*mended*: after the printed corrections the input with the fault errs as without it.',
        '', '| fault | vehicle | verdict | findings | remedy |', '|---|---|---|---|---|',
    ]  # fmt: skip
    for row in sorted(rows, key=lambda row: row.kind):
        if row.kind != 'clean':
            codes = ' '.join(row.codes) or row.message
            lines.append(
                f'| {row.kind} | {row.vehicle} | {row.verdict} | {codes} | {_outcome(row)} |'
            )
    lines += [
        '', '## Errors before and after a remedy', '',
        '| recording | corrections | quantity | before | after |', '|---|---|---|---|---|',
    ]  # fmt: skip
    for row in rows:
        text = _one_line(row.corrections)
        for name, before in row.before.items():
            after = row.after.get(name, np.inf)
            if abs(after - before) > 0.05 * before + 1e-9:
                mark = '**' if name in row.worse else ''
                lines.append(
                    f'| {row.name} | `{text}` | {name} | {before:.3g} | {mark}{after:.3g}{mark} |'
                )
                text = '"'
    return '\n'.join(lines) + '\n'


def _outcome(row: Row) -> str:
    if row.mended is None:
        return ''
    words = ['mended' if row.mended else 'not mended']
    words += [f'worse: {", ".join(row.worse)}'] if row.worse else []
    words += [f'then {row.status_after}'] if row.status_after not in ('pass', 'warn') else []
    return '; '.join(words)


def write_results(rows: Sequence[Row], seed: int, minutes: float) -> None:
    """Write the table and all rows to `benchmarks/results`."""
    RESULTS.mkdir(exist_ok=True)
    record = {
        'machine': machine(),
        'seed': seed,
        'minutes': round(minutes, 1),
        'figures': figures_of(rows),
        'rows': [_plain(dataclasses.asdict(row)) for row in rows],
    }
    text = json.dumps(record, indent=1) + '\n'
    (RESULTS / 'foreign_check.json').write_text(text, encoding='utf-8')
    (RESULTS / 'foreign_check.md').write_text(page(rows, seed), encoding='utf-8')


def _plain(value: Any) -> Any:
    """Return a value for JSON with four digits; infinities as text."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, float):
        return float(f'{value:.4g}') if np.isfinite(value) else str(value)
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--only', default='', help='part of the name of a fault, or `clean`')
    parser.add_argument('--keep', type=Path, metavar='OUT', help='new folder of the recordings')
    parser.add_argument('--seed', type=int, default=0, help='default %(default)s')
    parser.add_argument('--jobs', type=int, default=2, help='processes, default %(default)s')
    parser.add_argument('--clean', type=int, default=60, help='recordings, default %(default)s')
    parser.add_argument(
        '--faulty', type=int, help='recordings, default 120, with --only 4 of each kind'
    )
    parser.add_argument('--list', action='store_true', help='print the names of the faults')
    options = parser.parse_args()
    kinds = [name for name in load_faults() if options.only in name]
    if options.list:
        print('\n'.join(kinds))
        return
    faulty = options.faulty
    if faulty is None:
        faulty = 4 * len(kinds) if options.only else 120
    tasks = tasks_of(options.seed, options.clean, faulty, options.only)
    if not tasks:
        parser.error(f'--only: {options.only!r} is not part of the name of a fault; see --list')
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix='foreign_') as scratch:
        folder = options.keep or Path(scratch)
        if options.keep:
            options.keep.mkdir(parents=True)
        rows = run_all(tasks, folder, options.jobs, keep=options.keep is not None)
    figures = figures_of(rows)
    print('\n'.join(f'{name}: {value}' for name, value in figures.items()))
    if not options.only:
        write_results(rows, options.seed, (time.monotonic() - began) / 60.0)
    broken = [name for name, most in BOUNDS.items() if int(figures[name].partition('/')[0]) > most]
    sys.exit(bool(broken))


if __name__ == '__main__':
    main()
