# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Attitude estimates of simulated or recorded runs, their errors, and suspicious sensors."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from sim2real_eval.benches import settings
from sim2real_eval.benches.settings import CAMERA_FRAME, NO_SUSPECT, SAME_FRAME, AttitudeSettings
from sim2real_eval.common.findings import Finding, merge_findings
from sim2real_eval.common.workers import map_in_processes
from sim2real_eval.metrics.consistency import Consistency, Squares, consistency, pool_runs
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.twin_maker import make_twin_maker
from sim_sensors.camera import camera
from sim_sensors.camera.camera import CameraModel
from sim_sensors.core import rotations
from sim_sensors.core.errors import Remark
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.core.seeding import stream
from sim_sensors.core.shared_parameters import mounting_quaternion
from sim_sensors.imu import imu
from sim_sensors.imu.imu import ImuModel
from sim_sensors.magnetometer import magnetometer
from sim_sensors.magnetometer.magnetometer import Magnetometer
from sim_sensors.motion.spatial_scenarios import HandHeld
from sim_sensors.motion.trajectory import Motion
from sim_sensors.world.world import World
from .filter import (
    ACCELEROMETER,
    CAMERA,
    MAGNETOMETER,
    NAMES,
    UPRIGHT,
    AttitudeError,
    AttitudeEstimate,
    AttitudeEvents,
    AttitudeInput,
    estimate_events,
    events_of,
    xi_matrices,
)

ANGLES = ('yaw', 'pitch', 'roll', 'rotation')
"""Errors in the order of [Ligorio2015], table 4, and the angle of the whole rotation error."""

BOUND = 2.5758293035489004
"""Half-width of the 99 % interval of a Gaussian, in standard deviations.

Figure 7 of [Ligorio2015] has the same interval.
"""


@dataclasses.dataclass(frozen=True, eq=False)
class AttitudeErrors:
    """Errors of an estimate over time, estimated minus true.

    Attributes
    ----------
    stamp_ns : (n,) int
        Stamps of the estimates.
    angles : (n, 4) array
        Yaw, pitch and roll in -pi .. pi, rad, which are ill-defined near a pitch of 90 degrees;
        and the angle between estimate and truth, 0 .. pi.
    quaternion : (n, 4) array
        Components x y z w of the state, world to body, with the nearer sign of the truth.
    quaternion_std : (n, 4) array
        Standard deviations that the filter states for them.
    nees : Squares
        NEES of the rotation from the estimate to the truth; three degrees of freedom.
    """

    stamp_ns: IntArray
    angles: FloatArray
    quaternion: FloatArray
    quaternion_std: FloatArray
    nees: Squares

    @property
    def time(self) -> FloatArray:
        """Seconds since the first stamp, `(n,)`."""
        return np.asarray((self.stamp_ns - self.stamp_ns[0]) * 1e-9)

    @property
    def rmse(self) -> FloatArray:
        """Root mean square of each of `ANGLES`, `(4,)` rad."""
        return np.asarray(np.sqrt(np.mean(self.angles**2, axis=0)))

    @property
    def inside(self) -> FloatArray:
        """Share of the errors of each component within its 99 % bounds, `(4,)`."""
        inside = np.abs(self.quaternion) <= BOUND * self.quaternion_std
        return np.asarray(np.mean(inside, axis=0))


