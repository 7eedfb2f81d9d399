# SPDX-License-Identifier: Apache-2.0
"""What the Conductor leads through a run: one judge on the graph, and work that waits."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, Protocol

from .follower import PendingMessage


class Wait(NamedTuple):
    """Something to wait for: asked for again and again until it is true."""

    met: Callable[[], bool]
    what: str
    """For the message when it never is."""


Work = Generator[Wait, None, None]
"""Work that says what it waits for; the Conductor lets several go on side by side."""


class Played(Protocol):
    """A judge on the graph; at each time its methods are called in the order of their lines."""

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def run_on_ns(self) -> int:
        """How long the clock goes on after the last message."""

    def begin(self, start_ns: int) -> int:
        """Prepare for a run; return the first time of the clock."""

    def ready(self) -> Work:
        """Wait until it has begun; the clock stands."""

    @property
    def next_ns(self) -> int:
        """Time at which something is due next."""

    def deliver(self, deliveries: Sequence[PendingMessage]) -> Work:
        """Take what has arrived."""

    def step(self, now_ns: int) -> bool:
        """Say whether the node has something to do at this time."""

    def settle(self) -> Work:
        """Wait until the node has dealt with all that was sent."""

    def answer(self, now_ns: int) -> Work:
        """Wait until the node has done what is due; the clock has been set."""

    def idle(self) -> Work:
        """Let the node see the clock at a time at which it has nothing to do."""

    def after(self, now_ns: int) -> None:
        """Finish the step."""

    def check(self) -> None:
        """Raise JudgeError when a node has ended."""
