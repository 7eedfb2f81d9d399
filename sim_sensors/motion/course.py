# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Course over ground from positions whose noise is unknown."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sim_sensors.core.measurements import FloatArray

# Displacement over its scatter from which a course is significant, and from which no longer
# baseline is tried. White noise at rest exceeds the first in less than one path of a hundred.
_SIGNIFICANT, _CERTAIN = 6.0, 20.0
# Part of the top speed below which a robot rests: errors of a receiver wander slowly.
_REST_SHARE = 0.02
# Points from which their scatter can be estimated; the fourth differences of one estimate are
# those of 10 baselines to each side, whose 75th percentile ignores corners and outliers.
_MIN, _REACH, _PERCENTILE = 10, 10, 75
# Factor from fourth differences to velocities: exact for a random walk, larger for white noise.
_WALK = math.sqrt(3.5)
_LONGEST = 125  # points of the longest baseline


def course(time: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the course over ground, rad, unwrapped; at rest the latest course is held.

    Times are in s and increase, positions are in m, all `(n,)`. The noise of the positions may
    have any size. At each point the baseline grows from the neighbours to 125 points, until the
    displacement is 20 times its scatter. If none is, that with the largest ratio is used. The
    course is significant if the displacement is 6 times its scatter and the speed is 2 % of the
    top speed. Other points take the course of the latest significant one. Earlier points take the
    first one; without any, the course is 0.

    A baseline of h points compares means of h consecutive points. The velocity is that of the
    parabola through three means. Its scatter comes from the differences of fourth order of the
    means, which smooth motion leaves small. Errors of the kind of a random walk have the same
    ratio for every baseline; those of white noise average out.

    Noise at rest has a significant course in 0 % of the paths if it is white, in 1 % with 2 % of
    outliers, in up to 3 % if it is correlated over 10 s, and in 13 % if it is a random walk: 400
    paths of 225 points each, at 1, 5 and 10 Hz. Paths of fewer than 10 points have no measurable
    scatter: any displacement is significant.

    At the ends of a path without noise, the course is that of the circle through the end point
    that has the course of the next point. The heading of a robot that drives backward is opposite
    to its course.
    """
    count = len(x)
    ratio, velocity = np.zeros(count), np.zeros((count, 2))
    neighbours = np.zeros(count, dtype=np.bool_)
    for spacing, indices, speeds, significance in _velocities(time, np.column_stack([x, y])):
        is_better = (ratio[indices] < _CERTAIN) & (significance > ratio[indices])
        chosen = indices[is_better]
        ratio[chosen], velocity[chosen] = significance[is_better], speeds[is_better]
        neighbours[chosen] = spacing == 1
    speed = np.hypot(velocity[:, 0], velocity[:, 1])
    is_moving = ratio >= _SIGNIFICANT
    is_moving &= speed >= _REST_SHARE * speed[is_moving].max(initial=0.0)
    moving = np.flatnonzero(is_moving)
    if not len(moving):
        return np.zeros_like(x)
    angle = np.arctan2(velocity[:, 1], velocity[:, 0])
    for end, beside in ((0, 1), (count - 1, count - 2)):
        if neighbours[beside] and ratio[beside] >= _CERTAIN:
            # The direction of the chord halves the turn.
            step = (end - beside) * np.array([x[end] - x[beside], y[end] - y[beside]])
            turn = 2.0 * math.remainder(math.atan2(step[1], step[0]) - angle[beside], math.tau)
            if abs(turn) < math.pi / 2.0:
                angle[end] = angle[beside] + turn
                is_moving[end] = True
    moving = np.flatnonzero(is_moving)
    latest = np.clip(np.searchsorted(moving, np.arange(count), side='right') - 1, 0, None)
    return np.unwrap(angle[moving[latest]])


def _velocities(
    time: FloatArray, points: FloatArray
) -> Iterator[tuple[int, NDArray[np.intp], FloatArray, FloatArray]]:
    """Yield baselines by length: spacing, indices, velocities, and their size by their scatter."""
    from scipy.ndimage import percentile_filter, uniform_filter1d

    count = len(points)
    if count < _MIN:
        velocity = np.column_stack([np.gradient(axis, time) for axis in points.T])
        yield 1, np.arange(count), velocity, np.where(np.any(velocity, axis=1), np.inf, 0.0)
        return
    spacing = 1
    while spacing <= _LONGEST:
        mean, at = uniform_filter1d(points, spacing, axis=0), uniform_filter1d(time, spacing)
        inside = np.arange(2 * spacing + spacing // 2, count - 2 * spacing - spacing // 2)
        if spacing > 1 and len(inside) < (_REACH - 2) * spacing:
            return
        # Divided differences of fourth order vanish on cubics, whatever the times.
        near = inside + spacing * np.arange(-2, 3)[:, None]
        steps = at[near][:, None] - at[near]
        weights = 1.0 / np.where(np.eye(5, dtype=bool)[..., None], 1.0, steps).prod(axis=1)
        weights /= np.linalg.norm(weights, axis=0)
        square = 0.5 * np.sum(np.einsum('ki,kic->ic', weights, mean[near]) ** 2, axis=1)
        size = min(2 * _REACH * spacing + 1, len(inside))
        # The squares have an exponential distribution.
        pooled = percentile_filter(square, _PERCENTILE, size) / -math.log1p(-_PERCENTILE / 100.0)
        indices = np.arange(spacing + spacing // 2, count - spacing - spacing // 2)
        variance = np.interp(indices, inside, np.maximum(pooled, square))
        before = at[indices] - at[indices - spacing]
        after = at[indices + spacing] - at[indices]
        slopes = np.stack([-after / before, after / before - before / after, before / after])
        slopes /= before + after
        near = indices + spacing * np.arange(-1, 2)[:, None]
        velocity = np.einsum('ki,kic->ic', slopes, mean[near])
        scatter = _WALK * np.linalg.norm(slopes, axis=0) * np.sqrt(variance)
        speed = np.hypot(velocity[:, 0], velocity[:, 1])
        yield (
            spacing,
            indices,
            velocity,
            np.where(speed > 0.0, speed / np.maximum(scatter, np.finfo(np.float64).tiny), 0.0),
        )
        spacing += max(2, spacing * 2 // 3 // 2 * 2)
