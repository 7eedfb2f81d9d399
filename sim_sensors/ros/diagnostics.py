# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Health of the nodes as diagnostic_msgs."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from sim_sensors.live.samples import Verdict
from .truth_report import TruthReport

# Lines per report; without a limit each of a thousand messages may add one.
_MAX_LINES = 5


def diagnostic(
    name: str, level: bytes, message: str, values: Iterable[tuple[str, object]], hardware: str = ''
) -> DiagnosticStatus:
    """Return a diagnostic status with values by name."""
    return DiagnosticStatus(
        level=level,
        name=name,
        message=message,
        hardware_id=hardware,
        values=[KeyValue(key=key, value=str(value)) for key, value in values],
    )


def warn_of_publishers(topic: str, publishers: int) -> list[str]:
    """Return a warning if a topic has more than one publisher, else an empty list."""
    if publishers < 2:
        return []
    return [f'{topic} has {publishers} publishers, whose messages mix; it must have one']


class ReportLines:
    """Lines for the next diagnostic report, each with its level."""

    def __init__(self) -> None:
        self._levels: dict[str, bytes] = {}

    def add(self, text: str, level: bytes) -> None:
        """Add a line with a level of DiagnosticStatus."""
        if text in self._levels or len(self._levels) < _MAX_LINES:
            self._levels[text] = level

    def take(self) -> tuple[bytes, list[str]]:
        """Remove and return the worst level and all lines."""
        levels, self._levels = self._levels, {}
        return max(levels.values(), default=DiagnosticStatus.OK), list(levels)


class SensorHealth:
    """Counts of a sensor node, in total and since the last report.

    `name` is the full name of the node, `hardware` the model of the sensor, `truth` the monitor of
    its odometry. `outliers` is the number of odometry samples that were held as ahead of time, and
    then refused.
    """

    def __init__(self, name: str, hardware: str, truth: TruthReport) -> None:
        self._name = name
        self._hardware = hardware
        self.truth = truth
        self._odometry: collections.Counter[Verdict] = collections.Counter()
        self._published = 0
        self._resets = 0
        self._failures = 0
        self.outliers = 0
        self._longest_gap = 0.0
        self._last_stamp_ns: int | None = None
        self._lines = ReportLines()
        self._has_news = False
        self.faults: tuple[str, ...] = ()  # kinds of faults that act now

    @property
    def received(self) -> int:
        """Number of received odometry samples."""
        return self._odometry.total()

    def count_odometry(self, verdict: Verdict, gap: float) -> None:
        """Count an odometry sample; `gap` is the length of the latest gap, s."""
        self._odometry[verdict] += 1
        self._has_news = True
        if verdict in (Verdict.GAP, Verdict.RESTARTED):
            self._longest_gap = max(self._longest_gap, gap)
            effect = (
                'bridged' if verdict is Verdict.GAP else 'not interpolated: the sensor restarted'
            )
            self._lines.add(f'odometry gap of {gap:.3g} s, {effect}', DiagnosticStatus.WARN)
        elif verdict is Verdict.OTHER_FRAME:
            self.truth.refuse_frame()
        elif verdict is Verdict.HELD or not verdict.is_accepted:
            level = DiagnosticStatus.WARN
            if verdict is Verdict.INVALID:
                level = DiagnosticStatus.ERROR
            self._lines.add(f'odometry {verdict.value}', level)

    def note_noise_free(self, verdict: Verdict) -> None:
        """Report a message of the noise-free sensor that was refused or begins a time line."""
        self._lines.add(f'noise-free sensor {verdict.value}', DiagnosticStatus.WARN)

    def note_missing_noise_free(self, topic: str) -> None:
        """Report that the topic of the noise-free sensor has no publisher."""
        self._lines.add(f'noise-free sensor: {topic} has no publisher', DiagnosticStatus.WARN)

    def count_published(self, stamp_ns: int) -> None:
        """Count a published measurement."""
        self._published += 1
        self._last_stamp_ns = stamp_ns

    def count_reset(self, reason: str) -> None:
        """Count a reset."""
        self._resets += 1
        self._lines.add(f'reset: {reason}', DiagnosticStatus.OK)

    def count_failure(self, problem: str) -> None:
        """Count a failure of the sensor to measure."""
        self._failures += 1
        self._lines.add(problem, DiagnosticStatus.ERROR)

    def report(
        self, publishers: int, subscriptions: int, truth_subscriptions: int
    ) -> DiagnosticStatus:
        """Return the status, and begin the next period.

        Parameters
        ----------
        publishers : int
            Publishers of odometry.
        subscriptions, truth_subscriptions : int
            Subscriptions of the measurements, and of the errors in them.
        """
        level, messages = self._lines.take()
        if not messages and not self._has_news:
            reason = 'no message arrived' if publishers else 'the topic has no publisher'
            level, messages = DiagnosticStatus.WARN, [f'no odometry: {reason}']
        self._has_news = False
        truth_level, truth_messages = self.truth.take()
        level, messages = max(level, truth_level), [*truth_messages, *messages]
        if self.faults:
            names = ', '.join(self.faults)
            level, messages = max(level, DiagnosticStatus.WARN), [f'fault: {names}', *messages]
        if warning := warn_of_publishers('odometry', publishers):
            level, messages = max(level, DiagnosticStatus.WARN), [*warning, *messages]
        values = [
            *self._values(),
            ('odometry publishers', publishers),
            ('subscriptions', subscriptions),
            ('truth subscriptions', truth_subscriptions),
        ]
        message = '; '.join(messages) or 'measuring'
        return diagnostic(f'{self._name}: sensor', level, message, values, self._hardware)

    def _values(self) -> list[tuple[str, object]]:
        count = self._odometry
        accepted = sum(number for verdict, number in count.items() if verdict.is_accepted)
        return [
            ('odometry accepted', accepted - self.outliers),
            ('odometry repeated', count[Verdict.REPEATED]),
            ('odometry late', count[Verdict.LATE]),
            ('odometry stale', count[Verdict.STALE]),
            ('odometry after the end', count[Verdict.FINISHED]),
            ('odometry invalid', count[Verdict.INVALID]),
            ('odometry ahead of time', self.outliers),
            ('gaps', count[Verdict.GAP] + count[Verdict.RESTARTED]),
            ('longest gap [s]', f'{self._longest_gap:.9g}'),
            ('published', self._published),
            ('last stamp [ns]', '' if self._last_stamp_ns is None else self._last_stamp_ns),
            ('resets', self._resets),
            ('failures', self._failures),
            ('faults', ', '.join(self.faults)),
            *self.truth.values(),
        ]


class Reporter:
    """Periodic publisher of the status of a node.

    Diagnostics describe the process, so `period`, s, is wall time, and they continue in a paused
    world.
    """

    def __init__(
        self, node: Node, status: Callable[[], DiagnosticStatus], period: float = 1.0
    ) -> None:
        self._status = status
        self._clock = node.get_clock()
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        node.create_timer(period, self.report, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def report(self) -> None:
        """Publish the status."""
        message = DiagnosticArray(status=[self._status()])
        message.header.stamp = self._clock.now().to_msg()
        self._publisher.publish(message)
