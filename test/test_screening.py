# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Gaps, repeats, motion and outliers are removed from a record before its analysis."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim2real_eval.characterization.analysis import analyse, prepared
from sim2real_eval.characterization.options import AllanOptions
from sim2real_eval.characterization.screening import longest_standstill, resolution, screen
from sim2real_eval.characterization.signals import AXES, SignalFileError, Signals, evenly_spaced
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.seeding import stream


def noise(label: str, n: int, columns: int | None = None) -> FloatArray:
    rng = stream(11, label, 'test', 'screening')
    return rng.standard_normal(n if columns is None else (n, columns))


def signals(
    values: FloatArray, *, rate: float | None = 100.0, stamps: IntArray | None = None
) -> Signals:
    return Signals('static', AXES[: values.shape[1]], values, stamps, rate)


def test_the_rule_of_the_thesis_reduces_clean_noise_by_13_5_percent() -> None:
    """+-2.02 sigma: 4.3 % replaced; 1e6 samples know the deviation to 0.0007, hence 4 sigma."""
    screened = screen(noise('iqr', 1_000_000), 100.0, 'iqr')
    assert screened.replaced / 1e6 == pytest.approx(0.0430, abs=0.001)
    assert screened.gaussian_ratio == pytest.approx(0.865, abs=5e-4)
    assert screened.noise_ratio == pytest.approx(screened.gaussian_ratio, abs=0.003)
    wide = screen(noise('iqr', 1_000_000), 100.0, 'iqr', factor=1.5)
    assert wide.replaced / 1e6 == pytest.approx(0.00698, abs=0.0005)


def test_the_robust_rule_does_not_change_clean_noise() -> None:
    values = noise('clean', 1_000_000)
    screened = screen(values, 100.0)
    assert screened.replaced == 0
    assert screened.values is values
    assert screened.gaussian_ratio == pytest.approx(1.0, abs=1e-6)


def test_the_robust_rule_detects_spikes_on_a_drifting_bias() -> None:
    """The drift is 50 times the noise, so no rule over the whole record would see them."""
    n = 100_000
    values = noise('drift', n) + np.linspace(0.0, 50.0, n)
    spikes = np.arange(500, n, 7919)
    values[spikes] += 20.0
    screened = screen(values, 100.0)
    assert screened.replaced == len(spikes)
    assert screened.largest == pytest.approx(20.0, abs=5.0)
    assert np.abs(screened.values - np.linspace(0.0, 50.0, n))[spikes].max() < 1.0
    assert screened.noise_ratio < 0.99
    assert screen(values, 100.0, 'iqr').replaced < len(spikes) / 2


def test_values_within_one_quantisation_step_are_not_outliers() -> None:
    """Most are the same, so the median absolute deviation is 0."""
    coarse = np.rint(0.3 * noise('coarse', 20_000)) * 0.05
    assert np.median(np.abs(coarse)) == 0.0
    assert resolution(coarse) == pytest.approx(0.05)
    assert screen(coarse, 100.0).replaced == 0
    coarse[777] = 5.0
    assert screen(coarse, 100.0).replaced == 1


@given(st.floats(1e-6, 1e3), st.floats(-10.0, 10.0), st.booleans())
def test_the_resolution_is_found_in_any_unit(step: float, offset: float, single: bool) -> None:
    levels = np.rint(2.0 * noise('levels', 3000) + offset)
    values = levels * step
    if single:
        values = values.astype(np.float32).astype(np.float64)
    assert resolution(values) == pytest.approx(step, rel=0.01)


def test_continuous_values_have_no_resolution() -> None:
    assert resolution(noise('fine', 10_000)) == 0.0
    assert resolution(np.zeros(100)) == 0.0


def even_stamps(n: int, rate: float = 100.0) -> IntArray:
    return np.rint(np.arange(n) * 1e9 / rate).astype(np.int64) + 1_700_000_000_000_000_000


def test_repeated_stamps_are_dropped_and_short_gaps_are_filled() -> None:
    n = 1000
    values = np.arange(n, dtype=np.float64)[:, None] * np.ones(3)
    keep = np.ones(n, dtype=bool)
    keep[[100, 101, 500]] = False
    stamps, rows = even_stamps(n)[keep], values[keep]
    twice = np.insert(np.arange(len(stamps)), 50, 49)
    even = evenly_spaced(signals(rows[twice], rate=None, stamps=stamps[twice]))
    np.testing.assert_allclose(even.values, values)
    assert even.stamp_ns is None
    assert even.rate == pytest.approx(100.0, rel=1e-9)
    assert [note.numbers['count'] for note in even.notes] == [1, 3]


def test_a_stamp_far_ahead_drops_only_its_sample() -> None:
    """An hour ahead at sample 300 of a ramp; the straight line puts it back."""
    values = np.arange(1000.0)[:, None] * np.ones(3)
    stamps = even_stamps(1000)
    stamps[300] += 3_600_000_000_000
    even = evenly_spaced(signals(values, rate=None, stamps=stamps))
    np.testing.assert_allclose(even.values, values)
    assert even.rate == pytest.approx(100.0, rel=1e-9)
    assert even.notes[0].code == 'signals.stamps_ahead'


