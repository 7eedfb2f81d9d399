# SPDX-License-Identifier: Apache-2.0
"""Who has to be on the graph before something begins."""

from __future__ import annotations

from collections.abc import Sequence

from rclpy.exceptions import NameValidationException
from rclpy.expand_topic_name import expand_topic_name
from rclpy.node import Node
from rclpy.validate_full_topic_name import validate_full_topic_name

from sim_sensors.errors import ParameterError

__all__ = ['Awaited']


class Awaited:
    """Topics that somebody publishes, and nodes that subscribe to topics.

    Readers are named, not counted: a viewer that happens to look on is no sensor.

    Parameters
    ----------
    node : rclpy.node.Node
        Whose names, remappings and view of the graph count.
    words : sequence of str
        Each TOPIC, which somebody publishes, or TOPIC:NODE, where the node subscribes to it.

    Raises
    ------
    ParameterError
        When a word is no such thing.
    """

    def __init__(self, node: Node, words: Sequence[str]) -> None:
        self._node = node
        self._entries = [(word, *self._resolved(word)) for word in words]

    def _resolved(self, word: str) -> tuple[str, str]:
        topic, colon, reader = word.partition(':')
        name, space = self._node.get_name(), self._node.get_namespace()
        try:
            validate_full_topic_name(expand_topic_name(topic, name, space))
            if colon:
                reader = reader if reader.startswith('/') else f'{space.rstrip("/")}/{reader}'
                # The name of a node with its namespace looks like that of a topic.
                validate_full_topic_name(reader)
        except (NameValidationException, ValueError):
            raise ParameterError(
                name,
                'awaited',
                f'{word!r} is not allowed; must be TOPIC or TOPIC:NODE, such as imu/data:imu_node',
            ) from None
        return self._node.resolve_topic_name(topic), reader

    def missing(self) -> list[str]:
        """Return the words whose publisher or reader is not there."""
        return [word for word, topic, reader in self._entries if not self._is_there(topic, reader)]

    def _is_there(self, topic: str, reader: str) -> bool:
        if not reader:
            return bool(self._node.count_publishers(topic))
        # While the name of a node is not known yet its namespace is not either.
        readers = [
            f'{found.node_namespace.rstrip("/")}/{found.node_name}'
            for found in self._node.get_subscriptions_info_by_topic(topic)
        ]
        return reader in readers
