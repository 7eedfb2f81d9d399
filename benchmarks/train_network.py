# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Train the neural network that follows waypoints, and compare the shipped one with it.

The network imitates the LQR and pure pursuit. Each drives half of the drives: the default robot of
`sim2real follow`, with random slip and from a random offset, for 4 s along a line or a circle of
random speed and radius. [Zhang2024] trained on lines and circles too.

Equal seeds give equal drives, but the weights depend on the last bits of the linear algebra.
Networks are therefore compared by their commands on unseen drives. The exit status is 1 if the
shipped network commands otherwise; `--write` ships the new one.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scipy.optimize import minimize

from sim_sensors.core.measurements import FloatArray
from sim_sensors.core.seeding import stream
from sim_sensors.following.follower import FollowSettings, drive_along
from sim_sensors.following.network import LIMITS, MIRROR, Network
from sim_sensors.following.tracking import NetworkTracker, NeuralNetwork, ReferenceMotion
from sim_sensors.motion.planar import Pose
from sim_sensors.motion.vehicles import DifferentialDrive, WheelRates
from sim_sensors.motion.waypoints import Waypoints

EXPERTS = ('lqr', 'pure_pursuit')
MANOEUVRES, DURATION = 800, 4.0
MAX_SLIP = 0.05  # share of the wheel rates lost
UNSEEN = 60
STEPS = 1500
HIDDEN = 16
SHAPES = ((HIDDEN, 5), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,), (2, HIDDEN), (2,), (2, 5))
SIZE = sum(math.prod(shape) for shape in SHAPES)
SCALES = np.array([0.1, 0.05])  # m/s, rad/s: errors of speed and yaw rate of equal cost
DECAY = 1e-6  # cost of squared weights, against large ones that cancel
SEED = 0
SHIPPED = Path(__file__).resolve().parents[1] / 'sim_sensors/following/network.npz'


def manoeuvre(
    number: int,
) -> tuple[ReferenceMotion, DifferentialDrive, tuple[float, float, float]]:
    """Return a line (each fourth) or a circle, the robot, and its offset at the start."""
    rng = stream(SEED, str(number), 'manoeuvre', 'draw')
    speed = LIMITS[3] * rng.uniform() ** 2  # more often slow
    # A lateral acceleration of at most 5 m/s^2.
    most = min(LIMITS[4], 5.0 / max(speed, 1e-3))
    yaw_rate = 0.0 if number % 4 == 0 else most * rng.uniform(-1.0, 1.0)
    time = np.arange(0.0, DURATION + 0.5, 0.1)
    heading = yaw_rate * time
    chord = speed * time * np.sinc(0.5 * heading / np.pi)
    x, y = chord * np.cos(0.5 * heading), chord * np.sin(0.5 * heading)
    offset = LIMITS[:3] * rng.uniform(-1.0, 1.0, 3) * rng.uniform()
    robot = DifferentialDrive(slip=MAX_SLIP * rng.uniform())
    return ReferenceMotion(Waypoints(time, x, y, heading)), robot, tuple(offset.tolist())


def examples(numbers: Iterable[int]) -> tuple[FloatArray, FloatArray]:
    """Return inputs `(n, 5)` in units of the limits, and commands of the experts `(n, 2)`.

    They are those of each third command, where all inputs are within their limits.
    """
    inputs, commands = [], []
    for number in numbers:
        reference, robot, offset = manoeuvre(number)
        settings = FollowSettings(robot=robot)
        expert = EXPERTS[number % 2]
        driven = drive_along(reference, settings, expert, offset=offset)
        tracker = NetworkTracker(NeuralNetwork(), reference, settings.robot, 0.05)
        # Commands are 5 samples apart, at 20 and 100 Hz.
        for row in range(0, len(driven.time), 15):
            inputs.append(tracker.inputs(float(driven.time[row]), Pose(*driven.poses[row])))
            commands.append(settings.robot.forward(WheelRates(*driven.wheel_commands[row])))
    z = np.array(inputs) / LIMITS
    inside = (np.abs(z) <= 1.0).all(axis=1)
    return z[inside], np.array(commands)[inside]


