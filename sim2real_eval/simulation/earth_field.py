# SPDX-License-Identifier: Apache-2.0
"""The magnetic field of a recording's place, from its own magnetometer where no world says it."""

from __future__ import annotations

import dataclasses

import numpy as np

from sim2real_eval.recording.recording import Recording
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray, MagneticFieldArray
from sim_sensors.world.earth import EarthField
from sim_sensors.world.world import World
from . import spans
from .twin_maker import TwinMaker

REFERENCE_S = 2.0
"""Time from the first sample of the magnetometer in which the field is measured, s."""


def early_field(maker: TwinMaker) -> FloatArray | None:
    """Return the mean field, `(3,)` T, world, of the first two seconds, turned by the truth.

    [Ligorio2015] does so, section 2.3.1. What is fixed to the body, such as hard iron, is in it,
    and turns with the body from then on. A noise-free magnetometer, which has none, goes before
    the real one. None: there is neither.

    `maker`: of the recording.
    """
    mag = spans.noise_free(maker.real).get('mag', maker.real.mag)
    if not isinstance(mag, MagneticFieldArray):
        return None
    early = mag.take(mag.stamp_ns - mag.stamp_ns[0] <= REFERENCE_S * 1e9)
    at = maker.motion.at((early.stamp_ns - maker.start_ns) * 1e-9).orientation
    turn = maker.mounting(mag.frame)[1][None]
    field = rotations.rotate(at, rotations.rotate(turn, early.magnetic_field))
    return np.asarray(field.mean(axis=0))


def maker_with_field(
    recording: Recording, world: World | None, *, seed: int, base_frame: str = 'base_link'
) -> TwinMaker:
    """Return the maker of a recording's twins, in `world`; None: in one with its early field.

    Raises Sim2RealError as `TwinMaker`.
    """
    maker = TwinMaker(recording, seed=seed, base_frame=base_frame, world=world)
    field = early_field(maker) if world is None else None
    if field is not None:
        found = EarthField(model='constant', value=tuple(field.tolist()))
        maker.world = dataclasses.replace(maker.world, earth_field=found)
    return maker
