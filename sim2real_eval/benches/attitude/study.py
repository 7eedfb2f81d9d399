# SPDX-License-Identifier: Apache-2.0
"""Runs of the attitude filter, simulated or recorded, held against the truth."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np

from sim2real_eval.benches.findings import CAMERA_FRAME, NO_SUSPECT, SAME_TURN
from sim2real_eval.benches.settings import AttitudeSettings
from sim2real_eval.common.findings import Finding, merge_findings
from sim2real_eval.common.workers import map_in_processes
from sim2real_eval.metrics.consistency import Consistency, consistency, over_runs
from sim2real_eval.metrics.normalised_squares import Squares
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin_maker import maker_with_field
from sim_sensors.camera import camera
from sim_sensors.camera.camera import CameraModel
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import mounting_quaternion
from sim_sensors.imu import imu
from sim_sensors.imu.imu import ImuModel
from sim_sensors.magnetometer import magnetometer
from sim_sensors.magnetometer.magnetometer import Magnetometer
from sim_sensors.motion.spatial_scenarios import Swaying
from sim_sensors.motion.trajectory import Motion
from sim_sensors.world.world import World
from .estimate import AttitudeErrors, AttitudeEstimate, attitude_errors, estimate_events, suspects
from .events import UPRIGHT, AttitudeInput, events_of
from .filter import AttitudeError

HAND_HELD = {'position': [-0.2, 0.15, 0.08], 'rpy': [0.0, 0.25, -0.64]}
"""Parameters of `Swaying` that keep the chessboard of [Ligorio2015] in sight, from the side."""


@dataclasses.dataclass(frozen=True, eq=False)
class AttitudeSetup:
    """What is simulated and how it is estimated.

    The filter knows white noise, the gravity of the world and the field of the Earth alone: what a
    model adds to that, or a dipole, it takes for motion.
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
    notes: tuple[Finding, ...] = ()  # what its user should know
    # Sensors that measure what the filter does not know of, to be told when it is overconfident;
    # see `suspects`. Of simulated runs the first alone is looked at.
    suspects: tuple[Finding, ...] = ()

    @property
    def squares(self) -> list[Squares]:
        """NEES, and NIS of each sensor."""
        return [self.errors.nees, *self.estimate.innovations]

    @property
    def summary(self) -> _Summary:
        """What a study keeps of it: name, rmse, share inside, and squares."""
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
        """Hold NEES and NIS against chi-square."""
        return [consistency(squares) for squares in self.squares]

    def notes(self) -> tuple[Finding, ...]:
        """Say where it comes from when the filter is overconfident."""
        nees = consistency(self.squares[0])
        if nees.verdict != 'overconfident':
            return ()
        return self.suspects or (NO_SUSPECT(ratio=nees.ratio),)


def measure(setup: AttitudeSetup, run: str) -> AttitudeInput:
    """Return what the sensors measure in a run."""
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
    # The first is made here: what is wrong with it is wrong with all.
    first = simulated_run(setup, 1, suspect=True)
    if progress is not None:
        progress()
    others = map_in_processes(
        functools.partial(_summary, setup), range(2, setup.runs + 1), jobs=jobs, progress=progress
    )
    return _study(first, [first.summary, *others], first.suspects)


def _summary(setup: AttitudeSetup, number: int) -> _Summary:
    return simulated_run(setup, number).summary


def _study(
    first: AttitudeRun, summaries: Sequence[_Summary], told: tuple[Finding, ...]
) -> AttitudeStudy:
    names, rmse, inside, squares = zip(*summaries, strict=True)
    return AttitudeStudy(first, names, np.array(rmse), np.array(inside), over_runs(squares), told)


def study_of(runs: Sequence[AttitudeRun]) -> AttitudeStudy:
    """Return the study of runs that are there already."""
    merged = merge_findings(('recorded', run.suspects) for run in runs)
    told = tuple(merged) if len(runs) > 1 else runs[0].suspects
    return _study(runs[0], [run.summary for run in runs], told)


def drawn_attitude(
    truth: FloatArray, settings: AttitudeSettings, seed: int, run: str
) -> FloatArray:
    """Return where the filter begins, `(4,)`: the truth `(1, 4)` with an error as it is told."""
    drawn = stream(seed, run, 'attitude_filter', 'initial').standard_normal((1, 3))
    return np.asarray(rotations.multiply(truth, rotations.exp(settings.initial_std * drawn))[0])


