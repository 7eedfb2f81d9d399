# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The neural waypoint controller follows paths that it was not trained on, and stays bounded."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import check_grad

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'benchmarks'))

import train_network

from sim_sensors.core.rotations import heading
from sim_sensors.following.follower import FollowSettings, PoseSensor, drive_along
from sim_sensors.following.network import LIMITS, MIRROR, Network
from sim_sensors.following.tracking import ReferenceMotion
from sim_sensors.motion.motions import motion_of
from sim_sensors.motion.vehicles import DifferentialDrive
from sim_sensors.motion.waypoints import Waypoints

NETWORK = 'neural_network'
UNSEEN = ('half_sine', 'figure_eight')  # neither lines nor circles


def reference(scenario: str, speed: float = 1.0, duration: float = 20.0) -> ReferenceMotion:
    time = np.arange(0.0, duration + 1e-9, 0.2)
    sampled = motion_of(scenario, duration=duration, parameters={'speed': speed}).at(time)
    x, y, _ = sampled.position.T
    return ReferenceMotion(Waypoints(time, x, y, np.unwrap(heading(sampled.orientation))))


@pytest.mark.parametrize('scenario', UNSEEN)
def test_the_network_follows_unseen_paths(scenario: str) -> None:
    """Its error is that of the robot's lag at most: 1 m/s for 0.1 s is 0.1 m."""
    driven = drive_along(reference(scenario), FollowSettings(), NETWORK)
    assert driven.errors.distance.max() < 0.1
    assert driven.errors.statistics()['distance'].rms < 0.03


@pytest.mark.parametrize('scenario', UNSEEN)
@pytest.mark.parametrize('offset', [(0.5, 0.5, 0.6), (-0.5, -0.5, -0.6), (-3.0, 4.0, 1.5)])
def test_the_network_returns_from_an_offset(scenario: str, offset: tuple[float, ...]) -> None:
    """Also from beyond the limits of its inputs."""
    driven = drive_along(reference(scenario), FollowSettings(), NETWORK, offset=offset)
    assert driven.errors.distance[1500:].max() < 0.1


@pytest.mark.parametrize('seed', range(3))
def test_a_noisy_or_late_pose_keeps_the_network_near_the_path(seed: int) -> None:
    """Noise of 0.1 m adds less than that; a pose 0.2 s old adds 0.2 m at 1 m/s."""
    noisy = FollowSettings(pose=PoseSensor(position_std=0.1, yaw_std=0.05))
    late = FollowSettings(pose=PoseSensor(latency=0.2))
    worn = FollowSettings(robot=DifferentialDrive(slip=0.05, radius_difference=0.01))
    for settings, bound in ((noisy, 0.2), (late, 0.35), (worn, 0.2)):
        driven = drive_along(reference('figure_eight'), settings, NETWORK, seed=seed)
        assert driven.errors.distance.max() < bound


def test_inputs_beyond_the_limits_are_saturated() -> None:
    """The command of a distant state is that of the limit, and no state asks for more than 6 m/s
    and 8 rad/s beyond the limits of the reference."""
    network = Network.shipped()
    rng = np.random.default_rng(0)
    for state in rng.uniform(-1.0, 1.0, (2000, 5)) * LIMITS * 50.0:
        limited = np.clip(state, -LIMITS, LIMITS)
        assert network.command(state) == network.command(limited)
        speed, yaw_rate = network.command(state)
        assert abs(speed) < LIMITS[3] + 6.0
        assert abs(yaw_rate) < LIMITS[4] + 8.0


def test_mirrored_and_reversed_states_have_mirrored_and_reversed_commands() -> None:
    network = Network.shipped()
    for state in np.random.default_rng(1).uniform(-1.2, 1.2, (200, 5)) * LIMITS:
        speed, yaw_rate = network.command(state)
        assert network.command(state * MIRROR) == pytest.approx((speed, -yaw_rate))
        turned = network.command(state * [-1.0, -1.0, 1.0, -1.0, 1.0])
        assert turned == pytest.approx((-speed, yaw_rate))
    assert network.command(np.array([0.0, 0.0, 0.0, 2.0, 0.0]))[1] == 0.0


def test_the_network_equals_sums_written_out() -> None:
    w_1, b_1, w_2, b_2, w_3, b_3, w_4 = (part.tolist() for part in Network.shipped().weights)
    for z in np.random.default_rng(2).uniform(-1.0, 1.0, (20, 5)).tolist():
        first = [
            math.tanh(sum(w * v for w, v in zip(row, z, strict=True)) + b)
            for row, b in zip(w_1, b_1, strict=True)
        ]
        second = [
            math.tanh(sum(w * v for w, v in zip(row, first, strict=True)) + b)
            for row, b in zip(w_2, b_2, strict=True)
        ]
        outputs = [
            sum(w * v for w, v in zip(row, second, strict=True))
            + sum(w * v for w, v in zip(direct, z, strict=True))
            + b
            for row, direct, b in zip(w_3, w_4, b_3, strict=True)
        ]
        assert Network.shipped().raw(np.array([z]))[0] == pytest.approx(outputs, rel=1e-12)


def test_the_shipped_network_is_at_a_minimum_of_the_cost_that_was_trained() -> None:
    """On a sixth of the training drives; weights that are changed by 3 % cost more."""
    z, commands = train_network.examples(range(0, train_network.MANOEUVRES, 6))
    z, commands = np.concatenate([z, z * MIRROR]), np.concatenate([commands, commands * [1, -1]])
    shipped = np.concatenate([part.ravel() for part in Network.shipped().weights])
    least, _ = train_network.cost(shipped, z, commands)
    rng = np.random.default_rng(3)
    for _ in range(10):
        changed = shipped * (1.0 + 0.03 * rng.standard_normal(len(shipped)))
        assert train_network.cost(changed, z, commands)[0] > 1.02 * least


def test_the_gradient_of_the_cost_is_its_derivative() -> None:
    rng = np.random.default_rng(4)
    z, commands = rng.uniform(-1.0, 1.0, (50, 5)), rng.standard_normal((50, 2))
    weights = 0.3 * rng.standard_normal(train_network.SIZE)
    difference = check_grad(
        lambda w: train_network.cost(w, z, commands)[0],
        lambda w: train_network.cost(w, z, commands)[1],
        weights,
    )
    slope = np.linalg.norm(train_network.cost(weights, z, commands)[1])
    assert difference < 1e-4 * slope
