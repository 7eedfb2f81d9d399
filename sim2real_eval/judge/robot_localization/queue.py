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

from sim_sensors.core.compilation import kernel
from sim_sensors.core.measurements import FloatArray, IntArray
from .configuration import FilterConfig
from .matrices import WIDTH
from .state import LAST_NS, Filter, N

MEASUREMENT_FIELDS = ('stamp_ns', 'part', 'first_state', 'z', 'R', 'command', 'command_ns')
"""Fields of a queue, and of a history, that make up a measurement."""


class Queue(NamedTuple):
    """A pool of measurement slots and a heap of slot numbers."""

    # (c,) Slots in the heap; slots that are unused.
    heap: IntArray
    free: IntArray
    size: IntArray  # (2,) Entries of `heap` and of `free`
    # (c,) Stamp of each slot and the part of the configuration that it belongs to.
    stamp_ns: IntArray
    part: IntArray
    # (c,) State that the first of the six values measures: 0 pose, 6 twist, 12 acceleration.
    first_state: IntArray
    z: FloatArray  # (c, 6) Measured values
    R: FloatArray  # (c, 6, 6) Their covariance
    # (c, 6) Command in force when the measurement arrived, and (c,) its stamp.
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


# States and measurements of the last seconds, to go back to when a late one comes, compiled.
#
# This is `smooth_lagged_data`. A state is kept after the last measurement of each stamp, so that
# going back to before a stamp and taking all measurements since then once more, in the order of
# their stamps, gives what would have come out had none been late.

_STATE_HEAD, _STATES, _HEAD, _MEASUREMENTS = range(4)
_STATE_FIELDS = ('state_ns', 'x', 'P')


class History(NamedTuple):
    """Two rings of the same capacity: states, and measurements as they stood in the queue."""

    sizes: IntArray  # (4,) First entry and number of entries of the states and of the measurements
    # (c,) Last measurement time of each state; (c, 16) and (c, 16, 16) the state.
    state_ns: IntArray
    x: FloatArray
    P: FloatArray
    # (c,) Fields of the measurements as in `Queue`; so are z, R, command and command_ns.
    stamp_ns: IntArray
    part: IntArray
    first_state: IntArray
    z: FloatArray
    R: FloatArray
    command: FloatArray
    command_ns: IntArray
    accepted: IntArray  # (c,) Whether the measurement passed the gate


def history_ns(config: FilterConfig) -> int:
    """Return how far back late measurements are put in their place, ns; -1 for not at all."""
    return -1 if config.history_length is None else round(config.history_length * 1e9)


def new_history(capacity: int) -> History:
    """Return an empty history of up to `capacity` measurements; 0 keeps none."""
    return History(
        sizes=np.zeros(4, dtype=np.int64),
        state_ns=np.zeros(capacity, dtype=np.int64),
        x=np.zeros((capacity, WIDTH)),
        P=np.zeros((capacity, WIDTH, WIDTH)),
        accepted=np.zeros(capacity, dtype=np.int64),
        **measurement_rows(capacity),
    )


def measurements(history: History) -> int:
    """Return how many measurements are kept."""
    return int(history.sizes[_MEASUREMENTS])


def larger_history(history: History) -> History:
    """Return a history of twice the capacity with the same entries."""
    capacity = len(history.state_ns)
    larger = new_history(2 * capacity)
    kept = (*MEASUREMENT_FIELDS, 'accepted')
    for head, names in ((_STATE_HEAD, _STATE_FIELDS), (_HEAD, kept)):
        rows = (history.sizes[head] + np.arange(history.sizes[head + 1])) % capacity
        for name in names:
            getattr(larger, name)[: len(rows)] = getattr(history, name)[rows]
        larger.sizes[head + 1] = len(rows)
    return larger


@kernel
def _at(history: History, head: int, number: int) -> int:
    """Return the row of an entry, counted from the oldest."""
    return int((history.sizes[head] + number) % len(history.state_ns))


@kernel
def save_state(history: History, flt: Filter, queue: Queue, slot: int, accepted: bool) -> bool:
    """Keep a measurement that was just processed, and the state when no other has its stamp.

    Returns False when the history is full; nothing is kept then.
    """
    sizes = history.sizes
    if sizes[_MEASUREMENTS] == len(history.stamp_ns):
        return False
    row = _at(history, _HEAD, sizes[_MEASUREMENTS])
    copy_measurement(queue, slot, history, row)
    history.accepted[row] = 1 if accepted else 0
    sizes[_MEASUREMENTS] += 1
    if queue.size[0] > 0 and queue.stamp_ns[queue.heap[0]] == flt.times[LAST_NS]:
        return True
    # There are never more states than measurements.
    row = _at(history, _STATE_HEAD, sizes[_STATES])
    history.state_ns[row] = flt.times[LAST_NS]
    for i in range(N):
        history.x[row, i] = flt.x[i]
        for j in range(N):
            history.P[row, i, j] = flt.P[i, j]
    sizes[_STATES] += 1
    return True


@kernel
def rewind(
    history: History, flt: Filter, queue: Queue, time_ns: int, fused: IntArray, rejected: IntArray
) -> int:
    """Go back to the newest state that is not newer than `time_ns`; queue what came after it.

    When all states are newer, go back to the oldest one; the measurements of its own stamp are
    then queued again too, although they are in it, as robot_localization does. What is queued
    again is taken off the counts per part of what was fused and rejected. Returns how many
    measurements were queued again; -1 when the queue is too small for them.
    """
    sizes = history.sizes
    row = -1
    while sizes[_STATES] > 0:
        row = _at(history, _STATE_HEAD, sizes[_STATES] - 1)
        if history.state_ns[row] <= time_ns:
            break
        sizes[_STATES] -= 1
    if row < 0:
        return 0
    restored = 0
    flt.times[LAST_NS] = history.state_ns[row]
    for i in range(N):
        flt.x[i] = history.x[row, i]
        for j in range(N):
            flt.P[i, j] = history.P[row, i, j]
    while sizes[_MEASUREMENTS] > 0:
        row = _at(history, _HEAD, sizes[_MEASUREMENTS] - 1)
        if history.stamp_ns[row] <= time_ns:
            break
        sizes[_MEASUREMENTS] -= 1
        if history.stamp_ns[row] < flt.times[LAST_NS]:
            continue
        slot = free_slot(queue)
        if slot < 0:
            return -1
        part = history.part[row]
        if history.accepted[row] == 1:
            fused[part] -= 1
        else:
            rejected[part] -= 1
        copy_measurement(history, row, queue, slot)
        push(queue, slot)
        restored += 1
    return restored


@kernel
def expire(history: History, before_ns: int) -> None:
    """Drop what is older than `before_ns`."""
    sizes = history.sizes
    while sizes[_STATES] > 0 and history.state_ns[_at(history, _STATE_HEAD, 0)] < before_ns:
        sizes[_STATE_HEAD] = _at(history, _STATE_HEAD, 1)
        sizes[_STATES] -= 1
    while sizes[_MEASUREMENTS] > 0 and history.stamp_ns[_at(history, _HEAD, 0)] < before_ns:
        sizes[_HEAD] = _at(history, _HEAD, 1)
        sizes[_MEASUREMENTS] -= 1
