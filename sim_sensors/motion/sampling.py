# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Sample times of sensors: a grid of integer stamps, and the detection of stamps ahead of time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim_sensors.core.blocks import BLOCK, seconds
from sim_sensors.core.errors import MotionError
from sim_sensors.core.measurements import FloatArray, IntArray

if TYPE_CHECKING:
    from .trajectory import Motion


MAX_SAMPLES = 10**8
"""Greatest number of samples of one sensor in one run: a day at 1 kHz."""


@dataclasses.dataclass(frozen=True)
class SampleGrid:
    """Stamps of a sensor: the k-th is `start_ns + round(k * 1e9 / rate)`, so no error accumulates.

    The rate is in Hz, > 0.
    """

    start_ns: int
    rate: float

    def stamps(self, first: int, last: int) -> IntArray:
        """Return the stamps with index `first <= k < last`, int64 ns."""
        offsets = np.rint(np.arange(first, last) * 1e9 / self.rate)
        return np.asarray(offsets.astype(np.int64) + np.int64(self.start_ns))

    def count(self, end_ns: int) -> int:
        """Return the number of stamps up to and including `end_ns`."""
        if end_ns < self.start_ns:
            return 0
        guess = int((end_ns - self.start_ns) * self.rate / 1e9)
        near = self.stamps(max(guess - 1, 0), guess + 3)
        return max(guess - 1, 0) + int((near <= end_ns).sum())


def sample_motion(
    motion: Motion, rate: float, *, start_ns: int | None, origin_ns: int
) -> tuple[IntArray, FloatArray]:
    """Return the stamps of a sensor over the whole of `motion`, and their motion times, s.

    `rate` is the rate of the sensor, Hz, and `start_ns` its first stamp. By default that is the
    first whole nanosecond of the motion. `origin_ns` is the stamp of motion time 0.

    Raises
    ------
    MotionError
        When `start_ns` is outside the motion.
    """
    blocks = sample_blocks(motion, rate, start_ns=start_ns, origin_ns=origin_ns, size=MAX_SAMPLES)
    return next(blocks)


def sample_blocks(
    motion: Motion, rate: float, *, start_ns: int | None, origin_ns: int, size: int = BLOCK
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield the result of `sample_motion` in blocks of up to `size` samples."""
    # Half a nanosecond of tolerance: float seconds of an exact stamp may lie an ulp past the end.
    earliest = origin_ns + int(np.ceil(motion.start * 1e9 - 0.5))
    latest = origin_ns + int(np.floor(motion.end * 1e9 + 0.5))
    first = earliest if start_ns is None else start_ns
    if not earliest <= first <= latest:
        raise MotionError(
            f'start stamp {first} ns is outside the motion; must be in [{earliest}, {latest}] ns'
        )
    grid = SampleGrid(first, rate)
    count = grid.count(latest)
    if count > MAX_SAMPLES:
        raise MotionError(
            f'{count:.3g} samples at {rate:g} Hz are not allowed; must be at most '
            f'{MAX_SAMPLES:g}: choose a shorter time or a lower rate'
        )
    for start in range(0, count, size):
        stamp_ns = grid.stamps(start, min(start + size, count))
        yield stamp_ns, np.clip(seconds(stamp_ns, origin_ns), motion.start, motion.end)


def intervals(times: FloatArray, last: float | None, first_interval: float) -> FloatArray:
    """Return the time between each sample and its predecessor, `(n,)` s.

    `last` is the time of the sample before `times[0]`. If it is None, `times[0]` is the first
    sample of all and its interval is `first_interval`.

    Raises MotionError if a time does not come after its predecessor.
    """
    before = np.empty_like(times)
    before[1:] = times[:-1]
    if len(times) and last is not None:
        before[0] = last
    steps: FloatArray = times - before
    if len(times) and last is None:
        steps[0] = first_interval
    backward = ~(steps > 0.0)
    if last is None and len(times):
        backward[0] = False
    if backward.any():
        k = int(np.argmax(backward))
        raise MotionError(
            f'truth at {float(times[k])} s does not follow the sample at {float(before[k])} s; '
            'times must increase'
        )
    return steps


_COST = 3


def ahead_of_time(stamps: ArrayLike) -> NDArray[np.bool_]:
    """Return a mask `(n,)` of single stamps that are later than the next three or more.

    A filter that drops messages older than their predecessors would lose at least the three next
    messages to such a stamp, or all of them if it lies far in the future. The stamps before and
    after it must be in order without it. A clock that restarts, and two such stamps in a row, are
    therefore not marked. Nor is a stamp that is early by up to two messages: the late messages are
    then dropped, as in ekf_node.
    """
    t = np.asarray(stamps)
    ahead = np.zeros(len(t), dtype=np.bool_)
    last = len(t) - _COST
    if last < 1:
        return ahead
    costs = np.all([t[:last] > t[k : last + k] for k in range(1, _COST + 1)], axis=0)
    alone = np.concatenate([[True], t[: last - 1] <= t[2 : last + 1]])
    ahead[:last] = costs & alone
    return ahead
