# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensors and the judge report faults of topics and recover from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from builtin_interfaces.msg import Time
from live_examples import curve
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile
from ros_examples import Graph, batch_bits, final_stamps, graph_of_its_own, imu_bits, stamps
from ros_judge_examples import Script, play
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu

from sim2real_eval.judge.robot_localization.configuration import FilterConfig
from sim2real_eval.judge.robot_localization.health import SEVERAL_PUBLISHERS
from sim2real_eval.judge.robot_localization.live import LiveJudge
from sim2real_eval.recording.cdr import encode
from sim2real_eval.recording.message_types import MESSAGE_TYPES
from sim2real_eval.recording.metadata import FrameTree
from sim_sensors.core.shipped import config_path
from sim_sensors.motion.motions import motion_of, truth_of
from sim_sensors.motion.time_line import NEW_LINE_COUNT
from sim_sensors.ros.messages import messages_of

TRUTH = truth_of(motion_of('circle', seed=0, run='', duration=1.0, parameters={'ramp_time': 0.5}))
TOPIC = 'imu/data'


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        yield graph


@pytest.fixture
def sensor(graph: Graph) -> Graph:
    """A graph with an IMU."""
    graph.listen(TOPIC, Imu)
    graph.start('imu_node')
    graph.connect(TOPIC)
    return graph


def heard(graph: Graph) -> list[Imu]:
    """The measurements of all of TRUTH that are final."""
    got = graph.received[TOPIC]
    graph.wait(lambda: len(got) >= len(final_stamps(TRUTH, 100.0)), 'all measurements')
    return got


def test_repeated_odometry_is_measured_once(sensor: Graph) -> None:
    for row in messages_of(TRUTH):
        sensor.odometry.publish(row)
        sensor.odometry.publish(row)
    got = heard(sensor)
    assert stamps(got) == final_stamps(TRUTH, 100.0)
    assert imu_bits(got) == batch_bits(TRUTH)
    sensor.wait(lambda: sensor.values()['odometry repeated'] == str(len(TRUTH)), 'the count')


def test_reordered_odometry_is_ignored_and_counted(sensor: Graph) -> None:
    rows = list(messages_of(TRUTH))
    rows[40], rows[41] = rows[41], rows[40]
    for row in rows:
        sensor.odometry.publish(row)
    got = heard(sensor)
    remaining = TRUTH.take([k for k in range(len(TRUTH)) if k != 40])
    assert imu_bits(got) == batch_bits(remaining)
    sensor.wait(lambda: sensor.values()['odometry late'] == '1', 'the count')


@pytest.mark.parametrize('clock', ['goes on', 'begins anew'])
def test_measurements_continue_after_a_restart_of_the_simulator(sensor: Graph, clock: str) -> None:
    """At once if its time continues; from its first sample if its time restarts without /clock."""
    first = TRUTH.take(slice(0, 61))
    sensor.play(first, lambda k: len(sensor.received[TOPIC]) >= len(final_stamps(first, 100.0, k)))
    sensor.node.destroy_publisher(sensor.odometry)
    sensor.wait(lambda: sensor.values()['odometry publishers'] == '0', 'its end')
    sensor.odometry = sensor.node.create_publisher(
        Odometry, 'ground_truth/odometry', QoSProfile(depth=500)
    )
    sensor.wait(lambda: sensor.values()['odometry publishers'] == '1', 'the new one')
    rows = TRUTH.take(slice(61, None))
    if clock == 'begins anew':
        sensor.received[TOPIC].clear()
        rows = TRUTH
    for row in messages_of(rows):
        sensor.odometry.publish(row)
    assert imu_bits(heard(sensor)) == batch_bits(TRUTH)
    late = str(NEW_LINE_COUNT - 1) if clock == 'begins anew' else '0'
    sensor.wait(lambda: sensor.values()['odometry late'] == late, 'the count')
    assert sensor.values()['resets'] == ('1' if clock == 'begins anew' else '0')


