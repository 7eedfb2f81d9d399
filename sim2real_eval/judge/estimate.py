# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Estimates of a judge for one recording, with counts and findings."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sim2real_eval.common.findings import (
    Finding,
    FindingKind,
    assumed,
    decisive,
    routine,
    to_records,
)
from sim2real_eval.common.results import write_csv, write_rows
from sim_sensors.core.errors import Remark
from sim_sensors.core.measurements import FixArray, FloatArray, IntArray


def _phrase(kind: FindingKind, template: str) -> Callable[..., Finding]:
    """Return a function that makes findings of one kind with a given `problem` text."""

    def make_finding(subject: str = '', /, **values: Any) -> Finding:
        words = template
        for name in [name for name, text in values.items() if isinstance(text, str)]:
            words = words.replace(f'{{{name}}}', values.pop(name))
        return kind(subject, problem=Remark(words, **values))

    return make_finding


DIVERGED = decisive(
    'estimate.diverged',
    '{count:d} of {estimates:d} estimates are NaN, the first one {first:.2f s} after the start',
    'The filter is unstable with these covariances.',
    'check noise settings and covariances of the messages',
    per_model=True,
)
UNUSABLE_CODES = frozenset(
    {DIVERGED.code, 'estimate.too_fast', 'estimate.jumps', 'rl.diverged', 'rl.unscented_diverged'}
)
"""Codes of findings about an estimate that cannot be the motion of a vehicle."""
NOTE = routine('judge.note', '{text}', 'A note of a judge that declares no codes of its own.')
COMPLETED = assumed(
    'judge.completed',
    'the estimates are incomplete: {assumption}',
    'The estimator does not publish this quantity, so it is derived from the others.',
)
COURSE_AS_HEADING = 'without an orientation, the heading is that of the velocity'
"""Assumption of COMPLETED; the forward speed cannot be negative then."""
VELOCITY_BY_DIFFERENCES = 'without a velocity, positions are differentiated'
"""Assumption of COMPLETED; noise of the positions is larger in their differences."""
LEVEL = 'without an orientation, the vehicle is assumed to be level'
"""Assumption of COMPLETED; on a slope the horizontal speed is too large."""
START_HEADING_UNUSED = routine(
    'judge.start_heading_unused',
    'the judge accepts no start heading; the true heading was not used',
    'Other judges of the comparison may have used the true heading.',
)
LOOKS_AHEAD = routine(
    'error_state.looks_ahead',
    'the first {estimates:d} estimates ({time:.1f s}) use {fixes:d} later fixes for '
    'the initial state',
    'The velocity of a moving start is known only after a few fixes.',
)
_GATED = routine(
    'error_state.gated',
    '{problem!s}',
    'The fixes contradict the prediction by more than the covariances allow. After a timeout the '
    'uncertainty of the state is set to the size of the innovation.',
    'raise the noise of the IMU or the covariances of the fixes',
)
FIXES_GATED = _phrase(
    _GATED,
    'the gate of {gate:g} rejected {refused:.0f} of {fixes:.0f} fixes: the filter follows the IMU',
)
GATE_TIMEOUT = _phrase(
    _GATED,
    'after {timeout:g s} without an accepted fix the next one was accepted ({count:.0f} times)',
)
SEES_FUTURE = routine(
    'smoother.sees_future',
    'a smoother uses future measurements: no live filter can be as good',
    'Use it as a reference for what the sensors allow.',
)
NOT_CONVERGED = decisive(
    'smoother.not_converged',
    'did not converge in {iterations:d} iterations: the estimate is not the optimum',
    'The result depends on where the optimisation started.',
)
IMU_CONTRADICTED = decisive(
    'smoother.imu_contradicted',
    'between {count:d} of {intervals:d} pairs of fixes the IMU differs from the estimate by more '
    'than {limit:g} standard deviations',
    'The estimate follows neither the IMU nor its stated noise.',
    'check units, axes and mounting of the IMU with `sim2real check`',
)
OUTAGES = routine(
    'smoother.outages',
    '{count:d} outages of more than {limit:g s}, the longest of {longest:.1f s}: the IMU alone '
    'bridges them',
    'The estimate is less accurate in the middle of an outage.',
)
OUTLIERS = routine(
    'smoother.outliers',
    '{count:d} of {fixes:d} fixes are more than {width:g} standard deviations off and got less '
    'weight (loss {loss})',
    'The robust loss limits the influence of outliers.',
)
SETTING_UNUSED = routine(
    'smoother.setting_unused',
    'has no effect on the smoother',
    'The smoother has no constraint on the velocity of base_link.',
)
NO_FIX = routine(
    'inertial.messages_without_fix',
    '{count:d} of {received:d} messages of the GPS have no fix',
    'The receiver had no fix at these times; this is a real outage.',
)
_LEFT_OUT = routine(
    'inertial.left_out',
    '{problem!s}',
    'Messages without a time interval to integrate over do not affect the estimate.',
)
FIXES_OUTSIDE = _phrase(
    _LEFT_OUT, '{count:.0f} fixes before or after all IMU messages are left out'
)
IMU_REPEATS = _phrase(_LEFT_OUT, '{count:.0f} IMU messages repeat a stamp and are left out')
IMU_GAPS = routine(
    'inertial.imu_gaps',
    'gaps of up to {longest:.2f s} between IMU messages ({count:d}x), longer than {limit:g s}: '
    'interpolated, with the error that the settings gap_rate and gap_acceleration give',
    'The motion during a gap is unknown, so the uncertainty grows.',
)
NO_COVARIANCE = assumed(
    'inertial.no_covariance',
    '{count:d} of {fixes:d} fixes have no covariance: a standard deviation of {deviation} m is '
    'assumed',
    'The receiver does not state its accuracy.',
    'set `fix_deviation: [EAST, NORTH, UP]` (m, from the data sheet) in the parameters of the '
    'judge',
)
_COVARIANCE_LIMITED = routine(
    'inertial.covariance_limited',
    '{problem!s}',
    'Receivers often state a better accuracy than they have; very large values carry no '
    'information and cost numerical accuracy.',
)
COVARIANCE_LOWERED = _phrase(
    _COVARIANCE_LIMITED,
    '{count:.0f} of {fixes:.0f} fixes state a standard deviation above {most:g m}: lowered to it',
)
COVARIANCE_RAISED = _phrase(
    _COVARIANCE_LIMITED,
    '{count:.0f} of {fixes:.0f} fixes state a standard deviation below {least} m, or none on an '
    'axis: raised to it',
)
_START = routine('inertial.start', '{problem!s}', 'Source of the initial attitude.')
LEVELLED = _phrase(
    _START,
    'start: levelled {level}, accurate to {tilt:.2g rad} plus the effect of the '
    'accelerometer bias',
)
HEADING = _phrase(_START, 'start: heading {heading:.0f deg} {source}')
HEADING_BY_COURSE = assumed(
    'inertial.heading_by_course',
    'start: heading {heading:.0f deg} from the course over ground of the fixes {later:.1f s} '
    'later, assumed to drive forwards',
    'The heading is wrong by 180 degrees if the vehicle starts backwards.',
    'give the heading with --start-heading if it does',
)
HEADING_UNKNOWN = assumed(
    'inertial.heading_unknown',
    'start: the heading is unknown and assumed to be 0 deg: a filter linearised about '
    'a wrong heading may take long to correct it, or never does',
    'Neither the IMU nor the fixes of the start give a heading.',
    'give it with --start-heading',
)
TILTED = routine(
    'inertial.tilted',
    'start: base_link is tilted by {tilt:.0f degrees}',
    'Vehicles start nearly level, so the mounting of the IMU is most likely wrong.',
    'check the transform to the IMU',
)
REAL_FILTER = routine(
    'external.real_filter',
    'robot_localization judged{navsat}; its velocity differs from the embedded one by at most '
    '{apart:g um/s}',
    'The real ekf_node or ukf_node confirms the embedded judge. The embedded '
    'navsat_transform replaces navsat_transform_node.',
)
RELEASE_DIFFERS = routine(
    'external.release',
    'robot_localization {version} behaves like rl_version {installed}, not {stated}',
    'The embedded judge, which the real node is compared with, reproduces another release. Both '
    'agree unless the parameters depend on the release.',
    "set `rl_version: '{installed}'` of this judge in the study file",
)
REAL_TIME = routine(
    'external.rate',
    'the estimator ran at {rate:.3g} x real time',
    'This is the replay speed in seconds of recording per second of wall time.',
)
REPEATABILITY = routine(
    'external.repeatability',
    '{repeats:d} replays of the same recording differ by {rms:.2g m/s} in speed (RMS), at most '
    '{most:.2g m/s}',
    'The estimator itself varies by this much, in real and in simulated runs. A study scores two '
    'replays of each real run; the distance between these is a lower bound of null distances.',
)
INCOMPLETE = decisive(
    'external.incomplete',
    '{problem!s}',
    'The estimator did not receive the whole recording, or not all of its estimates came back.',
    'replay more slowly with `clock: {{rate: 0.5}}` in case.yaml, or deepen the queue of the '
    'subscription',
)
LOST = _phrase(INCOMPLETE, 'messages were lost between sim2real and the estimator')
UNANSWERED = _phrase(
    INCOMPLETE, '{missing:.0f} of {count:.0f} messages were not answered by an estimate'
)
OUT_OF_ORDER = routine(
    'external.out_of_order',
    'dropped {count:d} estimates that are not later than the previous one',
    'An estimator may revise an estimate; a live user sees only the first version.',
)
NO_TRANSFORMS = assumed(
    'external.no_transforms',
    '{count:d} static transforms of the recording are not published: tf2_msgs is not installed',
    'The estimator may assume other sensor positions or drop the messages.',
    'source the setup file of ROS',
)


