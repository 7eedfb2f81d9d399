# SPDX-License-Identifier: Apache-2.0
"""The motion between the nodes of a smoother: the IMU, bent so that it meets both ends.

From the earlier node the IMU is integrated, with its error's transition Phi and covariance Sigma.
At the later node j the integration misses the node by d. Given both nodes, the error of the
integration at a time t between is known up to what the noise of the IMU does on the way: it is
Gaussian with mean K d, K = Sigma_t Phi(t -> j)' Sigma_j^-1, and covariance Sigma_t - K Sigma_j K'
(Rauch, Tung and Striebel's smoother on one interval). So the residual is not spread evenly but as
the noise makes it grow, and with the joint covariance J of the two nodes that of the estimate is
A J A' + Sigma_t - K Sigma_j K', A = [Phi_t - K Phi_j, K]. At the nodes both are the nodes' own.

Errors are ordered as in `Nodes`, truth against estimate: attitude e with R_true = R Exp(e), then
differences of position, velocity, accelerometer bias, gyroscope bias.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.inertial.error_state import skew
from sim2real_eval.judge.inertial.settings import InertialSettings
from sim2real_eval.judge.smoother.chain import Steps
from sim2real_eval.judge.smoother.factor_graph import INTEGRATION_DENSITY, Nodes, imu_densities
from sim_sensors.core.measurements import FloatArray, IntArray

# Intervals at a time, so that memory stays bounded however long the run is.
_CHUNK = 256


@dataclasses.dataclass(frozen=True, eq=False)
class ImuMotion:
    """The motion of the IMU at the outputs; fields as in `Nodes`.

    Attributes
    ----------
    orientation : (n, 3, 3) float
    position, velocity, accelerometer_bias, gyroscope_bias : (n, 3) float
    covariance : (n, 15, 15) float
    """

    orientation: FloatArray
    position: FloatArray
    velocity: FloatArray
    accelerometer_bias: FloatArray
    gyroscope_bias: FloatArray
    covariance: FloatArray


def bridge(nodes: Nodes, steps: Steps, settings: InertialSettings) -> ImuMotion:
    """Return the motion at the outputs of `steps`."""
    intervals = len(nodes.joint)
    # The first node is the start of the first interval; all others are ends.
    interval = np.clip(np.searchsorted(steps.first, steps.output_step, side='right') - 1, 0, None)
    pieces = []
    for low in range(0, intervals, _CHUNK):
        high = min(low + _CHUNK, intervals)
        mine = np.flatnonzero((interval >= low) & (interval < high))
        if len(mine):
            pieces.append(_piece(nodes, steps, settings, np.arange(low, high), mine, interval))
    return ImuMotion(
        **{
            field.name: np.concatenate([getattr(piece, field.name) for piece in pieces])
            for field in dataclasses.fields(ImuMotion)
        }
    )


def _piece(
    nodes: Nodes,
    steps: Steps,
    settings: InertialSettings,
    chunk: IntArray,
    outputs: IntArray,
    interval: IntArray,
) -> ImuMotion:
    """Return the outputs, given by number, that lie in a chunk of intervals."""
    state = _State(nodes, steps, settings, chunk)
    row = interval[outputs] - chunk[0]
    step = steps.output_step[outputs] - steps.first[interval[outputs]]
    kept = _Kept(len(outputs), state, row, step)
    for k in range(state.most):
        state.advance(k)
        kept.take(state, k)
    return _joined(nodes, chunk, state, kept)


class _State:
    """All intervals of a chunk, integrated side by side."""

    def __init__(
        self, nodes: Nodes, steps: Steps, settings: InertialSettings, chunk: IntArray
    ) -> None:
        self.steps, self.gravity = steps, np.array([0.0, 0.0, -settings.gravity])
        self.turn, self.position = nodes.orientation[chunk], nodes.position[chunk]
        self.velocity = nodes.velocity[chunk]
        self.force_bias, self.rate_bias = (
            nodes.accelerometer_bias[chunk],
            nodes.gyroscope_bias[chunk],
        )
        self.transition = np.tile(np.eye(15), (len(chunk), 1, 1))
        self.noise = np.zeros((len(chunk), 15, 15))
        self.first, self.end = steps.first[chunk], steps.first[chunk + 1]
        self.most = int(np.max(self.end - self.first))
        densities = np.array([imu_densities(settings, float(gap)) for gap in steps.gap[chunk]])
        self.densities = densities**2

    def advance(self, k: int) -> None:
        """Take the k-th step of every interval that has one."""
        number = self.first + k
        on = np.flatnonzero(number < self.end)
        dt = self.steps.seconds[number[on], None]
        rate = self.steps.rate[number[on]] - self.rate_bias[on]
        force = self.steps.force[number[on]] - self.force_bias[on]
        turn, step = self.turn[on], Rotation.from_rotvec(rate * dt).as_matrix()
        acceleration = (turn @ force[..., None])[..., 0] + self.gravity
        self.position[on] += self.velocity[on] * dt + 0.5 * acceleration * dt**2
        self.velocity[on] += acceleration * dt
        self.turn[on] = turn @ step
        t = dt[..., None]
        tilted = -turn @ skew(force)
        F = np.tile(np.eye(15), (len(on), 1, 1))
        F[:, 0:3, 0:3] = step.transpose(0, 2, 1)
        F[:, 0:3, 12:15] = -t * np.eye(3)
        F[:, 3:6, 0:3] = 0.5 * t**2 * tilted
        F[:, 3:6, 6:9] = t * np.eye(3)
        F[:, 3:6, 9:12] = -0.5 * t**2 * turn
        F[:, 6:9, 0:3] = t * tilted
        F[:, 6:9, 9:12] = -t * turn
        gyroscope, accelerometer, gyroscope_walk, accelerometer_walk = self.densities[on].T
        Q = np.zeros((len(on), 15, 15))
        axes = np.arange(3)
        s = dt[:, 0]
        for start, value in (
            (0, gyroscope * s),
            (3, 0.25 * accelerometer * s**3 + INTEGRATION_DENSITY**2 * s),
            (6, accelerometer * s),
            (9, accelerometer_walk * s),
            (12, gyroscope_walk * s),
        ):
            Q[:, start + axes, start + axes] = value[:, None]
        across = (0.5 * accelerometer * s**2)[:, None]
        Q[:, 3 + axes, 6 + axes] = across
        Q[:, 6 + axes, 3 + axes] = across
        self.transition[on] = F @ self.transition[on]
        self.noise[on] = F @ self.noise[on] @ F.transpose(0, 2, 1) + Q


class _Kept:
    """What the integration was at the outputs."""

    def __init__(self, count: int, state: _State, row: IntArray, step: IntArray) -> None:
        self.row, self.step = row, step
        self.turn, self.position = state.turn[row], state.position[row]
        self.velocity = state.velocity[row]
        self.transition = np.tile(np.eye(15), (count, 1, 1))
        self.noise = np.zeros((count, 15, 15))

    def take(self, state: _State, k: int) -> None:
        """Keep the outputs at the end of step k."""
        here = np.flatnonzero(self.step == k)
        if len(here):
            row = self.row[here]
            self.turn[here], self.position[here] = state.turn[row], state.position[row]
            self.velocity[here] = state.velocity[row]
            self.transition[here], self.noise[here] = state.transition[row], state.noise[row]


def _joined(nodes: Nodes, chunk: IntArray, state: _State, kept: _Kept) -> ImuMotion:
    """Bend the integrations so that they meet their later nodes."""
    later, row = chunk + 1, kept.row
    missed = np.concatenate(
        [
            Rotation.from_matrix(
                state.turn.transpose(0, 2, 1) @ nodes.orientation[later]
            ).as_rotvec(),
            nodes.position[later] - state.position,
            nodes.velocity[later] - state.velocity,
            nodes.accelerometer_bias[later] - state.force_bias,
            nodes.gyroscope_bias[later] - state.rate_bias,
        ],
        axis=1,
    )
    onward = np.linalg.solve(
        kept.transition.transpose(0, 2, 1), state.transition[row].transpose(0, 2, 1)
    )
    # Scaled, since the entries differ by twenty powers of ten.
    scale = np.sqrt(np.einsum('nii->ni', state.noise))
    correlation = state.noise / (scale[:, :, None] * scale[:, None, :])
    gain = (
        np.linalg.solve(
            correlation[row], (kept.noise @ onward / scale[row, None, :]).transpose(0, 2, 1)
        ).transpose(0, 2, 1)
        / scale[row, None, :]
    )
    bent = (gain @ missed[row][..., None])[..., 0]
    A = np.concatenate([kept.transition - gain @ state.transition[row], gain], axis=2)
    covariance = A @ nodes.joint[chunk[row]] @ A.transpose(0, 2, 1)
    covariance += kept.noise - gain @ state.noise[row] @ gain.transpose(0, 2, 1)
    return ImuMotion(
        orientation=kept.turn @ Rotation.from_rotvec(bent[:, :3]).as_matrix(),
        position=kept.position + bent[:, 3:6],
        velocity=kept.velocity + bent[:, 6:9],
        accelerometer_bias=state.force_bias[row] + bent[:, 9:12],
        gyroscope_bias=state.rate_bias[row] + bent[:, 12:15],
        covariance=0.5 * (covariance + covariance.transpose(0, 2, 1)),
    )