def test_a_single_message_in_the_far_future_is_refused_and_changes_nothing(sensor: Graph) -> None:
    rows = list(messages_of(TRUTH))
    future = next(messages_of(TRUTH.take([50])))
    future.header.stamp = Time(sec=2**31 - 1)
    for row in [*rows[:50], future, *rows[50:]]:
        sensor.odometry.publish(row)
    assert imu_bits(heard(sensor)) == batch_bits(TRUTH)
    sensor.wait(lambda: sensor.values()['odometry ahead of time'] == '1', 'the count')
    assert sensor.values()['odometry accepted'] == str(len(TRUTH))
    assert sensor.values()['resets'] == '0'


def test_messages_of_other_frames_are_refused_like_in_a_recording(sensor: Graph) -> None:
    for number, row in enumerate(messages_of(TRUTH)):
        sensor.odometry.publish(row)
        if number % 10 == 5:
            stranger = next(messages_of(dataclasses.replace(TRUTH.take([number]), frame='odom')))
            stranger.header.stamp.nanosec += 5_000_000
            stranger.pose.pose.position.x += 100.0
            sensor.odometry.publish(stranger)
    assert imu_bits(heard(sensor)) == batch_bits(TRUTH)
    sensor.wait(lambda: sensor.values()['recording.other_frame'] == '10', 'the count')


WHEELS = curve(1.5).messages['/wheel/odom']
FILE = config_path('judge', 'wheels.yaml')
KIND = MESSAGE_TYPES['nav_msgs/msg/Odometry']


class Judged:
    """judge_node on a graph, with wheel odometry, which gets one message or tick at a time."""

    def __init__(self, graph: Graph) -> None:
        parameters = ('use_sim_time:=true', 'assume_identity_frames:=true')
        (node,) = graph.start('judge_node', *parameters, file=FILE)
        self.graph, self.node, self._sent = graph, node, 0
        self.wheel = graph.node.create_publisher(Odometry, 'wheel/odometry', 10)
        self.heard: list[bytes] = []
        graph.node.create_subscription(
            Odometry, 'odometry/filtered', self.heard.append, 1000, raw=True
        )
        self.connect(1)

    def connect(self, publishers: int) -> None:
        """Wait until both sides know of each other."""
        graph, node = self.graph, self.node
        graph.wait(
            lambda: (
                node._inputs['odom0'].get_publisher_count() == publishers
                and node._filtered.get_subscription_count() == 1
                and graph.clock.get_subscription_count() == 1
            ),
            'the judge',
        )

    def play(self, script: Script) -> list[bytes]:
        """Send all messages and ticks; return the estimates."""
        self.heard.clear()
        before = self.node.health.published
        for what, value in script:
            if what == 'clock':
                self.graph.tick(value)
                self.graph.wait(lambda value=value: self._knows(value), f'the tick at {value}')
            else:
                self.wheel.publish(encode(KIND, value, what)[0])
                self._sent += 1
                self.graph.wait(
                    lambda: self.node.health.received.get('odom0', 0) == self._sent, 'its message'
                )
        count = self.node.health.published - before
        self.graph.wait(lambda: len(self.heard) == count, 'its estimates')
        return self.heard.copy()

    def _knows(self, now_ns: int) -> bool:
        due = self.node._timers_due
        return self.node._now() == now_ns and (
            now_ns == 0 or (due is not None and due.next_ns > now_ns)
        )


def script_of(rows: Sequence[int]) -> Script:
    """Rows of WHEELS, each after a tick of the clock, with ticks in between."""
    script: Script = []
    for place, row in enumerate(rows):
        now = int(WHEELS.stamp_ns[0]) + place * 50_000_000
        script += [('clock', now + 1_000_000), ('odom0', WHEELS.take([row]))]
        script += [('clock', now + k * 1_000_000) for k in (21, 41)]
    return script


