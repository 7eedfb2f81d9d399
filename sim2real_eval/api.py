# SPDX-License-Identifier: Apache-2.0
"""What `import sim2real_eval` shows: from a recording to VEPD in a few calls.

Every call is one step of what `sim2real vepd` and `sim2real study` do, by the same functions.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sim2real_eval.common.findings import by_severity
from sim2real_eval.judge.protocol import JUDGES, Judge, JudgeRequest, completed, load_judge
from sim2real_eval.metrics.options import MetricOptions
from sim2real_eval.metrics.series import velocity_series
from sim2real_eval.metrics.uncertainty.result import UncertaintyOptions
from sim2real_eval.recording.reading import read_recording
from sim2real_eval.recording.recording import Recording, required
from sim2real_eval.recording.writing import write_recording
from sim2real_eval.simulation.twin import REAL_SENSOR, Twin
from sim2real_eval.simulation.twin_maker import TwinMaker, maker_with_field, synthetic_recording
from sim2real_eval.study.adapting import OFF_TICKS_NS, true_heading
from sim2real_eval.study.options import PROFILE
from sim2real_eval.study.outcome import StudyOutcome
from sim_sensors.core.errors import ParameterError, Sim2RealError, whole_number
from sim_sensors.core.parameters import Parameters
from sim_sensors.core.registry import is_in_file
from sim_sensors.gps.gps import GpsModel, load_gps
from sim_sensors.imu.imu import ImuModel, load_imu
from sim_sensors.magnetometer.magnetometer import Magnetometer
from sim_sensors.motion.trajectory import Motion
from .evaluation import EvaluatedRun, VepdResult, vepd

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
    """Return the recording with simulated sensors on its true motion in place of its own.

    Parameters
    ----------
    recording : Recording or Motion
        Recording with truth: the result is cut to the time for which there is some. Or a motion,
        of which a recording is made that stands for a real one.
    gps, imu : str, Path or model, optional
        Name of a shipped model, YAML file or model; None or `real`: the recording's own stays.
    mag : str, Path or model, optional
        Magnetometer likewise. It measures the field that the recording's own one measures first,
        without one that of the default world.
    seed : int
        Of all random draws.
    repetition : int
        From 1; another number gives another draw of the same noise.
    match_rates : bool
        Give simulated sensors the rates of the real ones instead of their models' own.
    base_frame : str
        Body frame of the robot.
    name, scenario : str
        Of the recording that is made of a motion; a twin has those of its recording.

    Raises
    ------
    Sim2RealError
        For an unknown or wrong model, a seed or repetition out of range, when no model is given,
        or when the recording lacks truth.

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
    whole_number('simulate', 'seed', seed, 0)
    whole_number('simulate', 'repetition', repetition, 1)
    field = _model(mag, Magnetometer.load)
    twin = Twin(
        'simulated',
        gps=_model(gps, load_gps),
        imu=_model(imu, load_imu),
        others={} if field is None else {'mag': field},
    )
    if not twin.models:
        raise Sim2RealError(
            'simulate: none of gps, imu, mag is given a model; must be one at least'
        )
    if not isinstance(recording, Recording):
        return synthetic_recording(recording, twin, seed=seed, run=name, scenario=scenario)
    make = TwinMaker if field is None else maker_with_field
    maker = make(recording, world=None, seed=seed, base_frame=base_frame)
    twin = maker.at_real_rates(twin) if match_rates else twin
    made = maker.make(twin, repetition)
    told = [note for note in maker.model_notes(twin) if note not in made.notes]
    return dataclasses.replace(made, notes=(*made.notes, *told))


def _model(given: str | Path | M | None, load: Callable[[str | Path], M]) -> M | None:
    if given is None or given == REAL_SENSOR:
        return None
    return load(given) if isinstance(given, str | Path) else given


