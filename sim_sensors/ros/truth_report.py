# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Problems of a live truth in the log and in the diagnostics of a node."""

from __future__ import annotations

from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticStatus

from sim_sensors.core.measurements import OdometryArray
from sim_sensors.motion.truth_monitor import TruthMonitor, TruthProblem

_TEXTS = {
    TruthProblem.JUMP: 'the position jumps',
    TruthProblem.WORLD_TWIST: 'the twist is in the axes of the world',
    TruthProblem.NO_TWIST: 'the twist is zero while the position moves',
    TruthProblem.SPEED_SCALE: 'the twist has another unit than the position',
    TruthProblem.OTHER_FRAME: 'messages of other frames are refused',
    TruthProblem.NO_FRAME: 'frame_id or child_frame_id is empty',
}
_REMEDIES = {
    TruthProblem.JUMP: 'find out whether the robot was moved by hand',
    TruthProblem.WORLD_TWIST: 'start the node with velocity:=position, which reads no twist',
    TruthProblem.NO_TWIST: 'start the node with velocity:=position, which reads no twist',
    TruthProblem.SPEED_SCALE: 'start the node with velocity:=position, which reads no twist',
    TruthProblem.OTHER_FRAME: 'let one publisher send the odometry',
    TruthProblem.NO_FRAME: 'name both; map and base_link are assumed',
}
_WARNINGS = (TruthProblem.OTHER_FRAME, TruthProblem.NO_FRAME)


class TruthReport:
    """Monitor of the odometry of a node, which logs each problem once.

    Parameters
    ----------
    log : callable
        Takes a line for the log.
    reads_twist : bool
        Whether the node uses the twist.
    """

    def __init__(self, log: Callable[[str], object], *, reads_twist: bool) -> None:
        self._log = log
        self._monitor = TruthMonitor(reads_twist=reads_twist)
        self._logged: set[TruthProblem] = set()
        self._events: set[TruthProblem] = set()

    def push(self, sample: OdometryArray) -> None:
        """Take the next accepted sample."""
        if problems := self._monitor.push(sample):
            self._note(problems)

    def refuse_frame(self) -> None:
        """Note a message that was refused because of its frames."""
        self._monitor.counts[TruthProblem.OTHER_FRAME] += 1
        self._note([TruthProblem.OTHER_FRAME])

    def restart(self) -> None:
        """Begin with another stream of odometry."""
        self._monitor.restart()

    def _note(self, problems: list[TruthProblem]) -> None:
        for problem in problems:
            if problem.is_event:
                self._events.add(problem)
            if problem not in self._logged:
                self._logged.add(problem)
                self._log(f'odometry: {_TEXTS[problem]} ({problem.value}); {_REMEDIES[problem]}')

    def take(self) -> tuple[bytes, list[str]]:
        """Return level and messages: problems that hold, and events since the last call."""
        problems = [
            problem
            for problem in TruthProblem
            if problem in self._events or problem in self._monitor.holding
        ]
        self._events.clear()
        if not problems:
            return DiagnosticStatus.OK, []
        are_warnings = all(problem in _WARNINGS for problem in problems)
        level = DiagnosticStatus.WARN if are_warnings else DiagnosticStatus.ERROR
        return level, [f'odometry: {_TEXTS[problem]}' for problem in problems]

    def values(self) -> list[tuple[str, object]]:
        """Return the number of each problem by its code, and the largest jump."""
        counts = self._monitor.counts
        return [
            *((problem.value, counts[problem]) for problem in TruthProblem),
            ('largest jump [m]', f'{self._monitor.largest_jump:.6g}'),
        ]
