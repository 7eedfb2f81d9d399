# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Motion through recorded odometry: accuracy, locality, remarks and refusals."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_trajectory import assert_consistent, assert_identical, chunked, tumbling

from sim_sensors.core import rotations
from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import OdometryArray
from sim_sensors.motion.odometry import SAMPLES_AHEAD, SAMPLES_BEHIND, OdometryMotion
from sim_sensors.motion.scenarios import Circle, FigureEight
from sim_sensors.motion.trajectory import Trajectory

ORIGIN = 1_700_000_000_000_000_000


def recorded(truth: Trajectory) -> OdometryArray:
    """Return the odometry of a trajectory as a perfect recorder would write it."""
    stamp = ORIGIN + np.round(truth.time * 1e9).astype(np.int64)
    velocity = rotations.rotate_back(truth.orientation, truth.velocity)
    unknown = np.zeros((len(truth), 6, 6))
    return OdometryArray(
        stamp, stamp, 'map', 'base_link', truth.position, truth.orientation, velocity,
        truth.angular_velocity, unknown, unknown,
    )  # fmt: skip


def uneven_times(n: int, step: float, seed: int = 3) -> np.ndarray:
    """Whole microseconds, intervals 0.6 to 1.4 times `step`."""
    steps = step * np.random.default_rng(seed).uniform(0.6, 1.4, n)
    return np.round(np.cumsum(steps) - steps[0], 6)


def uneven(n: int = 80, step: float = 0.05) -> OdometryArray:
    return recorded(tumbling(uneven_times(n, step)))


def test_the_motion_passes_through_the_recorded_samples():
    truth = tumbling(uneven_times(60, 0.1))
    met = OdometryMotion(recorded(truth), origin_ns=ORIGIN).at(truth.time)
    np.testing.assert_allclose(met.position, truth.position, atol=1e-12)
    np.testing.assert_allclose(met.velocity, truth.velocity, atol=1e-12)
    assert np.abs(rotations.rotation_between(met.orientation, truth.orientation)).max() < 1e-12


@pytest.mark.parametrize(
    ('source', 'name', 'order'),
    [
        ('twist', 'position', 4), ('twist', 'velocity', 3), ('twist', 'acceleration', 2),
        ('position', 'position', 3), ('position', 'velocity', 2), ('position', 'acceleration', 2),
        ('twist', 'angular_velocity', 2), ('twist', 'angular_acceleration', 1),
    ],
)  # fmt: skip
def test_interpolation_errors_decrease_with_the_interval_by_their_order(source, name, order):
    """Velocity slopes are differences of second order; orientation loses one more order."""
    fine = np.linspace(0.0, 12.0, 3001)
    errors = []
    for count in (241, 481):
        record = recorded(tumbling(np.linspace(0, 12.0, count)))
        motion = OdometryMotion(record, origin_ns=ORIGIN, velocity=source)
        inside = fine[(fine > 0.2) & (fine < 11.8)]
        gap = getattr(motion.at(inside), name) - getattr(tumbling(inside), name)
        errors.append(np.abs(gap).max())
    assert order - 0.4 < np.log2(errors[0] / errors[1]) < order + 1.2


def test_the_acceleration_between_samples_is_as_accurate_as_at_the_samples():
    """A swing of 3 Hz at 100 Hz: second differences of even samples have noise sqrt(6) s / h^2."""
    time = np.arange(0.0, 4.0, 0.01)
    wave = np.outer(np.sin(2.0 * np.pi * 3.0 * time), [1.0, 0.0, 0.5])
    noise = 1e-4 * np.random.default_rng(6).standard_normal(wave.shape)
    base = recorded(tumbling(time))

    def accelerations(position, at):
        record = dataclasses.replace(base, position=position)
        return OdometryMotion(record, origin_ns=ORIGIN, velocity='position').at(at).acceleration

    knots, middles = time[50:350], time[50:350] + 0.003
    for at in (knots, middles):
        exact = np.outer(np.sin(2.0 * np.pi * 3.0 * at), [1.0, 0.0, 0.5]) * -((6.0 * np.pi) ** 2)
        swing = accelerations(wave, at) - exact
        assert np.sqrt(np.mean(swing[:, 0] ** 2)) < 0.006 * (6.0 * np.pi) ** 2
        noisy = accelerations(wave + noise, at) - accelerations(wave, at)
        assert np.std(noisy) < 1.1 * np.sqrt(6.0) * 1e-4 / 0.01**2


