# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A twin measures the motion of the recording: same stamps and mounting, same bits again."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from recording_examples import arrays_equal
from recording_examples import drive as full_recording

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording.checks import STAMP_ZERO
from sim2real_eval.recording.recording import Recording, StaticTransform
from sim2real_eval.recording.truth import locate_truth
from sim2real_eval.simulation.twin import Twin, cut_to_span
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.core import rotations
from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FixArray, OdometryArray
from sim_sensors.gps import gps
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu import imu
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import START_NS, truth_of
from sim_sensors.motion.scenarios import Circle, FigureEight
from sim_sensors.motion.trajectory import Motion
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, LocalFrame

IDEAL = Twin('ideal', load_gps('baseline'), load_imu('ideal'))
NOISY = Twin('noisy', load_gps('ch_rw'), load_imu('chrono'))
MADISON = LocalFrame(latitude_deg=43.07, longitude_deg=-89.41, altitude_m=260.0)


def recorded(
    motion: Motion,
    *,
    truth_rate: float = 100.0,
    late_ns: tuple[int, int] = (3_700_000, 41_000_000),
) -> Recording:
    """Ideal sensors on a motion, straight from its formulas, off the phase of the truth."""
    measured = imu.simulate(
        load_imu('ideal'), motion, seed=0, run='-', start_ns=START_NS + late_ns[0],
        origin_ns=START_NS,
    )  # fmt: skip
    fixes = gps.simulate(
        load_gps('baseline'), motion, seed=0, run='-', start_ns=START_NS + late_ns[1],
        origin_ns=START_NS, frame=MADISON,
    )  # fmt: skip
    return Recording(
        name='run_1',
        scenario='run',
        path='',
        messages={
            '/imu/data': measured,
            '/gps/fix': fixes,
            '/ground_truth/odometry': truth_of(motion, rate=truth_rate),
        },
        roles={'imu': '/imu/data', 'gps': '/gps/fix', 'truth': '/ground_truth/odometry'},
    )


def positions(fixes: FixArray, frame: LocalFrame = MADISON) -> np.ndarray:
    return frame.to_enu(fixes.latitude, fixes.longitude, fixes.altitude)


def same_bits(a: Recording, b: Recording) -> bool:
    return all(arrays_equal(a.messages[topic], b.messages[topic]) for topic in a.messages)


@pytest.mark.parametrize(
    ('truth_rate', 'rate_error', 'force_error', 'position_error'),
    [(100.0, 7e-5, 1e-4, 5e-8), (400.0, 5e-6, 8e-6, 1e-8)],
)
def test_an_ideal_twin_of_ideal_sensors_equals_the_recording(
    truth_rate: float, rate_error: float, force_error: float, position_error: float
) -> None:
    """Only the interpolation of the truth differs; its error falls with the square of the truth's
    interval or faster. The bounds are twice the errors measured.
    """
    real = recorded(FigureEight(duration=12.0), truth_rate=truth_rate)
    twin = TwinMaker(real, seed=3).make(IDEAL)
    assert np.array_equal(twin.imu.stamp_ns, real.imu.stamp_ns)
    assert np.array_equal(twin.gps.stamp_ns, real.gps.stamp_ns)
    gyro = np.abs(twin.imu.angular_velocity - real.imu.angular_velocity).max()
    force = np.abs(twin.imu.linear_acceleration - real.imu.linear_acceleration).max()
    place = np.abs(positions(twin.gps) - positions(real.gps)).max()
    assert gyro < rate_error
    assert force < force_error
    assert place < position_error


def test_twins_are_identical_for_equal_labels_and_differ_for_any_other_label() -> None:
    real = recorded(Circle(duration=8.0))
    first = TwinMaker(real, seed=3).make(NOISY)
    assert same_bits(first, TwinMaker(real, seed=3).make(NOISY))
    for other in (
        TwinMaker(real, seed=4).make(NOISY),
        TwinMaker(dataclasses.replace(real, name='run_2'), seed=3).make(NOISY),
        TwinMaker(real, seed=3).make(NOISY, 2),
    ):
        assert first.gps
        assert other.gps
        # Two floats of independent draws agree with probability 0.
        assert not np.any(first.imu.angular_velocity == other.imu.angular_velocity)
        moved = np.abs(positions(first.gps) - positions(other.gps)).max(axis=1)
        assert np.count_nonzero(moved == 0.0) <= 1


