# SPDX-License-Identifier: Apache-2.0
"""The queue of prepared measurements, ordered by stamp as robot_localization orders it.

robot_localization keeps measurements in a binary heap that compares stamps only. Measurements
with equal stamps therefore leave it in an order that depends on the heap's history, and that
order is part of the behaviour to reproduce: it decides which measurement initialises the filter
and, in an unscented filter, the result itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sim_sensors.compilation import kernel
from sim_sensors.measurements import FloatArray, IntArray

__all__ = [
    'MEASUREMENT_FIELDS', 'Queue', 'copy_measurement', 'free_slot', 'grown', 'measurement_rows',
    'new_queue', 'pop', 'push',
]  # fmt: skip

MEASUREMENT_FIELDS = ('stamp_ns', 'part', 'first_state', 'z', 'R', 'command', 'command_ns')
"""Fields of a queue, and of a history, that make up a measurement."""


class Queue(NamedTuple):
    """A pool of measurement slots and a heap of slot numbers.

    Attributes
    ----------
    heap, free : (c,) int64
        Slots in the heap; slots that are unused.
    size : (2,) int64
        Entries of `heap` and of `free`.
    stamp_ns, part : (c,) int64
        Stamp of each slot and the part of the configuration that it belongs to.
    first_state : (c,) int64
        State that the first of the six values measures: 0 pose, 6 twist, 12 acceleration.
    z : (c, 6) float
        Measured values; R : (c, 6, 6) float, their covariance.
    command : (c, 6) float
        Command in force when the measurement arrived; command_ns : (c,) int64, its stamp.
    """

    heap: IntArray
    free: IntArray
    size: IntArray
    stamp_ns: IntArray
    part: IntArray
    first_state: IntArray
    z: FloatArray
    R: FloatArray
    command: FloatArray
    command_ns: IntArray


def new_queue(capacity: int) -> Queue:
    """Return an empty queue that holds up to `capacity` measurements."""
    return Queue(
        heap=np.zeros(capacity, dtype=np.int64),
        free=np.arange(capacity, dtype=np.int64)[::-1].copy(),
        size=np.array([0, capacity], dtype=np.int64),
        **measurement_rows(capacity),
    )


def measurement_rows(capacity: int) -> dict[str, Any]:
    """Return room for a number of measurements: the arrays of MEASUREMENT_FIELDS."""
    shapes = {'z': (capacity, 6), 'R': (capacity, 6, 6), 'command': (capacity, 6)}
    return {
        name: np.zeros(shapes[name]) if name in shapes else np.zeros(capacity, dtype=np.int64)
        for name in MEASUREMENT_FIELDS
    }


@kernel
def copy_measurement(source: Any, row: int, target: Any, place: int) -> None:
    """Copy a measurement from a row of a queue or history to a row of another."""
    target.stamp_ns[place] = source.stamp_ns[row]
    target.part[place] = source.part[row]
    target.first_state[place] = source.first_state[row]
    target.command_ns[place] = source.command_ns[row]
    for i in range(6):
        target.z[place, i] = source.z[row, i]
        target.command[place, i] = source.command[row, i]
        for j in range(6):
            target.R[place, i, j] = source.R[row, i, j]


def grown(queue: Queue) -> Queue:
    """Return a queue of twice the capacity that holds the same measurements in the same order."""
    capacity = len(queue.heap)
    larger = new_queue(2 * capacity)
    for name in ('heap', *MEASUREMENT_FIELDS):
        getattr(larger, name)[:capacity] = getattr(queue, name)
    used = int(queue.size[1])
    # The new slots are taken after those that were free before, as the numbers do not matter.
    larger.free[:capacity] = np.arange(2 * capacity - 1, capacity - 1, -1)
    larger.free[capacity : capacity + used] = queue.free[:used]
    larger.size[:] = queue.size[0], capacity + used
    return larger


@kernel
def free_slot(queue: Queue) -> int:
    """Return a slot to fill before `push`, or -1 when the queue is full."""
    if queue.size[1] == 0:
        return -1
    return int(queue.free[queue.size[1] - 1])


@kernel
def push(queue: Queue, slot: int) -> None:
    """Put the slot that `free_slot` returned into the heap."""
    queue.size[1] -= 1
    hole = queue.size[0]
    queue.size[0] += 1
    _rise(queue, hole, slot)


@kernel
def _rise(queue: Queue, hole: int, slot: int) -> None:
    """Move a hole up while the parent is later than the new slot, then fill it."""
    heap, stamp = queue.heap, queue.stamp_ns
    while hole > 0:
        parent = (hole - 1) // 2
        if stamp[heap[parent]] <= stamp[slot]:
            break
        heap[hole] = heap[parent]
        hole = parent
    heap[hole] = slot


@kernel
def pop(queue: Queue) -> int:
    """Take the first slot out; it stays valid until the next `push`."""
    heap, stamp = queue.heap, queue.stamp_ns
    first = heap[0]
    queue.size[0] -= 1
    n = queue.size[0]
    last = heap[n]
    if n > 0:
        # The hole sinks to a leaf along the earlier child (the right one of two equal ones); the
        # last slot then fills it and rises, as the C++ standard library does it.
        hole = 0
        while 2 * hole + 2 < n:
            child = 2 * hole + 2
            if stamp[heap[child]] > stamp[heap[child - 1]]:
                child -= 1
            heap[hole] = heap[child]
            hole = child
        if 2 * hole + 1 < n:
            heap[hole] = heap[2 * hole + 1]
            hole = 2 * hole + 1
        _rise(queue, hole, last)
    queue.free[queue.size[1]] = first
    queue.size[1] += 1
    return int(first)
