# SPDX-License-Identifier: Apache-2.0
"""The judge that has seen the future: a GTSAM smoother over the whole recording."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding
from sim2real_eval.common.results import version
from sim2real_eval.judge import findings
from sim2real_eval.judge.estimate import JudgedRun, PartCount
from sim2real_eval.judge.inertial.alignment import first_attitude
from sim2real_eval.judge.inertial.error_state import grid, skew
from sim2real_eval.judge.inertial.front_end import InertialInputs, inertial_inputs
from sim2real_eval.judge.inertial.settings import InertialJudge, InertialSettings
from sim2real_eval.judge.smoother import bridging
from sim2real_eval.judge.smoother.bridging import bridge
from sim2real_eval.judge.smoother.chain import cut
from sim2real_eval.judge.smoother.factor_graph import Nodes, load_gtsam, solve
from sim2real_eval.recording.frames import TransformFile
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.measurements import FloatArray, IntArray

_OUTAGE_S = 2.0


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
        """Return what made the result beside the files, the version of gtsam too."""
        return {**super().settings(), 'gtsam': version('gtsam')}

    def judge(
        self,
        recording: Recording,
        *,
        start_ns: int | None = None,
        start_heading: float | None = None,
    ) -> JudgedRun:
        """Estimate the motion in a recording from its imu and gps; see `smooth`."""
        return smooth(
            recording,
            self.parameters,
            start_ns=start_ns,
            start_heading=start_heading,
            transforms=self.transforms,
        )


def smooth(
    recording: Recording,
    settings: InertialSettings,
    *,
    start_ns: int | None = None,
    start_heading: float | None = None,
    transforms: TransformFile | None = None,
) -> JudgedRun:
    """Estimate the motion in a recording from all of its imu and gps at once.

    Parameters
    ----------
    recording : Recording
    settings : InertialSettings
    start_ns : int or None
        Origin of the grid of estimates; messages before are left out. None: first usable fix.
    start_heading : float or None
        Yaw of base_link at the first fix, rad from east.
    transforms : TransformFile or None
        What replaces or completes the recording's own.

    Returns
    -------
    JudgedRun
        From the first fix to the last IMU message; the world is east-north-up about the first
        fix. Every estimate is stamped with its own time.

    Raises
    ------
    JudgeError
        Without gtsam, when the recording lacks what is needed, or when there is no solution.
    RecordingError
        When the recording has no imu or no gps.
    """
    load_gtsam()
    inputs = inertial_inputs(recording, settings, start_ns=start_ns, transforms=transforms)
    start = first_attitude(inputs, settings, start_heading)
    first_ns, last_ns = int(inputs.fix_ns[0]), int(inputs.imu_ns[-1])
    origin_ns = first_ns if start_ns is None else start_ns
    output_ns = grid(origin_ns, first_ns, last_ns, settings.output_frequency)
    steps = cut(inputs, settings, output_ns)
    nodes = solve(inputs, settings, steps, start)
    path = bridge(nodes, steps, settings)
    notes = (*inputs.notes, *start.notes, *_remarks(inputs, settings, nodes))
    return _judged(inputs, settings, nodes, path, output_ns, notes)


def _remarks(
    inputs: InertialInputs, settings: InertialSettings, nodes: Nodes
) -> tuple[Finding, ...]:
    """Say how the solution was found and what it should not be taken for."""
    notes = [findings.SEES_FUTURE()]
    if not nodes.converged:
        notes.append(findings.NOT_CONVERGED(iterations=nodes.iterations))
    silent = np.diff(inputs.fix_ns) * 1e-9
    out = silent > _OUTAGE_S
    if out.any():
        longest = float(np.max(silent))
        notes.append(findings.OUTAGES(count=int(np.sum(out)), limit=_OUTAGE_S, longest=longest))
    beyond = int(np.sum(nodes.fix_distance > settings.smoother.loss_width))
    if settings.smoother.loss != 'none' and beyond:
        width, loss = settings.smoother.loss_width, settings.smoother.loss
        notes.append(
            findings.OUTLIERS(count=beyond, fixes=len(inputs.fix), width=width, loss=loss)
        )
    for name in ('lateral_deviation', 'vertical_deviation'):
        if getattr(settings, name) > 0.0:
            notes.append(findings.SETTING_UNUSED(name))
    return tuple(notes)


def _judged(
    inputs: InertialInputs,
    settings: InertialSettings,
    nodes: Nodes,
    path: bridging.ImuMotion,
    output_ns: IntArray,
    notes: tuple[Finding, ...],
) -> JudgedRun:
    """Move the motion of the IMU to base_link."""
    turn, arm = path.orientation, inputs.imu_arm
    rate, white = _rates(inputs, settings, output_ns)
    rate = rate - path.gyroscope_bias
    along = (turn.transpose(0, 2, 1) @ path.velocity[..., None])[..., 0]
    lever = skew(np.tile(arm, (len(turn), 1)))
    # Of base_link's pose about fixed axes and of its twist, from the 15 errors.
    pose, twist = np.zeros((2, len(turn), 6, 15))
    pose[:, :3, 0:3], pose[:, :3, 3:6], pose[:, 3:, 0:3] = turn @ lever, np.eye(3), turn
    twist[:, :3, 0:3], twist[:, :3, 6:9] = skew(along), turn.transpose(0, 2, 1)
    twist[:, :3, 12:15], twist[:, 3:, 12:15] = -lever, -np.eye(3)
    read = np.concatenate([-lever, np.tile(-np.eye(3), (len(turn), 1, 1))], axis=1)
    P = path.covariance
    pose_covariance = pose @ P @ pose.transpose(0, 2, 1)
    twist_covariance = twist @ P @ twist.transpose(0, 2, 1)
    twist_covariance += white[:, None, None] * (read @ read.transpose(0, 2, 1))
    fixes = len(inputs.fix)
    held = nodes.orientation[nodes.fix_node] @ inputs.antenna
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
        gps_position=inputs.fix - held,
        gps_covariance=_six(inputs.fix_covariance),
        parts=(
            PartCount(
                name='gps pose',
                topic=inputs.fix_topic,
                received=inputs.fixes_received,
                older=0,
                unusable=inputs.fixes_received - fixes,
                fused=fixes,
                rejected=0,
            ),
        ),
        notes=notes,
        about_axes=True,
    )


def _rates(
    inputs: InertialInputs, settings: InertialSettings, at_ns: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the measured rates, (n, 3), and the variance of their white noise, (n,).

    Of a message it is density^2 / period; a rate between two messages has less of it.
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


def _six(covariance: FloatArray) -> FloatArray:
    result = np.zeros((len(covariance), 6, 6))
    result[:, :3, :3] = covariance
    return result
