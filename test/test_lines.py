# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Spectral lines are told from all kinds of noise, and taken out before the noise is fitted."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from allan_examples import record, truth
from scipy.signal import bilinear, butter, lfilter

from sim2real_eval.characterization.allan import allan_curve
from sim2real_eval.characterization.analysis import analyse
from sim2real_eval.characterization.lines import without_lines
from sim2real_eval.characterization.signals import Signals
from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream
from sim_sensors.imu.chain import ImuChain

N = 30_000
RATE = 100.0


def resonant(noise: FloatArray, frequency: float, quality: float) -> FloatArray:
    """Noise behind a low pass of order 2 that resonates, sampled at 1 Hz."""
    omega = 2.0 * np.tan(np.pi * frequency)
    filter_ = bilinear([omega**2], [1.0, omega / quality, omega**2], 1.0)
    return np.asarray(lfilter(*filter_, noise))


@pytest.mark.parametrize('n', [7_000, N])
def test_noise_of_every_kind_has_no_line(n: int) -> None:
    """None in 480 records; at 1 in 1000 more than 3 are found in 1 of 700 such tests."""
    found = 0
    for seed in range(40):
        rng = stream(seed, 'kinds', 'test', 'lines')
        noise, other = rng.standard_normal((2, n))
        kinds = (
            noise,
            record(truth(n, RATE), n, RATE, rng),
            noise + 0.02 * np.cumsum(other),
            np.cumsum(other),
            lfilter(*butter(1, 0.05, fs=1.0), noise),
            lfilter(*butter(4, 0.1, fs=1.0), noise),
            np.round(0.5 * noise),
            np.round(0.3 * noise + 1e-5 * np.arange(n)),
            noise + 2.0 * np.diff(other, prepend=0.0),
            noise + 30.0 * np.exp(-5.0 * np.arange(n) / n),
            resonant(noise, 0.2, 5.0),
            resonant(noise, 0.05, 3.0),
        )
        found += sum(bool(without_lines(np.asarray(values), RATE)[1]) for values in kinds)
    assert found <= 3


@pytest.mark.parametrize('amplitude', [0.3, 3.0, 30.0])
@pytest.mark.parametrize('frequency', [0.83, 7.77, 49.3])
def test_a_line_is_found_and_taken_out(frequency: float, amplitude: float) -> None:
    """Frequency within a bin, rms within 5 %, Allan deviation within 5 % of that of the noise."""
    n = 100_000
    noise = stream(1, 'line', 'test', 'lines').standard_normal(n)
    hum = amplitude * np.sin(2.0 * np.pi * frequency * np.arange(n) / RATE + 1.0)
    clean, lines = without_lines(noise + hum, RATE)
    assert len(clean) == n
    assert lines[0].frequency == pytest.approx(frequency, abs=RATE / (n / 12.0))
    assert lines[0].rms == pytest.approx(amplitude * np.sqrt(0.5), rel=0.05)
    ratio = allan_curve(clean, RATE).deviation / allan_curve(noise, RATE).deviation
    np.testing.assert_allclose(ratio[:12], 1.0, atol=0.05)


def test_the_fit_beside_a_wandering_line_recovers_the_noise() -> None:
    """A vibration of 3.1 Hz whose phase wanders, with half of the scatter of the samples."""
    n, density = 100_000, 1e-3
    axes = ('gyroscope_x', 'gyroscope_y')
    rng = stream(2, 'wandering', 'test', 'lines')
    phase = 2.0 * np.pi * 3.1 * np.arange(n) / RATE + 0.005 * np.cumsum(rng.standard_normal(n))
    noise = density * np.sqrt(RATE) * rng.standard_normal((n, 2))
    noise[:, 0] += 0.5 * density * np.sqrt(RATE) * np.sqrt(2.0) * np.sin(phase)
    result = analyse(Signals('test', axes, noise, None, RATE))
    for axis in result.axes:
        assert axis.terms.white.value == pytest.approx(density, abs=4.0 * axis.terms.white.std)
        assert axis.terms.white.value == pytest.approx(density, rel=0.03)
    (finding,) = [note for note in result.notes if note.code == 'allan.lines']
    assert finding.subject == 'gyroscope_x'
    assert finding.numbers['frequency'] == pytest.approx(3.1, abs=0.05)
    # The remedy can be written into the file of the model.
    setting = yaml.safe_load(str(finding.words['setting']))
    vibration = ImuChain.from_mapping(setting, 'imu.yaml').vibration
    assert vibration.gyroscope == pytest.approx(
        (0.5 * density * 10.0 * 2.0**0.5, 0.0, 0.0), rel=0.1
    )
