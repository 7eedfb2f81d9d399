# SPDX-License-Identifier: Apache-2.0
"""Folders of velocity series in the layout of the published data.

`Real/<scenario>_<n>.csv` and `Sim/<model>/<scenario>_<n>.csv` ([SBEL]).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from sim2real_eval.common.findings import Finding
from sim2real_eval.common.results import new_folder
from . import findings
from .series import SeriesError, VelocitySeries, read_series, write_series

REAL = 'real'
MODEL_FOLDERS: Mapping[str, str] = {
    'ch_gauss': 'chNormal_results',
    'ch_rw': 'chWalk_results',
    'airsim': 'AirSim_results',
    'ch_gauss_airsim': 'chNormal_AirSim_results',
    'ch_rw_airsim': 'chWalk_AirSim_results',
    'baseline': 'baseline_results',
    'gazebo': 'gazebo_results',
}
"""Our model names to the folder names of the published data, in the order of the paper."""

PAPER_SCENARIOS: Mapping[str, str] = {'half_sine': 'sine'}
"""Our manoeuvres that the paper calls otherwise."""

SCENARIO_FILES: Mapping[str, str] = {'line': 'path', 'circle': 'circle', 'sine': 'sine'}
"""Our scenario names to the file names of the published data, in the order of the paper."""

_FILE = re.compile(r'(?P<scenario>.+)_(?P<run>[0-9]+)\.(?:csv|txt)')
_LABEL = re.compile(r'[^/\\\x00-\x1f.][^/\\\x00-\x1f]*')


class SeriesKey(NamedTuple):
    """Run that a series belongs to: source (`real` or a model), scenario, number of the run."""

    source: str
    scenario: str
    run: int


class SeriesFolder(NamedTuple):
    """All series of a folder by key, and what was skipped or repaired, one line each."""

    series: dict[SeriesKey, VelocitySeries]
    notes: tuple[Finding, ...]


def read_series_folder(
    folder: str | Path, *, drop_zeros: bool = False, skip: tuple[str, ...] = ('rest',)
) -> SeriesFolder:
    """Read a folder of series, with `Real` and `Sim`; published folder and scenario names become
    ours.

    `drop_zeros` is for the published files, see `sim2real_eval.metrics.series.read_series`.
    Scenarios of `skip` are left out, as the paper leaves out `rest`; how many files is said in a
    note. No such folder, no series in it, the same run twice, or a file that cannot be read is a
    SeriesError.
    """
    root = Path(folder)
    if not root.is_dir():
        raise SeriesError(f'{root}: is no folder; must hold Real and Sim')
    real, sim = root / 'Real', root / 'Sim'
    for part in (real, sim):
        if not part.is_dir():
            raise SeriesError(f'{root}: no folder {part.name}; must hold Real and Sim')
    ours = {published: model for model, published in MODEL_FOLDERS.items()}
    models = [(ours.get(path.name, path.name), path) for path in sim.iterdir() if path.is_dir()]
    sources = [(REAL, real), *sorted(models, key=lambda item: _rank(item[0], MODEL_FOLDERS))]
    series: dict[SeriesKey, VelocitySeries] = {}
    notes: list[Finding] = []
    for source, path in sources:
        files = list(_files(source, path, skip, notes))
        if not files:
            notes.append(findings.NO_SERIES(str(path), source=source))
        for key, file in files:
            if key in series:
                raise SeriesError(
                    f'{file}: {key.source} {key.scenario} {key.run} is there twice '
                    f'(also {series[key].name}); must be there once'
                )
            read = read_series(file, drop_zeros=drop_zeros)
            series[key] = read.series
            notes += read.notes
    if not series:
        raise SeriesError(f'{root}: no series; must hold files <scenario>_<number>.csv')
    return SeriesFolder(series, tuple(notes))


def _rank(name: str, names_of_paper: Mapping[str, str]) -> tuple[int, str]:
    """Return a sort key: names of the paper in its order, then the other names."""
    order = list(names_of_paper)
    return (order.index(name) if name in order else len(order), name)


def _files(
    source: str, folder: Path, skip: tuple[str, ...], notes: list[Finding]
) -> Iterator[tuple[SeriesKey, Path]]:
    ours = {published: scenario for scenario, published in SCENARIO_FILES.items()}
    files: list[tuple[SeriesKey, Path]] = []
    skipped: dict[str, int] = {}
    for path in sorted(folder.iterdir()):
        match = _FILE.fullmatch(path.name)
        if match is None or not path.is_file():
            notes.append(findings.NOT_A_SERIES(str(path)))
            continue
        scenario = ours.get(match['scenario'], match['scenario'])
        if scenario in skip:
            skipped[scenario] = skipped.get(scenario, 0) + 1
            continue
        files.append((SeriesKey(source, scenario, int(match['run'])), path))
    for scenario, count in skipped.items():
        notes.append(findings.SCENARIO_SKIPPED(str(folder), count=count, scenario=scenario))

    yield from sorted(
        files, key=lambda item: (_rank(item[0].scenario, SCENARIO_FILES), item[0].run)
    )


_Key = tuple[str, str, int]


def write_series_folder(
    folder: str | Path,
    series: Mapping[_Key, VelocitySeries] | Iterable[tuple[_Key, VelocitySeries]],
    *,
    published_names: bool = False,
) -> Path:
    """Write series in the published layout; the folder holds these series and no others.

    `series` are by `(source, scenario, run)`, see `SeriesKey`, or pairs of both, of which then one
    is in memory at a time; source `real` is the real set. The
    option `published_names` gives folders the names of the published data (`chWalk_results`,
    `path`) where there is one, so that the paper's scripts find the files.

    The whole folder is written under a temporary name and then moved. An older folder of series is
    replaced, so that no stale run slips into a recomputation; a folder that holds anything else is
    refused, as is a label that cannot be a file name (SeriesError).
    """
    target = Path(folder)
    _layout_only(target)
    with new_folder(target, lambda: _layout_only(target)) as fresh:
        for part in ('Real', 'Sim'):
            (fresh / part).mkdir(parents=True)
        pairs = series.items() if isinstance(series, Mapping) else series
        for (source, scenario, run), run_series in pairs:
            write_series(fresh / _file_name(source, scenario, run, published_names), run_series)
    return target


def _file_name(source: str, scenario: str, run: int, published_names: bool) -> Path:
    for label in (source, scenario):
        if not _LABEL.fullmatch(label):
            raise SeriesError(
                f'{label!r} cannot be part of a file name; must not be empty, hold / or \\ or '
                'begin with a dot'
            )
    if run < 0:
        raise SeriesError(f'{scenario}: run {run}; must be >= 0')
    if published_names:
        scenario = PAPER_SCENARIOS.get(scenario, scenario)
        scenario = SCENARIO_FILES.get(scenario, scenario)
    name = f'{scenario}_{run}.csv'
    if source == REAL:
        return Path('Real', name)
    return Path('Sim', MODEL_FOLDERS.get(source, source) if published_names else source, name)


def _layout_only(target: Path) -> bool:
    """Say whether an older folder is there; refuse one with anything but series in it."""
    if not target.exists():
        return False
    inside = sorted(target.rglob('*')) if target.is_dir() else [target]
    for path in inside:
        if not target.is_dir() or not _belongs(path.relative_to(target)):
            raise SeriesError(f'{path}: not a series; {target} must hold nothing else')
    return True


def _belongs(path: Path) -> bool:
    head, depth = path.parts[0], len(path.parts)
    if head not in ('Real', 'Sim'):
        return False
    file_depth = 2 if head == 'Real' else 3
    return depth < file_depth or (depth == file_depth and bool(_FILE.fullmatch(path.name)))