def test_acceleration_from_positions_interpolates_second_differences_linearly():
    """The second differences at uneven samples are those of numpy's parabola through three."""
    record = uneven(20)
    motion = OdometryMotion(record, origin_ns=ORIGIN, velocity='position')
    time = (record.stamp_ns - ORIGIN) * 1e-9
    at_samples = np.array(
        [
            2.0 * np.polyfit(time[k : k + 3] - time[k], record.position[k : k + 3], 2)[0]
            for k in np.clip(np.arange(20) - 1, 0, 17)
        ]
    )
    times = np.linspace(time[0], time[-1], 501)
    straight = np.stack([np.interp(times, time, column) for column in at_samples.T], axis=1)
    np.testing.assert_allclose(motion.at(times).acceleration, straight, atol=1e-7)


def test_car_truth_at_100_hz_is_reproduced_closely():
    truth = FigureEight()
    motion = OdometryMotion(recorded(truth.at(np.linspace(0, 20, 2001))), origin_ns=ORIGIN)
    fine = np.linspace(0.0, 20.0, 7001)
    got, exact = motion.at(fine), truth.at(fine)
    assert np.abs(got.position - exact.position).max() < 1e-7
    assert np.abs(got.velocity - exact.velocity).max() < 1e-5
    assert np.abs(got.acceleration - exact.acceleration).max() < 2e-3
    assert np.abs(got.angular_velocity - exact.angular_velocity).max() < 5e-4


def middles_of(record: OdometryArray, place: float = 0.5) -> np.ndarray:
    t = (record.stamp_ns - ORIGIN) * 1e-9
    return t[:-1] + place * np.diff(t)


@pytest.mark.parametrize('source', ['twist', 'position'])
def test_derivatives_are_exact_inside_the_intervals(source):
    """Position differs from the integral of velocity by the disagreement of the record."""
    record = uneven()
    motion = OdometryMotion(record, origin_ns=ORIGIN, velocity=source)
    for place in (0.3, 0.5, 0.8):
        times = middles_of(record, place)
        bound = 2e-4 if source == 'twist' else 5e-3
        assert_consistent(motion.at, times, atol=bound, step=1e-4)
    times = middles_of(record)
    ahead, back = motion.at(times + 1e-5), motion.at(times - 1e-5)
    numeric = (ahead.velocity - back.velocity) / 2e-5
    np.testing.assert_allclose(motion.at(times).acceleration, numeric, atol=1e-7)


@pytest.mark.parametrize('source', ['twist', 'position'])
def test_velocity_acceleration_and_rates_are_continuous_at_the_samples(source):
    record = uneven()
    motion = OdometryMotion(record, origin_ns=ORIGIN, velocity=source)
    knots = (record.stamp_ns[1:-1] - ORIGIN) * 1e-9
    before, after = motion.at(knots - 1e-9), motion.at(knots + 1e-9)
    for name in ('position', 'velocity', 'acceleration', 'angular_velocity'):
        np.testing.assert_allclose(
            getattr(before, name), getattr(after, name), atol=1e-6, err_msg=name
        )


@pytest.mark.parametrize('source', ['twist', 'position'])
def test_the_output_depends_only_on_the_four_surrounding_samples(source):
    """The live node relies on this: a window gives the bits of the whole record."""
    record = uneven(40)
    whole = OdometryMotion(record, origin_ns=ORIGIN, velocity=source)
    knots = (record.stamp_ns - ORIGIN) * 1e-9
    for k in range(len(record) - 2):
        times = knots[k] + np.array([0.0, 0.2, 0.5, 0.99]) * (knots[k + 1] - knots[k])
        first = max(k + 1 - SAMPLES_BEHIND, 0)
        window = record.take(slice(first, max(k + 1 + SAMPLES_AHEAD, 3)))
        local = OdometryMotion(window, origin_ns=ORIGIN, velocity=source)
        assert_identical(whole.at(times), local.at(times))


