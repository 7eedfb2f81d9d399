# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The Python interface of `import sim2real_eval`: from a recording to VEPD in a few calls.

The functions are those that `sim2real vepd` and `sim2real study` call.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from sim2real_eval.common.findings import (
    Finding,
    Severity,
    by_severity,
    merge_findings,
    to_records,
)
from sim2real_eval.judge.estimate import JudgedRun
from sim2real_eval.judge.protocol import JUDGES, Judge, JudgeRequest, as_judge, load_judge
from sim2real_eval.metrics.interval import ScoredRuns
from sim2real_eval.metrics.options import MetricError, MetricOptions, UncertaintyOptions
from sim2real_eval.metrics.scores import RunScore, Vepd, advice, prepare, score_run
from sim2real_eval.metrics.scores import vepd as distance_of
from sim2real_eval.metrics.series import VelocitySeries, velocity_series
from sim2real_eval.metrics.uncertainty import DistanceUncertainty, uncertainty
from sim2real_eval.recording.drives import AUTO, NONE, DriveSpan, name_blocks
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording, require_recording
from sim2real_eval.recording.truth import true_heading
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.simulation.twin import REAL_SENSOR, Twin
from sim2real_eval.simulation.twin_maker import TwinMaker, make_twin_maker, synthetic_recording
from sim2real_eval.study.blocks import block_findings
from sim2real_eval.study.options import PROFILE
from sim2real_eval.study.outcome import StudyOutcome
from sim2real_eval.study.recordings import OFF_TICKS_NS
from sim_sensors.core.errors import ParameterError, Sim2RealError, check_whole_number
from sim_sensors.core.installation import pip_install
from sim_sensors.core.parameters import Parameters
from sim_sensors.core.registry import is_in_file
from sim_sensors.gps.gps import GpsModel, load_gps
from sim_sensors.imu.imu import ImuModel, load_imu
from sim_sensors.magnetometer.magnetometer import Magnetometer
from sim_sensors.motion.trajectory import Motion

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

M = TypeVar('M', bound=Parameters)

__all__ = [
    'EvaluatedRun',
    'MetricOptions',
    'Recording',
    'StudyOutcome',
    'UncertaintyOptions',
    'VepdResult',
    'read_recording',
    'run_judge',
    'run_study',
    'simulate',
    'vepd',
    'write_recording',
]


_MODEL = 'simulated'