def test_a_twin_does_not_depend_on_twins_made_before() -> None:
    maker = TwinMaker(recorded(Circle(duration=8.0)), seed=3)
    alone = maker.make(NOISY)
    maker.make(IDEAL)
    maker.make(dataclasses.replace(NOISY, gps=load_gps('airsim')), 3)
    assert same_bits(alone, maker.make(NOISY))
    assert not same_bits(alone, maker.make(NOISY, 2))
    # Sensors that two twins share are simulated once.
    again = maker.make(NOISY)
    assert again.imu is maker.make(dataclasses.replace(NOISY, gps=load_gps('airsim'))).imu
    assert same_bits(alone, again)
    # One simulated sensor does not depend on whether the other one is simulated too.
    with_real_imu = maker.make(dataclasses.replace(NOISY, imu=None))
    assert with_real_imu.gps is not None
    assert alone.gps is not None
    assert arrays_equal(with_real_imu.gps, alone.gps)
    assert with_real_imu.imu is maker.real.imu


def test_simulated_sensors_keep_the_sampling_phase_of_the_real_ones() -> None:
    """Also where the real ones begin before the truth: the first stamp inside it counts."""
    whole = recorded(Circle(duration=10.0), late_ns=(1_300_000, 17_000_000))
    truth = whole.truth
    start = START_NS + 1_000_000_000
    late = whole.with_messages('truth', truth.take(truth.stamp_ns >= start))
    maker = TwinMaker(late, seed=0)
    twin = maker.make(NOISY)
    assert maker.start_ns == start
    assert np.array_equal(twin.imu.stamp_ns, maker.real.imu.stamp_ns)
    assert np.array_equal(twin.gps.stamp_ns, maker.real.gps.stamp_ns)
    assert (twin.imu.stamp_ns[0] - START_NS) % 10_000_000 == 1_300_000
    assert start <= twin.gps.stamp_ns[0] < start + 100_000_000


def turntable(rate: float, duration: float = 4.0) -> OdometryArray:
    stamp_ns = START_NS + np.arange(round(duration * 100) + 1) * 10_000_000
    angle = rate * (stamp_ns - START_NS) * 1e-9
    rates = np.zeros((len(stamp_ns), 3))
    rates[:, 2] = rate
    return OdometryArray.exact(
        stamp_ns,
        position=0.0 * rates,
        orientation=rotations.from_heading(angle),
        linear_velocity=0.0 * rates,
        angular_velocity=rates,
    )


@pytest.mark.parametrize('parent', ['base_link', '/base_link'])
def test_sensors_are_mounted_by_the_static_transforms(parent: str) -> None:
    """On a turntable an IMU 0.5 m out feels w^2 r inwards and an antenna 2 m out draws a circle.

    The IMU is turned by +90 deg about z: inwards, -x of the body, is +y of the sensor.
    """
    rate, arm = 1.5, 0.5
    half = np.sqrt(0.5)
    truth = turntable(rate)
    transforms = (
        StaticTransform(parent, 'imu_link', (arm, 0.0, 0.2), (0.0, 0.0, half, half)),
        StaticTransform(parent, 'gps_link', (0.0, 2.0, 1.0)),
        StaticTransform('trailer', 'imu_link', (9.0, 9.0, 9.0)),
    )
    bare = dataclasses.replace(Recording.of_truth(truth, 'table', 'table'), transforms=transforms)
    twin = TwinMaker(bare, seed=0).make(IDEAL)
    n = len(twin.imu)
    inwards = np.tile([0.0, rate**2 * arm, 9.80665], (n, 1))
    np.testing.assert_allclose(twin.imu.linear_acceleration, inwards, atol=1e-9)
    np.testing.assert_allclose(twin.imu.angular_velocity, np.tile([0, 0, rate], (n, 1)), atol=1e-9)
    angle = rate * (twin.gps.stamp_ns - START_NS) * 1e-9
    circle = np.stack([-2 * np.sin(angle), 2 * np.cos(angle), np.ones_like(angle)], axis=1)
    np.testing.assert_allclose(positions(twin.gps, DEFAULT_ORIGIN), circle, atol=1e-6)


