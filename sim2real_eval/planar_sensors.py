# SPDX-License-Identifier: Apache-2.0
"""Wheel odometry and poses from tags in a recording: topics that have no role."""

from __future__ import annotations

import dataclasses

from sim2real_eval.recording import Recording, RecordingError
from sim_sensors import vision_pose, wheel_odometry
from sim_sensors.trajectory import Motion
from sim_sensors.vision_pose import VisionModel
from sim_sensors.wheel_odometry import WheelOdometryModel
from sim_sensors.world import World

__all__ = ['VISION_TOPIC', 'WHEEL_TOPIC', 'with_planar_sensors']

WHEEL_TOPIC = '/wheel/odometry'
"""Where simulated wheel odometry goes, and recorded one is expected."""

VISION_TOPIC = '/vision/pose'
"""Where simulated poses of a camera that sees tags go."""


def with_planar_sensors(
    recording: Recording,
    motion: Motion,
    models: tuple[WheelOdometryModel | None, VisionModel | None],
    world: World,
    *,
    seed: int,
    run: str,
    start_ns: int,
    base_frame: str,
) -> Recording:
    """Return the recording with wheel odometry and poses from tags, in place of its own.

    They have no role: a judge that asks for their topics takes them.

    Parameters
    ----------
    recording : Recording
    motion : Motion
        What is measured; its time 0 is `start_ns`.
    models : (WheelOdometryModel or None, VisionModel or None)
        None: what the recording has stays.
    world : World
        Where the tags are.
    seed, run
        Labels of the random streams; see `sim_sensors.seeding.stream`.
    start_ns : int
        First stamp of both.
    base_frame : str
        Frame of the body.

    Raises
    ------
    Sim2RealError
        When the world has no tags, or none is ever in view.
    """
    wheels, vision = models
    messages = dict(recording.messages)
    if wheels is not None:
        messages[WHEEL_TOPIC] = wheel_odometry.simulate(
            dataclasses.replace(wheels, child_frame_id=base_frame), motion, seed=seed, run=run,
            start_ns=start_ns, origin_ns=start_ns,
        )  # fmt: skip
    if vision is not None:
        poses = vision_pose.simulate(
            vision, motion, seed=seed, run=run, start_ns=start_ns, origin_ns=start_ns, world=world
        )
        if not len(poses):
            raise RecordingError(
                f'{recording.path or recording.name}: no tag is ever in view of the camera; must '
                'be another world, motion or camera'
            )
        messages[VISION_TOPIC] = poses
    return dataclasses.replace(recording, messages=messages)
