# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Publishers of topics: their names, and the watch that no other node joins them."""

from __future__ import annotations

import collections
import dataclasses
import time
import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from rclpy.context import Context
from rclpy.node import Node
from std_msgs.msg import Empty

from sim2real_eval.common.findings import JudgeError
from .waits import Wait, Work

GONE_AFTER_S = 25.0
"""Time after which DDS no longer reports a participant that was killed."""

_PARTICIPANTS: WeakKeyDictionary[Context, bytes] = WeakKeyDictionary()
# A new publisher is known before the name of its node.
_NAMED_AFTER_S = 2.0
# The number of publishers of a topic is read this often.
_PERIOD_S = 0.01


class OtherPublisherError(JudgeError):
    """Another node publishes a topic of a run.

    Attributes
    ----------
    topic : str
    """

    def __init__(self, topic: str, names: Iterable[str], own_names: Collection[str]) -> None:
        self.topic = topic
        labels = [
            f'another {name}' if name in own_names else name or 'another node' for name in names
        ]
        super().__init__(
            f'{topic}: {", ".join(labels)} publishes it too; end that, or take another '
            'ROS_DOMAIN_ID'
        )


def publishers_of(node: Node, topic: str) -> list[str]:
    """Return the full names of the nodes that publish a topic, as known to `node`.

    The name is empty while it is not known yet; it becomes known after the publisher.
    """
    return [_node_name(publisher) for publisher in node.get_publishers_info_by_topic(topic)]


def _node_name(publisher: Any) -> str:
    if 'UNKNOWN' in publisher.node_name:
        return ''
    return f'{publisher.node_namespace.rstrip("/")}/{publisher.node_name}'


def _identifier(publisher: Any) -> bytes:
    """Return the DDS identifier (GID) of a publisher."""
    return bytes(publisher.endpoint_gid)


def _participant(publisher: Any) -> bytes:
    """Return the part of a publisher's DDS identifier that identifies its participant."""
    return _identifier(publisher)[:12]


def identifiers_of(node: Node, topic: str) -> set[bytes]:
    """Return the DDS identifiers (GIDs) of the publishers of a topic, as known to `node`."""
    return {_identifier(publisher) for publisher in node.get_publishers_info_by_topic(topic)}


def _own_participant(node: Node) -> bytes:
    """Return the part of a DDS identifier that identifies the participant of this process."""
    context = node.context
    if context not in _PARTICIPANTS:
        topic = f'/sim2real_{uuid.uuid4().hex}'
        publisher = node.create_publisher(Empty, topic, 1)
        (info,) = node.get_publishers_info_by_topic(topic)
        node.destroy_publisher(publisher)
        _PARTICIPANTS[context] = _participant(info)
    return _PARTICIPANTS[context]


def refuse_other_publishers(node: Node, topic: str) -> None:
    """Raise OtherPublisherError if a topic has publishers that are not those of `node`."""
    own_name = node.get_fully_qualified_name()
    publishers = node.get_publishers_info_by_topic(topic)
    if names := _other_names(node, topic, own_name, publishers):
        raise OtherPublisherError(topic, names, [own_name])


def _other_names(node: Node, topic: str, own_name: str, publishers: list[Any]) -> list[str]:
    """Return the names of the publishers without those of `node` and one of the node `own_name`.

    The participants of these nodes may list publishers without a name; these are left out, too:
    they are destroyed ones, or those of a new node whose predecessor of the same name ended late.
    """
    own_participant = _own_participant(node)
    expected = collections.Counter({own_name: 1})
    expected[node.get_fully_qualified_name()] = sum(
        publisher.topic_name == topic for publisher in node.publishers
    )
    names = [_node_name(publisher) for publisher in publishers]
    own_participants = {
        _participant(publisher)
        for name, publisher in zip(names, publishers, strict=True)
        if name in expected
    } | {own_participant}
    present = collections.Counter(
        name
        for name, publisher in zip(names, publishers, strict=True)
        if name or _participant(publisher) not in own_participants
    )
    return list((present - expected).elements())


