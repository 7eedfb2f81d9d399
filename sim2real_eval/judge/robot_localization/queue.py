# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The queue of prepared measurements, ordered by stamp as robot_localization orders it.

robot_localization keeps measurements in a binary heap that compares stamps only. The order of
measurements with equal stamps therefore depends on the history of the heap. This order decides
which measurement initialises the filter and, in an unscented filter, the result itself, so it is
reproduced.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sim_sensors.core.compilation import kernel
from sim_sensors.core.measurements import IntArray
from .configuration import FilterConfig
from .state import LAST_NS, WIDTH, Filter, N, RecordArray, record_type

MEASUREMENT = record_type(
    ('stamp_ns', 'i8'),
    ('part', 'i8'),  # number of the part that it belongs to
    # State that the first of the six values measures: 0 pose, 6 twist, 12 acceleration.
    ('first_state', 'i8'),
    ('z', 'f8', (6,)),  # measured values
    ('R', 'f8', (6, 6)),  # their covariance
    # Command in force when the measurement arrived, and its stamp.
    ('command', 'f8', (6,)),
    ('command_ns', 'i8'),
    ('accepted', 'i8'),  # whether it passed the gate; only in a history
    # Entries of the queue's heap of slots and list of unused slots at the row of the measurement.
    ('heap', 'i8'),
    ('free', 'i8'),
)
"""A prepared measurement, and a row of the queue."""

QUEUE_SIZE = record_type(('queued', 'i8'), ('unused', 'i8'))
"""Number of slots in the heap and of unused slots."""


class Queue(NamedTuple):
    """A pool of measurement slots and a heap of slot numbers."""

    slots: RecordArray  # (c,) of type MEASUREMENT
    size: Any  # record of type QUEUE_SIZE


def new_queue(capacity: int) -> Queue:
    """Return an empty queue for up to `capacity` measurements."""
    queue = Queue(np.zeros(capacity, MEASUREMENT), np.zeros(1, QUEUE_SIZE)[0])
    queue.slots['free'] = np.arange(capacity)[::-1]
    queue.size.unused = capacity
    return queue


def enlarge_queue(queue: Queue) -> Queue:
    """Return a queue of twice the capacity with the same measurements in the same order."""
    capacity, unused = len(queue.slots), int(queue.size.unused)
    larger = new_queue(2 * capacity)
    larger.slots[:capacity] = queue.slots
    # The order in which free slots are used does not matter.
    larger.slots['free'][:capacity] = np.arange(2 * capacity - 1, capacity - 1, -1)
    larger.slots['free'][capacity : capacity + unused] = queue.slots['free'][:unused]
    larger.size.queued, larger.size.unused = queue.size.queued, capacity + unused
    return larger


@kernel
def free_slot(queue: Queue) -> int:
    """Return the slot to fill before `push`, or -1 when the queue is full."""
    if queue.size.unused == 0:
        return -1
    return int(queue.slots[queue.size.unused - 1].free)


@kernel
def push(queue: Queue, slot: int) -> None:
    """Put the slot that `free_slot` returned into the heap."""
    queue.size.unused -= 1
    hole = queue.size.queued
    queue.size.queued += 1
    _rise(queue.slots, hole, slot)


@kernel
def _rise(slots: RecordArray, hole: int, slot: int) -> None:
    """Move a hole up while its parent is later than the new slot, then fill it."""
    while hole > 0:
        parent = (hole - 1) // 2
        if slots[slots[parent].heap].stamp_ns <= slots[slot].stamp_ns:
            break
        slots[hole].heap = slots[parent].heap
        hole = parent
    slots[hole].heap = slot


@kernel
def pop(queue: Queue) -> int:
    """Remove and return the first slot; it stays valid until the next `push`."""
    slots, size = queue.slots, queue.size
    first = slots[0].heap
    size.queued -= 1
    n = size.queued
    last = slots[n].heap
    if n > 0:
        # As in the C++ standard library, the hole sinks to a leaf along the earlier child (the
        # right one if both are equal). Then the last slot fills it and rises.
        hole = 0
        while 2 * hole + 2 < n:
            child = 2 * hole + 2
            if slots[slots[child].heap].stamp_ns > slots[slots[child - 1].heap].stamp_ns:
                child -= 1
            slots[hole].heap = slots[child].heap
            hole = child
        if 2 * hole + 1 < n:
            slots[hole].heap = slots[2 * hole + 1].heap
            hole = 2 * hole + 1
        _rise(slots, hole, last)
    slots[size.unused].free = first
    size.unused += 1
    return int(first)


@kernel
def first_stamp(queue: Queue) -> int:
    """Return the earliest stamp of a queue that is not empty, ns."""
    return int(queue.slots[queue.slots[0].heap].stamp_ns)


# Recent states and measurements, to go back to when a late measurement arrives.
#
# This is `smooth_lagged_data`. A state is kept after the last measurement of each stamp. Going
# back to a state before the late stamp and processing all later measurements again, in the order
# of their stamps, gives the result that timely measurements would have given.

STATE = record_type(('stamp_ns', 'i8'), ('x', 'f8', (WIDTH,)), ('P', 'f8', (WIDTH, WIDTH)))
"""State after a measurement, with its last measurement time."""

