# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Smoother judge and reference trajectories: a GTSAM batch smoother of the whole recording."""

from __future__ import annotations

import dataclasses
import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding, RecordingError, UnusableFitError
from sim2real_eval.common.results import version, versions
from sim2real_eval.judge import estimate
from sim2real_eval.judge.estimate import ODOMETRY_FIELDS, JudgedRun
from sim2real_eval.judge.inertial.alignment import (
    InertialInputs,
    inertial_inputs,
    initial_attitude,
)
from sim2real_eval.judge.inertial.error_state import output_times
from sim2real_eval.judge.inertial.settings import InertialJudge, InertialSettings
from sim2real_eval.recording.metadata import TransformFile
from sim2real_eval.recording.recording import Recording, ReferenceTruth
from sim_sensors.core.measurements import FloatArray, IntArray, OdometryArray
from sim_sensors.core.rotations import skew
from .factor_graph import (
    INTEGRATION_DENSITY,
    ImuMotion,
    Nodes,
    Steps,
    divide_into_steps,
    imu_densities,
    load_gtsam,
    solve,
)

_OUTAGE_S = 2.0
_IMU_LIMIT = 7.0  # 15 dimensions exceed it by chance with a probability of 2e-5
# Number of intervals processed together, which bounds the memory of long runs.
_CHUNK = 256