@dataclasses.dataclass(frozen=True, eq=False)
class EvaluatedRun:
    """The scored estimate of one recording; see `run_judge`.

    Attributes
    ----------
    name, scenario : str
        Name of the recording and of its scenario. `vepd` pairs real and simulated runs with the
        same name.
    series : VelocitySeries
        Estimated and true speed over time, m/s and s, without the warm-up.
    score : RunScore
        RMSE (m/s) and difference of Wiener entropy.
    metric : MetricOptions
        Options of the score; compared runs must have the same.
    judge : str
        Name of the judge; empty for series from another estimator.
    estimate : JudgedRun or None
        Estimates of the judge; None for series from another estimator.
    notes : tuple of Finding
        Findings about the recording, the judge and the score.
    span : DriveSpan or None
        When and where the recording was made; None for series from another estimator.

    Examples
    --------
    A series from another estimator:

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
    span: DriveSpan | None = None

    @classmethod
    def of_series(
        cls,
        series: VelocitySeries,
        name: str,
        scenario: str = 'default',
        *,
        metric: MetricOptions | None = None,
    ) -> EvaluatedRun:
        """Score estimated and true speeds of any estimator.

        Raises
        ------
        Sim2RealError
            When the series cannot be scored.
        """
        metric = metric or MetricOptions()
        prepared = prepare(series, metric)
        # `prepare` has left out the warm-up and re-zeroed the speeds.
        score = score_run(prepared, dataclasses.replace(metric, warmup=0.0, rezero='none'))
        return cls(name, scenario, prepared, score, metric, notes=tuple(advice(series, metric)))

    def __str__(self) -> str:
        return (
            f'{self.name} ({self.scenario}): RMSE {self.score.rmse:.4g} m/s, '
            f'entropy difference {self.score.entropy_difference:.4g}'
        )


@dataclasses.dataclass(frozen=True, eq=False)
class VepdResult:
    """VEPD between real and simulated runs, and its uncertainty; see `vepd`.

    Attributes
    ----------
    distance : Vepd
        Distance between the runs, and its two parts.
    uncertainty : DistanceUncertainty
        Interval, null distribution and p-value.
    level : float
        Confidence level of the interval.
    real, simulated : tuple of EvaluatedRun
    notes : tuple of Finding
        Findings about the statistics and about the runs, the most severe first.

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
        """Interval of the distance between the two processes; None with too few motions."""
        low, high = self.uncertainty.low, self.uncertainty.high
        return None if low is None or high is None else (low, high)

    @property
    def p_value(self) -> float | None:
        """Probability of a distance at least this large if the model were identical to reality.

        It is None with too few motions.
        """
        return self.uncertainty.p_value

    def __str__(self) -> str:
        distance, interval = self.distance, self.interval
        bounds = 'unknown' if interval is None else f'{interval[0]:.4g} to {interval[1]:.4g}'
        p_value = 'unknown' if self.p_value is None else f'{self.p_value:.3g}'
        lines = [
            f'VEPD {distance.vepd:.4g}: {distance.n_real} real, {distance.n_sim} simulated runs',
            f'  W1 of RMSE          {distance.w_rmse:.4g} m/s',
            f'  W2 of entropy       {distance.w_entropy:.4g}',
            f'  {self.level:.0%} interval        {bounds}',
            f'  p-value             {p_value}',
        ]
        notes = [
            note for note in self.notes if note.severity is Severity.DECISIVE or not note.runs
        ]
        count = len(self.notes) - len(notes)
        more = [f'  {count} more in .notes'] if count else []
        return '\n'.join([*lines, *(f'  note: {note}' for note in notes), *more])

    def to_dict(self) -> dict[str, Any]:
        """Return distance, uncertainty, notes and a row per run as plain values for JSON."""
        return {
            **dataclasses.asdict(self.distance),
            'level': self.level,
            'uncertainty': dataclasses.asdict(self.uncertainty),
            'notes': to_records(self.notes),
            'runs': self._rows(),
        }

    def to_dataframe(self) -> pandas.DataFrame:
        """Return a table with the score of each run.

        Raises
        ------
        Sim2RealError
            When pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise Sim2RealError(
                'to_dataframe needs pandas, which is not installed; '
                f'{pip_install("pandas")}, or take to_dict()'
            ) from None
        return pandas.DataFrame(self._rows())

    def plot(self, target: str | Path | Axes | None = None) -> Figure:
        """Plot the entropy difference of each run over its RMSE.

        Parameters
        ----------
        target : str, Path or Axes, optional
            PNG file to write, or axes to draw on; by default a new figure.
        """
        from matplotlib.axes import Axes

        from sim2real_eval.report.run_plots import draw_scores
        from sim2real_eval.report.style import new_figure, save_png

        axes = target if isinstance(target, Axes) else new_figure(5.0, 3.6).add_subplot()
        scores = [[run.score for run in runs] for runs in (self.real, self.simulated)]
        draw_scores(axes, scores[0], {_MODEL: scores[1]}, f'VEPD {self.vepd:.4g}')
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
    block: Literal['auto', 'none'] = 'auto',
) -> VepdResult:
    """Compute VEPD between real and simulated runs, and its uncertainty.

    Parameters
    ----------
    real, simulated : sequence of EvaluatedRun
        Runs; those with the same name and scenario follow the same motion and are paired.
    options : UncertaintyOptions, optional
        Number of resamples and confidence level of the interval.
    seed : int
        Seed of the resampling.
    block : {'auto', 'none'}
        Whether recordings of one drive are recognised and resampled together, as in
        `sim2real vepd`.

    Raises
    ------
    MetricError
        When a side is not a list of one or more runs, the runs have different judges or score
        options, or two real runs of a scenario have the same name.
    ParameterError
        When the seed is not an integer >= 0, or `block` is neither of the two.

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
    ...     return [EvaluatedRun.of_series(speeds, f'run{k}') for k, speeds in enumerate(series)]
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
    check_whole_number('vepd', 'seed', seed, 0)
    if block not in (AUTO, NONE):
        raise ParameterError('vepd', 'block', f'{block!r} is not allowed; must be auto or none')
    for side in (real, simulated):
        if not isinstance(side, Sequence) or not all(
            isinstance(run, EvaluatedRun) for run in side
        ):
            raise MetricError(
                f'vepd: {reprlib.repr(side)} is not allowed; must be a list of EvaluatedRun, '
                'as returned by run_judge'
            )
    settings = [{'judge': run.judge, **run.metric.to_mapping()} for run in (*real, *simulated)]
    for key, value in settings[0].items() if settings else ():
        different = [setting[key] for setting in settings if setting[key] != value]
        if different:
            problem = f'{key} is {value!r} in some runs and {different[0]!r} in others'
            raise MetricError(f'vepd: {problem}; must be the same in all')
    names = [(run.scenario, run.name) for run in real]
    for (_, name), count in Counter(names).items():
        if count > 1:
            raise MetricError(f'{name}: several real runs have this name; rename one')
    if not real or not simulated:
        raise MetricError(
            f'{len(real)} real and {len(simulated)} simulated runs; must be at least one of each'
        )
    distance = distance_of([run.score for run in real], [run.score for run in simulated])
    spans = [run.span if block == AUTO else None for run in real]
    blocks = dict(zip(names, name_blocks([run.name for run in real], spans), strict=True))
    result = uncertainty(
        _scored_runs(real, blocks), {_MODEL: _scored_runs(simulated, blocks)}, options, seed=seed
    )
    run_notes = merge_findings(
        (name, run.notes) for name, runs in (('real', real), (_MODEL, simulated)) for run in runs
    )
    drives = block_findings([run.name for run in real], [*blocks.values()])
    notes = tuple(by_severity([*result.notes, *drives, *run_notes]))
    return VepdResult(
        distance, result.model(_MODEL), options.level, tuple(real), tuple(simulated), notes
    )