_STATE_HEAD, _STATES, _HEAD, _MEASUREMENTS = range(4)


class History(NamedTuple):
    """Two ring buffers of the same capacity: states and measurements."""

    sizes: IntArray  # (4,) First entry and number of entries of the states and the measurements
    states: RecordArray  # (c,) of type STATE
    measurements: RecordArray  # (c,) of type MEASUREMENT


def history_ns(config: FilterConfig) -> int:
    """Return how far back late measurements are inserted, ns; -1 if they are not."""
    return -1 if config.history_length is None else round(config.history_length * 1e9)


def new_history(capacity: int) -> History:
    """Return an empty history for up to `capacity` measurements."""
    return History(
        sizes=np.zeros(4, dtype=np.int64),
        states=np.zeros(capacity, STATE),
        measurements=np.zeros(capacity, MEASUREMENT),
    )


def count_measurements(history: History) -> int:
    """Return the number of measurements in the history."""
    return int(history.sizes[_MEASUREMENTS])


def enlarge_history(history: History) -> History:
    """Return a history of twice the capacity with the same entries."""
    capacity = len(history.states)
    larger = new_history(2 * capacity)
    for head, name in ((_STATE_HEAD, 'states'), (_HEAD, 'measurements')):
        rows = (history.sizes[head] + np.arange(history.sizes[head + 1])) % capacity
        getattr(larger, name)[: len(rows)] = getattr(history, name)[rows]
        larger.sizes[head + 1] = len(rows)
    return larger


@kernel
def save_state(history: History, flt: Filter, queue: Queue, slot: int, accepted: bool) -> bool:
    """Keep a measurement that was just processed, and the state after the last of its stamp.

    Returns False, without keeping anything, when the history is full.
    """
    sizes = history.sizes
    if sizes[_MEASUREMENTS] == len(history.measurements):
        return False
    row = (sizes[_HEAD] + sizes[_MEASUREMENTS]) % len(history.measurements)
    history.measurements[row] = queue.slots[slot]
    history.measurements[row].accepted = 1 if accepted else 0
    sizes[_MEASUREMENTS] += 1
    if queue.size.queued > 0 and first_stamp(queue) == flt.times[LAST_NS]:
        return True
    # There are never more states than measurements.
    state = history.states[(sizes[_STATE_HEAD] + sizes[_STATES]) % len(history.states)]
    state.stamp_ns = flt.times[LAST_NS]
    for i in range(N):
        state.x[i] = flt.x[i]
        for j in range(N):
            state.P[i, j] = flt.P[i, j]
    sizes[_STATES] += 1
    return True


@kernel
def rewind(history: History, flt: Filter, queue: Queue, time_ns: int, counts: IntArray) -> int:
    """Go back to the newest state not newer than `time_ns`, and queue later measurements again.

    When all states are newer, go back to the oldest one. As in robot_localization, the
    measurements of its own stamp are then queued again although the state contains them.
    Measurements that are queued again are subtracted from the numbers of fused and rejected
    measurements (columns 3 and 4 of `counts`). Returns the number of measurements queued again,
    or -1 when the queue is too small.
    """
    sizes = history.sizes
    row = -1
    while sizes[_STATES] > 0:
        row = (sizes[_STATE_HEAD] + sizes[_STATES] - 1) % len(history.states)
        if history.states[row].stamp_ns <= time_ns:
            break
        sizes[_STATES] -= 1
    if row < 0:
        return 0
    state = history.states[row]
    flt.times[LAST_NS] = state.stamp_ns
    for i in range(N):
        flt.x[i] = state.x[i]
        for j in range(N):
            flt.P[i, j] = state.P[i, j]
    restored = 0
    while sizes[_MEASUREMENTS] > 0:
        row = (sizes[_HEAD] + sizes[_MEASUREMENTS] - 1) % len(history.measurements)
        measurement = history.measurements[row]
        if measurement.stamp_ns <= time_ns:
            break
        sizes[_MEASUREMENTS] -= 1
        if measurement.stamp_ns < flt.times[LAST_NS]:
            continue
        slot = free_slot(queue)
        if slot < 0:
            return -1
        counts[measurement.part, 3 if measurement.accepted == 1 else 4] -= 1
        heap, free = queue.slots[slot].heap, queue.slots[slot].free
        queue.slots[slot] = history.measurements[row]
        queue.slots[slot].heap, queue.slots[slot].free = heap, free
        push(queue, slot)
        restored += 1
    return restored


@kernel
def expire(history: History, before_ns: int) -> None:
    """Drop entries older than `before_ns`."""
    sizes, capacity = history.sizes, len(history.states)
    while sizes[_STATES] > 0 and history.states[sizes[_STATE_HEAD]].stamp_ns < before_ns:
        sizes[_STATE_HEAD] = (sizes[_STATE_HEAD] + 1) % capacity
        sizes[_STATES] -= 1
    while sizes[_MEASUREMENTS] > 0 and history.measurements[sizes[_HEAD]].stamp_ns < before_ns:
        sizes[_HEAD] = (sizes[_HEAD] + 1) % capacity
        sizes[_MEASUREMENTS] -= 1
