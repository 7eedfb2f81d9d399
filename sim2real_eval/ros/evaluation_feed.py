# SPDX-License-Identifier: Apache-2.0
"""What arrives at the judge of a twin: measured as the run goes on, and recorded."""

from __future__ import annotations

import heapq

from sim2real_eval.judge.embedded import prepare
from sim2real_eval.judge.routing import route
from sim2real_eval.judge_setup import JudgeSetup
from sim2real_eval.ros.evaluation_bench import SensorBench
from sim2real_eval.ros.lockstep import PendingMessage
from sim2real_eval.ros.lockstep.delivery import last_arrival_ns
from sim_sensors.measurements import MessageArray

__all__ = ['SensorFeed']


class SensorFeed:
    """Deliveries of a twin, in the order of a batch run over the same messages.

    Parameters
    ----------
    bench : SensorBench
        Measures.
    setup : JudgeSetup
        Decides which topics are heard, as in a batch run.

    Raises
    ------
    JudgeError
        When the recording lacks what the configuration needs.
    """

    def __init__(self, bench: SensorBench, setup: JudgeSetup) -> None:
        self._bench = bench
        self._setup = setup
        self._waiting: list[tuple[int, int, int, str, MessageArray, int]] = []
        self._last_ns: int | None = None
        recording = bench.recording()
        routing = route(recording, setup.filter, setup.navsat, setup.case)
        # Of messages that arrive together those of the earlier taker come first.
        self._takers: dict[str, list[tuple[int, str]]] = {}
        for rank, (taker, topic) in enumerate(routing.takers):
            self._takers.setdefault(topic, []).append((rank, taker))
        self._topics = {role: recording.roles[role] for role in bench.roles}
        for topic, array in recording.messages.items():
            self._take(topic, array, 0)
        self._count = dict.fromkeys(bench.roles, 0)

    def until(self, now_ns: int) -> list[PendingMessage]:
        """Return what arrives up to now and was not returned before.

        Raises
        ------
        Sim2RealError
            When a sensor cannot measure the truth.
        """
        self._bench.measure(now_ns)
        for role, array in self._bench.news().items():
            self._take(self._topics[role], array, self._count[role])
            self._count[role] += len(array)
        due = []
        while self._waiting and self._waiting[0][0] <= now_ns:
            arrival, _, _, taker, array, index = heapq.heappop(self._waiting)
            due.append(PendingMessage(arrival, taker, array.take([index])))
        return due

    @property
    def last_ns(self) -> int | None:
        """Arrival of the last message that counts, once the sensors have measured everything."""
        if self._last_ns is None and self._bench.finished:
            setup = self._setup
            timing = prepare(
                self._bench.recording(), setup.filter, setup.navsat, setup.case
            ).timing
            self._last_ns = last_arrival_ns(timing, setup)
        return self._last_ns

    def _take(self, topic: str, array: MessageArray, first: int) -> None:
        for rank, taker in self._takers.get(topic, ()):
            for index, arrival in enumerate(array.arrival_ns.tolist()):
                entry = (arrival, rank, first + index, taker, array, index)
                heapq.heappush(self._waiting, entry)