def test_the_mounting_is_that_of_the_frame_of_the_real_messages() -> None:
    real = recorded(Circle(duration=6.0))
    assert real.imu is not None
    real = real.with_messages('imu', dataclasses.replace(real.imu, frame='/vn100'))
    upside_down = StaticTransform('base_link', 'vn100', (0.0, 0.0, 0.0), (1, 0, 0, 0))
    transforms = (upside_down, StaticTransform('base_link', 'gps_link'))
    twin = TwinMaker(dataclasses.replace(real, transforms=transforms), seed=0).make(IDEAL)
    assert twin.imu.frame == '/vn100'
    np.testing.assert_allclose(twin.imu.linear_acceleration[:, 2], -9.80665, atol=1e-9)


def test_only_the_named_sensors_are_replaced() -> None:
    recording = full_recording()
    truth = turntable(0.3, duration=3.0)
    stamps = recording.start_ns + truth.stamp_ns - START_NS
    recording = recording.with_messages(
        'truth', dataclasses.replace(truth, stamp_ns=stamps, arrival_ns=stamps)
    )
    maker = TwinMaker(recording, seed=1)
    twin = maker.make(NOISY)
    assert set(twin.messages) == set(recording.messages)
    assert twin.roles == recording.roles
    assert twin.transforms == recording.transforms
    for topic in set(recording.messages) - {'/imu/data', '/gps/fix'}:
        assert twin.messages[topic] is maker.real.messages[topic]
    assert twin.imu is not maker.real.imu
    assert twin.gps is not maker.real.gps


def test_findings_about_a_replaced_sensor_are_dropped() -> None:
    """A missing covariance of the real IMU, for example, does not apply to the simulated one."""
    notes = tuple(STAMP_ZERO(topic, count=3) for topic in ('/imu/data', '/gps/fix', '/odom'))
    maker = TwinMaker(dataclasses.replace(full_recording(), notes=notes), seed=1)
    assert maker.make(dataclasses.replace(NOISY, gps=None)).notes == notes[1:]
    assert maker.make(NOISY).notes == notes[2:]


def test_sensors_added_to_a_pure_truth_start_with_the_truth() -> None:
    motion = Circle(duration=6.0)
    topic = '/ground_truth/odometry'
    bare = Recording('bare', 'run', '', {topic: truth_of(motion)}, {'truth': topic})
    twin = TwinMaker(bare, seed=0).make(NOISY)
    assert twin.roles == {'truth': topic, 'imu': '/imu/data', 'gps': '/gps/fix'}
    assert twin.imu.stamp_ns[0] == twin.gps.stamp_ns[0] == START_NS
    assert (len(twin.imu), len(twin.gps)) == (601, 61)


def test_a_cut_includes_both_ends_and_names_an_empty_topic() -> None:
    real = recorded(Circle(duration=6.0), late_ns=(0, 0))
    start, end = START_NS + 1_000_000_000, START_NS + 2_000_000_000
    cut = cut_to_span(real, start, end)
    for topic, array in cut.messages.items():
        assert array.stamp_ns[0] == start, topic
        assert array.stamp_ns[-1] == end, topic
    early = real.with_messages('gps', real.gps.take(real.gps.stamp_ns < start))
    with pytest.raises(RecordingError, match='/gps/fix'):
        cut_to_span(early, start, end)


