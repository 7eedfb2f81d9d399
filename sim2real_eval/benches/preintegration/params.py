# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of a preintegration: gravity, noise and mounting of the IMU, and its bias."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FloatArray

P = TypeVar('P', bound='PreintegrationParams')


FORMS = ('tangent', 'manifold')


class PreintegrationError(Sim2RealError):
    """A preintegration or a run of a scenario has invalid inputs."""


@dataclasses.dataclass(frozen=True, eq=False)
class ConstantBias:
    """Bias of an accelerometer, `(3,)` m/s^2, and of a gyroscope, `(3,)` rad/s."""

    accelerometer: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(3))
    gyroscope: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        for name in ('accelerometer', 'gyroscope'):
            object.__setattr__(self, name, _vector(name, getattr(self, name)))

    @property
    def vector(self) -> FloatArray:
        """Accelerometer, then gyroscope, `(6,)`."""
        return np.concatenate([self.accelerometer, self.gyroscope])


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class PreintegrationParams:
    """Gravity, noise and mounting of an IMU.

    Covariances are squares of densities, as in GTSAM: a sample at intervals dt has the covariance
    C / dt. Each may be given as a number (times the identity), a diagonal `(3,)` or a matrix
    `(3, 3)`; GTSAM's ScenarioRunner takes diagonal ones only.

    Raises PreintegrationError naming the parameter, its value and what is allowed.
    """

    n_gravity: FloatArray  # (3,) gravity in the world, m/s^2
    # (3, 3) (m/s^2)^2/Hz
    accelerometer_covariance: FloatArray = dataclasses.field(default_factory=lambda: np.eye(3))
    # (3, 3) (rad/s)^2/Hz
    gyroscope_covariance: FloatArray = dataclasses.field(default_factory=lambda: np.eye(3))
    # (3, 3) Of the position, for errors of the integration itself, m^2/s. The defaults of these
    # three are the identity, as in GTSAM, which is far more than any IMU has.
    integration_covariance: FloatArray = dataclasses.field(default_factory=lambda: np.eye(3))
    # (4, 4) Pose of the sensor in the body, m; default: the identity
    body_p_sensor: FloatArray = dataclasses.field(default_factory=lambda: np.eye(4))
    form: str = (
        'tangent'  # `tangent`, as GTSAM is built by default, or `manifold`; see `integration`
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, 'n_gravity', _vector('n_gravity', self.n_gravity))
        for field in dataclasses.fields(self):
            if field.name.endswith(('_covariance', '_init')):
                size = 6 if field.name.endswith('_init') else 3
                matrix = _covariance(field.name, getattr(self, field.name), size)
                object.__setattr__(self, field.name, matrix)
        object.__setattr__(self, 'body_p_sensor', _pose(self.body_p_sensor))
        if self.form not in FORMS:
            raise PreintegrationError(
                f'form: {self.form!r} is not allowed; must be one of {", ".join(FORMS)}'
            )

    @classmethod
    def make_shared_u(cls: type[P], g: float = 9.81, **parameters: ArrayLike | str) -> P:
        """Return parameters for a world whose z axis points up (ENU), gravity (0, 0, -g)."""
        return cls(n_gravity=np.array([0.0, 0.0, -g]), **parameters)  # type: ignore[arg-type]

    @classmethod
    def make_shared_d(cls: type[P], g: float = 9.81, **parameters: ArrayLike | str) -> P:
        """Return parameters for a world whose z axis points down (NED), gravity (0, 0, +g)."""
        return cls(n_gravity=np.array([0.0, 0.0, g]), **parameters)  # type: ignore[arg-type]

    @property
    def noise(self) -> FloatArray:
        """All covariances, `(5, 3, 3)`, as `integration` takes them; without walks here."""
        zero = np.zeros((3, 3))
        return np.stack([
            self.accelerometer_covariance, self.gyroscope_covariance, self.integration_covariance,
            zero, zero,
        ])  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class PreintegrationCombinedParams(PreintegrationParams):
    """Parameters of an IMU whose biases are random walks."""

    # (3, 3) Growth of the accelerometer bias, (m/s^2)^2/s; default: the identity, as in GTSAM
    bias_acc_covariance: FloatArray = dataclasses.field(default_factory=lambda: np.eye(3))
    # (3, 3) Growth of the gyroscope bias, (rad/s)^2/s; default: the identity, as in GTSAM
    bias_omega_covariance: FloatArray = dataclasses.field(default_factory=lambda: np.eye(3))
    # (6, 6) Covariance of the first bias: accelerometer, gyroscope. Default: zero.
    bias_acc_omega_init: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((6, 6)))

    @property
    def noise(self) -> FloatArray:
        """All covariances, `(5, 3, 3)`, as `integration` takes them."""
        noise = super().noise
        noise[3:] = self.bias_acc_covariance, self.bias_omega_covariance
        return noise


def _vector(name: str, value: ArrayLike) -> FloatArray:
    array = np.array(value, dtype=np.float64)
    if array.shape != (3,) or not np.isfinite(array).all():
        raise PreintegrationError(f'{name}: {value!r} is not allowed; must be 3 finite numbers')
    return array


def _covariance(name: str, value: ArrayLike, size: int) -> FloatArray:
    array = np.array(value, dtype=np.float64)
    if array.shape in ((), (size,)):
        array = np.diag(np.broadcast_to(array, (size,)))
    good = array.shape == (size, size) and bool(np.isfinite(array).all())
    if good:
        scale = float(np.abs(array).max())
        good = (
            bool((np.abs(array - array.T) <= 1e-12 * scale).all())
            and float(np.linalg.eigvalsh(array)[0]) >= -1e-12 * scale
        )
    if not good:
        raise PreintegrationError(
            f'{name}: {np.asarray(value).tolist()} is not allowed; must be a variance >= 0, '
            f'{size} of them or a symmetric positive semi-definite matrix of {size} x {size}'
        )
    return np.ascontiguousarray(0.5 * (array + array.T))


def _pose(value: ArrayLike) -> FloatArray:
    array = np.array(value, dtype=np.float64)
    good = array.shape == (4, 4) and bool(np.isfinite(array).all())
    if good:
        R = array[:3, :3]
        good = (
            np.allclose(R @ R.T, np.eye(3), atol=1e-9)
            and float(np.linalg.det(R)) > 0.0
            and array[3].tolist() == [0.0, 0.0, 0.0, 1.0]
        )
    if not good:
        raise PreintegrationError(
            f'body_p_sensor: {array.tolist()} is not allowed; must be a pose: a matrix of 4 x 4 '
            'with a rotation and a translation'
        )
    return array
