# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Delivery of the messages of a sensor: latency, jitter and drop-outs."""

from __future__ import annotations

import dataclasses
import math
from typing import TypeVar

import numpy as np

from sim_sensors.core.compilation import row_loop
from sim_sensors.core.measurements import FloatArray, IntArray, MessageArray
from sim_sensors.core.parameters import Parameters, non_negative
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import LONGEST_DELAY, share

M = TypeVar('M', bound=MessageArray)

_NEVER = int(np.iinfo(np.int64).min)


@dataclasses.dataclass(frozen=True)
class Delivery(Parameters):
    """Jitter and drop-outs of a sensor's messages, on top of its constant latency.

    Message k arrives, or is lost, as follows::

        arrival[k] = max(stamp[k] + latency + jitter Exp(1), arrival of the previous message)

        P(lost at t + dt | lost at t) = p + (1 - p) exp(-dt / c)        p = drop_out
        P(lost at t + dt | not lost)  = p - p exp(-dt / c)              c = drop_out_length (1 - p)

    Messages never overtake each other. Losses are a two-state Markov process in continuous time,
    stationary from the first message and exactly discretised. Share and length of drop-outs are
    therefore the same at every rate. If the length is 0, each message is lost independently.

    Stamps and values do not depend on the delivery. A lost message was still measured, so the
    noise of the next one is the same with and without losses.

    References
    ----------
    [Gilbert1960], in continuous time; exponential waiting times as in a queue.
    """

    jitter: float = non_negative(
        0.0,
        's',
        'Mean of the exponentially distributed delay added to the latency; messages keep '
        'their order.',
        maximum=LONGEST_DELAY,
    )
    drop_out: float = share(0.0, 'Share of the messages that never arrive.')
    drop_out_length: float = non_negative(
        0.0, 's', 'Mean length of a drop-out; 0: each message is lost independently.'
    )

    def start(self, seed: int, run: str, sensor: str, latency: float = 0.0) -> Channel:
        """Return the channel of one sensor; see `core.seeding.stream` for the labels."""
        return Channel(
            self,
            latency,
            stream(seed, run, sensor, 'jitter'),
            stream(seed, run, sensor, 'drop_out'),
        )


class Channel:
    """Channel that carries the messages of one sensor, with its state.

    Parameters
    ----------
    delivery : Delivery
        Jitter and drop-outs.
    latency : float
        Constant delay, s, >= 0.
    jitter_rng, drop_out_rng : numpy.random.Generator
        One stream each, so that a change of one effect does not change the other.
    """

    def __init__(
        self,
        delivery: Delivery,
        latency: float,
        jitter_rng: np.random.Generator,
        drop_out_rng: np.random.Generator,
    ) -> None:
        self._delivery = delivery
        self._latency_ns = round(latency * 1e9)
        self._jitter_rng, self._drop_out_rng = jitter_rng, drop_out_rng
        self._stamp_ns = _NEVER
        self._arrival_ns = _NEVER
        self._is_lost = False

    def send(self, stamp_ns: IntArray) -> tuple[IntArray, IntArray]:
        """Send the next messages; cutting them into several calls changes no bit.

        Parameters
        ----------
        stamp_ns : (n,) int64
            Stamps of the messages, increasing, later than those sent before.

        Returns
        -------
        arrived : (m,) int64
            Indices of the messages that arrive, in order.
        arrival_ns : (m,) int64
            Times of arrival, never decreasing.
        """
        arrival = stamp_ns + np.int64(self._latency_ns)
        if self._delivery.jitter > 0.0:
            delay = self._jitter_rng.standard_exponential(len(stamp_ns)) * self._delivery.jitter
            arrival = arrival + np.rint(delay * 1e9).astype(np.int64)
        if self._delivery.drop_out > 0.0:
            arrived = np.flatnonzero(~self._draw_losses(stamp_ns))
        else:
            arrived = np.arange(len(stamp_ns))
        # A lost message does not delay the messages after it.
        arrival = np.maximum(np.maximum.accumulate(arrival[arrived]), np.int64(self._arrival_ns))
        if len(arrival):
            self._arrival_ns = int(arrival[-1])
        return arrived, arrival

    def deliver(self, messages: M) -> M:
        """Return those of the next messages that arrive, with their times of arrival."""
        arrived, arrival_ns = self.send(messages.stamp_ns)
        return dataclasses.replace(messages.take(arrived), arrival_ns=arrival_ns)

    def _draw_losses(self, stamp_ns: IntArray) -> np.typing.NDArray[np.bool_]:
        uniform = self._drop_out_rng.random(len(stamp_ns))
        before = np.empty_like(stamp_ns)
        if len(stamp_ns):
            before[0] = self._stamp_ns
            before[1:] = stamp_ns[:-1]
        # The first message follows the stationary distribution, as if an infinite time had passed.
        elapsed = np.where(before == _NEVER, np.inf, (stamp_ns - before) * 1e-9)
        share = self._delivery.drop_out
        time_constant = self._delivery.drop_out_length * (1.0 - share)
        lost = _lost_messages(elapsed, uniform, share, time_constant, self._is_lost)
        if len(lost):
            self._stamp_ns, self._is_lost = int(stamp_ns[-1]), bool(lost[-1])
        return lost


@row_loop
def _lost_messages(
    elapsed: FloatArray, uniform: FloatArray, share: float, time_constant: float, was_lost: bool
) -> np.typing.NDArray[np.bool_]:
    out = np.empty(len(elapsed), np.bool_)
    for k in range(len(elapsed)):
        memory = math.exp(-elapsed[k] / time_constant) if time_constant > 0.0 else 0.0
        probability = share * (1.0 - memory) + (memory if was_lost else 0.0)
        was_lost = uniform[k] < probability
        out[k] = was_lost
    return out
