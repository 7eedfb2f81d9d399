# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Vibration of an engine has lines of the right size and frequency, including aliases."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from sim_sensors.imu.chain import AccelerometerChain, GyroscopeChain, ImuChain, Vibration
from sim_sensors.motion.scenarios import Standstill

ENGINE = Vibration(
    rotation_rate=37.0, harmonics=(1.0, 0.25), gyroscope=(0.02, 0.0, 0.01),
    accelerometer=(0.8, 0.4, 2.0),
)  # fmt: skip


def measured(model, seconds=20.0):
    n = round(seconds * model.rate)
    return model.start(1, 'a').measure(Standstill(duration=seconds).at(np.arange(n) / model.rate))


def lines(values, rate):
    """Return frequencies and amplitudes of a signal of whole periods."""
    n = len(values)
    return np.fft.rfftfreq(n, 1.0 / rate), 2.0 / n * np.abs(np.fft.rfft(values, axis=0))


@pytest.mark.parametrize(
    ('rate', 'first', 'second'),
    # 74 Hz is above half of 100 Hz: |74 - 100|. At 50 Hz both are: |37 - 50| and |74 - 50|.
    [(400.0, 37.0, 74.0), (100.0, 37.0, 26.0), (50.0, 13.0, 24.0)],
)
def test_spectral_lines_appear_at_their_aliased_frequencies_with_their_amplitudes(
    rate, first, second
) -> None:
    model = ImuChain(rate=rate, vibration=ENGINE)
    spectrum_peaks = measured(model)
    for values, amplitude in (
        (spectrum_peaks.angular_velocity, ENGINE.gyroscope),
        (spectrum_peaks.linear_acceleration, ENGINE.accelerometer),
    ):
        where, size = lines(values, rate)
        for frequency, share in ((first, 1.0), (second, 0.25)):
            k = int(np.argmin(np.abs(where - frequency)))
            np.testing.assert_allclose(size[k], share * np.asarray(amplitude), atol=1e-9)
            size[k] = 0.0
        size[0] = 0.0  # gravity
        assert size.max() < 1e-9


def test_a_low_pass_weakens_a_line_by_its_gain_at_the_true_frequency() -> None:
    """At 50 Hz the line of 37 Hz is seen at 13 Hz, but it passed the filter at 37 Hz."""
    triad = AccelerometerChain(bandwidth=10.0, filter_order=2, scale=(0.1, 0.0, 0.0))
    result = measured(ImuChain(rate=50.0, accelerometer=triad, vibration=ENGINE))
    where, size = lines(result.linear_acceleration, 50.0)
    k = int(np.argmin(np.abs(where - 13.0)))
    gain = 1.0 / np.sqrt(1.0 + 3.7**4)
    np.testing.assert_allclose(size[k], gain * np.array([0.88, 0.4, 2.0]), rtol=1e-9)


def test_both_triads_measure_one_engine_whose_rate_wanders() -> None:
    """Products of the two triads keep a line at twice the rotation only if their cycles agree."""
    wandering = dataclasses.replace(ENGINE, rotation_std=1.5, rotation_time=2.0, harmonics=(1.0,))
    spectrum_peaks = measured(ImuChain(rate=400.0, vibration=wandering), 40.0)
    rate, force = spectrum_peaks.angular_velocity[:, 0], spectrum_peaks.linear_acceleration[:, 0]
    # Sines of one phase with a constant lag: the points (rate, force) lie on one ellipse.
    design = np.column_stack([rate**2, rate * force, force**2]) / [0.02**2, 0.016, 0.8**2]
    _, residual, *_ = np.linalg.lstsq(design, np.ones(len(rate)), rcond=None)
    assert residual[0] < 1e-12 * len(rate)
    where, size = lines(force, 400.0)
    assert size.max() < 0.3 < 0.8  # no sharp line is left
    power = size**2
    mean = np.sum(where[1:] * power[1:]) / np.sum(power[1:])
    assert mean == pytest.approx(37.0, abs=1.5)


def test_vibration_does_not_depend_on_the_chunking_and_is_absent_without_an_engine() -> None:
    chain = GyroscopeChain(noise_density=0.01, bandwidth=30.0)
    model = ImuChain(gyroscope=chain, vibration=dataclasses.replace(ENGINE, rotation_std=1.0))
    times = np.arange(500) * 0.01
    motion = Standstill(duration=5.0)
    whole = model.start(3, 'a').measure(motion.at(times)).angular_velocity
    sensor = model.start(3, 'a')
    chunks = np.split(times, [1, 7, 333])
    parts = [sensor.measure(motion.at(chunk)).angular_velocity for chunk in chunks]
    assert np.concatenate(parts).tobytes() == whole.tobytes()
    still, quiet = (
        dataclasses.replace(model, vibration=vibration).start(3, 'a').measure(motion.at(times))
        for vibration in (Vibration(), Vibration(rotation_rate=50.0, harmonics=(1.0,)))
    )
    assert still.angular_velocity.tobytes() == quiet.angular_velocity.tobytes()


def test_a_quadratic_sensor_rectifies_vibration() -> None:
    """The mean of quadratic (A sin)^2 is quadratic A^2 / 2."""
    triad = GyroscopeChain(quadratic=0.5)
    model = ImuChain(rate=400.0, gyroscope=triad, vibration=ENGINE)
    mean = measured(model).angular_velocity.mean(axis=0)
    power = 0.5 * (1.0 + 0.25**2) * np.square(ENGINE.gyroscope)
    np.testing.assert_allclose(mean, 0.5 * power, atol=1e-12)