def attitude_errors(estimate: AttitudeEstimate, truth: FloatArray) -> AttitudeErrors:
    """Compare an estimate with the true orientations `(n, 4)`, x y z w, body to world.

    The rotation error is 2 vec(q_true conj(q_est)) with a positive scalar part. Its covariance is
    4 Xi^T P Xi, with Xi of [Crassidis2007].
    """
    true = rotations.conjugate(truth)
    q = estimate.quaternion
    sign = np.where(np.sum(true * q, axis=1) < 0.0, -1.0, 1.0)[:, None]
    true = sign * true
    error = rotations.multiply(true, rotations.conjugate(q))
    rotation = 2.0 * error[:, :3]
    angle = 2.0 * np.arctan2(np.linalg.norm(error[:, :3], axis=1), error[:, 3])
    covariance = estimate.rotation_covariance
    solved = np.linalg.solve(covariance, rotation[..., None])[..., 0]
    difference = _angles(estimate.orientation) - _angles(truth)
    difference = (difference + np.pi) % (2.0 * np.pi) - np.pi
    return AttitudeErrors(
        stamp_ns=estimate.stamp_ns,
        angles=np.column_stack([difference, angle]),
        quaternion=q - true,
        quaternion_std=np.sqrt(
            np.maximum(np.diagonal(estimate.covariance, axis1=1, axis2=2), 0.0)
        ),
        nees=Squares(
            'NEES orientation',
            estimate.stamp_ns,
            np.sum(rotation * solved, axis=1),
            np.full(len(estimate), 3),
            correlated=True,
        ),
    )


def _angles(orientation: FloatArray) -> FloatArray:
    """Return yaw, pitch, roll, `(n, 3)` rad: intrinsic z y x.

    SciPy is not used as it warns at a pitch of 90 degrees.
    """
    x, y, z, w = orientation.T
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    roll = np.arctan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    return np.column_stack([rotations.heading(orientation), pitch, roll])


# Averaging spans, s; infinity: the whole run.
_SPANS_S = (1.0, np.inf)
# A sensor is reported if the ratio of its normalised squares to their expectation exceeds this
# value. For few averages the limit is higher, so that false alarms stay rare.
_LARGEST_RATIO = 2.0
_FALSE_ALARMS = 1e-3

_GYROSCOPE = -1
# Unit, possible causes and remedy of each sensor.
_SENSORS = {
    _GYROSCOPE: (
        'rad/s',
        'a bias, a scale error, or a wrong rotation of the truth',
        'remove the offset of a run that starts at rest with --rest, or set --gyroscope-noise',
    ),
    ACCELEROMETER: (
        'm/s^2',
        'acceleration of the body, a sensor bias or a wrong mounting',
        'set --acceleration',
    ),
    MAGNETOMETER: (
        'T',
        'magnets, iron, or a field other than the expected one',
        'give the expected field with --world, set --magnetometer-std, or leave the sensor out '
        'with --without magnetometer',
    ),
    CAMERA: (
        'rad',
        'a wrong frame or mounting, or wrong covariances',
        'leave the camera out with --without camera',
    ),
}


def find_suspects(
    events: AttitudeEvents,
    truth_at: Callable[[IntArray], FloatArray],
    *,
    gravity: float,
    field: FloatArray,
) -> tuple[Finding, ...]:
    """Report sensors whose errors exceed the white noise that the filter assumes.

    The difference between the measurement and its expectation at the true attitude is averaged
    over each second, and over the whole run. For white noise of the stated covariance, the
    normalised squares of the averages are chi-square with three degrees of freedom. A sensor is
    reported when their mean is more than twice its expectation, or more for few averages.

    `truth_at` takes stamps `(n,)` ns and returns true orientations `(n, 4)`, body to world.
    `gravity` and `field` are as for `estimate_events`.
    """
    truth = truth_at(events.stamp_ns)
    # The gyroscope measures nothing between samples with equal stamps.
    later_rows = np.flatnonzero(events.dt > 0.0)
    dt = events.dt[later_rows]
    rotation = events.rate[later_rows] * dt[:, None] - rotations.rotation_between(
        truth[later_rows - 1], truth[later_rows]
    )
    suspects = [_worst_span(_GYROSCOPE, events.stamp_ns[later_rows], rotation, events.density, dt)]
    for sensor in NAMES:
        rows = events.kind == sensor
        if rows.any():
            v = np.array([0.0, 0.0, gravity]) if sensor == ACCELEROMETER else field
            error, covariance = _measurement_errors(events, truth, rows, sensor, v)
            suspects.append(_worst_span(sensor, events.stamp_ns[rows], error, covariance))
    return tuple(finding for finding in suspects if finding is not None)


