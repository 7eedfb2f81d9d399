# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Velocity series are stored to the last bit; broken series are refused."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim2real_eval.common.results import write_csv, write_json
from sim2real_eval.metrics.series import (
    COLUMNS,
    SeriesError,
    SeriesKey,
    VelocitySeries,
    read_series,
    read_series_folder,
    write_series,
    write_series_folder,
)
from sim_sensors.core.parameters import LARGEST

finite = st.floats(-LARGEST, LARGEST)
samples = st.lists(st.tuples(finite, finite), min_size=1, max_size=20).map(
    lambda pairs: sorted(pairs, key=lambda pair: pair[0])
)


def series(scale: float = 1.0, n: int = 30) -> VelocitySeries:
    se = np.arange(n) / 10
    gt = np.arange(n // 2) / 5
    return VelocitySeries(se, scale * np.cos(se), gt, scale * np.sin(gt))


def assert_equal(first: VelocitySeries, second: VelocitySeries) -> None:
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(first, column), getattr(second, column))


@pytest.mark.parametrize(
    ('values', 'complaint'),
    [
        (([], [], [0.0], [1.0]), 'se_time'),
        (([0.0, np.nan], [1.0, 1.0], [0.0], [1.0]), r'se_time\[1\] is nan'),
        (([0.0, 1.0], [1.0, np.inf], [0.0], [1.0]), r'se_vel\[1\] is inf'),
        (([0.0, 1.0], [1.0, -1e300], [0.0], [1.0]), r'se_vel\[1\]'),
        (([0.0, 1.0], [1.0], [0.0], [1.0]), 'se_vel'),
        (([0.0, 1.0], [1.0, 1.0], [0.0, 2.0, 1.0], [1.0] * 3), 'gt_time'),
        (([[0.0]], [[1.0]], [0.0], [1.0]), r'shape \(1, 1\)'),
    ],
)
def test_broken_series_are_refused_by_name(values: tuple[Any, ...], complaint: str) -> None:
    with pytest.raises(SeriesError, match=f'^line_1: .*{complaint}'):
        VelocitySeries(*values, name='line_1')


@given(samples, samples)
def test_series_are_read_back_from_files_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory,
    se: list[tuple[float, float]],
    gt: list[tuple[float, float]],
) -> None:
    written = VelocitySeries(*zip(*se, strict=True), *zip(*gt, strict=True))
    path = tmp_path_factory.mktemp('bits') / 'line_1.csv'
    write_series(path, written)
    read = read_series(path)
    assert_equal(read.series, written)
    assert read.notes == ()


