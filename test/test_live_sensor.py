# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A live sensor has the bits of the batch run, in bounded memory."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim_sensors.camera import camera
from sim_sensors.camera.camera import load_camera
from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import MessageArray, OdometryArray
from sim_sensors.gps import gps
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu import imu
from sim_sensors.imu.imu import load_imu
from sim_sensors.live.samples import LiveOdometry, Verdict
from sim_sensors.live.sensor import LiveSensor
from sim_sensors.magnetometer import magnetometer
from sim_sensors.magnetometer.magnetometer import load_mag
from sim_sensors.motion.motions import motion_of, truth_of
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.motion.time_line import NEW_LINE_COUNT
from sim_sensors.sensor.delivery import Delivery
from sim_sensors.vision import vision_pose
from sim_sensors.vision.vision_pose import load_vision
from sim_sensors.wheels import wheel_odometry
from sim_sensors.wheels.wheel_odometry import load_wheels
from sim_sensors.world.world import load_world

TRUTH = truth_of(motion_of('drive_circle', seed=1, run='a', duration=3.0, parameters={}))
CHRONO, WALK = load_imu('chrono'), load_gps('ch_rw_airsim')


def odometry(**changes: object) -> LiveOdometry:
    options = {'velocity': 'twist', 'gap_factor': 1.8, 'longest_gap': 60.0, **changes}
    return LiveOdometry(**options)  # type: ignore[arg-type]


def at(stamp_ns: int, k: int = 0) -> OdometryArray:
    sample = TRUTH.take([k])
    stamp = np.array([stamp_ns])
    return dataclasses.replace(sample, stamp_ns=stamp, arrival_ns=stamp)


def navsat_inputs(sensor: LiveSensor, truth: OdometryArray) -> list[tuple[np.ndarray, object]]:
    out = []
    for k in range(len(truth)):
        assert sensor.push(truth.take([k])).is_accepted
        out += list(sensor.measure())
    return out


@pytest.mark.parametrize(('rate', 'keep'), [(1.0, 0.5), (99.7, 0.5), (100.0, 1.0), (1000.0, 1.0)])
def test_every_live_model_equals_the_batch_run_bit_for_bit(rate: float, keep: float) -> None:
    chosen = np.random.default_rng(0).random(len(TRUTH)) < keep
    chosen[0] = True
    truth = TRUTH.take(chosen)
    origin = int(truth.stamp_ns[0])
    motion = OdometryMotion(truth, origin_ns=origin, velocity='twist')
    for module, model in ((imu, load_imu('airsim')), (gps, load_gps('ch_rw_airsim'))):
        model = dataclasses.replace(model, rate=rate)
        sensor = LiveSensor(lambda model=model: model.start(4, 'a'), rate, odometry())
        live = [m.messages(stamp, '') for stamp, m in navsat_inputs(sensor, truth)]
        batch = module.simulate(model, motion, seed=4, run='a', origin_ns=origin)
        assert len(live) > 0
        assert_same(live, batch.take(batch.stamp_ns < truth.stamp_ns[-2]))


def assert_same(live: list[MessageArray], batch: MessageArray, but: tuple[str, ...] = ()) -> None:
    for field in dataclasses.fields(batch):
        want = getattr(batch, field.name)
        if isinstance(want, np.ndarray) and field.name not in but:
            got = np.concatenate([getattr(part, field.name) for part in live])
            assert got.tobytes() == want.tobytes(), field.name


@settings(max_examples=15)
@given(
    chosen=st.lists(st.booleans(), min_size=151, max_size=151),
    cuts=st.sets(st.integers(1, 150)),
    last=st.integers(3, 151),
    rate=st.sampled_from([10.0, 99.7, 250.0]),
    late_ns=st.none() | st.integers(0, 10**9),
    velocity=st.sampled_from(['twist', 'position']),
)
def test_after_finish_live_output_is_complete_for_any_chunking_of_odometry(
    chosen: list[bool], cuts: set[int], last: int, rate: float, late_ns: int | None, velocity: str
) -> None:
    """Uneven odometry, in bursts of any size, with a grid that starts anywhere in it."""
    keep = np.array(chosen)
    keep[[0, 1, -1]] = True
    truth = TRUTH.take(np.flatnonzero(keep)).take(slice(0, last))
    origin = int(truth.stamp_ns[0])
    start = None if late_ns is None else min(origin + late_ns, int(truth.stamp_ns[-1]))
    motion = OdometryMotion(truth, origin_ns=origin, velocity=velocity)
    for module, model in ((imu, CHRONO), (gps, WALK)):
        model = dataclasses.replace(model, rate=rate)
        sensor = LiveSensor(
            lambda model=model: model.start(4, 'a'), rate, odometry(velocity=velocity),
            start_ns=start, chunk=7,
        )  # fmt: skip
        live = []
        for k in range(len(truth)):
            assert sensor.push(truth.take([k])).is_accepted
            if k in cuts:
                live += list(sensor.measure())
        sensor.odometry.finish()
        live += list(sensor.measure())
        assert not list(sensor.measure())
        batch = module.simulate(model, motion, seed=4, run='a', start_ns=start, origin_ns=origin)
        assert_same([m.messages(stamp, '') for stamp, m in live], batch)
        assert sensor.push(at(int(truth.stamp_ns[-1]) + 1)) is Verdict.FINISHED


