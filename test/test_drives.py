# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Controllers drive the manoeuvres of stand-ins: the ART vehicle, and the robot of `follow`."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from sim2real_eval.study.recordings import PathDrive
from sim_sensors.core.errors import MotionError
from sim_sensors.following.tracking import TRACKERS
from sim_sensors.motion.motions import motion_of
from sim_sensors.motion.paths import DRIVES, RunVariation, drive, waypoints
from sim_sensors.motion.vehicles import ART

TIMES = np.linspace(0.0, 20.0, 201)
FEEDBACK = ('nonlinear', 'lqr')


def distance_from_path(scenario: str, plan: PathDrive) -> np.ndarray:
    """Return the distance of the rear axle from the path from 5 s on, m."""
    sampled = plan.motion().at(TIMES[50:]).at_lever_arm((-ART.cg_to_rear, 0.0, 0.0))
    points = waypoints(scenario, 25.0)
    dense = np.column_stack(
        [np.interp(np.linspace(0, len(points) - 1, 20_000), np.arange(len(points)), p)
         for p in points.T]
    )  # fmt: skip
    return np.array([np.hypot(*(dense - row[:2]).T).min() for row in sampled.position])


@pytest.mark.parametrize('scenario', DRIVES)
def test_without_controller_the_drive_is_that_of_pure_pursuit(scenario: str) -> None:
    motion = PathDrive(scenario, 3, 'run', 4.0).motion()
    expected = drive(scenario, seed=3, run='run', duration=4.0)
    np.testing.assert_array_equal(motion.at(TIMES[:40]).position, expected.at(TIMES[:40]).position)
    assert 'controller' not in PathDrive(scenario, 3, 'run').to_mapping()


@pytest.mark.parametrize('controller', FEEDBACK)
@pytest.mark.parametrize('scenario', DRIVES)
def test_feedback_keeps_the_vehicle_on_its_path(scenario: str, controller: str) -> None:
    """Pure pursuit stays within 2 cm from 5 s on; so do the feedback laws, within twice that."""
    plan = PathDrive(scenario, 0, 'run', controller=controller)
    assert distance_from_path(scenario, plan).max() < 0.04
    assert plan.to_mapping()['controller'] == controller


def test_the_open_loop_leaves_the_path_and_feedback_does_not() -> None:
    plans = [PathDrive('line', 0, 'run', controller=name) for name in ('open_loop', 'lqr')]
    loose, held = (distance_from_path('line', plan).max() for plan in plans)
    assert loose > 0.3
    assert held < 0.04


@pytest.mark.parametrize('controller', TRACKERS)
def test_the_throttle_drives_the_vehicle_at_the_speed_of_the_reference(controller: str) -> None:
    motion = PathDrive('line', 0, 'run', controller=controller).motion()
    speed = np.linalg.norm(motion.at(TIMES[150:]).velocity, axis=1)
    # Throttle and friction of a run differ by 2 % and 10 %, which is 3 % of the speed.
    assert speed.mean() == pytest.approx(ART.top_speed(0.75), rel=0.1)


def test_throttle_and_top_speed_are_inverse() -> None:
    for throttle in (0.1, 0.5, 0.75, 1.0):
        assert ART.throttle_at(ART.top_speed(throttle)) == pytest.approx(throttle)
    assert (ART.throttle_at(-1.0), ART.throttle_at(9.0)) == (0.0, 1.0)


def test_the_speed_of_the_reference_does_not_depend_on_the_incline() -> None:
    inclined = dataclasses.replace(ART, incline=0.05)
    assert inclined.top_speed(0.75) == ART.top_speed(0.75) == ART.downhill_speed(0.75)
    # Gravity m g sin(incline) has the leverage of gear ratio times radius.
    leverage = ART.gear_ratio * ART.wheel_radius
    torque = leverage * ART.mass * 9.80665 * math.sin(0.05)
    slope = ART.stall_torque / ART.no_load_rate + ART.linear_resistance
    gain = inclined.downhill_speed(0.75) - ART.top_speed(0.75)
    assert gain == pytest.approx(leverage * torque / slope)


def test_the_robot_starts_beside_the_scenario_and_returns_to_it() -> None:
    truth = motion_of('figure_eight', duration=20.0).at(TIMES).position
    vary = RunVariation(start_position=0.3)
    plans = [PathDrive('figure_eight', 0, run, 20.0, ART, vary, 'lqr') for run in ('a', 'b')]
    distances = [np.hypot(*(p.motion().at(TIMES).position - truth)[:, :2].T) for p in plans]
    for distance in distances:
        assert distance[0] > 0.05
        assert distance[100:].max() < 0.1
    assert distances[0][0] != distances[1][0]


def test_a_scenario_that_is_not_level_is_refused() -> None:
    with pytest.raises(MotionError):
        PathDrive('swaying', 0, 'run', controller='lqr').motion()
