# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensors use the queues that an experiment requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip('rclpy', reason='no ROS')

from rclpy.qos import ReliabilityPolicy
from ros_examples import Graph, graph_of_its_own

from sim2real_eval.ros_launch.sensors import odometry_qos


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        yield graph


@pytest.mark.parametrize('lossless', [False, True])
def test_lossless_sensors_use_reliable_subscriptions(graph: Graph, lossless: bool) -> None:
    parameters = odometry_qos('', 'ground_truth/odometry', ['imu', 'gps']) if lossless else {}
    graph.start('sensors_node', *(f'{name}:={value}' for name, value in parameters.items()))

    def found() -> dict[str, ReliabilityPolicy]:
        readers = graph.node.get_subscriptions_info_by_topic('/ground_truth/odometry')
        return {reader.node_name: reader.qos_profile.reliability for reader in readers}

    kind = ReliabilityPolicy.RELIABLE if lossless else ReliabilityPolicy.BEST_EFFORT
    # Nodes of the test before, of the same names, are known for some seconds after their end.
    graph.wait(lambda: found() == {'imu_node': kind, 'gps_node': kind}, f'two {kind.name} sensors')


def test_a_qos_override_applies_only_to_its_topic(graph: Graph) -> None:
    """Sensors of one process, the second made after the first."""
    nodes = graph.start('sensors_node', 'qos_overrides./imu/data.publisher.depth:=77')
    deep = {
        publisher.topic_name
        for node in nodes
        for publisher in node.publishers
        if publisher.qos_profile.depth == 77
    }
    assert deep == {'/imu/data'}
