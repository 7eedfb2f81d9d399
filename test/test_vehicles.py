# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The ART vehicle and its waypoint controller."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial import cKDTree
from test_trajectory import FIELDS, assert_identical

from sim_sensors.core import rotations
from sim_sensors.core.errors import MotionError
from sim_sensors.motion.paths import DRIVES, PurePursuit, RunVariation, drive, waypoints
from sim_sensors.motion.vehicles import ART, VehicleCommand, VehicleState

START = VehicleState(0.0, 0.0, 0.0, 0.0)
STEADY = RunVariation(
    **dict.fromkeys(RunVariation.declarations(), 0.0) | {'disturbance_time': 1.0}
)


@pytest.fixture(scope='module')
def drives():
    return {name: [drive(name, seed=5, run=f'{name}_{k}') for k in range(3)] for name in DRIVES}


@pytest.mark.parametrize('steering', [0.1, 0.5, -1.0])
def test_turn_radius_is_wheelbase_over_tangent_of_steer(steering):
    motion = ART.drive(lambda t, s: VehicleCommand(0.75, steering), duration=8.0, start=START)
    rear = motion.at_lever_arm((-ART.cg_to_rear, 0.0, 0.0)).at(np.linspace(4.0, 8.0, 50))
    body = rotations.rotate_back(rear.orientation, rear.velocity)
    np.testing.assert_allclose(body[:, 1], 0.0, atol=1e-12)
    radius = ART.wheelbase / np.tan(steering * ART.max_steer)
    np.testing.assert_allclose(body[:, 0] / rear.angular_velocity[:, 2], radius, rtol=1e-9)


def test_a_straight_run_reaches_the_speed_where_motor_and_resistance_balance():
    """tau_0 (0.75 - w/omega_0) = c_1 w + c_0: w = 20.30 rad/s, v = 0.5718 m/s."""
    motion = ART.drive(lambda t, s: VehicleCommand(0.75, 0.0), duration=15.0, start=START)
    assert ART.top_speed(0.75) == pytest.approx(20.297 * 0.08451952624 / 3.0, rel=1e-4)
    assert motion.velocity[-1, 0] == pytest.approx(ART.top_speed(0.75), rel=1e-6)
    assert (np.diff(motion.velocity[:, 0]) > -1e-12).all()
    assert motion.velocity[:, 0].max() <= ART.top_speed(0.75) * (1 + 1e-9)


def test_the_speed_agrees_with_an_independent_integrator():
    """The same torque balance written out again and integrated by scipy to 1e-10."""

    def rates(t, y):
        v, u = y
        w = v / (0.08451952624 / 3.0)
        torque = 0.3 * (u - w / 30.0) - 1e-4 * w - 0.02 * np.tanh(w / 0.5)
        force = torque / (0.08451952624 / 3.0)
        if v <= 0.0:
            force = max(force, 0.0)
        return [force / 5.76436, (0.75 - u) / 0.1]

    exact = solve_ivp(rates, (0.0, 5.0), [0.0, 0.0], rtol=1e-10, atol=1e-12, t_eval=[1.0, 5.0])
    motion = ART.drive(lambda t, s: VehicleCommand(0.75, 0.0), duration=5.0, start=START)
    np.testing.assert_allclose(motion.at([1.0, 5.0]).velocity[:, 0], exact.y[0], rtol=1e-8)


def climbing(incline, heading, throttle, seconds=15.0):
    """Return a drive straight ahead on ground that rises to the east."""
    car = dataclasses.replace(ART, incline=incline)
    start = VehicleState(0.0, 0.0, heading, 0.0)
    return car.drive(lambda t, s: VehicleCommand(throttle, 0.0), duration=seconds, start=start)


