# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Static transforms of a recording: those of its data, its recording.yaml and its lever arms."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding, JudgeError, RecordingError, routine
from sim_sensors.core.measurements import MessageArray
from .checks import TRANSFORM
from .metadata import FrameTree, Metadata
from .recording import PLACED_ROLES, StaticTransform
from .rosbag import TF_STATIC

SEPARATE_FRAME = routine(
    'recording.separate_frame',
    'has the frame {frame}, which contradicts its lever arm; it gets the frame {new}',
    'One frame cannot be at two places. The lever arm of recording.yaml is used.',
)


def stated_transforms(
    where: str,
    settings: Metadata,
    messages: dict[str, MessageArray],
    roles: Mapping[str, str],
    notes: list[Finding],
    recorded: Sequence[StaticTransform] = (),
) -> list[StaticTransform]:
    """Return the transforms of recording.yaml, and those of its lever arms.

    A lever arm keeps the rotation of a recorded transform. If lever arms are stated, a sensor
    without one and without a transform is at the base frame. Messages get a frame of
    their own, with a finding, if theirs is the base frame or has another lever arm. RecordingError
    if `frames` states that frame as well.
    """
    arms, base = settings.lever_arms, settings.base_frame
    if not arms:
        return list(settings.transforms)
    placed = {base.strip('/'): (0.0, 0.0, 0.0)}
    for role in (role for role in arms if role in roles):
        topic, arm = roles[role], arms[role]
        frame = messages[topic].frame
        if placed.setdefault(frame.strip('/'), arm) == arm:
            continue
        if role in settings.frames:
            raise RecordingError(
                f'{where}: lever_arms.{role}: {list(arm)} is not allowed, because frames.{role} '
                f'is {frame}, which is at {list(placed[frame.strip("/")])}; remove one of them'
            )
        taken = {array.frame.strip('/') for array in messages.values()} | {*placed}
        new = f'{role}_link'
        while new in taken:
            new += '_'
        placed[new] = arm
        messages[topic] = dataclasses.replace(messages[topic], frame=new)
        notes.append(SEPARATE_FRAME(topic, frame=frame, new=new))
    frames = {role: messages[topic].frame for role, topic in roles.items()}
    stated = {transform.child for transform in (*settings.transforms, *recorded)}
    # A magnetometer in the frame of an IMU with a lever arm has the same arm.
    stated |= {frame for role, frame in frames.items() if role in arms} | {base}
    sensors = [
        StaticTransform(
            base, frame, arms.get(role, (0.0, 0.0, 0.0)), _recorded_rotation(recorded, base, frame)
        )
        for role, frame in frames.items()
        if role in PLACED_ROLES and frame != base and (role in arms or frame not in stated)
    ]
    return [*settings.transforms, *sensors]


def _recorded_rotation(
    recorded: Sequence[StaticTransform], base: str, frame: str
) -> tuple[float, float, float, float]:
    """Return the rotation of a frame in the base by recorded transforms; none by default."""
    tree = FrameTree(recorded)
    if base not in tree or frame not in tree:
        return (0.0, 0.0, 0.0, 1.0)
    try:
        rotation, _ = tree.lookup(base, frame, 'lever arm')
    except JudgeError:
        return (0.0, 0.0, 0.0, 1.0)
    x, y, z, w = Rotation.from_matrix(rotation).as_quat().tolist()
    return (x, y, z, w)


def merge_transforms(
    transforms: list[StaticTransform], notes: list[Finding]
) -> tuple[StaticTransform, ...]:
    """Keep the last transform of each child frame, and drop transforms that are not finite."""
    by_child: dict[str, StaticTransform] = {}
    for transform in transforms:
        numbers = np.array([*transform.translation, *transform.rotation])
        norm = float(np.linalg.norm(numbers[3:]))
        to_itself = transform.parent.strip('/') == transform.child.strip('/')
        if not np.isfinite(numbers).all() or norm < 1e-6 or to_itself:
            problem = f'{transform.parent} -> {transform.child} is not a transform; dropped'
            notes.append(TRANSFORM(TF_STATIC, problem=problem))
            continue
        earlier = by_child.get(transform.child)
        if earlier is not None and earlier != transform:
            frames = f'{earlier.parent} -> {earlier.child}'
            problem = f'{frames} is given twice; the later one is used'
            notes.append(TRANSFORM(TF_STATIC, problem=problem))
        by_child[transform.child] = transform
    return tuple(by_child.values())
