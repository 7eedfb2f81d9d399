# SPDX-License-Identifier: Apache-2.0
"""Velocity series keep what they are given, to the last bit, and refuse what is broken."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim2real_eval.common.results import write_csv, write_json
from sim2real_eval.metrics.series import (
    COLUMNS,
    MODEL_FOLDERS,
    SeriesError,
    SeriesKey,
    VelocitySeries,
    read_series,
    read_series_folder,
    write_series,
    write_series_folder,
)
from sim_sensors.core.errors import Sim2RealError
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
        (([0.0, 1.0], [1.0, -1e300], [0.0], [1.0]), r'se_vel\[1\] is -1e\+300.* at most 1e\+15'),
        (([0.0, 1.0], [1.0], [0.0], [1.0]), 'se_time has 2 values and se_vel 1'),
        (([0.0, 1.0], [1.0, 1.0], [0.0, 2.0, 1.0], [1.0] * 3), 'gt_time goes back from 2 s'),
        (([[0.0]], [[1.0]], [0.0], [1.0]), r'shape \(1, 1\)'),
    ],
)
def test_broken_series_are_refused_by_name(
    values: tuple[list[float], ...], complaint: str
) -> None:
    with pytest.raises(SeriesError, match=complaint) as caught:
        VelocitySeries(*values, name='line_1')
    assert isinstance(caught.value, Sim2RealError)
    assert str(caught.value).startswith('line_1: ')
    assert '\n' not in str(caught.value)


def test_series_own_their_values() -> None:
    """A later change of the caller's array does not reach the series, nor can it be written to."""
    time = np.arange(3.0)
    velocity_series = VelocitySeries(time, time, time, time)
    time[0] = -9.0
    assert velocity_series.se_time[0] == 0.0
    with pytest.raises(ValueError, match='read-only'):
        velocity_series.se_vel[0] = 1.0