class SmootherJudge(InertialJudge):
    """A batch smoother: preintegrated IMU factors between the fixes, solved as one problem.

    Combined IMU factors after Forster, Carlone, Dellaert and Scaramuzza, On-manifold
    preintegration for real-time visual-inertial odometry, 2017, as GTSAM has them.
    """

    kind = 'gtsam'

    @classmethod
    def load(
        cls, config: str | Path | None = None, transforms: TransformFile | None = None
    ) -> SmootherJudge:
        """Return the judge as `InertialJudge.load` does; JudgeError without gtsam."""
        load_gtsam()
        return super().load(config, transforms)

    def settings(self) -> Mapping[str, Any]:
        """Return the settings behind a result, including the version of gtsam."""
        return {**super().settings(), 'gtsam': version('gtsam')}

    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Estimate the motion in a recording from all of its imu and gps at once.

        Estimates extend from the first fix to the last IMU message. The world is east-north-up
        about the first fix. Arguments are those of `InertialJudge.judge`.

        Raises
        ------
        JudgeError
            When gtsam is missing, the inputs do not suffice, or there is no solution.
        RecordingError
            When the recording has no imu or no gps.
        """
        load_gtsam()
        settings = self.parameters
        inputs = inertial_inputs(
            recording, settings, start_ns=start_ns, transforms=self.transforms
        )
        start = initial_attitude(inputs, settings, start_heading)
        output_ns = output_times(inputs, settings, start_ns)
        steps = divide_into_steps(inputs, settings, output_ns)
        nodes = solve(inputs, settings, steps, start)
        path = interpolate_nodes(nodes, steps, settings)
        notes = (*inputs.notes, *start.notes, *_remarks(inputs, settings, nodes))
        return _judged_run(inputs, settings, nodes, path, output_ns, notes)


def _remarks(
    inputs: InertialInputs, settings: InertialSettings, nodes: Nodes
) -> tuple[Finding, ...]:
    """Return findings about the solution and its limits."""
    notes = [estimate.SEES_FUTURE()]
    if not nodes.converged:
        notes.append(estimate.NOT_CONVERGED(iterations=nodes.iterations))
    contradicted = int(np.sum(nodes.imu_distance > _IMU_LIMIT))
    if 2 * contradicted > len(nodes.imu_distance):
        values = {'count': contradicted, 'intervals': len(nodes.imu_distance)}
        notes.append(estimate.IMU_CONTRADICTED(limit=_IMU_LIMIT, **values))
    silent = np.diff(inputs.fix_ns) * 1e-9
    is_outage = silent > _OUTAGE_S
    if is_outage.any():
        longest = float(np.max(silent))
        notes.append(
            estimate.OUTAGES(count=int(np.sum(is_outage)), limit=_OUTAGE_S, longest=longest)
        )
    beyond = int(np.sum(nodes.fix_distance > settings.smoother.loss_width))
    if settings.smoother.loss != 'none' and beyond:
        width, loss = settings.smoother.loss_width, settings.smoother.loss
        notes.append(
            estimate.OUTLIERS(count=beyond, fixes=len(inputs.fix), width=width, loss=loss)
        )
    for name in ('lateral_deviation', 'vertical_deviation'):
        if getattr(settings, name) > 0.0:
            notes.append(estimate.SETTING_UNUSED(name))
    return tuple(notes)


def _judged_run(
    inputs: InertialInputs,
    settings: InertialSettings,
    nodes: Nodes,
    path: OutputMotion,
    output_ns: IntArray,
    notes: tuple[Finding, ...],
) -> JudgedRun:
    """Move the motion of the IMU to base_link."""
    turn, arm = path.orientation, inputs.imu_arm
    rate, white = _rates(inputs, settings, output_ns)
    rate = rate - path.gyroscope_bias
    along = (turn.transpose(0, 2, 1) @ path.velocity[..., None])[..., 0]
    lever = skew(np.tile(arm, (len(turn), 1)))
    # Jacobians of base_link's pose (about fixed axes) and twist by the 15 errors.
    pose, twist = np.zeros((2, len(turn), 6, 15))
    pose[:, :3, 0:3], pose[:, :3, 3:6], pose[:, 3:, 0:3] = turn @ lever, np.eye(3), turn
    twist[:, :3, 0:3], twist[:, :3, 6:9] = skew(along), turn.transpose(0, 2, 1)
    twist[:, :3, 12:15], twist[:, 3:, 12:15] = -lever, -np.eye(3)
    rate_noise = np.concatenate([-lever, np.tile(-np.eye(3), (len(turn), 1, 1))], axis=1)
    P = path.covariance
    pose_covariance = pose @ P @ pose.transpose(0, 2, 1)
    twist_covariance = twist @ P @ twist.transpose(0, 2, 1)
    twist_covariance += white[:, None, None] * (rate_noise @ rate_noise.transpose(0, 2, 1))
    gps_covariance = np.zeros((len(inputs.fix), 6, 6))
    gps_covariance[:, :3, :3] = inputs.fix_covariance
    antenna = nodes.orientation[nodes.fix_node] @ inputs.antenna
    return JudgedRun(
        stamp_ns=output_ns,
        tick_ns=output_ns,
        position=path.position - turn @ arm,
        orientation=Rotation.from_matrix(turn).as_quat(),
        linear_velocity=along - np.cross(rate, arm),
        angular_velocity=rate,
        pose_covariance=_symmetric(pose_covariance),
        twist_covariance=_symmetric(twist_covariance),
        gps_stamp_ns=inputs.fix_ns,
        gps_position=inputs.fix - antenna,
        gps_covariance=gps_covariance,
        parts=(inputs.gps_count(rejected=0),),
        notes=notes,
        about_axes=True,
    )


def _rates(
    inputs: InertialInputs, settings: InertialSettings, at_ns: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the measured rates, (n, 3), and the variance of their white noise, (n,).

    The variance of a message is density^2 / period; interpolation between messages reduces it.
    """
    after = np.clip(np.searchsorted(inputs.imu_ns, at_ns), 1, len(inputs.imu_ns) - 1)
    period = (inputs.imu_ns[after] - inputs.imu_ns[after - 1]) * 1e-9
    share = (at_ns - inputs.imu_ns[after - 1]) * 1e-9 / period
    rate = inputs.rate[after - 1] + share[:, None] * (inputs.rate[after] - inputs.rate[after - 1])
    usual = float(np.median(np.diff(inputs.imu_ns))) * 1e-9
    white = settings.gyroscope_noise**2 / usual * (share**2 + (1.0 - share) ** 2)
    gap = period > settings.longest_gap
    return rate, np.asarray(white + np.where(gap, settings.gap_rate**2, 0.0))


def _symmetric(covariance: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (covariance + covariance.transpose(0, 2, 1)))


# Motion between the nodes: the integrated IMU, corrected to meet both nodes.
#
# The IMU is integrated from the earlier node, with the transition Phi and covariance Sigma of its
# error. At the later node j the integration misses the node by d. Given both nodes, the error of
# the integration at a time t is Gaussian with mean K d, K = Sigma_t Phi(t -> j)' Sigma_j^-1, and
# covariance Sigma_t - K Sigma_j K' (Rauch, Tung and Striebel's smoother on one interval). The
# residual is thus distributed in proportion to the growth of the noise. The covariance of the
# estimate is A J A' + Sigma_t - K Sigma_j K', with A = [Phi_t - K Phi_j, K] and J the joint
# covariance of the two nodes. At the nodes, estimate and covariance equal those of the nodes.


