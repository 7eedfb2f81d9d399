# SPDX-License-Identifier: Apache-2.0
"""How ekf_node learns where sensors sit: by their frames' names, or from /tf_static."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.robot_localization.configuration import FilterConfig
from sim2real_eval.judge.robot_localization.inputs import part_frame
from sim2real_eval.judge.robot_localization.parts import POSE, parts_of
from sim2real_eval.recording.cdr import encode_transforms
from sim2real_eval.recording.frames import FrameTree
from sim2real_eval.recording.recording import Recording

__all__ = ['StaticFrames', 'coinciding_frames']


def coinciding_frames(
    recording: Recording, config: FilterConfig, sources: Mapping[str, str | None]
) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Find the inputs whose frames coincide with those that the filter works in.

    Parameters
    ----------
    recording : Recording
    config : FilterConfig
    sources : mapping
        Input to topic, as `Routing.sources`.

    Returns
    -------
    frames : dict
        Such inputs, and the frame and child frame under which they need no transform.
    others : dict
        The other inputs, and the frame that a transform must connect.

    Raises
    ------
    JudgeError
        When nothing connects a frame.
    """
    tree = FrameTree(recording.transforms, assume_identity=not recording.transforms)
    frames: dict[str, tuple[str, str]] = {}
    others: dict[str, str] = {}
    base, world = config.base_link_frame, config.world_frame
    for source in config.sources:
        topic = sources[source.name]
        if topic is None:
            continue
        array = recording.messages[topic]
        in_world = source.kind in ('odom', 'pose')
        for part in parts_of(source, source.kind):
            frame = part_frame(part, array, config)
            if part.kind == POSE and in_world:
                if source.differential or _coincide(tree, world, frame, source.name):
                    continue
            elif _coincide(tree, base, frame, source.name):
                continue
            others[source.name] = frame
        if source.name not in others:
            frames[source.name] = (world if in_world else base, base)
    return frames, others


def _coincide(tree: FrameTree, target: str, frame: str, name: str) -> bool:
    rotation, position = tree.lookup(target, frame, name)
    return np.array_equal(rotation, np.eye(3)) and not position.any()


_AT_ONCE = Duration(nanoseconds=1)


class StaticFrames:
    """Publishes a recording's static transforms where a node listens.

    Parameters
    ----------
    node : Node
    namespace : str
        With a leading slash; two sides may have other transforms.
    recording : Recording
    needed : mapping of str to str
        Inputs that need a transform, and their frames; nothing is published when there are none.

    Raises
    ------
    JudgeError
        When the messages of tf2_msgs are needed and not installed.
    """

    def __init__(
        self, node: Node, namespace: str, recording: Recording, needed: Mapping[str, str]
    ) -> None:
        self._node = node
        self._publisher: Any = None
        if not needed:
            return
        if find_spec('tf2_msgs') is None:
            name, frame = next(iter(needed.items()))
            raise JudgeError(
                f'{name}: frame {frame!r} is not where the filter works, and tf2_msgs, which '
                'robot_localization learns transforms from, is not installed for this Python; '
                'source the setup file of ROS, or use the embedded judge'
            )
        message = import_module('tf2_msgs.msg').TFMessage
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._publisher = node.create_publisher(message, f'{namespace}/tf_static', latched)
        self._publisher.publish(encode_transforms(recording.transforms, 0))

    @property
    def heard(self) -> bool:
        """Whether the node listens, where it has to, and has received the transforms."""
        if self._publisher is None:
            return True
        return self._publisher.get_subscription_count() > 0 and bool(
            self._publisher.wait_for_all_acked(_AT_ONCE)
        )

    @property
    def needed(self) -> bool:
        """Whether the node needs transforms at all."""
        return self._publisher is not None

    def close(self) -> None:
        """Remove the publisher."""
        if self._publisher is not None:
            self._node.destroy_publisher(self._publisher)
