# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Positions, velocities and orientation of a truth against each other, interval by interval.

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
"""Standard errors beyond which an estimate is significant: 6e-5 of Gaussian estimates are by
chance, so that 30 estimates of 200 good recordings give less than one false alarm."""

SPEED_SCALE = 0.15
"""Logarithm of a ratio of speeds beyond which another unit is meant."""

SLOWEST = 0.2
"""Speed above which a body moves, m/s."""

JUMP_M = 0.5
"""Step of the position, without its velocity, that no vehicle makes, m."""

MOST_ERROR_M = 100.0
"""Step that is wrong however much the positions scatter, m."""

_JUMP_FACTOR = 10.0
# Logarithm below which the error of an estimate hardly changes: 2 % are 0.08 m/s at 4 m/s.
_LEAST_SPEED_SCALE = 0.02
_MOVES = 0.5
# Blocks of time in which noise of positions is small, and those of short runs, s.
BLOCK_S, SHORT_S = 1.0, 0.3
LEAST_BLOCKS = 5
# Lengths of a mean of turns: 0.9 is a direction that strays by 26 deg, 0.98 by 12 deg.
FOLLOWS, STEADY = 0.9, 0.98
_AHEAD_DEG = 20.0


class MovingBlocks(NamedTuple):
    """Horizontal velocities in blocks in which the body moves, complex (n,) m/s."""

    length: float  # of a block, s
    moved: FloatArray  # of the positions
    as_recorded: FloatArray
    turned: FloatArray  # recorded, rotated to the world

    @property
    def follow_twist(self) -> bool:
        """Whether positions move in the direction of the twist, without straying by 12 deg."""
        return len(self.moved) >= LEAST_BLOCKS and abs(mean_turn(self.moved, self.turned)) > STEADY


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
        Mean recorded velocity in its own axes, and rotated to the world, m/s.
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
        return np.asarray(np.hypot(self.moved[:, 0], self.moved[:, 1]) > SLOWEST)

    @property
    def position_errors(self) -> FloatArray:
        """Parts of the steps of the position that the velocity does not explain, (n,) m."""
        return np.asarray(np.linalg.norm((self.moved - self.world) * self.steps[:, None], axis=1))

    def horizontal(self, length: float, *velocities: FloatArray) -> list[FloatArray]:
        """Return horizontal parts of velocities as complex means over blocks of a length, s."""

        def weighted(steps: FloatArray, *velocities: FloatArray) -> FloatArray:
            weight = steps[:, None]
            return np.hstack([*(weight * velocity[:, :2] for velocity in velocities), weight])

        means = block_means(weighted, self.time, length, self.steps, *velocities)
        means = means[:, :-1] / means[:, -1:]
        return [means[:, k] + 1j * means[:, k + 1] for k in range(0, means.shape[1], 2)]

    def moving_blocks(self) -> MovingBlocks:
        """Return means over blocks; short runs are compared in short blocks.

        Their noise is then not taken for a twist that strays.
        """
        for length in (BLOCK_S, SHORT_S):
            means = self.horizontal(length, self.moved, self.body, self.world)
            # Noise of positions has no direction.
            moves = np.min(np.abs([means[0], means[-1]]), axis=0) > SLOWEST
            blocks = MovingBlocks(length, *(velocity[moves] for velocity in means))
            if len(blocks.moved) >= LEAST_BLOCKS:
                break
        return blocks

    def speed_ratio(self) -> tuple[float, float] | None:
        """Return the ratio of recorded speeds and differences of positions, and its limit.

        The differences are projected on the recorded velocities, which they follow whatever the
        heading, and the median over half seconds is taken: noise of the positions has no mean
        then, and jumps do not count. If they do not follow each other, only their sizes are
        compared. The limit is that of the logarithm of the ratio. None if nothing moves.
        """
        differences, *recorded = self.horizontal(0.5, self.moved, self.body, self.world)
        follows = [mean_turn(differences, velocity) for velocity in recorded]
        best = recorded[int(np.argmax(np.abs(follows)))]
        turn = max(follows, key=abs)
        if abs(turn) > STEADY:
            speed = (np.conj(best) * differences * turn).real / np.maximum(np.abs(best), 1e-12)
            speed, size, least = speed / abs(turn), np.abs(best), _LEAST_SPEED_SCALE
        else:
            speed, size, least = np.abs(differences), np.abs(recorded[0]), SPEED_SCALE
        # Blocks are chosen by the recorded speed, which has less noise than the differences.
        fast = (size > 0.5 * float(np.quantile(size, 0.98))) & (size > 0.0)
        if fast.sum() < 4 or float(np.median(np.abs(differences[fast]))) < SLOWEST:
            fast = (size > max(0.5 * float(np.quantile(size, 0.8)), _MOVES)) & (speed > 0.0)
        if fast.sum() < 4:
            return None
        ratios = speed[fast] / size[fast]
        ratio = float(np.median(ratios))
        if not ratio > 0.0:
            return None
        # A robust deviation, and the standard error of a median by it.
        deviation = 1.48 * float(np.median(np.abs(ratios / ratio - 1.0)))
        return 1.0 / ratio, least + SIGMAS * 1.25 * deviation / math.sqrt(len(ratios))

    def world_twist(self, blocks: MovingBlocks) -> tuple[float, float] | None:
        """Return the errors of a twist whose axes are those of the world; None for the body's.

        They are the median errors in the axes of the body and in those of the world, m/s. They are
        taken where both differ most: in turns, for a vehicle that mostly goes straight. Jumps do
        not change a median.
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
    """Return the size of a step that is a jump: ten robust deviations, and at least `least`, m.

    With Gaussian noise in three directions it is 23 deviations of a direction.
    """
    limit = max(least, _JUMP_FACTOR * 1.4826 * float(np.median(errors)))
    return min(limit, MOST_ERROR_M)


def mean_turn(first: FloatArray, second: FloatArray) -> complex:
    """Return the mean of exp(i turn) from some vectors to others, weighted by the size of those.

    1 if there are none.
    """
    size = float(np.abs(second).sum())
    ahead = np.conj(first) / np.maximum(np.abs(first), 1e-12)
    return complex(np.sum(ahead * second)) / size if size > 0.0 else 1.0 + 0.0j


def mean_direction(vectors: FloatArray) -> complex:
    """Return the mean direction of vectors; its length is 1 if they have one direction."""
    return mean_turn(np.ones_like(vectors), vectors)


def _is_of_the_body(blocks: MovingBlocks) -> bool:
    """Return whether a twist that follows the track may still be one of the body.

    Then the orientation is wrong. A vehicle that keeps its course does not distinguish both, but
    it moves along its x axis.
    """
    _, moved, as_recorded, turned = blocks
    if abs(mean_turn(moved, turned)) < STEADY or abs(mean_direction(as_recorded)) < STEADY:
        return False
    size = np.maximum(np.abs(as_recorded * turned), 1e-12)
    in_body = as_recorded * as_recorded * np.conj(turned) / size
    turns = [abs(np.angle(mean_direction(velocity))) for velocity in (as_recorded, in_body)]
    return bool(turns[0] < math.radians(_AHEAD_DEG) <= turns[1])


def _median_size(chosen: NDArray[np.bool_], *vectors: FloatArray) -> float:
    """Return the median length of chosen vectors, or of the differences of two."""
    difference = functools.reduce(np.subtract, (rows[chosen] for rows in vectors))
    return float(np.median(np.linalg.norm(difference, axis=1)))
