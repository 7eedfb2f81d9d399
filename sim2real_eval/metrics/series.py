# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Velocity series: estimated and true speed of one run, and CSV files and folders of them.

The file has the layout of the processed data published with the VEPD paper: columns se_time,
se_vel (state estimate), gt_time, gt_vel (ground truth). Estimate and truth have different lengths;
the shorter pair is padded with empty fields. The published files pad the truth with zeros, see
`read_series`.
"""

from __future__ import annotations

import csv
import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sim2real_eval.common.findings import Finding
from sim2real_eval.common.results import write_columns
from sim_sensors.core.blocks import seconds
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.input_files import read_input_text
from sim_sensors.core.measurements import FloatArray, OdometryArray
from sim_sensors.core.parameters import LARGEST
from .options import (
    INCOMPLETE,
    NO_SERIES,
    NOT_A_SERIES,
    REAL,
    SCENARIO_SKIPPED,
    SPEED_COMPONENTS,
    ZEROS_DIFFER,
    MetricError,
)

if TYPE_CHECKING:
    from sim2real_eval.judge.estimate import JudgedRun

COLUMNS = ('se_time', 'se_vel', 'gt_time', 'gt_vel')


class SeriesError(Sim2RealError):
    """A velocity series, its file or its folder is not usable."""


@dataclasses.dataclass(frozen=True, eq=False)
class VelocitySeries:
    """Estimated and true speed of one run.

    Attributes
    ----------
    se_time, se_vel : (n,) float
        State estimate: seconds since the start of the run, m/s.
    gt_time, gt_vel : (m,) float
        Ground truth: seconds since the start of the run (the same zero), m/s.
    name : str
        Label of the run or its file, for messages only.

    Raises
    ------
    SeriesError
        When a pair is empty or of unequal lengths, a value is not finite, or time goes backwards.

    Examples
    --------
    >>> VelocitySeries([0.0, 0.1], [1.0, 1.1], [0.0, 0.2], [1.0, 1.2]).duration
    0.1
    """

    se_time: FloatArray
    se_vel: FloatArray
    gt_time: FloatArray
    gt_vel: FloatArray
    name: str = ''

    def __repr__(self) -> str:
        """Return one line, because the arrays have thousands of values."""
        name = f' {self.name}' if self.name else ''
        sizes = f'{len(self.se_time)} estimates, {len(self.gt_time)} of the truth'
        return f'<VelocitySeries{name}: {sizes}, {self.duration:.4g} s>'

    def __post_init__(self) -> None:
        for column in COLUMNS:
            object.__setattr__(self, column, self._check_column(column, getattr(self, column)))
        for time, velocity in (('se_time', 'se_vel'), ('gt_time', 'gt_vel')):
            n, m = len(getattr(self, time)), len(getattr(self, velocity))
            if n != m:
                raise self._error(
                    f'{time} has {n} values and {velocity} {m}; both must have the same number'
                )
            times = getattr(self, time)
            backwards = np.flatnonzero(times[:-1] > times[1:])
            if len(backwards):
                before, after = times[backwards[0] : backwards[0] + 2]
                raise self._error(
                    f'{time} goes back from {before:g} s to {after:g} s; must not decrease'
                )

    def _check_column(self, column: str, values: ArrayLike) -> FloatArray:
        array: FloatArray = np.asarray(values, dtype=np.float64)
        if array.ndim != 1 or len(array) == 0:
            raise self._error(f'{column} has shape {array.shape}; must be (n,) with n >= 1')
        wrong = np.flatnonzero(~(np.abs(array) <= LARGEST))
        if len(wrong):
            value = array[wrong[0]]
            raise self._error(
                f'{column}[{wrong[0]}] is {value:g}; must be finite, at most {LARGEST:g} in size'
            )
        # A copy: the caller may change its array later.
        array = array.copy()
        array.flags.writeable = False
        return array

    def _error(self, problem: str) -> SeriesError:
        return SeriesError(f'{self.name}: {problem}' if self.name else problem)

    @property
    def duration(self) -> float:
        """Seconds from zero to the end of the shorter of estimate and truth."""
        return float(min(self.se_time[-1], self.gt_time[-1]))

    def shift_times(self, se_seconds: float, gt_seconds: float) -> VelocitySeries:
        """Return the series with these seconds subtracted from the times."""
        return dataclasses.replace(
            self, se_time=self.se_time - se_seconds, gt_time=self.gt_time - gt_seconds
        )

    def skip_start(self, seconds: float, *, window: int = 2) -> VelocitySeries:
        """Remove the first `seconds` of estimate and truth; the cut becomes time zero.

        The last truth sample and the last `window` estimates before the cut are kept, with times
        <= 0. The interpolation and the moving average of the metric need them to give the same
        values after the cut as in the whole run. Raises SeriesError if nothing is left.
        """
        if seconds <= 0:
            return self
        if seconds >= self.duration:
            raise self._error(f'warm-up of {seconds:g} s leaves nothing of {self.duration:g} s')
        se = max(int(np.searchsorted(self.se_time, seconds, side='right')) - window, 0)
        gt = max(int(np.searchsorted(self.gt_time, seconds, side='right')) - 1, 0)
        return dataclasses.replace(
            self,
            se_time=self.se_time[se:] - seconds,
            se_vel=self.se_vel[se:],
            gt_time=self.gt_time[gt:] - seconds,
            gt_vel=self.gt_vel[gt:],
        )


class ReadSeries(NamedTuple):
    """A series that was read from a file, and findings about repairs."""

    series: VelocitySeries
    notes: tuple[Finding, ...]


def write_series(path: str | Path, series: VelocitySeries) -> Path:
    """Write a series in the paper's CSV layout, with exact floats and empty padding.

    Examples
    --------
    >>> import tempfile
    >>> series = VelocitySeries([0.0, 0.1], [1.0, 1.1], [0.0, 0.2], [1.0, 1.2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(write_series(f'{folder}/run.csv', series).read_text())
    se_time,se_vel,gt_time,gt_vel
    0.0,1.0,0.0,1.0
    0.1,1.1,0.2,1.2
    <BLANKLINE>
    """
    return write_columns(path, COLUMNS, [getattr(series, column) for column in COLUMNS])


def read_series(path: str | Path, *, drop_zeros: bool = False) -> ReadSeries:
    """Read a series from a file in the paper's CSV layout.

    A row whose time or velocity is empty or NaN holds no sample of that pair. The option
    `drop_zeros` reads the truth as the scripts of the paper do ([SBEL]): every value equal to 0.0
    is dropped from gt_time and, separately, from gt_vel, including true zeros. A file with
    different numbers of zeros in the two columns is refused, because the script of the paper fails
    on it. If the numbers are equal but the rows differ, velocities are paired with the times of
    other samples, which a finding reports.

    Parameters
    ----------
    path : str or Path
        The file; columns other than the four are ignored.
    drop_zeros : bool
        True for the published files, False (default) for ours.

    Raises
    ------
    SeriesError
        When the file is not valid; the message names the line or column.

    Examples
    --------
    >>> import tempfile
    >>> series = VelocitySeries([0.0, 0.1], [1.0, 1.1], [0.0, 0.2], [1.0, 1.2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = read_series(write_series(f'{folder}/run.csv', series)).series
    >>> again.se_vel
    array([1. , 1.1])
    """
    where = str(path)
    table = _columns(Path(path), where)
    notes: list[Finding] = []
    arrays: dict[str, Any] = {}
    for time, velocity in (('se_time', 'se_vel'), ('gt_time', 'gt_vel')):
        pair = _drop_missing(table[time], table[velocity], where, f'{time}, {velocity}', notes)
        if drop_zeros and time == 'gt_time':
            pair = _drop_zeros(*pair, where, notes)
        elif np.any(pair[0] > 0.0) and pair[0][-1] == 0.0:
            raise SeriesError(
                f'{where}: {time} ends in zeros; if the file is zero-padded like the published '
                'ones, use drop_zeros'
            )
        arrays[time], arrays[velocity] = pair
    return ReadSeries(VelocitySeries(**arrays, name=where), tuple(notes))


def _columns(path: Path, where: str) -> dict[str, FloatArray]:
    try:
        text = read_input_text(path)
    except OSError as error:
        raise SeriesError(f'{where}: {error.strerror or error}; must be CSV in UTF-8') from None
    try:
        rows = list(csv.reader(text.splitlines(), strict=True))
    except csv.Error as error:
        raise SeriesError(f'{where}: {error}; must be CSV') from None
    header = [name.strip() for name in rows[0]] if rows else []
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        raise SeriesError(
            f'{where}: no column {", ".join(missing)}; must have {", ".join(COLUMNS)}'
        )
    values: dict[str, list[float]] = {column: [] for column in COLUMNS}
    for line, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        if len(row) != len(header):
            raise SeriesError(
                f'{where}: line {line}: {len(row)} fields; must be {len(header)} (cut off?)'
            )
        for column in COLUMNS:
            text = row[header.index(column)].strip()
            try:
                values[column].append(float(text) if text else np.nan)
            except ValueError:
                raise SeriesError(
                    f'{where}: line {line}: {column}: {text!r} is not a number'
                ) from None
    return {column: np.array(values[column]) for column in COLUMNS}


def _drop_missing(
    time: FloatArray, velocity: FloatArray, where: str, columns: str, notes: list[Finding]
) -> tuple[FloatArray, FloatArray]:
    """Drop incomplete rows; add a finding unless they are only padding at the end."""
    keep = ~(np.isnan(time) | np.isnan(velocity))
    if not np.any(keep):
        raise SeriesError(f'{where}: {columns}: no samples; must have at least one')
    last = int(np.flatnonzero(keep)[-1])
    half_empty = int(np.count_nonzero(np.isnan(time) != np.isnan(velocity)))
    inside = int(np.count_nonzero(~keep[:last]))
    if half_empty or inside:
        notes.append(INCOMPLETE(where, columns=columns, count=max(half_empty, inside)))
    return time[keep], velocity[keep]


def _drop_zeros(
    time: FloatArray, velocity: FloatArray, where: str, notes: list[Finding]
) -> tuple[FloatArray, FloatArray]:
    zero_time, zero_velocity = time == 0.0, velocity == 0.0
    kept_time, kept_velocity = time[~zero_time], velocity[~zero_velocity]
    if len(kept_time) != len(kept_velocity):
        raise SeriesError(
            f'{where}: {np.count_nonzero(zero_time)} zeros in gt_time but '
            f'{np.count_nonzero(zero_velocity)} in gt_vel; drop_zeros needs equal numbers, so at '
            'least one zero is not padding'
        )
    if not len(kept_time):
        raise SeriesError(f'{where}: gt_time, gt_vel: only zeros; must have samples')
    if np.any(zero_time != zero_velocity):
        notes.append(ZEROS_DIFFER(where))
    return kept_time, kept_velocity


def speed(
    linear_velocity_body: ArrayLike, orientation: ArrayLike, component: str = 'horizontal'
) -> FloatArray:
    """Return the speed in odometry messages, of the truth or of an estimate.

    It is partly unknown which velocity the files of [Mahajan2024] hold
    (docs/explanation/metric.md). Horizontal speed is the default because the judge of the paper
    fuses GPS increments, which are world components, as body components. Its forward speed is
    meaningless on a circle, while its horizontal speed is right (docs/explanation/judge.md).
    Horizontal speed has two disadvantages: it does not depend on heading errors, and it is never
    negative, so noise at standstill does not average out.

    Parameters
    ----------
    linear_velocity_body : (n, 3) array_like
        m/s, body frame (x forward, y left, z up), as in nav_msgs/Odometry.
    orientation : (n, 4) array_like
        Quaternions x y z w, body to world (ENU). Not used by `forward`.
    component : {'horizontal', 'forward', 'x', 'y'}
        Norm of the two horizontal components in the world; forward component in the body (signed);
        east or north component in the world (signed).

    Returns
    -------
    (n,) float array
        m/s.

    Raises
    ------
    MetricError
        For an unknown component, wrong shapes, values not finite, or a quaternion of norm zero.

    Examples
    --------
    >>> speed([[3.0, 4.0, 12.0]], [[0.0, 0.0, 0.0, 1.0]])
    array([5.])
    """
    if component not in SPEED_COMPONENTS:
        raise MetricError(
            f'speed component {component!r} is not allowed; must be one of '
            + ', '.join(SPEED_COMPONENTS)
        )
    velocity = _array(linear_velocity_body, 3, 'linear_velocity_body')
    vectors = velocity if component == 'forward' else _rotate_to_world(velocity, orientation)
    if component == 'horizontal':
        return np.asarray(np.hypot(vectors[:, 0], vectors[:, 1]))
    column = {'forward': 0, 'x': 0, 'y': 1}[component]
    return np.array(vectors[:, column])


def _rotate_to_world(velocity: FloatArray, orientation: ArrayLike) -> FloatArray:
    quaternion = _array(orientation, 4, 'orientation')
    if len(quaternion) != len(velocity):
        raise MetricError(
            f'orientation has {len(quaternion)} rows and linear_velocity_body {len(velocity)}; '
            'both must have the same number'
        )
    norms = np.linalg.norm(quaternion, axis=1)
    if np.any(norms < 1e-6):
        index = int(np.flatnonzero(norms < 1e-6)[0])
        raise MetricError(f'orientation[{index}] has norm zero; must be a quaternion x y z w')
    if not len(velocity):
        return np.zeros((0, 3))
    # Programs that only plot series need not load SciPy.
    from scipy.spatial.transform import Rotation

    # SciPy refuses arrays that are read-only.
    return np.asarray(Rotation.from_quat(quaternion.copy()).apply(velocity.copy()))


def _array(values: ArrayLike, width: int, name: str) -> FloatArray:
    array: FloatArray = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != width:
        raise MetricError(f'{name} has shape {array.shape}; must be (n, {width})')
    wrong = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(wrong):
        index = int(wrong[0])
        raise MetricError(f'{name}[{index}] is {array[index].tolist()}; must be finite')
    return array


def velocity_series(
    judged: JudgedRun,
    truth: OdometryArray,
    *,
    origin_ns: int,
    component: str = 'horizontal',
    name: str = '',
) -> VelocitySeries:
    """Return estimated and true speed of one run, with times in seconds since `origin_ns`.

    Raises MetricError if the judge published no estimate, or one that is not finite.
    """
    if not len(judged):
        raise MetricError(f'{name or "run"}: the judge published no estimate')
    if reasons := judged.divergence_findings:
        raise MetricError(f'{name or "run"}: the judge failed, not the recording: {reasons[0]}')

    return VelocitySeries(
        se_time=seconds(judged.stamp_ns, origin_ns),
        se_vel=speed(judged.linear_velocity, judged.orientation, component),
        gt_time=seconds(truth.stamp_ns, origin_ns),
        gt_vel=speed(truth.linear_velocity, truth.orientation, component),
        name=name,
    )


MODEL_FOLDERS: Mapping[str, str] = {
    'ch_gauss': 'chNormal_results',
    'ch_rw': 'chWalk_results',
    'airsim': 'AirSim_results',
    'ch_gauss_airsim': 'chNormal_AirSim_results',
    'ch_rw_airsim': 'chWalk_AirSim_results',
    'baseline': 'baseline_results',
    'gazebo': 'gazebo_results',
}
"""Folder names of the published data by our model names, in the order of the paper."""

PAPER_SCENARIOS: Mapping[str, str] = {'half_sine': 'sine'}
"""Scenario names of the paper by our names, where they differ."""

SCENARIO_FILES: Mapping[str, str] = {'line': 'path', 'circle': 'circle', 'sine': 'sine'}
"""File names of the published data by scenario, in the order of the paper."""

_FILE = re.compile(r'(?P<scenario>.+)_(?P<run>[0-9]+)\.(?:csv|txt)')
_LABEL = re.compile(r'[^/\\\x00-\x1f.][^/\\\x00-\x1f]*')


class SeriesKey(NamedTuple):
    """Key of a series: source (`real` or a model), scenario, and number of the run."""

    source: str
    scenario: str
    run: int


class SeriesFolder(NamedTuple):
    """All series of a folder by key, and findings about skipped files and repairs."""

    series: dict[SeriesKey, VelocitySeries]
    notes: tuple[Finding, ...]


def read_series_folder(
    folder: str | Path, *, drop_zeros: bool = False, skip: tuple[str, ...] = ('rest',)
) -> SeriesFolder:
    """Read a folder of series with `Real` and `Sim`; published names are converted to ours.

    `drop_zeros` is for the published files, see `sim2real_eval.metrics.series.read_series`.
    Scenarios in `skip` are omitted, as `rest` is in the paper; a finding states the number of
    their files. Raises SeriesError for a missing folder, a folder without series, a duplicate run,
    and an unreadable file.
    """
    root = Path(folder)
    if not root.is_dir():
        raise SeriesError(f'{root}: is not a folder; must be one with Real and Sim')
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
            notes.append(NO_SERIES(str(path), source=source))
        for key, file in files:
            if key in series:
                raise SeriesError(
                    f'{file}: {key.source} {key.scenario} {key.run} exists twice '
                    f'(also {series[key].name}); must exist once'
                )
            read = read_series(file, drop_zeros=drop_zeros)
            series[key] = read.series
            notes += read.notes
    if not series:
        raise SeriesError(f'{root}: no series; must hold files <scenario>_<number>.csv')
    return SeriesFolder(series, tuple(notes))


def _rank(name: str, names_of_paper: Mapping[str, str]) -> tuple[int, str]:
    """Return a sort key that puts names of the paper first, in its order."""
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
            notes.append(NOT_A_SERIES(str(path)))
            continue
        scenario = ours.get(match['scenario'], match['scenario'])
        if scenario in skip:
            skipped[scenario] = skipped.get(scenario, 0) + 1
            continue
        files.append((SeriesKey(source, scenario, int(match['run'])), path))
    for scenario, count in skipped.items():
        notes.append(SCENARIO_SKIPPED(str(folder), count=count, scenario=scenario))

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
    """Write series in the published layout into a folder.

    `series` maps `(source, scenario, run)` to a series, see `SeriesKey`; the source `real` goes to
    `Real`. If it is an iterable of pairs, only one series is in memory at a time. The option
    `published_names` gives folders and files the names of the published data (`chWalk_results`,
    `path`), so that the scripts of the paper find them.

    Existing files of the same names are replaced. Raises SeriesError for a label that is not valid
    as a file name.
    """
    target = Path(folder)
    pairs = series.items() if isinstance(series, Mapping) else series
    for (source, scenario, run), run_series in pairs:
        name = series_file(source, scenario, run, published_names=published_names)
        write_series(target / name, run_series)
    for part in ('Real', 'Sim'):
        (target / part).mkdir(parents=True, exist_ok=True)
    return target


def series_file(source: str, scenario: str, run: int, *, published_names: bool = False) -> Path:
    """Return the name of the file of a series in a folder; see `write_series_folder`."""
    for label in (source, scenario):
        if not _LABEL.fullmatch(label):
            raise SeriesError(
                f'{label!r} cannot be part of a file name; must not be empty, contain / or \\, or '
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
