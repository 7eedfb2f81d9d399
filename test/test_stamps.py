# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Stamps that cannot be right: samples that differ are kept, and the rate is that of the sensor.

The white noise of each record is 1 u/sqrt(Hz).
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import call
from gps_standstill_examples import standing

from sim2real_eval.characterization.analysis import analyse
from sim2real_eval.characterization.signal_files import read_signals
from sim2real_eval.characterization.signals import AXES, SignalFileError, Signals, evenly_spaced
from sim2real_eval.characterization.stamps import ordinary_step
from sim2real_eval.recording.writing import write_recording
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.seeding import stream
from sim_sensors.imu.imu import load_imu

N_SAMPLES = 40_000
T = 4_000_000  # ns
RATE = 1e9 / T


def noise(label: str, columns: int = 3) -> FloatArray:
    rng = stream(5, label, 'test', 'stamps')
    return rng.standard_normal((N_SAMPLES, columns)) * np.sqrt(RATE)


def grid() -> IntArray:
    return 1_700_000_000_000_000_000 + T * np.arange(N_SAMPLES)


def even(values: FloatArray, stamps: IntArray) -> Signals:
    axes = AXES[: values.shape[1]]
    return evenly_spaced(Signals('record', axes, values, stamps, None))


def codes(signals: Signals) -> set[str]:
    return {note.code for note in signals.notes} - {'signals.jitter'}


def check_noise(signals: Signals) -> None:
    """The rate is right within 1e-4, and white noise within 4.5 standard errors (7e-6)."""
    assert signals.rate == pytest.approx(RATE, rel=1e-4)
    density = np.diff(signals.values, axis=0).std(axis=0) / np.sqrt(2.0 * signals.rate)
    # The variance of n increments of white noise has a relative standard error of sqrt(3 / n).
    np.testing.assert_allclose(density, 1.0, rtol=4.5 * np.sqrt(0.75 / len(signals)))


@pytest.mark.parametrize('burst', [2, 3, 10])
@pytest.mark.parametrize('spread', [0, 20_000])
@pytest.mark.parametrize('is_late', [False, True])
def test_samples_of_a_burst_are_all_kept(burst: int, spread: int, is_late: bool) -> None:
    """The driver stamps the samples of a burst alike, or 20 us apart."""
    values = noise('burst')
    number = np.arange(N_SAMPLES) // burst * burst + (burst - 1 if is_late else 0)
    stamps = grid()[0] + T * number + spread * (np.arange(N_SAMPLES) % burst)
    record = even(values, stamps)
    assert np.array_equal(record.values, values)
    assert codes(record) == {'signals.stamps_repeated'}
    check_noise(record)


@pytest.mark.parametrize('share', [0.001, 0.02, 0.3])
def test_samples_with_the_stamp_of_the_sample_before_are_kept(share: float) -> None:
    rng = stream(6, 'repeated', 'test', 'stamps')
    values, stamps = noise('repeated'), grid()
    at = 1 + np.flatnonzero(rng.random(N_SAMPLES - 1) < share)
    stamps[at] = stamps[at - 1]
    record = even(values, stamps)
    assert np.array_equal(record.values, values)
    assert codes(record) == {'signals.stamps_repeated'}
    check_noise(record)


@pytest.mark.parametrize('every', [1, 2, 7])
@pytest.mark.parametrize('delay', [0, 5_000, 300_000])
@pytest.mark.parametrize('step', [0.0, 5.0])
def test_copies_are_dropped(every: int, delay: int, step: float) -> None:
    """Each message, each second or each seventh comes again; values are fine or coarse."""
    values, stamps = noise('copies'), grid()
    if step:
        values = np.rint(values / step) * step
    again = np.arange(0, N_SAMPLES, every)
    order = np.sort(np.concatenate([np.arange(N_SAMPLES), again]), kind='stable')
    is_copy = np.concatenate([[False], order[1:] == order[:-1]])
    record = even(values[order] + 1e-7 * is_copy[:, None], stamps[order] + delay * is_copy)
    assert len(record) == N_SAMPLES
    assert codes(record) == {'signals.copies'}
    assert record.rate == pytest.approx(RATE, rel=1e-4)
    if not step:
        check_noise(record)


