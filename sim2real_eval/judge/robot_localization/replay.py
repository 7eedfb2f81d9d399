# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Event loop of the nodes, compiled: deliveries, filter ticks and navsat ticks in their order.

Inside one clock step robot_localization delivers the messages that have arrived, ticks the filter
when its timer is due, ticks navsat_transform when its timer is due, and delivers the odometry/gps
that it published. Only clock steps with an event are visited.
"""

from __future__ import annotations

import math

import numpy as np

from sim_sensors.core.compilation import kernel, section
from sim_sensors.core.measurements import FloatArray, IntArray
from .filter import advance, process, select_states
from .navsat import (
    Navsat,
    NavsatState,
    locate,
    publishes_filtered_gps,
    receive_fix,
    receive_heading,
    receive_odometry,
    tick,
)
from .parts import COMMAND_PART, FIX_PART, HEADING_PART, Memory, Messages
from .preparation import prepare
from .queue import History, Queue, expire, first_stamp, free_slot, pop, push, rewind, save_state
from .state import (
    CONTROL_NS,
    FLAT,
    INITIALISED,
    LAST_NS,
    NO_STAMP,
    VROLL,
    WIDTH,
    Dynamics,
    Filter,
    N,
    Output,
    RecordArray,
    Timing,
    next_due,
    publish_filtered_gps,
    publish_gps,
    publish_odometry,
    read_gps,
    record_type,
)

SCRATCH = record_type(
    # Measured states of one correction, their values and covariance.
    ('states', 'i8', (N,)),
    ('z', 'f8', (N,)),
    ('R', 'f8', (WIDTH, WIDTH)),
    # Position and covariance of one odometry/gps.
    ('position', 'f8', (3,)),
    ('covariance', 'f8', (6, 6)),
    # Values and covariance of one message to the filter.
    ('values', 'f8', (7,)),
    ('value_covariance', 'f8', (6, 6)),
    # Progress of the run: number of delivered odometry/gps, and which half is next, the
    # pose or the twist; stamp of the last filtered odometry; next time of filter and of
    # navsat_transform.
    ('progress', 'i8', (5,)),
)
"""Memory and scratch space of the event loop."""

TOO_SMALL = NO_STAMP - 1
"""Value that `filter_tick` returns when history or queue are too small; the state is invalid."""

_DONE, _QUEUE_FULL = range(2)
_MESSAGES, _FILTER, _NAVSAT, _END = range(4)
_NEVER = 2**62


def new_scratch(timing: Timing) -> np.record:
    """Return the record of type SCRATCH at the start of a run."""
    due = next_due(timing.filter_origin, timing.filter_period, timing.filter_origin)
    navsat_due = _NEVER
    if timing.navsat_period > 0:
        navsat_due = timing.navsat_origin + timing.navsat_period
    scratch: np.record = np.zeros(1, SCRATCH)[0]
    scratch.progress[:] = 0, 0, NO_STAMP, due, navsat_due
    return scratch


@kernel
def _copy_message(
    all_values: FloatArray, i: int, covariances: FloatArray, row: int, scratch: np.record
) -> None:
    """Copy the values of message i and the covariance `row` to the scratch space."""
    for j in range(7):
        scratch.values[j] = all_values[i, j]
    for j in range(6):
        for k in range(6):
            scratch.value_covariance[j, k] = covariances[row, j, k]


@kernel
def receive_command(node: np.record, flt: Filter, stamp_ns: int, command: FloatArray) -> None:
    """Receive a velocity command, vx vy vz vroll vpitch vyaw, which acts from its stamp."""
    node.command_ns = flt.times[CONTROL_NS] = stamp_ns
    for i in range(6):
        node.command[i] = flt.command[i] = command[i]


@section
def deliver(
    parts: RecordArray, memory: Memory, flt: Filter, queue: Queue, counts: IntArray, p: int,
    stamp_ns: int, values: FloatArray, cov: FloatArray, has_attitude: bool,
) -> bool:  # fmt: skip
    """Queue one message part; return False when the queue is full."""
    counts[p, 0] += 1
    previous, node = memory.parts[p], memory.node
    if stamp_ns < previous.stamp_ns:
        counts[p, 1] += 1
        return True
    slot = free_slot(queue)
    if slot < 0:
        return False
    measurement = queue.slots[slot]
    measurement.part = p
    measurement.command_ns = node.command_ns
    for i in range(6):
        measurement.command[i] = node.command[i]
    if prepare(parts[p], previous, node, flt.x, stamp_ns, values, cov, has_attitude, measurement):
        push(queue, slot)
    else:
        counts[p, 2] += 1
    return True


@kernel
def _fill_correction(
    correction: np.record, flt: Filter, measurement: np.record, two_d: bool, index: IntArray,
    m: int,
) -> None:  # fmt: skip
    correction.part, correction.stamp_ns = measurement.part, measurement.stamp_ns
    correction.states, correction.nis = m, flt.distance[0]
    determinant = 1.0
    for i in range(m):
        if not (two_d and FLAT[index[i]]):
            determinant *= flt.distance[1 + i]
    correction.determinant = determinant


@section
def _process_queue(
    parts: RecordArray, flt: Filter, dyn: Dynamics, timing: Timing, queue: Queue,
    history: History, out: Output, now: int, scratch: np.record,
) -> bool:  # fmt: skip
    """Process measurements up to now; return False when history or queue are too small."""
    first_ns = first_stamp(queue)
    restored = 0
    if timing.history >= 0 and flt.times[INITIALISED] == 1 and first_ns < flt.times[LAST_NS]:
        restored = rewind(history, flt, queue, first_ns - 1, out.counts)
        if restored < 0:
            return False
    index, z, R = scratch.states, scratch.z, scratch.R
    while queue.size.queued > 0 and first_stamp(queue) <= now:
        slot = pop(queue)
        measurement = queue.slots[slot]
        p, stamp_ns = measurement.part, measurement.stamp_ns
        part = parts[p]
        if restored > 0:
            # Restored measurements, late ones included, bring their own command.
            restored -= 1
            flt.times[CONTROL_NS] = measurement.command_ns
            for i in range(6):
                flt.command[i] = measurement.command[i]
        m = select_states(part, measurement, flt.times[INITIALISED] == 1, index, z, R)
        accepted = process(flt, dyn, stamp_ns, index, m, z, R, part.threshold)
        out.counts[p, 3 if accepted else 4] += 1
        if not math.isnan(flt.distance[0]):
            # Corrections without space are counted, too, so that the caller can add space.
            row = out.n[2]
            if row < len(out.corrections):
                _fill_correction(out.corrections[row], flt, measurement, part.two_d, index, m)
            out.n[2] += 1
        if timing.history >= 0 and not save_state(history, flt, queue, slot, accepted):
            return False
    return True


@section
def filter_tick(
    parts: RecordArray, memory: Memory, flt: Filter, dyn: Dynamics, timing: Timing, queue: Queue,
    history: History, out: Output, last_published: int, now: int, scratch: np.record,
) -> int:  # fmt: skip
    """Process the queue up to now and publish; return the stamp last published.

    Returns TOO_SMALL when history or queue are too small.
    """
    node = memory.node
    to_now = timing.predict_to_current_time
    if queue.size.queued > 0:
        if not _process_queue(parts, flt, dyn, timing, queue, history, out, now, scratch):
            return TOO_SMALL
    elif now - flt.times[LAST_NS] >= timing.sensor_timeout:
        to_now = True
    if flt.times[INITIALISED] == 0:
        return last_published
    if to_now:
        advance(flt, dyn, now)
    for i in range(3):
        rate = flt.x[VROLL + i]
        elapsed = (now - node.tick_ns) * 1e-9
        node.rates[1, i] = (rate - node.rates[0, i]) / elapsed
        node.rates[0, i] = rate
    node.tick_ns = now
    stamp_ns = flt.times[LAST_NS]
    if timing.history >= 0:
        expire(history, stamp_ns - timing.history)
    if stamp_ns <= last_published and not timing.permit_corrected_publication:
        return last_published
    publish_odometry(out, flt, stamp_ns, now)
    return int(stamp_ns)


@section
def _receive_for_navsat(
    part: int, navsat: Navsat, navsat_state: NavsatState, flt: Filter, out: Output, now: int,
    scratch: np.record,
) -> bool:  # fmt: skip
    """Receive a fix or heading; return whether an odometry/gps was published at once."""
    if part == HEADING_PART:
        receive_heading(navsat, navsat_state, scratch.values[:4])
        return False
    number = int(scratch.values[0])
    if not navsat.settings.at_arrival:
        receive_fix(navsat, navsat_state, number)
        return False
    locate(navsat, navsat_state, flt.x, number, scratch.position, scratch.covariance)
    publish_gps(out, number, now, scratch.position, scratch.covariance)
    return True


@section
def _navsat_tick(
    navsat: Navsat, navsat_state: NavsatState, out: Output, now: int, scratch: np.record
) -> None:
    number = tick(navsat, navsat_state, scratch.position, scratch.covariance)
    if number >= 0:
        publish_gps(out, number, now, scratch.position, scratch.covariance)
    if publishes_filtered_gps(navsat_state):
        publish_filtered_gps(out, now)


@kernel
def replay(
    messages: Messages, parts: RecordArray, memory: Memory, flt: Filter, dyn: Dynamics,
    timing: Timing, navsat: Navsat, navsat_state: NavsatState, queue: Queue, history: History,
    out: Output, scratch: np.record,
) -> int:  # fmt: skip
    """Run the nodes to `timing.end`; return 0, or 1 when queue or history were too small.

    `messages` are those that arrive until then. Successive calls with the same memory are one run.
    """
    values, covariance, progress = scratch.values, scratch.value_covariance, scratch.progress
    n, i = len(messages.part), np.int64(0)
    delivered, half, last_published = int(progress[0]), int(progress[1]), int(progress[2])
    due, navsat_due = int(progress[3]), int(progress[4])
    while True:
        event = min(due, navsat_due)
        if i < n:
            event = min(event, messages.arrival_ns[i])
        if delivered < out.n[1]:
            event = min(event, out.gps_tick_ns[delivered] + timing.navsat_latency)
        steps = -((timing.start - event) // timing.step)
        now = timing.start + max(steps, 0) * timing.step
        if now > timing.end:
            progress[0], progress[1], progress[2] = delivered, half, last_published
            progress[3], progress[4] = due, navsat_due
            return _DONE
        # The stages share one call of `deliver`, because its code is inlined at every call.
        stage, gps_waits = _MESSAGES, False
        while stage != _END or gps_waits:
            p, stamp_ns, has_attitude = -1, now, False
            if gps_waits:
                gps_waits = (
                    delivered < out.n[1]
                    and out.gps_tick_ns[delivered] + timing.navsat_latency <= now
                )
                if gps_waits:
                    p = timing.navsat_part[half]
                    stamp_ns = navsat.fixes[out.gps_fix[delivered]].stamp_ns
                    read_gps(out, delivered, half, values, covariance)
                    delivered += half
                    half = 1 - half
            elif stage == _MESSAGES and i < n and messages.arrival_ns[i] <= now:
                p, stamp_ns = messages.part[i], messages.stamp_ns[i]
                _copy_message(
                    messages.value, i, messages.covariances, messages.covariance[i], scratch
                )
                has_attitude = messages.has_attitude[i] == 1
                if p in (FIX_PART, HEADING_PART):
                    gps_waits = _receive_for_navsat(
                        p, navsat, navsat_state, flt, out, now, scratch
                    )
                elif p == COMMAND_PART:
                    receive_command(memory.node, flt, stamp_ns, values)
                i += 1
            elif stage == _MESSAGES:
                stage, gps_waits = _FILTER, True
            elif stage == _FILTER:
                stage = _NAVSAT
                if due <= now:
                    due = next_due(timing.filter_origin, timing.filter_period, now)
                    before = out.n[0]
                    last_published = filter_tick(
                        parts, memory, flt, dyn, timing, queue, history, out, last_published, now,
                        scratch,
                    )  # fmt: skip
                    if last_published == TOO_SMALL:
                        return _QUEUE_FULL
                    if timing.navsat_period > 0 and out.n[0] > before:
                        receive_odometry(navsat, navsat_state, flt.x)
            else:
                stage = _END
                if navsat_due <= now:
                    gps_waits = True
                    navsat_due = next_due(timing.navsat_origin, timing.navsat_period, now)
                    _navsat_tick(navsat, navsat_state, out, now, scratch)
            if p >= 0 and not deliver(
                parts, memory, flt, queue, out.counts, p, stamp_ns, values, covariance,
                has_attitude,
            ):  # fmt: skip
                return _QUEUE_FULL
