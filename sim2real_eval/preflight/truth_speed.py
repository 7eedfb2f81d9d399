# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Error of the speed of the truth, from distance over time of the fixes on straight runs.

Positions of an RTK receiver are accurate to centimetres. Over 30 s of straight driving they give
the mean speed to a millimetre per second, independently of the source of the truth. The paper
compares its inertial navigation system with 20 such runs [Mahajan2024].
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import stdtrit

from sim2real_eval.common.findings import Finding
from sim2real_eval.metrics.series import speed
from sim2real_eval.recording.recording import Recording
from sim2real_eval.recording.truth import local_frame_at_first_fix
from sim_sensors.core.errors import ParameterError
from sim_sensors.core.measurements import FloatArray
from . import findings
from .evidence import Evidence

_LIMIT = 0.03
"""m/s: the mean error of the truth of the paper."""

_PARTS = 10
_LONGEST = 1.001  # length of the path through these parts, relative to the straight line
_SLOWEST = 0.5
_LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class StraightRun:
    """A straight part of a recording.

    Attributes
    ----------
    recording : str
        Name of the recording.
    start, duration : float
        Start since the first stamp of the truth, and duration, s.
    truth : float
        Mean horizontal speed of the truth, m/s.
    fixes : float
        Distance between the first and the last fix over the time between them, m/s.
    deviation : float
        Standard deviation of `fixes` by the covariances of these two fixes, m/s.
    """

    recording: str
    start: float
    duration: float
    truth: float
    fixes: float
    deviation: float

    @property
    def error(self) -> float:
        """Error of the truth, m/s."""
        return self.truth - self.fixes