def test_equal_coarse_values_in_bursts_are_no_copies() -> None:
    """A third of all neighbours are equal by chance, in a column of three levels."""
    values = np.rint(0.5 * noise('coarse', 1) / np.sqrt(RATE))
    assert (np.diff(values[:, 0]) == 0.0).mean() > 0.3
    record = even(values, grid()[np.arange(N_SAMPLES) // 2 * 2])
    assert np.array_equal(record.values, values)


@pytest.mark.parametrize('back', [1_000_000_000, 90_000_000_000_000])
@pytest.mark.parametrize('pieces', [(3000, 37_000), (12_000, 9000, 19_000)])
def test_after_a_restart_of_the_clock_the_longest_piece_is_kept(
    back: int, pieces: tuple[int, ...]
) -> None:
    values, stamps = noise('restart'), grid()
    edges = np.concatenate([[0], np.cumsum(pieces)])
    for edge in edges[1:-1]:
        stamps[edge:] -= back
    record = even(values, stamps)
    k = int(np.argmax(pieces))
    assert np.array_equal(record.values, values[edges[k] : edges[k + 1]])
    assert codes(record) == {'signals.clock_restarts'}
    assert next(n for n in record.notes if n.severity.name == 'DECISIVE').numbers['kept'] == max(
        pieces
    )
    check_noise(record)


def test_samples_out_of_order_are_sorted() -> None:
    values, stamps = noise('order'), grid()
    order = np.arange(N_SAMPLES)
    order[[100, 101]] = [101, 100]
    order[200:204] = [201, 202, 203, 200]
    record = even(values[order], stamps[order])
    assert np.array_equal(record.values, values)
    assert codes(record) == {'signals.out_of_order'}


@pytest.mark.parametrize('at', [0, 1, 777])
def test_a_stamp_ahead_of_its_time_costs_no_sample(at: int) -> None:
    values, stamps = noise('ahead'), grid()
    stamps[at] += 3_600_000_000_000
    record = even(values, stamps)
    assert np.array_equal(record.values, values)
    assert codes(record) == {'signals.stamps_ahead'}
    assert record.rate == pytest.approx(RATE, rel=1e-9)


def test_a_stalled_receiver_misses_no_samples() -> None:
    """Stamps of reception: 12 samples come late, at once, every 400 samples."""
    values, stamps = noise('stall'), grid()
    for start in range(100, N_SAMPLES - 100, 400):
        stamps[start : start + 12] = stamps[start + 12] - T + 50_000 * np.arange(12)
    record = even(values, stamps)
    assert np.array_equal(record.values, values)
    check_noise(record)


def test_lost_samples_are_filled_and_a_gap_cuts_the_record() -> None:
    values, stamps = noise('lost'), grid()
    kept = np.ones(N_SAMPLES, np.bool_)
    kept[[500, 501, 9000]] = False
    kept[20_000:30_000] = False
    record = even(values[kept], stamps[kept])
    assert len(record) == 20_000
    assert codes(record) == {'signals.cut', 'signals.interpolated'}
    untouched = np.delete(np.arange(20_000), [500, 501, 9000])
    assert np.array_equal(record.values[untouched], values[untouched])
    assert record.rate == pytest.approx(RATE, rel=1e-9)


@pytest.mark.parametrize('stamps', [grid()[::-1].copy(), np.full(N_SAMPLES, T)])
def test_stamps_that_never_increase_are_refused(stamps: IntArray) -> None:
    with pytest.raises(SignalFileError, match='--sample-rate'):
        even(noise('never'), stamps)


@pytest.mark.parametrize('gap', [1, 1000, 10**7])
def test_the_ordinary_step_is_found_beside_gaps_and_bursts(gap: int) -> None:
    stamps = grid()
    stamps[1::2] = stamps[::2] + 5000
    stamps[N_SAMPLES // 2 :] += gap * T
    assert ordinary_step(stamps) == 2 * T - 5000


def test_a_bag_with_repeated_stamps_keeps_its_samples(tmp_path: Path) -> None:
    """The noise of the analysis is that of the same bag with right stamps, within 1 %."""
    still = standing(120.0, imu_model=dataclasses.replace(load_imu('bno055'), rate=50.0))
    stamps = still.imu.stamp_ns.copy()
    stamps[1::2] = stamps[:-1:2]
    wrong = still.with_messages('imu', dataclasses.replace(still.imu, stamp_ns=stamps))
    densities = []
    for name, recording in (('right', still), ('wrong', wrong)):
        write_recording(recording, tmp_path / name)
        result = analyse(read_signals(tmp_path / name))
        assert result.rate == pytest.approx(50.0, rel=1e-4)
        densities.append([axis.terms.white.value for axis in result.axes])
        is_told = 'signals.stamps_repeated' in {note.code for note in result.notes}
        assert is_told is (name == 'wrong')
    np.testing.assert_allclose(*densities, rtol=0.01)


@pytest.mark.parametrize('header', ['stamp_ns,wx,wy,wz,ax,ay,az', 'time_ms,gx,gy,gz,ax,ay,az'])
def test_the_remedy_for_a_folder_whose_clock_restarts_works(
    header: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The refusal of the folder names its table, which gives the longest piece."""
    values = noise('folder', 6) * 1e-3
    values[:, 5] += 9.81
    stamps = grid()
    stamps[3000:] -= 90_000_000_000_000
    (tmp_path / 'run').mkdir()
    path = tmp_path / 'run' / 'imu.csv'
    size = 1 if header.startswith('stamp_ns') else 1_000_000
    lines = [
        f'{stamp // size},' + ','.join(map(str, row))
        for stamp, row in zip(stamps, values, strict=True)
    ]
    path.write_text('\n'.join([header, *lines]) + '\n', encoding='utf-8')
    refused = call(capsys, 'allan', tmp_path / 'run', '--no-check')
    assert refused.status == 2
    assert str(path) in refused.err
    done = call(capsys, 'allan', path, '--no-check', '--json')
    assert done.status == 0
    (recording,) = json.loads(done.out)['recordings']
    assert recording['samples'] == N_SAMPLES - 3000
    assert {note['code'] for note in recording['notes']} >= {'signals.clock_restarts'}
