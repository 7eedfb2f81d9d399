# SPDX-License-Identifier: Apache-2.0
"""Is the speed of the truth right? Held against distance over time of the fixes, driving straight.

Positions of an RTK receiver are good to centimetres: over 30 s of straight driving they give the
mean speed to a millimetre per second, whatever the truth was made of. The paper holds its
inertial navigation system against 20 such runs [Mahajan2024].
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
_LONGEST = 1.001  # the way by these parts, of the straight line
_SLOWEST = 0.5
_LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class StraightRun:
    """A straight part of a recording.

    Attributes
    ----------
    recording : str
    start, duration : float
        Seconds; the start since the first stamp of the truth.
    truth : float
        Mean speed that the truth states, horizontal, m/s.
    fixes : float
        Distance between first and last fix over the time between them, m/s.
    deviation : float
        Of the latter, as the covariances of these two fixes state it, m/s.
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

    Straight runs are looked for in every recording, one after the other: `seconds` long, faster
    than 0.5 m/s, and the way over ten of the fixes at most 0.1 % longer than the line.

    Examples
    --------
    >>> runs = [StraightRun('a', 0.0, 30.0, 2.0 + error, 2.0, 0.001) for error in (0.01, 0.03)]
    >>> found = TruthSpeed(30.0, runs)
    >>> round(found.mean, 3), round(found.bound, 3)
    (0.02, 0.147)
    """

    seconds: float
    runs: list[StraightRun] = dataclasses.field(default_factory=list)

    def add(self, recording: Recording, *, base_frame: str = 'base_link') -> None:
        """Look for straight runs in one more recording."""
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
        """95 % interval of the mean error by Student's distribution, m/s; infinite of one run."""
        count = len(self.runs)
        if count < 2:
            return -math.inf, math.inf
        half = float(stdtrit(count - 1, 0.5 + _LEVEL / 2.0) * self.errors.std(ddof=1))
        half /= math.sqrt(count)
        return self.mean - half, self.mean + half

    @property
    def bound(self) -> float:
        """What the mean error is at most, m/s: the end of the interval that is further from 0."""
        return max(map(abs, self.interval))

    @property
    def scale(self) -> float:
        """Speed of the truth over that of the fixes, all runs together."""
        times = [run.duration for run in self.runs]
        one, other = ([getattr(run, side) for run in self.runs] for side in ('truth', 'fixes'))
        return float(np.dot(one, times) / np.dot(other, times))

    @property
    def findings(self) -> list[Finding]:
        """What of it the user should know."""
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
        driven = float(np.mean([run.fixes for run in self.runs]))
        return (
            f'Speed of the truth: {len(self.runs)} straight runs of {self.seconds:g} s at '
            f'{driven:.2f} m/s. It differs from distance over time of the fixes by '
            f'{self.mean:+.3f} m/s in the mean (95 % interval {low:+.3f} to {high:+.3f}), by '
            f'{sizes.mean():.3f} m/s in size and {sizes.max():.3f} m/s at most.'
        )

    def to_record(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        found: dict[str, Any] = {'seconds': self.seconds}
        if self.runs:
            known = {'mean': self.mean, 'mean_size': float(np.abs(self.errors).mean())}
            found |= known | {'scale': self.scale}
        if len(self.runs) > 1:
            found |= {'interval': list(self.interval), 'bound': self.bound}
        runs = [dataclasses.asdict(run) | {'error': run.error} for run in self.runs]
        return found | {'runs': runs}


def _straight_runs(recording: Recording, seconds: float, base: str) -> Iterator[StraightRun]:
    evidence = Evidence(recording, base)
    fixes, truth = evidence.fixes, evidence.truth
    if fixes is None or truth is None:
        return
    frame = local_frame_at_first_fix(fixes)
    place = frame.to_enu(fixes.latitude, fixes.longitude, fixes.altitude)[:, :2]
    zero = truth.stamp_ns[0]
    when, stamps = (fixes.stamp_ns - zero) * 1e-9, (truth.stamp_ns - zero) * 1e-9
    driven = speed(truth.linear_velocity, truth.orientation)
    way = np.append(0.0, np.cumsum(np.diff(stamps) * (driven[1:] + driven[:-1]) / 2.0))
    variance = fixes.position_covariance[:, (0, 1), (0, 1)].mean(axis=1)
    first, half_step = 0, float(np.median(np.diff(when))) / 2.0
    if seconds <= 3.0 * half_step:
        problem = f'{seconds:g} s is no run of fixes that come every {2.0 * half_step:g} s'
        raise ParameterError('--straight', '', f'{problem}; must be longer')
    while True:
        last = int(np.searchsorted(when, when[first] + seconds - half_step))
        if last >= len(when):
            return
        line = float(np.hypot(*(place[last] - place[first])))
        time = float(when[last] - when[first])
        corners = place[np.linspace(first, last, _PARTS + 1).round().astype(int)]
        steps = float(np.hypot(*np.diff(corners, axis=0).T).sum())
        if line < _SLOWEST * time or steps > _LONGEST * line:
            # Further on by a part of it, what follows may be straight.
            first = max(int(np.searchsorted(when, when[first] + time / _PARTS)), first + 1)
            continue
        covered = float(np.diff(np.interp(when[[first, last]], stamps, way))[0])
        deviation = math.sqrt(max(float(variance[first] + variance[last]), 0.0)) / time
        yield StraightRun(
            recording.name, float(when[first]), time, covered / time, line / time, deviation
        )
        first = last