@dataclasses.dataclass(frozen=True, eq=False)
class OutputMotion(ImuMotion):
    """Motion of the IMU at the outputs."""

    covariance: FloatArray  # (n, 15, 15) Covariance of its errors


def interpolate_nodes(nodes: Nodes, steps: Steps, settings: InertialSettings) -> OutputMotion:
    """Return the motion at the outputs of `steps`."""
    intervals = len(nodes.joint)
    # The first node is the start of the first interval; all others are ends.
    interval = np.clip(np.searchsorted(steps.first, steps.output_step, side='right') - 1, 0, None)
    pieces = []
    for low in range(0, intervals, _CHUNK):
        high = min(low + _CHUNK, intervals)
        in_chunk = np.flatnonzero((interval >= low) & (interval < high))
        if len(in_chunk):
            pieces.append(_piece(nodes, steps, settings, np.arange(low, high), in_chunk, interval))
    return OutputMotion(
        **{
            field.name: np.concatenate([getattr(piece, field.name) for piece in pieces])
            for field in dataclasses.fields(OutputMotion)
        }
    )


def _piece(
    nodes: Nodes,
    steps: Steps,
    settings: InertialSettings,
    chunk: IntArray,
    outputs: IntArray,
    interval: IntArray,
) -> OutputMotion:
    """Return the motion at the outputs with given numbers in a chunk of intervals."""
    state = _Integration(nodes, steps, settings, chunk)
    row = interval[outputs] - chunk[0]
    step = steps.output_step[outputs] - steps.first[interval[outputs]]
    snapshots = _Snapshots(len(outputs), state, row, step)
    for k in range(state.most):
        state.advance(k)
        snapshots.save(state, k)
    return _correct_ends(nodes, chunk, state, snapshots)


class _Integration:
    """Integration of the IMU over all intervals of a chunk in parallel."""

    def __init__(
        self, nodes: Nodes, steps: Steps, settings: InertialSettings, chunk: IntArray
    ) -> None:
        self.steps, self.gravity = steps, np.array([0.0, 0.0, -settings.gravity])
        self.turn, self.position = nodes.orientation[chunk], nodes.position[chunk]
        self.velocity = nodes.velocity[chunk]
        self.force_bias = nodes.accelerometer_bias[chunk]
        self.rate_bias = nodes.gyroscope_bias[chunk]
        self.transition = np.tile(np.eye(15), (len(chunk), 1, 1))
        self.noise = np.zeros((len(chunk), 15, 15))
        self.first, self.end = steps.first[chunk], steps.first[chunk + 1]
        self.most = int(np.max(self.end - self.first))
        densities = np.array([imu_densities(settings, float(gap)) for gap in steps.gap[chunk]])
        self.densities = densities**2

    def advance(self, k: int) -> None:
        """Integrate the k-th step of every interval that has one."""
        number = self.first + k
        on = np.flatnonzero(number < self.end)
        dt = self.steps.seconds[number[on], None]
        rate = self.steps.rate[number[on]] - self.rate_bias[on]
        force = self.steps.force[number[on]] - self.force_bias[on]
        turn, step = self.turn[on], Rotation.from_rotvec(rate * dt).as_matrix()
        acceleration = (turn @ force[..., None])[..., 0] + self.gravity
        self.position[on] += self.velocity[on] * dt + 0.5 * acceleration * dt**2
        self.velocity[on] += acceleration * dt
        self.turn[on] = turn @ step
        t = dt[..., None]
        tilted = -turn @ skew(force)
        F = np.tile(np.eye(15), (len(on), 1, 1))
        F[:, 0:3, 0:3] = step.transpose(0, 2, 1)
        F[:, 0:3, 12:15] = -t * np.eye(3)
        F[:, 3:6, 0:3] = 0.5 * t**2 * tilted
        F[:, 3:6, 6:9] = t * np.eye(3)
        F[:, 3:6, 9:12] = -0.5 * t**2 * turn
        F[:, 6:9, 0:3] = t * tilted
        F[:, 6:9, 9:12] = -t * turn
        gyroscope, accelerometer, gyroscope_walk, accelerometer_walk = self.densities[on].T
        Q = np.zeros((len(on), 15, 15))
        axes = np.arange(3)
        s = dt[:, 0]
        for start, value in (
            (0, gyroscope * s),
            (3, 0.25 * accelerometer * s**3 + INTEGRATION_DENSITY**2 * s),
            (6, accelerometer * s),
            (9, accelerometer_walk * s),
            (12, gyroscope_walk * s),
        ):
            Q[:, start + axes, start + axes] = value[:, None]
        across = (0.5 * accelerometer * s**2)[:, None]
        Q[:, 3 + axes, 6 + axes] = across
        Q[:, 6 + axes, 3 + axes] = across
        self.transition[on] = F @ self.transition[on]
        self.noise[on] = F @ self.noise[on] @ F.transpose(0, 2, 1) + Q