def _scored_runs(
    runs: Sequence[EvaluatedRun], blocks: Mapping[tuple[str, str], str]
) -> ScoredRuns:
    scored = ScoredRuns.of_scores(
        [run.score for run in runs], [run.name for run in runs], [run.scenario for run in runs]
    )
    # A simulated run that follows the motion of a real one belongs to its block.
    names = tuple(blocks.get((run.scenario, run.name), '') for run in runs)
    return dataclasses.replace(scored, block=names if any(names) else ())


def simulate(
    recording: Recording | Motion,
    gps: str | Path | GpsModel | None = None,
    imu: str | Path | ImuModel | None = None,
    *,
    mag: str | Path | Magnetometer | None = None,
    seed: int = 0,
    repetition: int = 1,
    match_rates: bool = False,
    base_frame: str = 'base_link',
    name: str = 'drive',
    scenario: str = 'default',
) -> Recording:
    """Return a recording whose sensors are replaced by simulated ones on the same true motion.

    Parameters
    ----------
    recording : Recording or Motion
        Recording with ground truth, whose time span the result has; or a motion, from which a
        recording is made that stands in for a real one.
    gps, imu : str, Path or model, optional
        Name of a shipped model, YAML file or model; None or `real` keeps the recorded sensor.
    mag : str, Path or model, optional
        Magnetometer, given in the same way. Its magnetic field is the first one that the recorded
        magnetometer measured, or else that of the default world.
    seed : int
        Seed of all random draws.
    repetition : int
        Number of the noise realisation, from 1.
    match_rates : bool
        Whether simulated sensors run at the rates of the real ones instead of those of their
        models.
    base_frame : str
        Body frame of the robot.
    name, scenario : str
        Name and scenario of a recording that is made from a motion; ignored for a recording.

    Raises
    ------
    Sim2RealError
        When a model is unknown or wrong, no model is given, a seed or repetition is out of range,
        or the recording has no ground truth.

    Examples
    --------
    >>> from sim_sensors import motion_of
    >>> drive = simulate(motion_of('line', duration=2.0), gps='baseline', imu='ideal')
    >>> twin = simulate(drive, gps='ch_gauss', seed=7)
    >>> len(twin.gps), bool((twin.imu.stamp_ns == drive.imu.stamp_ns).all())
    (21, True)
    """
    if isinstance(recording, str | Path):
        raise Sim2RealError(
            f'simulate: {str(recording)!r} is not allowed; must be a Recording, which '
            'read_recording returns, or a motion'
        )
    check_whole_number('simulate', 'seed', seed, 0)
    check_whole_number('simulate', 'repetition', repetition, 1)
    magnetometer = _model(mag, Magnetometer.load)
    twin = Twin(
        'simulated',
        gps=_model(gps, load_gps),
        imu=_model(imu, load_imu),
        others={} if magnetometer is None else {'mag': magnetometer},
    )
    if not twin.models:
        raise Sim2RealError('simulate: gps, imu and mag are all None; give at least one model')
    if not isinstance(recording, Recording):
        return synthetic_recording(recording, twin, seed=seed, run=name, scenario=scenario)
    make_maker = TwinMaker if magnetometer is None else make_twin_maker
    maker = make_maker(recording, world=None, seed=seed, base_frame=base_frame)
    twin = maker.at_real_rates(twin) if match_rates else twin
    simulated = maker.make(twin, repetition)
    notes = [note for note in maker.model_notes(twin) if note not in simulated.notes]
    return dataclasses.replace(simulated, notes=(*simulated.notes, *notes))


def _model(model: str | Path | M | None, load: Callable[[str | Path], M]) -> M | None:
    """Return a model, loaded if given by name or file; None to keep the recorded sensor."""
    if model is None or model == REAL_SENSOR:
        return None
    return load(model) if isinstance(model, str | Path) else model