_COLUMNS = (
    'stamp_ns', 'recv_ns', 'x', 'y', 'z', 'qx', 'qy', 'qz', 'qw', 'vx', 'vy', 'vz', 'wx', 'wy',
    'wz', *(f'Ppose_{i}_{j}' for i in range(6) for j in range(6)),
    *(f'Ptwist_{i}_{j}' for i in range(6) for j in range(6)),
)  # fmt: skip
_FIX_COLUMNS = (
    'arrival_ns', 'stamp_ns', 'frame', 'lat', 'lon', 'alt', 'status',
    *(f'cov{k}' for k in range(9)), 'cov_type',
)  # fmt: skip
_ROWS_AT_ONCE = 10_000
_LONG_REFUSAL_S = 5.0
_MIN_REFUSED = 5

ODOMETRY_FIELDS = (
    'stamp_ns', 'position', 'orientation', 'linear_velocity', 'angular_velocity',
    'pose_covariance', 'twist_covariance',
)  # fmt: skip
"""Fields of a `JudgedRun` that are those of nav_msgs/Odometry."""


class PartLabel(Protocol):
    """Label of one part of an input, such as `imu0 twist`."""

    @property
    def topic(self) -> str:
        """Topic of the input."""


class FilteredFixes(Protocol):
    """Fixes that are computed only when they are needed."""

    def fixes(self) -> FixArray:
        """Compute the fixes."""


