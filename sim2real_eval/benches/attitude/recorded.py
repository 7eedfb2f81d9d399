# SPDX-License-Identifier: Apache-2.0
"""The attitude filter on a recording."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim2real_eval.benches.attitude.events import UPRIGHT, AttitudeInput
from sim2real_eval.benches.attitude.filter import AttitudeError
from sim2real_eval.benches.attitude.findings import CAMERA_FRAME, SAME_TURN
from sim2real_eval.benches.attitude.settings import AttitudeSettings
from sim2real_eval.benches.attitude.study import AttitudeRun, drawn_attitude, held_run
from sim2real_eval.common.findings import Finding
from sim2real_eval.recording.recording import Recording
from sim2real_eval.simulation.synthetic import maker_with_field
from sim_sensors.world.world import World


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
        in the first two seconds, as in [Ligorio2015]; see `measured_field`.
    seed : int
        Of the error of the first attitude.
    base_frame : str
        Body whose attitude is estimated.

    Raises
    ------
    Sim2RealError
        When there is no truth or no IMU, or no noise is known.
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
            gravity=maker.world.gravity,
            field=np.zeros(3) if field is None else maker.world.undisturbed_field,
            settings=settings,
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
