# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensors of a launch: their transforms, their world, and whether a bag has all their messages.

judge_node gets the transforms in a file, too. The file exists before the first message, and where
tf2_msgs is not installed.
"""

from __future__ import annotations

import atexit
import dataclasses
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from sim_sensors.camera.camera import CameraModel
from sim_sensors.core.config_files import read_yaml
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.rotations import euler_from_quaternion, quaternion_from_euler
from sim_sensors.sensor.catalogue import KINDS, kinds
from sim_sensors.world.world import load_world

# Makes the file independent of the library that computes the quaternion.
_DECIMALS = 12


@dataclasses.dataclass(frozen=True)
class SensorTransform:
    """Pose of a sensor's frame in base_link: m, and roll, pitch, yaw in rad about fixed axes."""

    sensor: str
    frame: str
    translation: tuple[float, float, float]
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)


def of_models(models: Mapping[str, str]) -> list[SensorTransform]:
    """Return the transforms of sensor models, given by name or path for each kind.

    A sensor in the frame of an earlier one, such as a magnetometer in the chip of an IMU, has none
    of its own, nor has a sensor that measures the base. The frame of a camera is its optical
    frame. ParameterError for an unknown or wrong model.
    """
    transforms: dict[str, SensorTransform] = {}
    for kind, name in models.items():
        model: Any = KINDS.get(kind).load(name)
        # Models without a mounting measure poses in a frame of the world.
        if not hasattr(model, 'mounted') or model.frame_id in transforms:
            continue
        rpy = getattr(model, 'mounting_rpy', (0.0, 0.0, 0.0))
        if isinstance(model, CameraModel):
            rpy = euler_from_quaternion(model.optical_rotation())
        transforms[model.frame_id] = SensorTransform(kind, model.frame_id, model.lever_arm, rpy)
    return list(transforms.values())


def write_transforms_file(transforms: Sequence[SensorTransform], frame_prefix: str = '') -> Path:
    """Write a static_transforms.yaml that exists until this process ends; return its path."""
    content = [
        {
            'parent': f'{frame_prefix}base_link',
            'child': f'{frame_prefix}{transform.frame}',
            'translation': list(transform.translation),
            'rotation_xyzw': [
                round(part, _DECIMALS) for part in quaternion_from_euler(*transform.rpy)
            ],
        }
        for transform in transforms
    ]
    return write_temporary_file('static_transforms', '.yaml', yaml.safe_dump(content))


_DEFAULT_WORLDS = {kind.name: kind.world for kind in kinds() if kind.world}


def world_configuration(world: str) -> dict[str, str]:
    """Return the launch configurations for `config/ros/sensors.yaml` that depend on the world.

    As in a batch run, IMU and GPS get the gravity and the origin of the world of the other
    sensors. `world` is a name or path; with an empty string, each sensor has its default world.
    """
    shared = load_world(world or _DEFAULT_WORLDS['mag'])
    return {
        'gravity': repr(float(shared.gravity)),
        'latitude_deg': repr(float(shared.frame.latitude_deg)),
        'longitude_deg': repr(float(shared.frame.longitude_deg)),
        'altitude_m': repr(float(shared.frame.altitude_m)),
        **{f'{kind}_world': world or default for kind, default in _DEFAULT_WORLDS.items()},
    }


def write_temporary_file(name: str, suffix: str, text: str) -> Path:
    """Write a file that exists until this process ends; return its path."""
    with tempfile.NamedTemporaryFile(
        'w', prefix=f'{name}_', suffix=suffix, delete=False, encoding='utf-8'
    ) as file:
        file.write(text)
    path = Path(file.name)
    atexit.register(path.unlink, missing_ok=True)
    return path


# Ten seconds of an IMU; a burst is about two seconds long.
_DEPTH = 1000


def odometry_qos(
    namespace: str, ground_truth: str, sensors: Sequence[str], imu_topic: str = 'imu/data'
) -> dict[str, str | int]:
    """Return ROS parameters for reliable odometry and deep queues of sensors.

    `namespace` is that of their process, `ground_truth` the topic of the odometry. `sensors` are
    as for sensors_node: a kind such as imu, optionally in a namespace. `imu_topic` is the topic of
    an IMU.
    """
    parameters: dict[str, str | int] = {}
    for sensor in sensors:
        relative_namespace, _, kind = sensor.rpartition('/')
        prefix = f'{name_prefix(namespace)}{name_prefix(relative_namespace)[1:]}'
        odometry = ground_truth if ground_truth.startswith('/') else prefix + ground_truth
        parameters[f'qos_overrides.{odometry}.subscription.reliability'] = 'reliable'
        parameters[f'qos_overrides.{odometry}.subscription.depth'] = _DEPTH
        if kind in KINDS.names():
            first = imu_topic if kind == 'imu' else KINDS.get(kind).topic
            for topic in (first, *KINDS.get(kind).more_topics):
                parameters[f'qos_overrides.{prefix}{topic}.publisher.depth'] = _DEPTH
    return parameters


def sensor_topics(sensors: Sequence[str], imu_topic: str) -> dict[str, str]:
    """Return the relative topic of each sensor by the relative name of its node.

    For the arguments see `odometry_qos`.
    """
    topics = {}
    for sensor in sensors:
        namespace, _, name = sensor.rpartition('/')
        kind = KINDS.get(name)
        prefix = f'{namespace}/' if namespace else ''
        topics[f'{prefix}{kind.node}'] = prefix + (imu_topic if name == 'imu' else kind.topic)
    return topics


def name_prefix(namespace: str) -> str:
    """Return the prefix of relative names in a namespace."""
    return f'/{namespace.strip("/")}/' if namespace.strip('/') else '/'


def write_recorder_qos(topics: Sequence[str]) -> Path:
    """Write a `--qos-profile-overrides-path` for `ros2 bag record` that loses no message."""
    profile = {
        'history': 'keep_last',
        'depth': _DEPTH,
        'reliability': 'reliable',
        'durability': 'volatile',
    }
    content = yaml.safe_dump({topic: dict(profile) for topic in topics})
    return write_temporary_file('recorder_qos', '.yaml', content)


def read_published_count(output: str) -> int | None:
    """Return the number of published messages in the output of a process, or None.

    The process is trajectory_node, or `ros2 service call` of `~/finish`.
    """
    if 'success=False' in output:
        return None
    match = re.search(r'\{"published":[^{}]*\}', output)
    return None if match is None else int(json.loads(match[0])['published'])


def find_missing_messages(bag: Path, expected: Mapping[str, int]) -> str:
    """Return a description of the messages that a finished bag lacks, or an empty string.

    `expected` is the number of published messages by topic.
    """
    try:
        content = read_yaml(bag / 'metadata.yaml')
        counts = {
            entry['topic_metadata']['name']: int(entry['message_count'])
            for entry in content['rosbag2_bagfile_information']['topics_with_message_count']
        }
    except (ParameterError, KeyError, TypeError, ValueError) as error:
        return f'{bag} is not complete: metadata.yaml cannot be read ({error})'
    differences = [
        f'{counts.get(topic, 0)} of {number} messages of {topic}'
        for topic, number in expected.items()
        if counts.get(topic, 0) != number
    ]
    return f'{bag} has {", ".join(differences)}' if differences else ''
