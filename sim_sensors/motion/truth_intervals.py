# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Rules that compare the positions, velocities and orientation of a truth in each interval.

`sim2real check` applies these rules to a whole recording, `TruthMonitor` to the latest minute of
a live stream.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core import rotations
from sim_sensors.core.blocks import block_means, seconds
from sim_sensors.core.measurements import FloatArray, OdometryArray

SIGMAS = 4.0
"""Number of standard errors beyond which an estimate is significant. Gaussian estimates exceed it
by chance in 6e-5 of cases: less than one false alarm in 30 estimates of 200 good recordings."""

SPEED_SCALE = 0.15
"""Logarithm of a ratio of speeds beyond which their units differ."""

MIN_MOVING_SPEED = 0.2
"""Speed above which a body counts as moving, m/s."""

JUMP_M = 0.5
"""Step of the position beyond the one explained by its velocity, above which it is a jump, m."""

MAX_STEP_ERROR_M = 100.0
"""Largest such step that scatter of the positions can explain, m."""

_JUMP_FACTOR = 10.0
# Logarithm of a ratio of speeds that is tolerated in any case: 2 % are 0.08 m/s at 4 m/s.
_MIN_SPEED_SCALE = 0.02
# Recorded speed above which blocks are used if few are fast, m/s.
_MIN_SPEED = 0.5
# Lengths of the blocks over which velocities are averaged, in long and in short runs, s.
BLOCK_S, SHORT_BLOCK_S = 1.0, 0.3
MIN_BLOCKS = 5
# Resultant lengths of directions: 0.9 is a circular deviation of 26 deg, 0.98 one of 12 deg.
ALIGNED, STEADY = 0.9, 0.98
# Largest angle between the twist of a vehicle and its x axis, deg.
_AHEAD_DEG = 20.0


class MovingBlocks(NamedTuple):
    """Horizontal velocities in blocks in which the body moves, complex (n,) m/s."""

    length: float  # of a block, s
    moved: FloatArray  # from differences of positions
    as_recorded: FloatArray  # from the twist, in its own axes
    turned: FloatArray  # from the twist, rotated to the world by the orientation

    @property
    def follow_twist(self) -> bool:
        """Whether positions move in one direction relative to the twist, within 12 deg."""
        return len(self.moved) >= MIN_BLOCKS and abs(mean_turn(self.moved, self.turned)) > STEADY