def simulated_run(setup: AttitudeSetup, number: int, *, suspect: bool = False) -> AttitudeRun:
    """Simulate and estimate one run; its noise depends on its number alone.

    With `suspect` its sensors are held against the truth too.
    """
    name = f'{setup.name}_{number}'
    first = drawn_attitude(
        setup.motion.at([setup.motion.start]).orientation, setup.settings, setup.seed, name
    )
    return held_run(
        name,
        measure(setup, name),
        first,
        lambda stamps: setup.motion.at(stamps * 1e-9).orientation,
        setup.world,
        setup.settings,
        suspect=suspect,
    )


def held_run(
    name: str,
    given: AttitudeInput,
    first: FloatArray,
    truth_at: Callable[[IntArray], FloatArray],
    world: World,
    settings: AttitudeSettings,
    *,
    suspect: bool,
) -> AttitudeRun:
    """Estimate one run and hold it against the truth; see `estimate_events`, `suspects`."""
    events = events_of(given, settings)
    field = np.zeros(3) if given.mag is None else world.undisturbed_field
    estimate = estimate_events(
        events, first, gravity=world.gravity, field=field, initial_std=settings.initial_std
    )
    errors = attitude_errors(estimate, truth_at(estimate.stamp_ns))
    told: tuple[Finding, ...] = ()
    if suspect:
        told = suspects(events, truth_at, gravity=world.gravity, field=field)
    return AttitudeRun(name, estimate, errors, suspects=told)


def recorded_run(
    recording: Recording,
    settings: AttitudeSettings,
    *,
    world: World | None = None,
    seed: int = 0,
    base_frame: str = 'base_link',
) -> AttitudeRun:
    """Estimate the attitude of a recording and hold it against its truth.

    It has truth and an IMU; poses of a camera must be of the base in the frame of the truth. The
    filter expects field and gravity of `world`, by default standard gravity and the field measured
    in the first two seconds, as in [Ligorio2015]; see `early_field`. `seed` is that of the error
    of the first attitude, `base_frame` the body whose attitude is estimated.

    Raises Sim2RealError when there is no truth or no IMU, or no noise is known.
    """
    where = recording.path or recording.name
    maker = maker_with_field(recording, world, seed=seed, base_frame=base_frame)
    real = maker.real
    measured = real.imu
    if measured is None:
        raise AttitudeError(f'{where}: has no messages of imu')
    field = real.mag
    given = AttitudeInput(
        measured,
        field,
        real.camera_pose,
        tuple(maker.mounting(measured.frame)[1]),
        UPRIGHT if field is None else tuple(maker.mounting(field.frame)[1]),
    )
    begin = maker.motion.at([(measured.stamp_ns[0] - maker.start_ns) * 1e-9]).orientation
    try:
        run = held_run(
            real.name,
            given,
            drawn_attitude(begin, settings, seed, real.name),
            lambda stamps: maker.motion.at((stamps - maker.start_ns) * 1e-9).orientation,
            maker.world,
            settings,
            suspect=True,
        )
    except AttitudeError as error:
        raise AttitudeError(f'{where}: {error}') from None
    return dataclasses.replace(
        run, notes=(*_remarks(given, real, settings, base_frame), *maker.remarks)
    )


def _remarks(
    given: AttitudeInput, real: Recording, settings: AttitudeSettings, base: str
) -> list[Finding]:
    """Say what was repaired in what the filter reads, and which frames were taken to be equal."""
    used = {'imu': given.imu.frame}
    if given.mag is not None and settings.magnetometer:
        used['mag'] = given.mag.frame
    if given.poses is not None and settings.camera:
        used['camera_pose'] = given.poses.frame
    remarks = real.repairs({real.roles[role] for role in (*used, 'truth')})
    truth = real.truth
    if not real.transforms:
        others = [frame for role, frame in used.items() if role != 'camera_pose' and frame != base]
        if others:
            remarks.append(SAME_TURN(frames=', '.join(dict.fromkeys(others)), base=base))
    frame = used.get('camera_pose', '')
    if truth is not None and frame and frame.strip('/') != truth.frame.strip('/'):
        remarks.append(CAMERA_FRAME(camera=frame, truth=truth.frame))
    return remarks
