# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Preintegrated IMU measurements (PIM), which do not depend on the first state.

Names are those of GTSAM in snake_case; docs/explanation/scenarios.md compares the two. Sources:
[Forster2017], [GTSAM].
"""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sim_sensors.core import rotations
from sim_sensors.core.compilation import compiled
from sim_sensors.core.compiled_rotations import right_jacobian
from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.trajectory import NavState, States
from .integration import MANIFOLD, TANGENT, integrate, rotation_of
from .params import (
    FORMS,
    ConstantBias,
    PreintegrationCombinedParams,
    PreintegrationError,
    PreintegrationParams,
)

Params = TypeVar('Params', bound=PreintegrationParams)

# Jr^-1 is singular at 2 pi.
_LARGEST_ANGLE = 6.0


def form_of(params: PreintegrationParams) -> int:
    """Return the form as a number of `integration`."""
    return (TANGENT, MANIFOLD)[FORMS.index(params.form)]


def first_states(form: int, n: int) -> FloatArray:
    """Return n states before the first interval."""
    states = np.zeros((n, 9 if form == TANGENT else 10))
    if form == MANIFOLD:
        states[:, 3] = 1.0
    return states


def check_angle(form: int, states: FloatArray) -> None:
    """Raise PreintegrationError for states `(n, 9)` of the tangent form beyond 6 rad."""
    if form == TANGENT and not (np.sum(states[:, :3] ** 2, axis=1) < _LARGEST_ANGLE**2).all():
        raise PreintegrationError(
            f'form tangent: turns by more than {_LARGEST_ANGLE:g} rad; use a shorter time '
            'between two states, or the form manifold'
        )


@compiled
def _matrices(form: int, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rotation of a state, and the Jacobian to a rotation on its right."""
    R, right = np.zeros((3, 3)), np.eye(3)
    rotation_of(form, x, R)
    if form == TANGENT:
        right_jacobian(x[:3], right)
    return R, right