def test_after_a_long_gap_the_longer_piece_is_kept() -> None:
    values = noise('gap', 1000, 3)
    keep = np.r_[0:300, 320:1000]
    even = evenly_spaced(signals(values[keep], rate=None, stamps=even_stamps(1000)[keep]))
    assert np.array_equal(even.values, values[320:])


def test_jitter_causes_a_finding_and_the_mean_rate_is_used() -> None:
    shake = np.rint(1e6 * noise('jitter', 5000)).astype(np.int64)
    values = noise('jitter', 5000, 3)
    even = evenly_spaced(signals(values, rate=None, stamps=even_stamps(5000) + shake))
    assert len(even) == 5000
    assert even.rate == pytest.approx(100.0, rel=1e-4)
    assert len(even.notes) == 1
    with pytest.raises(SignalFileError, match='too few'):
        evenly_spaced(signals(noise('few', 5, 3), rate=None, stamps=even_stamps(5)))


def at_rest(seconds: int, label: str = 'rest') -> FloatArray:
    values = noise(label, 100 * seconds, 6) * np.array([0.01] * 3 + [0.05] * 3)
    values[:, 5] += 9.8
    return values


def test_a_record_at_rest_is_kept_completely() -> None:
    record = signals(at_rest(600))
    assert prepared(record, AllanOptions()) is record


def test_the_longest_standstill_of_a_drive_is_found() -> None:
    """20 s at rest, a drive with turns, 60 s at rest in another place, a steady turn."""
    values = np.concatenate([at_rest(20), at_rest(30), at_rest(60), at_rest(20)])
    drive = slice(2000, 5000)
    time = np.arange(3000) / 100.0
    values[drive, 2] += 0.4 * np.sin(time)
    values[drive, 3:] += noise('road', 3000, 3)
    values[11000:, 2] += 0.3
    standstill = longest_standstill(signals(values), 100.0)
    assert (standstill.start, standstill.stop) == (5000, 11000)
    assert standstill.still == 80
    prepared_record = prepared(signals(values), AllanOptions())
    assert len(prepared_record) == 6000
    whole = prepared(signals(values), AllanOptions(reject_motion=False))
    assert len(whole) == len(values)


def test_a_steady_drive_of_known_speed_is_not_a_standstill() -> None:
    """Nothing in rates and accelerations differs; speeds go where their samples go."""
    motion = np.where(np.arange(9000) < 5000, 8.0, 0.05)[:, None] * np.array([1.0, 0.0])
    drive = dataclasses.replace(
        signals(at_rest(90), rate=None, stamps=even_stamps(9000)), motion=motion
    )
    prepared_record = prepared(drive, AllanOptions())
    assert len(prepared_record) == 4000
    assert (prepared_record.motion[:, 0] == 0.05).all()
    blind = dataclasses.replace(drive, motion=None)
    assert len(prepared(blind, AllanOptions())) == 9000


def test_a_slowly_changing_bias_is_not_classified_as_motion() -> None:
    values = at_rest(300)
    values[:, 0] += np.linspace(0.0, 0.01, len(values))
    standstill = longest_standstill(signals(values), 100.0)
    assert (standstill.start, standstill.stop) == (0, len(values))


@pytest.mark.parametrize('rate', [5.0, 20.0, 1000.0])
def test_a_standstill_is_detected_at_any_rate_and_resolution(rate: float) -> None:
    """Short windows scatter, and coarse values have windows without any noise."""
    fine = noise(f'rest {rate:g}', 20_000, 6) * 0.01
    assert longest_standstill(signals(fine), rate).stop == 20_000
    coarse = np.rint(fine / 0.03) * 0.03
    standstill = longest_standstill(signals(coarse), rate)
    assert (standstill.start, standstill.stop) == (0, 20_000)


def test_a_record_that_never_rests_is_refused() -> None:
    values = at_rest(30) + 3.0 * noise('shaking', 3000, 6)
    with pytest.raises(SignalFileError, match='never stands still'):
        longest_standstill(signals(values), 100.0)
    with pytest.raises(SignalFileError, match='too short'):
        longest_standstill(signals(at_rest(2)), 100.0)


def test_outliers_and_a_constant_axis_cause_findings() -> None:
    values = at_rest(100)
    values[5000, 0] = 3.0
    values[:, 4] = 0.0
    result = analyse(signals(values), AllanOptions(points=20))
    axes = [axis_result.axis for axis_result in result.axes]
    assert axes == [axis for axis in AXES if axis != 'accelerometer_y']
    assert {note.subject for note in result.notes} >= {'gyroscope_x', 'accelerometer_y'}
    assert result.axes[-1].mean == pytest.approx(9.8, abs=0.01)


def test_nan_samples_and_constant_records_are_refused() -> None:
    values = at_rest(100)
    values[17, 1] = np.nan
    with pytest.raises(SignalFileError, match='gyroscope_y: sample 17'):
        analyse(signals(values), AllanOptions(reject_motion=False))
    flat = dataclasses.replace(signals(values), values=np.zeros((1000, 6)))
    with pytest.raises(SignalFileError, match='constant'):
        analyse(flat, AllanOptions(reject_motion=False))
