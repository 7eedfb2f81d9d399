# SPDX-License-Identifier: Apache-2.0
"""One step of the filter: prediction to a measurement and correction with it, compiled.

A measurement measures some of the states directly, so H only selects: rows of P are gathered
instead of multiplied. Equal to the Joseph form that robot_localization uses, in exact arithmetic;
in floating point as exact where it matters, see `correct`. The textbook's unscented filter
corrects so too: the transform of points drawn anew is exact for what is linear in the state.
"""

from __future__ import annotations

import math

import numpy as np

from sim_sensors.core.compilation import kernel
from sim_sensors.core.measurements import FloatArray, IntArray
from .configuration import FilterConfig
from .ekf import passes, predict, solve_backward, solve_forward, wrap_angle
from .matrices import add_with_column, add_with_row, set_row, settle, subtract_with_column
from .parts import Parts
from .queue import Queue
from .state import INITIALISED, LAST_NS, ROLL, TWO_D_STATES, VX, YAW, Dynamics, Filter, N, padded
from .ukf import correct_unscented, predict_textbook, predict_unscented

_LONGEST_STEP_S = 100000.0
_STEP_INSTEAD_S = 0.01
_TWO_D_VARIANCE = 1e-6
FLAT = np.array([state in TWO_D_STATES for state in range(N)])
"""Which states `two_d_mode` measures as zero."""


@kernel
def correct(
    flt: Filter, index: IntArray, m: int, z: FloatArray, R: FloatArray, threshold: float
) -> bool:
    """Correct with `m` directly measured states; return False when the gate refused them.

    Measured are the states `index` with the values z and the covariance R, whose diagonal is
    floored in place as robot_localization does; refused from the Mahalanobis distance `threshold`
    on, infinity for no gate. The arrays may be larger than m.
    """
    x, P = flt.x, flt.P
    S, L, W, K = flt.work[0], flt.work[1], flt.work[2], flt.work[3]
    nu, inverse = L[N], S[N]
    for j in range(m):
        state = index[j]
        nu[j] = z[j] - x[state]
        if ROLL <= state <= YAW:
            nu[j] = wrap_angle(nu[j])
        for i in range(j + 1):
            S[j, i] = P[state, index[i]]
    if not passes(flt, S, R, m, nu, L, inverse, threshold):
        return False

    # W = L^-1 H P and K = D^-1 W, with which x += K' nu and P -= K' W.
    measured = 0
    for j in range(m):
        set_row(W, j, P, (index[j],), (1.0,))
        measured |= 1 << index[j]
    solve_forward(W, K, m, L, inverse)
    add_with_row(x, 0, K, 0, m, L, N)
    for i in range(ROLL, YAW + 1):
        x[i] = wrap_angle(x[i])
    for i in range(N):
        if measured >> i & 1 == 0:
            subtract_with_column(P, i, W, 0, m, K, i)

    # In the rows of measured states that difference would lose all digits when R is far below P.
    # As P' H' = K R, with the gain K = P H' S^-1, those rows can be had without any difference.
    solve_backward(K, m, L)
    for j in range(m):
        set_row(P, index[j], K, (0,), (R[0, j],))
        add_with_column(P, index[j], K, 1, m, R, j)
    settle(P, measured)
    return True


@kernel
def advance(flt: Filter, dyn: Dynamics, stamp_ns: int) -> None:
    """Predict to `stamp_ns`, which becomes the last measurement time."""
    dt = (stamp_ns - flt.times[LAST_NS]) * 1e-9
    if dt > _LONGEST_STEP_S:
        dt = _STEP_INSTEAD_S
    _predict(flt, dyn, dyn.weights, stamp_ns, dt)
    flt.times[LAST_NS] = stamp_ns


# Whether an argument is None is known where the function is compiled: the unscented filter is
# compiled for those who use it only.


@kernel
def _predict(
    flt: Filter, dyn: Dynamics, weights: FloatArray | None, stamp_ns: int, dt: float
) -> None:
    if weights is None:
        predict(flt, dyn, stamp_ns, dt)
    elif dyn.textbook:
        predict_textbook(flt, dyn, weights, stamp_ns, dt)
    else:
        predict_unscented(flt, dyn, weights, dt)


