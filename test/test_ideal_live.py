# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Live sensors on noise-free streams give the bits of the batch."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from ideal_examples import EXACT, Shaken, noise_free_imu, recorded
from recording_examples import arrays_equal

from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.core.measurements import MessageArray
from sim_sensors.gps import gps
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.live.samples import LiveNoiseFree, LiveOdometry, Verdict
from sim_sensors.live.sensor import LiveSensor
from sim_sensors.magnetometer import magnetometer
from sim_sensors.magnetometer.magnetometer import load_mag
from sim_sensors.motion.ideal import Mounting
from sim_sensors.motion.motions import motion_of
from sim_sensors.motion.odometry import SAMPLES_AHEAD, OdometryMotion
from sim_sensors.sensor.catalogue import KINDS
from sim_sensors.world.world import load_world


def arriving(recording: Recording, seed: int) -> list[tuple[str, MessageArray]]:
    """Return odometry and noise-free messages, one row each, some 30 ms out of step."""
    rng = np.random.default_rng(seed)
    rows = []
    for role in recording.roles:
        array = recording.require(role)
        lag = int(rng.integers(0, 30_000_000))
        rows += [
            (int(array.stamp_ns[k]) + lag, role, array.take(slice(k, k + 1)))
            for k in range(len(array))
        ]
    return [(role, row) for _, role, row in sorted(rows, key=lambda row: row[0])]


@pytest.mark.parametrize('seed', [1, 2, 3])
def test_live_sensors_equal_the_batch_run_bit_for_bit(seed: int) -> None:
    """Either stream may be behind, begin first or end first."""
    motion = motion_of('swaying', duration=1.2)
    ideal = noise_free_imu(motion)
    cut = slice(seed * 7, len(ideal) - (3 - seed) * 11)
    recording = recorded(motion, {'ideal_imu': ideal.take(cut)})
    model = load_imu('xsens_mtx')
    maker = TwinMaker(recording, seed=3)
    twin = Twin('own', load_gps('ch_rw'), model)
    placed, label = maker.sensors(twin).placed['imu'], maker.sensors(twin).run
    batch = maker.make(twin).imu
    assert batch is not None

    kind = KINDS.get('imu')
    around = kind.surroundings(load_world('default'))
    live = LiveSensor(
        lambda: placed.model.start(3, label, 'imu'),
        model.rate,
        LiveOdometry(velocity='twist', gap_factor=1.8, longest_gap=60.0),
        noise_free=LiveNoiseFree.from_kind(kind, Mounting(), lambda: around),
    )
    got = []

    def take() -> None:
        for stamps, measured in live.measure():
            got.append(measured.messages(stamps, placed.model.frame_id))

    for role, row in arriving(recording, seed):
        verdict = live.push(row) if role == 'truth' else live.push_noise_free(row)
        assert verdict.is_accepted or verdict is Verdict.EARLY
        take()
    live.finish()
    take()
    for name in ('stamp_ns', 'angular_velocity', 'linear_acceleration', 'orientation'):
        joined = np.concatenate([getattr(array, name) for array in got])
        assert np.array_equal(joined, getattr(batch, name)), name


