# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""An experiment counts its recorded messages and sets queues that hold a burst."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim2real_eval.cli.main import main
from sim2real_eval.ros_launch.sensors import (
    find_missing_messages,
    odometry_qos,
    read_published_count,
)

TRUTH, INERTIAL, FIXES = '/ground_truth/odometry', '/imu/data', '/gps/fix'
FINISHED = '{"published": 100, "last_stamp_ns": 1700000000990000000}'


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('lossless')
    words = ['simulate', '--motion', 'standstill', '--duration', '1', '--out', str(folder)]
    assert main(words) == 0
    (parameters,) = folder.iterdir()
    return parameters


def test_a_bag_with_all_messages_is_complete(bag: Path) -> None:
    assert find_missing_messages(bag, {TRUTH: 101, INERTIAL: 101, FIXES: 11}) == ''


def test_lost_messages_are_counted_by_topic(bag: Path) -> None:
    problem = find_missing_messages(bag, {TRUTH: 101, INERTIAL: 500, '/imu/raw': 3})
    assert '101 of 500 messages of /imu/data, 0 of 3 messages of /imu/raw' in problem


def test_a_bag_that_was_not_closed_is_incomplete(tmp_path: Path) -> None:
    assert find_missing_messages(tmp_path, {})
    (tmp_path / 'metadata.yaml').write_text('rosbag2_bagfile_information: 3\n', 'utf-8')
    assert find_missing_messages(tmp_path, {})


@pytest.mark.parametrize(
    ('answer', 'number'),
    [
        # As `ros2 service call` prints it.
        (
            'waiting for service to become available...\nresponse:\n'
            f"std_srvs.srv.Trigger_Response(success=True, message='{FINISHED}')\n",
            100,
        ),
        (f"std_srvs.srv.Trigger_Response(success=False, message='{FINISHED}')\n", None),
        ('{"published": 2001}\n', 2001),
        ('', None),
    ],
)
def test_the_published_count_is_read_from_the_answer_of_a_node(
    answer: str, number: int | None
) -> None:
    assert read_published_count(answer) == number


def test_queues_are_named_by_the_final_topic_names() -> None:
    parameters = odometry_qos('car', 'truth', ['imu', 'rear/gps', 'camera'])
    depth = {name for name, value in parameters.items() if value == 1000}
    read = {f'qos_overrides./car/{topic}.subscription.depth' for topic in ('truth', 'rear/truth')}
    sent = 'imu/data rear/gps/fix camera/features camera/camera_info camera/pose'
    assert depth == read | {
        f'qos_overrides./car/{topic}.publisher.depth' for topic in sent.split()
    }
    assert 'qos_overrides./truth.subscription.reliability' in odometry_qos('', '/truth', ['a/imu'])