@pytest.mark.parametrize(('incline', 'heading'), [(0.05, 0.0), (0.05, 2.5), (-0.03, 0.4)])
def test_on_an_incline_motor_resistance_and_gravity_balance(incline, heading):
    """tau_0 (0.75 - w/omega_0) - c_1 w - c_0 = gamma r m g sin(incline) cos(heading)."""
    leverage = 0.08451952624 / 3.0
    slowed = leverage * 5.76436 * 9.80665 * np.sin(incline) * np.cos(heading)
    speed = leverage * (0.3 * 0.75 - 0.02 - slowed) / (0.3 / 30.0 + 1e-4)
    climb = speed * np.cos(heading) * np.sin(incline)
    motion = climbing(incline, heading, 0.75)
    assert np.linalg.norm(motion.velocity[-1]) == pytest.approx(speed, rel=1e-6)
    assert motion.velocity[-1, 2] == pytest.approx(climb, rel=1e-6)
    np.testing.assert_allclose(
        motion.position[:, 2], np.tan(incline) * motion.position[:, 0], atol=1e-12
    )


@pytest.mark.parametrize('heading', [0.0, 0.5, np.pi / 2])
def test_a_car_parked_on_an_incline_feels_gravity_along_it(heading):
    """The accelerometer shows g sin(incline) towards the top, divided by the heading."""
    force = climbing(0.05, heading, 0.0, 1.0).specific_force(9.80665)
    along = 9.80665 * np.sin(0.05)
    expected = [along * np.cos(heading), -along * np.sin(heading), 9.80665 * np.cos(0.05)]
    np.testing.assert_allclose(force, np.tile(expected, (len(force), 1)), atol=1e-12)


def test_a_drive_on_an_incline_has_consistent_derivatives():
    car = dataclasses.replace(ART, incline=0.1)
    assert_consistent(drive('half_sine', seed=5, run='half_sine_0', vehicle=car))


def test_without_throttle_the_car_stays_or_coasts_to_rest():
    still = ART.drive(lambda t, s: VehicleCommand(0.0, 1.0), duration=2.0, start=START)
    assert not still.velocity.any()
    fast = VehicleState(0.0, 0.0, 0.0, 0.8)
    coasting = ART.drive(lambda t, s: VehicleCommand(0.0, 0.0), duration=10.0, start=fast)
    speed = coasting.velocity[:, 0]
    assert (np.diff(speed) <= 1e-12).all()
    assert (speed >= 0.0).all()
    assert speed[-1] < 1e-6


def test_the_steering_angle_is_limited():
    full = ART.drive(lambda t, s: VehicleCommand(0.75, 1.0), duration=2.0, start=START)
    more = ART.drive(lambda t, s: VehicleCommand(0.75, 7.0), duration=2.0, start=START)
    assert_identical(full, more)


@pytest.mark.parametrize('name', DRIVES)
def test_driven_motion_has_consistent_derivatives(drives, name):
    assert_consistent(drives[name][0])


def assert_consistent(motion):
    """Compare the fields of the integrator with central differences of its samples, 1 ms apart."""
    dt = motion.time[2] - motion.time[0]

    def difference(values):
        return (values[2:] - values[:-2]) / dt

    for value, derivative, bound in (
        ('position', 'velocity', 1e-5),
        ('velocity', 'acceleration', 1e-2),  # jerk jumps with the command at 10 Hz
    ):
        gap = difference(getattr(motion, value)) - getattr(motion, derivative)[1:-1]
        assert np.abs(gap).max() < bound, derivative
    gap = difference(motion.angular_velocity) - motion.angular_acceleration[1:-1]
    assert np.abs(gap).max() < 2e-2
    turned = rotations.rotation_between(motion.orientation[:-2], motion.orientation[2:]) / dt
    assert np.abs(turned - motion.angular_velocity[1:-1]).max() < 1e-4


@pytest.mark.parametrize('name', DRIVES)
def test_accelerations_are_continuous(drives, name):
    for motion in drives[name]:
        assert np.abs(np.diff(motion.acceleration, axis=0)).max() < 0.02
        assert np.abs(np.diff(motion.angular_acceleration, axis=0)).max() < 0.05


@pytest.mark.parametrize('name', DRIVES)
def test_the_vehicle_follows_its_path(drives, name):
    """Within 8 cm after the error of the start (5 cm, 3 deviations); seeds are fixed."""
    points = cKDTree(waypoints(name, 20.0))
    for motion in drives[name]:
        rear = motion.at_lever_arm((-ART.cg_to_rear, 0.0, 0.0))
        settled = rear.position[rear.time > 5.0, :2]
        assert points.query(settled)[0].max() < 0.1
        assert points.query(rear.position[:, :2])[0].max() < 0.3
        assert np.linalg.norm(np.diff(rear.position, axis=0), axis=1).sum() > 10.0