@pytest.mark.parametrize('kind', ['mag', 'wheels', 'vision', 'camera'])
def test_live_sensors_of_every_kind_equal_the_batch_run_bit_for_bit(kind: str) -> None:
    """Uneven odometry in bursts; late, with jitter and drop-outs, and a gate that remembers."""
    module, model, more = {
        'mag': (magnetometer, load_mag('disturbed'), {'world': load_world('dipole_room')}),
        'wheels': (wheel_odometry, load_wheels('swerve'), {}),
        'vision': (vision_pose, load_vision('frc_2024'), {'world': load_world('tag_ring')}),
        'camera': (camera, load_camera('frc_1280x720'), {'world': load_world('tag_ring')}),
    }[kind]
    delivery = Delivery(jitter=0.02, drop_out=0.2, drop_out_length=0.1)
    model = dataclasses.replace(model, rate=21.3, latency=0.03, delivery=delivery)
    rng = np.random.default_rng(8)
    truth = TRUTH.take(np.sort(rng.choice(len(TRUTH), 150, replace=False)))
    origin = int(truth.stamp_ns[0])
    sensor = LiveSensor(
        lambda: model.start(4, 'a', kind, **more), model.rate, odometry(), chunk=11
    )
    live = []
    for k in range(len(truth)):
        assert sensor.push(truth.take([k])).is_accepted
        if k == len(truth) - 1:
            sensor.odometry.finish()
        elif rng.random() < 0.7:
            continue
        for stamp_ns, measured in sensor.measure():
            frame = 'odom' if kind == 'wheels' else 'map'
            live.append(sensor.sensor.channel.deliver(measured.messages(stamp_ns, frame)))
    motion = OdometryMotion(truth, origin_ns=origin, velocity='twist')
    batch = module.simulate(model, motion, seed=4, run='a', sensor=kind, origin_ns=origin, **more)
    batch = batch.features if kind == 'camera' else batch
    assert len(batch) > 10
    counts = [np.diff(part.first) for part in (*live, batch)] if kind == 'camera' else []
    assert not counts or (np.concatenate(counts[:-1]) == counts[-1]).all()
    assert_same(live, batch, but=('first',))


def test_a_sample_grid_that_starts_before_the_odometry_keeps_its_phase() -> None:
    """As after a long gap: what lies before the first sample is left out."""
    start = int(TRUTH.stamp_ns[0])
    sensor = LiveSensor(
        lambda: load_imu('ideal').start(0, 'a'), 100.0, odometry(), start_ns=start - 12_000_000
    )
    stamps = np.concatenate([stamp for stamp, _ in navsat_inputs(sensor, TRUTH)])
    assert stamps[0] == start + 8_000_000
    far = start + 100 * 10**9
    verdicts = [sensor.push(at(far + k * 10**7)) for k in range(4)]
    assert verdicts == [Verdict.HELD, Verdict.HELD, Verdict.RESTARTED, Verdict.ACCEPTED]
    (chunk, _), = sensor.measure()  # fmt: skip
    assert chunk[0] == far + 8_000_000


def test_finish_with_too_few_samples_is_an_error_until_reset() -> None:
    sensor = LiveSensor(lambda: load_imu('ideal').start(0, 'a'), 100.0, odometry())
    sensor.push(TRUTH.take([0]))
    sensor.push(TRUTH.take([1]))
    with pytest.raises(MotionError, match='2 samples'):
        sensor.odometry.finish()
    assert not list(sensor.measure())
    assert sensor.push(TRUTH.take([2])) is Verdict.FINISHED
    sensor.reset()
    navsat_inputs(sensor, TRUTH)
    sensor.odometry.finish()
    assert sensor.odometry.final_ns == TRUTH.stamp_ns[-1] + 1


def test_after_finish_the_next_loop_may_begin_before_the_clock_jumps() -> None:
    live = odometry()
    for k in range(50):
        live.push(TRUTH.take([k]))
    live.finish()
    assert live.push(TRUTH.take([0])) is Verdict.FINISHED
    (again,) = live.rewind()
    assert live.push(again) is Verdict.ACCEPTED


