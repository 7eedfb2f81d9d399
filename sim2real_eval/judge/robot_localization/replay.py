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

from sim2real_eval.judge.robot_localization import navsat as gps_node
from sim2real_eval.judge.robot_localization.filter import advance, process, select
from sim2real_eval.judge.robot_localization.navsat import (
    Navsat,
    NavsatState,
    locate,
    publishes_filtered_gps,
    receive_fix,
    receive_heading,
    receive_odometry,
)
from sim2real_eval.judge.robot_localization.parts import (
    COMMAND_PART,
    FIX_PART,
    HEADING_PART,
    Messages,
    Parts,
    PartState,
)
from sim2real_eval.judge.robot_localization.preparation import prepare
from sim2real_eval.judge.robot_localization.queue import (
    History,
    Queue,
    expire,
    free_slot,
    pop,
    push,
    rewind,
    save_state,
)
from sim2real_eval.judge.robot_localization.state import (
    CONTROL_NS,
    INITIALISED,
    LAST_NS,
    NO_STAMP,
    VROLL,
    VX,
    Dynamics,
    Filter,
    N,
    Timing,
    next_due,
)
from sim_sensors.core.compilation import compiled, kernel
from sim_sensors.core.measurements import FloatArray, IntArray


class Output(NamedTuple):
    """What the nodes publish; rows are filled in place.

    Attributes
    ----------
    n : (4,) int64
        Rows filled: filtered odometry, odometry/gps, corrections (those without room too),
        gps/filtered.
    stamp_ns, tick_ns : (t,) int64
        Stamp of each filtered odometry and the time of the tick that published it.
    x : (t, 15) float
    pose_covariance, twist_covariance : (t, 6, 6) float
    gps_fix, gps_tick_ns : (g,) int64
        Number of the fix behind each odometry/gps and the time of the tick.
    gps_position : (g, 3) float
    gps_covariance : (g, 6, 6) float
    counts : (p, 5) int64
        Per part: messages in, refused for an older stamp, yielding no measurement, fused, and
        refused by the gate.
    correction : (c, 3) int64
        Part, stamp and number of states of each correction; what has no room is left out.
    nis : (c,) float
        Its normalised innovation squared, that is its squared Mahalanobis distance.
    filtered : (f, 2) int64
        Row of the filtered odometry behind each gps/filtered, and the time of the tick.
    """

    n: IntArray
    stamp_ns: IntArray
    tick_ns: IntArray
    x: FloatArray
    pose_covariance: FloatArray
    twist_covariance: FloatArray
    gps_fix: IntArray
    gps_tick_ns: IntArray
    gps_position: FloatArray
    gps_covariance: FloatArray
    counts: IntArray
    correction: IntArray
    nis: FloatArray
    filtered: IntArray


def new_output(
    rows: int, fixes: int, parts: int, corrections: int = 0, filtered: int = 0
) -> Output:
    """Return room for a number of filtered odometries, odometry/gps, corrections, gps/filtered."""
    return Output(
        n=np.zeros(4, dtype=np.int64),
        stamp_ns=np.zeros(rows, dtype=np.int64),
        tick_ns=np.zeros(rows, dtype=np.int64),
        x=np.zeros((rows, N)),
        pose_covariance=np.zeros((rows, 6, 6)),
        twist_covariance=np.zeros((rows, 6, 6)),
        gps_fix=np.zeros(fixes, dtype=np.int64),
        gps_tick_ns=np.zeros(fixes, dtype=np.int64),
        gps_position=np.zeros((fixes, 3)),
        gps_covariance=np.zeros((fixes, 6, 6)),
        counts=np.zeros((parts, 5), dtype=np.int64),
        correction=np.zeros((corrections, 3), dtype=np.int64),
        nis=np.zeros(corrections),
        filtered=np.zeros((filtered, 2), dtype=np.int64),
    )


@kernel
def publish_gps(out: Output, fix: int, now: int, position: FloatArray, cov: FloatArray) -> None:
    """Publish an odometry/gps."""
    row = out.n[1]
    out.gps_fix[row] = fix
    out.gps_tick_ns[row] = now
    for i in range(3):
        out.gps_position[row, i] = position[i]
    for i in range(6):
        for j in range(6):
            out.gps_covariance[row, i, j] = cov[i, j]
    out.n[1] += 1


@kernel
def publish_filtered_gps(out: Output, now: int) -> None:
    """Send the latest filtered odometry out as gps/filtered."""
    row = out.n[3]
    out.filtered[row, 0] = out.n[0] - 1
    out.filtered[row, 1] = now
    out.n[3] += 1


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