def published(path: Path, rows: list[tuple[float, float, float, float]]) -> Path:
    with path.open('w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(['', *COLUMNS])
        writer.writerows([index, *row] for index, row in enumerate(rows))
    return path


def test_zero_padded_truth_is_read_like_in_the_paper(tmp_path: Path) -> None:
    rows = [(0.1, 1.0, 0.2, 5.0), (0.2, 2.0, 0.4, 6.0), (0.3, 3.0, 0.0, 0.0)]
    read = read_series(published(tmp_path / 'path_1.csv', rows), drop_zeros=True)
    assert_equal(
        read.series, VelocitySeries([0.1, 0.2, 0.3], [1.0, 2.0, 3.0], [0.2, 0.4], [5.0, 6.0])
    )
    assert read.notes == ()


def test_a_first_sample_of_zero_time_and_speed_is_dropped_like_in_the_paper(
    tmp_path: Path,
) -> None:
    rows = [(0.0, 0.0, 0.0, 0.0), (0.2, 2.0, 0.4, 6.0), (0.3, 3.0, 0.6, 7.0)]
    read_back = read_series(published(tmp_path / 'path_1.csv', rows), drop_zeros=True).series
    np.testing.assert_array_equal(read_back.gt_time, [0.4, 0.6])
    np.testing.assert_array_equal(read_back.se_time, [0.0, 0.2, 0.3])


def test_a_single_row_of_padding_is_refused_where_zeros_are_kept(tmp_path: Path) -> None:
    rows = [(0.1, 1.0, 0.2, 5.0), (0.2, 2.0, 0.0, 0.0)]
    with pytest.raises(SeriesError, match='drop_zeros'):
        read_series(published(tmp_path / 'path_1.csv', rows), drop_zeros=False)


def test_a_zero_speed_before_the_padding_is_refused(tmp_path: Path) -> None:
    rows = [(0.1, 1.0, 0.2, 5.0), (0.2, 2.0, 0.4, 0.0), (0.3, 3.0, 0.0, 0.0)]
    with pytest.raises(SeriesError, match='gt_vel'):
        read_series(published(tmp_path / 'path_1.csv', rows), drop_zeros=True)


def test_zeros_of_speed_and_time_in_different_rows_cause_a_finding(tmp_path: Path) -> None:
    """The hazard of the published layout: numbers of zeros agree, rows do not."""
    rows = [(0.1, 1.0, 0.0, 5.0), (0.2, 2.0, 0.4, 0.0), (0.3, 3.0, 0.6, 7.0)]
    read = read_series(published(tmp_path / 'path_1.csv', rows), drop_zeros=True)
    np.testing.assert_array_equal(read.series.gt_time, [0.4, 0.6])
    np.testing.assert_array_equal(read.series.gt_vel, [5.0, 7.0])  # 5.0 belongs to 0.0
    assert len(read.notes) == 1
    loaded = read_series(tmp_path / 'path_1.csv')
    np.testing.assert_array_equal(loaded.series.gt_vel, [5.0, 0.0, 7.0])


def test_lone_nans_are_dropped_in_pairs_with_a_finding(tmp_path: Path) -> None:
    (tmp_path / 'a_1.csv').write_text(
        'se_time,se_vel,gt_time,gt_vel\n0.1,1,0.1,1\n0.2,nan,0.2,2\n0.3,3,,3\n0.4,4,,\n'
    )
    read = read_series(tmp_path / 'a_1.csv')
    np.testing.assert_array_equal(read.series.se_time, [0.1, 0.3, 0.4])
    np.testing.assert_array_equal(read.series.gt_vel, [1.0, 2.0])
    assert [note.code for note in read.notes] == ['series.incomplete'] * 2


@pytest.mark.parametrize(
    ('content', 'complaint'),
    [
        (b'', 'no column se_time'),
        (b'se_time,se_vel,gt_time\n1,2,3\n', 'no column gt_vel'),
        (b'se_time,se_vel,gt_time,gt_vel\n', 'no sample'),
        (b'se_time,se_vel,gt_time,gt_vel\n1,2,3\n', 'line 2: 3 fields'),
        (b'se_time,se_vel,gt_time,gt_vel\n1,fast,3,4\n', "line 2: se_vel: 'fast'"),
        (b'se_time,se_vel,gt_time,gt_vel\n1,inf,3,4\n', r'se_vel\[0\] is inf'),
        (b'\xff\xfe\x00', 'not UTF-8 text'),
    ],
)
def test_broken_files_are_refused_by_name(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / 'line_1.csv'
    path.write_bytes(content)
    with pytest.raises(SeriesError, match=complaint) as caught:
        read_series(path)
    assert str(path) in str(caught.value)


def test_folders_in_our_and_the_published_layout_are_read_back(tmp_path: Path) -> None:
    keys = [
        SeriesKey(source, scenario, run)
        for source in ('real', 'ch_rw', 'my_gps')
        for scenario in ('line', 'up_hill')
        for run in (1, 10, 2)
    ]
    runs = {key: series(1 + index) for index, key in enumerate(keys)}
    for published_names in (False, True):
        folder = write_series_folder(
            tmp_path / f's{published_names}', runs, published_names=published_names
        )
        names = {str(path.relative_to(folder)) for path in folder.rglob('*.csv')}
        assert len(names) == len(runs)
        model, scenario = ('chWalk_results', 'path') if published_names else ('ch_rw', 'line')
        assert {f'Real/{scenario}_10.csv', f'Sim/{model}/up_hill_2.csv'} <= names
        read = read_series_folder(folder)
        assert set(read.series) == set(runs)
        assert read.notes == ()
        for key, velocity_series in runs.items():
            assert_equal(read.series[key], velocity_series)
    order = list(read.series)
    assert [key.source for key in order[::6]] == ['real', 'ch_rw', 'my_gps']
    assert [key.run for key in order[:3]] == [1, 2, 10]
    assert {path.name for path in tmp_path.iterdir()} == {'sFalse', 'sTrue'}


def test_runs_at_rest_are_skipped_with_a_finding(tmp_path: Path) -> None:
    keys = [('real', 'rest', 1), ('real', 'sine', 1), ('airsim', 'sine', 1)]
    folder = write_series_folder(tmp_path / 's', {key: series() for key in keys})
    read = read_series_folder(folder)
    assert {key.scenario for key in read.series} == {'sine'}
    assert [note.code for note in read.notes] == ['series.scenario_skipped']


def test_a_rewritten_folder_keeps_files_of_other_names(tmp_path: Path) -> None:
    write_series_folder(tmp_path, {('real', 'a', 1): series(1)})
    (tmp_path / 'Real' / 'a_2.csv').write_text('four years of work')
    write_series_folder(tmp_path, {('real', 'a', 1): series(2)})
    assert_equal(read_series(tmp_path / 'Real' / 'a_1.csv').series, series(2))
    assert (tmp_path / 'Real' / 'a_2.csv').read_text() == 'four years of work'


@pytest.mark.parametrize(
    'key', [('real', '../x', 1), ('..', 'a', 1), ('', 'a', 1), ('real', 'a', -1), ('m/n', 'a', 1)]
)
def test_labels_that_leave_the_folder_are_refused(
    tmp_path: Path, key: tuple[str, str, int]
) -> None:
    with pytest.raises(SeriesError):
        write_series_folder(tmp_path / 's', {key: series()})
    assert list(tmp_path.iterdir()) == []


def test_missing_empty_and_ambiguous_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SeriesError, match='no folder Real'):
        read_series_folder(tmp_path)
    folder = write_series_folder(tmp_path / 's', {})
    with pytest.raises(SeriesError, match='no series'):
        read_series_folder(folder)
    write_series(folder / 'Real' / 'path_1.csv', series())
    (folder / 'Sim' / 'ch_rw').mkdir()
    (finding,) = read_series_folder(folder).notes
    assert (finding.code, finding.words['source']) == ('series.none', 'ch_rw')
    write_series(folder / 'Real' / 'line_1.csv', series())
    with pytest.raises(SeriesError, match='real line 1'):
        read_series_folder(folder)


def test_warm_up_keeps_the_samples_that_interpolation_needs() -> None:
    trimmed = series().skip_start(1.25, window=2)
    np.testing.assert_allclose(trimmed.se_time[:3], [-0.15, -0.05, 0.05], atol=1e-12)
    np.testing.assert_allclose(trimmed.gt_time[:2], [-0.05, 0.15], atol=1e-12)
    with pytest.raises(SeriesError, match='leaves nothing'):
        series().skip_start(2.8)
    assert series().skip_start(0.0).se_time[0] == 0.0


def test_a_cell_that_begins_a_formula_is_escaped_for_spreadsheets(tmp_path: Path) -> None:
    path = write_csv(tmp_path / 't.csv', ['a', 'b'], [('=HYPERLINK("x")', -1.5), ('@x', '-')])
    assert path.read_bytes() == b'a,b\n"\'=HYPERLINK(""x"")",-1.5\n\'@x,-\n'


def test_a_failed_write_of_a_table_or_record_keeps_the_previous_file(tmp_path: Path) -> None:
    table = write_csv(tmp_path / 't.csv', ['a'], [])
    with pytest.raises(ValueError, match='2 fields'):
        write_csv(table, ['a'], [(1, 2)])
    record = write_json(tmp_path / 'r.json', {'rate': 1.0})
    before = record.read_bytes()
    with pytest.raises(ValueError, match='JSON'):
        write_json(record, {'rate': np.inf}, allow_nan=False)
    assert (table.read_bytes(), record.read_bytes()) == (b'a\n', before)
