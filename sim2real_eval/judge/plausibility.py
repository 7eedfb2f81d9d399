# SPDX-License-Identifier: Apache-2.0
"""What in a run no vehicle does or no installation means, a line each; nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim2real_eval.judge.configuration import FilterConfig
from sim2real_eval.judge.navsat_configuration import NavsatConfig
from sim2real_eval.told import decisive
from sim_sensors.environment import LocalFrame
from sim_sensors.measurements import (
    FixArray,
    FloatArray,
    IntArray,
    MessageArray,
    OdometryArray,
    TwistArray,
)

__all__ = ['RUNS_AWAY', 'datum_advice', 'motion_advice', 'twist_advice']

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
