# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Hector's three services, over real DDS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from geometry_msgs.msg import Twist, TwistStamped, Vector3
from ros_examples import Graph, graph_of_its_own
from sensor_msgs.msg import Imu
from std_srvs.srv import Trigger

from sim_sensors.motion.motions import motion_of, truth_of

TRUTH = truth_of(motion_of('drive_line', seed=3, run='run_1', duration=2.0, parameters={}))
BIAS = 'imu_node/truth/bias'


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        yield graph


def by_stamp(messages: list[TwistStamped]) -> dict[tuple[int, int], Twist]:
    return {
        (message.header.stamp.sec, message.header.stamp.nanosec): message.twist
        for message in messages
    }


def test_services_set_the_drift_and_a_reset_draws_a_new_one(graph: Graph) -> None:
    """The drift hardly moves; after a reset the first drifts are back."""
    graph.listen('imu/data', Imu)
    graph.listen(BIAS, TwistStamped)
    drift = [
        f'imu.{part}.{name}:=[{value}, {value}, {value}]'
        for part in ('gyroscope', 'accelerometer')
        for name, value in (('drift', 0.5), ('drift_frequency', 1e-9))
    ]
    graph.start('imu_node', 'model:=hector_imu', *drift)
    graph.connect('imu/data')
    setters = {
        name: graph.node.create_publisher(Vector3, f'imu_node/set_{name}_bias', 1)
        for name in ('rate', 'accel')
    }
    graph.wait(lambda: all(p.get_subscription_count() for p in setters.values()), 'the setters')
    got = graph.received[BIAS]

    def play(first: int, last: int) -> TwistStamped:
        got.clear()
        graph.play(TRUTH.take(slice(first, last)), lambda k: bool(got))
        graph.wait(lambda: len(got) >= last - first - 3, 'the biases')
        return got[-1].twist

    first = play(0, 20)
    measured = by_stamp(got)
    assert abs(first.angular.x) > 0.01
    assert graph.call(Trigger, 'imu_node/calibrate', Trigger.Request()).success
    calibrated = play(20, 40)
    assert abs(calibrated.angular.x) < 1e-3
    assert calibrated.linear.x == pytest.approx(first.linear.x, abs=1e-3)
    setters['rate'].publish(Vector3(x=1.0, y=2.0, z=3.0))
    setters['accel'].publish(Vector3(x=4.0, y=5.0, z=6.0))
    setters['accel'].publish(Vector3(x=float('nan')))

    # Topics are heard when they are: odometry goes on until both are.
    place = 40
    while place < 180:
        now = play(place, place + 10)
        place += 10
        if abs(now.angular.y - 2.0) < 1e-3 and abs(now.linear.z - 6.0) < 1e-3:
            break
    assert now.angular.z == pytest.approx(3.0, abs=1e-3)
    assert now.linear.x == pytest.approx(4.0, abs=1e-3)
    assert graph.call(Trigger, 'imu_node/reset', Trigger.Request()).success
    play(0, 20)
    again = by_stamp(got)
    # The received samples vary between runs: a busy machine loses some.
    both = measured.keys() & again.keys()
    assert len(both) >= 5
    for stamp in both:
        assert again[stamp].angular.x == pytest.approx(measured[stamp].angular.x, abs=1e-9)
