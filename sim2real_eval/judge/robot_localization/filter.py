# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""One step of the filter: prediction to a measurement and correction with it, compiled.

A measurement measures some of the states directly, so H only selects: rows of P are gathered
instead of multiplied. In exact arithmetic, the correction equals the Joseph form that
robot_localization uses. The textbook's unscented filter corrects in the same way, because the
transform of newly drawn points is exact for functions that are linear in the state.
"""

from __future__ import annotations

import math

import numpy as np

from sim_sensors.core.compilation import kernel, section
from sim_sensors.core.measurements import FloatArray, IntArray
from .configuration import FilterConfig
from .ekf import (
    FIRST,
    add_row,
    add_rows,
    control_acceleration,
    mirror,
    noise_scale,
    passes_gate,
    predict,
    set_row,
    solve_backward,
    solve_forward,
    wrap_angle,
)
from .state import (
    AX,
    FLAT,
    INITIALISED,
    LAST_NS,
    PITCH,
    POINTS_VALID,
    ROLL,
    SETTINGS,
    VROLL,
    VX,
    WIDTH,
    YAW,
    Dynamics,
    Filter,
    N,
)

# robot_localization replaces a longer step, such as one from time 0 to a real stamp.
_LONGEST_STEP_S = 100000.0
_REPLACED_STEP_S = 0.01
_TWO_D_VARIANCE = 1e-6
_POINTS = 2 * N + 1


@kernel
def correct(
    flt: Filter, index: IntArray, m: int, z: FloatArray, R: FloatArray, threshold: float
) -> bool:
    """Correct with `m` directly measured states; return False when the gate refused them.

    Arrays may be larger than m. A Mahalanobis distance of `threshold` or more is refused; the
    threshold is infinite without a gate.

    Parameters
    ----------
    index : measured states, in ascending order.
    z : their values.
    R : their covariance; its diagonal is raised in place to a minimum, as in robot_localization.
    """
    x, P = flt.x, flt.P
    S, L, W, K = flt.innovation_covariance, flt.factor, flt.rows, flt.gain
    nu, inverse = L[N], S[N]
    for j in range(m):
        state = index[j]
        nu[j] = z[j] - x[state]
        if ROLL <= state <= YAW:
            nu[j] = wrap_angle(nu[j])
        for i in range(j + 1):
            S[j, i] = P[state, index[i]]
    if not passes_gate(flt, S, R, m, nu, L, inverse, threshold):
        return False

    # With W = L^-1 H P and K = D^-1 W the correction is x += K' nu and P -= K' W.
    measured = FIRST
    for j in range(m):
        set_row(W, j, P, index[j], 1.0)
        measured |= 1 << index[j]
    solve_forward(W, K, m, L, inverse)
    for j in range(m):
        for i in range(WIDTH):
            x[i] += nu[j] * K[j, i]
    for i in range(ROLL, YAW + 1):
        x[i] = wrap_angle(x[i])
    for i in range(N):
        if measured >> i & 1 == 0:
            add_rows(P, i, W, FIRST, m, K, i, -1.0)

    # In the rows of measured states that difference would lose all digits when R is far below P.
    # The identity P' H' = K R with the gain K = P H' S^-1 gives them without a difference.
    solve_backward(K, m, L)
    for j in range(m):
        set_row(P, index[j], K, FIRST, R[0, j])
        add_rows(P, index[j], K, FIRST + 1, m, R, j, 1.0)
    _mirror_measured(P, measured)
    return True


@kernel
def _mirror_measured(P: FloatArray, measured: int) -> None:
    """Make P symmetric: rows of measured states (bits of `measured`) define their columns.

    If both states are measured, the lower triangle counts; if neither is, the upper one.
    """
    for j in range(1, N):
        if measured >> j & 1:
            for i in range(j):
                P[i, j] = P[j, i]
        else:
            for i in range(j):
                P[j, i] = P[i, j]


# robot_localization's unscented filter.
#
# The mean of angles is that of their directions. robot_localization's filter deviates from the
# textbook in these points (docs/explanation/robot_localization.md):
#
# - A correction subtracts K Pzz K' from P, with Pzz the covariance of the predicted measurement
#   without R.
# - The correction after a prediction uses the propagated points, without the Q of that step.
# - Before the first prediction all points are zero. A second measurement with the stamp of the
#   first therefore has no effect.
# - If a measured angle is the k-th measured state, the k-th entry of the difference of point and
#   state is wrapped instead of the angle.
# - The control input does not act.


@kernel
def _draw_points(flt: Filter, spread: float) -> None:
    """Fill the points: the state, and the state plus and minus the columns of root(spread P)."""
    x, P, points, L = flt.x, flt.P, flt.points, flt.factor
    for j in range(N):
        for i in range(j, N):
            total = spread * P[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                L[j, j] = math.sqrt(total)
            else:
                L[i, j] = total / L[j, j]
    for i in range(N):
        points[0, i] = x[i]
        for j in range(N):
            root = L[i, j] if j <= i else 0.0
            points[1 + j, i] = x[i] + root
            points[1 + N + j, i] = x[i] - root


@kernel
def move_point(point: FloatArray, dt: float) -> None:
    """Predict one point over `dt` seconds, with its own attitude."""
    sr, cr = math.sin(point[ROLL]), math.cos(point[ROLL])
    sp, cp = math.sin(point[PITCH]), math.cos(point[PITCH])
    sy, cy = math.sin(point[YAW]), math.cos(point[YAW])
    tp, ic = sp / cp, 1.0 / cp
    half = 0.5 * dt * dt
    u0 = point[VX] * dt + point[AX] * half
    u1 = point[VX + 1] * dt + point[AX + 1] * half
    u2 = point[VX + 2] * dt + point[AX + 2] * half
    w0, w1, w2 = point[VROLL], point[VROLL + 1], point[VROLL + 2]
    point[0] += cy * cp * u0 + (cy * sp * sr - sy * cr) * u1 + (cy * sp * cr + sy * sr) * u2
    point[1] += sy * cp * u0 + (sy * sp * sr + cy * cr) * u1 + (sy * sp * cr - cy * sr) * u2
    point[2] += -sp * u0 + cp * sr * u1 + cp * cr * u2
    point[ROLL] += dt * (w0 + sr * tp * w1 + cr * tp * w2)
    point[PITCH] += dt * (cr * w1 - sr * w2)
    point[YAW] += dt * (sr * ic * w1 + cr * ic * w2)
    for i in range(3):
        point[VX + i] += dt * point[AX + i]


@kernel
def _mean(points: FloatArray, state: int, first: float, other: float) -> float:
    """Return the weighted mean of a state over the points; for an angle, that of directions."""
    if ROLL <= state <= YAW:
        sine, cosine = first * math.sin(points[0, state]), first * math.cos(points[0, state])
        for k in range(1, _POINTS):
            sine += other * math.sin(points[k, state])
            cosine += other * math.cos(points[k, state])
        return math.atan2(sine, cosine)
    total = first * points[0, state]
    for k in range(1, _POINTS):
        total += other * points[k, state]
    return float(total)


@kernel
def predict_unscented(flt: Filter, settings: np.record, weights: FloatArray, dt: float) -> None:
    """Predict points, state and covariance over `dt` seconds."""
    x, P, points, D = flt.x, flt.P, flt.points, flt.roots
    first, other, first_covariance = weights[0], weights[1], weights[2]
    _draw_points(flt, weights[3])
    for k in range(_POINTS):
        move_point(points[k], dt)
    for i in range(N):
        x[i] = _mean(points, i, first, other)
        for j in range(N):
            P[i, j] = 0.0
    for k in range(_POINTS):
        weight = first_covariance if k == 0 else other
        for i in range(N):
            D[0, i] = points[k, i] - x[i]
        for i in range(ROLL, YAW + 1):
            D[0, i] = wrap_angle(D[0, i])
        for i in range(N):
            add_row(P, i, D, 0, weight * D[0, i])
    scale = noise_scale(settings, x)
    for i in range(N):
        for j in range(N):
            P[i, j] += dt * settings.Q[i, j] * (scale if i < 6 and j < 6 else 1.0)
    for i in range(ROLL, YAW + 1):
        x[i] = wrap_angle(x[i])
    flt.times[POINTS_VALID] = 1


@kernel
def _measurement_moments(
    flt: Filter, weights: FloatArray, index: IntArray, m: int, predicted: FloatArray,
    D: FloatArray,
) -> None:  # fmt: skip
    """Fill the predicted measurement, its covariance and that with the state from the points.

    The covariance of the predicted measurement goes to `flt.innovation_covariance`. The cross
    covariance, a row per measured state, goes to `flt.rows`. D is scratch space.
    """
    points, C, S = flt.points, flt.rows, flt.innovation_covariance
    first, other, first_covariance = weights[0], weights[1], weights[2]
    for a in range(m):
        predicted[a] = _mean(points, index[a], first, other)
        for j in range(N):
            C[a, j] = 0.0
        for b in range(m):
            S[a, b] = 0.0
    for k in range(_POINTS):
        weight = first_covariance if k == 0 else other
        for i in range(N):
            D[2, i] = points[k, i] - flt.x[i]
        for a in range(m):
            D[3, a] = points[k, index[a]] - predicted[a]
            if ROLL <= index[a] <= YAW:
                D[3, a] = wrap_angle(D[3, a])
                D[2, a] = wrap_angle(D[2, a])
        for a in range(m):
            add_row(C, a, D, 2, weight * D[3, a])
            for b in range(m):
                S[a, b] += weight * D[3, a] * D[3, b]


@kernel
def correct_unscented(
    flt: Filter, weights: FloatArray, index: IntArray, m: int, z: FloatArray, R: FloatArray,
    threshold: float,
) -> bool:  # fmt: skip
    """Correct with `m` directly measured states; parameters and return value as for `correct`."""
    x, P = flt.x, flt.P
    if flt.times[POINTS_VALID] == 0:
        _draw_points(flt, weights[3])
    C, S, D, K, L = flt.rows, flt.innovation_covariance, flt.roots, flt.gain, flt.factor
    predicted, nu, whitened, inverse = D[0], D[1], D[4], D[5]
    _measurement_moments(flt, weights, index, m, predicted, D)
    for a in range(m):
        nu[a] = z[a] - predicted[a]
        if ROLL <= index[a] <= YAW:
            nu[a] = wrap_angle(nu[a])
        whitened[a] = nu[a]
    flt.times[POINTS_VALID] = 0
    if not passes_gate(flt, S, R, m, whitened, L, inverse, threshold):
        return False
    # K' = (S + R)^-1 C.
    solve_forward(C, K, m, L, inverse)
    solve_backward(K, m, L)
    for j in range(m):
        for i in range(N):
            x[i] += K[j, i] * nu[j]
    for i in range(ROLL, YAW + 1):
        x[i] = wrap_angle(x[i])
    # P -= K S K', with S without R. C is no longer needed and becomes S K'.
    for a in range(m):
        for i in range(N):
            C[a, i] = 0.0
        for b in range(m):
            add_row(C, a, K, b, S[a, b])
    for i in range(N):
        add_rows(P, i, C, FIRST, m, K, i, -1.0)
    mirror(P, N)
    return True


# Prediction of the textbook's scaled unscented filter.
#
# This is Julier and Uhlmann's scaled transform about its first point. Let y0 be the image of
# the state, yk those of the other points, dk = yk - y0 (angles wrapped), w = 1 / (2 (N + lambda)):
#
#     x = y0 + w sum dk
#     P = w sum dk dk' + (beta - alpha^2) (x - y0) (x - y0)' + dt Q
#
# It equals the usual sum over all points with the weights of `sigma_weights`, rearranged: the
# usual sum is a difference of numbers 1 / alpha^2 times as large. P is positive semi-definite if
# beta is at least alpha^2.
#
# The control input and the dynamic Q use the state before the step, as in the extended filter. The
# correction is `filter.correct`: a measurement selects states, for which the transform of newly
# drawn points gives Pzz = H P H' and Pxz = P H' exactly.


@kernel
def _fill_root_columns(P: FloatArray, spread: float, columns: FloatArray) -> None:
    """Fill row j of `columns` with column j of the Cholesky root of spread P.

    A pivot that is not positive, as that of an exactly known state, gives a column of zeros.
    """
    for j in range(N):
        pivot = spread * P[j, j]
        for k in range(j):
            pivot -= columns[k, j] * columns[k, j]
        for i in range(N):
            columns[j, i] = 0.0
        if pivot > 0.0:
            root = math.sqrt(pivot)
            columns[j, j] = root
            for i in range(j + 1, N):
                total = spread * P[i, j]
                for k in range(j):
                    total -= columns[k, i] * columns[k, j]
                columns[j, i] = total / root


@kernel
def _apply_command(
    flt: Filter, settings: np.record, stamp_ns: int, dt: float, acceleration: FloatArray
) -> None:
    """Apply the command to the mean of accelerations and rates, not to their spread."""
    x = flt.x
    for axis in range(6):
        acceleration[axis] = 0.0
        if settings.control_mask[axis] != 0.0:
            acceleration[axis] = control_acceleration(flt, settings, axis, stamp_ns)
    for axis in range(3):
        if settings.control_mask[axis] != 0.0:
            x[AX + axis] = acceleration[axis]
        x[VX + 3 + axis] += acceleration[3 + axis] * dt


@kernel
def _move_points(
    points: FloatArray, x: FloatArray, columns: FloatArray, dt: float, other: float,
    mean: FloatArray,
) -> None:  # fmt: skip
    """Draw and predict the points; all but the first become differences from the first."""
    centre = points[0]
    for i in range(N):
        mean[i] = 0.0
        points[0, i] = x[i]
        for j in range(N):
            points[1 + j, i] = x[i] + columns[j, i]
            points[1 + N + j, i] = x[i] - columns[j, i]
    move_point(centre, dt)
    for k in range(1, _POINTS):
        move_point(points[k], dt)
        for i in range(N):
            points[k, i] -= centre[i]
        for i in range(ROLL, YAW + 1):
            points[k, i] = wrap_angle(points[k, i])
        for i in range(N):
            mean[i] += other * points[k, i]


@kernel
def predict_textbook(
    flt: Filter, settings: np.record, weights: FloatArray, stamp_ns: int, dt: float
) -> None:
    """Predict state and covariance over `dt` seconds, to `stamp_ns`."""
    x, P, points, D = flt.x, flt.P, flt.points, flt.roots
    other, spread, curvature = weights[1], weights[3], weights[4]
    mean = D[1]
    _fill_root_columns(P, spread, flt.factor)
    scale = noise_scale(settings, x)
    _apply_command(flt, settings, stamp_ns, dt, D[0])
    _move_points(points, x, flt.factor, dt, other, mean)
    for i in range(N):
        x[i] = points[0, i] + mean[i]
    for i in range(ROLL, YAW + 1):
        x[i] = wrap_angle(x[i])
    for i in range(N):
        set_row(P, i, settings.Q, i, dt)
        if settings.dynamic and i < 6:
            for j in range(6):
                P[i, j] *= scale
        add_row(P, i, D, 1, curvature * mean[i])
        add_rows(P, i, points, 1, _POINTS, points, i, other)
    mirror(P, N)


# Steps of either filter.


@kernel
def advance(flt: Filter, dyn: Dynamics, stamp_ns: int) -> None:
    """Predict to `stamp_ns`, which becomes the last measurement time."""
    dt = (stamp_ns - flt.times[LAST_NS]) * 1e-9
    if dt > _LONGEST_STEP_S:
        dt = _REPLACED_STEP_S
    _predict(flt, dyn.settings, dyn.weights, stamp_ns, dt)
    flt.times[LAST_NS] = stamp_ns


# numba knows at compile time whether an argument is None. The unscented filter is therefore
# compiled only when it is used.


@kernel
def _predict(
    flt: Filter, settings: np.record, weights: FloatArray | None, stamp_ns: int, dt: float
) -> None:
    if weights is None:
        predict(flt, settings, stamp_ns, dt)
    elif settings.textbook:
        predict_textbook(flt, settings, weights, stamp_ns, dt)
    else:
        predict_unscented(flt, settings, weights, dt)


@kernel
def _correct(
    flt: Filter, settings: np.record, weights: FloatArray | None, index: IntArray, m: int,
    z: FloatArray, R: FloatArray, threshold: float,
) -> bool:  # fmt: skip
    if weights is None or settings.textbook:
        return correct(flt, index, m, z, R, threshold)
    return correct_unscented(flt, weights, index, m, z, R, threshold)


@section
def process(
    flt: Filter, dyn: Dynamics, stamp_ns: int, index: IntArray, m: int, z: FloatArray,
    R: FloatArray, threshold: float,
) -> bool:  # fmt: skip
    """Initialise the filter with a measurement, or predict to its stamp if newer and correct.

    Parameters are those of `correct`. Returns False when the gate refused the measurement.
    """
    flt.distance[0] = math.nan
    if flt.times[INITIALISED] == 0:
        for i in range(m):
            flt.x[index[i]] = z[i]
            for j in range(m):
                flt.P[index[i], index[j]] = R[i, j]
        flt.times[INITIALISED] = 1
        flt.times[LAST_NS] = stamp_ns
        return True
    if stamp_ns > flt.times[LAST_NS]:
        advance(flt, dyn, stamp_ns)
    if m == 0:
        return True
    return bool(_correct(flt, dyn.settings, dyn.weights, index, m, z, R, threshold))


@kernel
def select_states(
    part: np.record, measurement: np.record, initialised: bool, index: IntArray, z: FloatArray,
    R: FloatArray,
) -> int:  # fmt: skip
    """Fill `index`, z and R with the states that a measurement measures; return their number.

    Once the filter is initialised, values that are not finite are left out. `two_d_mode` adds z,
    roll, pitch, vz, vroll, vpitch and az, measured as zero with variance 1e-6 and uncorrelated.
    """
    first = measurement.first_state
    width = 3 if first == VX + 6 else 6
    m = 0
    for state in range(N):
        inside = first <= state < first + width
        forced = part.two_d and FLAT[state]
        if forced:
            z[m] = 0.0
        elif inside and part.mask[state - first] != 0.0:
            z[m] = measurement.z[state - first]
            if initialised and not math.isfinite(z[m]):
                continue
        else:
            continue
        index[m] = state
        for k in range(m):
            other = index[k]
            both = inside and not forced and first <= other < first + width
            both = both and not (part.two_d and FLAT[other])
            R[m, k] = measurement.R[state - first, other - first] if both else 0.0
            R[k, m] = measurement.R[other - first, state - first] if both else 0.0
        R[m, m] = _TWO_D_VARIANCE if forced else measurement.R[state - first, state - first]
        m += 1
    return m


def build_dynamics(
    process_noise: FloatArray,
    *,
    dynamic: bool = False,
    control_mask: FloatArray | None = None,
    control_limits: FloatArray | None = None,
    control_timeout_ns: int = 0,
    weights: FloatArray | None = None,
    textbook: bool = False,
) -> Dynamics:
    """Return settings of the prediction; `process_noise` is (15, 15) per second.

    The fields of SETTINGS and Dynamics describe the parameters. The control input has no
    effect if the control mask is None.
    """
    settings: np.record = np.zeros(1, SETTINGS)[0]
    settings.Q[:N, :N] = process_noise
    settings.dynamic, settings.textbook = dynamic, textbook
    settings.control_timeout_ns = control_timeout_ns
    if control_mask is not None:
        settings.control_mask[:] = control_mask
    if control_limits is not None:
        settings.control_limits[:] = control_limits
    return Dynamics(settings, weights)


def dynamics_of(config: FilterConfig, *, textbook: bool = False) -> Dynamics:
    """Return the settings of the prediction from a configuration.

    `textbook` selects the textbook's unscented filter instead of robot_localization's.
    """
    return build_dynamics(
        config.process_noise,
        dynamic=config.dynamic_process_noise,
        control_mask=config.control_mask,
        control_limits=config.control_limits,
        control_timeout_ns=round(config.control_timeout * 1e9),
        weights=None if config.sigma_points is None else sigma_weights(*config.sigma_points),
        textbook=textbook,
    )


def sigma_weights(alpha: float, kappa: float, beta: float) -> FloatArray:
    """Return the weights of the unscented transform, (5,).

    They are the weights of the first point and of each other point in the mean, that of the first
    point in the covariance, N + lambda with lambda = alpha^2 (N + kappa) - N, and beta - alpha^2.
    """
    spread = alpha * alpha * (N + kappa)
    first = (spread - N) / spread
    other, curvature = 0.5 / spread, beta - alpha * alpha
    return np.array([first, other, first + 1.0 - alpha * alpha + beta, spread, curvature])
