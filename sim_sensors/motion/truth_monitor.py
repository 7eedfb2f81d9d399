# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Monitor of a live truth, with the rules and the codes of `sim2real check`.

A sample costs 10 us at 1 kHz. White noise does not raise an alarm: a jump is 23 deviations of a
direction, and the errors of a twist are medians over a minute (docs/reference/ros/nodes.md).
"""

from __future__ import annotations

import collections
import enum
import math
import statistics

import numpy as np

from sim_sensors.core.measurements import OdometryArray
from .truth_intervals import JUMP_M, MIN_MOVING_SPEED, SPEED_SCALE, TruthIntervals, jump_limit

# Samples after which the usual step and the limit of jumps are computed again, first after a few.
_FIRST, _PERIOD = 8, 50
# Errors of steps for the limit.
_ERRORS = 500
# A step longer than this many usual ones is a gap, over which nothing is compared.
_GAP_STEPS = 3.0
# Shorter intervals are joined, since noise of positions drowns their velocities, s.
_MIN_INTERVAL_S = 0.1
# Intervals in motion that are judged together, how many of them at least, and how often.
_INTERVALS, _MIN_INTERVALS, _NEW_INTERVALS = 600, 40, 40
# Extent of positions that move without any velocity, m.
_EXTENT_M = 5.0

_Vector = tuple[float, float, float]
_ZERO: _Vector = (0.0, 0.0, 0.0)


class TruthProblem(enum.Enum):
    """Problem of a live truth. The value is the code of the finding of `sim2real check`."""

    JUMP = 'check.truth_jumps'
    WORLD_TWIST = 'check.twist_in_world'
    NO_TWIST = 'check.truth_no_twist'
    SPEED_SCALE = 'check.speed_scale'
    OTHER_FRAME = 'recording.other_frame'
    NO_FRAME = 'truth.frame_assumed'

    @property
    def is_event(self) -> bool:
        """Whether it occurs at one sample; the others hold for a time."""
        return self in (TruthProblem.JUMP, TruthProblem.OTHER_FRAME)


class TruthMonitor:
    """Monitor of the samples of a truth in order of increasing stamps.

    Parameters
    ----------
    reads_twist : bool
        Whether the twist is used. Otherwise only positions and frames are monitored.

    Attributes
    ----------
    counts : Counter of TruthProblem
        How often each problem occurred or began.
    holding : set of TruthProblem
        Problems that hold now.
    largest_jump : float
        Largest jump, m.

    Examples
    --------
    >>> from sim_sensors.motion.motions import motion_of, truth_of
    >>> truth = truth_of(motion_of('circle', duration=2.0))
    >>> truth.position[150:] += 100.0
    >>> monitor = TruthMonitor()
    >>> problems = [monitor.push(truth.take([k])) for k in range(len(truth))]
    >>> problems[150], round(monitor.largest_jump)
    ([<TruthProblem.JUMP: 'check.truth_jumps'>], 173)
    """

    def __init__(self, *, reads_twist: bool = True) -> None:
        self._reads_twist = reads_twist
        self.counts: collections.Counter[TruthProblem] = collections.Counter()
        self.largest_jump = 0.0
        self.restart()

    def restart(self) -> None:
        """Begin with another stream; the counts and the largest jump stay."""
        self.holding: set[TruthProblem] = set()
        self._last_ns: int | None = None
        self._position = self._body = self._world = _ZERO
        # Last step of the position, m, and its length; the length is 0 after a gap.
        self._step, self._step_s = _ZERO, 0.0
        self._count = 0
        self._steps: collections.deque[float] = collections.deque(maxlen=_PERIOD)
        self._errors: collections.deque[float] = collections.deque(maxlen=_ERRORS)
        self._longest_s = self._limit = math.inf
        self._has_twist = False
        self._rows: collections.deque[list[float]] = collections.deque(maxlen=_INTERVALS)
        self._new_rows = 0
        self._time = 0.0
        self._sum_s = 0.0
        self._sum_body = self._sum_world = self._first = _ZERO
        self._lowest: list[float] = []
        self._highest: list[float] = []

    def push(self, sample: OdometryArray) -> list[TruthProblem]:
        """Take the next sample, one row; return the problems that occurred or began with it."""
        stamp_ns = int(sample.stamp_ns[0])
        x, y, z = position = tuple(sample.position[0].tolist())
        body = _ZERO
        world = _ZERO
        if self._reads_twist:
            body = tuple(sample.linear_velocity[0].tolist())
            self._has_twist = self._has_twist or any(body)
            world = _rotate(sample.orientation[0].tolist(), body)
        last_ns, self._last_ns = self._last_ns, stamp_ns
        if last_ns is None:
            self._position, self._body, self._world = position, body, world
            is_nameless = not (sample.frame and sample.child_frame)
            return self._set(TruthProblem.NO_FRAME, is_nameless)
        dt = (stamp_ns - last_ns) * 1e-9
        px, py, pz = self._position
        step = (x - px, y - py, z - pz)
        problems = self._check_step(dt, step, world)
        if self._reads_twist:
            self._join(dt, body, world, is_broken=bool(problems) or dt > self._longest_s)
        self._position, self._body, self._world = position, body, world
        if self._sum_s >= _MIN_INTERVAL_S:
            problems += self._end_interval()
        return problems

    def _check_step(self, dt: float, step: _Vector, world: _Vector) -> list[TruthProblem]:
        """Check a step of the position against the twist, or without one against the last step."""
        self._steps.append(dt)
        self._count += 1
        if self._count == _FIRST or self._count % _PERIOD == 0:
            self._longest_s = _GAP_STEPS * statistics.median_low(self._steps)
            self._limit = jump_limit(np.array(self._errors), JUMP_M)
        if dt > self._longest_s:
            self._step_s = 0.0
            return []
        sx, sy, sz = step
        if self._has_twist:
            (ax, ay, az), (bx, by, bz) = self._world, world
            half = 0.5 * dt
            error = math.hypot(sx - half * (ax + bx), sy - half * (ay + by), sz - half * (az + bz))
        elif self._step_s:
            (bx, by, bz), share = self._step, dt / self._step_s
            error = math.hypot(sx - share * bx, sy - share * by, sz - share * bz)
        else:
            error = 0.0
        self._step, self._step_s = step, dt
        self._errors.append(error)
        if error <= self._limit:
            return []
        # Without a twist the step back from a jump is no second one.
        self._step_s = 0.0
        self.largest_jump = max(self.largest_jump, error)
        self.counts[TruthProblem.JUMP] += 1
        return [TruthProblem.JUMP]

    def _join(self, dt: float, body: _Vector, world: _Vector, *, is_broken: bool) -> None:
        """Add a step to the interval, or begin another one after a gap or a jump."""
        self._time += dt
        if is_broken:
            self._sum_s = 0.0
            self._sum_body = self._sum_world = _ZERO
            self._lowest, self._highest = [], []
            return
        if not self._sum_s:
            self._first = self._position
        self._sum_s += dt
        half = 0.5 * dt
        self._sum_body = _add(self._sum_body, half, self._body, body)
        self._sum_world = _add(self._sum_world, half, self._world, world)

    def _end_interval(self) -> list[TruthProblem]:
        """Keep an interval in which the truth moves, and judge the latest ones."""
        length = self._sum_s
        moved = [(p - q) / length for p, q in zip(self._position, self._first, strict=True)]
        body = [value / length for value in self._sum_body]
        world = [value / length for value in self._sum_world]
        self._sum_s = 0.0
        self._sum_body = self._sum_world = _ZERO
        if not self._has_twist:
            return self._check_extent()
        if max(math.hypot(*moved), math.hypot(*body)) > MIN_MOVING_SPEED:
            self._rows.append([self._time, length, *moved, *body, *world])
            self._new_rows += 1
        problems = self._set(TruthProblem.NO_TWIST, False)
        if self._new_rows >= _NEW_INTERVALS and len(self._rows) >= _MIN_INTERVALS:
            self._new_rows = 0
            problems += self._judge()
        return problems

    def _check_extent(self) -> list[TruthProblem]:
        """Check whether positions move without any velocity."""
        position = self._position
        self._lowest = [*map(min, self._lowest or position, position)]
        self._highest = [*map(max, self._highest or position, position)]
        extent = math.dist(self._lowest, self._highest)
        moves = TruthProblem.NO_TWIST in self.holding or extent > _EXTENT_M
        return self._set(TruthProblem.NO_TWIST, moves)

    def _judge(self) -> list[TruthProblem]:
        """Apply the rules of `sim2real check` to the latest intervals in motion."""
        rows = np.array(self._rows)
        intervals = TruthIntervals(
            rows[:, 0], rows[:, 1], rows[:, 2:5], rows[:, 5:8], rows[:, 8:11]
        )
        if intervals.is_fast.sum() < _FIRST:
            return []
        blocks = intervals.moving_blocks()
        is_of_world = intervals.world_twist(blocks) is not None
        is_scaled = False
        # The sizes of noise have no ratio.
        if not is_of_world and blocks.follow_twist and (ratio := intervals.speed_ratio()):
            is_scaled = abs(math.log(ratio[0])) > max(ratio[1], SPEED_SCALE)
        return [
            *self._set(TruthProblem.WORLD_TWIST, is_of_world),
            *self._set(TruthProblem.SPEED_SCALE, is_scaled),
        ]

    def _set(self, problem: TruthProblem, holds: bool) -> list[TruthProblem]:
        """Note whether a problem holds; return it if it begins."""
        if not holds:
            self.holding.discard(problem)
            return []
        if problem in self.holding:
            return []
        self.holding.add(problem)
        self.counts[problem] += 1
        return [problem]


def _rotate(quaternion: list[float], vector: _Vector) -> _Vector:
    """Rotate a vector by a quaternion x y z w of any length; numpy takes ten times as long."""
    (x, y, z, w), (a, b, c) = quaternion, vector
    scale = 2.0 / (x * x + y * y + z * z + w * w)
    tx, ty, tz = scale * (y * c - z * b), scale * (z * a - x * c), scale * (x * b - y * a)
    return (
        a + w * tx + y * tz - z * ty, b + w * ty + z * tx - x * tz, c + w * tz + x * ty - y * tx
    )  # fmt: skip


def _add(total: _Vector, weight: float, first: _Vector, second: _Vector) -> _Vector:
    (x, y, z), (a, b, c), (p, q, r) = total, first, second
    return x + weight * (a + p), y + weight * (b + q), z + weight * (c + r)
