# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Motion of a body in MuJoCo, with the measurements of its noise-free IMU at every step."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core import rotations
from sim_sensors.core.errors import MotionError, ParameterError
from sim_sensors.core.input_files import check_input
from sim_sensors.core.installation import pip_install
from sim_sensors.core.measurements import FloatArray, ImuArray, OdometryArray
from sim_sensors.core.parameters import non_negative, parameter
from .ideal import InertialMotion
from .odometry import OdometryMotion
from .scenarios import TimedMotion
from .trajectory import Trajectory
from .vehicles import GRAVITY

MAX_STEPS = 10**7
"""Greatest number of physics steps in one run."""

_GRAVITY_TOLERANCE = 0.05  # m/s^2; on Earth it is 9.78 to 9.83, by default 9.81 in MuJoCo

_LEVEL = np.array([[0.0, 0.0, 0.0, 1.0]])

Control = Callable[[float], None]
"""Function that is called with the time, s, before a step and sets `data.ctrl`."""


def load_mujoco() -> ModuleType:
    """Return the package mujoco; raise a MotionError if it is not installed."""
    try:
        import mujoco
    except ImportError as error:
        raise MotionError(
            f'motion in MuJoCo needs mujoco, which is not installed: {pip_install("mujoco")}'
        ) from error
    module: ModuleType = mujoco
    # By default mujoco writes warnings into a file in the current folder.
    module.set_mju_user_warning(lambda text: None)
    return module


class PhysicalMotion(InertialMotion):
    """Motion of a site of a MuJoCo model, from time 0 on.

    Position, orientation and velocity are interpolated as odometry at the rate of the physics,
    accelerations and rates as in `InertialMotion`. At each step they equal those of MuJoCo.

    Attributes
    ----------
    truth : OdometryArray
        Odometry of every step, with stamp 0 at the first.
    noise_free_imu : ImuArray
        Messages of an IMU at the site at every step.
    gravity : float
        Gravity of the physics, m/s^2.
    """

    def __init__(self, truth: OdometryArray, imu: ImuArray, gravity: float) -> None:
        self.truth, self.noise_free_imu, self.gravity = truth, imu, gravity
        super().__init__(
            OdometryMotion(truth, origin_ns=0, velocity='twist'), imu, origin_ns=0, gravity=gravity
        )


def load_spec(text_or_path: str | Path) -> Any:
    """Return the MjSpec of an MJCF text or file; raise a MotionError if it cannot be read."""
    mujoco = load_mujoco()
    is_text = str(text_or_path).lstrip().startswith('<')
    try:
        if is_text:
            return mujoco.MjSpec.from_string(str(text_or_path))
        check_input(text_or_path)
        return mujoco.MjSpec.from_file(str(text_or_path))
    except (ValueError, OSError, mujoco.FatalError) as error:
        where = 'MJCF' if is_text else str(text_or_path)
        raise MotionError(f'{where}: {" ".join(str(error).split())}') from error


def compile_with_sensors(spec: Any, site: str) -> Any:
    """Return the compiled model of a specification with the sensors that `ride` reads."""
    mujoco = load_mujoco()
    if not any(candidate.name == site for candidate in spec.sites):
        site_names = (
            ', '.join(candidate.name for candidate in spec.sites if candidate.name) or 'none'
        )
        raise MotionError(f'site {site!r} is unknown; the model has {site_names}')
    kinds = mujoco.mjtSensor
    for kind in (
        kinds.mjSENS_FRAMEPOS,
        kinds.mjSENS_FRAMEQUAT,
        kinds.mjSENS_VELOCIMETER,
        kinds.mjSENS_GYRO,
        kinds.mjSENS_ACCELEROMETER,
    ):
        sensor = spec.add_sensor()
        sensor.type, sensor.objtype, sensor.objname = kind, mujoco.mjtObj.mjOBJ_SITE, site
    try:
        return spec.compile()
    except ValueError as error:
        raise MotionError(f'MJCF: {" ".join(str(error).split())}') from error


