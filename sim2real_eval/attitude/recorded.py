# SPDX-License-Identifier: Apache-2.0
"""The attitude filter on a recording."""

from __future__ import annotations

import numpy as np

from sim2real_eval.attitude.errors import attitude_errors
from sim2real_eval.attitude.estimate import estimate_attitude
from sim2real_eval.attitude.events import UPRIGHT, AttitudeInput
from sim2real_eval.attitude.settings import AttitudeError, AttitudeSettings
from sim2real_eval.attitude.study import AttitudeRun, drawn_attitude
from sim2real_eval.measured_field import maker_with_field
from sim2real_eval.recording import Recording
from sim_sensors.world import World

__all__ = ['recorded_run']


def recorded_run(
    recording: Recording,
    settings: AttitudeSettings,
    *,
    world: World | None = None,
    seed: int = 0,
    base_frame: str = 'base_link',
) -> AttitudeRun:
    """Estimate the attitude of a recording and hold it against its truth.

    Parameters
    ----------
    recording : Recording
        With truth and an IMU; poses of a camera must be of the base in the frame of the truth.
    settings : AttitudeSettings
    world : World, optional
        Whose field and gravity the filter expects; None: standard gravity and the field measured
        in the first two seconds, as in seed 002; see `measured_field`.
    seed : int
        Of the error of the first attitude.
    base_frame : str
        Body whose attitude is estimated.

    Raises
    ------
    Sim2RealError
        When there is no truth or no IMU, or no noise is known.
    """
    maker = maker_with_field(recording, world, seed=seed, base_frame=base_frame)
    real = maker.real
    felt = real.imu
    if felt is None:
        raise AttitudeError(f'{recording.path or recording.name}: has no messages of imu')
    field = real.mag
    given = AttitudeInput(
        felt,
        field,
        real.camera_pose,
        tuple(maker.mounting(felt.frame)[1]),
        UPRIGHT if field is None else tuple(maker.mounting(field.frame)[1]),
    )
    begin = maker.motion.at([(felt.stamp_ns[0] - maker.start_ns) * 1e-9]).orientation
    estimate = estimate_attitude(
        given,
        drawn_attitude(begin, settings, seed, real.name),
        gravity=maker.world.gravity,
        field=np.zeros(3) if field is None else maker.world.undisturbed_field,
        settings=settings,
    )
    truth = maker.motion.at((estimate.stamp_ns - maker.start_ns) * 1e-9).orientation
    return AttitudeRun(
        real.name,
        estimate,
        attitude_errors(estimate, truth),
        tuple(str(one) for one in maker.remarks),
    )