def unpack(vector: FloatArray) -> tuple[FloatArray, ...]:
    """Return W_1, b_1, W_2, b_2, W_3, b_3 and W_4 of `Network` from all weights, `(n,)`."""
    ends = np.cumsum([math.prod(shape) for shape in SHAPES])
    return tuple(
        part.reshape(shape)
        for part, shape in zip(np.split(vector, ends[:-1]), SHAPES, strict=True)
    )


def cost(vector: FloatArray, z: FloatArray, commands: FloatArray) -> tuple[float, FloatArray]:
    """Return the pseudo-Huber cost of weights, and its gradient.

    Both experts turn abruptly where the reference is beside a robot that hardly moves. Squared
    errors of such rare commands would outweigh those of all others.
    """
    w_1, b_1, w_2, b_2, w_3, b_3, w_4 = unpack(vector)
    first = np.tanh(z @ w_1.T + b_1)
    second = np.tanh(first @ w_2.T + b_2)
    error = (second @ w_3.T + z @ w_4.T + b_3 - commands) / SCALES
    root = np.sqrt(1.0 + error**2)
    slope = error / root / SCALES / len(z)
    slope_2 = (slope @ w_3) * (1.0 - second**2)
    slope_1 = (slope_2 @ w_2) * (1.0 - first**2)
    gradient = [
        slope_1.T @ z, slope_1.sum(0), slope_2.T @ first, slope_2.sum(0),
        slope.T @ second, slope.sum(0), slope.T @ z,
    ]  # fmt: skip
    value = float((root - 1.0).sum() / len(z)) + 0.5 * DECAY * float(vector @ vector)
    return value, np.concatenate([part.ravel() for part in gradient]) + DECAY * vector


def train(z: FloatArray, commands: FloatArray) -> Network:
    """Return the trained network; the examples are mirrored, as the network is symmetric."""
    z = np.concatenate([z, z * MIRROR])
    commands = np.concatenate([commands, commands * [1.0, -1.0]])
    start = 0.3 * stream(SEED, 'network', 'weights', 'start').standard_normal(SIZE)
    limits = {'maxiter': STEPS, 'maxfun': 2 * STEPS, 'maxcor': 30, 'ftol': 0.0}
    result = minimize(cost, start, (z, commands), jac=True, method='L-BFGS-B', options=limits)
    return Network(unpack(result.x))


def deviation(network: Network, commands: FloatArray, z: FloatArray) -> FloatArray:
    """Return the median and rms deviations from commands of speed, m/s, and yaw rate, rad/s."""
    error = np.array([network.command(row * LIMITS) for row in z]) - commands
    return np.array([np.median(np.abs(error), axis=0), np.sqrt(np.mean(error**2, axis=0))])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--write', action='store_true', help=f'write {SHIPPED.name}')
    options = parser.parse_args()
    trained = train(*examples(range(MANOEUVRES)))
    unseen, commands = examples(range(MANOEUVRES, MANOEUVRES + UNSEEN))
    if options.write:
        np.savez(SHIPPED, *(part.astype(np.float32) for part in trained.weights))
        Network.shipped.cache_clear()
    shipped = Network.shipped()
    networks = {'experts, trained': (trained, commands), 'experts, shipped': (shipped, commands)}
    networks['trained, shipped'] = (
        shipped, np.array([trained.command(row * LIMITS) for row in unseen])
    )  # fmt: skip
    print(f'{len(unseen)} states of {UNSEEN} unseen drives   speed [m/s]     yaw rate [rad/s]')
    for name, (network, others) in networks.items():
        (speed, yaw_rate), (speed_rms, rate_rms) = deviation(network, others, unseen)
        print(f'{name}: median {speed:.4f} {yaw_rate:.4f}   rms {speed_rms:.4f} {rate_rms:.4f}')
    agreement = deviation(shipped, networks['trained, shipped'][1], unseen)[0]
    return int((agreement > SCALES).any())


if __name__ == '__main__':
    sys.exit(main())
