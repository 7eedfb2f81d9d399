# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""path_follower_node over real DDS gives the commands of the batch run, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='no ROS')

from geometry_msgs.msg import PoseStamped, Twist, TwistStamped, Vector3Stamped
from nav_msgs.msg import Path
from ros_examples import Graph, graph_of_its_own, refused

from sim_sensors.core.measurements import OdometryArray
from sim_sensors.following.follower import LiveFollower, Step
from sim_sensors.following.tracking import TRACKERS
from sim_sensors.motion.motions import motion_of, truth_of
from sim_sensors.motion.vehicles import DifferentialDrive
from sim_sensors.motion.waypoints import read_waypoints
from sim_sensors.ros.messages import messages_of, stamp_ns, time_message

# The robot drives a circle; the path asks for a wider one, so that all errors are alive.
TRUTH = truth_of(
    motion_of('circle', seed=0, run='', duration=3.0, parameters={}), rate=50.0
)  # fmt: skip
ERROR = '/path_follower_node/error'


def table() -> str:
    t = np.arange(0.0, 2.51, 0.2)
    angle = 0.4 * t
    columns = zip(t, 2.0 * np.sin(angle), 2.0 - 2.0 * np.cos(angle), angle, strict=True)
    rows = [','.join(repr(float(value)) for value in row) for row in columns]
    return '\n'.join(['t,x,y,theta', *rows, ''])


def batch(truth: OdometryArray, path: FilePath, controller: str) -> list[Step]:
    live = LiveFollower(DifferentialDrive(), TRACKERS[controller](), control_rate=20.0)
    live.follow(read_waypoints(path))
    steps = [live.push(truth.take([k])) for k in range(len(truth))]
    return [step for step in steps if step.command is not None]


@pytest.fixture
def graph() -> Iterator[Graph]:
    with graph_of_its_own() as graph:
        yield graph


def test_the_node_publishes_the_commands_of_the_batch_run(
    graph: Graph, tmp_path: FilePath
) -> None:
    """Late and repeated odometry is counted and changes nothing."""
    path, controller = tmp_path / 'path.csv', 'yaw_distance_pid'
    path.write_text(table(), encoding='utf-8')
    expected_steps = batch(TRUTH, path, controller)
    assert len(expected_steps) == 61
    assert sum(step.command.finished for step in expected_steps if step.command) == 12
    graph.listen('cmd_vel', TwistStamped)
    graph.listen(ERROR, Vector3Stamped)
    graph.start('path_follower_node', f'path:={path}', f'controller:={controller}')
    ready = lambda: (  # noqa: E731
        graph.odometry.get_subscription_count() == 1
        and graph.values().get('odometry publishers') == '1'
        and graph.values().get('subscriptions') == '1'
        and graph.values().get('truth subscriptions') == '1'
    )
    graph.wait(ready, 'the node')
    rows = list(messages_of(TRUTH))
    rows[40:40] = [rows[39], rows[20]]
    got, errors = graph.received['cmd_vel'], graph.received[ERROR]
    for k, row in enumerate(rows):
        graph.odometry.publish(row)
        if k % 10 == 0:
            graph.executor.spin_once(timeout_sec=0.02)
    graph.wait(lambda: len(got) == len(errors) == len(expected_steps), 'all commands')
    assert [(m.twist.linear.x, m.twist.angular.z) for m in got] == [
        (step.command.speed, step.command.yaw_rate) for step in expected_steps if step.command
    ]
    assert [(m.vector.x, m.vector.y, m.vector.z) for m in errors] == [
        tuple(step.error) for step in expected_steps if step.error
    ]
    assert stamp_ns(got[0].header.stamp) == int(TRUTH.stamp_ns[0])
    late = 'odometry: its stamp is not later than the previous one'
    graph.wait(lambda: graph.values()[late] == '2', 'the count')
    graph.wait(lambda: graph.said('the path has ended'), 'the end')


def test_a_path_on_the_topic_is_followed(graph: Graph) -> None:
    """The robot stands 1 m left of a straight path, so it is commanded to turn right."""
    graph.listen('cmd_vel', Twist)
    publisher = graph.node.create_publisher(Path, 'path', 1)
    graph.start('path_follower_node', 'stamped:=false')
    graph.wait(
        lambda: (
            graph.values().get('odometry publishers') == '1'
            and graph.values().get('subscriptions') == '1'
            and publisher.get_subscription_count() == 1
        ),
        'the node',
    )
    assert graph.said('no path')
    bad = Path(poses=[PoseStamped(), PoseStamped()])
    publisher.publish(bad)
    graph.wait(lambda: graph.said('path: 1 waypoints left; must be >= 2'), 'the refusal')
    message = Path()
    for k in range(5):
        pose = PoseStamped()
        pose.header.stamp = time_message(k * 1_000_000_000)
        pose.pose.position.x, pose.pose.position.y = 10.0 + k, -1.0
        message.poses.append(pose)
    publisher.publish(message)
    graph.wait(lambda: graph.said('no odometry: no message arrived'), 'the path')
    row = next(messages_of(TRUTH.take([0])))
    row.pose.pose.position.x = 10.0
    graph.odometry.publish(row)
    graph.wait(lambda: graph.received['cmd_vel'], 'a command')
    command = graph.received['cmd_vel'][0]
    assert command.linear.x == pytest.approx(1.0)
    assert command.angular.z < -0.5


def test_a_missing_path_is_refused_in_one_line(
    graph: Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = refused(capsys, 'path_follower_node', 'path:=/gone.csv')
    assert '/gone.csv' in line