@dataclasses.dataclass(frozen=True)
class TruthSpeed:
    """Errors of the speed of the truth over straight runs, which count as independent.

    A straight run lasts `seconds` and is faster than 0.5 m/s. Its path over ten of the fixes is at
    most 0.1 % longer than the straight line.

    Examples
    --------
    >>> runs = [StraightRun('a', 0.0, 30.0, 2.0 + error, 2.0, 0.001) for error in (0.01, 0.03)]
    >>> truth_speed = TruthSpeed(30.0, runs)
    >>> round(truth_speed.mean, 3), round(truth_speed.bound, 3)
    (0.02, 0.147)
    """

    seconds: float
    runs: list[StraightRun] = dataclasses.field(default_factory=list)

    def add(self, recording: Recording, *, base_frame: str = 'base_link') -> None:
        """Add the straight runs of another recording."""
        self.runs.extend(_straight_runs(recording, self.seconds, base_frame))

    @property
    def errors(self) -> FloatArray:
        """Error of each run, m/s, (n,)."""
        return np.array([run.error for run in self.runs])

    @property
    def mean(self) -> float:
        """Mean error, m/s."""
        return float(self.errors.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the mean error by Student's distribution, m/s; infinite for one run."""
        count = len(self.runs)
        if count < 2:
            return -math.inf, math.inf
        half = float(stdtrit(count - 1, 0.5 + _LEVEL / 2.0) * self.errors.std(ddof=1))
        half /= math.sqrt(count)
        return self.mean - half, self.mean + half

    @property
    def bound(self) -> float:
        """Largest size of the mean error within the interval, m/s."""
        return max(map(abs, self.interval))

    @property
    def scale(self) -> float:
        """Ratio of the distances of truth and fixes over all runs."""
        times = [run.duration for run in self.runs]
        true_speeds, fix_speeds = (
            [getattr(run, source) for run in self.runs] for source in ('truth', 'fixes')
        )
        return float(np.dot(true_speeds, times) / np.dot(fix_speeds, times))

    @property
    def findings(self) -> list[Finding]:
        """Findings about the speed of the truth."""
        if len(self.runs) < 2:
            return [findings.FEW_STRAIGHT_RUNS(runs=len(self.runs), seconds=self.seconds)]
        low, high = self.interval
        if self.bound <= _LIMIT:
            return []
        if low <= 0.0 <= high or abs(self.mean) <= _LIMIT:
            fixes = math.sqrt(float(np.mean([run.deviation**2 for run in self.runs])))
            values = {'bound': self.bound, 'runs': len(self.runs), 'fixes': fixes}
            return [findings.TRUTH_SPEED_UNSURE(**values)]
        numbers = {'error': self.mean, 'low': low, 'high': high, 'share': self.scale - 1.0}
        return [findings.TRUTH_SPEED(runs=len(self.runs), factor=1.0 / self.scale, **numbers)]

    def __str__(self) -> str:
        (low, high), sizes = self.interval, np.abs(self.errors)
        mean_speed = float(np.mean([run.fixes for run in self.runs]))
        return (
            f'Speed of the truth: {len(self.runs)} straight runs of {self.seconds:g} s at '
            f'{mean_speed:.2f} m/s. It differs from distance over time of the fixes by '
            f'{self.mean:+.3f} m/s in the mean (95 % interval {low:+.3f} to {high:+.3f}), by '
            f'{sizes.mean():.3f} m/s in size and {sizes.max():.3f} m/s at most.'
        )

    def to_record(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        record: dict[str, Any] = {'seconds': self.seconds}
        if self.runs:
            mean_size = float(np.abs(self.errors).mean())
            record |= {'mean': self.mean, 'mean_size': mean_size, 'scale': self.scale}
        if len(self.runs) > 1:
            record |= {'interval': list(self.interval), 'bound': self.bound}
        runs = [dataclasses.asdict(run) | {'error': run.error} for run in self.runs]
        return record | {'runs': runs}


def _straight_runs(recording: Recording, seconds: float, base: str) -> Iterator[StraightRun]:
    """Yield the straight runs of a recording."""
    evidence = Evidence(recording, base)
    fixes, truth = evidence.fixes, evidence.truth
    if fixes is None or truth is None:
        return
    frame = local_frame_at_first_fix(fixes)
    place = frame.to_enu(fixes.latitude, fixes.longitude, fixes.altitude)[:, :2]
    start = truth.stamp_ns[0]
    fix_time, stamps = (fixes.stamp_ns - start) * 1e-9, (truth.stamp_ns - start) * 1e-9
    true_speed = speed(truth.linear_velocity, truth.orientation)
    distance = np.append(
        0.0, np.cumsum(np.diff(stamps) * (true_speed[1:] + true_speed[:-1]) / 2.0)
    )
    variance = fixes.position_covariance[:, (0, 1), (0, 1)].mean(axis=1)
    first, half_step = 0, float(np.median(np.diff(fix_time))) / 2.0
    if seconds <= 3.0 * half_step:
        least = 3.0 * half_step
        problem = f'{seconds:g} s is not allowed; must be greater than {least:g} s for these fixes'
        raise ParameterError('--straight', '', problem)
    while True:
        last = int(np.searchsorted(fix_time, fix_time[first] + seconds - half_step))
        if last >= len(fix_time):
            return
        line = float(np.hypot(*(place[last] - place[first])))
        time = float(fix_time[last] - fix_time[first])
        corners = place[np.linspace(first, last, _PARTS + 1).round().astype(int)]
        steps = float(np.hypot(*np.diff(corners, axis=0).T).sum())
        if line < _SLOWEST * time or steps > _LONGEST * line:
            # A later part may be straight.
            first = max(int(np.searchsorted(fix_time, fix_time[first] + time / _PARTS)), first + 1)
            continue
        covered = float(np.diff(np.interp(fix_time[[first, last]], stamps, distance))[0])
        deviation = math.sqrt(max(float(variance[first] + variance[last]), 0.0)) / time
        yield StraightRun(
            recording.name, float(fix_time[first]), time, covered / time, line / time, deviation
        )
        first = last
