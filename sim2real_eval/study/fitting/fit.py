# SPDX-License-Identifier: Apache-2.0
"""A fit from recordings to a model: judge, search, validate, and say what is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sim2real_eval.common.errors import FitError
from sim2real_eval.common.findings import Finding, FindingKind, by_severity, merge_findings
from sim2real_eval.common.workers import Workers
from sim2real_eval.recording.reading import Source
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.study import findings
from sim2real_eval.study.options import FitOptions
from sim2real_eval.study.run_plan import Judging
from sim_sensors.core.measurements import IntArray
from sim_sensors.core.seeding import stream
from .evaluations import Evaluations, RealRuns, judge_real
from .objective import METRICS
from .search import default_budget, search
from .tuned import Tuned
from .validation import (
    BEFORE,
    HELD_OUT,
    LEAST_RECORDINGS,
    Identified,
    Validation,
    identify,
    validate,
)


def deal_folds(scenarios: Sequence[str], folds: int, seed: int) -> list[IntArray]:
    """Return the recordings that each fold holds out.

    Those of a scenario, given for each recording, are shuffled and dealt in turn, each scenario
    going on where the one before ended: sizes differ by one at most, within every scenario and
    over all. There are at most as many folds as recordings, and none with fewer than two of
    either.
    """
    folds = min(folds, len(scenarios))
    if folds < 2:
        return []
    dealt: list[int] = []
    for scenario in dict.fromkeys(scenarios):
        own = [i for i, one in enumerate(scenarios) if one == scenario]
        order = stream(seed, 'fit', 'folds', scenario).permutation(len(own))
        dealt += [own[i] for i in order]
    return [np.array(sorted(dealt[fold::folds]), dtype=np.int64) for fold in range(folds)]


Progress = Callable[[int], Callable[[], None] | None]


@dataclasses.dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model, and how far it is to be believed.

    Attributes
    ----------
    options : FitOptions
    twin : Twin
        Sensors with the fitted parameters.
    parameters : tuple of Identified
    validation : Validation
    evaluations : Evaluations
        All candidates that were judged.
    folds : tuple of (m,) int
        Recordings that each fold holds out.
    error : float
        By how much the interpolated objective was wrong where it was last tried.
    notes : tuple of Finding
        What the user should know, most important first.
    """

    options: FitOptions
    twin: Twin
    parameters: tuple[Identified, ...]
    validation: Validation
    evaluations: Evaluations
    folds: tuple[np.ndarray, ...]
    error: float
    notes: tuple[Finding, ...]

    @property
    def real(self) -> RealRuns:
        """The recordings as judged."""
        return self.evaluations.real


def fit(
    sources: Sequence[Source],
    twin: Twin,
    tuned: tuple[Tuned, ...],
    judging: Judging,
    options: FitOptions | None = None,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Fit:
    """Tune parameters until simulated runs are scored as the real ones are.

    Raises Sim2RealError when no recording can be judged, or the model to start from cannot be on
    one.

    Parameters
    ----------
    sources : sequence of Source
        Real recordings with truth.
    twin : Twin
        Models to start from.
    judging : Judging
        Judge, metric, seed, repetitions; its `twins` do not count.
    jobs : int
        Processes; the result does not depend on it.
    progress : callable, optional
        Takes the number of tasks that come next and returns what is to be called after each.
    """
    options = options or FitOptions()
    budget = options.candidates or default_budget(len(tuned))
    least = 2 * len(tuned) + 6
    if budget < least:
        raise FitError(
            f'{budget} candidates for {len(tuned)} parameters are too few; must be {least} or more'
        )
    # A study of none: the real runs need no twins.
    told = progress or (lambda _: None)
    with Workers(jobs) as workers:
        # Before a thread shows progress: copies of this process need not load anything again.
        workers.start()
        real = judge_real(sources, judging, workers, progress=told(len(sources)))
        evaluations = Evaluations(real, twin, tuned, judging, workers)
        folds = deal_folds(real.scenarios, options.folds, judging.options.seed)
        everything = np.arange(len(real.names))
        objective = METRICS[options.metric]
        surface, error = search(
            evaluations,
            objective,
            [everything, *(np.setdiff1d(everything, held) for held in folds)],
            budget=budget,
            seed=judging.options.seed,
            progress=told,
        )
    validation = validate(
        evaluations, options.metric, folds, options=options.uncertainty, seed=judging.options.seed
    )
    parameters = identify(
        surface,
        tuned,
        evaluations.units[validation.fitted],
        real.scenarios,
        repetitions=judging.options.repetitions,
        error=error,
        level=options.uncertainty.level,
        seed=judging.options.seed,
    )
    values = evaluations.values[validation.fitted]
    runs = [('real', notes) for notes in real.notes]
    runs += [('simulated', notes) for notes in evaluations.notes[validation.fitted]]
    return Fit(
        options,
        twin if validation.fitted == 0 else evaluations.twin(values),
        parameters,
        validation,
        evaluations,
        tuple(folds),
        error,
        tuple(by_severity([*_notes(evaluations, parameters, validation), *merge_findings(runs)])),
    )


def _notes(
    evaluations: Evaluations, parameters: Sequence[Identified], validation: Validation
) -> list[Finding]:
    count = len(evaluations.real.names)
    scores = validation.scores
    gain = {'before': validation.before, 'after': validation.after}
    held_out = {**gain, 'given': scores.get(BEFORE), 'fitted': scores.get(HELD_OUT)}
    kinds: dict[str, tuple[FindingKind, dict[str, Any]]] = {
        'unchanged': (findings.UNCHANGED, {}),
        'better': (findings.BETTER, {**held_out, 'p': validation.p_value}),
        'over-fits': (findings.OVER_FITS, held_out),
        'unproven': (findings.UNPROVEN, {**held_out, 'p': validation.p_value}),
        'not validated': (findings.NOT_VALIDATED, {}),
    }
    kind, values = kinds[validation.verdict]
    notes = [kind(**values)]
    notes += [
        findings.NOT_IDENTIFIED(one.tuned.name, verdict=one.verdict)
        for one in parameters
        if one.verdict != 'identified'
    ]
    if count < LEAST_RECORDINGS:
        notes.append(findings.FEW_RECORDINGS(count=count))
    bad = int((~evaluations.usable).sum())
    if bad:
        notes.append(findings.CANDIDATES_LEFT_OUT(count=bad))
    return notes