@settings(max_examples=15)
@given(
    st.lists(st.integers(1, 97), min_size=1, max_size=5), st.sampled_from(['twist', 'position'])
)
def test_the_output_does_not_depend_on_the_chunking(sizes, source):
    motion = OdometryMotion(uneven(), origin_ns=ORIGIN, velocity=source)
    times = np.linspace(motion.start, motion.end, 400)
    assert_identical(motion.at(times), chunked(motion, times, sizes))


def test_quaternion_signs_in_the_record_do_not_matter():
    record = uneven()
    signs = np.where(np.arange(len(record)) % 3 == 0, -1.0, 1.0)[:, None]
    flipped = dataclasses.replace(record, orientation=record.orientation * signs)
    a = OdometryMotion(record, origin_ns=ORIGIN)
    b = OdometryMotion(flipped, origin_ns=ORIGIN)
    times = np.linspace(a.start, a.end, 300)
    np.testing.assert_allclose(a.at(times).angular_velocity, b.at(times).angular_velocity)
    turned = rotations.rotation_between(a.at(times).orientation, b.at(times).orientation)
    assert np.abs(turned).max() < 1e-12


def noisy_rtk(seed: int = 8) -> tuple[Circle, OdometryArray]:
    """A car at 8 m/s on a circle of 60 m, recorded at 4 Hz: 1 cm and 3 cm/s of noise."""
    car = Circle(speed=8.0, radius=60.0, ramp_time=10.0, duration=60.0)
    record = recorded(car.at(np.arange(241) * 0.25))
    rng = np.random.default_rng(seed)
    return car, dataclasses.replace(
        record,
        position=record.position + 0.01 * rng.standard_normal((241, 3)),
        linear_velocity=record.linear_velocity + 0.03 * rng.standard_normal((241, 3)),
    )


def test_noise_of_the_truth_causes_acceleration_noise_by_the_documented_formula():
    """Three-point slopes weigh four velocities by half of (-1 + 4s - 3s^2, -10s + 9s^2, 1 + 8s -
    9s^2, -2s + 3s^2) over h, of mean square 7/3: an rms error of sqrt(7/3) 0.03/0.25 = 0.183
    m/s^2, within four deviations of 4 %.
    """
    car, record = noisy_rtk()
    motion = OdometryMotion(record, origin_ns=ORIGIN)
    times = np.linspace(1.0, 59.0, 5801)
    got, exact = motion.at(times), car.at(times)
    error = np.sqrt(((got.acceleration - exact.acceleration) ** 2).mean())
    assert error == pytest.approx(np.sqrt(7 / 3) * 0.03 / 0.25, rel=0.16)
    assert np.sqrt(((got.velocity - exact.velocity) ** 2).mean()) < 0.035
    assert np.sqrt(((got.position - exact.position) ** 2).mean()) < 0.015
    # 0.03/sqrt(2) of the mean of two velocities and 0.01 sqrt(2)/0.25 of the positions, 3 axes:
    # 0.105 expected; 4.3 % deviation over 240 correlated intervals, bounds at four of them.
    assert 0.087 < motion.velocity_disagreement < 0.123


def test_position_error_does_not_accumulate():
    """With a velocity bias of 0.1 m/s the positions are still met at every sample."""
    record = uneven(200)
    biased = dataclasses.replace(record, linear_velocity=record.linear_velocity + 0.1)
    motion = OdometryMotion(biased, origin_ns=ORIGIN)
    knots = (record.stamp_ns - ORIGIN) * 1e-9
    np.testing.assert_allclose(motion.at(knots).position, record.position, atol=1e-12)


def test_a_valid_record_causes_no_remarks():
    record = recorded(FigureEight().at(np.linspace(0, 20, 401)))
    motion = OdometryMotion(record, origin_ns=ORIGIN)
    assert motion.remarks == ()
    assert motion.velocity_source == 'twist'
    assert motion.velocity_disagreement < 1e-2
    assert motion.rate_disagreement < 1e-2


