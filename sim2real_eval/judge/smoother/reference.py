# SPDX-License-Identifier: Apache-2.0
"""Reference trajectory for a recording without truth: the smoother's estimate, labelled."""

from __future__ import annotations

import dataclasses
import importlib.metadata
from collections.abc import Mapping

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.common.results import versions
from sim2real_eval.judge.estimate import ODOMETRY_FIELDS, JudgedRun
from sim2real_eval.recording.recording import Recording, ReferenceTruth
from sim_sensors.core.measurements import FloatArray, OdometryArray
from .smoother import SmootherJudge

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
    first and the last fix. JudgeError when the smoother has no solution.
    """
    where = recording.path or recording.name
    if 'truth' in recording.roles and not replace_truth:
        raise RecordingError(
            f'{where}: has a truth ({recording.roles["truth"]}); give --replace-truth to put the '
            'reference in its place'
        )
    judged = judge.judge(recording, start_heading=start_heading)
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
