# SPDX-License-Identifier: Apache-2.0
"""Uncertainty of the rows of a VEPD table: scenario by scenario, and pooled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sim2real_eval.common.findings import Finding
from sim2real_eval.common.tables import Field
from sim2real_eval.metrics.distances import POOLED, VEPD_COLUMNS, VepdRow
from sim2real_eval.metrics.published import SeriesVepd
from sim2real_eval.metrics.series_folder import REAL
from sim2real_eval.metrics.uncertainty.assessment import uncertainty
from sim2real_eval.metrics.uncertainty.motions import ScoredRuns
from sim2real_eval.metrics.uncertainty.result import Uncertainty, UncertaintyOptions

UNCERTAINTY_COLUMNS = (
    *VEPD_COLUMNS,
    'estimate',
    'low',
    'high',
    'null_median',
    'null_high',
    'p_value',
    'p_value_adjusted',
    'significance_groups',
)
"""Columns of vepd.csv: those of the table, then what `DistanceUncertainty` calls so."""


def uncertainty_by_scenario(
    real: ScoredRuns,
    sims: Mapping[str, ScoredRuns],
    options: UncertaintyOptions | None = None,
    *,
    seed: int = 0,
) -> dict[str, Uncertainty]:
    """Return the uncertainty of each scenario that both sides have, and pooled (`all`).

    Parameters
    ----------
    real, sims, options, seed
        As for `uncertainty`.

    Raises
    ------
    MetricError
        When there is nothing to compare.
    """
    found: dict[str, Uncertainty] = {}
    for scenario in dict.fromkeys(real.scenario):
        of_scenario = {model: runs.of_scenario(scenario) for model, runs in sims.items()}
        there = {model: runs for model, runs in of_scenario.items() if len(runs)}
        if there:
            found[scenario] = uncertainty(real.of_scenario(scenario), there, options, seed=seed)
    there = {model: runs for model, runs in sims.items() if len(runs)}
    alone = (
        len(found) == 1
        and len({*real.scenario, *(s for r in there.values() for s in r.scenario)}) == 1
    )
    found[POOLED] = (
        next(iter(found.values())) if alone else uncertainty(real, there, options, seed=seed)
    )
    return found


def series_uncertainty(
    result: SeriesVepd, options: UncertaintyOptions | None = None, *, seed: int = 0
) -> dict[str, Uncertainty]:
    """Return the uncertainty of a table from files.

    Whether runs of one number follow one motion, files do not say: they count as unpaired, which
    is right for independent runs and careful for others.
    """

    def scored(source: str) -> ScoredRuns:
        keys = [key for key in result.scores if key.source == source]
        return ScoredRuns.of_scores(
            [result.scores[key] for key in keys],
            # Models that were driven through the same runs stay comparable run by run.
            [
                f'{"real" if source == REAL else "simulated"} {key.scenario}_{key.run}'
                for key in keys
            ],
            [key.scenario for key in keys],
        )

    models = dict.fromkeys(row.model for row in result.rows)
    sims = {model: scored(model) for model in models}
    return uncertainty_by_scenario(scored(REAL), sims, options, seed=seed)


def uncertainty_fields(row: VepdRow, known: Mapping[str, Uncertainty]) -> tuple[Field, ...]:
    """Return the fields of a row in the order of `UNCERTAINTY_COLUMNS`."""
    one = known[row.scenario].of(row.model)
    return (
        *row.fields(),
        one.estimate,
        one.low,
        one.high,
        one.null_median,
        one.null_high,
        one.p_value,
        one.adjusted,
        one.significance_groups,
    )


def uncertainty_notes(known: Mapping[str, Uncertainty], scenarios: Sequence[str]) -> list[Finding]:
    """Return each finding once, with the scenarios that it concerns."""
    said: dict[Finding, list[str]] = {}
    for scenario in scenarios:
        for note in known[scenario].notes:
            said.setdefault(note, []).append(scenario)
    return [note.of(', '.join(where)) for note, where in said.items()]
