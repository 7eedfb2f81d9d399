# SPDX-License-Identifier: Apache-2.0
"""The sensors of a launch: where they are, and whether their messages arrive to the last one.

TF is told for everybody, and judge_node in a file: it reads /tf_static too, but a file is there
before its first message, and where tf2_msgs is not installed.
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

# The same file, whichever library makes the quaternion.
_DECIMALS = 12


@dataclasses.dataclass(frozen=True)
class Mounting:
    """Pose of the frame of a kind of sensor in base_link: m, and roll, pitch, yaw in rad about
    fixed axes.
    """

    sensor: str
    frame: str
    translation: tuple[float, float, float]
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)


def of_models(models: Mapping[str, str]) -> list[Mounting]:
    """Return where the models, by name or path for each kind of sensor, say that these are.

    A sensor in the frame of one before it, as a magnetometer in the chip of an IMU, has no place
    of its own; nor have those that measure the base itself. The frame of a camera is its optical
    one. A model that is unknown or wrong is an error.
    """
    found: dict[str, Mounting] = {}
    for kind, name in models.items():
        model: Any = KINDS.get(kind).load(name)
        # Others give poses, in a frame of the world.
        if not hasattr(model, 'mounted') or model.frame_id in found:
            continue
        rpy = getattr(model, 'mounting_rpy', (0.0, 0.0, 0.0))
        if isinstance(model, CameraModel):
            rpy = euler_from_quaternion(model.optical_rotation())
        found[model.frame_id] = Mounting(kind, model.frame_id, model.lever_arm, rpy)
    return list(found.values())


def transforms_file(mountings: Sequence[Mounting]) -> Path:
    """Write a static_transforms.yaml that lasts as long as this process, and return it."""
    content = [
        {
            'parent': 'base_link',
            'child': mounting.frame,
            'translation': list(mounting.translation),
            'rotation_xyzw': [
                round(part, _DECIMALS) for part in quaternion_from_euler(*mounting.rpy)
            ],
        }
        for mounting in mountings
    ]
    return scratch_file('static_transforms', '.yaml', yaml.safe_dump(content))


_OWN = {kind.name: kind.world for kind in kinds() if kind.world}


def world_configuration(world: str) -> dict[str, str]:
    """Return the launch configurations that `config/ros/sensors.yaml` takes of a world.

    An IMU and a GPS are told the gravity and the origin of the world that the others are in, as
    in a batch run. It is a name or path; empty: each sensor is in its own, and gravity and origin
    are their defaults.
    """
    shared = load_world(world or _OWN['mag'])
    return {
        'gravity': repr(float(shared.gravity)),
        'latitude_deg': repr(float(shared.frame.latitude_deg)),
        'longitude_deg': repr(float(shared.frame.longitude_deg)),
        'altitude_m': repr(float(shared.frame.altitude_m)),
        **{f'{kind}_world': world or own for kind, own in _OWN.items()},
    }


def scratch_file(name: str, suffix: str, text: str) -> Path:
    """Write a file that lasts as long as this process, and return it."""
    with tempfile.NamedTemporaryFile(
        'w', prefix=f'{name}_', suffix=suffix, delete=False, encoding='utf-8'
    ) as file:
        file.write(text)
    path = Path(file.name)
    atexit.register(path.unlink, missing_ok=True)
    return path


# Ten seconds of an IMU; a burst has about two.
_DEPTH = 1000


def odometry_qos(
    namespace: str, ground_truth: str, sensors: Sequence[str]
) -> dict[str, str | int]:
    """Return ROS parameters of sensors that hear reliably, and are heard, to the last message.

    `namespace` is that of their process, `ground_truth` the topic of the odometry, and `sensors`
    are as sensors_node takes them: a kind such as imu, or one in a namespace.
    """
    space = space_of(namespace)
    found: dict[str, str | int] = {}
    for sensor in sensors:
        below, _, kind = sensor.rpartition('/')
        inner = f'{space}{space_of(below)[1:]}'
        heard = ground_truth if ground_truth.startswith('/') else inner + ground_truth
        found[f'qos_overrides.{heard}.subscription.reliability'] = 'reliable'
        found[f'qos_overrides.{heard}.subscription.depth'] = _DEPTH
        if kind in KINDS.names():
            for topic in (KINDS.get(kind).topic, *KINDS.get(kind).more_topics):
                found[f'qos_overrides.{inner}{topic}.publisher.depth'] = _DEPTH
    return found


def space_of(namespace: str) -> str:
    """Return what goes before relative names in a namespace."""
    return f'/{namespace.strip("/")}/' if namespace.strip('/') else '/'


def profiles_file(topics: Sequence[str]) -> Path:
    """Write a `--qos-profile-overrides-path` of `ros2 bag record`, to record topics to the last
    message, and return it.
    """
    profile = {
        'history': 'keep_last',
        'depth': _DEPTH,
        'reliability': 'reliable',
        'durability': 'volatile',
    }
    content = yaml.safe_dump({topic: dict(profile) for topic in topics})
    return scratch_file('recorder_qos', '.yaml', content)


def published(said: str) -> int | None:
    """Return how many messages a node has published, after what trajectory_node wrote, or `ros2
    service call` about `~/finish`; None when that does not say it.
    """
    if 'success=False' in said:
        return None
    found = re.search(r'\{"published":[^{}]*\}', said)
    return None if found is None else int(json.loads(found[0])['published'])


def miscount(bag: Path, expected: Mapping[str, int]) -> str:
    """Return what is wrong with the folder of a finished bag; empty when all messages that were
    published, which `expected` counts by topic, are in it.
    """
    try:
        content = read_yaml(bag / 'metadata.yaml')
        counts = {
            entry['topic_metadata']['name']: int(entry['message_count'])
            for entry in content['rosbag2_bagfile_information']['topics_with_message_count']
        }
    except (ParameterError, KeyError, TypeError, ValueError) as error:
        return f'{bag} is not complete: metadata.yaml cannot be read ({error})'
    wrong = [
        f'{counts.get(topic, 0)} of {number} messages of {topic}'
        for topic, number in expected.items()
        if counts.get(topic, 0) != number
    ]
    return f'{bag} has {", ".join(wrong)}' if wrong else ''
