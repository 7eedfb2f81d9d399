# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Measure every claim of `claims.py` and write docs/explanation/validation.md.

`make validation`. An interrupted run continues: steps that were done are kept in build/validation
until the page is written. `--write` writes the page from the figures of the last run.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy.stats import binom, binomtest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from claims import CLAIMS, Claim
from measuring import machine

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / 'build' / 'validation'
FIGURES = Path(__file__).parent / 'results' / 'validation.json'
PAGE = ROOT / 'docs' / 'explanation' / 'validation.md'
_BLOCK = re.compile(r'(<!-- measured: ([^>]+) -->\n).*?(<!-- end -->)', re.S)

# Arguments of a script, and the file that it writes; the longest first.
SCRIPTS = {
    'predicts': ('transfer_predicts.py --jobs 2', 'transfer_predicts'),
    'different': (
        'uncertainty_calibration.py different --trials 100 --jobs 1',
        'uncertainty_calibration_different',
    ),
    'same': (
        'uncertainty_calibration.py same --trials 300 --jobs 1',
        'uncertainty_calibration_same',
    ),
    'tuning': ('tuning_recovery.py --trials 12', 'tuning_recovery'),
    'gps': ('gps_recovery.py --logs 90', 'gps_recovery'),
    'study': ('documented.py study', 'documented_study'),
    'drives': ('documented.py drives', 'documented_drives'),
    'coverage': ('interval_coverage.py --trials 40 --resamples 500 --jobs 1', 'interval_coverage'),
    'together': (
        "interval_coverage.py --together --only 'log-normal 0.9' --trials 40 --jobs 1",
        'interval_coverage_together',
    ),
    'board': ('board_detection.py', 'board_detection'),
    'drive_blocks': ('blocks.py drive0708', 'blocks_drive0708'),
    'blocks': ('blocks.py same', 'blocks_same'),
}
FAILED = 'the test fails'
Figures = dict[str, list[str]]


def measured(step: str) -> dict[str, Any]:
    """Return the figures of a step and what it took; a step that was done is not done again."""
    kept = FOLDER / f'{step}.json'
    if not kept.exists():
        began = time.perf_counter()
        figures = _of_script(step) if step in SCRIPTS else _of_tests()
        told = {'seconds': round(time.perf_counter() - began, 1), 'figures': figures}
        kept.with_suffix('.part').write_text(json.dumps(told), encoding='utf-8')
        kept.with_suffix('.part').replace(kept)
    result: dict[str, Any] = json.loads(kept.read_text(encoding='utf-8'))
    print(f'{step}: {result["seconds"]} s', flush=True)
    return result


