# SPDX-License-Identifier: Apache-2.0
"""What a sensor node tells about its health, as diagnostic_msgs."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from sim_sensors.live.samples import Verdict

# The worst few of a period, not a line for each of a thousand messages.
_MOST_NEWS = 5


def diagnostic(
    name: str, level: bytes, message: str, values: Iterable[tuple[str, object]], hardware: str = ''
) -> DiagnosticStatus:
    """Return a status at a level, with values by name."""
    return DiagnosticStatus(
        level=level,
        name=name,
        message=message,
        hardware_id=hardware,
        values=[KeyValue(key=key, value=str(value)) for key, value in values],
    )


def several_publishers(topic: str, publishers: int) -> list[str]:
    """Return what to say about a topic with more than one publisher."""
    if publishers < 2:
        return []
    return [f'{topic}: {publishers} publishers, whose messages mix; must be one']


class News:
    """What is worth a line in the next report, with how bad it is."""

    def __init__(self) -> None:
        self._levels: dict[str, bytes] = {}

    def note(self, text: str, level: bytes) -> None:
        """Keep a line, at a level of DiagnosticStatus."""
        if text in self._levels or len(self._levels) < _MOST_NEWS:
            self._levels[text] = level

    def take(self) -> tuple[bytes, list[str]]:
        """Return the worst level and all lines, and forget them."""
        levels, self._levels = self._levels, {}
        return max(levels.values(), default=DiagnosticStatus.OK), list(levels)


class SensorHealth:
    """Counts what happened, in all and since the last report.

    `name` is the full one of the node, `hardware` the model of the sensor.
    """

    def __init__(self, name: str, hardware: str) -> None:
        self._name = name
        self._hardware = hardware
        self._odometry: collections.Counter[Verdict] = collections.Counter()
        self._published = 0
        self._resets = 0
        self._failures = 0
        self._longest_gap = 0.0
        self._last_stamp_ns: int | None = None
        self._news = News()
        self._heard = False

    @property
    def heard(self) -> int:
        """How many odometry samples came."""
        return self._odometry.total()

    def saw(self, verdict: Verdict, gap: float) -> None:
        """Count an odometry sample; `gap` is the length of the latest gap, s."""
        self._odometry[verdict] += 1
        self._heard = True
        if verdict in (Verdict.GAP, Verdict.RESTARTED):
            self._longest_gap = max(self._longest_gap, gap)
            way = 'bridged' if verdict is Verdict.GAP else 'not bridged: the sensor started anew'
            self._news.note(f'odometry gap of {gap:.3g} s, {way}', DiagnosticStatus.WARN)
        elif not verdict.accepted:
            level = DiagnosticStatus.WARN
            if verdict is Verdict.INVALID:
                level = DiagnosticStatus.ERROR
            self._news.note(f'odometry {verdict.value}', level)

    def refused_noise_free(self, verdict: Verdict) -> None:
        """Tell of a message of the noise-free sensor that does not count."""
        self._news.note(f'noise-free sensor {verdict.value}', DiagnosticStatus.WARN)

    def lacks_noise_free(self, topic: str) -> None:
        """Tell that nobody publishes what is to be measured."""
        self._news.note(f'noise-free sensor: nobody publishes {topic}', DiagnosticStatus.WARN)

    def published(self, stamp_ns: int) -> None:
        """Count a measurement."""
        self._published += 1
        self._last_stamp_ns = stamp_ns

    def reset(self, why: str) -> None:
        """Count a reset."""
        self._resets += 1
        self._news.note(f'reset: {why}', DiagnosticStatus.OK)

    def failed(self, problem: str) -> None:
        """Count measurements that could not be made."""
        self._failures += 1
        self._news.note(problem, DiagnosticStatus.ERROR)

    def report(self, publishers: int, subscriptions: int, of_truth: int) -> DiagnosticStatus:
        """Return the status, and begin the next period.

        The numbers are those that the node is connected to: publishers of odometry, subscriptions
        of its measurements and of the errors in them.
        """
        level, messages = self._news.take()
        if not messages and not self._heard:
            why = 'none has come' if publishers else 'nobody publishes it'
            level, messages = DiagnosticStatus.WARN, [f'no odometry: {why}']
        self._heard = False
        if mixed := several_publishers('odometry', publishers):
            level, messages = max(level, DiagnosticStatus.WARN), [*mixed, *messages]
        values = [
            *self._values(),
            ('odometry publishers', publishers),
            ('subscriptions', subscriptions),
            ('truth subscriptions', of_truth),
        ]
        message = '; '.join(messages) or 'measuring'
        return diagnostic(f'{self._name}: sensor', level, message, values, self._hardware)

    def _values(self) -> list[tuple[str, object]]:
        count = self._odometry
        accepted = sum(number for verdict, number in count.items() if verdict.accepted)
        return [
            ('odometry accepted', accepted),
            ('odometry repeated', count[Verdict.REPEATED]),
            ('odometry late', count[Verdict.LATE]),
            ('odometry stale', count[Verdict.STALE]),
            ('odometry after the end', count[Verdict.FINISHED]),
            ('odometry invalid', count[Verdict.INVALID]),
            ('gaps', count[Verdict.GAP] + count[Verdict.RESTARTED]),
            ('longest gap [s]', f'{self._longest_gap:.9g}'),
            ('published', self._published),
            ('last stamp [ns]', '' if self._last_stamp_ns is None else self._last_stamp_ns),
            ('resets', self._resets),
            ('failures', self._failures),
        ]


class Reporter:
    """Publishes the status of a node now and then.

    Diagnostics are about this process, so they follow the wall, `period` s from one message to the
    next, and go on in a paused world.
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
