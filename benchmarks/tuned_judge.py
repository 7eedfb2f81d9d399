# SPDX-License-Identifier: Apache-2.0
"""The judge `clean` tuned to recordings by the losses of `sim2real tune`, in few evaluations."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize

import sim2real_eval as s2r
from sim2real_eval.benches.tuning.evaluations import JudgeLosses, TuningTask
from sim2real_eval.benches.tuning.parameters import set_parameters, tunables
from sim2real_eval.judge.setup import JudgeSetup
from sim2real_eval.recording.reading import RecordingSource
from sim2real_eval.recording.recording import Recording

PARAMETERS = ('process_noise_covariance.velocity', 'process_noise_covariance.acceleration')
RMS = ('speed', 'position')
WARMUP_S = 5.0
_LEVELS = (-3.5, -2.0, -1.0, 0.5)  # decades of each that are tried before the simplex


@dataclasses.dataclass(frozen=True)
class Held(RecordingSource):
    """A recording in memory."""

    recording: Recording | None = None

    def expected_name(self) -> str:
        assert self.recording is not None
        return self.recording.name

    def read(self) -> Recording:
        assert self.recording is not None
        return self.recording


def at_start(name: str) -> JudgeSetup:
    """Return a judge that starts with the true heading of the drives, which is east."""
    return JudgeSetup.load(name).with_start(start_heading=0.0)


class TunedJudge:
    """Process noise and trust in the fixes that make the speed error of recordings least."""

    def __init__(self, recordings: Sequence[Recording], evaluations: int) -> None:
        self._start = at_start('clean')
        self._parameters = tunables(self._start, PARAMETERS)
        made = self._evaluations(recordings)

        def loss(decades: Any) -> float:
            return float(np.mean(made.losses(self._values(decades))))

        first = np.array(min(product(_LEVELS, repeat=len(PARAMETERS)), key=loss))
        simplex = np.vstack([first, first + 0.5 * np.eye(len(first))])
        options = {'initial_simplex': simplex, 'maxfev': evaluations, 'xatol': 0.05, 'fatol': 1e-4}
        best = minimize(loss, first, method='Nelder-Mead', options=options)
        self._decades = best.x

    @property
    def values(self) -> dict[str, float]:
        """Factors by parameter."""
        return dict(zip(PARAMETERS, self._values(self._decades), strict=True))

    def errors(self, recordings: Sequence[Recording]) -> dict[str, float]:
        """Return the mean RMS errors, m/s and m, in recordings."""
        found = self._evaluations(recordings).all_losses(self._values(self._decades))
        return {kind: float(found[kind].mean()) for kind in RMS}

    def scores(self, recordings: Sequence[Recording]) -> list[Any]:
        """Return the scores of recordings by the tuned judge."""
        judge = set_parameters(self._start, self._parameters, self._values(self._decades))
        return [s2r.run_judge(one, judge).score for one in recordings]

    def _values(self, decades: Any) -> tuple[float, ...]:
        return tuple(one.value(float(x)) for one, x in zip(self._parameters, decades, strict=True))

    def _evaluations(self, recordings: Sequence[Recording]) -> JudgeLosses:
        sources = tuple(Held('', recording=one) for one in recordings)
        task = TuningTask(sources, self._start, self._parameters, 'speed', 1, WARMUP_S)
        return JudgeLosses(task)