@pytest.mark.parametrize('name', DRIVES)
def test_speed_and_energy_are_bounded(drives, name):
    """By the power of the motor and the lateral force of the tyres."""
    for motion in drives[name]:
        rear = motion.at_lever_arm((-ART.cg_to_rear, 0.0, 0.0))
        speed = np.linalg.norm(rear.velocity, axis=1)
        assert speed.max() < ART.top_speed(1.0)
        forward = rotations.rotate_back(rear.orientation, rear.acceleration)
        power = ART.mass * forward[:, 0] * speed
        # Largest power of the motor is tau_0 omega_0 / 4 at full throttle.
        assert power.max() < 0.3 * 30.0 / 4.0
        assert np.abs(forward[:, 1]).max() < 0.5


def test_a_drive_depends_only_on_seed_and_run(drives):
    first = drives['circle'][0]
    assert_identical(first, drive('circle', seed=5, run='circle_0'))
    for other in (drives['circle'][1], drive('circle', seed=6, run='circle_0', duration=20.0)):
        assert np.abs(first.position - other.position).max() > 1e-3


def test_a_shorter_drive_is_the_beginning_of_a_longer_one(drives):
    short = drive('line', seed=5, run='line_0', duration=4.0)
    for name in FIELDS:
        np.testing.assert_array_equal(
            getattr(short, name), getattr(drives['line'][0], name)[: len(short)], err_msg=name
        )


def test_start_offsets_have_the_declared_standard_deviation():
    """The deviation of 120 offsets strays 25 % from 0.05 with probability 2e-4 (chi-square)."""
    starts = [drive('line', seed=1, run=f'r{k}', duration=0.001) for k in range(60)]
    offsets = np.array([s.at_lever_arm((-ART.cg_to_rear, 0, 0)).position[0, :2] for s in starts])
    assert 0.0375 < offsets.std() < 0.0625


def test_runs_without_variation_are_equal():
    a = drive('line', seed=1, run='a', duration=2.0, variation=STEADY)
    assert_identical(a, drive('line', seed=9, run='b', duration=2.0, variation=STEADY))
    assert not a.position[:, 1].any()


def test_pursuit_steers_left_for_a_target_on_the_left_and_stops_at_the_end():
    pursuit = PurePursuit([(1.0, 1.0), (1.0, 5.0)], ART)
    assert pursuit(0.0, START).steering > 0.0
    assert PurePursuit([(1.0, -1.0), (1.0, -5.0)], ART)(0.0, START).steering < 0.0
    end = PurePursuit([(1.0, 4.8), (1.0, 5.0)], ART)
    assert end(0.1, VehicleState(1.0, 4.9, 1.57, 0.5)) == VehicleCommand(0.0, 0.0)


def test_pursuit_steers_on_the_circle_through_its_target():
    """Held, that steering angle carries the rear axle through the target (geometry)."""
    target = np.array([0.8, 0.3])
    command = PurePursuit([target, target], ART, lookahead=0.5)(0.0, START)
    radius = ART.wheelbase / np.tan(command.steering * ART.max_steer)
    assert np.hypot(target[0], target[1] - radius) == pytest.approx(radius)


def test_halving_the_integration_step_changes_the_drive_negligibly():
    """Halving the step moves the car by less than a nanometre in five seconds."""

    def controller(t, s):
        return VehicleCommand(0.75, 0.5 * np.sin(t))

    coarse = ART.drive(controller, duration=5.0, start=START)
    fine = ART.drive(controller, duration=5.0, start=START, step=0.5e-3)
    np.testing.assert_allclose(coarse.position[-1], fine.position[-1], atol=1e-9)


def test_wrong_paths_and_durations_are_refused():
    for name, words in (('spiral', {}), ('line', {'duration': 0.0})):
        with pytest.raises(MotionError):
            drive(name, seed=1, run='a', **words)
    for points, words in (
        ([(0.0, 0.0)], {}),
        ([(0.0, 0.0), (np.nan, 1.0)], {}),
        ([(0.0, 0.0), (1.0, 1.0)], {'lookahead': 0.0}),
    ):
        with pytest.raises(MotionError):
            PurePursuit(points, ART, **words)
