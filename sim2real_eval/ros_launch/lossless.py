# SPDX-License-Identifier: Apache-2.0
"""Recording without loss: queues that hold a burst, and counts that tell whether they did."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from sim2real_eval.ros_launch.packages import scratch_file

__all__ = ['MEASUREMENTS', 'miscount', 'odometry_qos', 'profiles_file', 'published']

MEASUREMENTS = {
    'imu': 'imu/data',
    'gps': 'gps/fix',
    'mag': 'imu/mag',
    'camera': 'camera/features',
    'wheels': 'wheel/odometry',
    'vision': 'vision/pose',
}
"""Topic of the measurements by kind of sensor."""

_BESIDE = {
    'camera': ('camera/camera_info', 'camera/pose'),
    'wheels': ('wheel/joint_states',),
}

# Ten seconds of an IMU; a burst has about two.
_DEPTH = 1000


def odometry_qos(
    namespace: str, ground_truth: str, sensors: Sequence[str]
) -> dict[str, str | int]:
    """Return ROS parameters of sensors that hear reliably, and are heard, to the last message.

    Parameters
    ----------
    namespace : str
        Of the sensors' process.
    ground_truth : str
        Topic of the odometry.
    sensors : sequence of str
        As sensors_node takes them: imu, gps, mag, camera, wheels, vision, or such in a
        namespace.
    """
    space = _space(namespace)
    found: dict[str, str | int] = {}
    for sensor in sensors:
        below, _, kind = sensor.rpartition('/')
        inner = f'{space}{_space(below)[1:]}'
        heard = ground_truth if ground_truth.startswith('/') else inner + ground_truth
        found[f'qos_overrides.{heard}.subscription.reliability'] = 'reliable'
        found[f'qos_overrides.{heard}.subscription.depth'] = _DEPTH
        if kind in MEASUREMENTS:
            for topic in (MEASUREMENTS[kind], *_BESIDE.get(kind, ())):
                found[f'qos_overrides.{inner}{topic}.publisher.depth'] = _DEPTH
    return found


def _space(namespace: str) -> str:
    return f'/{namespace.strip("/")}/' if namespace.strip('/') else '/'


def profiles_file(topics: Sequence[str]) -> Path:
    """Write a file for `ros2 bag record --qos-profile-overrides-path` and return it.

    Parameters
    ----------
    topics : sequence of str
        That are recorded to the last message.
    """
    profile = {
        'history': 'keep_last',
        'depth': _DEPTH,
        'reliability': 'reliable',
        'durability': 'volatile',
    }
    return scratch_file('recorder_qos', {topic: dict(profile) for topic in topics})


def published(said: str) -> int | None:
    r"""Return how many messages a node says it has published; None when it does not.

    Parameters
    ----------
    said : str
        What trajectory_node wrote, or `ros2 service call` about `~/finish`.
    """
    if 'success=False' in said:
        return None
    found = re.search(r'\{"published":[^{}]*\}', said)
    return None if found is None else int(json.loads(found[0])['published'])


def miscount(bag: Path, expected: Mapping[str, int]) -> str:
    """Return what is wrong with a finished bag; empty when all messages are in it.

    Parameters
    ----------
    bag : Path
        Folder with metadata.yaml.
    expected : mapping
        How many messages were published, by topic.
    """
    try:
        content: Any = yaml.safe_load((bag / 'metadata.yaml').read_text(encoding='utf-8'))
        counts = {
            entry['topic_metadata']['name']: int(entry['message_count'])
            for entry in content['rosbag2_bagfile_information']['topics_with_message_count']
        }
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        return f'{bag} is not complete: metadata.yaml cannot be read ({error})'
    wrong = [
        f'{counts.get(topic, 0)} of {number} messages of {topic}'
        for topic, number in expected.items()
        if counts.get(topic, 0) != number
    ]
    return f'{bag} has {", ".join(wrong)}' if wrong else ''
