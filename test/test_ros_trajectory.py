# SPDX-License-Identifier: Apache-2.0
"""trajectory_node waits for those who have to hear it, and the time stands meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile
from ros_examples import TIMEOUT, Graph, graph_of_its_own, stamps
from rosgraph_msgs.msg import Clock

from sim_sensors.motions import START_NS
from sim_sensors.ros.messages import stamp_ns


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        graph.node.destroy_publisher(graph.odometry)
        graph.node.destroy_publisher(graph.clock)
        yield graph


def test_the_motion_begins_when_somebody_publishes_what_is_awaited(graph: Graph) -> None:
    graph.listen('/clock', Clock)
    graph.listen('ground_truth/odometry', Odometry)
    process = graph.start(
        'trajectory_node',
        'motion:=circle',
        'duration:=1.0',
        'scenario.ramp_time:=0.5',
        'clock:=true',
        'subscribers:=1',
        'publishers:=odometry/filtered other',
        'delay:=0.1',
    )
    times, odometry = graph.received['/clock'], graph.received['ground_truth/odometry']
    # The subscription is there, one publisher of two as well: nothing moves.
    first = graph.node.create_publisher(Odometry, 'odometry/filtered', QoSProfile(depth=1))
    graph.wait(lambda: len(times) >= 50, 'the time that stands')
    assert {stamp_ns(message.clock) for message in times} == {START_NS}
    assert not odometry
    second = graph.node.create_publisher(Odometry, 'other', QoSProfile(depth=1))
    graph.wait(lambda: len(odometry) == 101, 'the whole motion')
    assert stamps(odometry) == [START_NS + k * 10_000_000 for k in range(101)]
    graph.wait(lambda: stamp_ns(times[-1].clock) == START_NS + 1_000_000_000, 'the last time')
    process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0
    for publisher in (first, second):
        graph.node.destroy_publisher(publisher)
