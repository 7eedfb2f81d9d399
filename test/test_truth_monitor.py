# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The monitor of a live truth finds what check finds, and noise does not alarm it."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest

from sim2real_eval import simulate
from sim2real_eval.preflight import check
from sim_sensors.core import rotations
from sim_sensors.core.measurements import OdometryArray
from sim_sensors.motion.motions import motion_of, truth_of
from sim_sensors.motion.truth_monitor import TruthMonitor, TruthProblem

MOTION = motion_of('figure_eight', duration=60.0)
TRUTH = truth_of(MOTION)
# Standard deviations of positions, m, of velocities, m/s, and of attitudes, rad.
NOISES = [(0.005, 0.02, 0.01), (0.05, 0.1, 0.05), (0.5, 0.5, 0.1)]


def monitored(truth: OdometryArray, *, reads_twist: bool = True) -> TruthMonitor:
    monitor = TruthMonitor(reads_twist=reads_twist)
    for k in range(len(truth)):
        monitor.push(truth.take([k]))
    return monitor


def noisy(truth: OdometryArray, noise: tuple[float, float, float], seed: int) -> OdometryArray:
    rng = np.random.default_rng(seed)
    position, velocity, attitude = (
        deviation * rng.standard_normal((len(truth), 3)) for deviation in noise
    )
    return dataclasses.replace(
        truth,
        position=truth.position + position,
        linear_velocity=truth.linear_velocity + velocity,
        orientation=rotations.multiply(truth.orientation, rotations.exp(attitude)),
    )


def wrong(truth: OdometryArray, problem: TruthProblem) -> OdometryArray:
    position, velocity = truth.position.copy(), truth.linear_velocity
    if problem is TruthProblem.JUMP:
        position[3000:] += 100.0
    elif problem is TruthProblem.WORLD_TWIST:
        velocity = rotations.rotate(truth.orientation, velocity)
    elif problem is TruthProblem.NO_TWIST:
        velocity = np.zeros_like(velocity)
    elif problem is TruthProblem.SPEED_SCALE:
        velocity = 3.6 * velocity
    return dataclasses.replace(truth, position=position, linear_velocity=velocity)


@pytest.mark.parametrize(
    'problem',
    [TruthProblem.JUMP, TruthProblem.WORLD_TWIST, TruthProblem.NO_TWIST, TruthProblem.SPEED_SCALE],
)
def test_the_monitor_and_check_report_one_code(problem: TruthProblem) -> None:
    truth = wrong(TRUTH, problem)
    assert monitored(truth).counts == {problem: 1}
    drive = simulate(MOTION, imu='xsens_mtx')
    (topic,) = (topic for role, topic in drive.roles.items() if role == 'truth')
    found = {
        finding.code
        for finding in check(
            dataclasses.replace(
                drive, messages={**drive.messages, topic: wrong(drive.truth, problem)}
            )
        ).findings
    }
    assert problem.value in found
    others = {other.value for other in TruthProblem} - {problem.value}
    assert not found & others


@pytest.mark.parametrize('noise', NOISES[:2])
def test_noise_does_not_hide_a_twist_of_the_world(noise: tuple[float, float, float]) -> None:
    truth = noisy(wrong(TRUTH, TruthProblem.WORLD_TWIST), noise, seed=1)
    assert monitored(truth).counts[TruthProblem.WORLD_TWIST] == 1


@pytest.mark.parametrize('noise', NOISES)
@pytest.mark.parametrize('rate', [10.0, 100.0])
def test_noise_raises_no_alarm(noise: tuple[float, float, float], rate: float) -> None:
    """No alarm in ten minutes of motions, for each noise and rate."""
    for seed, name in enumerate(('circle', 'figure_eight', 'half_sine', 'line', 'standstill')):
        truth = noisy(truth_of(motion_of(name, duration=120.0), rate=rate), noise, seed)
        for reads_twist in (True, False):
            assert not monitored(truth, reads_twist=reads_twist).counts, name


def test_a_jump_is_found_without_a_twist_and_gaps_are_none() -> None:
    jumped = wrong(TRUTH, TruthProblem.JUMP)
    assert monitored(jumped, reads_twist=False).counts == {TruthProblem.JUMP: 1}
    assert monitored(jumped).largest_jump == pytest.approx(np.sqrt(3.0) * 100.0, abs=0.1)
    gap = TRUTH.take([*range(1000), *range(1500, len(TRUTH))])
    assert not monitored(gap).counts
    assert not monitored(gap, reads_twist=False).counts


def test_a_problem_that_ends_holds_no_longer() -> None:
    world = wrong(TRUTH, TruthProblem.WORLD_TWIST)
    velocity = np.concatenate([world.linear_velocity[:2000], TRUTH.linear_velocity[2000:]])
    long = truth_of(motion_of('figure_eight', duration=180.0))
    velocity = np.concatenate([velocity[:2000], long.linear_velocity[2000:]])
    monitor = monitored(dataclasses.replace(long, linear_velocity=velocity))
    assert monitor.counts == {TruthProblem.WORLD_TWIST: 1}
    assert not monitor.holding


def test_a_sample_costs_less_than_20_microseconds_at_1_khz() -> None:
    truth = truth_of(motion_of('circle', duration=5.0), rate=1000.0)
    rows = [truth.take([k]) for k in range(len(truth))]
    costs = []
    for _ in range(3):
        monitor, begin = TruthMonitor(), time.process_time()
        for row in rows:
            monitor.push(row)
        costs.append((time.process_time() - begin) / len(rows))
    assert min(costs) < 20e-6
