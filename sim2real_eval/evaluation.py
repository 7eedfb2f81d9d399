# SPDX-License-Identifier: Apache-2.0
"""Scored runs, and VEPD between two sets of them with its uncertainty: results for Python."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim2real_eval.common.findings import (
    Finding,
    Severity,
    by_severity,
    merge_findings,
    to_records,
)
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.metrics.distances import Vepd
from sim2real_eval.metrics.distances import vepd as distance_of
from sim2real_eval.metrics.options import MetricError, MetricOptions
from sim2real_eval.metrics.scores import RunScore, advice, prepare, score_run
from sim2real_eval.metrics.series import VelocitySeries
from sim2real_eval.metrics.uncertainty.assessment import uncertainty
from sim2real_eval.metrics.uncertainty.motions import ScoredRuns
from sim2real_eval.metrics.uncertainty.result import DistanceUncertainty, UncertaintyOptions
from sim_sensors.core.errors import Sim2RealError, whole_number

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MODEL = 'simulated'


@dataclasses.dataclass(frozen=True, eq=False)
class EvaluatedRun:
    """What a judge made of one recording, and how well; see `run_judge`.

    Attributes
    ----------
    name, scenario : str
        Those of the recording. Real and simulated runs of one name are paired by `vepd`.
    series : VelocitySeries
        Estimated and true speed over time, m/s and s; the warm-up left out.
    score : RunScore
        RMSE (m/s) and difference of Wiener entropy.
    metric : MetricOptions
        How it was scored; runs that are compared have the same.
    judge : str
        Who estimated; empty for series that come from elsewhere.
    estimate : JudgedRun or None
        What the judge published; None for series that come from elsewhere.
    notes : tuple of Finding
        What the user should know of recording, judge and score.

    Examples
    --------
    Series from an estimator of one's own:

    >>> from sim2real_eval.metrics import VelocitySeries
    >>> series = VelocitySeries([0.0, 5.0, 10.0], [1.0, 2.1, 3.0], [0.0, 10.0], [1.0, 3.0])
    >>> print(EvaluatedRun.of_series(series, 'lap1', 'line'))
    lap1 (line): RMSE 0.211 m/s, entropy difference 0.1191
    """

    name: str
    scenario: str
    series: VelocitySeries
    score: RunScore
    metric: MetricOptions = dataclasses.field(default_factory=MetricOptions)
    judge: str = ''
    estimate: JudgedRun | None = None
    notes: tuple[Finding, ...] = ()

    @classmethod
    def of_series(
        cls,
        series: VelocitySeries,
        name: str,
        scenario: str = 'default',
        *,
        metric: MetricOptions | None = None,
    ) -> EvaluatedRun:
        """Score estimated and true speed, wherever they come from.

        Raises
        ------
        Sim2RealError
            When the series cannot be scored.
        """
        metric = metric or MetricOptions()
        kept = prepare(series, metric)
        # What `prepare` did must not be done twice.
        score = score_run(kept, dataclasses.replace(metric, warmup=0.0, rezero='none'))
        return cls(name, scenario, kept, score, metric, notes=tuple(advice(series, metric)))

    def __str__(self) -> str:
        return (
            f'{self.name} ({self.scenario}): RMSE {self.score.rmse:.4g} m/s, '
            f'entropy difference {self.score.entropy_difference:.4g}'
        )


@dataclasses.dataclass(frozen=True, eq=False)
class VepdResult:
    """VEPD between real and simulated runs, and how well it is known; see `vepd`.

    Attributes
    ----------
    distance : Vepd
        Of the runs as they are, and its two parts.
    uncertainty : DistanceUncertainty
        Interval, null distribution and p-value.
    level : float
        Of the interval.
    real, simulated : tuple of EvaluatedRun
    notes : tuple of Finding
        What so few runs cannot tell, and what the notes of the runs say, the most severe first.

    Examples
    --------
    >>> from sim2real_eval.metrics import VelocitySeries
    >>> series = VelocitySeries([0.0, 5.0, 10.0], [1.0, 2.1, 3.0], [0.0, 10.0], [1.0, 3.0])
    >>> run = EvaluatedRun.of_series(series, 'lap1')
    >>> result = vepd([run], [run])
    >>> result.vepd, result.interval, len(result.to_dict()['runs'])
    (0.0, None, 2)
    """

    distance: Vepd
    uncertainty: DistanceUncertainty
    level: float
    real: tuple[EvaluatedRun, ...]
    simulated: tuple[EvaluatedRun, ...]
    notes: tuple[Finding, ...]

    @property
    def vepd(self) -> float:
        """The distance: mean of `w_rmse` (m/s) and `w_entropy` (dimensionless)."""
        return self.distance.vepd

    @property
    def interval(self) -> tuple[float, float] | None:
        """Interval of the distance between the processes; None with too few motions."""
        low, high = self.uncertainty.low, self.uncertainty.high
        return None if low is None or high is None else (low, high)

    @property
    def p_value(self) -> float | None:
        """Of so large a distance from a model with the real process; None with too few."""
        return self.uncertainty.p_value

    def __str__(self) -> str:
        seen, interval = self.distance, self.interval
        between = 'unknown' if interval is None else f'{interval[0]:.4g} to {interval[1]:.4g}'
        p_value = 'unknown' if self.p_value is None else f'{self.p_value:.3g}'
        lines = [
            f'VEPD {seen.vepd:.4g}: {seen.n_real} real, {seen.n_sim} simulated runs',
            f'  W1 of RMSE          {seen.w_rmse:.4g} m/s',
            f'  W2 of entropy       {seen.w_entropy:.4g}',
            f'  {self.level:.0%} interval        {between}',
            f'  p-value             {p_value}',
        ]
        shown = [
            note for note in self.notes if note.severity is Severity.DECISIVE or not note.runs
        ]
        left = len(self.notes) - len(shown)
        more = [f'  {left} more in .notes'] if left else []
        return '\n'.join([*lines, *(f'  note: {note}' for note in shown), *more])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON: distance, uncertainty, notes and a row per run."""
        return {
            **dataclasses.asdict(self.distance),
            'level': self.level,
            'uncertainty': dataclasses.asdict(self.uncertainty),
            'notes': to_records(self.notes),
            'runs': self._rows(),
        }

    def to_dataframe(self) -> pandas.DataFrame:
        """Return one row per run: what it is, and its score.

        Raises
        ------
        Sim2RealError
            Where pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise Sim2RealError(
                'to_dataframe needs pandas, which is not installed; '
                "pip install 'sim2real_sensors[pandas]', or take to_dict()"
            ) from None
        return pandas.DataFrame(self._rows())

    def plot(self, target: str | Path | Axes | None = None) -> Figure:
        """Draw each run by its RMSE and its difference of entropy.

        Parameters
        ----------
        target : str, Path or Axes, optional
            PNG file to write, or axes to draw on; by default a new figure.
        """
        from matplotlib.axes import Axes

        from sim2real_eval.report.palette import REAL_COLOUR, model_colours
        from sim2real_eval.report.style import new_figure, save_png, tidy

        axes = target if isinstance(target, Axes) else new_figure(5.0, 3.6).add_subplot()
        for label, runs, colour, marker in (
            ('real', self.real, REAL_COLOUR, 'o'),
            ('simulated', self.simulated, model_colours([_MODEL])[_MODEL], '^'),
        ):
            axes.scatter(
                [run.score.rmse for run in runs],
                [run.score.entropy_difference for run in runs],
                label=f'{label} ({len(runs)})',
                color=colour,
                marker=marker,
                s=20,
            )
        axes.set_xlabel('RMSE of speed [m/s]', fontsize=9)
        axes.set_ylabel('Wiener entropy difference [1]', fontsize=9)
        axes.set_title(f'VEPD {self.vepd:.4g}', fontsize=10)
        axes.legend(fontsize=8, frameon=False)
        tidy(axes)
        figure = axes.get_figure(root=True)
        assert figure is not None
        if isinstance(target, str | Path):
            save_png(figure, target)
        return figure

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                'source': source,
                'recording': run.name,
                'scenario': run.scenario,
                **dataclasses.asdict(run.score),
            }
            for source, runs in (('real', self.real), (_MODEL, self.simulated))
            for run in runs
        ]


def vepd(
    real: Sequence[EvaluatedRun],
    simulated: Sequence[EvaluatedRun],
    *,
    options: UncertaintyOptions | None = None,
    seed: int = 0,
) -> VepdResult:
    """Return how far simulated runs are from real ones, and how well that is known.

    Parameters
    ----------
    real, simulated : sequence of EvaluatedRun
        Runs of one name follow the same motion and are paired.
    options : UncertaintyOptions, optional
        Number of resamples and level.
    seed : int
        Of the resamples.

    Raises
    ------
    MetricError
        When a side is no list of runs or has none, runs have different judges or were scored by
        different options, or two real runs have one name in one scenario.
    ParameterError
        For a seed that is no integer >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> from sim2real_eval.metrics import VelocitySeries
    >>> rng = np.random.default_rng(1)
    >>> time = np.arange(0.0, 20.0, 0.05)
    >>> truth = 1.0 - np.cos(time)
    >>> def runs(noise):
    ...     errors = noise * rng.standard_normal((8, len(time)))
    ...     series = [VelocitySeries(time, truth + error, time, truth) for error in errors]
    ...     return [EvaluatedRun.of_series(one, f'run{k}') for k, one in enumerate(series)]
    >>> result = vepd(runs(0.1), runs(0.2))
    >>> print(result)
    VEPD 0.09116: 8 real, 8 simulated runs
      W1 of RMSE          0.06592 m/s
      W2 of entropy       0.1164
      95% interval        0.08048 to 0.09977
      p-value             0.00781
    >>> result.to_dict()['n_real'], len(result.to_dict()['runs'])
    (8, 16)
    """
    options = options or UncertaintyOptions()
    whole_number('vepd', 'seed', seed, 0)
    for side in (real, simulated):
        if not isinstance(side, Sequence) or not all(
            isinstance(one, EvaluatedRun) for one in side
        ):
            raise MetricError(
                f'vepd: {reprlib.repr(side)} is not allowed; must be a list of EvaluatedRun, '
                'which run_judge makes of recordings'
            )
    made = [{'judge': run.judge, **run.metric.to_mapping()} for run in (*real, *simulated)]
    for key, value in made[0].items() if made else ():
        other = next((one[key] for one in made if one[key] != value), value)
        if other != value:
            problem = f'{key} is {value!r} in some runs and {other!r} in others'
            raise MetricError(f'vepd: {problem}; must be the same in all')
    names = [(run.scenario, run.name) for run in real]
    for scenario, name in names:
        if names.count((scenario, name)) > 1:
            raise MetricError(f'{name}: is the name of several real runs; must be of one')
    if not real or not simulated:
        raise MetricError(
            f'{len(real)} real and {len(simulated)} simulated runs; must be one or more of each'
        )
    distance = distance_of([run.score for run in real], [run.score for run in simulated])
    known = uncertainty(_scored(real), {_MODEL: _scored(simulated)}, options, seed=seed)
    about = merge_findings(
        (name, run.notes) for name, runs in (('real', real), (_MODEL, simulated)) for run in runs
    )
    notes = tuple(by_severity([*known.notes, *about]))
    return VepdResult(
        distance, known.of(_MODEL), options.level, tuple(real), tuple(simulated), notes
    )


def _scored(runs: Sequence[EvaluatedRun]) -> ScoredRuns:
    return ScoredRuns.of_scores(
        [run.score for run in runs], [run.name for run in runs], [run.scenario for run in runs]
    )