def test_missing_velocity_is_derived_from_positions():
    truth = FigureEight()
    record = recorded(truth.at(np.linspace(0, 20, 2001)))
    motion = OdometryMotion(
        dataclasses.replace(record, linear_velocity=np.zeros((2001, 3))), origin_ns=ORIGIN
    )
    assert motion.velocity_source == 'position'
    assert any('derived from the positions' in remark for remark in motion.remarks)
    fine = np.linspace(0.0, 20.0, 4001)
    assert np.abs(motion.at(fine).velocity - truth.at(fine).velocity).max() < 2e-4
    assert np.abs(motion.at(fine).acceleration - truth.at(fine).acceleration).max() < 0.01


def test_a_standstill_with_zero_twist_has_zero_velocity():
    zeros, noise = np.zeros((400, 3)), np.random.default_rng(1).standard_normal((400, 3))
    still = dataclasses.replace(
        uneven(400), position=0.01 * noise, linear_velocity=zeros, angular_velocity=zeros
    )
    motion = OdometryMotion(still, origin_ns=ORIGIN)
    assert motion.velocity_source == 'twist'
    assert not motion.at(np.linspace(1, 5, 50)).velocity.any()


def test_a_wrong_scale_of_the_velocity_is_reported():
    truth = Circle(speed=2.0, ramp_time=0.0).at(np.linspace(0, 20, 401))
    record = recorded(truth)
    wrong = dataclasses.replace(record, linear_velocity=1.2 * record.linear_velocity)
    motion = OdometryMotion(wrong, origin_ns=ORIGIN)
    assert motion.velocity_disagreement == pytest.approx(0.4, rel=1e-3)
    assert any('0.4 m/s rms' in remark for remark in motion.remarks)


CIRCLE = Circle(speed=2.0).at(np.linspace(0, 20, 401))


@pytest.mark.parametrize(
    ('change', 'remark'),
    [
        (lambda r: {'linear_velocity': CIRCLE.velocity}, 'seems to be in map'),
        (lambda r: {'orientation': np.tile([0.0, 0, 0, 1], (401, 1))}, 'no orientation'),
        (lambda r: {'angular_velocity': np.zeros((401, 3))}, 'angular velocity is all zero'),
        (lambda r: {'angular_velocity': np.degrees(r.angular_velocity)}, 'angular velocity diff'),
    ],
)
def test_a_wrong_field_of_the_record_causes_a_remark(change, remark):
    record = recorded(CIRCLE)
    wrong = dataclasses.replace(record, **change(record))
    assert any(remark in text for text in OdometryMotion(wrong, origin_ns=ORIGIN).remarks)


def test_a_gap_in_the_record_causes_a_remark():
    torn = recorded(CIRCLE).take(np.r_[0:100, 140:401])
    assert any('1 gaps' in remark for remark in OdometryMotion(torn, origin_ns=ORIGIN).remarks)


@pytest.mark.parametrize(
    ('field', 'value', 'problem'),
    [
        ('stamp_ns', 0, 'sample 7'),
        ('position', np.nan, 'position of sample 7'),
        ('orientation', np.nan, 'orientation of sample 7'),
        ('orientation', 0.0, 'sample 7 is no rotation'),
        ('linear_velocity', np.nan, 'linear_velocity of sample 7'),
        ('angular_velocity', np.nan, 'angular_velocity of sample 7'),
    ],
)
def test_a_broken_sample_is_refused_by_its_number(field, value, problem):
    record = uneven(10)
    broken = getattr(record, field).copy()
    broken[7] = value
    with pytest.raises(MotionError, match=problem):
        OdometryMotion(dataclasses.replace(record, **{field: broken}), origin_ns=ORIGIN)


def test_too_few_samples_an_unknown_source_and_times_outside_are_refused():
    record = uneven(10)
    with pytest.raises(MotionError, match='2 samples'):
        OdometryMotion(record.take(slice(0, 2)), origin_ns=ORIGIN)
    with pytest.raises(MotionError, match='wheel'):
        OdometryMotion(record, origin_ns=ORIGIN, velocity='wheel')
    with pytest.raises(MotionError, match='outside the motion'):
        OdometryMotion(record, origin_ns=ORIGIN).at([-1.0])