@dataclasses.dataclass(eq=False)
class _OtherPublisher:
    """Publisher that does not belong to a run."""

    topic: str
    due: float  # time at which it is reported even without a name
    name: str = ''


class PublisherWatch:
    """Watch over topics that must have no other publishers during a run.

    ROS gives no identifier of the publisher with a message, so other publishers are found in two
    ways: by the DDS identifiers of all publishers on the graph, and by the sequence numbers of
    received messages, which each publisher counts itself.

    Parameters
    ----------
    node : Node
        Its graph is watched.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._identifiers: dict[str, set[bytes]] = {}
        self._numbers: dict[str, int] = {}
        self._other: _OtherPublisher | None = None
        self._due = 0.0

    def begin(self, topic: str) -> None:
        """Watch a topic from now on; its present publishers are those of the run."""
        self._identifiers[topic] = identifiers_of(self._node, topic)

    def end(self, topic: str) -> None:
        """Watch a topic no longer."""
        self._identifiers.pop(topic, None)

    def begin_alone(self, topic: str, own_name: str) -> Work:
        """Wait until our node and the node `own_name` alone publish a topic; then watch it.

        OtherPublisherError if another publisher stays. A publisher without a name is new or about
        to end, which takes long on a busy machine. Another node of the same name existed before.
        """
        until = time.monotonic() + GONE_AFTER_S
        other_names: list[str] = []
        publishers: list[Any] = []

        def is_decided() -> bool:
            publishers[:] = self._node.get_publishers_info_by_topic(topic)
            other_names[:] = _other_names(self._node, topic, own_name, publishers)
            return (
                not other_names
                or bool({*other_names} - {'', own_name})
                or time.monotonic() > until
            )

        yield Wait(is_decided, f'the end of another publisher of {topic}')
        if other_names:
            raise OtherPublisherError(topic, other_names, self._own_names(own_name))
        self._identifiers[topic] = {_identifier(publisher) for publisher in publishers}

    def accept(self, topic: str, info: Mapping[str, Any]) -> bool:
        """Return True if a message received on a topic continues those of its publisher.

        The messages of one publisher have increasing numbers; those of two do not, as both count
        from 1. `info` is the message info of rclpy, whose numbers some middlewares lack. All
        messages on topics that are not watched are accepted.
        """
        number = info.get('publication_sequence_number')
        if number is None or topic not in self._identifiers:
            return True
        if number <= self._numbers.get(topic, 0):
            self.suspect(topic)
            return False
        self._numbers[topic] = number
        return True

    def suspect(self, topic: str) -> None:
        """Note that a message of another publisher was received on a topic."""
        if self._other is None:
            self._other = _OtherPublisher(topic, time.monotonic() + _NAMED_AFTER_S)

    def check(self, *, is_last: bool = False) -> None:
        """Raise OtherPublisherError if a topic had another publisher since its watch began.

        The error waits for the name of the publisher for a short time, unless `is_last`.
        """
        now = time.monotonic()
        if now < self._due and not is_last:
            return
        self._due = now + _PERIOD_S
        for topic, identifiers in self._identifiers.items():
            if self._node.count_publishers(topic) > len(identifiers) or is_last or self._other:
                for publisher in self._node.get_publishers_info_by_topic(topic):
                    if _identifier(publisher) not in identifiers:
                        self.suspect(topic)
                        self._note_name(topic, publisher)
        other = self._other
        if other and (other.name or is_last or now > other.due):
            raise OtherPublisherError(other.topic, [other.name], self._own_names())

    def _own_names(self, *names: str) -> list[str]:
        return [self._node.get_fully_qualified_name(), *names]

    def _note_name(self, topic: str, publisher: Any) -> None:
        assert self._other is not None
        if topic == self._other.topic:
            self._other.name = self._other.name or _node_name(publisher)
