# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The measurement queue: the heap order of the C++ standard library, and its growth."""

from __future__ import annotations

import dataclasses
import heapq
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_examples import START_NS, filter_config, imu, mask, odometry, recording, stamps

from sim2real_eval.judge.robot_localization import embedded
from sim2real_eval.judge.robot_localization.embedded import judge
from sim2real_eval.judge.robot_localization.queue import free_slot, new_queue, pop, push


class Stamped:
    """Entry for heapq, which knows its order by stamp only."""

    def __init__(self, stamp: int, number: int) -> None:
        self.stamp, self.number = stamp, number

    def __lt__(self, other: Stamped) -> bool:
        return self.stamp < other.stamp


# Few different stamps, so that ties are the rule; None pops.
operations = st.lists(st.none() | st.integers(0, 5), max_size=120)


@given(operations)
def test_entries_leave_in_heap_order(steps: list[int | None]) -> None:
    """Also with equal stamps, as in Python's heapq; `part` carries the arrival number."""
    queue, standard, queued = new_queue(128), [], 0
    for number, stamp in enumerate([*steps, *[None] * len(steps)]):
        if stamp is not None:
            slot = free_slot(queue)
            queue.slots[slot].stamp_ns, queue.slots[slot].part = stamp, number
            push(queue, slot)
            heapq.heappush(standard, Stamped(stamp, number))
            queued += 1
        elif queued:
            slot = pop(queue)
            popped = (int(queue.slots[slot].stamp_ns), int(queue.slots[slot].part))
            oracle = heapq.heappop(standard)
            assert popped == (oracle.stamp, oracle.number), 'heapq'
            queued -= 1
        assert queue.size.tolist() == (queued, 128 - queued)


def test_a_full_queue_has_no_free_slot_and_keeps_its_entries() -> None:
    queue = new_queue(2)
    for stamp in (5, 3):
        slot = free_slot(queue)
        queue.slots[slot].stamp_ns = stamp
        push(queue, slot)
    assert free_slot(queue) == -1
    assert queue.slots[pop(queue)].stamp_ns == 3
    slot = free_slot(queue)
    assert slot >= 0
    queue.slots[slot].stamp_ns = 4
    push(queue, slot)
    assert [int(queue.slots[pop(queue)].stamp_ns) for _ in range(2)] == [4, 5]


@pytest.mark.parametrize('capacity', [1, 3, 200])
def test_a_run_with_a_larger_queue_gives_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capacity: int
) -> None:
    """Odometry stamped 15 s ahead of its arrival fills the queue with 1500 measurements."""
    odom = {'odom0': 'odom', 'odom0_config': mask('vx', 'vy', 'vyaw')}
    config = filter_config(tmp_path, imu0='imu', imu0_config=mask('yaw', 'vyaw', 'ax'), **odom)
    clock = stamps(100.0, 20.0)
    rng = np.random.default_rng(3)
    velocity = rng.normal(size=(len(clock), 3))
    ahead = odometry(clock + 15_000_000_000, velocity=velocity)
    ahead = dataclasses.replace(ahead, arrival_ns=clock)
    run = recording({'odom': ahead, 'imu': imu(clock, yaw=0.1 * rng.normal(size=len(clock)))})
    monkeypatch.setattr(embedded, '_FIRST_CAPACITY', 10_000)
    once = judge(run, config)
    monkeypatch.setattr(embedded, '_FIRST_CAPACITY', capacity)
    again = judge(run, config)
    for name in ('stamp_ns', 'tick_ns', 'position', 'linear_velocity', 'pose_covariance'):
        assert getattr(once, name).tobytes() == getattr(again, name).tobytes(), name
    assert once.parts == again.parts
    assert once.stamp_ns[-1] > START_NS + 15_000_000_000
