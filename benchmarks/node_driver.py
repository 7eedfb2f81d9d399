# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Drives a node on a domain of its own with odometry at a given rate, and times what it answers.

The driver must cost little beside what it measures: odometry is serialised beforehand, and
measurements are taken as bytes, of which only the stamp is read.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.context import Context
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, NavSatFix

from sim2real_eval.judge.external.graph import free_domain, private_context
from sim_sensors.core.measurements import OdometryArray
from sim_sensors.ros.messages import messages_of, time_message

TIMEOUT_S = 30.0
_POLL_S = 1e-4
_TICKS = os.sysconf('SC_CLK_TCK')


@dataclasses.dataclass(frozen=True)
class Drive:
    """What came of one drive.

    Attributes
    ----------
    sent, heard : int
        Odometry messages published, and taken by the slowest node.
    published_s : list of float
        When each odometry message was published.
    received_s : dict
        When each measurement was received, by its stamp in ns.
    cpu : float
        Share of one core that the process used between the first message and the last.
    wall_s : float
        From the first to the last message.
    """

    sent: int
    heard: int
    published_s: list[float]
    received_s: dict[int, float]
    cpu: float
    wall_s: float


class Driver:
    """A process under test and the topics around it. Made by `driver`."""

    def __init__(self, process: subprocess.Popen[bytes], context: Context) -> None:
        self._process = process
        self._node = Node('driver', context=context)
        deep = QoSProfile(depth=5000)
        self._odometry = self._node.create_publisher(Odometry, 'ground_truth/odometry', deep)
        self._clock = self._node.create_publisher(Clock, '/clock', 10)
        make = self._node.create_subscription
        self._measured = make(Imu, 'imu/data', lambda message: None, deep, raw=True)
        self._fixes = make(NavSatFix, 'gps/fix', lambda message: None, deep, raw=True)
        self._diagnostics = make(DiagnosticArray, '/diagnostics', lambda message: None, deep)
        self._heard: dict[str, dict[str, str]] = {}
        self._reports: collections.Counter[str] = collections.Counter()

    def close(self) -> None:
        self._node.destroy_node()

    def wait(self, condition: Callable[[], bool], what: str, timeout: float = TIMEOUT_S) -> None:
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end or self._process.poll() is not None:
                raise TimeoutError(f'waited {timeout:g} s for {what}')
            self._listen()
            time.sleep(0.01)

    def connect(self, sensors: int) -> None:
        """Wait until the nodes hear odometry and are heard; the relay (0 sensors) says nothing."""

        def ready() -> bool:
            if self._odometry.get_subscription_count() < max(sensors, 1):
                return False
            if not self._measured.get_publisher_count():
                return False
            seen = self._heard.values()
            return len(seen) == sensors and all(
                values['odometry publishers'] == '1' and values['subscriptions'] == '1'
                for values in seen
            )

        self.wait(ready, f'{sensors} sensors')
        # A relay does not say when it has found the driver.
        time.sleep(1.0)

    def drive(self, truth: OdometryArray, rate: float, *, clock: bool = False) -> Drive:
        """Publish all of `truth` at `rate` messages a second of wall time."""
        messages = [serialize_message(message) for message in messages_of(truth)]
        clocks = [
            serialize_message(Clock(clock=time_message(stamp)))
            for stamp in truth.stamp_ns.tolist()
        ]
        before = self._accepted()
        received: dict[int, float] = {}
        published: list[float] = []
        begin_cpu, begin = self.cpu_seconds(), time.perf_counter()
        for k, message in enumerate(messages):
            while True:
                self._take(received)
                left = begin + k / rate - time.perf_counter()
                if left <= 0.0:
                    break
                time.sleep(min(left, _POLL_S))
            if clock:
                self._clock.publish(clocks[k])
            published.append(time.perf_counter())
            self._odometry.publish(message)
        wall = time.perf_counter() - begin
        cpu = (self.cpu_seconds() - begin_cpu) / wall
        self._settle(received)
        heard = self._accepted() - before if self._heard else len(received)
        return Drive(len(messages), heard, published, received, cpu, wall)

    def cpu_seconds(self) -> float:
        """User and system time of the process and its threads, s."""
        text = Path(f'/proc/{self._process.pid}/stat').read_text(encoding='ascii')
        fields = text.rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def resident_mib(self) -> float:
        """Memory of the process that is in use, MiB."""
        pages = Path(f'/proc/{self._process.pid}/statm').read_text(encoding='ascii').split()[1]
        return int(pages) * os.sysconf('SC_PAGE_SIZE') / 2**20

    def _take(self, received: dict[int, float]) -> None:
        with self._measured.handle:
            while taken := self._measured.handle.take_message(Imu, True):
                seconds, nanoseconds = struct.unpack_from('<iI', taken[0], 4)
                received[seconds * 10**9 + nanoseconds] = time.perf_counter()
        with self._fixes.handle:
            while self._fixes.handle.take_message(NavSatFix, True):
                pass

    def _settle(self, received: dict[int, float]) -> None:
        """Receive what still comes, until half a second and two reports of each node add none."""
        known, quiet, end = -1, time.monotonic(), time.monotonic() + TIMEOUT_S
        before = self._reports.copy()
        while time.monotonic() < end:
            self._take(received)
            self._listen()
            progress = len(received) + self._accepted()
            if progress != known:
                known, quiet, before = progress, time.monotonic(), self._reports.copy()
            reported = all(self._reports[name] >= before[name] + 2 for name in self._heard)
            if reported and time.monotonic() > quiet + 0.5:
                break
            time.sleep(_POLL_S)

    def _listen(self) -> None:
        with self._diagnostics.handle:
            while taken := self._diagnostics.handle.take_message(DiagnosticArray, False):
                for status in taken[0].status:
                    self._reports[status.name] += 1
                    self._heard[status.name] = {pair.key: pair.value for pair in status.values}

    def _accepted(self) -> int:
        return min((int(seen['odometry accepted']) for seen in self._heard.values()), default=0)


@contextlib.contextmanager
def driver(command: list[str], sensors: int) -> Iterator[Driver]:
    """Start a Python command on a domain of its own and connect to it."""
    with (
        tempfile.TemporaryFile() as told,
        free_domain() as domain,
        private_context(domain) as context,
    ):
        process = subprocess.Popen([sys.executable, *command], stderr=told)
        try:
            made = Driver(process, context)
            try:
                made.connect(sensors)
                yield made
            finally:
                made.close()
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(5.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
