# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The low pass of the truth: gain, phase, steady turns and refusals."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from recording_examples import drive
from scipy.signal import butter, freqz_sos
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.truth import low_pass_truth
from sim2real_eval.recording.writing import write_recording
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray

RATE = 200.0
START = 10**18


def stamps(count: int, jitter: float = 0.0) -> IntArray:
    rng = np.random.default_rng(1)
    at = (np.arange(count) + jitter * rng.uniform(-0.5, 0.5, count)) * 1e9 / RATE
    return START + at.astype(np.int64)


def truth(at: IntArray, position: FloatArray, orientation: FloatArray) -> OdometryArray:
    n = len(at)
    zeros, six = np.zeros((n, 3)), np.zeros((n, 6, 6))
    return OdometryArray(
        at, at, 'world', 'base_link', position, orientation, zeros, zeros, six, six
    )  # fmt: skip


def upright(n: int) -> FloatArray:
    return np.tile([0.0, 0.0, 0.0, 1.0], (n, 1))


def smooth(motion: OdometryArray, cutoff: float) -> OdometryArray:
    return low_pass_truth('bag', '/truth', motion, cutoff)[0]


@pytest.mark.parametrize('jitter', [0.0, 0.4])
@pytest.mark.parametrize('cutoff', [3.0, 12.0])
def test_a_wave_at_the_cutoff_keeps_its_phase_and_half_its_power(
    cutoff: float, jitter: float
) -> None:
    at = stamps(4000, jitter)
    time = (at - START) * 1e-9
    waves = np.exp(2j * np.pi * time[:, None] * np.array([0.1, 1.0, 3.0]) * cutoff)
    filtered = smooth(truth(at, waves.real, upright(len(at))), cutoff).position
    middle = slice(1000, 3000)
    gain = np.mean(filtered[middle] * waves[middle].conj(), axis=0) * 2.0
    # Linear interpolation between uneven stamps takes a little of a wave of 12 of 100 Hz.
    within = 1e-3 if jitter == 0.0 else 0.02
    np.testing.assert_allclose(gain[:2], [1.0, np.sqrt(0.5)], atol=within)
    # 1 / (1 + (sqrt(2) - 1) 3^4) is 0.029; the bilinear transform bends it down.
    assert 0.015 < abs(gain[2]) < 0.032


def test_filtered_white_noise_has_the_power_given_by_the_frequency_response() -> None:
    """Against scipy's response of the two passes; three standard deviations of the estimate."""
    n, cutoff = 40000, 10.0
    noise = np.random.default_rng(3).standard_normal((n, 3))
    filtered = smooth(truth(stamps(n), noise, upright(n)), cutoff).position
    edge = np.arctan(np.tan(np.pi * cutoff / RATE) / (np.sqrt(2.0) - 1.0) ** 0.25) * RATE / np.pi
    _, response = freqz_sos(butter(2, edge, fs=RATE, output='sos'), worN=8192)
    expected = np.mean(np.abs(response) ** 4)
    effective = 3 * n * 2.0 * cutoff / RATE
    assert np.mean(filtered**2) == pytest.approx(expected, rel=3.0 * np.sqrt(2.0 / effective))


def test_a_steady_rotation_is_unchanged_and_quaternion_signs_do_not_matter() -> None:
    n = 2000
    spinning = Rotation.from_rotvec(np.outer(np.arange(n) / RATE, [0.4, -3.0, 5.0])).as_quat()
    motion = truth(stamps(n), np.zeros((n, 3)), spinning)
    filtered = smooth(motion, 8.0).orientation
    off = Rotation.from_quat(filtered).inv() * Rotation.from_quat(spinning)
    assert np.max(off.magnitude()[200:-200]) < 1e-9
    signs = np.where(np.random.default_rng(2).random(n) < 0.5, -1.0, 1.0)[:, None]
    other = smooth(dataclasses.replace(motion, orientation=signs * spinning), 8.0).orientation
    same = Rotation.from_quat(other).inv() * Rotation.from_quat(filtered)
    assert np.max(same.magnitude()) < 1e-12


@pytest.mark.parametrize('cutoff', [1.0, 4.0, 12.0])
def test_the_filter_does_not_stop_the_motion_at_the_ends_of_a_record(cutoff: float) -> None:
    """A straight line stays straight, and no end of a wave accelerates more than the wave."""
    n = 2000
    time = np.arange(n) / RATE
    line = np.outer(time, [1.0, -2.0, 0.0])
    filtered = smooth(truth(stamps(n), line, upright(n)), cutoff).position
    np.testing.assert_allclose(filtered, line, atol=1e-6)
    wave = np.outer(np.sin(2.0 * time + 1.0), [1.0, 0.0, 0.0])
    filtered = smooth(truth(stamps(n), wave, upright(n)), cutoff).position
    # The filter overshoots by some per cent where acceleration turns round at the end.
    assert np.max(np.abs(np.diff(filtered, 2, axis=0))) * RATE**2 < 1.05 * 2.0**2