def _of_script(step: str) -> Figures:
    words, name = SCRIPTS[step]
    script, *more = shlex.split(words)
    command = [sys.executable, str(Path(__file__).with_name(script)), *more, '--out', str(FOLDER)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    written = json.loads((FOLDER / f'{name}.json').read_text(encoding='utf-8'))
    if step in ('same', 'different'):
        column = {'same': 'rejects', 'different': 'covers'}[step]
        shares = [
            (float(row[column].split()[0]) / 100.0, int(row['trials'])) for row in written['rows']
        ]
        return {column: [f'{round(share * n)}/{n}' for share, n in shares]}
    found = written['figures']
    return {name: [f'{one}' for one in np.atleast_1d(found[name])] for name in found}


def _of_tests() -> Figures:
    """Return the properties that tests record; what `failed` is among them."""
    names = {f'test/{one.measure}' for group in CLAIMS.values() for one in group if _is_test(one)}
    report = FOLDER / 'tests.xml'
    options = ['-q', '-p', 'no:cacheprovider', f'--junitxml={report}', '-o', 'junit_family=xunit1']
    command = [sys.executable, '-m', 'pytest', *options, *sorted(names)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, cwd=ROOT, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f'pytest ended with {done.returncode}: {" ".join(command)}')
    found: Figures = {}
    for case in ElementTree.parse(report).iter('testcase'):
        file = case.get('file', '').removeprefix('test/')
        test = f'{file}::{case.get("name", "").partition("[")[0]}'
        if case.find('failure') is not None or case.find('error') is not None:
            found.setdefault(f'{test} failed', []).append(case.get('name', ''))
        for one in case.iter('property'):
            found.setdefault(f'{test} {one.get("name")}', []).append(one.get('value', ''))
    return found


def _is_test(claim: Claim) -> bool:
    return '::' in claim.measure


def values_of(claim: Claim, figures: dict[str, Figures]) -> list[str]:
    """Return what was measured for a claim; nothing where its data are absent."""
    if not _is_test(claim):
        return figures.get(claim.measure, {}).get(claim.figure, [])
    found, key = figures.get('tests', {}), f'{claim.measure} {claim.figure}'
    return [FAILED] if f'{claim.measure} failed' in found else found.get(key, [])


_LEVEL = 0.001
"""Probability at which all settings together reject the bounds of a share."""


def holds(claim: Claim, values: Sequence[str]) -> bool:
    """Return whether the values are within the bounds.

    Shares are within the bounds all together, and no setting rejects them: its few trials may be
    outside by chance.
    """
    if FAILED in values:
        return False
    if not values or '/' not in values[0]:
        return all(claim.low <= _number(value) <= claim.high for value in values)
    counts = [tuple(map(int, value.split('/'))) for value in values]
    hits, trials = (sum(column) for column in zip(*counts, strict=True))
    level = _LEVEL / len(counts)
    low, high = max(claim.low, 0.0), min(claim.high, 1.0)
    return low <= hits / trials <= high and all(
        binom.cdf(k, n, low) >= level and binom.sf(k - 1, n, high) >= level for k, n in counts
    )


def _number(value: str) -> float:
    part, _, whole = value.partition('/')
    return float(part) / float(whole or 1)


def shown(claim: Claim, values: Sequence[str]) -> str:
    """Return what was measured as people read it: the worst, a range, or a share with interval."""
    if not values:
        return 'not measured here'
    if FAILED in values:
        return FAILED
    numbers = [_number(one) for one in values]
    if '/' in values[0]:
        hits, trials = (sum(int(one.split('/')[k]) for one in values) for k in (0, 1))
        ends = binomtest(hits, trials).proportion_ci()
        share = 100.0 * hits / trials
        text = f'{share:.1f} % of {trials} [{100.0 * ends.low:.1f}, {100.0 * ends.high:.1f}]'
        each = f'{100.0 * min(numbers):.1f} to {100.0 * max(numbers):.1f}'
        return text if len(values) == 1 else f'{text}; {each} by setting'
    if claim.low == -float('inf'):
        text = f'{max(numbers):.2g}'.replace('e-0', 'e-')
    else:
        ends_of = sorted({f'{min(numbers):.3g}', f'{max(numbers):.3g}'}, key=float)
        text = ' to '.join(ends_of)
    return f'{text} {claim.unit}'.strip()


def bound(claim: Claim, values: Sequence[str]) -> str:
    """Return the bounds as people read them; of shares in per cent."""
    factor, unit = (100.0, ' %') if any('/' in one for one in values) else (1.0, '')
    high = f'{factor * claim.high:g}'.replace('e-0', 'e-')
    low = '≤ ' if claim.low == -float('inf') else f'{factor * claim.low:g} to '
    return f'{low}{high}{unit}'


def table(section: str, figures: dict[str, Figures]) -> list[str]:
    """Return the lines of the table of a section."""
    lines = ['| What | Against | Measured | Must be | By |', '|---|---|---|---|---|']
    for claim in CLAIMS[section]:
        values = values_of(claim, figures)
        told = shown(claim, values) if holds(claim, values) else f'**{shown(claim, values)}**'
        file = claim.measure if _is_test(claim) else SCRIPTS[claim.measure][0]
        by = file.partition('.py')[0]
        lines.append(
            f'| {claim.what} | {claim.oracle} | {told} | {bound(claim, values)} | `{by}` |'
        )
    return lines


def page(told: dict[str, Any]) -> str:
    """Return the page with its blocks written anew; a block `run` says when and on what."""

    def block(found: re.Match[str]) -> str:
        lines = _about(told) if found[2] == 'run' else table(found[2], told['figures'])
        return '\n'.join([found[1], *lines, '', found[3]])

    return _BLOCK.sub(block, PAGE.read_text(encoding='utf-8'))


def _about(told: dict[str, Any]) -> list[str]:
    run = told['machine']
    where = f'{run["processor"]}, {run["cpus"]} cores, Python {run["python"]}'
    spent = f'in {told["minutes"]:.0f} minutes'
    return [f'Measured on {told["date"]} {spent} ({where}, load average {run["load"][2]:.0f}).']


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--jobs', type=int, default=2, help='steps at a time, default %(default)s')
    parser.add_argument('--write', action='store_true', help='measure nothing, write the page')
    options = parser.parse_args()
    if not options.write:
        FOLDER.mkdir(parents=True, exist_ok=True)
        wall = FOLDER / 'wall.txt'
        before, began = float(wall.read_text() if wall.exists() else 0.0), time.perf_counter()
        with ThreadPoolExecutor(options.jobs) as pool:
            parts = {name: pool.submit(measured, name) for name in (*SCRIPTS, 'tests')}
            # An interrupted part counts up to the last step that it finished.
            for _ in as_completed(parts.values()):
                seconds = before + time.perf_counter() - began
                wall.write_text(f'{seconds}')
        found = {name: part.result() for name, part in parts.items()}
        told = {
            'date': time.strftime('%Y-%m-%d'),
            'minutes': seconds / 60.0,
            'machine': machine(),
            'seconds': {name: one['seconds'] for name, one in found.items()},
            'figures': {name: one['figures'] for name, one in found.items()},
        }
        FIGURES.write_text(json.dumps(told, indent=1) + '\n', encoding='utf-8')
        shutil.rmtree(FOLDER)
    told = json.loads(FIGURES.read_text(encoding='utf-8'))
    PAGE.write_text(page(told), encoding='utf-8')
    broken = [
        one for group in CLAIMS.values() for one in group
        if not holds(one, values_of(one, told['figures']))
    ]  # fmt: skip
    for one in broken:
        print(f'does not hold: {one.what}: {shown(one, values_of(one, told["figures"]))}')
    sys.exit(bool(broken))


if __name__ == '__main__':
    main()
