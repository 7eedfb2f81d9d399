# SPDX-License-Identifier: Apache-2.0
"""What the judge did with its inputs that changes what its estimate means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import numpy as np

from sim2real_eval.common.findings import assumed, decisive
from sim2real_eval.judge.estimate import PartCount
from sim2real_eval.judge.robot_localization.configuration import NAVSAT_TOPIC, FilterConfig
from sim2real_eval.judge.robot_localization.navsat_configuration import NavsatConfig
from sim2real_eval.judge.robot_localization.state import YAW
from sim_sensors.core.measurements import (
    FixArray,
    FloatArray,
    ImuArray,
    IntArray,
    MessageArray,
    OdometryArray,
    TwistArray,
)
from sim_sensors.world.geodesy import LocalFrame

__all__ = [
    'RUNS_AWAY',
    'datum_advice',
    'divergence_remedy',
    'enu_advice',
    'input_advice',
    'motion_advice',
    'mounting_advice',
    'navsat_advice',
    'part_advice',
    'twist_advice',
]

_MOST = 0.5
_LEAST_GRAVITY = 0.05


def _has_no_attitude(imu: ImuArray) -> bool:
    return bool((np.abs(imu.orientation_covariance[:, 0, 0] + 1.0) <= 1e-9).all())


def input_advice(
    config: FilterConfig,
    navsat: NavsatConfig | None,
    sources: Mapping[str, MessageArray | None],
    headings: ImuArray | None,
    correct: Set[str] = frozenset(),
) -> list[str]:
    """Say what an IMU without orientation means for this configuration, one line each.

    Parameters
    ----------
    config, navsat
        The nodes' parameters.
    sources : mapping
        Input to its messages; None for what navsat_transform publishes.
    headings : ImuArray or None
        Where navsat_transform takes its heading from.
    correct : set of str
        Deviations of robot_localization that are corrected.
    """
    notes = []
    for source in config.sources:
        if source.differential and source.topic == NAVSAT_TOPIC and 'differential' not in correct:
            notes.append(
                assumed(
                    f'{source.name} fuses GPS increments, which are world components, as body '
                    'velocity: forward speed is meaningless unless the vehicle heads along a '
                    'world axis; horizontal speed is not affected; `correct: [differential]` '
                    'turns them'
                )
            )
        imu = sources.get(source.name)
        if not isinstance(imu, ImuArray) or not _has_no_attitude(imu):
            continue
        if source.mask[3:6].any():
            text = (
                f'{source.name} is configured to measure orientation, but {source.topic} carries '
                'none (-1): that part is skipped and attitude comes from the rates alone'
            )
            if source.mask[YAW] and config.initial_state[YAW] == 0.0:
                text += (
                    ', from a start heading of 0 (east): forward speed is then meaningless and '
                    'accelerations are fused in a wrong direction unless the run starts eastward; '
                    'give the heading in `initial_state`, or `sim2real vepd --start-heading` '
                    '(in a study file `start_heading: true`)'
                )
                text = decisive(text)
            notes.append(text)
        if source.remove_gravity:
            notes.append(
                f'{source.name} carries no orientation: gravity is removed with the attitude '
                "estimated by the filter, so that attitude's error shows up as acceleration"
            )
    if navsat is not None and headings is not None and _has_no_attitude(headings):
        notes.append(
            decisive(
                'navsat_transform takes its heading from an IMU that carries no orientation (-1): '
                'as in robot_localization the start heading counts as 0 (east), so the estimated '
                'track is turned by the true start heading'
            )
        )
    return notes


def mounting_advice(inputs_frames: Sequence[tuple[str, FloatArray]], gravity: float) -> list[str]:
    """Say what gravity removal leaves in for an IMU mounted with roll or pitch, one line each.

    Parameters
    ----------
    inputs_frames : sequence of (name, rotation)
        IMUs whose gravity is removed and their mounting, (3, 3), sensor to base_link.
    gravity : float
        m/s^2.
    """
    notes = []
    for name, rotation in inputs_frames:
        # Level and at rest the acceleration in base_link is (0, 0, g); robot_localization takes
        # off g times the third row of the mounting rotation.
        left_in = gravity * float(np.hypot(rotation[2, 0], rotation[2, 1]))
        if left_in > _LEAST_GRAVITY:
            notes.append(
                f'{name} is mounted with roll or pitch: as in robot_localization, gravity is '
                f'removed in the wrong axes, which leaves about {left_in:.1f} m/s^2 of false '
                'acceleration at rest; `correct: [gravity]` does it right'
            )
    return notes


def divergence_remedy(unscented: bool, textbook: bool) -> str:
    """Say what to do about estimates that are not numbers.

    Parameters
    ----------
    unscented, textbook : bool
        Whether the filter is unscented, and if so that of the textbook.
    """
    if unscented and not textbook:
        return (
            "robot_localization's unscented filter does this when its covariance is positive "
            'definite no more, which its correction lets happen; `correct: [unscented]` '
            '(--correct unscented) avoids it'
        )
    return (
        'as in robot_localization, state or covariance grew out of bounds: look at process noise, '
        'initial covariance and the covariances of the messages'
    )


def part_advice(parts: Sequence[PartCount]) -> list[str]:
    """Say which inputs the judge hardly used, one line each."""
    notes = []
    received: dict[tuple[str, str], int] = {}
    for part in parts:
        key = (part.name.split()[0], part.topic)
        received[key] = received.get(key, 0) + part.received
    for (source, topic), count in received.items():
        if not count:
            notes.append(decisive(f'{source} ({topic}): no message, so it measured nothing'))
    for part in parts:
        judged = part.fused + part.rejected
        gated = part.rejected - part.singular
        if judged and gated > _MOST * judged:
            notes.append(
                decisive(
                    f'{part.name} ({part.topic}): the Mahalanobis gate refused {gated} of '
                    f'{judged} measurements, so the estimate hardly depends on this sensor'
                )
            )
        if part.singular:
            notes.append(
                decisive(
                    f'{part.name} ({part.topic}): {part.singular} of {judged} measurements were '
                    'refused because the covariance of their innovation was singular or not a '
                    'number'
                )
            )
        if part.older:
            notes.append(
                f'{part.name} ({part.topic}): {part.older} of {part.received} messages are older '
                'than the one before and were refused'
            )
    return notes


def navsat_advice(fixes: int, used: int, lost: int, early: int, frequency: float) -> list[str]:
    """Say how many fixes navsat_transform dropped, one line for each reason.

    Parameters
    ----------
    fixes, used, lost, early : int
        Valid fixes; those passed on; those that a newer one overtook; and those that came before a
        given datum was there to refer them to.
    frequency : float
        Of its timer, Hz.
    """
    if not fixes:
        return [decisive('navsat_transform got no valid fix, so the filter had no GPS')]
    notes = []
    if early:
        notes.append(
            f'navsat_transform dropped {early} of {fixes} fixes that came before its datum was '
            'in use, which takes a filtered odometry and a tick'
        )
    if used == 0 and early < fixes:
        notes.append(
            decisive(
                f'navsat_transform passed on none of {fixes} fixes: it had no heading or odometry'
            )
        )
    # One is normal: the tick that fixes the transform publishes nothing.
    elif lost > 1:
        notes.append(
            f'navsat_transform ({frequency:g} Hz timer) dropped {lost} of {fixes} fixes that a '
            'newer one overtook before its tick'
        )
    return notes


def enu_advice(config: FilterConfig, navsat: NavsatConfig, fixes: int) -> list[str]:
    """Say what the plain front end leaves out, one line each; `fixes` is how many were valid."""
    notes = []
    if not fixes:
        notes.append(decisive(f'{navsat.title} got no valid fix, so the filter had no GPS'))
    if navsat.datum is not None and navsat.datum[2] != 0.0:
        notes.append(
            f'{navsat.title}: the yaw of the datum is not used; x of the world points east'
        )
    for source in config.sources:
        if source.topic == NAVSAT_TOPIC and source.mask[6:12].any():
            notes.append(
                f'{source.name} is configured to measure velocity, of which {navsat.title} has '
                'none'
            )
    return notes


# -------- What in a run no vehicle does or no installation means, a line each; nothing is
# changed.

_WORLDS = ('map', 'odom', 'world', 'earth', 'utm', 'enu', 'ned')
_FAR_M = 100e3
_FAST = 100.0
_JUMP_M = 100.0

RUNS_AWAY = ('the estimated speed exceeds', 'the estimated position jumps')
"""How the notes of `motion_advice` begin."""


def twist_advice(
    config: FilterConfig, sources: Mapping[str, MessageArray | None], *, turned: bool
) -> list[str]:
    """Say which velocities seem to be those of a world frame and are taken as the body's.

    Parameters
    ----------
    config : FilterConfig
    sources : mapping
        Input to its messages.
    turned : bool
        Whether static transforms say how frames lie; without any, all frames count as equal.
    """
    notes = []
    for source in config.sources:
        array = sources.get(source.name)
        if not source.mask[6:12].any() or not isinstance(array, (OdometryArray, TwistArray)):
            continue
        frame = array.child_frame if isinstance(array, OdometryArray) else array.frame
        name = frame.strip('/')
        worlds = {*_WORLDS, config.world_frame.strip('/')}
        if isinstance(array, OdometryArray):
            worlds.add(array.frame.strip('/'))
        if not name or name == config.base_link_frame.strip('/') or name not in worlds:
            continue
        how = 'turned by a static transform' if turned else 'taken as they are'
        notes.append(
            decisive(
                f'{source.name} ({source.topic}): velocities are in {name}, which looks like a '
                f'world frame, and are {how} as those of {config.base_link_frame}: they are wrong '
                'as soon as the vehicle turns; robot_localization needs the velocity in the body'
            )
        )
    return notes


def datum_advice(navsat: NavsatConfig, fixes: FixArray) -> list[str]:
    """Say when the datum that is configured lies far from the first fix."""
    if navsat.datum is None or not len(fixes):
        return []
    latitude, longitude, _ = navsat.datum
    there = LocalFrame(latitude, longitude, 0.0).to_enu(
        fixes.latitude[:1], fixes.longitude[:1], fixes.altitude[:1]
    )
    away = float(np.linalg.norm(there))
    if away <= _FAR_M:
        return []
    return [
        decisive(
            f'{navsat.title}: the datum is {away / 1000.0:.0f} km from the first fix: are '
            'latitude and longitude in their order, and of this place?'
        )
    ]


def motion_advice(stamp_ns: IntArray, position: FloatArray, velocity: FloatArray) -> list[str]:
    """Say when estimates are faster than any vehicle, or jump.

    Parameters
    ----------
    stamp_ns : (n,) int64
    position : (n, 3) float
        m.
    velocity : (n, 3) float
        m/s; what is not a number does not count.
    """
    notes = []
    speed = np.nan_to_num(np.linalg.norm(velocity, axis=1), nan=0.0, posinf=np.inf)
    if len(speed) and speed.max() > _FAST:
        first = (stamp_ns[np.argmax(speed > _FAST)] - stamp_ns[0]) * 1e-9
        notes.append(
            decisive(
                f'the estimated speed exceeds {_FAST:g} m/s from t = {first:.2f} s after the '
                f'first estimate on, and reaches {speed.max():.3g} m/s'
            )
        )
    steps = np.linalg.norm(np.diff(position, axis=0), axis=1)
    allowed = _JUMP_M + _FAST * np.diff(stamp_ns) * 1e-9
    far = np.flatnonzero(np.isfinite(steps) & (steps > allowed))
    if len(far):
        at = (stamp_ns[far[0] + 1] - stamp_ns[0]) * 1e-9
        notes.append(
            decisive(
                f'the estimated position jumps {len(far)} times, first by {steps[far[0]]:.3g} m '
                f'at t = {at:.2f} s after the first estimate'
            )
        )
    return notes