@kernel
def _correct(
    flt: Filter, dyn: Dynamics, weights: FloatArray | None, index: IntArray, m: int,
    z: FloatArray, R: FloatArray, threshold: float,
) -> bool:  # fmt: skip
    if weights is None or dyn.textbook:
        return correct(flt, index, m, z, R, threshold)
    return correct_unscented(flt, weights, index, m, z, R, threshold)


@kernel
def process(
    flt: Filter, dyn: Dynamics, stamp_ns: int, index: IntArray, m: int, z: FloatArray,
    R: FloatArray, threshold: float,
) -> bool:  # fmt: skip
    """Take one measurement: initialise, or predict to its stamp when it is newer, and correct.

    Returns False when the gate refused the measurement.
    """
    accepted = True
    flt.distance[0] = math.nan
    if flt.times[INITIALISED] == 0:
        for i in range(m):
            flt.x[index[i]] = z[i]
            for j in range(m):
                flt.P[index[i], index[j]] = R[i, j]
        flt.times[INITIALISED] = 1
        flt.times[LAST_NS] = stamp_ns
        return accepted
    elapsed_ns = stamp_ns - flt.times[LAST_NS]
    if elapsed_ns > 0:
        advance(flt, dyn, stamp_ns)
    if m > 0:
        accepted = _correct(flt, dyn, dyn.weights, index, m, z, R, threshold)
    return accepted


@kernel
def select(
    parts: Parts, queue: Queue, slot: int, initialised: bool,
    index: IntArray, z: FloatArray, R: FloatArray,
) -> int:  # fmt: skip
    """Gather what a queued measurement measures; return how many states that is.

    Masked entries that are not finite are left out. `two_d_mode` adds z, roll, pitch, vz, vroll,
    vpitch and az, measured as zero with variance 1e-6 and uncorrelated.
    """
    first, p = queue.first_state[slot], queue.part[slot]
    width = 3 if first == VX + 6 else 6
    m = 0
    for state in range(N):
        inside = first <= state < first + width
        forced = parts.two_d and FLAT[state]
        if forced:
            z[m] = 0.0
        elif inside and parts.mask[p, state - first] != 0.0:
            z[m] = queue.z[slot, state - first]
            if initialised and not math.isfinite(z[m]):
                continue
        else:
            continue
        index[m] = state
        for k in range(m):
            other = index[k]
            both = inside and not forced and first <= other < first + width
            both = both and not (parts.two_d and FLAT[other])
            R[m, k] = queue.R[slot, state - first, other - first] if both else 0.0
            R[k, m] = queue.R[slot, other - first, state - first] if both else 0.0
        R[m, m] = _TWO_D_VARIANCE if forced else queue.R[slot, state - first, state - first]
        m += 1
    return m


def dynamics_of(config: FilterConfig, *, textbook: bool = False) -> Dynamics:
    """Return what the filter takes from a configuration.

    With `textbook` an unscented filter is the textbook's instead of robot_localization's.
    """
    return Dynamics(
        Q=padded(config.process_noise),
        dynamic=config.dynamic_process_noise,
        control_mask=config.control_mask,
        control_limits=config.control_limits,
        control_timeout_ns=round(config.control_timeout * 1e9),
        weights=None if config.sigma_points is None else sigma_weights(*config.sigma_points),
        textbook=textbook,
    )


def sigma_weights(alpha: float, kappa: float, beta: float) -> FloatArray:
    """Return what the unscented transform takes from its three parameters, (5,).

    Weight of the first point in the mean, of each other point, of the first in the covariance,
    N + lambda, with lambda = alpha^2 (N + kappa) - N, and beta - alpha^2.
    """
    spread = alpha * alpha * (N + kappa)
    first = (spread - N) / spread
    others, curvature = 0.5 / spread, beta - alpha * alpha
    return np.array([first, others, first + 1.0 - alpha * alpha + beta, spread, curvature])