class _Snapshots:
    """Integration at the outputs."""

    def __init__(self, count: int, state: _Integration, row: IntArray, step: IntArray) -> None:
        self.row, self.step = row, step
        self.turn, self.position = state.turn[row], state.position[row]
        self.velocity = state.velocity[row]
        self.transition = np.tile(np.eye(15), (count, 1, 1))
        self.noise = np.zeros((count, 15, 15))

    def save(self, state: _Integration, k: int) -> None:
        """Save the outputs at the end of step k."""
        here = np.flatnonzero(self.step == k)
        if len(here):
            row = self.row[here]
            self.turn[here], self.position[here] = state.turn[row], state.position[row]
            self.velocity[here] = state.velocity[row]
            self.transition[here], self.noise[here] = state.transition[row], state.noise[row]


def _correct_ends(
    nodes: Nodes, chunk: IntArray, state: _Integration, snapshots: _Snapshots
) -> OutputMotion:
    """Correct the integrations so that they meet their later nodes."""
    later, row = chunk + 1, snapshots.row
    missed = np.concatenate(
        [
            Rotation.from_matrix(
                state.turn.transpose(0, 2, 1) @ nodes.orientation[later]
            ).as_rotvec(),
            nodes.position[later] - state.position,
            nodes.velocity[later] - state.velocity,
            nodes.accelerometer_bias[later] - state.force_bias,
            nodes.gyroscope_bias[later] - state.rate_bias,
        ],
        axis=1,
    )
    onward = np.linalg.solve(
        snapshots.transition.transpose(0, 2, 1), state.transition[row].transpose(0, 2, 1)
    )
    # The entries differ by twenty powers of ten, so the matrix is scaled.
    scale = np.sqrt(np.einsum('nii->ni', state.noise))
    correlation = state.noise / (scale[:, :, None] * scale[:, None, :])
    gain = (
        np.linalg.solve(
            correlation[row], (snapshots.noise @ onward / scale[row, None, :]).transpose(0, 2, 1)
        ).transpose(0, 2, 1)
        / scale[row, None, :]
    )
    correction = (gain @ missed[row][..., None])[..., 0]
    A = np.concatenate([snapshots.transition - gain @ state.transition[row], gain], axis=2)
    covariance = A @ nodes.joint[chunk[row]] @ A.transpose(0, 2, 1)
    covariance += snapshots.noise - gain @ state.noise[row] @ gain.transpose(0, 2, 1)
    return OutputMotion(
        orientation=snapshots.turn @ Rotation.from_rotvec(correction[:, :3]).as_matrix(),
        position=snapshots.position + correction[:, 3:6],
        velocity=snapshots.velocity + correction[:, 6:9],
        accelerometer_bias=state.force_bias[row] + correction[:, 9:12],
        gyroscope_bias=state.rate_bias[row] + correction[:, 12:15],
        covariance=0.5 * (covariance + covariance.transpose(0, 2, 1)),
    )


_FRAME = 'map'


@dataclasses.dataclass(frozen=True, eq=False)
class ReferencedRecording:
    """Recording with its reference trajectory."""

    recording: Recording  # the input and, as its truth, the reference
    judged: JudgedRun  # run of the smoother, from the first to the last fix


