# SPDX-License-Identifier: Apache-2.0
"""The section of a page about one judge: rankings, plots with a line on how to read them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from sim2real_eval.metrics.distances import POOLED
from sim2real_eval.report.histogram_axis import ENTROPY, RMSE
from sim2real_eval.report.page.data_table import DataTable
from sim2real_eval.report.page.evidence import gather
from sim2real_eval.report.page.figure import Multiples
from sim2real_eval.report.page.honesty_plots import covariance_consistency
from sim2real_eval.report.page.ranking import Ranking, ranking
from sim2real_eval.report.page.scale import MINUS
from sim2real_eval.report.page.score_plots import histograms
from sim2real_eval.report.page.score_tables import by_scenario, consistency
from sim2real_eval.report.page.spectrum_plots import spectra
from sim2real_eval.report.page.speed_plots import speed_plots, track_plots
from sim2real_eval.report.page.standing import Standing
from sim2real_eval.study import StudyOutcome

__all__ = ['Chapter', 'JudgeSection', 'RankingView', 'judge_section', 'ranking_view']


@dataclasses.dataclass(frozen=True, eq=False)
class RankingView:
    """A ranking and what stands below it."""

    standing: Standing
    ranking: Ranking
    by_scenario: DataTable | None
    agreement: str

    @property
    def level(self) -> str:
        """Level of the intervals."""
        return f'{100 * self.standing.known.options.level:g} %'


@dataclasses.dataclass(frozen=True)
class Chapter:
    """Plots of one kind, with how to read them."""

    title: str
    text: str
    figures: Sequence[Multiples]


@dataclasses.dataclass(frozen=True, eq=False)
class JudgeSection:
    """All about one judge; `id` is where links lead."""

    id: str
    name: str
    about: str
    rankings: Sequence[RankingView]
    chapters: Sequence[Chapter]
    consistency: Sequence[DataTable]
    missing: Sequence[str]

    consistency_text = (
        '1: the judge is consistent. Above, it is overconfident; below, '
        'underconfident. What matters here is whether simulated sensors make it as '
        'sure as real ones do.'
    )


def ranking_view(standing: Standing, colours: Mapping[str, str]) -> RankingView:
    """Return a ranking with its table by scenario and how it agrees with the published one."""
    said = [
        f'{"pooled" if name == POOLED else name} {tau:+.2f}'.replace('-', MINUS)
        for name in standing.scenarios
        if (tau := standing.agreement(name)) is not None
    ]
    agreement = (
        f'Kendall rank correlation with the published order: {", ".join(said)} '
        '(1 the same order, \N{MINUS SIGN}1 the reverse).'
        if said
        else ''
    )
    return RankingView(
        standing, ranking(standing, colours), by_scenario(standing, colours), agreement
    )


def judge_section(
    outcome: StudyOutcome,
    judge: str,
    views: Sequence[RankingView],
    colours: Mapping[str, str],
    *,
    number: int,
    synthetic: bool,
) -> JudgeSection:
    """Return the section; reads the signals of all runs of the judge.

    Parameters
    ----------
    outcome : StudyOutcome
    judge : str
    views : sequence of RankingView
        Of this judge.
    colours : mapping
        `real` and every model to the class of its colour.
    number : int
        Of the section.
    synthetic : bool
        Whether what counts as real is a stand-in.
    """
    evidence = gather(outcome, judge)
    component = str(outcome.record.get('component', 'horizontal'))
    real = 'the stand-in' if synthetic else 'the real sensors'
    groups = list(dict.fromkeys(run.group for run in outcome.runs if run.key.judge == judge))
    parts = {group: outcome.part(group) for group in groups}
    seen = {group: evidence.part(group) for group in groups}

    def of_groups(draw: Callable[[str], Multiples]) -> list[Multiples]:
        # Recordings of several conditions or surfaces would be no one distribution.
        return [dataclasses.replace(draw(group), heading=group) for group in groups]

    chapters = [
        Chapter(
            'RMSE of speed',
            f'Runs by RMSE of {component} speed: colour simulated, grey {real}. W1 RMSE is how '
            'far the colour has to be moved to lie on the grey.',
            of_groups(lambda group: histograms(parts[group], judge, RMSE, colours)),
        ),
        Chapter(
            'Wiener entropy difference',
            'Runs by how much flatter the spectrum of the estimated speed is than that of the '
            'true speed; the other half of VEPD.',
            of_groups(lambda group: histograms(parts[group], judge, ENTROPY, colours)),
        ),
        Chapter(
            'Speed',
            f'True (thin) and estimated {component} speed of the run with the median RMSE from '
            f'{real} in each scenario, and of the models on the same motion.',
            speed_plots(evidence, colours),
        ),
        Chapter(
            'Spectrum of the speed error',
            f'Median over runs and where the middle 80 % of them lie; dashed and grey: {real}.',
            of_groups(lambda group: spectra(seen[group], colours)),
        ),
        Chapter(
            'Tracks',
            'True (thin) and estimated positions of the same runs, on a plan; metres from the '
            'start, east to the right, north upwards.',
            track_plots(evidence, colours),
        ),
        Chapter(
            'Stated against true error: position',
            'A dot per run: root mean square of the stated horizontal standard deviation and of '
            'the error. On the dashed line the judge is consistent, above overconfident; '
            'pale dots are those of all other panels.',
            of_groups(lambda group: covariance_consistency(seen[group], 'position', colours)),
        ),
        Chapter(
            'Stated against true error: velocity',
            'The same of the body velocity, forward and to the left.',
            of_groups(lambda group: covariance_consistency(seen[group], 'velocity', colours)),
        ),
    ]
    record = next(
        (
            one
            for one in outcome.record.get('judges') or []
            if isinstance(one, Mapping) and one.get('label') == judge
        ),
        {},
    )
    return JudgeSection(
        id=f'judge-{number}',
        name=judge,
        about=str(record.get('about') or ''),
        rankings=[view for view in views if view.standing.judge == judge],
        chapters=[
            chapter for chapter in chapters if any(block.panels for block in chapter.figures)
        ],
        consistency=[
            table
            for group in groups
            if (table := consistency(outcome, judge, group, colours, synthetic=synthetic))
        ],
        missing=evidence.missing[:3],
    )
