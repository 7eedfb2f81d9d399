# SPDX-License-Identifier: Apache-2.0
"""What a judge says about one recording."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.findings import Finding, FindingKind, to_records
from sim2real_eval.common.tables import write_csv, write_rows
from sim_sensors.core.blocks import blocks, by_blocks, whole_rows
from sim_sensors.core.measurements import FixArray, FloatArray, IntArray
from .findings import DIVERGED
from .robot_localization.fixes import FilteredGps, no_fixes
from .robot_localization.parts import PartName

_COLUMNS = (
    'stamp_ns', 'recv_ns', 'x', 'y', 'z', 'qx', 'qy', 'qz', 'qw', 'vx', 'vy', 'vz', 'wx', 'wy',
    'wz', *(f'Ppose_{i}_{j}' for i in range(6) for j in range(6)),
    *(f'Ptwist_{i}_{j}' for i in range(6) for j in range(6)),
)  # fmt: skip
_FIX_COLUMNS = (
    'arrival_ns', 'stamp_ns', 'frame', 'lat', 'lon', 'alt', 'status',
    *(f'cov{k}' for k in range(9)), 'cov_type',
)  # fmt: skip


ODOMETRY_FIELDS = (
    'stamp_ns', 'position', 'orientation', 'linear_velocity', 'angular_velocity',
    'pose_covariance', 'twist_covariance',
)  # fmt: skip
"""Fields of a `JudgedRun` that are those of nav_msgs/Odometry."""


@dataclasses.dataclass(frozen=True)
class PartCount:
    """What became of one part (pose, twist or acceleration) of one input."""

    # Such as `imu0 twist` and `/imu/data`.
    name: str
    topic: str
    # Messages in; refused because an earlier one had a later stamp; yielding no measurement;
    # fused; refused, by the Mahalanobis gate or as `singular`.
    received: int
    older: int
    unusable: int
    fused: int
    rejected: int
    # Of those refused, how many because the covariance of their innovation was singular or not a
    # number, which no gate is needed for.
    singular: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Corrections:
    """Measurements that the filter compared with its state, in the order in which it did."""

    part: NDArray[np.integer[Any]]  # (n,) Index into `JudgedRun.parts`
    stamp_ns: IntArray  # (n,)
    # (n,) How many states each measured, those included that `two_d_mode` holds at zero.
    states: NDArray[np.integer[Any]]
    # (n,) Normalised innovation squared, refused measurements included: the squared Mahalanobis
    # distance that the gate looks at.
    nis: FloatArray
    # (n,) Determinant of the covariance of each innovation, without what `two_d_mode` holds at
    # zero; None where the judge does not tell it.
    determinant: FloatArray | None = None

    @classmethod
    def none(cls) -> Corrections:
        """Return no corrections."""
        empty = np.zeros(0, dtype=np.int16)
        return cls(empty, np.zeros(0, dtype=np.int64), empty, np.zeros(0))


def part_counts(
    names: Sequence[PartName],
    counts: IntArray,
    threshold: FloatArray,
    corrections: Corrections | None = None,
) -> tuple[PartCount, ...]:
    """Name the counts, (p, 5), that the loop kept, with the Mahalanobis thresholds, (p,).

    `corrections` are all measurements whose distance is known; None: then all refusals by a part
    with a threshold count as those of its gate.
    """
    gated = np.where(np.isinf(threshold), 0, counts[:, 4])
    if corrections is not None:
        far = np.zeros_like(gated)
        for rows in blocks(len(corrections.part)):
            part = corrections.part[rows]
            is_far = corrections.nis[rows] >= threshold[part] ** 2
            far += np.bincount(part[is_far], minlength=len(names))
        # A measurement that was taken once more (smooth_lagged_data) has several distances.
        gated = np.minimum(gated, far)
    return tuple(
        PartCount(
            str(name), name.topic, received, older, unusable, fused, rejected, rejected - by_gate
        )
        for name, (received, older, unusable, fused, rejected), by_gate in zip(
            names, counts.tolist(), gated.tolist(), strict=True
        )
    )


def _finite(rows: FloatArray) -> NDArray[np.bool_]:
    return whole_rows(np.isfinite(rows))


def quaternions(angles: FloatArray) -> FloatArray:
    """Return quaternions x y z w, (n, 4), of roll, pitch, yaw, (n, 3)."""
    s, c = np.sin(0.5 * angles).T, np.cos(0.5 * angles).T
    return np.stack(
        [
            s[0] * c[1] * c[2] - c[0] * s[1] * s[2],
            c[0] * s[1] * c[2] + s[0] * c[1] * s[2],
            c[0] * c[1] * s[2] - s[0] * s[1] * c[2],
            c[0] * c[1] * c[2] + s[0] * s[1] * s[2],
        ],
        axis=1,
    )


@dataclasses.dataclass(frozen=True, eq=False)
class JudgedRun:
    """The filter's output over one run.

    Attributes
    ----------
    stamp_ns, tick_ns : (n,) int64
        Stamp of each estimate and the time of the tick that published it.
    position : (n, 3) float
        Metres, world frame.
    orientation : (n, 4) float
        x y z w, base_link in the world frame.
    linear_velocity, angular_velocity : (n, 3) float
        m/s and rad/s, base_link.
    pose_covariance, twist_covariance : (n, 6, 6) float
    gps_stamp_ns : (g,) int64
        Stamps of the fixes that navsat_transform passed on.
    gps_position : (g, 3) float
        Their positions in the world frame, moved from the antenna to base_link.
    gps_covariance : (g, 6, 6) float
    parts : tuple of PartCount
    notes : tuple of Finding
        What the user should know about the run.
    corrections : Corrections
        Of a judge that runs in another process: those of the embedded judge on the same messages.
    filtered_gps : FilteredGps or None
        What navsat_transform sends out as gps/filtered; see `filtered_fixes`. Of a judge that runs
        in another process as the corrections.
    about_axes : bool
        Whether the last three of `pose_covariance` are those of the small rotation e about the
        world's axes with truth = Exp(e) estimate; else, as robot_localization has them, those of
        roll, pitch and yaw. The two differ once the vehicle is turned.
    divergence : FindingKind
        What to say when estimates are not numbers.
    unknown : frozenset of str
        Fields that the judge does not estimate, or not all of: NaN there is no failure.
    again : JudgedRun or None
        The same recording judged once more, by a judge that may give other numbers.
    """

    stamp_ns: IntArray
    tick_ns: IntArray
    position: FloatArray
    orientation: FloatArray
    linear_velocity: FloatArray
    angular_velocity: FloatArray
    pose_covariance: FloatArray
    twist_covariance: FloatArray
    gps_stamp_ns: IntArray = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    gps_position: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((0, 3)))
    gps_covariance: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((0, 6, 6)))
    parts: tuple[PartCount, ...] = ()
    notes: tuple[Finding, ...] = ()
    corrections: Corrections = dataclasses.field(default_factory=Corrections.none)
    filtered_gps: FilteredGps | None = None
    about_axes: bool = False
    divergence: FindingKind = DIVERGED
    unknown: frozenset[str] = frozenset()
    again: JudgedRun | None = None

    def __len__(self) -> int:
        return len(self.stamp_ns)

    def __str__(self) -> str:
        span = (self.stamp_ns[-1] - self.stamp_ns[0]) * 1e-9 if len(self) else 0.0
        fused = ', '.join(
            f'{part.name} {part.fused}/{part.received - part.older}' for part in self.parts
        )
        # A judge of the user's need not say what it fused.
        return f'{len(self)} estimates over {span:.1f} s' + (f'; fused {fused}' if fused else '')

    @property
    def finite(self) -> NDArray[np.bool_]:
        """Which estimates are numbers throughout, (n,)."""
        found = np.ones(len(self), dtype=np.bool_)
        for name in ODOMETRY_FIELDS:
            if name not in self.unknown:
                found &= by_blocks(_finite, getattr(self, name))
        return found

    @property
    def diverged(self) -> tuple[Finding, ...]:
        """Which estimates are not numbers, and what to do; empty if all are."""
        wrong = np.flatnonzero(~self.finite)
        if not len(wrong):
            return ()
        first = (self.stamp_ns[wrong[0]] - self.stamp_ns[0]) * 1e-9
        return (self.divergence(first=first, count=len(wrong), estimates=len(self)),)

    def write_csv(self, path: str | Path) -> Path:
        """Write one row per estimate: stamp, tick, pose, body twist, both covariances.

        Floats are written so that they read back exactly; the file appears complete or not at
        all, and an existing file is refused by the caller.
        """
        fields = (
            self.position, self.orientation, self.linear_velocity, self.angular_velocity,
            self.pose_covariance, self.twist_covariance,
        )  # fmt: skip

        def rows() -> Iterator[list[float]]:
            for part in blocks(len(self)):
                size = part.stop - part.start
                numbers = [
                    values[part].reshape(size, math.prod(values.shape[1:])) for values in fields
                ]
                stamps = self.stamp_ns[part].tolist(), self.tick_ns[part].tolist()
                for stamp, tick, row in zip(*stamps, np.hstack(numbers).tolist(), strict=True):
                    yield [stamp, tick, *row]

        return write_rows(path, _COLUMNS, rows())

    @property
    def filtered_fixes(self) -> FixArray:
        """The gps/filtered: the estimated position of base_link on the Earth, arrival the tick.

        Computed when asked for, as few ask and the way back from UTM takes time.
        """
        return no_fixes() if self.filtered_gps is None else self.filtered_gps.fixes()

    def write_filtered_gps(self, path: str | Path) -> Path:
        """Write one row per gps/filtered, as a recording has its fixes; see `write_csv`."""
        fixes = self.filtered_fixes
        columns = (
            fixes.arrival_ns, fixes.stamp_ns, [fixes.frame] * len(fixes), fixes.latitude,
            fixes.longitude, fixes.altitude, fixes.status,
            *fixes.position_covariance.reshape(-1, 9).T, fixes.position_covariance_type,
        )  # fmt: skip
        return write_csv(path, _FIX_COLUMNS, zip(*columns, strict=True))

    def summary(self) -> Mapping[str, object]:
        """Return counts and notes as plain values."""
        return {
            'estimates': len(self),
            'nan': int(np.sum(~self.finite)),
            'fixes_used': len(self.gps_stamp_ns),
            'parts': [dataclasses.asdict(part) for part in self.parts],
            'notes': to_records(self.notes),
        }