def test_nodes_with_noise_free_sensors_equal_the_batch_run_bit_for_bit() -> None:
    pytest.importorskip('rclpy', reason='no ROS')
    from ros_examples import graph_of_its_own

    from sim_sensors.ros.messages import array_of, messages_of

    motion, world = Shaken(motion_of('circle', duration=2.0)), load_world('default')
    receiver = dataclasses.replace(load_gps('baseline'), rate=20.0)
    ideal: dict[str, Any] = {
        'imu': noise_free_imu(motion, 200.0),
        'gps': gps.simulate(receiver, motion, frame=world.frame, **EXACT),
        'mag': magnetometer.simulate(load_mag('ideal'), motion, world=world, **EXACT),
    }
    models = {'imu': 'airsim', 'gps': 'zed_f9p_rtk', 'mag': 'xsens_mtx'}
    recording = recorded(motion, {f'ideal_{name}': array for name, array in ideal.items()}, 50.0)
    truth = recording.truth
    assert truth is not None
    moved = OdometryMotion(truth, origin_ns=0)
    batch = {}
    for name, stream in ideal.items():
        assert arrays_equal(array_of(list(messages_of(stream))), stream)
        kind = KINDS.get(name)
        around = kind.surroundings(world)
        measured = kind.ideal(moved, stream, origin_ns=0, **around)
        expected = kind.simulate(kind.load(models[name]), measured, seed=3, run='here', **around)
        # Final is what lies before the last but one sample of both.
        end = min(array.stamp_ns[-SAMPLES_AHEAD] for array in (truth, stream))
        batch[name] = expected.take(expected.stamp_ns < end)
    with graph_of_its_own() as graph:
        senders = {'truth': graph.odometry}
        for name in ideal:
            kind = KINDS.get(name)
            words = f'model:={models[name]}', 'seed:=3', 'run:=here', 'noise_free.enabled:=true'
            message = type(next(messages_of(ideal[name])))
            graph.start(kind.node, *words)
            graph.listen(kind.topic, message)
            topic = recording.roles[f'ideal_{name}'].strip('/')
            senders[f'ideal_{name}'] = graph.node.create_publisher(message, topic, 1000)
        graph.connect(*(KINDS.get(name).topic for name in ideal), sensors=3)
        graph.wait(
            lambda: all(sender.get_subscription_count() for sender in senders.values()),
            'who listens to the noise-free sensors',
        )
        for count, (role, row) in enumerate(arriving(recording, 1)):
            senders[role].publish(next(messages_of(row)))
            if count % 10 == 0:
                graph.executor.spin_once(timeout_sec=0.02)
        got = {name: graph.received[KINDS.get(name).topic] for name in ideal}
        graph.wait(
            lambda: all(len(got[name]) == len(array) for name, array in batch.items()),
            'all measurements that are final',
        )
    for name in ideal:
        live = array_of(got[name])
        for field in ('stamp_ns', *KINDS.get(name).ideal_values):
            assert np.array_equal(getattr(live, field), getattr(batch[name], field)), field


def test_the_waiting_messages_of_a_stalled_stream_are_limited() -> None:
    """Waiting messages are limited, and each message is examined once."""
    motion = motion_of('circle', duration=2.0)
    ideal = noise_free_imu(motion)
    stream = LiveNoiseFree(lambda moving, messages, origin_ns: moving, ('angular_velocity',))
    for k in range(len(ideal)):
        stream.push(ideal.take(slice(k, k + 1)))
    assert len(stream.samples(int(ideal.stamp_ns[500]))) == 502
    stream.trim(int(ideal.stamp_ns[500]))
    assert stream.samples(int(ideal.stamp_ns[-1])).stamp_ns[0] == ideal.stamp_ns[499]
    stream.keep_last(10)
    assert stream.origin_ns == ideal.stamp_ns[-10]


def test_both_streams_change_to_an_earlier_time_line_with_the_same_bits() -> None:
    """Far stamps are refused before; the new line begins with its first sample."""
    motion = motion_of('swaying', duration=1.2)
    recording = recorded(motion, {'ideal_imu': noise_free_imu(motion)})
    kind = KINDS.get('imu')
    around = kind.surroundings(load_world('default'))
    model = load_imu('xsens_mtx')
    live = LiveSensor(
        lambda: model.start(3, 'a', 'imu'),
        model.rate,
        LiveOdometry(velocity='twist', gap_factor=1.8, longest_gap=60.0),
        noise_free=LiveNoiseFree.from_kind(kind, Mounting(), lambda: around),
    )

    def shifted(row: Any, by_ns: int) -> Any:
        return dataclasses.replace(row, stamp_ns=row.stamp_ns + by_ns)

    def play(by_ns: int, *, outlier: bool) -> list[tuple[int, bytes]]:
        got = []
        for number, (role, row) in enumerate(arriving(recording, 1)):
            push = live.push if role == 'truth' else live.push_noise_free
            if outlier and number in (60, 61):
                push(shifted(row, 10**18))
            push(shifted(row, by_ns))
            for stamps, measured in live.measure():
                rates = measured.messages(stamps, '').angular_velocity
                got += [
                    (int(stamp) - by_ns, rate.tobytes())
                    for stamp, rate in zip(stamps, rates, strict=True)
                ]
        return got

    first = play(0, outlier=False)
    live.reset()
    assert play(0, outlier=True) == first
    assert play(-(10**12), outlier=False) == first
