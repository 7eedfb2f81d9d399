# SPDX-License-Identifier: Apache-2.0
"""A GPS from recordings with standstills: its error, its stated covariance, and models of both."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

import numpy as np

from sim2real_eval.characterization import findings
from sim2real_eval.characterization.markov_fit import MarkovFit, fit_markov
from sim2real_eval.characterization.screening import resolution
from sim2real_eval.characterization.signals import SignalFileError
from sim2real_eval.characterization.standstill_fixes import (
    StandingOptions,
    StandingRun,
    standing_runs,
)
from sim2real_eval.characterization.stated_covariance import (
    CovarianceConsistency,
    StatedFit,
    covariance_consistency,
    fit_stated,
)
from sim2real_eval.characterization.walk_fit import WalkFit, even_errors, fit_walk
from sim2real_eval.common.errors import JudgeError
from sim2real_eval.common.findings import Finding
from sim2real_eval.recording.frames import FrameTree
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.measurements import FloatArray
from sim_sensors.gps.gps import GpsModel
from sim_sensors.gps.position_noise import GaussianNoise, GnssNoise, PositionNoise

AXIS_NAMES = ('east', 'north', 'up')


@dataclasses.dataclass(frozen=True, eq=False)
class GpsResult:
    """What was found of one receiver.

    Attributes
    ----------
    runs : tuple of StandingRun
    rate : float
        Hz.
    frame : str
        Of the fixes.
    lever_arm : (3,) float or None
        Of the antenna in the base frame, m; None: the recording does not tell.
    axes : tuple of 3 MarkovFit
        East, north, up.
    walk : WalkFit
    stated : StatedFit
    consistency : tuple of CovarianceConsistency
        Horizontal and vertical.
    notes : tuple of Finding
    """

    runs: tuple[StandingRun, ...]
    rate: float
    frame: str
    lever_arm: FloatArray | None
    axes: tuple[MarkovFit, MarkovFit, MarkovFit]
    walk: WalkFit
    stated: StatedFit
    consistency: tuple[CovarianceConsistency, ...]
    notes: tuple[Finding, ...]

    @property
    def seconds(self) -> float:
        """Time at standstill."""
        return sum(run.seconds for run in self.runs)

    @property
    def rms(self) -> FloatArray:
        """Root mean square of the errors about their means, (3,) m."""
        error = np.concatenate([run.error for run in self.runs])
        return np.asarray(np.sqrt(np.mean(error**2, axis=0)), np.float64)

    def noises(self) -> dict[str, PositionNoise]:
        """Return the noise models by the name of their file: `gps` (white and Gauss-Markov),
        `gps_gaussian`, `gps_random_walk` (Ch:RW).
        """
        wanders = [fit.walk.observable for fit in self.axes]
        gnss = GnssNoise(
            white_std=_three(fit.white.value for fit in self.axes),
            gauss_markov_std=_three(
                fit.wander.value if seen else 0.0
                for fit, seen in zip(self.axes, wanders, strict=True)
            ),
            gauss_markov_time=_three(
                fit.time.value if seen else 100.0
                for fit, seen in zip(self.axes, wanders, strict=True)
            ),
        )
        found: dict[str, PositionNoise] = {
            'gps': gnss,
            'gps_gaussian': GaussianNoise(
                std=_three(
                    fit.total.value if fit.total.observable else float(rms)
                    for fit, rms in zip(self.axes, self.rms, strict=True)
                )
            ),
        }
        if self.walk.speed_limit.observable:
            found['gps_random_walk'] = self.walk.noise(self.rate)
        return found

    def models(self) -> dict[str, GpsModel]:
        """Return the models by the name of their file; they differ in the noise only."""
        base = GpsModel(
            rate=self.rate, frame_id=self.frame or 'gps_link', covariance=self.stated.model()
        )
        if self.lever_arm is not None:
            base = base.mounted(self.lever_arm)
        return {
            name: dataclasses.replace(base, noise=noise) for name, noise in self.noises().items()
        }


def _three(values: Iterable[float]) -> tuple[float, float, float]:
    east, north, up = values
    return east, north, up


def mounting(
    recording: Recording, frame: str, base: str = 'base_link'
) -> tuple[tuple[FloatArray, FloatArray] | None, list[Finding]]:
    """Return rotation (3, 3) and position (3,) of a sensor frame in the base frame, and a note.

    None where the recording does not tell; the note says so where it has other transforms.
    """
    if not recording.transforms:
        return None, []
    try:
        return FrameTree(recording.transforms).lookup(base, frame, 'sensor'), []
    except JudgeError:
        return None, [findings.NO_LEVER_ARM(frame=frame, base=base)]


def characterize_gps(
    recordings: Sequence[Recording],
    *,
    k: float = 0.02,
    base: str = 'base_link',
    options: StandingOptions | None = None,
) -> GpsResult:
    """Characterise the receiver of one or several recordings.

    Parameters
    ----------
    recordings : sequence of Recording
        Those that never stand still are left out, with a note.
    k : float
        Deviation that HDOP 1 stands for, m.
    base : str
        Frame of the lever arm.
    options : StandingOptions, optional

    Raises
    ------
    SignalFileError
        When no recording has a standstill: the reason of the first.
    """
    runs: list[StandingRun] = []
    used: list[Recording] = []
    notes: list[Finding] = []
    problems: list[SignalFileError] = []
    for recording in recordings:
        try:
            found, said = standing_runs(recording, options)
        except SignalFileError as error:
            problems.append(error)
            continue
        runs += found
        used.append(recording)
        notes += [note.of(recording.name) if len(recordings) > 1 else note for note in said]
    if not used:
        raise problems[0]
    notes += [findings.LEFT_OUT(sensor='GPS', problem=str(problem)) for problem in problems]
    fixes = used[0].gps
    assert fixes is not None
    valid = fixes.take(fixes.status >= 0)
    place, unknown = mounting(used[0], fixes.frame, base)
    notes += unknown
    axes = tuple(fit_markov([(run.time, run.error[:, axis]) for run in runs]) for axis in range(3))
    _, period = even_errors(runs)
    longest = max(runs, key=lambda run: len(run.time))
    for name, column in zip(AXIS_NAMES, longest.error.T, strict=True):
        # Degrees rounded to 1e-7 are steps of a centimetre; their last bits differ.
        step = resolution(np.round(column, 6))
        if step > 2.0 * float(column.std()):
            notes.append(findings.MOSTLY_ROUNDING(name, step=step))
        elif step > 0.5 * float(column.std()):
            notes.append(findings.ROUNDING(name, step=step, noise=step / math.sqrt(12.0)))
    seconds = sum(run.seconds for run in runs)
    for name, fit in zip(AXIS_NAMES, axes, strict=True):
        if not fit.white.observable and not fit.walk.observable:
            notes.append(findings.FIXES_CONSTANT(name))
        if fit.walk.observable and not fit.time.observable:
            values = {'lower': fit.time.lower, 'wander': fit.wander.value, 'time': fit.time.value}
            notes.append(findings.WANDER_UNBOUND(name, seconds=seconds, **values))
    return GpsResult(
        runs=tuple(runs),
        rate=float(f'{1.0 / period:.4g}'),
        frame=fixes.frame,
        lever_arm=None if place is None else place[1],
        axes=axes,  # type: ignore[arg-type]
        walk=fit_walk(runs),
        stated=fit_stated(valid, k),
        consistency=(
            covariance_consistency(runs, axes, 'horizontal, about the mean', (0, 1)),
            covariance_consistency(runs, axes, 'vertical, about the mean', (2,)),
        ),
        notes=tuple(notes),
    )
