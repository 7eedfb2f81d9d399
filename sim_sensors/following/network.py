# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""A small neural network that follows waypoints, trained by imitation of other controllers."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import numpy as np

from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.planar import Pose, relative, twist_between

PREVIEW = 0.3
"""Time to the next waypoint that the network sees, s."""
LIMITS = np.array([3.0, 2.0, 1.5, 25.0, 1.5])
"""Largest magnitudes of the inputs in training: m, m, rad, m/s, rad/s."""
MIRROR = np.array([1.0, -1.0, -1.0, 1.0, -1.0])
"""Signs of the inputs of a mirrored state."""
_REVERSE = np.array([-1.0, -1.0, 1.0, -1.0, 1.0])
_WEIGHTS = Path(__file__).with_name('network.npz')


def waypoint_errors(now: Pose, ahead: Pose, robot: Pose) -> FloatArray:
    """Return the inputs of the network, `(5,)`, not limited.

    These are e_x, e_y [m] and e [rad] of the present waypoint `now` in the frame of the robot, and
    the speed [m/s] and yaw rate [rad/s] that lead from it to the waypoint `PREVIEW` later.
    """
    forward, _, turn = twist_between(now, ahead)
    return np.array([*relative(robot, now), forward / PREVIEW, turn / PREVIEW])


@dataclasses.dataclass(frozen=True, eq=False)
class Network:
    """Multilayer perceptron from the inputs of `waypoint_errors` to speed and yaw rate.

    Two layers of tanh units and a direct linear path lead from inputs, in units of `LIMITS`, to
    the outputs [m/s, rad/s]:

        y = W_3 tanh(W_2 tanh(W_1 z + b_1) + b_2) + W_4 z + b_3

    Inputs beyond their limits are saturated, so that the command is bounded for every pose. The
    two symmetries of a differential drive are exact. A mirrored state turns the other way, at the
    same speed: the output is the mean over the state and its mirror image. A robot in reverse is
    one that is turned by half a turn.
    """

    weights: tuple[FloatArray, ...]  # W_1, b_1, W_2, b_2, W_3, b_3, W_4

    @classmethod
    @functools.cache
    def shipped(cls) -> Network:
        """Return the network that benchmarks/train_network.py trained."""
        with np.load(_WEIGHTS) as arrays:
            return cls(tuple(arrays[name].astype(np.float64) for name in arrays.files))

    def raw(self, z: FloatArray) -> FloatArray:
        """Return the outputs `(n, 2)` at limited inputs `(n, 5)`, without symmetries."""
        w_1, b_1, w_2, b_2, w_3, b_3, w_4 = self.weights
        hidden = np.tanh(np.tanh(z @ w_1.T + b_1) @ w_2.T + b_2)
        return np.asarray(hidden @ w_3.T + z @ w_4.T + b_3)

    def command(self, inputs: FloatArray) -> tuple[float, float]:
        """Return speed [m/s] and yaw rate [rad/s] at inputs `(5,)`."""
        backward = inputs[3] < 0.0
        state = inputs * _REVERSE if backward else inputs
        z = np.clip(state / LIMITS, -1.0, 1.0)
        (speed, yaw_rate), (other_speed, other_rate) = self.raw(np.array([z, z * MIRROR]))
        speed, yaw_rate = 0.5 * (speed + other_speed), 0.5 * (yaw_rate - other_rate)
        return (-speed if backward else speed), yaw_rate