def ride(
    model: Any,
    data: Any,
    duration: float,
    *,
    control: Control | None = None,
    axes: FloatArray = _LEVEL,
) -> PhysicalMotion:
    """Step a model made by `compile_with_sensors` and return the motion of its site.

    Parameters
    ----------
    model, data : MjModel, MjData
        Model and state at time 0; `data.time` is ignored.
    duration : float
        Duration, s.
    control : callable, optional
        Function that is called before every step, see `Control`.
    axes : (1, 4) float
        Orientation x y z w of the axes of the model in the world, where gravity is along z.

    Raises
    ------
    MotionError
        When there are too many steps, or the simulation becomes unstable.
    """
    mujoco = load_mujoco()
    step = float(model.opt.timestep)
    east, north, up = rotations.rotate(axes, model.opt.gravity[None])[0]
    if not step > 0.0 or max(abs(east), abs(north)) > 1e-9:
        raise MotionError(
            f'MJCF: a timestep of {step:g} s with gravity {model.opt.gravity.tolist()} m/s^2 is '
            'not allowed; must be > 0, and gravity along z'
        )
    count = math.ceil(duration / step - 1e-9) + 1
    if not 3 <= count <= MAX_STEPS:
        raise MotionError(
            f'{count} steps of {step:g} s are not allowed; must be 3 to {MAX_STEPS:g}'
        )
    rows = np.empty((count, 16))
    readings = data.sensordata[-16:]
    for k in range(count):
        if control is not None:
            control(k * step)
        mujoco.mj_step(model, data)
        # MuJoCo's sensors hold the state before the step and the forces during it.
        rows[k] = readings
        if any(data.warning.number):
            raise MotionError(
                f'the simulation is not stable from {k * step:g} s on; take a smaller timestep'
            )
    stamp_ns = np.rint(np.arange(count) * (step * 1e9)).astype(np.int64)
    truth = OdometryArray.exact(
        stamp_ns,
        position=rotations.rotate(axes, rows[:, :3]),
        orientation=rotations.multiply(axes, rows[:, [4, 5, 6, 3]]),
        linear_velocity=rows[:, 7:10],
        angular_velocity=rows[:, 10:13],
    )
    no_covariance = np.broadcast_to(np.zeros((3, 3)), (count, 3, 3))
    imu = ImuArray(
        stamp_ns=stamp_ns,
        arrival_ns=stamp_ns,
        frame='base_link',
        orientation=truth.orientation,
        angular_velocity=truth.angular_velocity,
        linear_acceleration=rows[:, 13:16],
        orientation_covariance=no_covariance,
        angular_velocity_covariance=no_covariance,
        linear_acceleration_covariance=no_covariance,
    )
    return PhysicalMotion(truth, imu, -float(up))


@dataclasses.dataclass(frozen=True)
class MjcfMotion(TimedMotion):
    """Free motion of a body of an MJCF file in MuJoCo.

    The motion starts from the first keyframe, with its controls, or from the initial state if
    there is none. The site is the body frame: x forward, z up. The gravity of the file is kept, so
    that an accelerometer on the Moon shows 1.62 m/s^2 at rest. It must be along z.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> file = Path(mkdtemp(), 'ball.xml')
    >>> _ = file.write_text(
    ...     '<mujoco><worldbody><geom type="plane" size="9 9 1"/><body pos="0 0 1"><freejoint/>'
    ...     '<geom size="0.1"/><site name="base"/></body></worldbody></mujoco>'
    ... )
    >>> fall = MjcfMotion(duration=0.4, file=str(file), site='base')
    >>> fall.at([0.2]).velocity[0, 2].round(2), fall.noise_free_imu.linear_acceleration[0]
    (np.float64(-1.96), array([0., 0., 0.]))
    """

    kind = 'mjcf'

    file: str = parameter('', '', 'MJCF file.')
    site: str = parameter('imu', '', 'Site whose motion is simulated.')
    gravity: float | None = non_negative(
        None,
        'm/s^2',
        'Gravity that replaces that of the file. Without it that of the file is kept, where 9.76 '
        'to 9.86 is the 9.80665 of the world of the sensors.',
        optional=float,
    )
    timestep: float = non_negative(
        0.0, 's', 'Step of the physics; 0 takes that of the file.', maximum=0.1
    )

    @functools.cached_property
    def motion(self) -> PhysicalMotion:
        """Motion of the site, simulated at the first access."""
        mujoco = load_mujoco()
        if not self.file:
            raise ParameterError('scenario mjcf', 'file', 'is missing; must be an MJCF file')
        spec = load_spec(Path(self.file))
        spec.option.gravity = (0.0, 0.0, -self._gravity_for(spec.option.gravity))
        if self.timestep:
            spec.option.timestep = self.timestep
        model = compile_with_sensors(spec, self.site)
        data = mujoco.MjData(model)
        if model.nkey:
            mujoco.mj_resetDataKeyframe(model, data, 0)
        return ride(model, data, self.duration)

    def _gravity_for(self, stated: ArrayLike) -> float:
        """Return the gravity of the motion, given that of the file, (3,) m/s^2."""
        if self.gravity is not None:
            return self.gravity
        x, y, z = np.asarray(stated, dtype=np.float64).tolist()
        if x or y or z > 0.0:
            raise MotionError(
                f'{self.file}: gravity {[x, y, z]} m/s^2 is not allowed; must be 0 0 -G, or be '
                'replaced by the parameter gravity'
            )
        # That of the Earth is the one in the world of the sensors.
        return GRAVITY if abs(z + GRAVITY) <= _GRAVITY_TOLERANCE else -z

    @property
    def physical_gravity(self) -> float:
        """Gravity of the physics, m/s^2."""
        return self.motion.gravity

    @property
    def noise_free_imu(self) -> ImuArray:
        """Messages of a noise-free IMU at the site at every step."""
        return self.motion.noise_free_imu

    def at(self, times: ArrayLike) -> Trajectory:
        """Return the motion at `times` `(n,)` s; see `TimedMotion.at`."""
        return self.motion.at(times)
