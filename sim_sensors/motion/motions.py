# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Motions by name, for the command line and the nodes, and their ground-truth odometry."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from sim_sensors.core.errors import MotionError, UnknownNameError, not_among
from sim_sensors.core.measurements import ImuArray, MessageParts, OdometryArray
from sim_sensors.core.parameters import Parameters
from sim_sensors.core.registry import Registry
from sim_sensors.core.rotations import rotate_back
from .paths import DRIVES, drive
from .sampling import sample_blocks
from .scenarios import TimedMotion
from .trajectory import Motion

START_NS = 1_700_000_000_000_000_000
"""First stamp of synthetic runs, ns: fixed, so that equal seeds give equal bytes."""
_TRUTH_RATE = 100.0

SCENARIOS: Registry[type[TimedMotion]] = Registry(
    'sim2real_sensors.scenarios',
    'a scenario',
    lambda thing: isinstance(thing, type) and issubclass(thing, TimedMotion),
    {
        'standstill': 'sim_sensors.motion.scenarios:Standstill',
        'line': 'sim_sensors.motion.scenarios:Line',
        'circle': 'sim_sensors.motion.scenarios:Circle',
        'half_sine': 'sim_sensors.motion.scenarios:HalfSine',
        'figure_eight': 'sim_sensors.motion.scenarios:FigureEight',
        'closed_curve': 'sim_sensors.motion.closed_curves:ClosedCurve',
        'path_a': 'sim_sensors.motion.closed_curves:PathA',
        'path_b': 'sim_sensors.motion.closed_curves:PathB',
        'path_c': 'sim_sensors.motion.closed_curves:PathC',
        'path_d': 'sim_sensors.motion.closed_curves:PathD',
        'constant_twist': 'sim_sensors.motion.spatial_scenarios:ConstantTwist',
        'accelerating': 'sim_sensors.motion.spatial_scenarios:Accelerating',
        'swaying': 'sim_sensors.motion.spatial_scenarios:Swaying',
        'hand_held': 'sim_sensors.motion.spatial_scenarios:HandHeld',
        'mjcf': 'sim_sensors.motion.mujoco_motion:MjcfMotion',
    },
)
"""Motions in closed form by name: on level ground, in space, and from other packages.

Each derives from `TimedMotion` and implements `at(times)`, which returns a `Trajectory`.
"""

_DRIVEN = tuple(f'drive_{name}' for name in DRIVES)

_SPRUNG = tuple(f'sprung_{name}' for name in DRIVES)


def motion_names() -> list[str]:
    """Return the names of all motions: drives of the ART vehicle, then scenarios."""
    return [*_DRIVEN, *_SPRUNG, *SCENARIOS.names()]


def motion_parameters(name: str) -> type[Parameters] | None:
    """Return the class that declares the parameters of a motion; None for one without any.

    This is the class in `SCENARIOS` for a scenario, and `SprungCar` for the vehicle on springs.
    Raises UnknownNameError for an unknown name, and MotionError if the motion needs MuJoCo and
    that is not installed.

    Examples
    --------
    >>> list(motion_parameters('circle').declarations())
    ['duration', 'heading', 'speed', 'ramp_time', 'rest_time', 'stop', 'radius', 'clockwise']
    """
    if name in _DRIVEN:
        return None
    if name in _SPRUNG:
        from .roads import SprungCar

        return SprungCar
    return SCENARIOS.get(name)


def motion_of(
    name: str,
    *,
    duration: float,
    seed: int = 0,
    run: str = '1',
    parameters: Mapping[str, object] | None = None,
) -> Motion:
    """Return a motion: a drive of the ART vehicle, or an analytic scenario.

    Parameters
    ----------
    name : str
        `drive_line`, `drive_circle`, `drive_half_sine`; `sprung_line`, ... for the vehicle on
        springs in MuJoCo; the name of a scenario; or a class in a file, `my_motion.py:Spiral`.
    duration : float
        Duration, s.
    seed, run
        Labels of the variation of a drive; an analytic scenario is the same in every run.
    parameters : mapping, optional
        Parameters of an analytic scenario, or of `SprungCar`.

    Raises
    ------
    MotionError
        For an unknown name, or parameters for a drive.
    ParameterError
        For a wrong parameter of a scenario.

    Examples
    --------
    >>> motion_of('circle', duration=10.0, parameters={'radius': 5.0}).duration
    10.0
    """
    if name in _DRIVEN:
        if parameters:
            raise MotionError(f'{name} takes no parameters, got {", ".join(parameters)}')
        return drive(name.removeprefix('drive_'), seed=seed, run=run, duration=duration)
    if name in _SPRUNG:
        from .roads import SprungCar, drive_on_springs

        car = SprungCar.from_mapping(parameters or {}, f'motion {name}')
        path = name.removeprefix('sprung_')
        return drive_on_springs(path, seed=seed, run=run, duration=duration, car=car)
    try:
        kind = SCENARIOS.get(name)
    except UnknownNameError:
        problem = not_among(f'scenario {name!r} is unknown', name, motion_names())
        raise MotionError(
            f'{problem}, or a class in a file, such as my_motion.py:Spiral'
        ) from None
    motion: Motion = kind.from_mapping(
        {**(parameters or {}), 'duration': duration}, f'scenario {name}'
    )
    return motion


def has_noise_free_imu(name: str) -> bool:
    """Return whether a named motion comes with the messages of a noise-free IMU.

    Raises UnknownNameError for an unknown name.

    Examples
    --------
    >>> has_noise_free_imu('sprung_line'), has_noise_free_imu('line')
    (True, False)
    """
    if name in _DRIVEN or name in _SPRUNG:
        return name in _SPRUNG
    return hasattr(SCENARIOS.get(name), 'noise_free_imu')


def noise_free_imu(motion: Motion, *, start_ns: int = START_NS) -> ImuArray | None:
    """Return the messages of the noise-free IMU of a motion, or None if it has no such IMU.

    `start_ns` is the stamp of motion time 0.

    Examples
    --------
    >>> noise_free_imu(motion_of('circle', duration=2.0)) is None
    True
    """
    imu: ImuArray | None = getattr(motion, 'noise_free_imu', None)
    if imu is None:
        return None
    stamp_ns = imu.stamp_ns + start_ns
    return dataclasses.replace(imu, stamp_ns=stamp_ns, arrival_ns=stamp_ns)


def truth_of(
    motion: Motion, *, rate: float = _TRUTH_RATE, start_ns: int = START_NS
) -> OdometryArray:
    """Return the ground-truth odometry of a motion, from map to base_link, with zero covariance.

    Parameters
    ----------
    motion : Motion
        Motion to sample.
    rate : float
        Sample rate, Hz.
    start_ns : int
        Stamp of motion time 0.

    Examples
    --------
    >>> motion = motion_of('line', duration=2.0)
    >>> truth_of(motion, rate=50.0).position.shape
    (101, 3)
    """
    columns = MessageParts[OdometryArray]()
    for stamp_ns, times in sample_blocks(motion, rate, start_ns=None, origin_ns=start_ns):
        sampled = motion.at(times)
        part = OdometryArray.exact(
            stamp_ns,
            position=sampled.position,
            orientation=sampled.orientation,
            linear_velocity=rotate_back(sampled.orientation, sampled.velocity),
            angular_velocity=sampled.angular_velocity,
        )
        columns.add(part)
    return columns.concatenate()