def test_a_cutoff_just_below_half_the_rate_is_allowed() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        at = START + np.cumsum(rng.integers(1, 5, 20) * 10_000_001)
        half = 0.5e9 / float(np.median(np.diff(at)))
        still = np.tile([1.0, 2.0, 3.0], (len(at), 1))
        filtered = smooth(truth(at, still, upright(len(at))), 0.999999 * half).position
        np.testing.assert_allclose(filtered, still, atol=1e-9)


def test_a_cutoff_of_exactly_half_the_rate_is_refused() -> None:
    still = truth(stamps(40), np.zeros((40, 3)), upright(40))
    with pytest.raises(RecordingError, match='half the rate'):
        smooth(still, 0.5 * RATE)


def test_the_filtered_velocity_is_the_derivative_of_the_filtered_position() -> None:
    """The body rotates and oscillates, both with noise."""
    n, cutoff = 4000, 6.0
    time = np.arange(n) / RATE
    wave = np.outer(np.sin(4.0 * time), [1.0, 0.5, -1.0])
    speed = np.outer(4.0 * np.cos(4.0 * time), [1.0, 0.5, -1.0])
    turn = Rotation.from_rotvec(np.outer(time, [0.0, 0.3, 2.0]))
    rng = np.random.default_rng(4)
    motion = dataclasses.replace(
        truth(stamps(n), wave + 1e-3 * rng.standard_normal((n, 3)), turn.as_quat()),
        linear_velocity=turn.inv().apply(speed) + 0.1 * rng.standard_normal((n, 3)),
        angular_velocity=np.tile([0.0, 0.3, 2.0], (n, 1)) + 0.1 * rng.standard_normal((n, 3)),
    )
    filtered = smooth(motion, cutoff)
    middle = slice(200, -200)
    world = Rotation.from_quat(filtered.orientation).apply(filtered.linear_velocity)
    assert np.std((world - speed)[middle]) < 0.04
    derived = np.gradient(filtered.position, 1.0 / RATE, axis=0)
    assert np.std((derived - world)[middle]) < 0.05
    assert np.std((filtered.angular_velocity - [0.0, 0.3, 2.0])[middle]) < 0.04
    absent = smooth(truth(motion.stamp_ns, motion.position, motion.orientation), cutoff)
    assert not absent.linear_velocity.any()
    assert not absent.angular_velocity.any()


def test_a_rotation_faster_than_the_cutoff_does_not_change_the_world_velocity() -> None:
    """At five turns a second the velocity in the body is a wave above the cutoff of 2 Hz."""
    n = 2000
    turn = Rotation.from_rotvec(np.outer(np.arange(n) / RATE, [0.0, 0.0, 10.0 * np.pi]))
    ahead = np.tile([1.0, 0.0, 0.0], (n, 1))
    motion = dataclasses.replace(
        truth(stamps(n), np.cumsum(ahead, axis=0) / RATE, turn.as_quat()),
        linear_velocity=turn.inv().apply(ahead),
    )
    filtered = smooth(motion, 2.0)
    middle = slice(400, -400)
    world = Rotation.from_quat(filtered.orientation).apply(filtered.linear_velocity)
    np.testing.assert_allclose(world[middle], ahead[middle], atol=1e-6)
    np.testing.assert_allclose(
        filtered.linear_velocity[middle], motion.linear_velocity[middle], atol=1e-6
    )


def test_missing_samples_have_little_effect_on_their_neighbours() -> None:
    n = 2000
    at = stamps(n)
    remaining = np.r_[0:900, 920:n]
    wave = np.outer(np.sin(np.arange(n) / RATE), [1.0, 2.0, 3.0])
    whole = smooth(truth(at, wave, upright(n)), 5.0).position
    holed = smooth(truth(at[remaining], wave[remaining], upright(len(remaining))), 5.0)
    np.testing.assert_array_equal(holed.stamp_ns, at[remaining])
    assert np.max(np.abs(holed.position - whole[remaining])) < 5e-3


def test_the_key_low_pass_of_recording_yaml_filters_the_truth(tmp_path: Path) -> None:
    folder = tmp_path / 'line_1'
    write_recording(drive(), folder)
    sidecar = folder / 'recording.yaml'
    plain, text = read_recording(folder), sidecar.read_text(encoding='utf-8')

    def read(more: str):
        sidecar.write_text(f'{text}truth: {more}\n', encoding='utf-8')
        return read_recording(folder)

    filtered = read('{low_pass: 4}')
    expected, note = low_pass_truth(
        str(folder), plain.roles['truth'], plain.require('truth'), 4.0
    )  # fmt: skip
    np.testing.assert_array_equal(filtered.truth.position, expected.position)
    assert note in filtered.notes
    assert filtered.reference is None
    both = read('{low_pass: 4, nature: reference, made_by: me}')
    assert both.reference is not None
    np.testing.assert_array_equal(both.truth.position, expected.position)
    for wrong in ('0', '[3]', 'yes', '.nan', '10000.0'):
        with pytest.raises(RecordingError, match=r'low_pass|half the rate'):
            read(f'{{low_pass: {wrong}}}')


def test_a_truth_of_15_samples_is_refused() -> None:
    short = truth(stamps(15), np.zeros((15, 3)), upright(15))
    with pytest.raises(RecordingError, match='15 samples are too few'):
        smooth(short, 5.0)
    smooth(truth(stamps(16), np.zeros((16, 3)), upright(16)), 5.0)
