# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Errors of an estimated trajectory in metres, degrees and m/s, and the trajectory as TUM file.

The position error is the absolute trajectory error of [Sturm2012], the norm of the difference of
positions at equal times. It is the APE of evo (`evo_ape tum truth.tum estimate.tum`).
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.recording.truth import interpolate_truth
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray
from sim_sensors.core.rotations import rotate, rotation_between
from .judged_world import has_truth_at


@dataclasses.dataclass(frozen=True)
class TrajectoryError:
    """Statistics of the size of an error over the estimates of a run, in `unit`."""

    quantity: str
    unit: str
    samples: int
    rmse: float
    mean: float
    median: float
    std: float
    maximum: float

    @classmethod
    def from_errors(cls, quantity: str, unit: str, errors: FloatArray) -> TrajectoryError:
        """Return the statistics of (n,) sizes of errors."""
        return cls(
            quantity, unit, len(errors), float(np.sqrt(np.mean(errors**2))), float(errors.mean()),
            float(np.median(errors)), float(errors.std()), float(errors.max()),
        )  # fmt: skip


def trajectory_errors(
    judged: JudgedRun, truth: OdometryArray, axes: tuple[int, ...] = (0, 1, 2)
) -> list[TrajectoryError]:
    """Return the errors of horizontal speed, position, aligned position, orientation and velocity.

    Horizontal speed is what VEPD compares by default: the norm of the horizontal velocity.

    The truth is that of the base frame in the judge's world frame (`truth_in_world`), interpolated
    at the stamps of the estimates. Velocities are compared in the axes of the body, or in those
    of the world if the judge estimates no orientation. `axes` are the compared components of
    position and velocity; two_d_mode has (0, 1). Quantities that the judge does not estimate are
    left out. The aligned position is the one after the rotation and shift that minimise its RMSE,
    as with `evo_ape -a`.
    """
    inside = judged.finite & has_truth_at(truth, judged.stamp_ns)
    true = interpolate_truth(truth, judged.stamp_ns[inside])
    position, orientation = judged.position[inside], judged.orientation[inside]
    velocity, true_velocity = judged.linear_velocity[inside], true.linear_velocity
    in_world = rotate(orientation, velocity), rotate(true.orientation, true_velocity)
    speed, true_speed = (np.hypot(vectors[:, 0], vectors[:, 1]) for vectors in in_world)
    if 'orientation' in judged.unknown:
        # Without the axes of the body, in those of the world.
        velocity, true_velocity = in_world
        orientation = np.full_like(orientation, np.nan)
    columns = list(axes)
    turned = np.linalg.norm(rotation_between(true.orientation, orientation), axis=1)
    aligned = position.copy()
    if np.isfinite(position).all():
        aligned[:, columns] = align(position[:, columns], true.position[:, columns])

    def distances(values: FloatArray, true_values: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.norm((values - true_values)[:, columns], axis=1))

    return [
        TrajectoryError.from_errors(*row)
        for row in (
            ('horizontal speed', 'm/s', np.abs(speed - true_speed)),
            ('position', 'm', distances(position, true.position)),
            ('position, aligned', 'm', distances(aligned, true.position)),
            ('orientation', 'deg', np.degrees(turned)),
            ('velocity', 'm/s', distances(velocity, true_velocity)),
        )
        if np.isfinite(row[2]).all()
    ]


def align(positions: FloatArray, true: FloatArray) -> FloatArray:
    """Return `(n, d)` positions after the rotation and shift nearest to the true ones.

    The rotation is that of [Umeyama1991] without a scale.
    """
    centred, true_centred = positions - positions.mean(axis=0), true - true.mean(axis=0)
    left, _, right = np.linalg.svd(true_centred.T @ centred)
    signs = np.ones(positions.shape[1])
    signs[-1] = np.sign(np.linalg.det(left) * np.linalg.det(right))
    return np.asarray(centred @ (left * signs @ right).T + true.mean(axis=0))


def write_tum(
    path: Path, stamp_ns: IntArray, position: FloatArray, orientation: FloatArray
) -> None:
    """Write a trajectory as TUM file: time in s, position in m, quaternion x y z w."""
    # A float has too few digits for nanoseconds since 1970.
    times = [f'{stamp // 10**9}.{stamp % 10**9:09d}' for stamp in stamp_ns.tolist()]
    rows = np.hstack([position, orientation]).tolist()
    lines = (
        f'{time} {" ".join(f"{value:.9f}" for value in row)}\n'
        for time, row in zip(times, rows, strict=True)
    )
    path.write_text(''.join(lines), encoding='utf-8')


def write_tum_pair(folder: Path, stem: str, judged: JudgedRun, truth: OdometryArray) -> None:
    """Write the estimates within the time of the truth, and the truth at their stamps."""
    inside = judged.finite & has_truth_at(truth, judged.stamp_ns)
    stamps = judged.stamp_ns[inside]
    true = interpolate_truth(truth, stamps)
    write_tum(
        folder / f'{stem}_estimate.tum',
        stamps,
        judged.position[inside],
        judged.orientation[inside],
    )
    write_tum(folder / f'{stem}_truth.tum', stamps, true.position, true.orientation)