def predict_states(
    deltas: tuple[FloatArray, FloatArray, FloatArray],
    seconds: float,
    state: NavState,
    g: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return orientations, positions and velocities after deltas from a state.

    R = R0 dR, v = v0 + g T + R0 dv, p = p0 + v0 T + g T^2/2 + R0 dp, with the deltas of rotation
    `(n, 4)`, position and velocity `(n, 3)` of T s, and gravity `g` `(3,)` in the world, m/s^2.
    """
    turn, way, gain = deltas
    first = np.tile(state.orientation, (len(turn), 1))
    return (
        rotations.multiply(first, turn),
        state.position + seconds * (state.velocity + 0.5 * seconds * g)
        + rotations.rotate(first, way),
        state.velocity + seconds * g + rotations.rotate(first, gain),
    )  # fmt: skip


class Preintegration(Generic[Params]):
    """Base class of preintegrated measurements.

    `bias_hat`, by default 0, is subtracted from every sample.
    """

    rows = 9

    def __init__(self, params: Params, bias_hat: ConstantBias | None = None) -> None:
        self.params = params
        self._bias_hat = bias_hat or ConstantBias()
        self._form = form_of(params)
        self.reset_integration()

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}(delta_tij={self.delta_tij():g}, '
            f'delta_rij={self.delta_rij().tolist()}, delta_pij={self.delta_pij().tolist()}, '
            f'delta_vij={self.delta_vij().tolist()})'
        )

    def reset_integration(self) -> None:
        """Reset to no measurements."""
        self._seconds = 0.0
        self._state = first_states(self._form, 1)[0]
        self._by_bias = np.zeros((9, 6))
        self._covariance = np.zeros((self.rows, self.rows))

    def integrate_measurement(
        self, measured_acc: ArrayLike, measured_omega: ArrayLike, dt: float
    ) -> None:
        """Add one sample, constant over `dt` s: `(3,)` m/s^2 and `(3,)` rad/s of the sensor."""
        self.integrate_measurements(
            np.reshape(measured_acc, (1, -1)), np.reshape(measured_omega, (1, -1)), dt
        )

    def integrate_measurements(
        self, measured_acc: ArrayLike, measured_omega: ArrayLike, dt: ArrayLike
    ) -> None:
        """Add many samples; equal to adding each, but much faster.

        `measured_acc` and `measured_omega` are `(k, 3)` m/s^2 and rad/s of the sensor, each
        constant over `dt`, s, a number or `(k,)`.

        Raises PreintegrationError for wrong shapes or values, for intervals that are not above 0,
        and for more than 6 rad in the tangent form.
        """
        force = np.ascontiguousarray(measured_acc, dtype=np.float64)
        rate = np.ascontiguousarray(measured_omega, dtype=np.float64)
        if force.ndim != 2 or force.shape[1] != 3 or force.shape != rate.shape:
            raise PreintegrationError(
                f'measurements have shapes {force.shape} and {rate.shape}; must be alike, (k, 3)'
            )
        steps = np.array(np.broadcast_to(np.asarray(dt, dtype=np.float64), (len(force),)))
        if not (np.isfinite(steps) & (steps > 0.0)).all():
            raise PreintegrationError(f'dt: {dt!r} is not allowed; must be > 0 [s]')
        if not (np.isfinite(force).all() and np.isfinite(rate).all()):
            raise PreintegrationError('measurements have values that are not finite')
        pose = self.params.body_p_sensor
        state, by_bias = self._state.copy(), self._by_bias.copy()
        covariance = self._covariance.copy()
        integrate(
            self._form, state, by_bias, covariance, force, rate, steps, self._bias_hat.vector,
            np.ascontiguousarray(pose[:3, :3]), np.ascontiguousarray(pose[:3, 3]),
            self.params.noise,
        )  # fmt: skip
        check_angle(self._form, state[None])
        self._state, self._by_bias, self._covariance = state, by_bias, covariance
        self._seconds += float(np.sum(steps))

    def delta_tij(self) -> float:
        """Return the integrated time, s."""
        return self._seconds

    def delta_rij(self) -> FloatArray:
        """Return the rotation `(3, 3)`: takes vectors of the last body to the first."""
        return _matrices(self._form, self._state)[0]

    def delta_pij(self) -> FloatArray:
        """Return the change of position without gravity and first velocity, `(3,)` m."""
        return np.array(self._state[-6:-3])

    def delta_vij(self) -> FloatArray:
        """Return the change of velocity without gravity, `(3,)` m/s, in the first body."""
        return np.array(self._state[-3:])

    def bias_hat(self) -> ConstantBias:
        """Return the bias that is subtracted from every sample."""
        return self._bias_hat

    def preint_meas_cov(self) -> FloatArray:
        """Return the covariance of the deltas: rotation, position, velocity (and biases).

        The rotation error is that of the form: of the rotation vector, or to the right of
        delta_rij. The others are in the axes of the first body. Compare a Monte Carlo estimate
        with `prediction_covariance` instead.
        """
        return np.array(self._covariance)

    def prediction_covariance(self) -> FloatArray:
        """Return the covariance of `predict` in its local coordinates, see `NavState`.

        The rows of the biases do not change.
        """
        R, right = _matrices(self._form, self._state)
        J = np.eye(self.rows)
        J[:3, :3], J[3:6, 3:6], J[6:9, 6:9] = right, R.T, R.T
        return np.asarray(J @ self._covariance @ J.T)

    def del_r_del_bias_omega(self) -> FloatArray:
        """Return the derivative `(3, 3)` of a rotation to the right of delta_rij, rad/(rad/s)."""
        return np.asarray(_matrices(self._form, self._state)[1] @ self._by_bias[:3, 3:])

    def del_p_del_bias_acc(self) -> FloatArray:
        """Return the derivative `(3, 3)` of delta_pij by the accelerometer bias."""
        return np.array(self._by_bias[3:6, :3])

    def del_p_del_bias_omega(self) -> FloatArray:
        """Return the derivative `(3, 3)` of delta_pij by the gyroscope bias."""
        return np.array(self._by_bias[3:6, 3:])

    def del_v_del_bias_acc(self) -> FloatArray:
        """Return the derivative `(3, 3)` of delta_vij by the accelerometer bias."""
        return np.array(self._by_bias[6:, :3])

    def del_v_del_bias_omega(self) -> FloatArray:
        """Return the derivative `(3, 3)` of delta_vij by the gyroscope bias."""
        return np.array(self._by_bias[6:, 3:])

    def bias_corrected_delta(self, bias: ConstantBias) -> FloatArray:
        """Return rotation vector, position, velocity `(9,)` for another bias, to first order."""
        turn, way, gain = self._corrected_deltas(bias)
        return np.concatenate([rotations.log(turn)[0], way[0], gain[0]])

    def predict(self, state_i: NavState, bias: ConstantBias | None = None) -> NavState:
        """Return the state at the end of the measurements from the state at their start.

        The deltas are corrected to `bias` by the Jacobians. The default is `bias_hat`; that of
        GTSAM is 0.
        """
        deltas = self._corrected_deltas(self._bias_hat if bias is None else bias)
        q, p, v = predict_states(deltas, self._seconds, state_i, self.params.n_gravity)
        return NavState(q[0], p[0], v[0])

    def _corrected_deltas(self, bias: ConstantBias) -> States:
        change = (self._by_bias @ (bias.vector - self._bias_hat.vector))[None]
        x = self._state[None]
        if self._form == TANGENT:
            turn = rotations.exp(x[:, :3] + change[:, :3])
        else:
            turn = rotations.multiply(x[:, :4], rotations.exp(change[:, :3]))
        return turn, x[:, -6:-3] + change[:, 3:6], x[:, -3:] + change[:, 6:]


class PreintegratedImuMeasurements(Preintegration[PreintegrationParams]):
    """Measurements whose bias is constant: covariance `(9, 9)`."""


class PreintegratedCombinedMeasurements(Preintegration[PreintegrationCombinedParams]):
    """Measurements whose biases walk: covariance `(15, 15)`, accelerometer before gyroscope.

    The error of a bias is true minus estimated, and that of the deltas measured minus true, so
    that a bias above the estimate and the delta that it makes are correlated positively.
    """

    rows = 15

    def reset_integration(self) -> None:
        """Reset to no measurements, with the bias covariance of the parameters."""
        super().reset_integration()
        self._covariance[9:, 9:] = self.params.bias_acc_omega_init