@dataclasses.dataclass(frozen=True)
class Refusals:
    """Consecutive measurements of one part that the filter refused."""

    start_ns: int  # stamp of the first one
    end_ns: int  # stamp of the last one
    measurements: int
    distance: float  # Mahalanobis distance of the first one from the estimate

    @property
    def duration(self) -> float:
        """Time between the first and the last refused measurement, s."""
        return (self.end_ns - self.start_ns) * 1e-9

    @property
    def is_long(self) -> bool:
        """Whether the filter did without the input for longer than outliers explain.

        Wrong measurements that a gate is meant for last up to a few seconds.
        """
        return self.duration >= _LONG_REFUSAL_S and self.measurements >= _MIN_REFUSED


@dataclasses.dataclass(frozen=True)
class PartCount:
    """Message counts of one part (pose, twist or acceleration) of one input."""

    name: str  # such as `imu0 twist`
    topic: str  # such as `/imu/data`
    received: int
    older: int  # refused because an earlier message had a later stamp
    unusable: int  # without a measurement
    fused: int
    rejected: int  # by the Mahalanobis gate or as singular
    singular: int = 0  # rejected because the innovation covariance was singular or not a number
    # Stamp of the last measurement that corrected the state, and the longest run of rejections by
    # the gate; None if there is none. Not compared, since a live judge does not report them.
    last_fused_ns: int | None = dataclasses.field(default=None, compare=False)
    longest_refusal: Refusals | None = dataclasses.field(default=None, compare=False)

    def since(self, past: PartCount) -> PartCount:
        """Return the counts since those of the same part at an earlier time."""
        counts = ('received', 'older', 'unusable', 'fused', 'rejected', 'singular')
        changes = {name: getattr(self, name) - getattr(past, name) for name in counts}
        return dataclasses.replace(self, **changes)

    def with_times(
        self, stamp_ns: IntArray, nis: FloatArray, is_accepted: NDArray[np.bool_]
    ) -> PartCount:
        """Return a copy with the times of acceptance of the compared measurements, (n,) each.

        They are in order of comparison. Measurements of equal stamps count as one, which is
        accepted if the last of them is: a filter with a history compares some of them again.
        """
        order = np.argsort(stamp_ns, kind='stable')
        stamps = stamp_ns[order]
        order = order[np.append(stamps[1:] != stamps[:-1], True)] if len(order) else order
        stamps, accepted = stamp_ns[order], is_accepted[order]
        edges = np.flatnonzero(np.diff((~accepted).astype(np.int8), prepend=0, append=0))
        first, last = edges[::2], edges[1::2] - 1
        refusal = None
        if len(first):
            longest = int(np.argmax(stamps[last] - stamps[first]))
            i, k = int(first[longest]), int(last[longest])
            distance = math.sqrt(nis[order[i]])
            refusal = Refusals(int(stamps[i]), int(stamps[k]), k - i + 1, distance)
        fused_ns = int(stamps[accepted][-1]) if accepted.any() else None
        return dataclasses.replace(self, last_fused_ns=fused_ns, longest_refusal=refusal)


