# SPDX-License-Identifier: Apache-2.0
"""Questions to a node whose answers prove that it has dealt with what was sent before."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from rcl_interfaces.srv import GetParameters
from rclpy.node import Node
from std_srvs.srv import Trigger

__all__ = ['Questions', 'Wait', 'Work']

_AGAIN_S = 0.5


class Wait(NamedTuple):
    """Something to wait for: asked for again and again until it is true.

    Attributes
    ----------
    met : callable
    what : str
        For the message when it never is.
    """

    met: Callable[[], bool]
    what: str


Work = Generator[Wait, None, None]
"""Work that says what it waits for; the Conductor lets several go on side by side."""


class Questions:
    """A client of a service that every node has, and of judge_node's `~/status`.

    The executors of rclcpp and rclpy, single-threaded, take in one cycle at most one message of
    each subscription and answer at most one request, in this order. So the answer to a question
    that was put after a message proves that the message was dealt with, unless it came too late
    for the cycle and the question did not; the next cycle then takes it. `settled` therefore ends
    with a question that is put when all others are answered.

    Parameters
    ----------
    node : Node
    judge : str
        Name of the judge's node with its namespace.
    """

    def __init__(self, node: Node, judge: str) -> None:
        self._node = node
        self._ask = node.create_client(GetParameters, f'{judge}/get_parameters')
        self._status = node.create_client(Trigger, f'{judge}/status')
        self._open: list[Any] = []

    def close(self) -> None:
        """Remove the clients."""
        self._node.destroy_client(self._ask)
        self._node.destroy_client(self._status)

    @property
    def pending(self) -> int:
        """Questions that have been put and not waited for."""
        return len(self._open)

    def put(self) -> None:
        """Ask, and do not wait for the answer."""
        self._open.append(self._ask.call_async(GetParameters.Request()))

    def settled(self) -> Work:
        """Wait until everything that was sent before has been dealt with."""
        if self._open:
            last = self._open[-1]
            yield Wait(last.done, 'answers')
            self._open.clear()
        future = self._ask.call_async(GetParameters.Request())
        yield Wait(future.done, 'an answer')

    def matched(self) -> Work:
        """Wait until the node answers; what is asked before both sides know each other is lost."""
        yield Wait(self._ask.service_is_ready, 'its services')
        yield from self._until_answered(self._ask, GetParameters.Request(), [])

    def status(self, reached: Callable[[dict[str, Any]], bool], what: str) -> Work:
        """Wait until judge_node's status is such."""
        answers: list[Any] = []
        while not (answers and reached(dict(json.loads(answers[-1].message)))):
            yield from self._until_answered(self._status, Trigger.Request(), answers, what)

    def _until_answered(
        self, client: Any, request: Any, answers: list[Any], what: str = 'an answer'
    ) -> Work:
        """Ask, and ask again where a question or an answer seems lost."""
        future, asked = client.call_async(request), time.monotonic()

        def answered() -> bool:
            nonlocal future, asked
            if not future.done() and time.monotonic() > asked + _AGAIN_S:
                future, asked = client.call_async(request), time.monotonic()
            return bool(future.done())

        yield Wait(answered, what)
        answers.append(future.result())
