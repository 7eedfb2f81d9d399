# SPDX-License-Identifier: Apache-2.0
"""Recordings of motions that never took place: a driven vehicle or an analytic scenario."""

from __future__ import annotations

from sim2real_eval.recording import DEFAULT_TOPICS, Recording
from sim2real_eval.twin import Twin
from sim2real_eval.twin_maker import TwinMaker
from sim_sensors.environment import DEFAULT_ORIGIN, LocalFrame
from sim_sensors.motions import START_NS, motion_of, truth_of
from sim_sensors.trajectory import Motion
from sim_sensors.world import World

__all__ = ['START_NS', 'motion_of', 'synthetic_recording', 'truth_of']


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
