# SPDX-License-Identifier: Apache-2.0
"""Attitude estimates of simulated or recorded runs, their errors, and suspicious sensors."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np

from sim2real_eval.benches.findings import NO_SUSPECT, SAME_FRAME
from sim2real_eval.benches.settings import AttitudeSettings
from sim2real_eval.common.findings import Finding, merge_findings
from sim2real_eval.common.workers import map_in_processes
from sim2real_eval.metrics.consistency import Consistency, Squares, consistency, over_runs
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin_maker import make_twin_maker
from sim_sensors.camera import camera
from sim_sensors.camera.camera import CameraModel
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.parameters import mounting_quaternion
from sim_sensors.core.seeding import stream
from sim_sensors.imu import imu
from sim_sensors.imu.imu import ImuModel
from sim_sensors.magnetometer import magnetometer
from sim_sensors.magnetometer.magnetometer import Magnetometer
from sim_sensors.motion.spatial_scenarios import Swaying
from sim_sensors.motion.trajectory import Motion
from sim_sensors.world.world import World
from .estimate import AttitudeErrors, attitude_errors, find_suspects
from .filter import (
    UPRIGHT,
    AttitudeError,
    AttitudeEstimate,
    AttitudeInput,
    estimate_events,
    events_of,
)

HAND_HELD = {'position': [-0.2, 0.15, 0.08], 'rpy': [0.0, 0.25, -0.64]}
"""Parameters of `Swaying` that keep the chessboard of [Ligorio2015] in sight, from the side."""


@dataclasses.dataclass(frozen=True, eq=False)
class AttitudeSetup:
    """Simulated sensors and settings of the filter.

    The filter models only white noise, the gravity of the world and the field of the Earth. It
    interprets other errors and the fields of dipoles as motion.
    """

    motion: Motion
    imu: ImuModel
    mag: Magnetometer | None = None
    camera: CameraModel | None = None
    world: World = dataclasses.field(default_factory=World)
    runs: int = 20
    seed: int = 0
    name: str = Swaying.kind  # of the motion
    settings: AttitudeSettings = dataclasses.field(default_factory=AttitudeSettings)


_Summary = tuple[str, FloatArray, FloatArray, list[Squares]]


@dataclasses.dataclass(frozen=True, eq=False)
class AttitudeRun:
    """One run of the filter."""

    name: str
    estimate: AttitudeEstimate
    errors: AttitudeErrors
    notes: tuple[Finding, ...] = ()
    # Sensors that may explain an overconfident filter, see `find_suspects`. Only the first of
    # several simulated runs is checked.
    suspects: tuple[Finding, ...] = ()

    @property
    def squares(self) -> list[Squares]:
        """NEES, and NIS of each sensor."""
        return [self.errors.nees, *self.estimate.innovations]

    @property
    def summary(self) -> _Summary:
        """Name, RMSE, share inside the bounds, and squares, which a study keeps."""
        return self.name, self.errors.rmse, self.errors.inside, self.squares


@dataclasses.dataclass(frozen=True, eq=False)
class AttitudeStudy:
    """Several runs of one kind."""

    first: AttitudeRun
    names: tuple[str, ...]
    rmse: FloatArray  # (runs, 4) of yaw, pitch, roll and the whole rotation, rad; see `ANGLES`
    inside: FloatArray  # (runs, 4) share of the errors of x, y, z, w within their 99 % bounds
    # Over all runs: NEES summed at equal times, NIS one after the other; see `over_runs`.
    squares: list[Squares]
    suspects: tuple[Finding, ...] = ()  # of the runs, merged

    @property
    def overall(self) -> FloatArray:
        """Root mean square of each of `ANGLES` over all runs, `(4,)` rad."""
        return np.asarray(np.sqrt(np.mean(self.rmse**2, axis=0)))

    def consistency(self) -> list[Consistency]:
        """Compare NEES and NIS with chi-square."""
        return [consistency(squares) for squares in self.squares]

    def notes(self) -> tuple[Finding, ...]:
        """Return possible causes if the filter is overconfident."""
        nees = consistency(self.squares[0])
        if nees.verdict != 'overconfident':
            return ()
        return self.suspects or (NO_SUSPECT(ratio=nees.ratio),)


def measure(setup: AttitudeSetup, run: str) -> AttitudeInput:
    """Simulate the sensors of a run."""
    world, seed = setup.world, setup.seed
    measured = imu.simulate(setup.imu, setup.motion, gravity=world.gravity, seed=seed, run=run)
    field = poses = None
    if setup.mag is not None:
        field = magnetometer.simulate(setup.mag, setup.motion, world=world, seed=seed, run=run)
    if setup.camera is not None:
        poses = camera.simulate(setup.camera, setup.motion, world=world, seed=seed, run=run).poses
        if not len(poses):
            raise AttitudeError(
                f'the camera never sees {setup.camera.pose.fewest} features of the world; must '
                'be another world or motion, or no camera (--camera none)'
            )
    return AttitudeInput(
        measured,
        field,
        poses,
        tuple(mounting_quaternion(setup.imu.mounting_rpy)[0]),
        UPRIGHT if setup.mag is None else tuple(mounting_quaternion(setup.mag.mounting_rpy)[0]),
    )


def simulated_study(
    setup: AttitudeSetup, *, jobs: int = 1, progress: Callable[[], None] | None = None
) -> AttitudeStudy:
    """Simulate and estimate every run.

    The result does not depend on the number of processes, `jobs`; `progress` is called after each
    run. Raises Sim2RealError when a run cannot be simulated or estimated.
    """
    # An error in the first run is reported before processes start.
    first = simulated_run(setup, 1, suspect=True)
    if progress is not None:
        progress()
    later_runs = map_in_processes(
        functools.partial(_summary, setup), range(2, setup.runs + 1), jobs=jobs, progress=progress
    )
    return _study(first, [first.summary, *later_runs], first.suspects)


def _summary(setup: AttitudeSetup, number: int) -> _Summary:
    return simulated_run(setup, number).summary


def _study(
    first: AttitudeRun, summaries: Sequence[_Summary], suspects: tuple[Finding, ...]
) -> AttitudeStudy:
    names, rmse, inside, squares = zip(*summaries, strict=True)
    return AttitudeStudy(
        first, names, np.array(rmse), np.array(inside), over_runs(squares), suspects
    )


def study_of(runs: Sequence[AttitudeRun]) -> AttitudeStudy:
    """Combine finished runs."""
    merged = merge_findings(('recorded', run.suspects) for run in runs)
    suspects = tuple(merged) if len(runs) > 1 else runs[0].suspects
    return _study(runs[0], [run.summary for run in runs], suspects)


def drawn_attitude(
    truth: FloatArray, settings: AttitudeSettings, seed: int, run: str
) -> FloatArray:
    """Return the first attitude of the filter, `(4,)`: the truth `(1, 4)` with a drawn error."""
    drawn = stream(seed, run, 'attitude_filter', 'initial').standard_normal((1, 3))
    return np.asarray(rotations.multiply(truth, rotations.exp(settings.initial_std * drawn))[0])


def simulated_run(setup: AttitudeSetup, number: int, *, suspect: bool = False) -> AttitudeRun:
    """Simulate and estimate one run; its noise depends on its number alone.

    `suspect` compares its sensors with the truth, too.
    """
    name = f'{setup.name}_{number}'
    first = drawn_attitude(
        setup.motion.at([setup.motion.start]).orientation, setup.settings, setup.seed, name
    )
    return compare_run(
        name,
        measure(setup, name),
        first,
        lambda stamps: setup.motion.at(stamps * 1e-9).orientation,
        setup.world,
        setup.settings,
        suspect=suspect,
    )


def compare_run(
    name: str,
    inputs: AttitudeInput,
    first: FloatArray,
    truth_at: Callable[[IntArray], FloatArray],
    world: World,
    settings: AttitudeSettings,
    *,
    suspect: bool,
) -> AttitudeRun:
    """Estimate one run and compare it with the truth; see `estimate_events`, `find_suspects`."""
    events = events_of(inputs, settings)
    field = np.zeros(3) if inputs.mag is None else world.undisturbed_field
    estimate = estimate_events(
        events, first, gravity=world.gravity, field=field, initial_std=settings.initial_std
    )
    errors = attitude_errors(estimate, truth_at(estimate.stamp_ns))
    suspects: tuple[Finding, ...] = ()
    if suspect:
        suspects = find_suspects(events, truth_at, gravity=world.gravity, field=field)
    return AttitudeRun(name, estimate, errors, suspects=suspects)


def recorded_run(
    recording: Recording,
    settings: AttitudeSettings,
    *,
    world: World | None = None,
    seed: int = 0,
    base_frame: str = 'base_link',
) -> AttitudeRun:
    """Estimate the attitude of a recording and compare it with its truth.

    Parameters
    ----------
    recording : Recording
        With truth and IMU. Poses of a camera must be those of the base in the frame of the truth.
    world : World, optional
        Expected field and gravity. The default is standard gravity and the field of the first two
        seconds, as in [Ligorio2015]; see `early_field`.
    seed : int
        Of the error of the first attitude.
    base_frame : str
        Body whose attitude is estimated.

    Raises
    ------
    Sim2RealError
        When truth or IMU are missing, or a noise is unknown.
    """
    where = recording.path or recording.name
    maker = make_twin_maker(recording, world, seed=seed, base_frame=base_frame)
    real = maker.real
    measured = real.imu
    if measured is None:
        raise AttitudeError(f'{where}: has no messages of imu')
    field = real.mag
    inputs = AttitudeInput(
        measured,
        field,
        real.camera_pose,
        tuple(maker.mounting(measured.frame)[1]),
        UPRIGHT if field is None else tuple(maker.mounting(field.frame)[1]),
    )
    begin = maker.motion.at([(measured.stamp_ns[0] - maker.start_ns) * 1e-9]).orientation
    try:
        run = compare_run(
            real.name,
            inputs,
            drawn_attitude(begin, settings, seed, real.name),
            lambda stamps: maker.motion.at((stamps - maker.start_ns) * 1e-9).orientation,
            maker.world,
            settings,
            suspect=True,
        )
    except AttitudeError as error:
        raise AttitudeError(f'{where}: {error}') from None
    return dataclasses.replace(
        run, notes=(*_input_findings(inputs, real, settings, base_frame), *maker.remarks)
    )


def _input_findings(
    inputs: AttitudeInput, real: Recording, settings: AttitudeSettings, base: str
) -> list[Finding]:
    """Return repairs of the messages that the filter reads, and assumptions about frames."""
    used = {'imu': inputs.imu.frame}
    if inputs.mag is not None and settings.magnetometer:
        used['mag'] = inputs.mag.frame
    if inputs.poses is not None and settings.camera:
        used['camera_pose'] = inputs.poses.frame
    remarks = real.repairs({real.roles[role] for role in (*used, 'truth')})
    truth = real.truth
    if not real.transforms:
        frames = [frame for role, frame in used.items() if role != 'camera_pose' and frame != base]
        if frames:
            names = ', '.join(dict.fromkeys(frames))
            remarks.append(
                SAME_FRAME(frames=f'without static transforms, {names}', reference=base)
            )
    frame = used.get('camera_pose', '')
    if truth is not None and frame and frame.strip('/') != truth.frame.strip('/'):
        remarks.append(SAME_FRAME(frames=f'camera poses in {frame}', reference=truth.frame))
    return remarks
