# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""`sim2real judge --consistency`: its table, JSON and plot; the estimate stays the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call, run_of, write_runs

from sim2real_eval.metrics.consistency import Squares
from sim2real_eval.metrics.options import MetricError
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.report.consistency import consistency_figure

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope='module')
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_runs(tmp_path_factory.mktemp('bags'), ('drive_line', 1), ('drive_line', 2))


def test_the_option_consistency_adds_a_table_and_a_plot_to_an_unchanged_estimate(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    judge = ['judge', bags[0], '--config', 'clean']
    plain, out = tmp_path / 'plain' / 'line_1.csv', tmp_path / 'line_1.csv'
    assert call(capsys, *judge, '--out', plain.parent).status == 0
    outcome = call(capsys, *judge, '--consistency', '--out', tmp_path)
    assert outcome.status == 0
    assert out.read_bytes() == plain.read_bytes()
    for name in ('NIS odom0 pose', 'NIS imu0 twist', 'NEES position', 'NEES angular velocity'):
        assert name in outcome.out
    plot = tmp_path / 'line_1_consistency.png'
    assert plot.is_file()
    out.unlink()
    again = call(capsys, *judge, '--consistency', '--out', tmp_path)
    assert again.status == 2
    assert str(plot) in again.complaints[0]
    assert not out.exists()


@pytest.mark.usefixtures('blank_pictures')
def test_json_output_has_the_rows_of_the_table(
    bags: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    outcome = call(
        capsys, 'judge', bags[0], '--config', 'clean', '--consistency', '--json', '--out',
        tmp_path / 'estimate',
    )  # fmt: skip
    assert outcome.status == 0
    (summary,) = json.loads(outcome.out)
    rows = {row['name']: row for row in summary['consistency']}
    assert len(rows) == 8
    velocity = rows['NEES velocity']
    assert velocity['freedom'] == 2.0
    assert 1.0 <= velocity['effective'] <= velocity['samples']
    assert velocity['lower'] < 1.0 < velocity['upper']
    assert velocity['verdict'] in ('consistent', 'overconfident', 'underconfident')
    assert Path(summary['consistency_plot']).is_file()


@pytest.mark.usefixtures('blank_pictures')
def test_several_runs_share_one_table(bags: list[Path], tmp_path: Path, capsys: Capture) -> None:
    outcome = call(
        capsys, 'judge', *bags, '--config', 'clean', '--consistency', '--out', tmp_path / 'runs'
    )
    assert outcome.status == 0
    assert outcome.out.count('NEES velocity') == 3
    outcome = call(
        capsys, 'judge', *bags, '--config', 'clean', '--consistency', '--out', tmp_path / 'more',
        '--json',
    )  # fmt: skip
    *single, together = json.loads(outcome.out)
    assert together['recordings'] == [summary['recording'] for summary in single]
    rows = {row['name']: row for row in together['consistency']}
    assert rows['NEES velocity']['freedom'] == 4.0


@pytest.mark.usefixtures('blank_pictures')
def test_without_truth_only_nis_is_reported(tmp_path: Path, capsys: Capture) -> None:
    bag = tmp_path / 'blind'
    write_recording(run_of('drive_line', 1).with_messages('truth', None), bag)
    outcome = call(
        capsys, 'judge', bag, '--config', 'clean', '--consistency', '--out', tmp_path / 'x'
    )
    assert outcome.status == 0
    assert 'NIS odom0 pose' in outcome.out
    assert 'NEES' not in outcome.out


@pytest.mark.parametrize('n', [3, 400, 200_000])
def test_the_running_mean_covers_a_twentieth_of_the_series(n: int) -> None:
    """The oracle is the mean of each window; a long series is drawn at up to 1,900 places."""
    values = np.random.default_rng(1).chisquare(3, n)
    values[n // 3] = 1e12
    stamp = np.arange(n, dtype=np.int64) * 10_000_000
    squares = Squares('NIS', stamp, values, np.full(n, 3), correlated=False)
    (panel,) = consistency_figure([squares]).axes
    mean = next(line for line in panel.lines if line.get_color() == '#D55E00')
    middle, plotted = mean.get_data()
    window = min(max(n // 20, 5), n)
    first = np.round(100.0 * np.asarray(middle) - 0.5 * (window - 1)).astype(int)
    assert (first[0], first[-1]) == (0, n - window)
    assert np.diff(first).max(initial=1) <= max(n // 1900, 1)
    every = [min(values[k : k + window].mean() / 3.0, 1e6) for k in first[:: max(n // 5000, 1)]]
    np.testing.assert_allclose(plotted[:: max(n // 5000, 1)], every, rtol=1e-9)


def test_a_series_of_one_sample_is_plotted() -> None:
    stamp, freedom = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    single = Squares('NIS imu0 pose', stamp, np.zeros(1), freedom, correlated=False)
    empty = Squares('NEES position', stamp[:0], np.zeros(0), freedom[:0], correlated=True)
    assert len(consistency_figure([single, empty]).axes) == 1
    with pytest.raises(MetricError, match='no samples'):
        consistency_figure([empty])
