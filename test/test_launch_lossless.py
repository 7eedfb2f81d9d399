# SPDX-License-Identifier: Apache-2.0
"""An experiment counts what it recorded, and asks the sensors for queues that hold a burst."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim2real_eval.cli.main import main
from sim2real_eval.ros_launch.sensors import (
    find_missing_messages,
    odometry_qos,
    read_published_count,
    write_recorder_qos,
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


def test_what_is_lost_is_told_by_topic(bag: Path) -> None:
    problem = find_missing_messages(bag, {TRUTH: 101, INERTIAL: 500, '/imu/raw': 3})
    assert problem == f'{bag} has 101 of 500 messages of /imu/data, 0 of 3 messages of /imu/raw'


def test_a_bag_that_was_not_closed_is_told(tmp_path: Path) -> None:
    assert 'is not complete: metadata.yaml cannot be read' in find_missing_messages(tmp_path, {})
    (tmp_path / 'metadata.yaml').write_text('rosbag2_bagfile_information: 3\n', 'utf-8')
    assert 'is not complete' in find_missing_messages(tmp_path, {})


@pytest.mark.parametrize(
    ('said', 'number'),
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
def test_the_nodes_say_how_much_they_published(said: str, number: int | None) -> None:
    assert read_published_count(said) == number


def test_queues_are_named_by_the_topics_as_they_are_in_the_end() -> None:
    parameters = odometry_qos('car', 'truth', ['imu', 'rear/gps', 'camera'])
    depth = {name for name, value in parameters.items() if value == 1000}
    assert depth == {
        'qos_overrides./car/truth.subscription.depth',
        'qos_overrides./car/rear/truth.subscription.depth',
        'qos_overrides./car/imu/data.publisher.depth',
        'qos_overrides./car/rear/gps/fix.publisher.depth',
        'qos_overrides./car/camera/features.publisher.depth',
        'qos_overrides./car/camera/camera_info.publisher.depth',
        'qos_overrides./car/camera/pose.publisher.depth',
    }
    assert 'qos_overrides./truth.subscription.reliability' in odometry_qos('', '/truth', ['a/imu'])


def test_the_recorder_gets_a_profile_for_each_topic() -> None:
    text = write_recorder_qos([TRUTH, FIXES]).read_text('utf-8')
    assert text.count('reliability: reliable') == 2
    # The recorder's reader of the file knows no anchors.
    assert '&' not in text
