# SPDX-License-Identifier: Apache-2.0
"""The nodes' event loop, compiled: deliveries, filter ticks and navsat ticks in their order.

Inside one clock step robot_localization does: deliver what has arrived; tick the filter when its
timer is due; tick navsat_transform when its timer is due; deliver the odometry/gps it published.
Only clock steps at which something happens are visited.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sim_sensors.core.compilation import compiled, kernel
from sim_sensors.core.measurements import FloatArray, IntArray
from . import navsat as gps_node
from .filter import FLAT, advance, process, select
from .navsat import (
    Navsat,
    NavsatState,
    locate,
    publishes_filtered_gps,
    receive_fix,
    receive_heading,
    receive_odometry,
)
from .parts import COMMAND_PART, FIX_PART, HEADING_PART, Messages, Parts, PartState
from .preparation import prepare
from .queue import History, Queue, expire, free_slot, pop, push, rewind, save_state
from .state import (
    CONTROL_NS,
    INITIALISED,
    LAST_NS,
    NO_STAMP,
    VROLL,
    VX,
    Dynamics,
    Filter,
    N,
    Output,
    Timing,
    next_due,
    publish_filtered_gps,
    publish_gps,
    take_gps,
)


class Scratch(NamedTuple):
    """Room for what the loop computes with; it allocates nothing itself."""

    # (15,), (15,), (15, 15) The measured states of one correction, their values and covariance.
    states: IntArray
    z: FloatArray
    R: FloatArray
    # (3,), (6, 6) Of one odometry/gps.
    position: FloatArray
    covariance: FloatArray
    # (7,), (6, 6) Of one message to the filter. Copied: code that may get one of several arrays is
    # slower.
    value: FloatArray
    value_covariance: FloatArray
    # (5,) How far the run is: odometry/gps that were delivered, and which half comes next, the
    # pose or the twist; stamp of the last filtered odometry; when filter and navsat_transform are
    # due.
    progress: IntArray


def new_scratch(timing: Timing) -> Scratch:
    """Return the room at the start of a run."""
    due = next_due(timing.filter_origin, timing.filter_period, timing.filter_origin)
    navsat_due = _NEVER
    if timing.navsat_period > 0:
        navsat_due = timing.navsat_origin + timing.navsat_period
    return Scratch(
        states=np.zeros(N, dtype=np.int64),
        z=np.zeros(N),
        R=np.zeros((N, N)),
        position=np.zeros(3),
        covariance=np.zeros((6, 6)),
        value=np.zeros(7),
        value_covariance=np.zeros((6, 6)),
        progress=np.array([0, 0, NO_STAMP, due, navsat_due]),
    )


@kernel
def take_message(messages: Messages, i: int, value: FloatArray, cov: FloatArray) -> None:
    """Copy the values of a message and their covariance."""
    row = messages.covariance[i]
    for j in range(7):
        value[j] = messages.value[i, j]
    for j in range(6):
        for k in range(6):
            cov[j, k] = messages.covariances[row, j, k]


_DONE = 0
_QUEUE_FULL = 1
TOO_SMALL = NO_STAMP - 1
"""What `filter_tick` returns when history or queue are too small; the state is then of no use."""


@kernel
def receive_command(memory: PartState, flt: Filter, stamp_ns: int, command: FloatArray) -> None:
    """Take a velocity command, vx vy vz vroll vpitch vyaw, which acts from its stamp."""
    memory.command_ns[0] = flt.times[CONTROL_NS] = stamp_ns
    for i in range(6):
        memory.command[i] = flt.command[i] = command[i]


@kernel
def deliver(
    parts: Parts, memory: PartState, flt: Filter, queue: Queue, counts: IntArray, p: int,
    stamp_ns: int, value: FloatArray, cov: FloatArray, has_attitude: bool,
) -> bool:  # fmt: skip
    """Queue one message part; False when the queue is full."""
    counts[p, 0] += 1
    if stamp_ns < memory.stamp_ns[p]:
        counts[p, 1] += 1
        return True
    slot = free_slot(queue)
    if slot < 0:
        return False
    queue.command_ns[slot] = memory.command_ns[0]
    for i in range(6):
        queue.command[slot, i] = memory.command[i]
    if prepare(parts, memory, flt.x, p, stamp_ns, value, cov, has_attitude, queue, slot):
        push(queue, slot)
    else:
        counts[p, 2] += 1
    return True


@kernel
def filter_tick(
    parts: Parts, memory: PartState, flt: Filter, dyn: Dynamics, timing: Timing, queue: Queue,
    history: History, out: Output, last_published: int, now: int, index: IntArray, z: FloatArray,
    R: FloatArray,
) -> int:  # fmt: skip
    """Process what is queued up to now and publish; return the stamp last published."""
    to_now = timing.predict_to_current_time
    if queue.size[0] > 0:
        first_ns = queue.stamp_ns[queue.heap[0]]
        late = flt.times[INITIALISED] == 1 and first_ns < flt.times[LAST_NS]
        restored = 0
        if timing.history >= 0 and late:
            fused, rejected = out.counts[:, 3], out.counts[:, 4]
            restored = rewind(history, flt, queue, first_ns - 1, fused, rejected)
            if restored < 0:
                return TOO_SMALL
        while queue.size[0] > 0 and queue.stamp_ns[queue.heap[0]] <= now:
            slot = pop(queue)
            p = queue.part[slot]
            if restored > 0:
                # As many as came back, late ones included, bring their own command.
                restored -= 1
                flt.times[CONTROL_NS] = queue.command_ns[slot]
                for i in range(6):
                    flt.command[i] = queue.command[slot, i]
            m = select(parts, queue, slot, flt.times[INITIALISED] == 1, index, z, R)
            stamp_ns = queue.stamp_ns[slot]
            accepted = process(flt, dyn, stamp_ns, index, m, z, R, parts.threshold[p])
            if accepted:
                out.counts[p, 3] += 1
            else:
                out.counts[p, 4] += 1
            row = out.n[2]
            if not math.isnan(flt.distance[0]):
                if row < len(out.nis):
                    out.correction[row, 0] = p
                    out.correction[row, 1] = stamp_ns
                    out.correction[row, 2] = m
                    out.nis[row] = flt.distance[0]
                    out.determinant[row] = 1.0
                    for i in range(m):
                        if not (parts.two_d and FLAT[index[i]]):
                            out.determinant[row] *= flt.distance[1 + i]
                # Counted without room too: whoever wants them all sees how much they take.
                out.n[2] += 1
            if timing.history >= 0 and not save_state(history, flt, queue, slot, accepted):
                return TOO_SMALL
    elif now - flt.times[LAST_NS] >= timing.sensor_timeout:
        to_now = True
    if flt.times[INITIALISED] == 0:
        return last_published
    if to_now:
        advance(flt, dyn, now)
    for i in range(3):
        rate = flt.x[VROLL + i]
        elapsed = (now - memory.tick_ns[0]) * 1e-9
        memory.rates[1, i] = (rate - memory.rates[0, i]) / elapsed
        memory.rates[0, i] = rate
    memory.tick_ns[0] = now
    stamp_ns = flt.times[LAST_NS]
    if timing.history >= 0:
        expire(history, stamp_ns - timing.history)
    if stamp_ns <= last_published and not timing.permit_corrected_publication:
        return last_published
    row = out.n[0]
    out.stamp_ns[row] = stamp_ns
    out.tick_ns[row] = now
    for i in range(N):
        out.x[row, i] = flt.x[i]
    for i in range(6):
        for j in range(6):
            out.pose_covariance[row, i, j] = flt.P[i, j]
            out.twist_covariance[row, i, j] = flt.P[VX + i, VX + j]
    out.n[0] += 1
    return int(stamp_ns)


_MESSAGES, _FILTER, _NAVSAT, _END = range(4)
_NEVER = 2**62


@compiled
def replay(
    messages: Messages, parts: Parts, memory: PartState, flt: Filter, dyn: Dynamics,
    timing: Timing, navsat: Navsat, navsat_state: NavsatState, queue: Queue, history: History,
    out: Output, scratch: Scratch,
) -> int:  # fmt: skip
    """Run the nodes to `timing.end`; return 0, or 1 when queue or history were too small.

    `messages` are those that arrive until then and were not there before: runs one after the other
    with the same state are one run.
    """
    index, z, R = scratch.states, scratch.z, scratch.R
    value, covariance = scratch.value, scratch.value_covariance
    position, cov = scratch.position, scratch.covariance
    progress = scratch.progress
    n, i = len(messages.part), 0
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
        # In stages, so that the filter takes messages in one place: the code of what is called
        # goes into this function as often as it is named, and takes its time to compile.
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
                    stamp_ns = navsat.stamp_ns[out.gps_fix[delivered]]
                    take_gps(out, delivered, half, value, covariance)
                    delivered += half
                    half = 1 - half
            elif stage == _MESSAGES and i < n and messages.arrival_ns[i] <= now:
                p, stamp_ns = messages.part[i], messages.stamp_ns[i]
                take_message(messages, i, value, covariance)
                has_attitude = messages.has_attitude[i] == 1
                if p == FIX_PART:
                    fix = int(value[0])
                    gps_waits = navsat.at_arrival
                    if gps_waits:
                        locate(navsat, navsat_state, flt.x, fix, position, cov)
                        publish_gps(out, fix, now, position, cov)
                    else:
                        receive_fix(navsat, navsat_state, fix)
                elif p == HEADING_PART:
                    receive_heading(navsat, navsat_state, value[:4])
                elif p == COMMAND_PART:
                    receive_command(memory, flt, stamp_ns, value)
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
                        index, z, R,
                    )  # fmt: skip
                    if last_published == TOO_SMALL:
                        return _QUEUE_FULL
                    if timing.navsat_period > 0 and out.n[0] > before:
                        receive_odometry(navsat, navsat_state, flt.x[:6])
            else:
                stage = _END
                if navsat_due <= now:
                    gps_waits = True
                    navsat_due = next_due(timing.navsat_origin, timing.navsat_period, now)
                    fix = gps_node.tick(navsat, navsat_state, position, cov)
                    if fix >= 0:
                        publish_gps(out, fix, now, position, cov)
                    if publishes_filtered_gps(navsat_state):
                        publish_filtered_gps(out, now)
            if p >= 0 and not deliver(
                parts, memory, flt, queue, out.counts, p, stamp_ns, value, covariance,
                has_attitude,
            ):  # fmt: skip
                return _QUEUE_FULL
