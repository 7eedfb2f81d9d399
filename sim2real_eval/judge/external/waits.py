# SPDX-License-Identifier: Apache-2.0
"""What a run waits for: anything that becomes true, an answer, a topic with one publisher."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from rclpy.node import Node

from sim2real_eval.common.errors import JudgeError

# DDS gives a participant that was killed up 20 s after its last word.
_GOING_S = 25.0
AGAIN_S = 0.5
"""Pause after which something that was asked may be lost."""


class Wait(NamedTuple):
    """Something to wait for: asked for again and again until it is true."""

    met: Callable[[], bool]
    what: str
    """For the message when it never is."""


Work = Generator[Wait, None, None]
"""Work that says what it waits for; the Conductor lets several go on side by side."""


def answered(client: Any, request: Any, what: str) -> Generator[Wait, None, Any]:
    """Ask a service until it answers; return the answer to the last request.

    A request or an answer is lost while one side does not know the other, whatever
    `service_is_ready` says. So a request may be repeated: it must change nothing. The pause
    doubles, since a service keeps few requests, and each is dealt with before this ends.
    """
    asked = [client.call_async(request)]
    due = time.monotonic() + AGAIN_S

    def met() -> bool:
        nonlocal due
        if any(future.done() for future in asked):
            return bool(asked[-1].done())
        if time.monotonic() > due:
            asked.append(client.call_async(request))
            due = time.monotonic() + AGAIN_S * 2 ** len(asked)
        return False

    yield Wait(met, what)
    return asked[-1].result()


def publishers_of(node: Node, topic: str) -> list[str]:
    """Return the full names of the nodes that publish a topic, as far as `node` knows.

    A name that is not known yet, which comes after the publisher, is empty.
    """
    return [_name(one) for one in node.get_publishers_info_by_topic(topic)]


def _name(publisher: Any) -> str:
    unknown = 'UNKNOWN' in publisher.node_name
    return '' if unknown else f'{publisher.node_namespace.rstrip("/")}/{publisher.node_name}'


def alone(node: Node, topic: str, own: str, reason: str) -> Work:
    """Wait until the node named `own` is the only one that publishes a topic.

    JudgeError, which gives the reason, for another that stays. Who has no name has just come or
    is about to go, which takes long on a busy machine; who has that of `own` was there before it.
    """
    until = time.monotonic() + _GOING_S
    others: list[str] = []

    def known() -> bool:
        others[:] = _others(node, topic, own)
        return not others or bool({*others} - {'', own}) or time.monotonic() > until

    yield Wait(known, f'the end of another publisher of {topic}')
    if others:
        said = {'': 'another node', own: f'another {own}'}
        raise JudgeError(
            f'{topic}: {", ".join(said.get(name, name) for name in others)} publishes it too; '
            f'end that, or take another ROS_DOMAIN_ID: {reason}'
        )


def _others(node: Node, topic: str, own: str) -> list[str]:
    """Return what `publishers_of` does, without one publisher of the node named `own`.

    Its participant keeps some that were destroyed for a while, without a name: not returned.
    """
    publishers = [(_name(one), one) for one in node.get_publishers_info_by_topic(topic)]
    participants = {_participant(one) for name, one in publishers if name == own}
    others = [name for name, one in publishers if name or _participant(one) not in participants]
    if own in others:
        others.remove(own)
    return others


def _participant(publisher: Any) -> bytes:
    """Return the part of a DDS identifier that says whose it is."""
    return bytes(publisher.endpoint_gid[:12])
