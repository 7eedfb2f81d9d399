# SPDX-License-Identifier: Apache-2.0
"""Static transforms of a recording: those of its data, its recording.yaml and its lever arms."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim2real_eval.common.findings import Finding
from sim_sensors.core.measurements import MessageArray
from .checks import TRANSFORM
from .metadata import Metadata
from .recording import IDEAL_ROLES, NAMED_ROLES, StaticTransform
from .rosbag import TF_STATIC


def stated_transforms(
    settings: Metadata, messages: Mapping[str, MessageArray], roles: Mapping[str, str]
) -> list[StaticTransform]:
    """Return the transforms of recording.yaml, and those of its lever arms.

    If lever arms are stated, a sensor without one is at the base frame.
    """
    lever_arms = settings.lever_arms
    if not lever_arms:
        return list(settings.transforms)
    frames = {role: messages[topic].frame for role, topic in roles.items()}
    placed_roles = {*roles} - {*NAMED_ROLES} | {*IDEAL_ROLES.values()}
    stated = {transform.child for transform in settings.transforms}
    # A magnetometer in the frame of an IMU with a lever arm has the same arm.
    stated |= {frame for role, frame in frames.items() if role in lever_arms}
    arms = [
        StaticTransform(settings.base_frame, frame, lever_arms.get(role, (0.0, 0.0, 0.0)))
        for role, frame in frames.items()
        if role in placed_roles and (role in lever_arms or frame not in stated)
    ]
    return [*settings.transforms, *arms]


def merge_transforms(
    transforms: list[StaticTransform], notes: list[Finding]
) -> tuple[StaticTransform, ...]:
    """Keep the last transform of each child frame, and drop transforms that are not finite."""
    by_child: dict[str, StaticTransform] = {}
    for transform in transforms:
        numbers = np.array([*transform.translation, *transform.rotation])
        norm = float(np.linalg.norm(numbers[3:]))
        if not np.isfinite(numbers).all() or norm < 1e-6:
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