def expected(script: Script) -> list[bytes]:
    """Output of a judge in this process for the same messages."""
    live = LiveJudge(FilterConfig.from_file(FILE), None, FrameTree((), assume_identity=True))
    return [encode(KIND, step, 'x')[0] for step in play(live, script).filtered]


@pytest.fixture
def judged(graph: Graph) -> Judged:
    return Judged(graph)


def test_repeated_messages_are_fused_twice_like_in_ekf_node(judged: Judged) -> None:
    once = script_of(range(20))
    twice = [entry for step in once for entry in ([step, step] if step[0] == 'odom0' else [step])]
    estimates = judged.play(twice)
    assert estimates == expected(twice)
    assert estimates != expected(once)
    assert len(estimates) > 15
    repeated = ' stamps repeated'
    judged.graph.wait(
        lambda: [v for key, v in judged.graph.values().items() if repeated in key] == ['20'],
        'the count',
    )


def test_a_reordered_measurement_is_ignored_and_counted(judged: Judged) -> None:
    rows = list(range(20))
    rows[9:11] = [10, 9]
    script = script_of(rows)
    estimates = judged.play(script)
    late = next(
        k
        for k, step in enumerate(script)
        if step[0] == 'odom0' and step[1].stamp_ns[0] == WHEELS.stamp_ns[9]
    )
    assert estimates == expected(script) == expected(script[:late] + script[late + 1 :])
    (part,) = judged.node.live.parts
    assert part.older == 1


def test_two_publishers_of_a_measurement_or_the_clock_cause_a_warning(judged: Judged) -> None:
    graph = judged.graph
    for topic, kind in (('/wheel/odometry', Odometry), ('/clock', Clock)):
        second = graph.node.create_publisher(kind, topic, 1)
        graph.wait(
            lambda topic=topic: topic in graph.values().get(SEVERAL_PUBLISHERS.code, ''),
            'the warning',
        )
        graph.node.destroy_publisher(second)
        graph.received['/diagnostics'].clear()
        graph.wait(lambda: graph.statuses(), 'a report')
        graph.wait(lambda: SEVERAL_PUBLISHERS.code not in graph.values(), 'its end')


def test_a_restarted_driver_continues_the_estimate(judged: Judged) -> None:
    script = script_of(range(20))
    half = len(script) // 2
    estimates = judged.play(script[:half])
    judged.graph.node.destroy_publisher(judged.wheel)
    judged.connect(0)
    judged.wheel = judged.graph.node.create_publisher(Odometry, 'wheel/odometry', 10)
    judged.connect(1)
    assert estimates + judged.play(script[half:]) == expected(script)


@pytest.mark.parametrize('by', ['zero', 'an hour ahead'])
def test_the_judge_restarts_after_a_jump_of_the_clock(judged: Judged, by: str) -> None:
    script = script_of(range(20))
    first = judged.play(script)
    ahead = script[-1][1] + 3_600_000_000_000
    judged.play([('clock', 0 if by == 'zero' else ahead)])
    again = judged.play(script)
    assert judged.node.health.resets == 1
    assert again == first == expected(script)


def test_the_judge_restarts_with_an_earlier_time_line_of_its_measurements(judged: Judged) -> None:
    """The simulator starts again without /clock, which goes on: 20 messages are not estimated."""
    script = script_of(range(20))
    now = script[-1][1]
    judged.play(script)
    long_ago = dataclasses.replace(WHEELS, stamp_ns=WHEELS.stamp_ns - 100 * 10**9)
    again: Script = []
    for row in range(25):
        again += [('clock', now + row * 50_000_000), ('odom0', long_ago.take([row]))]
    estimates = judged.play([*again, ('clock', now + 2_000_000_000)])
    assert judged.node.health.resets == 1
    assert 'earlier time line' in judged.node.health.last_reset
    (part,) = judged.node.live.parts
    assert part.fused == 25 - NEW_LINE_COUNT + 1
    assert estimates