def run_judge(
    recording: Recording,
    judge: object = PROFILE,
    *,
    component: str = 'horizontal',
    metric: MetricOptions | None = None,
    start_heading: bool = False,
    off_ticks: bool = False,
) -> EvaluatedRun:
    """Estimate the velocity in a recording and score it against its ground truth.

    Parameters
    ----------
    recording : Recording
        Real or simulated recording with ground truth.
    judge : str, Path or object
        Shipped profile or parameter file of ekf_node or ukf_node; name of another judge, such as
        `error_state`; class in a file, `my_filter.py:MyFilter`; or object with `judge(recording)`.
    component : {'horizontal', 'forward', 'x', 'y'}
        Speed that is compared; see `sim2real_eval.metrics.speed`.
    metric : MetricOptions, optional
        By default, those of the paper.
    start_heading : bool
        Whether the judge starts with the true heading, as in `sim2real vepd` for a real recording
        without orientation.
    off_ticks : bool
        Whether the judge starts 10 us late, as `sim2real vepd` does if fixes are stamped at ticks
        of its timers.

    Raises
    ------
    Sim2RealError
        When the recording has no ground truth or lacks what the judge needs, or the judge
        diverges.

    Examples
    --------
    >>> from sim_sensors import motion_of
    >>> drive = simulate(motion_of('circle', duration=10.0), gps='baseline', imu='ideal')
    >>> run = run_judge(drive, 'clean')
    >>> run.score.rmse < 0.5
    True
    """
    require_recording('run_judge', recording)
    if metric is not None and not isinstance(metric, MetricOptions):
        raise ParameterError(
            'run_judge',
            'metric',
            f'{reprlib.repr(metric)} is not allowed; must be MetricOptions, such as '
            'MetricOptions(warmup=5.0)',
        )
    for name, value in (('start_heading', start_heading), ('off_ticks', off_ticks)):
        if not isinstance(value, bool):
            problem = f'{value!r} is not allowed; must be True or False'
            raise ParameterError('run_judge', name, problem)
    setup = _load_judge(judge) if isinstance(judge, str | Path) else as_judge(judge)
    maker = TwinMaker(recording, seed=0, base_frame=setup.base_link_frame)
    heading = true_heading(maker.truth) if start_heading else None
    start_ns = maker.start_ns + OFF_TICKS_NS * off_ticks
    judged = setup.judge(maker.real, start_ns=start_ns, start_heading=heading)
    series = velocity_series(
        judged, maker.truth, origin_ns=maker.start_ns, component=component, name=recording.name
    )
    run = EvaluatedRun.of_series(series, recording.name, recording.scenario, metric=metric)
    notes = by_severity((*recording.notes, *maker.remarks, *judged.notes, *run.notes))
    span = DriveSpan.of_recording(recording)
    return dataclasses.replace(
        run, estimate=judged, judge=setup.name, notes=tuple(notes), span=span
    )


def _load_judge(judge: str | Path) -> Judge:
    if str(judge) in JUDGES.names() or is_in_file(str(judge)):
        return load_judge(JudgeRequest(str(judge)))
    return load_judge(JudgeRequest('embedded', config=judge))


def run_study(
    study: str | Path,
    out: str | Path,
    *,
    seed: int | None = None,
    runs: int | None = None,
    jobs: int = 1,
    overwrite: bool = False,
) -> StudyOutcome:
    """Carry out a study file as `sim2real study` does, or continue an interrupted study.

    Parameters
    ----------
    study : str or Path
        Name of a shipped study, or a YAML file.
    out : str or Path
        Folder of the study.
    seed, runs : int, optional
        Seed of all random draws and stand-ins per scenario, instead of those of the file.
    jobs : int
        Number of processes; the result does not depend on it. With more than one, a script needs
        the guard `if __name__ == '__main__':`.
    overwrite : bool
        Whether to start over if the folder holds a study.

    Raises
    ------
    Sim2RealError
        When the study file is invalid, the folder cannot be used, or no run could be compared.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outcome = run_study('a_imu', f'{folder}/result', runs=1)
    >>> outcome.models, len(outcome.runs)
    (['chrono', 'airsim_paper', 'airsim'], 8)
    """
    from sim2real_eval.common.workers import Workers
    from sim2real_eval.study.options import StudyOptions
    from sim2real_eval.study.plan import StudyPlan
    from sim2real_eval.study.runner import run_study as carry_out
    from sim2real_eval.study.study_file import Overrides

    def set_seed(options: StudyOptions) -> StudyOptions:
        return options if seed is None else dataclasses.replace(options, seed=seed)

    values = {'--seed': seed, '--runs': runs}
    arguments = [str(word) for pair in values.items() if pair[1] is not None for word in pair]
    command = ('--out', 'result', *arguments)
    plan = StudyPlan.load(study, Overrides(runs=runs, options=set_seed, command=command))
    with Workers(jobs) as workers:
        return carry_out(plan, out, workers=workers, overwrite=overwrite)
