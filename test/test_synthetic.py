# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of motions that never took place are consistent, repeatable and say what they are."""

from __future__ import annotations

import numpy as np
import pytest
from recording_examples import arrays_equal

from sim2real_eval.simulation.twin import Twin
from sim2real_eval.simulation.twin_maker import synthetic_recording
from sim_sensors.gps.gps import load_gps
from sim_sensors.imu.imu import load_imu
from sim_sensors.motion.motions import START_NS, motion_names, motion_of, truth_of

TWIN = Twin('twin', load_gps('ch_rw'), load_imu('chrono'))


def motion(name: str, *, seed: int = 0, run: str = 'run_1', **parameters: object):
    return motion_of(name, seed=seed, run=run, duration=6.0, parameters=parameters)


@pytest.mark.parametrize('name', [name for name in motion_names() if name != 'mjcf'])
def test_positions_of_every_motion_are_the_integral_of_its_velocities(name: str) -> None:
    """Trapezoids of 10 ms: 1e-4 m. MuJoCo, at the end of its steps of 2 ms: 1e-3 m."""
    if name.startswith('sprung'):
        pytest.importorskip('mujoco')
    truth = truth_of(motion(name))
    assert (truth.frame, truth.child_frame) == ('map', 'base_link')
    assert truth.stamp_ns[0] == START_NS
    assert np.all(np.diff(truth.stamp_ns) == 10_000_000)
    assert len(truth) == 601
    x, y, z, w = truth.orientation.T
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    forward, left = truth.linear_velocity[:, 0], truth.linear_velocity[:, 1]
    east = forward * np.cos(yaw) - left * np.sin(yaw)
    north = forward * np.sin(yaw) + left * np.cos(yaw)
    velocity = np.stack([east, north], axis=1)
    steps = 0.005 * (velocity[1:] + velocity[:-1])
    way = np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])
    moved = truth.position[:, :2] - truth.position[0, :2]
    tolerance = 1e-3 if name.startswith('sprung') else 1e-4
    np.testing.assert_allclose(moved, way, rtol=0, atol=tolerance)
    # Swaying motions stay in one place by default.
    still = ('standstill', 'swaying', 'hand_held')
    assert (np.abs(forward).max() > 0.2) == (name not in still)


def test_drives_vary_between_runs_and_scenarios_do_not() -> None:
    first = truth_of(motion('drive_circle'))
    assert arrays_equal(first, truth_of(motion('drive_circle')))
    for other in (motion('drive_circle', run='run_2'), motion('drive_circle', seed=1)):
        difference = np.abs(truth_of(other).position - first.position).max()
        assert 1e-4 < difference < 2.0
    assert arrays_equal(truth_of(motion('circle')), truth_of(motion('circle', run='2', seed=1)))


def test_parameters_are_passed_to_an_analytic_motion() -> None:
    """2 m/s on a radius of 5 m: 0.4 rad/s, to the right when clockwise."""
    truth = truth_of(motion('circle', radius=5.0, speed=2.0, clockwise=True))
    middle = truth.angular_velocity[300]
    np.testing.assert_allclose(middle, [0.0, 0.0, -0.4], atol=1e-12)


def test_a_synthetic_recording_is_reproducible_bit_for_bit() -> None:
    truths = [
        synthetic_recording(motion('line'), TWIN, seed=seed, run='line_1', scenario='line')
        for seed in (3, 3, 4)
    ]
    first = truths[0]
    for topic, array in first.messages.items():
        assert arrays_equal(array, truths[1].messages[topic])
    assert not arrays_equal(first.messages['/imu/data'], truths[2].messages['/imu/data'])
    assert arrays_equal(first.messages['/ground_truth/odometry'],
                        truths[2].messages['/ground_truth/odometry'])  # fmt: skip
