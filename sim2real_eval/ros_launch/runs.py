# SPDX-License-Identifier: Apache-2.0
"""One run after another within one launch."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Callable, Iterable
from typing import Any

from launch.actions import EmitEvent, OpaqueFunction, RegisterEventHandler, Shutdown, TimerAction
from launch.event_handlers import OnProcessExit, OnProcessIO, OnProcessStart
from launch.events.process import ShutdownProcess

from sim2real_eval.ros_launch.nodes import TOLD_TO_END, failure

__all__ = ['Run', 'Runs']

# Of a program that ended because it was told to: `ros2` returns the number of the signal, which
# rosbag2's recorder passes on when all is written.
_INTERRUPTED = (0, signal.SIGINT, -signal.SIGINT)


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
    recorder : launch.actions.ExecuteProcess or None
        Process that has to end well when it is told to; how the others end does not matter then.
    check : callable
        Asked when all have ended. Takes a function that gives what a process wrote, and returns
        what is wrong with the run; empty when nothing is.
    """

    leader: Any
    actions: list[Any]
    last: list[Any] = dataclasses.field(default_factory=list)
    recorder: Any = None
    check: Callable[[Callable[[Any], str]], str] = lambda wrote: ''


class Runs:
    """Starts the processes of a run, ends all when its leader has ended, and begins the next.

    A process that ends before its time, a leader or recorder that fails, or a run with which
    something is wrong ends the launch with exit status 1. It ends by itself after the last run.

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
        self._run: Run | None = None
        self._wrote: dict[Any, list[bytes]] = {}
        # Processes whose ends are waited for, all of them before the others are told to end.
        self._awaited: list[Any] = []
        self._last: list[Any] = []
        self._alive: set[int] = set()
        self._ending = False

    def actions(self) -> list[Any]:
        """Return the actions that do all this."""
        return [
            RegisterEventHandler(OnProcessStart(on_start=self._on_start)),
            RegisterEventHandler(OnProcessIO(on_stdout=self._on_output)),
            RegisterEventHandler(OnProcessExit(on_exit=self._on_exit)),
            OpaqueFunction(function=self._next),
        ]

    def _next(self, context: Any) -> list[Any]:
        number = next(self._numbers, None)
        if number is None:
            return [Shutdown(reason='all runs are done')]
        run = self._run = self._make(number)
        self._wrote.clear()
        self._awaited, self._last, self._ending = [run.leader], run.last, False
        context.launch_configurations[TOLD_TO_END] = 'false'
        return run.actions

    def _on_start(self, event: Any, context: Any) -> None:
        self._alive.add(event.pid)

    def _on_output(self, event: Any) -> None:
        self._wrote.setdefault(event.action, []).append(event.text)

    def _on_exit(self, event: Any, context: Any) -> list[Any]:
        self._alive.discard(event.pid)
        if context.is_shutdown:
            return []
        if self._ending:
            return self._told_to_end(event, context)
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
        context.launch_configurations[TOLD_TO_END] = 'true'
        end = EmitEvent(event=ShutdownProcess(process_matcher=lambda process: True))
        return [TimerAction(period=self._settle, actions=[end])]

    def _told_to_end(self, event: Any, context: Any) -> list[Any]:
        run = self._run
        assert run is not None
        if event.action is run.recorder and event.returncode not in _INTERRUPTED:
            return [failure(f'{event.process_name} ended with exit status {event.returncode}')]
        if self._alive:
            return []
        # Not before: what a process wrote may come after its end.
        problem = run.check(lambda process: b''.join(self._wrote.get(process, ())).decode())
        return [failure(problem)] if problem else self._next(context)
