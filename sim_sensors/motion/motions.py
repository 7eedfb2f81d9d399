# SPDX-License-Identifier: Apache-2.0
"""Motions by name, for the command line and the nodes, and their ground-truth odometry."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim_sensors.core.errors import MotionError, not_among
from sim_sensors.core.measurements import OdometryArray
from sim_sensors.core.rotations import rotate_back
from sim_sensors.motion.path_following import DRIVES, drive
from sim_sensors.motion.sampling import sample_motion
from sim_sensors.motion.scenarios import SCENARIOS, Scenario
from sim_sensors.motion.spatial_scenarios import RIGID_SCENARIOS, RigidScenario, Swaying
from sim_sensors.motion.trajectory import Motion

__all__ = ['ANALYTIC', 'MOTIONS', 'START_NS', 'motion_of', 'truth_of']

START_NS = 1_700_000_000_000_000_000
"""Stamp at which synthetic runs start: a fixed one, so that equal seeds give equal bytes."""

_TRUTH_RATE = 100.0

ANALYTIC: dict[str, type[Scenario] | type[RigidScenario] | type[Swaying]] = {
    **SCENARIOS,
    **RIGID_SCENARIOS,
    Swaying.kind: Swaying,
}
"""Analytic scenarios by name: on level ground, then in space."""

MOTIONS = (*(f'drive_{name}' for name in DRIVES), *ANALYTIC)
"""Names of all motions: drives of the ART vehicle, then analytic scenarios."""


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
    if name not in MOTIONS:
        raise MotionError(not_among(f'scenario {name!r} is unknown', name, MOTIONS))
    if name in ANALYTIC:
        given = {**parameters, 'duration': duration}
        return ANALYTIC[name].from_mapping(given, f'scenario {name}')
    if parameters:
        raise MotionError(f'{name} takes no parameters, got {", ".join(parameters)}')
    return drive(name.removeprefix('drive_'), seed=seed, run=run, duration=duration)


def truth_of(
    motion: Motion, *, rate: float = _TRUTH_RATE, start_ns: int = START_NS
) -> OdometryArray:
    """Return the ground-truth odometry of a motion, zero covariance, map to base_link.

    Parameters
    ----------
    motion : Motion
        What moves.
    rate : float
        Hz.
    start_ns : int
        Stamp of motion time 0.
    """
    stamp_ns, times = sample_motion(motion, rate, start_ns=None, origin_ns=start_ns)
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