@dataclasses.dataclass(frozen=True, eq=False)
class TruthIntervals:
    """Intervals between samples of a truth.

    Attributes
    ----------
    time : (n,) float
        Ends of the intervals, s.
    steps : (n,) float
        Their lengths, s.
    moved : (n, 3) float
        Difference of positions over length, m/s.
    body, world : (n, 3) float
        Mean recorded velocity, as it is and rotated from the body to the world, m/s.
    """

    time: FloatArray
    steps: FloatArray
    moved: FloatArray
    body: FloatArray
    world: FloatArray

    @classmethod
    def from_odometry(cls, truth: OdometryArray) -> TruthIntervals:
        """Return the intervals of a truth with twist; times begin with its first sample."""
        steps = np.asarray(np.diff(truth.stamp_ns) * 1e-9)
        moved = np.diff(truth.position, axis=0) / steps[:, None]
        in_world = rotations.rotate(truth.orientation, truth.linear_velocity)
        body, world = (
            0.5 * (velocity[1:] + velocity[:-1]) for velocity in (truth.linear_velocity, in_world)
        )
        time = seconds(truth.stamp_ns[1:], truth.stamp_ns[0])
        return cls(time, steps, moved, body, world)

    @functools.cached_property
    def is_fast(self) -> NDArray[np.bool_]:
        """Whether positions move horizontally, (n,)."""
        return np.asarray(np.hypot(self.moved[:, 0], self.moved[:, 1]) > MIN_MOVING_SPEED)

    @property
    def position_errors(self) -> FloatArray:
        """Distances between each step of the position and the one from the velocity, (n,) m."""
        return np.asarray(np.linalg.norm((self.moved - self.world) * self.steps[:, None], axis=1))

    def horizontal(self, length: float, *velocities: FloatArray) -> list[FloatArray]:
        """Return horizontal means of velocities as complex numbers, over blocks of a length, s."""

        def weighted(steps: FloatArray, *velocities: FloatArray) -> FloatArray:
            weight = steps[:, None]
            return np.hstack([*(weight * velocity[:, :2] for velocity in velocities), weight])

        means = block_means(weighted, self.time, length, self.steps, *velocities)
        means = means[:, :-1] / means[:, -1:]
        return [means[:, k] + 1j * means[:, k + 1] for k in range(0, means.shape[1], 2)]

    def moving_blocks(self) -> MovingBlocks:
        """Return means over blocks, which are shorter if too few of full length are in motion.

        Short blocks are noisier, and their noise must not count as a twist that strays.
        """
        for length in (BLOCK_S, SHORT_BLOCK_S):
            means = self.horizontal(length, self.moved, self.body, self.world)
            # Blocks at rest are left out: noise of positions has no direction.
            moves = np.min(np.abs([means[0], means[-1]]), axis=0) > MIN_MOVING_SPEED
            blocks = MovingBlocks(length, *(velocity[moves] for velocity in means))
            if len(blocks.moved) >= MIN_BLOCKS:
                break
        return blocks

    def speed_ratio(self) -> tuple[float, float] | None:
        """Return the ratio of recorded speeds and differences of positions, and its limit.

        The differences are averaged over half seconds, turned by their mean angle to the recorded
        velocities and projected on them. Noise of the positions then has no mean, and the median
        ignores jumps. If the directions do not agree, only the sizes are compared. The limit is
        that of the logarithm of the ratio. None if nothing moves.
        """
        differences, *recorded = self.horizontal(0.5, self.moved, self.body, self.world)
        mean_turns = [mean_turn(differences, velocity) for velocity in recorded]
        best = recorded[int(np.argmax(np.abs(mean_turns)))]
        turn = max(mean_turns, key=abs)
        if abs(turn) > STEADY:
            speed = (np.conj(best) * differences * turn).real / np.maximum(np.abs(best), 1e-12)
            speed, size, tolerated = speed / abs(turn), np.abs(best), _MIN_SPEED_SCALE
        else:
            speed, size, tolerated = np.abs(differences), np.abs(recorded[0]), SPEED_SCALE
        # Blocks are chosen by the recorded speed, which has less noise than the differences.
        fast = (size > 0.5 * float(np.quantile(size, 0.98))) & (size > 0.0)
        if fast.sum() < 4 or float(np.median(np.abs(differences[fast]))) < MIN_MOVING_SPEED:
            fast = (size > max(0.5 * float(np.quantile(size, 0.8)), _MIN_SPEED)) & (speed > 0.0)
        if fast.sum() < 4:
            return None
        ratios = speed[fast] / size[fast]
        ratio = float(np.median(ratios))
        if not ratio > 0.0:
            return None
        # A robust deviation, and the standard error of a median by it.
        deviation = 1.48 * float(np.median(np.abs(ratios / ratio - 1.0)))
        return 1.0 / ratio, tolerated + SIGMAS * 1.25 * deviation / math.sqrt(len(ratios))

    def world_twist(self, blocks: MovingBlocks) -> tuple[float, float] | None:
        """Return the errors of a twist in world axes; None if its axes are those of the body.

        They are the median errors if the axes are those of the body, and those of the world, m/s.
        Only the fifth of the intervals in which both differ most is used. Jumps do not change a
        median.
        """
        fast, moved = self.is_fast, self.moved
        apart = np.linalg.norm(self.body - self.world, axis=1)
        chosen = fast & (apart >= np.quantile(apart[fast], 0.8))
        in_body, in_world = (
            _median_size(chosen, velocity, moved) for velocity in (self.world, self.body)
        )
        is_of_world = in_world < 0.5 * in_body and (
            in_body > 0.05 + 0.05 * _median_size(fast, moved)
        )
        return (in_body, in_world) if is_of_world and not _is_of_the_body(blocks) else None


def jump_limit(errors: FloatArray, least: float) -> float:
    """Return the step above which it is a jump: ten robust deviations, but at least `least`, m.

    For equal Gaussian noise in three axes, this is 23 standard deviations of one axis.
    """
    limit = max(least, _JUMP_FACTOR * 1.4826 * float(np.median(errors)))
    return min(limit, MAX_STEP_ERROR_M)


def mean_turn(first: FloatArray, second: FloatArray) -> complex:
    """Return the mean of exp(i angle) from `first` to `second`, weighted by the size of `second`.

    It is 1 if there are no vectors.
    """
    size = float(np.abs(second).sum())
    ahead = np.conj(first) / np.maximum(np.abs(first), 1e-12)
    return complex(np.sum(ahead * second)) / size if size > 0.0 else 1.0 + 0.0j


def mean_direction(vectors: FloatArray) -> complex:
    """Return the mean direction of vectors; its length is 1 if all directions are equal."""
    return mean_turn(np.ones_like(vectors), vectors)


def _is_of_the_body(blocks: MovingBlocks) -> bool:
    """Return whether a twist that fits in world axes may be one of the body after all.

    In that case the orientation is wrong. On a straight course both fit, but a vehicle moves along
    its x axis.
    """
    _, moved, as_recorded, turned = blocks
    if abs(mean_turn(moved, turned)) < STEADY or abs(mean_direction(as_recorded)) < STEADY:
        return False
    size = np.maximum(np.abs(as_recorded * turned), 1e-12)
    in_body = as_recorded * as_recorded * np.conj(turned) / size
    turns = [abs(np.angle(mean_direction(velocity))) for velocity in (as_recorded, in_body)]
    return bool(turns[0] < math.radians(_AHEAD_DEG) <= turns[1])


def _median_size(chosen: NDArray[np.bool_], *vectors: FloatArray) -> float:
    """Return the median length of the chosen vectors, or of the differences of two sets."""
    difference = functools.reduce(np.subtract, (rows[chosen] for rows in vectors))
    return float(np.median(np.linalg.norm(difference, axis=1)))