def make_reference(
    recording: Recording,
    judge: SmootherJudge,
    *,
    start_heading: float | None = None,
    replace_truth: bool = False,
) -> ReferencedRecording:
    """Add a reference trajectory to a recording.

    The reference ends with the last fix, because the IMU runs open loop after it. The start
    heading is the yaw of base_link at the first fix, rad from east. RecordingError when the
    recording has a truth and `replace_truth` is not set, or has fewer than 3 estimates between the
    first and the last fix. JudgeError when the smoother has no solution. UnusableFitError when the
    solution did not converge, or contradicts most fixes or the IMU between most of them.
    """
    where = recording.path or recording.name
    if 'truth' in recording.roles and not replace_truth:
        raise RecordingError(
            f'{where}: has a truth ({recording.roles["truth"]}); give --replace-truth to put the '
            'reference in its place'
        )
    judged = judge.judge(recording, start_heading=start_heading)
    _check_solution(where, judge.parameters, judged)
    keep = judged.stamp_ns <= judged.gps_stamp_ns[-1]
    between = {name: getattr(judged, name)[keep] for name in (*ODOMETRY_FIELDS, 'tick_ns')}
    judged = dataclasses.replace(judged, **between)
    if len(judged) < 3:
        raise RecordingError(
            f'{where}: {len(judged)} estimates between the first and the last fix; must be 3 or '
            'more'
        )
    installed = versions()
    installed['gtsam'] = importlib.metadata.version('gtsam')
    makers = ', '.join(f'{name} {installed[name]}' for name in ('sim2real_sensors', 'gtsam'))
    truth = OdometryArray(
        arrival_ns=judged.stamp_ns,
        frame=_FRAME,
        child_frame=judge.base_link_frame,
        **{name: getattr(judged, name) for name in ODOMETRY_FIELDS},
    )
    # Frames and types of a previous truth do not apply to the reference.
    bare = recording.with_messages('truth', None)
    labelled = bare.with_messages('truth', truth)
    topic = labelled.roles['truth']
    return ReferencedRecording(
        recording=dataclasses.replace(
            labelled,
            ros_types={name: kind for name, kind in bare.ros_types.items() if name != topic},
            reference=ReferenceTruth(
                topic=topic,
                made_by=makers,
                made_from=(recording.roles['imu'], recording.roles['gps']),
                deviation=deviations(judged),
                settings=judge.settings(),
            ),
        ),
        judged=judged,
    )


def _check_solution(where: str, settings: InertialSettings, judged: JudgedRun) -> None:
    """Raise UnusableFitError for a solution that did not converge or contradicts most fixes."""
    remedy = 'check the units, axes and covariances of IMU and GPS with `sim2real check`'
    for note in judged.notes:
        if note.kind in (estimate.NOT_CONVERGED, estimate.IMU_CONTRADICTED):
            raise UnusableFitError(f'{where}: no reference: {note.problem}; {remedy}')
    inside = (judged.gps_stamp_ns >= judged.stamp_ns[0]) & (
        judged.gps_stamp_ns <= judged.stamp_ns[-1]
    )
    stamps, position = judged.gps_stamp_ns[inside], judged.gps_position[inside]
    path = [np.interp(stamps, judged.stamp_ns, axis) for axis in judged.position.T]
    error = np.stack(path, axis=1) - position
    covariance = judged.gps_covariance[inside, :3, :3]
    solved = np.linalg.solve(covariance, error[..., None])[..., 0]
    width = settings.smoother.loss_width
    beyond = int(np.sum(np.sum(error * solved, axis=1) > width**2))
    if 2 * beyond > len(stamps):
        raise UnusableFitError(
            f'{where}: no reference: {beyond} of {len(stamps)} fixes are more than {width:g} '
            f'deviations from it; {remedy}'
        )


def deviations(judged: JudgedRun) -> Mapping[str, float]:
    """Return the median standard deviations of a run.

    The position deviation is along the worst horizontal direction. The speed deviation is that of
    the magnitude, which does not depend on the heading.
    """
    worst = np.sqrt(np.linalg.eigvalsh(judged.pose_covariance[:, :2, :2])[:, -1])
    return {
        'position_m': float(np.median(worst)),
        'height_m': float(np.median(np.sqrt(judged.pose_covariance[:, 2, 2]))),
        'speed_m_s': float(np.median(horizontal_speed(judged)[1])),
        'heading_rad': float(np.median(np.sqrt(judged.pose_covariance[:, 5, 5]))),
    }


def horizontal_speed(judged: JudgedRun) -> tuple[FloatArray, FloatArray]:
    """Return the horizontal speed and its deviation, each (n,) m/s.

    The deviation is along the velocity, to first order, or along the worst direction near rest.
    """
    turn = Rotation.from_quat(judged.orientation).as_matrix()
    velocity = (turn @ judged.linear_velocity[..., None])[:, :2, 0]
    covariance = (turn @ judged.twist_covariance[:, :3, :3] @ turn.transpose(0, 2, 1))[:, :2, :2]
    speed = np.hypot(velocity[:, 0], velocity[:, 1])
    worst = np.sqrt(np.linalg.eigvalsh(covariance)[:, -1])
    along = velocity / np.maximum(speed, 1e-12)[:, None]
    deviation = np.sqrt(np.einsum('ni,nij,nj->n', along, covariance, along))
    return speed, np.where(speed > worst, deviation, worst)
