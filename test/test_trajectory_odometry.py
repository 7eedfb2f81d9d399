# SPDX-License-Identifier: Apache-2.0
"""Motion through recorded odometry: accuracy, locality, what it says and refuses."""

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
    """The odometry that a perfect recorder makes of a trajectory."""
    n = len(truth)
    stamp = ORIGIN + np.round(truth.time * 1e9).astype(np.int64)
    return OdometryArray(
        stamp_ns=stamp,
        arrival_ns=stamp,
        frame='map',
        child_frame='base_link',
        position=truth.position,
        orientation=truth.orientation,
        linear_velocity=rotations.rotate_back(truth.orientation, truth.velocity),
        angular_velocity=truth.angular_velocity,
        pose_covariance=np.zeros((n, 6, 6)),
        twist_covariance=np.zeros((n, 6, 6)),
    )


def uneven_times(n: int, step: float, seed: int = 3) -> np.ndarray:
    """Whole microseconds, intervals 0.6 to 1.4 times `step`."""
    steps = step * np.random.default_rng(seed).uniform(0.6, 1.4, n)
    return np.round(np.cumsum(steps) - steps[0], 6)


def uneven(n: int = 80, step: float = 0.05) -> OdometryArray:
    return recorded(tumbling(uneven_times(n, step)))


def test_recorded_positions_orientations_and_velocities_are_met():
    truth = tumbling(uneven_times(60, 0.1))
    met = OdometryMotion(recorded(truth), origin_ns=ORIGIN).at(truth.time)
    np.testing.assert_allclose(met.position, truth.position, atol=1e-12)
    np.testing.assert_allclose(met.velocity, truth.velocity, atol=1e-12)
    assert np.abs(rotations.rotation_between(met.orientation, truth.orientation)).max() < 1e-12


@pytest.mark.parametrize(
    ('source', 'name', 'order'),
    [
        ('twist', 'position', 4),
        ('twist', 'velocity', 3),
        ('twist', 'acceleration', 2),
        ('position', 'position', 3),
        ('position', 'velocity', 2),
        ('position', 'acceleration', 2),
        ('twist', 'angular_velocity', 2),
        ('twist', 'angular_acceleration', 1),
    ],
)
def test_error_falls_with_its_order(source, name, order):
    """Velocity slopes are differences of second order, and so is what positions alone give;
    orientation alone loses one more order.
    """
    fine = np.linspace(0.0, 12.0, 3001)
    errors = []
    for count in (241, 481):
        record = recorded(tumbling(np.linspace(0, 12.0, count)))
        motion = OdometryMotion(record, origin_ns=ORIGIN, velocity=source)
        inside = fine[(fine > 0.2) & (fine < 11.8)]
        gap = getattr(motion.at(inside), name) - getattr(tumbling(inside), name)
        errors.append(np.abs(gap).max())
    assert order - 0.4 < np.log2(errors[0] / errors[1]) < order + 1.2


def test_between_positions_acceleration_is_no_worse_than_at_them():
    """The body swings at 3 Hz, sampled at 100 Hz with 0.1 mm of white noise.

    Second differences of even samples have noise of sqrt(6) s / h^2; a straight line between two
    of them has at most that.
    """
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


def test_between_positions_acceleration_runs_straight_from_one_second_difference_to_the_next():
    """Between uneven samples too; at them it is that of numpy's parabola through three."""
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
    """Position carries besides what the integral of velocity misses: with velocity from the twist
    the record's own disagreement, else the error of slopes, of second order in the interval.
    """
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
def test_output_depends_on_the_four_samples_around_it_only(source):
    """The promise that the live node rests on: the same bits from a window as from the record."""
    record = uneven(40)
    whole = OdometryMotion(record, origin_ns=ORIGIN, velocity=source)
    knots = (record.stamp_ns - ORIGIN) * 1e-9
    for k in range(len(record) - 2):
        times = knots[k] + np.array([0.0, 0.2, 0.5, 0.99]) * (knots[k + 1] - knots[k])
        first = max(k + 1 - SAMPLES_BEHIND, 0)
        window = record.take(slice(first, max(k + 1 + SAMPLES_AHEAD, 3)))
        local = OdometryMotion(window, origin_ns=ORIGIN, velocity=source)
        assert_identical(whole.at(times), local.at(times))


def test_fewer_samples_ahead_would_change_the_output():
    """So the stated number is the smallest one."""
    record = uneven(40)
    whole = OdometryMotion(record, origin_ns=ORIGIN)
    times = np.array([np.mean((record.stamp_ns[20:22] - ORIGIN) * 1e-9)])
    short = OdometryMotion(record.take(slice(0, 22)), origin_ns=ORIGIN)
    assert (short.at(times).acceleration != whole.at(times).acceleration).any()


@settings(max_examples=15)
@given(
    st.lists(st.integers(1, 97), min_size=1, max_size=5), st.sampled_from(['twist', 'position'])
)
def test_output_has_the_same_bits_in_any_chunks(sizes, source):
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


