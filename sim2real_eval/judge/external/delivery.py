# SPDX-License-Identifier: Apache-2.0
"""What arrives at a judge: messages one by one, in the order of delivery of the batch judge."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from sim2real_eval.judge.robot_localization.embedded import prepare
from sim2real_eval.judge.robot_localization.timers import Timing
from sim2real_eval.judge.robot_localization.topics import route
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.measurements import MessageArray

__all__ = ['Feed', 'PendingMessage', 'RecordedFeed', 'last_arrival_ns']


@dataclasses.dataclass(frozen=True, eq=False)
class PendingMessage:
    """One message for one taker.

    Attributes
    ----------
    arrival_ns : int
    taker : str
        Input of the filter (`imu0`), or `fix`, `heading`, `command`.
    array : MessageArray
        Of one message.
    """

    arrival_ns: int
    taker: str
    array: MessageArray


class Feed(Protocol):
    """What arrives at one side; it may be made while the run goes on."""

    def until(self, now_ns: int) -> Sequence[PendingMessage]:
        """Return what arrives up to a time and was not returned before.

        In order of arrival; what arrives together in the order of `Routing.takers`. Everything
        that arrives by then must be in it, so this waits where it has to.
        """
        ...

    @property
    def last_ns(self) -> int | None:
        """Arrival of the last message of all, None while more may come."""
        ...


def last_arrival_ns(timing: Timing, setup: JudgeSetup) -> int:
    """Return the arrival of the last message that counts; a batch run ends `run_on_ns` later."""
    return timing.end - setup.case.clock.run_on_ns


class RecordedFeed:
    """A feed of everything that a recording holds.

    Parameters
    ----------
    recording : Recording
    setup : JudgeSetup
        Decides which topics are heard, as in a batch run.

    Raises
    ------
    JudgeError
        When the recording lacks what the configuration needs.
    """

    def __init__(self, recording: Recording, setup: JudgeSetup) -> None:
        case = setup.case
        timing = prepare(recording, setup.filter, setup.navsat, case).timing
        self.start_ns = timing.start
        self._last_ns = last_arrival_ns(timing, setup)
        takers = route(recording, setup.filter, setup.navsat, case).takers
        self._arrays = [(taker, recording.messages[topic]) for taker, topic in takers]
        arrival = np.concatenate([array.arrival_ns for _, array in self._arrays])
        taker = [np.full(len(array), k) for k, (_, array) in enumerate(self._arrays)]
        row = [np.arange(len(array)) for _, array in self._arrays]
        order = np.argsort(arrival, kind='stable')
        self._arrival = arrival[order]
        self._taker, self._row = np.concatenate(taker)[order], np.concatenate(row)[order]
        self._given = 0

    def until(self, now_ns: int) -> list[PendingMessage]:
        """Return what arrives up to a time and was not returned before."""
        first = self._given
        self._given = max(int(np.searchsorted(self._arrival, now_ns, side='right')), first)
        return [self._delivery(k) for k in range(first, self._given)]

    @property
    def last_ns(self) -> int:
        """Arrival of the last message that counts."""
        return self._last_ns

    def _delivery(self, k: int) -> PendingMessage:
        taker, array = self._arrays[self._taker[k]]
        return PendingMessage(int(self._arrival[k]), taker, array.take([int(self._row[k])]))