@pytest.mark.parametrize('away', [(0.0, 0.0, 0.0), (800.0, -1500.0, 20.0), (2e4, 2e4, 300.0)])
@pytest.mark.parametrize('at', [(59.0, 17.0), (-84.0, 179.9999)])
def test_the_first_fix_is_at_the_true_position_of_its_stamp(
    away: tuple[float, ...], at: tuple[float, float]
) -> None:
    """To 1e-6 m, also far from the origin of the map, across the date line, between samples."""
    frame = LocalFrame(*at, altitude_m=30.0)
    truth = truth_of(Circle(duration=6.0), rate=20.0)
    truth = dataclasses.replace(truth, position=truth.position + np.array(away))
    stamp = int(truth.stamp_ns[60]) + 13_000_000
    place = np.array([np.interp(stamp, truth.stamp_ns, column) for column in truth.position.T])
    latitude, longitude, altitude = frame.to_geodetic(place[None, :])
    real = recorded(Circle(duration=6.0))
    fixes = dataclasses.replace(
        real.gps.take(slice(0, 1)), stamp_ns=np.array([stamp]), latitude=latitude,
        longitude=longitude, altitude=altitude,
    )  # fmt: skip
    origin = locate_truth(truth, fixes)
    np.testing.assert_allclose(positions(fixes, origin)[0], place, rtol=0, atol=1e-6)
    fix_position = frame.to_enu(*(np.array([value]) for value in (
        origin.latitude_deg, origin.longitude_deg, origin.altitude_m)))  # fmt: skip
    np.testing.assert_allclose(fix_position, 0.0, atol=1e-6)


@pytest.mark.parametrize(
    ('stamp', 'offset'), [(-1, 0.0), (5, 0.5), (10, 5.0), (15, 5.5), (21, 6.0)]
)
def test_the_origin_is_computed_from_the_truth_at_the_stamp_of_the_fix(
    stamp: int, offset: float
) -> None:
    """Before it, between samples, at two of one stamp, of which the last counts, and after it."""
    real = recorded(Circle(duration=6.0))
    position = np.array([[0.0], [1.0], [5.0], [6.0]]) * np.ones(3)
    truth = dataclasses.replace(
        real.truth.take(slice(0, 4)), stamp_ns=np.array([0, 10, 10, 20]), position=position
    )
    fixes = dataclasses.replace(real.gps.take(slice(0, 1)), stamp_ns=np.array([stamp]))
    first_position = positions(fixes, locate_truth(truth, fixes))[0]
    np.testing.assert_allclose(first_position, offset, atol=1e-6)


def test_a_twin_can_have_the_rates_of_the_real_sensors() -> None:
    real = recorded(Circle(duration=8.0))
    slow = real.with_messages('gps', real.gps.take(slice(None, None, 4)))
    maker = TwinMaker(slow, seed=0)
    (note, *_) = maker.model_notes(NOISY)
    assert (note.code, note.subject) == ('twin.rate_differs', 'GPS')
    assert note.numbers == {'simulated': 10.0, 'real': 2.5}
    fitted = maker.at_real_rates(NOISY)
    assert (fitted.gps.rate, fitted.imu.rate) == (2.5, 100.0)
    (attitude,) = maker.model_notes(fitted)
    assert (attitude.code, attitude.words['has']) == ('twin.attitude_differs', 'real')
    twin = maker.make(fitted)
    assert np.array_equal(twin.gps.stamp_ns, slow.gps.stamp_ns)
    unchanged_twin = Twin('kept', None, NOISY.imu)
    assert maker.at_real_rates(unchanged_twin).gps is None
    assert maker.model_notes(unchanged_twin) == (attitude,)


def test_a_rate_is_that_of_the_distinct_stamps() -> None:
    """Drivers that stamp messages in batches repeat most stamps; the median step is then zero."""
    real = recorded(Circle(duration=8.0))
    stamp_ns = real.imu.stamp_ns[np.arange(len(real.imu)) // 4 * 4]
    batched = real.with_messages('imu', dataclasses.replace(real.imu, stamp_ns=stamp_ns))
    assert TwinMaker(batched, seed=0).at_real_rates(NOISY).imu.rate == 25.0


def test_a_twin_without_enough_truth_is_refused() -> None:
    real = recorded(Circle(duration=6.0))
    with pytest.raises(RecordingError, match='truth'):
        TwinMaker(real.with_messages('truth', None), seed=0)
    truth = real.truth
    with pytest.raises(MotionError, match='at least 3'):
        TwinMaker(real.with_messages('truth', truth.take(slice(0, 2))), seed=0)
