# SPDX-License-Identifier: Apache-2.0
"""One run after another within one launch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from launch.actions import EmitEvent, OpaqueFunction, RegisterEventHandler, Shutdown, TimerAction
from launch.event_handlers import OnProcessExit, OnProcessStart
from launch.events.process import ShutdownProcess

from sim2real_eval.ros_launch.nodes import failure

__all__ = ['Runs']


class Runs:
    """Starts the processes of a run, ends all when its leader has ended, and begins the next.

    A process that ends before its leader does, or a leader that fails, ends the launch with exit
    status 1. It ends by itself after the last run.

    Parameters
    ----------
    make : callable
        Takes the launch context and the number of a run; returns its leader, and the actions that
        start everything, the leader too.
    numbers : iterable of int
        Of the runs.
    settle : float
        Wall time from the end of the leader until the others are told to end, s.
    """

    def __init__(
        self,
        make: Callable[[Any, int], tuple[Any, list[Any]]],
        numbers: Iterable[int],
        settle: float,
    ) -> None:
        self._make = make
        self._numbers = iter(numbers)
        self._settle = settle
        self._leader: Any = None
        self._alive: set[int] = set()
        self._ending = False

    def actions(self) -> list[Any]:
        """Return the actions that do all this."""
        return [
            RegisterEventHandler(OnProcessStart(on_start=self._on_start)),
            RegisterEventHandler(OnProcessExit(on_exit=self._on_exit)),
            OpaqueFunction(function=self._next),
        ]

    def _next(self, context: Any) -> list[Any]:
        number = next(self._numbers, None)
        if number is None:
            return [Shutdown(reason='all runs are done')]
        self._leader, actions = self._make(context, number)
        self._ending = False
        return actions

    def _on_start(self, event: Any, context: Any) -> None:
        self._alive.add(event.pid)

    def _on_exit(self, event: Any, context: Any) -> list[Any]:
        self._alive.discard(event.pid)
        if context.is_shutdown:
            return []
        if self._ending:
            return [] if self._alive else self._next(context)
        self._ending = True
        if event.action is not self._leader or event.returncode != 0:
            return [failure(f'{event.process_name} ended with exit status {event.returncode}')]
        end = EmitEvent(event=ShutdownProcess(process_matcher=lambda process: True))
        return [TimerAction(period=self._settle, actions=[end])]