def test_a_measurement_is_published_with_the_second_later_odometry_sample() -> None:
    sensor = LiveSensor(lambda: load_imu('ideal').start(0, 'a'), 100.0, odometry())
    counts = []
    for k in range(6):
        sensor.push(TRUTH.take([k]))
        counts.append(sum(len(stamp) for stamp, _ in sensor.measure()))
    assert counts == [0, 0, 1, 1, 1, 1]


def test_a_long_gap_is_interpolated_and_a_longer_one_restarts_the_sensor() -> None:
    start = int(TRUTH.stamp_ns[0])
    stamps = [start + round(s * 1e9) for s in (0.0, 0.1, 0.2, 0.3, 50.0, 50.1, 50.2)]
    sensor = LiveSensor(lambda: load_imu('ideal').start(0, 'a'), 1000.0, odometry())
    verdicts, sizes = [], []
    for stamp in stamps:
        verdicts.append(sensor.push(at(stamp)))
        sizes += [len(chunk) for chunk, _ in sensor.measure()]
    assert verdicts[4:] == [Verdict.HELD, Verdict.HELD, Verdict.GAP]
    assert sensor.odometry.gap == pytest.approx(49.7)
    assert max(sizes) == 1000
    assert sum(sizes) == 50_100
    far = stamps[-1] + 61 * 10**9
    verdicts = [sensor.push(at(far + k * 10**7)) for k in range(3)]
    assert verdicts == [Verdict.HELD, Verdict.HELD, Verdict.RESTARTED]
    (chunk, _), = sensor.measure()  # fmt: skip
    assert chunk[0] == stamps[-1] + 61 * 10**9


def test_samples_out_of_order_are_refused_and_have_no_effect() -> None:
    live = odometry()
    for k in range(5):
        assert live.push(TRUTH.take([k])) is Verdict.ACCEPTED
    nan = dataclasses.replace(TRUTH.take([5]), position=np.full((1, 3), np.nan))
    none = dataclasses.replace(TRUTH.take([5]), orientation=np.zeros((1, 4)))
    assert live.push(nan) is Verdict.INVALID
    assert live.push(none) is Verdict.INVALID
    assert live.push(TRUTH.take([4])) is Verdict.REPEATED
    assert live.push(TRUTH.take([2])) is Verdict.LATE
    assert live.newest_ns == TRUTH.stamp_ns[4]
    assert live.final_ns == TRUTH.stamp_ns[3]
    assert live.push(TRUTH.take([7])) is Verdict.GAP


def test_a_loop_begins_with_its_first_sample_for_any_order_of_topics() -> None:
    """Refused samples of the new round are given back; leftovers of the old one are refused."""
    live = odometry()
    for k in range(50):
        live.push(TRUTH.take([k]))
    for k in range(3):
        assert live.push(TRUTH.take([k])) is Verdict.LATE
    again = live.rewind()
    assert [int(sample.stamp_ns[0]) for sample in again] == TRUTH.stamp_ns[:3].tolist()
    for sample in again:
        assert live.push(sample) is Verdict.ACCEPTED
    assert live.origin_ns == TRUTH.stamp_ns[0]
    for k in range(3, 50):
        live.push(TRUTH.take([k]))
    assert live.rewind() == []
    assert live.push(TRUTH.take([50])) is Verdict.STALE
    assert live.push(TRUTH.take([0])) is Verdict.ACCEPTED
    assert live.push(TRUTH.take([51])) is Verdict.ACCEPTED


