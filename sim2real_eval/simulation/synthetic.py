# SPDX-License-Identifier: Apache-2.0
"""Recordings of motions that never took place: a driven vehicle or an analytic scenario."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim2real_eval.recording.recording import DEFAULT_TOPICS, Recording
from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import TwinMaker
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.motions import truth_of
from sim_sensors.motion.trajectory import Motion
from sim_sensors.world.fields import EarthField
from sim_sensors.world.geodesy import DEFAULT_ORIGIN, LocalFrame
from sim_sensors.world.world import World


def synthetic_recording(
    motion: Motion,
    twin: Twin,
    *,
    seed: int,
    run: str,
    scenario: str,
    origin: LocalFrame = DEFAULT_ORIGIN,
    world: World | None = None,
) -> Recording:
    """Return a recording of a motion with the sensors of `twin` and its truth at 100 Hz.

    The origin of the motion's coordinates lies at `origin`; `world` says what else surrounds the
    sensors, in those coordinates.

    Raises
    ------
    Sim2RealError
        When the motion is too short to be one.

    Examples
    --------
    >>> from sim_sensors import load_gps, load_imu, motion_of
    >>> from sim2real_eval.simulation import Twin
    >>> motion = motion_of('line', duration=2.0)
    >>> own = Twin('own', load_gps('baseline'), load_imu('ideal'))
    >>> drive = synthetic_recording(motion, own, seed=1, run='drive', scenario='line')
    >>> len(drive.imu), len(drive.truth)
    (201, 201)
    """
    topic = DEFAULT_TOPICS['truth']
    bare = Recording(
        name=run,
        scenario=scenario,
        path='',
        messages={topic: truth_of(motion)},
        roles={'truth': topic},
    )
    maker = TwinMaker(bare, seed=seed, purpose='recording', origin=origin, world=world)
    return maker.make(twin)


# The magnetic field of a recording's place, from its own magnetometer where no world
# says it.

REFERENCE_S = 2.0
"""Time from the first sample of the magnetometer in which the field is measured, s."""


def early_field(maker: TwinMaker) -> FloatArray:
    """Return the mean field, `(3,)` T, world, of the first two seconds, turned by the truth.

    [Ligorio2015] does so, section 2.3.1. What is fixed to the body, such as hard iron, is in it,
    and turns with the body from then on.

    Parameters
    ----------
    maker : TwinMaker
        Of a recording with a magnetometer.
    """
    mag = maker.real.mag
    assert mag is not None
    early = mag.take(mag.stamp_ns - mag.stamp_ns[0] <= REFERENCE_S * 1e9)
    at = maker.motion.at((early.stamp_ns - maker.start_ns) * 1e-9).orientation
    turn = maker.mounting(mag.frame)[1][None]
    field = rotations.rotate(at, rotations.rotate(turn, early.magnetic_field))
    return np.asarray(field.mean(axis=0))


def maker_with_field(
    recording: Recording, world: World | None, *, seed: int, base_frame: str = 'base_link'
) -> TwinMaker:
    """Return the maker of a recording's twins, in `world`; None: in one with its early field.

    Raises
    ------
    Sim2RealError
        As `TwinMaker`.
    """
    maker = TwinMaker(recording, seed=seed, base_frame=base_frame, world=world)
    if world is not None or maker.real.mag is None:
        return maker
    value = tuple(early_field(maker).tolist())
    found = EarthField(model='constant', value=value)
    maker.world = dataclasses.replace(maker.world, earth_field=found)
    return maker