@dataclasses.dataclass(frozen=True, eq=False)
class Corrections:
    """Measurements that the filter compared with its state, in order of comparison."""

    part: NDArray[np.integer[Any]]  # (n,) index into `JudgedRun.parts`
    stamp_ns: IntArray  # (n,)
    # (n,) Number of measured states, including those that `two_d_mode` holds at zero.
    states: NDArray[np.integer[Any]]
    # (n,) Normalised innovation squared, also of rejected measurements: the squared Mahalanobis
    # distance that the gate tests.
    nis: FloatArray
    # (n,) Determinant of the innovation covariance without the states that `two_d_mode` holds at
    # zero; None if the judge does not provide it.
    determinant: FloatArray | None = None

    @classmethod
    def none(cls) -> Corrections:
        """Return no corrections."""
        empty = np.zeros(0, dtype=np.int16)
        return cls(empty, np.zeros(0, dtype=np.int64), empty, np.zeros(0))


def part_counts(
    names: Sequence[PartLabel],
    counts: IntArray,
    threshold: FloatArray,
    corrections: Corrections | None = None,
) -> tuple[PartCount, ...]:
    """Return named counts of the filter loop.

    Parameters
    ----------
    names : sequence of PartLabel
    counts : (p, 5) int
        Received, older, unusable, fused and rejected messages of each part.
    threshold : (p,) float
        Mahalanobis thresholds.
    corrections : Corrections, optional
        Measurements with their distances. If None, all rejections by a part with a threshold
        count as rejections by its gate.
    """
    gated = np.where(np.isinf(threshold), 0, counts[:, 4])
    if corrections is not None:
        far = [
            np.count_nonzero(corrections.nis[corrections.part == number] >= limit**2)
            for number, limit in enumerate(threshold.tolist())
        ]
        # A measurement that was fused once more (smooth_lagged_data) has several distances.
        gated = np.minimum(gated, far)
    parts = tuple(
        PartCount(
            str(name), name.topic, received, older, unusable, fused, rejected, rejected - by_gate
        )
        for name, (received, older, unusable, fused, rejected), by_gate in zip(
            names, counts.tolist(), gated.tolist(), strict=True
        )
    )
    if corrections is None:
        return parts
    rows = [corrections.part == number for number in range(len(parts))]
    return tuple(
        part.with_times(
            corrections.stamp_ns[row], corrections.nis[row], corrections.nis[row] < limit**2
        )
        for part, row, limit in zip(parts, rows, threshold.tolist(), strict=True)
    )


