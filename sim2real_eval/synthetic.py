# SPDX-License-Identifier: Apache-2.0
"""Recordings of motions that never took place: a driven vehicle or an analytic scenario."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from sim2real_eval.recording import DEFAULT_TOPICS, Recording
from sim2real_eval.twin import Twin, TwinMaker
from sim_sensors.errors import MotionError
from sim_sensors.measurements import OdometryArray
from sim_sensors.path_following import DRIVES, drive
from sim_sensors.rotations import rotate_back
from sim_sensors.sampling import sample_motion
from sim_sensors.scenarios import SCENARIOS
from sim_sensors.trajectory import Motion

__all__ = ['START_NS', 'motion_of', 'synthetic_recording', 'truth_of']

START_NS = 1_700_000_000_000_000_000
"""Stamp at which synthetic runs start: a fixed one, so that equal seeds give equal bytes."""

_TRUTH_RATE = 100.0


def motion_of(
    name: str, *, seed: int, run: str, duration: float, parameters: Mapping[str, object]
) -> Motion:
    """Return a motion: a drive of the ART vehicle, or an analytic scenario.

    Parameters
    ----------
    name : str
        `drive_line`, `drive_circle`, `drive_half_sine`, or the name of an analytic scenario.
    seed, run
        Labels of the variation of a drive; an analytic scenario is the same in every run.
    duration : float
        s.
    parameters : mapping
        Parameters of an analytic scenario.

    Raises
    ------
    MotionError
        For an unknown name, or parameters for a drive.
    ParameterError
        For a wrong parameter of a scenario.
    """
    known = [f'drive_{name}' for name in DRIVES] + list(SCENARIOS)
    if name not in known:
        raise MotionError(f'scenario {name!r} is unknown; must be one of {", ".join(known)}')
    if name in SCENARIOS:
        given = {**parameters, 'duration': duration}
        return SCENARIOS[name].from_mapping(given, f'scenario {name}')
    if parameters:
        raise MotionError(f'{name} takes no parameters, got {", ".join(parameters)}')
    return drive(name.removeprefix('drive_'), seed=seed, run=run, duration=duration)


def truth_of(motion: Motion, *, rate: float = _TRUTH_RATE) -> OdometryArray:
    """Return the ground-truth odometry of a motion, zero covariance, map to base_link.

    Parameters
    ----------
    motion : Motion
        Motion time 0 is stamped `START_NS`.
    rate : float
        Hz.
    """
    stamp_ns, times = sample_motion(motion, rate, start_ns=None, origin_ns=START_NS)
    sampled = motion.at(times)
    n = len(stamp_ns)
    return OdometryArray(
        stamp_ns=stamp_ns,
        arrival_ns=stamp_ns,
        frame='map',
        child_frame='base_link',
        position=sampled.position,
        orientation=sampled.orientation,
        linear_velocity=rotate_back(sampled.orientation, sampled.velocity),
        angular_velocity=sampled.angular_velocity,
        pose_covariance=np.zeros((n, 6, 6)),
        twist_covariance=np.zeros((n, 6, 6)),
    )


def synthetic_recording(
    motion: Motion, twin: Twin, *, seed: int, run: str, scenario: str
) -> Recording:
    """Return a recording of a motion with the sensors of `twin` and its truth at 100 Hz.

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
    maker = TwinMaker(bare, seed=seed, purpose='recording')
    return dataclasses.replace(maker.make(twin), notes=())