def _measurement_errors(
    events: AttitudeEvents, truth: FloatArray, rows: NDArray[np.bool_], sensor: int, v: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return measured minus true values, `(n, 3)`, and their covariance `(n, 3, 3)`."""
    values, covariance = events.values[rows], events.covariance[rows]
    true = truth[rows]
    if sensor != CAMERA:
        return values[:, :3] - rotations.rotate_back(true, v[None]), covariance[:, :3, :3]
    error = rotations.log(rotations.multiply(values, true))
    xi = xi_matrices(values)
    return error, 4.0 * np.swapaxes(xi, 1, 2) @ covariance @ xi


def _worst_span(
    sensor: int,
    stamps: IntArray,
    error: FloatArray,
    covariance: FloatArray,
    dt: FloatArray | None = None,
) -> Finding | None:
    """Return the finding about a sensor for the averaging span with the largest ratio.

    If `dt` `(n,)` is given, `error` is an integral over these times and `covariance` `(3, 3)` a
    density.
    """
    unit, causes, action = _SENSORS[sensor]
    suspects: dict[float, Finding] = {}
    for span in _SPANS_S:
        time = (stamps - stamps[0]) * 1e-9
        duration = float(time[-1])
        window = np.floor(time / span)
        starts = np.flatnonzero(np.diff(window, prepend=-1.0))
        if dt is None:
            weight = np.add.reduceat(np.ones(len(stamps)), starts)
            total = np.add.reduceat(covariance, starts)
            explained = total / weight[:, None, None] ** 2
        else:
            weight = np.add.reduceat(dt, starts)
            explained = covariance[None] / weight[:, None, None]
        mean = np.add.reduceat(error, starts) / weight[:, None]
        # The pseudo-inverse ignores axes without stated noise.
        inverse = np.linalg.pinv(explained, hermitian=True)
        ratio = float(np.einsum('ni,nij,nj->', mean, inverse, mean)) / (3 * len(mean))
        limit = max(_LARGEST_RATIO, chi2.isf(_FALSE_ALARMS, 3 * len(mean)) / (3 * len(mean)))
        if ratio > limit:
            mean_error = float(np.sqrt(np.mean(np.sum(mean**2, axis=1))))
            suspects[ratio / limit] = settings.SENSOR_OFF(
                NAMES.get(sensor, 'gyroscope'),
                span=min(span, duration),
                error=Remark(f'{{off:.2g {unit}}}', off=mean_error),
                explained=float(np.sqrt(np.mean(np.trace(explained, axis1=1, axis2=2)))),
                causes=causes,
                noise=mean_error * np.sqrt(weight.mean() / 3.0),
                action=action,
            )
    return suspects[max(suspects)] if suspects else None


# [Ligorio2015], table 4: a box with an MTx and a webcam, moved by hand for about 140 s in front of
# a chessboard. Motion, field and noise are not printed, so our errors need not agree.

PUBLISHED_SIMULATED = tuple(np.radians([0.11, 0.10, 0.12]).tolist())
"""Root mean square errors of yaw, pitch and roll with simulated sensors, rad."""

PUBLISHED_REAL = tuple(np.radians([0.53, 0.63, 0.96]).tolist())
"""Root mean square errors of yaw, pitch and roll with real sensors, rad."""


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
    name: str = HandHeld.kind  # of the motion
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
        """Name, RMSE, share inside the bounds, and squares: the part that a study stores."""
        return self.name, self.errors.rmse, self.errors.inside, self.squares


@dataclasses.dataclass(frozen=True, eq=False)
class AttitudeStudy:
    """Results of several runs: all simulated with one setup, or all recorded."""

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


def simulate_inputs(setup: AttitudeSetup, run: str) -> AttitudeInput:
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
                f'the camera never sees {setup.camera.pose.fewest} features of the world; use '
                'another world or motion, or no camera (--camera none)'
            )
    return AttitudeInput(
        measured,
        field,
        poses,
        tuple(mounting_quaternion(setup.imu.mounting_rpy)[0]),
        UPRIGHT if setup.mag is None else tuple(mounting_quaternion(setup.mag.mounting_rpy)[0]),
    )


def run_simulated_study(
    setup: AttitudeSetup, *, jobs: int = 1, progress: Callable[[], None] | None = None
) -> AttitudeStudy:
    """Simulate and estimate every run.

    The result does not depend on the number of processes, `jobs`; `progress` is called after each
    run. Raises Sim2RealError when a run cannot be simulated or estimated.
    """
    # An error in the first run is reported before processes start.
    first = estimate_simulated_run(setup, 1, suspect=True)
    if progress is not None:
        progress()
    later_runs = map_in_processes(
        functools.partial(_summary, setup), range(2, setup.runs + 1), jobs=jobs, progress=progress
    )
    return _study(first, [first.summary, *later_runs], first.suspects)


def _summary(setup: AttitudeSetup, number: int) -> _Summary:
    return estimate_simulated_run(setup, number).summary


def _study(
    first: AttitudeRun, summaries: Sequence[_Summary], suspects: tuple[Finding, ...]
) -> AttitudeStudy:
    names, rmse, inside, squares = zip(*summaries, strict=True)
    return AttitudeStudy(
        first, names, np.array(rmse), np.array(inside), pool_runs(squares), suspects
    )


def combine_runs(runs: Sequence[AttitudeRun]) -> AttitudeStudy:
    """Combine recorded runs into a study."""
    merged = merge_findings(('recorded', run.suspects) for run in runs)
    suspects = tuple(merged) if len(runs) > 1 else runs[0].suspects
    return _study(runs[0], [run.summary for run in runs], suspects)


def draw_initial_attitude(
    truth: FloatArray, settings: AttitudeSettings, seed: int, run: str
) -> FloatArray:
    """Return the initial attitude of the filter, `(4,)`: truth `(1, 4)` with a random error."""
    drawn = stream(seed, run, 'attitude_filter', 'initial').standard_normal((1, 3))
    return np.asarray(rotations.multiply(truth, rotations.exp(settings.initial_std * drawn))[0])


def estimate_simulated_run(
    setup: AttitudeSetup, number: int, *, suspect: bool = False
) -> AttitudeRun:
    """Simulate and estimate one run; its noise depends on its number alone.

    If `suspect` is true, its sensors are also compared with the truth; see `find_suspects`.
    """
    name = f'{setup.name}_{number}'
    first = draw_initial_attitude(
        setup.motion.at([setup.motion.start]).orientation, setup.settings, setup.seed, name
    )
    return compare_run(
        name,
        simulate_inputs(setup, name),
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


def estimate_recorded_run(
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
        seconds, as in [Ligorio2015]; see `measure_early_field`.
    seed : int
        Seed of the error of the initial attitude.
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
        raise AttitudeError(f'{where}: has no IMU messages')
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
            draw_initial_attitude(begin, settings, seed, real.name),
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
    """Return findings about repaired messages that the filter reads, and about assumed frames."""
    used = {'imu': inputs.imu.frame}
    if inputs.mag is not None and settings.magnetometer:
        used['mag'] = inputs.mag.frame
    if inputs.poses is not None and settings.camera:
        used['camera_pose'] = inputs.poses.frame
    findings = real.repairs({real.roles[role] for role in (*used, 'truth')})
    truth = real.truth
    if not real.transforms:
        frames = [frame for role, frame in used.items() if role != 'camera_pose' and frame != base]
        if frames:
            names = ', '.join(dict.fromkeys(frames))
            findings.append(SAME_FRAME(frames=names, reference=base))
    frame = used.get('camera_pose', '')
    if truth is not None and frame and frame.strip('/') != truth.frame.strip('/'):
        findings.append(CAMERA_FRAME(camera=frame, truth=truth.frame))
    return findings