def run_judge(
    recording: Recording,
    judge: object = PROFILE,
    *,
    component: str = 'horizontal',
    metric: MetricOptions | None = None,
    start_heading: bool = False,
    off_ticks: bool = False,
) -> EvaluatedRun:
    """Estimate the velocity in a recording, real or simulated, and score it against its truth.

    Parameters
    ----------
    recording : Recording
        With truth.
    judge : str, Path or object
        Shipped profile or parameter file of ekf_node or ukf_node; another judge by its name,
        such as `error_state`, or as a class in a file, `my_filter.py:MyFilter`; or an object with
        `judge(recording)`.
    component : {'horizontal', 'forward', 'x', 'y'}
        Speed that is compared; see `sim2real_eval.metrics.speed`.
    metric : MetricOptions, optional
        The paper's when omitted.
    start_heading : bool
        Start the judge with the true heading, as `sim2real vepd` does where the real recording
        has no orientation.
    off_ticks : bool
        Start the judge 10 us late, as that does where fixes are stamped on the judge's ticks.

    Raises
    ------
    Sim2RealError
        When the recording lacks truth or what the judge needs, or the judge diverged.

    Examples
    --------
    >>> from sim_sensors import motion_of
    >>> drive = simulate(motion_of('circle', duration=10.0), gps='baseline', imu='ideal')
    >>> run = run_judge(drive, 'clean')
    >>> run.score.rmse < 0.5
    True
    """
    required('run_judge', recording)
    if metric is not None and not isinstance(metric, MetricOptions):
        raise ParameterError(
            'run_judge',
            'metric',
            f'{reprlib.repr(metric)} is not allowed; must be MetricOptions, such as '
            'MetricOptions(warmup=5.0)',
        )
    for name, given in (('start_heading', start_heading), ('off_ticks', off_ticks)):
        if not isinstance(given, bool):
            problem = f'{given!r} is not allowed; must be True or False'
            raise ParameterError('run_judge', name, problem)
    setup = _judge_of(judge) if isinstance(judge, str | Path) else completed(judge)
    maker = TwinMaker(recording, seed=0, base_frame=setup.base_link_frame)
    heading = true_heading(maker.truth) if start_heading else None
    start_ns = maker.start_ns + OFF_TICKS_NS * off_ticks
    judged = setup.judge(maker.real, start_ns=start_ns, start_heading=heading)
    series = velocity_series(
        judged, maker.truth, origin_ns=maker.start_ns, component=component, name=recording.name
    )
    run = EvaluatedRun.of_series(series, recording.name, recording.scenario, metric=metric)
    about = (*recording.notes, *maker.remarks, *judged.notes, *run.notes)
    about = tuple(by_severity(about))
    return dataclasses.replace(run, estimate=judged, judge=setup.name, notes=about)


def _judge_of(judge: str | Path) -> Judge:
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
    """Carry out a study file as `sim2real study` does, or continue it.

    Parameters
    ----------
    study : str or Path
        Name of a shipped study, or a YAML file.
    out : str or Path
        Folder of the study.
    seed, runs : int, optional
        In place of those of the file: seed of all draws, stand-ins per scenario.
    jobs : int
        Processes; the result does not depend on it.
    overwrite : bool
        Begin anew when the folder holds a study.

    Raises
    ------
    Sim2RealError
        For a wrong study file, a folder that may not be used, or when nothing could be compared.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outcome = run_study('a_imu', f'{folder}/result', runs=1)
    >>> outcome.models, len(outcome.runs)
    (['chrono', 'airsim'], 6)
    """
    from sim2real_eval.common.workers import Workers
    from sim2real_eval.study.options import StudyOptions
    from sim2real_eval.study.plan import StudyPlan
    from sim2real_eval.study.runner import run_study as carry_out
    from sim2real_eval.study.study_file import Overrides

    def seeded(options: StudyOptions) -> StudyOptions:
        return options if seed is None else dataclasses.replace(options, seed=seed)

    given = {'--seed': seed, '--runs': runs}
    words = [str(word) for pair in given.items() if pair[1] is not None for word in pair]
    command = ('--out', 'result', *words)
    plan = StudyPlan.load(study, Overrides(runs=runs, options=seeded, command=command))
    with Workers(jobs) as workers:
        return carry_out(plan, out, workers=workers, overwrite=overwrite)