@given(samples, samples)
def test_files_keep_every_bit(
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


def test_files_are_plain_csv_padded_with_empty_fields(tmp_path: Path) -> None:
    write_series(tmp_path / 'a_1.csv', VelocitySeries([0.0, 0.1], [1.0, 2.0], [0.0], [0.3]))
    text = (tmp_path / 'a_1.csv').read_bytes()
    assert text == b'se_time,se_vel,gt_time,gt_vel\n0.0,1.0,0.0,0.3\n0.1,2.0,,\n'
    assert [path.name for path in tmp_path.iterdir()] == ['a_1.csv']


def published(path: Path, rows: list[tuple[float, float, float, float]]) -> Path:
    with path.open('w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(['', *COLUMNS])
        writer.writerows([index, *row] for index, row in enumerate(rows))
    return path


def test_zero_padded_truth_is_read_as_the_paper_does(tmp_path: Path) -> None:
    rows = [(0.1, 1.0, 0.2, 5.0), (0.2, 2.0, 0.4, 6.0), (0.3, 3.0, 0.0, 0.0)]
    read = read_series(published(tmp_path / 'path_1.csv', rows), drop_zeros=True)
    assert_equal(
        read.series, VelocitySeries([0.1, 0.2, 0.3], [1.0, 2.0, 3.0], [0.2, 0.4], [5.0, 6.0])
    )
    assert read.notes == ()


def test_a_first_sample_of_zero_time_and_speed_is_lost_as_in_the_paper(tmp_path: Path) -> None:
    rows = [(0.0, 0.0, 0.0, 0.0), (0.2, 2.0, 0.4, 6.0), (0.3, 3.0, 0.6, 7.0)]
    read_back = read_series(published(tmp_path / 'path_1.csv', rows), drop_zeros=True).series
    np.testing.assert_array_equal(read_back.gt_time, [0.4, 0.6])
    np.testing.assert_array_equal(read_back.se_time, [0.0, 0.2, 0.3])


def test_a_true_zero_speed_inside_cannot_be_told_from_padding(tmp_path: Path) -> None:
    rows = [(0.1, 1.0, 0.2, 5.0), (0.2, 2.0, 0.4, 0.0), (0.3, 3.0, 0.0, 0.0)]
    with pytest.raises(SeriesError, match='1 zeros in gt_time but 2 in gt_vel'):
        read_series(published(tmp_path / 'path_1.csv', rows), drop_zeros=True)


def test_a_true_zero_speed_and_a_zero_first_time_shift_velocities_and_are_told(
    tmp_path: Path,
) -> None:
    """The hazard of the published layout: numbers of zeros agree, rows do not."""
    rows = [(0.1, 1.0, 0.0, 5.0), (0.2, 2.0, 0.4, 0.0), (0.3, 3.0, 0.6, 7.0)]
    read = read_series(published(tmp_path / 'path_1.csv', rows), drop_zeros=True)
    np.testing.assert_array_equal(read.series.gt_time, [0.4, 0.6])
    np.testing.assert_array_equal(read.series.gt_vel, [5.0, 7.0])  # 5.0 belongs to 0.0
    assert len(read.notes) == 1
    assert 'different rows' in str(read.notes[0])
    loaded = read_series(tmp_path / 'path_1.csv')
    np.testing.assert_array_equal(loaded.series.gt_vel, [5.0, 0.0, 7.0])


def test_zero_padding_without_drop_zeros_is_refused_with_the_remedy(tmp_path: Path) -> None:
    rows = [(0.1, 1.0, 0.2, 5.0), (0.2, 2.0, 0.0, 0.0)]
    with pytest.raises(SeriesError, match='drop_zeros'):
        read_series(published(tmp_path / 'path_1.csv', rows))


def test_lone_nans_are_dropped_in_pairs_and_told(tmp_path: Path) -> None:
    (tmp_path / 'a_1.csv').write_text(
        'se_time,se_vel,gt_time,gt_vel\n0.1,1,0.1,1\n0.2,nan,0.2,2\n0.3,3,,3\n0.4,4,,\n'
    )
    read = read_series(tmp_path / 'a_1.csv')
    np.testing.assert_array_equal(read.series.se_time, [0.1, 0.3, 0.4])
    np.testing.assert_array_equal(read.series.gt_vel, [1.0, 2.0])
    assert [(note.code, note.numbers) for note in read.notes] == [
        ('series.incomplete', {'count': 1})
    ] * 2


@pytest.mark.parametrize(
    ('content', 'complaint'),
    [
        (b'', 'no column se_time'),
        (b'se_time,se_vel,gt_time\n1,2,3\n', 'no column gt_vel'),
        (b'se_time,se_vel,gt_time,gt_vel\n', 'no sample'),
        (b'se_time,se_vel,gt_time,gt_vel\n1,2,3\n', 'line 2: 3 fields'),
        (b'se_time,se_vel,gt_time,gt_vel\n1,fast,3,4\n', "line 2: se_vel: 'fast'"),
        (b'se_time,se_vel,gt_time,gt_vel\n1,inf,3,4\n', r'se_vel\[0\] is inf'),
        (b'\xff\xfe\x00', 'not a text file'),
    ],
)
def test_broken_files_are_refused_by_name(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / 'line_1.csv'
    path.write_bytes(content)
    with pytest.raises(SeriesError, match=complaint) as caught:
        read_series(path)
    assert str(path) in str(caught.value)
    with pytest.raises(SeriesError, match='No such file'):
        read_series(tmp_path / 'line_2.csv')


@given(st.binary(max_size=120))
def test_any_bytes_give_a_series_or_a_clear_refusal(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp('fuzz') / 'line_1.csv'
    path.write_bytes(b'se_time,se_vel,gt_time,gt_vel\n' + content)
    message = ''
    try:
        loaded = read_series(path).series
        assert np.all(np.isfinite(loaded.gt_vel))
    except SeriesError as error:
        message = str(error)
    assert '\n' not in message


def test_folder_round_trip_and_published_names(tmp_path: Path) -> None:
    keys = [
        SeriesKey(source, scenario, run)
        for source in ('real', 'ch_rw', 'my_gps')
        for scenario in ('line', 'up_hill')
        for run in (1, 10, 2)
    ]
    runs = {key: series(1 + index) for index, key in enumerate(keys)}
    for published_names in (False, True):
        folder = write_series_folder(tmp_path / 's', runs, published_names=published_names)
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
    assert [path.name for path in tmp_path.iterdir()] == ['s']


def test_rest_is_skipped_and_told(tmp_path: Path) -> None:
    folder = write_series_folder(
        tmp_path / 's',
        {
            ('real', 'rest', 1): series(),
            ('real', 'sine', 1): series(),
            ('airsim', 'sine', 1): series(),
        },
    )
    (folder / 'Real' / 'README').write_text('hello')
    read = read_series_folder(folder)
    assert {key.scenario for key in read.series} == {'sine'}
    assert any('1 runs of scenario rest left out' in str(note) for note in read.notes)
    assert any('README' in str(note) for note in read.notes)


def test_a_rewritten_folder_holds_no_stale_run(tmp_path: Path) -> None:
    write_series_folder(tmp_path / 's', {('real', 'a', 1): series(), ('real', 'a', 2): series()})
    write_series_folder(tmp_path / 's', {('real', 'a', 1): series()})
    assert list(read_series_folder(tmp_path / 's').series) == [('real', 'a', 1)]
    (tmp_path / 's' / 'thesis.txt').write_text('four years of work')
    with pytest.raises(SeriesError, match=r'thesis\.txt'):
        write_series_folder(tmp_path / 's', {('real', 'a', 1): series()})
    assert (tmp_path / 's' / 'thesis.txt').exists()


@pytest.mark.parametrize(
    'key', [('real', '../x', 1), ('..', 'a', 1), ('', 'a', 1), ('real', 'a', -1), ('m/n', 'a', 1)]
)
def test_labels_that_leave_the_folder_are_refused(
    tmp_path: Path, key: tuple[str, str, int]
) -> None:
    with pytest.raises(SeriesError):
        write_series_folder(tmp_path / 's', {key: series()})
    assert list(tmp_path.iterdir()) == []


def test_missing_empty_and_doubled_folders_are_refused(tmp_path: Path) -> None:
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
    with pytest.raises(SeriesError, match='real line 1 is there twice'):
        read_series_folder(folder)


def test_model_folder_names_are_those_of_models_md_section_7() -> None:
    assert list(MODEL_FOLDERS.items())[:5] == [
        ('ch_gauss', 'chNormal_results'),
        ('ch_rw', 'chWalk_results'),
        ('airsim', 'AirSim_results'),
        ('ch_gauss_airsim', 'chNormal_AirSim_results'),
        ('ch_rw_airsim', 'chWalk_AirSim_results'),
    ]


def test_warm_up_keeps_what_interpolation_needs() -> None:
    trimmed = series().after(1.25, window=2)
    np.testing.assert_allclose(trimmed.se_time[:3], [-0.15, -0.05, 0.05], atol=1e-12)
    np.testing.assert_allclose(trimmed.gt_time[:2], [-0.05, 0.15], atol=1e-12)
    with pytest.raises(SeriesError, match='leaves nothing'):
        series().after(2.8)
    assert series().after(0.0).se_time[0] == 0.0


def test_tables_write_exact_fields_and_replace_whole_files(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / 'new' / 't.csv',
        ['a', 'b', 'c', 'd', 'e'],
        [(np.float64(0.1), np.int64(3), None, 'x,y', True)],
    )
    assert path.read_bytes() == b'a,b,c,d,e\n0.1,3,,"x,y",true\n'
    # A spreadsheet would compute a name that others gave.
    write_csv(path, ['a', 'b'], [('=HYPERLINK("x")', -1.5), ('@x', '-')])
    assert path.read_bytes() == b'a,b\n"\'=HYPERLINK(""x"")",-1.5\n\'@x,-\n'
    write_csv(path, ['a'], [])
    with pytest.raises(ValueError, match='2 fields'):
        write_csv(path, ['a'], [(1, 2)])
    assert path.read_bytes() == b'a\n'
    assert [p.name for p in path.parent.iterdir()] == ['t.csv']


def test_a_record_is_plain_utf8_and_may_be_held_to_what_json_can_say(tmp_path: Path) -> None:
    path = write_json(tmp_path / 'new' / 'r.json', {'runs': ['Straße'], 'rate': np.nan})
    assert path.read_bytes() == '{\n  "runs": [\n    "Straße"\n  ],\n  "rate": NaN\n}\n'.encode()
    before = path.read_bytes()
    with pytest.raises(ValueError, match='not JSON compliant'):
        write_json(path, {'rate': np.inf}, allow_nan=False)
    assert path.read_bytes() == before