def quaternions_from_angles(angles: FloatArray) -> FloatArray:
    """Return quaternions x y z w, (n, 4), of roll, pitch, yaw, (n, 3) rad."""
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
    """Estimates of a judge over one run.

    Attributes
    ----------
    stamp_ns, tick_ns : (n,) int64
        Stamp of each estimate, and time of the tick that published it.
    position : (n, 3) float
        Metres, world frame.
    orientation : (n, 4) float
        x y z w, base_link in the world frame.
    linear_velocity, angular_velocity : (n, 3) float
        m/s and rad/s, base_link axes.
    pose_covariance, twist_covariance : (n, 6, 6) float
    gps_stamp_ns : (g,) int64
        Stamps of the fixes that navsat_transform converted.
    gps_position : (g, 3) float
        Positions of these fixes in the world frame, moved from the antenna to base_link.
    gps_covariance : (g, 6, 6) float
    parts : tuple of PartCount
    notes : tuple of Finding
        Remarks for the user about the run.
    corrections : Corrections
        For a judge in another process: those of the embedded judge on the same messages.
    filtered_gps : FilteredFixes or None
        Messages on gps/filtered of navsat_transform; see `filtered_fixes`. For a judge in another
        process: those of the embedded judge.
    about_axes : bool
        True: the attitude block of `pose_covariance` describes a small rotation e about the world
        axes, truth = Exp(e) estimate. False: roll, pitch and yaw, as in robot_localization. The
        two differ when the vehicle is tilted.
    divergence : FindingKind
        Finding for estimates that are not numbers.
    unknown : frozenset of str
        Fields that the judge does not estimate, or only in part; NaN is no failure there. An
        unknown orientation is level, with the heading of the velocity.
    is_enu : bool
        Whether the axes of the world frame are east, north and up, as those of the truth.
    again : JudgedRun or None
        A second replay of the same recording, by a judge that is not repeatable.
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
    filtered_gps: FilteredFixes | None = None
    about_axes: bool = False
    divergence: FindingKind = DIVERGED
    unknown: frozenset[str] = frozenset()
    is_enu: bool = False
    again: JudgedRun | None = None

    def __len__(self) -> int:
        return len(self.stamp_ns)

    def __str__(self) -> str:
        span = (self.stamp_ns[-1] - self.stamp_ns[0]) * 1e-9 if len(self) else 0.0
        fused = ', '.join(
            f'{part.name} {part.fused}/{part.received - part.older}' for part in self.parts
        )
        # A user's judge may not report fused messages.
        return f'{len(self)} estimates over {span:.1f} s' + (f'; fused {fused}' if fused else '')

    @property
    def finite(self) -> NDArray[np.bool_]:
        """Whether all known fields of an estimate are finite, (n,)."""
        is_finite = np.ones(len(self), dtype=np.bool_)
        for name in ODOMETRY_FIELDS:
            if name not in self.unknown:
                field = getattr(self, name)
                is_finite &= np.isfinite(field).all(axis=tuple(range(1, field.ndim)))
        return is_finite

    @property
    def divergence_findings(self) -> tuple[Finding, ...]:
        """Finding about estimates that are not numbers; empty if all are."""
        bad_rows = np.flatnonzero(~self.finite)
        if not len(bad_rows):
            return ()
        first = (self.stamp_ns[bad_rows[0]] - self.stamp_ns[0]) * 1e-9
        return (self.divergence(first=first, count=len(bad_rows), estimates=len(self)),)

    def write_csv(self, path: str | Path) -> Path:
        """Write one row per estimate: stamp, tick, pose, body twist, both covariances.

        Floats are written so that they read back exactly. The file appears complete or not at
        all; the caller refuses an existing file.
        """
        fields = (
            self.position, self.orientation, self.linear_velocity, self.angular_velocity,
            self.pose_covariance, self.twist_covariance,
        )  # fmt: skip

        def format_rows() -> Iterator[list[float]]:
            # The rows as Python lists take ten times the memory of the arrays.
            for start in range(0, len(self), _ROWS_AT_ONCE):
                chunk = slice(start, start + _ROWS_AT_ONCE)
                stamps, ticks = self.stamp_ns[chunk].tolist(), self.tick_ns[chunk].tolist()
                numbers = np.hstack([field[chunk].reshape(len(stamps), -1) for field in fields])
                for stamp, tick, row in zip(stamps, ticks, numbers.tolist(), strict=True):
                    yield [stamp, tick, *row]

        return write_rows(path, _COLUMNS, format_rows())

    @property
    def filtered_fixes(self) -> FixArray:
        """Messages on gps/filtered: position of base_link on the Earth, arrival at the tick.

        Computed on demand, since the conversion from UTM takes time.
        """
        if self.filtered_gps is not None:
            return self.filtered_gps.fixes()
        none = np.zeros(0, dtype=np.int64)
        return FixArray(
            stamp_ns=none, arrival_ns=none, frame='', latitude=np.zeros(0), longitude=np.zeros(0),
            altitude=np.zeros(0), status=none, position_covariance=np.zeros((0, 3, 3)),
            position_covariance_type=none,
        )  # fmt: skip

    def write_filtered_gps(self, path: str | Path) -> Path:
        """Write one row per message on gps/filtered, in the columns of a recording's fixes."""
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
