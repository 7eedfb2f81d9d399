# SPDX-License-Identifier: Apache-2.0
"""The attitude filter on a recording."""

from __future__ import annotations

import numpy as np

from sim2real_eval.attitude.errors import attitude_errors
from sim2real_eval.attitude.estimate import estimate_attitude
from sim2real_eval.attitude.events import UPRIGHT, AttitudeInput
from sim2real_eval.attitude.settings import AttitudeError, AttitudeSettings
from sim2real_eval.attitude.study import AttitudeRun, drawn_attitude
from sim2real_eval.recording import Recording
from sim2real_eval.twin import TwinMaker
from sim_sensors import rotations
from sim_sensors.world import World

__all__ = ['recorded_run']

_REFERENCE_S = 2.0


def recorded_run(
    recording: Recording,
    settings: AttitudeSettings,
    *,
    world: World | None = None,
    gravity: float | None = None,
    seed: int = 0,
    base_frame: str = 'base_link',
) -> AttitudeRun:
    """Estimate the attitude of a recording and hold it against its truth.

    Parameters
    ----------
    recording : Recording
        With truth and an IMU.
    settings : AttitudeSettings
    world : World, optional
        Whose field the filter expects; None: the one measured in the first two seconds, turned by
        the truth, as in seed 002 section 2.3.1.
    gravity : float, optional
        m/s^2; by default that of the world, or standard gravity.
    seed : int
        Of the error of the first attitude.
    base_frame : str
        Body whose attitude is estimated.

    Raises
    ------
    Sim2RealError
        When there is no truth or no IMU, or no noise is known.
    """
    maker = TwinMaker(recording, seed=seed, base_frame=base_frame, world=world)
    real = maker.real
    felt = real.imu
    if felt is None:
        raise AttitudeError(f'{recording.path or recording.name}: has no messages of imu')
    field = real.mag
    given = AttitudeInput(
        felt,
        field,
        None,
        tuple(maker.mounting(felt.frame)[1]),
        UPRIGHT if field is None else tuple(maker.mounting(field.frame)[1]),
    )
    expected = np.zeros(3)
    if field is not None and world is not None:
        expected = world.undisturbed_field
    elif field is not None:
        early = field.take(field.stamp_ns - field.stamp_ns[0] <= _REFERENCE_S * 1e9)
        at = maker.motion.at((early.stamp_ns - maker.start_ns) * 1e-9).orientation
        turn = np.asarray(given.mag_turn)[None]
        expected = rotations.rotate(at, rotations.rotate(turn, early.magnetic_field)).mean(axis=0)
    begin = maker.motion.at([(felt.stamp_ns[0] - maker.start_ns) * 1e-9]).orientation
    estimate = estimate_attitude(
        given,
        drawn_attitude(begin, settings, seed, real.name),
        gravity=gravity or (world or World()).gravity,
        field=expected,
        settings=settings,
    )
    truth = maker.motion.at((estimate.stamp_ns - maker.start_ns) * 1e-9).orientation
    return AttitudeRun(
        real.name,
        estimate,
        attitude_errors(estimate, truth),
        tuple(str(one) for one in maker.remarks),
    )
