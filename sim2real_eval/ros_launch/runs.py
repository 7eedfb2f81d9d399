# SPDX-License-Identifier: Apache-2.0
"""One run after another within one launch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from launch.actions import EmitEvent, OpaqueFunction, RegisterEventHandler, Shutdown, TimerAction
from launch.event_handlers import OnProcessExit, OnProcessStart
from launch.events.process import ShutdownProcess

from sim2real_eval.ros_launch.nodes import failure

__all__ = ['Run', 'Runs']


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """What one run consists of.

    Attributes
    ----------
    leader : launch.actions.ExecuteProcess
        Process whose end is the end of the run.
    actions : list of launch actions
        That start everything, the leader too.
    last : list of launch.actions.ExecuteProcess
        Short processes that come after the leader, while the others still run.
    """

    leader: Any
    actions: list[Any]
    last: list[Any] = dataclasses.field(default_factory=list)


class Runs:
    """Starts the processes of a run, ends all when its leader has ended, and begins the next.

    A process that ends before its time or a leader that fails ends the launch with exit status 1.
    It ends by itself after the last run.

    Parameters
    ----------
    make : callable
        Takes the number of a run and returns it.
    numbers : iterable of int
        Of the runs.
    settle : float
        Wall time from the end of the leader, and of what comes last, until the others are told to
        end, s.
    """

    def __init__(self, make: Callable[[int], Run], numbers: Iterable[int], settle: float) -> None:
        self._make = make
        self._numbers = iter(numbers)
        self._settle = settle
        # Processes whose ends are waited for, all of them before the others are told to end.
        self._awaited: list[Any] = []
        self._last: list[Any] = []
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
        run = self._make(number)
        self._awaited, self._last, self._ending = [run.leader], run.last, False
        return run.actions

    def _on_start(self, event: Any, context: Any) -> None:
        self._alive.add(event.pid)

    def _on_exit(self, event: Any, context: Any) -> list[Any]:
        self._alive.discard(event.pid)
        if context.is_shutdown:
            return []
        if self._ending:
            return [] if self._alive else self._next(context)
        if event.action not in self._awaited or event.returncode != 0:
            self._ending = True
            return [failure(f'{event.process_name} ended with exit status {event.returncode}')]
        self._awaited.remove(event.action)
        if self._awaited:
            return []
        if self._last:
            self._awaited, self._last = list(self._last), []
            return list(self._awaited)
        self._ending = True
        end = EmitEvent(event=ShutdownProcess(process_matcher=lambda process: True))
        return [TimerAction(period=self._settle, actions=[end])]