@pytest.mark.parametrize('rate', [10, 100, 1000])
def test_after_a_rewind_stale_stamps_are_refused_for_a_second_of_motion(rate: int) -> None:
    live, start = odometry(), int(TRUTH.stamp_ns[0])
    live.push(TRUTH.take([0]))
    live.rewind()
    verdicts = [live.push(at(start + k * 10**9 // rate)) for k in range(1, rate + 5)]
    assert set(verdicts[:rate]) == {Verdict.STALE}
    assert set(verdicts[rate:]) == {Verdict.ACCEPTED}


def test_a_reset_repeats_the_noise() -> None:
    sensor = LiveSensor(lambda: load_imu('chrono').start(0, 'a'), 100.0, odometry())
    first = navsat_inputs(sensor, TRUTH)
    sensor.reset()
    again = navsat_inputs(sensor, TRUTH)
    rates = [[m.angular_velocity.tobytes() for _, m in runs] for runs in (first, again)]
    assert rates[0] == rates[1]


def test_sensors_that_share_samples_share_the_motion() -> None:
    """Two sensors in one process interpolate once; samples of another record are kept apart."""
    rows = [TRUTH.take([k]) for k in range(6)]
    first, second, other = odometry(), odometry(), odometry()
    for row in rows:
        first.push(row)
        second.push(row)
        other.push(dataclasses.replace(row))
    end_ns = int(rows[-2].stamp_ns[0])
    assert first.motion(end_ns) is second.motion(end_ns)
    assert first.motion(end_ns) is not other.motion(end_ns)


def earlier(by_s: int, count: int) -> list[OdometryArray]:
    return [at(int(TRUTH.stamp_ns[k]) - by_s * 10**9, k) for k in range(count)]


@pytest.mark.parametrize('ahead_s', [0.2, 30.0, 2**31 - 1 - 1.7e9])
def test_a_single_sample_ahead_of_time_has_no_effect(ahead_s: float) -> None:
    sensors = [LiveSensor(lambda: CHRONO.start(4, 'a'), 100.0, odometry()) for _ in range(2)]
    outlier = at(int(TRUTH.stamp_ns[100]) + round(ahead_s * 1e9), 100)
    rows = [TRUTH.take([k]) for k in range(len(TRUTH))]
    outputs = []
    for sensor, samples in zip(sensors, (rows, [*rows[:100], outlier, *rows[100:]]), strict=True):
        out = []
        for row in samples:
            assert sensor.push(row).is_accepted
            out += [m.messages(stamp, '') for stamp, m in sensor.measure()]
        outputs.append(out)
    assert [part.angular_velocity.tobytes() for part in outputs[0]] == [
        part.angular_velocity.tobytes() for part in outputs[1]
    ]
    assert [sensor.odometry.outliers for sensor in sensors] == [0, 1]


def test_every_sample_that_is_held_and_not_confirmed_is_counted() -> None:
    live = odometry()
    for k in range(100):
        live.push(TRUTH.take([k]))
    newest = int(TRUTH.stamp_ns[99])
    for ahead_s in (3000, 2000, 1000):
        assert live.push(at(newest + ahead_s * 10**9)) is Verdict.HELD
    assert live.push(at(newest - 10**9)) is Verdict.LATE
    assert live.outliers == 3
    assert live.push(at(newest + 1000 * 10**9)) is Verdict.HELD
    live.finish()
    assert live.outliers == 4
    live.reset()
    assert live.outliers == 4


def test_an_earlier_time_line_begins_with_its_first_sample_after_20_of_them() -> None:
    sensor = LiveSensor(lambda: CHRONO.start(4, 'a'), 100.0, odometry())
    first = navsat_inputs(sensor, TRUTH)
    rows = earlier(100, 200)
    verdicts = [sensor.push(row) for row in rows[:NEW_LINE_COUNT]]
    assert set(verdicts[:-1]) == {Verdict.LATE}
    assert verdicts[-1] is Verdict.REWOUND
    assert sensor.odometry.origin_ns == rows[0].stamp_ns[0]
    # The jump of the clock that follows changes nothing.
    assert sensor.odometry.take_jump()
    assert not sensor.odometry.take_jump()
    again = list(sensor.measure())
    for row in rows[NEW_LINE_COUNT:]:
        sensor.push(row)
        again += list(sensor.measure())
    joined = [np.concatenate([m.angular_velocity for _, m in run])[:190] for run in (first, again)]
    assert joined[0].tobytes() == joined[1].tobytes()


def test_late_samples_between_accepted_ones_begin_no_time_line() -> None:
    live = odometry()
    for k in range(100):
        assert live.push(TRUTH.take([k])).is_accepted
        for row in earlier(100, NEW_LINE_COUNT - 1):
            if k:
                assert live.push(row) is Verdict.LATE


def test_a_fast_second_publisher_does_not_replace_the_time_line() -> None:
    """Its messages of a millisecond are a short silence of the first one."""
    live = odometry()
    for k in range(50):
        live.push(TRUTH.take([k]))
    start = int(TRUTH.stamp_ns[0]) - 10**12
    verdicts = {live.push(at(start + k * 10**6)) for k in range(50)}
    assert verdicts == {Verdict.LATE}


def test_samples_of_other_frames_are_refused_until_they_are_a_new_stream() -> None:
    live = odometry()
    renamed = dataclasses.replace(TRUTH, frame='odom')
    for k in range(50):
        live.push(TRUTH.take([k]))
    assert live.push(renamed.take([50])) is Verdict.OTHER_FRAME
    assert live.push(TRUTH.take([51])) is Verdict.GAP
    verdicts = [live.push(renamed.take([k])) for k in range(52, 52 + NEW_LINE_COUNT)]
    assert set(verdicts[:-1]) == {Verdict.OTHER_FRAME}
    assert verdicts[-1] is Verdict.RENAMED
    assert live.origin_ns == TRUTH.stamp_ns[52]