def test_noise_of_real_truth_is_not_blown_up_into_accelerations():
    """Slopes of three-point differences weigh the noise of the four velocities around a time by
    half of (-1 + 4s - 3s^2, -10s + 9s^2, 1 + 8s - 9s^2, -2s + 3s^2) over h; the mean square of
    these over s is 7/3, so the rms error of acceleration is sqrt(7/3) 0.03/0.25 = 0.183 m/s^2.
    Its own deviation is below 4 % (720 noise values, each felt over four intervals); bounds
    at four deviations, false-alarm rate below 1e-4. A Hermite spline through positions and
    velocities would come to 1 m/s^2 and more.
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
    """A biased velocity of 0.1 m/s leads nowhere: positions are still met at every sample."""
    record = uneven(200)
    biased = dataclasses.replace(record, linear_velocity=record.linear_velocity + 0.1)
    motion = OdometryMotion(biased, origin_ns=ORIGIN)
    knots = (record.stamp_ns - ORIGIN) * 1e-9
    np.testing.assert_allclose(motion.at(knots).position, record.position, atol=1e-12)


def test_a_good_record_gets_no_remarks():
    record = recorded(FigureEight().at(np.linspace(0, 20, 401)))
    motion = OdometryMotion(record, origin_ns=ORIGIN)
    assert motion.remarks == ()
    assert motion.velocity_source == 'twist'
    assert motion.velocity_disagreement < 1e-2
    assert motion.rate_disagreement < 1e-2


def test_missing_velocity_is_derived_from_positions_and_said():
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


def test_standstill_with_zero_twist_keeps_its_zero_velocity():
    zeros = np.zeros((400, 3))
    rng = np.random.default_rng(1)
    record = uneven(400)
    still = dataclasses.replace(
        record,
        position=0.01 * rng.standard_normal((400, 3)),
        linear_velocity=zeros,
        angular_velocity=zeros,
    )
    motion = OdometryMotion(still, origin_ns=ORIGIN)
    assert motion.velocity_source == 'twist'
    assert not motion.at(np.linspace(1, 5, 50)).velocity.any()


def test_velocity_in_the_world_frame_is_noticed():
    truth = Circle().at(np.linspace(0, 20, 401))
    wrong = dataclasses.replace(recorded(truth), linear_velocity=truth.velocity)
    motion = OdometryMotion(wrong, origin_ns=ORIGIN)
    assert any('seems to be in map' in remark for remark in motion.remarks)


def test_wrong_velocity_scale_is_noticed_with_its_figure():
    truth = Circle(speed=2.0, ramp_time=0.0).at(np.linspace(0, 20, 401))
    record = recorded(truth)
    wrong = dataclasses.replace(record, linear_velocity=1.2 * record.linear_velocity)
    motion = OdometryMotion(wrong, origin_ns=ORIGIN)
    assert motion.velocity_disagreement == pytest.approx(0.4, rel=1e-3)
    assert any('0.4 m/s rms' in remark for remark in motion.remarks)


def test_missing_orientation_rates_and_gaps_are_noticed():
    record = recorded(Circle(speed=2.0).at(np.linspace(0, 20, 401)))
    identity = dataclasses.replace(record, orientation=np.tile([0.0, 0, 0, 1], (401, 1)))
    remarks = OdometryMotion(identity, origin_ns=ORIGIN).remarks
    assert any('hold no orientation' in remark for remark in remarks)
    no_rate = dataclasses.replace(record, angular_velocity=np.zeros((401, 3)))
    remarks = OdometryMotion(no_rate, origin_ns=ORIGIN).remarks
    assert any('angular velocity is all zero' in remark for remark in remarks)
    degrees = dataclasses.replace(record, angular_velocity=np.degrees(record.angular_velocity))
    remarks = OdometryMotion(degrees, origin_ns=ORIGIN).remarks
    assert any('angular velocity differs' in remark for remark in remarks)
    gap = record.take(np.r_[0:100, 140:401])
    assert any('1 gaps' in remark for remark in OdometryMotion(gap, origin_ns=ORIGIN).remarks)


def test_bad_records_are_refused():
    record = uneven(10)

    def refused(change: dict[str, np.ndarray], message: str) -> None:
        with pytest.raises(MotionError, match=message):
            OdometryMotion(dataclasses.replace(record, **change), origin_ns=ORIGIN)

    with pytest.raises(MotionError, match='2 samples; at least 3'):
        OdometryMotion(record.take(slice(0, 2)), origin_ns=ORIGIN)
    with pytest.raises(MotionError, match='must be one of auto'):
        OdometryMotion(record, origin_ns=ORIGIN, velocity='wheel')
    repeated = record.stamp_ns.copy()
    repeated[4] = repeated[3]
    refused({'stamp_ns': repeated}, 'sample 4 does not come after')
    for name in ('position', 'orientation', 'linear_velocity', 'angular_velocity'):
        broken = getattr(record, name).copy()
        broken[7, 1] = np.nan
        refused({name: broken}, f'{name} of sample 7 is not finite')
    null = record.orientation.copy()
    null[2] = 0.0
    refused({'orientation': null}, 'sample 2 is no rotation')
    with pytest.raises(MotionError, match='outside the motion'):
        OdometryMotion(record, origin_ns=ORIGIN).at([-1.0])