@kernel
def _deliver_gps(
    parts: Parts, memory: PartState, flt: Filter, queue: Queue, out: Output, timing: Timing,
    navsat: Navsat, delivered: int, now: int, values: FloatArray, covs: FloatArray,
) -> int:  # fmt: skip
    """Deliver what odometry/gps has arrived at the filter; return how many have in all.

    -1 when the queue is full.
    """
    while delivered < out.n[1] and out.gps_tick_ns[delivered] + timing.navsat_latency <= now:
        for i in range(3):
            values[0, i] = out.gps_position[delivered, i]
        for i in range(6):
            for j in range(6):
                covs[0, i, j] = out.gps_covariance[delivered, i, j]
        stamp_ns = navsat.stamp_ns[out.gps_fix[delivered]]
        has_attitude = delivered < 0  # Never; a constant would be compiled for, see `replay`.
        # The pose, then the twist.
        for k in range(2):
            p = timing.navsat_part[k]
            if p >= 0 and not deliver(
                parts, memory, flt, queue, out.counts, p, stamp_ns, values[k], covs[k],
                has_attitude,
            ):  # fmt: skip
                return -1
        delivered += 1
    return delivered


_MESSAGES, _FILTER, _NAVSAT, _END = range(4)


@compiled
def replay(
    messages: Messages, parts: Parts, memory: PartState, flt: Filter, dyn: Dynamics,
    timing: Timing, navsat: Navsat, navsat_state: NavsatState, queue: Queue, history: History,
    out: Output,
) -> int:  # fmt: skip
    """Run the nodes over all messages; return 0, or 1 when queue or history were too small."""
    index, z, R = np.zeros(N, dtype=np.int64), np.zeros(N), np.zeros((N, N))
    position, cov = np.zeros(3), np.zeros((6, 6))
    # Of odometry/gps: a pose of identity attitude; a twist that is zero and so is its covariance.
    values, covs = np.zeros((2, 7)), np.zeros((2, 6, 6))
    values[0, 6] = 1.0
    far = 2**62
    n, i = len(messages.part), 0
    # Read from arrays: of a constant, numba would compile what gets it for the constant as well.
    delivered, last_published = int(out.n[1]), int(np.full(1, NO_STAMP)[0])
    due = next_due(timing.filter_origin, timing.filter_period, timing.filter_origin)
    navsat_due = far
    if timing.navsat_period > 0:
        navsat_due = timing.navsat_origin + timing.navsat_period
    while True:
        event = min(due, navsat_due)
        if i < n:
            event = min(event, messages.arrival_ns[i])
        if delivered < out.n[1]:
            event = min(event, out.gps_tick_ns[delivered] + timing.navsat_latency)
        steps = -((timing.start - event) // timing.step)
        now = timing.start + max(steps, 0) * timing.step
        if now > timing.end:
            return _DONE
        # In stages, so that odometry/gps is delivered in one place: the code of what is called
        # goes into this function as often as it is named, and takes its time to compile.
        stage = _MESSAGES
        while stage != _END:
            if stage == _MESSAGES and i < n and messages.arrival_ns[i] <= now:
                p, published = messages.part[i], False
                if p >= 0:
                    cov_row = messages.covariances[messages.covariance[i]]
                    if not deliver(
                        parts, memory, flt, queue, out.counts, p, messages.stamp_ns[i],
                        messages.value[i], cov_row, messages.has_attitude[i] == 1,
                    ):  # fmt: skip
                        return _QUEUE_FULL
                elif p == FIX_PART:
                    fix = int(messages.value[i, 0])
                    published = navsat.at_arrival
                    if published:
                        locate(navsat, navsat_state, flt.x, fix, position, cov)
                        publish_gps(out, fix, now, position, cov)
                    else:
                        receive_fix(navsat, navsat_state, fix)
                elif p == HEADING_PART:
                    receive_heading(navsat, navsat_state, messages.value[i, :4])
                elif p == COMMAND_PART:
                    receive_command(memory, flt, messages.stamp_ns[i], messages.value[i])
                i += 1
                if not published:
                    continue
            elif stage == _MESSAGES:
                stage = _FILTER
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
                continue
            else:
                stage = _END
                if navsat_due > now:
                    continue
                navsat_due = next_due(timing.navsat_origin, timing.navsat_period, now)
                fix = gps_node.tick(navsat, navsat_state, position, cov)
                if fix >= 0:
                    publish_gps(out, fix, now, position, cov)
                if publishes_filtered_gps(navsat_state):
                    publish_filtered_gps(out, now)
            delivered = _deliver_gps(
                parts, memory, flt, queue, out, timing, navsat, delivered, now, values, covs
            )
            if delivered < 0:
                return _QUEUE_FULL
