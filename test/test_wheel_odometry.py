# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Wheel odometry: kinematics, laws of the errors, covariances, stepping.

Statistical bounds are 4.5 standard errors (7e-6 per comparison, less than 1e-3 per test); seeds
are fixed.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from wheel_examples import dance, heading_of, perfect, pieces, same_bits, straight

from sim_sensors.core.errors import MotionError, ParameterError
from sim_sensors.motion.motions import motion_of
from sim_sensors.motion.scenarios import Circle, FigureEight, Standstill
from sim_sensors.motion.vehicles import DifferentialDrive, WheelRates, module_weights
from sim_sensors.sensor.catalogue import preset_names
from sim_sensors.wheels import wheel_odometry
from sim_sensors.wheels.encoders import (
    AckermannWheels,
    DifferentialWheels,
    NoWheelNoise,
    PerDistance,
    Slip,
    SquaredIncrement,
    SteeringOffset,
    SwerveWheels,
)
from sim_sensors.wheels.wheel_odometry import WheelOdometryModel, load_wheels

SIGMAS = 4.5
SWERVE = SwerveWheels(module_x=(0.3, 0.25, -0.3, -0.2), module_y=(0.2, -0.3, 0.25, -0.2))
FULL = WheelOdometryModel(
    drive=SWERVE, lever_arm=(0.1, -0.05, 0.0), noise=SquaredIncrement(),
    slip=Slip(distance=1.0, length=0.3, locked=0.3), radius_error=0.01, encoder_counts=500.0,
    steering_offset=SteeringOffset(bound=4.0),
)  # fmt: skip
FIELDS = (
    'pose', 'velocity', 'pose_covariance', 'velocity_covariance', 'true_pose', 'true_velocity',
    'wheel_angle', 'steering_angle', 'true_wheel_angle', 'true_steering_angle',
)  # fmt: skip


def test_a_swerve_without_errors_reports_the_true_pose_for_any_motion() -> None:
    """Strafing and spinning, with the drive's centre off base_link, at a low rate."""
    truth = dance(np.arange(0.0, 60.0, 0.1))
    odometry = (
        perfect(SWERVE, rate=10.0, lever_arm=(0.2, -0.1, 0.3)).start(0, 'run').measure(truth)
    )
    for pose in (odometry.pose, odometry.true_pose):
        np.testing.assert_allclose(pose[:, :2], truth.position[:, :2], atol=1e-11)
        np.testing.assert_allclose(pose[:, 2], heading_of(truth), atol=1e-11)
    assert not odometry.pose_covariance.any()


@pytest.mark.parametrize(
    ('drive', 'arm'),
    [(DifferentialWheels(), 0.0), (AckermannWheels(wheelbase=0.46524), -0.196863)],
    ids=['differential', 'ackermann'],
)
def test_wheels_without_errors_follow_the_motion_of_their_vehicle(drive, arm) -> None:
    """The rear axle of the ART vehicle never slips sideways; the step of 20 ms is the error."""
    motion = motion_of('drive_half_sine', seed=3, run='run_1', duration=20.0, parameters={})
    model = perfect(drive, lever_arm=(arm or -0.196863, 0.0, 0.0))
    odometry = wheel_odometry.simulate(model, motion, seed=0, run='run')
    truth = motion.at(odometry.stamp_ns * 1e-9)
    assert np.ptp(truth.position[:, 1]) > 1.0
    np.testing.assert_allclose(odometry.position, truth.position, atol=1e-5)
    np.testing.assert_allclose(odometry.orientation, truth.orientation, atol=1e-5)


def test_wheel_rates_equal_those_of_the_path_follower() -> None:
    """Two implementations of the differential drive agree, forward and backward."""
    robot, wheels = DifferentialDrive(), DifferentialWheels()
    steps = np.array([[0.3, 0.0, 0.2], [-0.1, 0.0, 0.4], [0.0, 0.0, -0.5]])
    travels, _ = wheels.inverse(steps, np.zeros(0))
    for step, travel in zip(steps, travels, strict=True):
        rates = robot.inverse(step[0], step[2])
        np.testing.assert_allclose(travel / wheels.wheel_radius, rates, rtol=1e-14)
        assert robot.forward(WheelRates(*rates)) == pytest.approx((step[0], step[2]))
    np.testing.assert_allclose(wheels.forward(travels, travels[:, :0]), steps, atol=1e-15)


def test_wheels_on_a_circle_rotate_at_the_geometric_rate() -> None:
    """Radius 3 m, one round to the left: the outer wheel rolls 2 pi (3 + half track)."""
    t = np.linspace(0.0, 2.0 * math.pi, 201)
    circle = Circle(radius=3.0, speed=3.0, ramp_time=0.0, duration=7.0).at(t)
    odometry = perfect(DifferentialWheels()).start(0, 'run').measure(circle)
    rolled = odometry.wheel_angle[-1] * 0.1
    np.testing.assert_allclose(rolled, 2.0 * math.pi * np.array([2.8, 3.2]), rtol=1e-6)
    car = perfect(AckermannWheels(wheelbase=0.5)).start(0, 'run').measure(circle)
    np.testing.assert_allclose(car.steering_angle, math.atan(0.5 / 3.0), rtol=1e-6)


def test_swerve_kinematics_equal_those_of_wpilib() -> None:
    """[WPILib], which [FRC3176] ran on: toTwist2d and the exponential of erring modules."""
    geometry = pytest.importorskip('wpimath.geometry')
    kinematics = pytest.importorskip('wpimath.kinematics')
    places = [geometry.Translation2d(*row) for row in SWERVE.modules]
    swerve = kinematics.SwerveDrive4Kinematics(*places)
    model = dataclasses.replace(FULL, lever_arm=(0.0, 0.0, 0.0))
    odometry = model.start(5, 'run').measure(dance(np.arange(0.0, 10.0, 0.02)))

    def modules(k):
        angles = zip(0.0508 * odometry.wheel_angle[k], odometry.steering_angle[k], strict=True)
        return tuple(
            kinematics.SwerveModulePosition(way, geometry.Rotation2d(angle))
            for way, angle in angles
        )

    pose = geometry.Pose2d(*odometry.pose[0])
    for k in range(1, len(odometry.pose)):
        pose = pose.exp(swerve.toTwist2d(modules(k - 1), modules(k)))
        turn = math.remainder(pose.rotation().radians() - odometry.pose[k, 2], 2.0 * math.pi)
        apart = pose.X() - odometry.pose[k, 0], pose.Y() - odometry.pose[k, 1], turn
        assert np.abs(apart).max() < 1e-9, 'WPILib, tolerance 1e-9'
    assert np.linalg.norm(odometry.pose[-1] - odometry.true_pose[-1]) > 0.05


def test_differential_kinematics_equal_those_of_wpilib() -> None:
    geometry = pytest.importorskip('wpimath.geometry')
    kinematics = pytest.importorskip('wpimath.kinematics')
    drive = kinematics.DifferentialDriveKinematics(0.4)
    model = dataclasses.replace(FULL, drive=DifferentialWheels(), lever_arm=(0.0, 0.0, 0.0))
    odometry = model.start(5, 'run').measure(FigureEight().at(np.arange(0.0, 10.0, 0.02)))
    pose = geometry.Pose2d(*odometry.pose[0])
    for left, right in np.diff(0.1 * odometry.wheel_angle, axis=0):
        pose = pose.exp(drive.toTwist2d(left, right))
    apart = np.subtract((pose.X(), pose.Y()), odometry.pose[-1, :2])
    assert np.abs(apart).max() < 1e-9, 'WPILib, tolerance 1e-9'


def test_modules_rotate_by_at_most_a_right_angle() -> None:
    """Forward, then backward, then left: the wheels reverse instead of turning around."""
    steps = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [-1.0, 1e-3, 0.0], [0.0, 1.0, 0.0]])
    travels, angles = SWERVE.inverse(steps, np.zeros(4))
    assert (np.abs(np.diff(angles, axis=0)) <= math.pi / 2 + 1e-12).all()
    np.testing.assert_allclose(travels[:2, 0], [1.0, -1.0])
    np.testing.assert_allclose(SWERVE.forward(travels, angles), steps, atol=1e-15)
    at_rest, held = SWERVE.inverse(np.zeros((1, 3)), angles[-1])
    assert not at_rest.any()
    np.testing.assert_array_equal(held[0], angles[-1])


def test_the_least_squares_step_equals_that_of_numpy() -> None:
    rng = np.random.default_rng(1)
    travels, angles = rng.normal(size=(5, 4)), rng.normal(size=(5, 4))
    measured = SWERVE.forward(travels, angles)
    rows = [row for x, y in SWERVE.modules for row in ([1, 0, -y], [0, 1, x])]
    for k in range(5):
        moved = np.column_stack([travels[k] * np.cos(angles[k]), travels[k] * np.sin(angles[k])])
        best = np.linalg.lstsq(np.array(rows), moved.ravel(), rcond=None)[0]
        np.testing.assert_allclose(measured[k], best, atol=1e-13)
    assert np.linalg.eigvalsh(module_weights(SWERVE.modules)).min() > 0.0


def rolled(noise, n, step, times=400):
    """Return errors of `4 times` wheel angles after `n` steps of `step` rad, rad."""
    model = WheelOdometryModel(drive=SwerveWheels(), noise=noise, rate=100.0)
    odometry = model.start(7, 'run').measure(straight(times * n + 1, 100.0, step * 0.0508))
    return np.diff((odometry.wheel_angle - odometry.true_wheel_angle)[::n], axis=0).ravel()


def test_noise_of_the_source_code_follows_its_formula_and_depends_on_the_rate() -> None:
    """Variance (0.4)^2 D^4 / n^3 of D rad in n steps: twice the rate, 2.83 times less."""
    D = 20.0
    measured = {}
    for n in (20, 40):
        error = rolled(SquaredIncrement(), n, D / n)
        count = len(error)
        expected = 0.4 * D * D / n**1.5
        assert abs(error.mean()) < SIGMAS * expected / math.sqrt(count)
        assert abs(error.std() / expected - 1.0) < SIGMAS * math.sqrt(0.5 / count)
        measured[n] = error.std()
    assert measured[20] / measured[40] == pytest.approx(2.83, rel=0.2)
    # At 90 rad/s and 50 Hz a step errs by 72 % of itself.
    step = SquaredIncrement().deviation(np.array([1.8 * 0.0508]), 0.0508) / 0.0508
    assert step == pytest.approx(1.296)


def test_per_distance_noise_and_slips_do_not_depend_on_the_rate() -> None:
    """Errors after 2 m in 20, 40 and 160 steps; slips are at the same places."""
    for n in (20, 40, 160):
        error = 0.0508 * rolled(PerDistance(density=0.02), n, 2.0 / 0.0508 / n)
        expected = 0.02 * math.sqrt(2.0)
        assert abs(error.std() / expected - 1.0) < SIGMAS * math.sqrt(0.5 / len(error))
    slip = Slip(distance=0.3, length=0.1, ratio=0.5)
    totals = []
    for n in (20, 160):
        process = slip.start(3, 'run', 'wheels', 2)
        totals.append(process.advance(np.full((n, 2), 10.0 / n)).sum(axis=0))
    np.testing.assert_allclose(totals[0], totals[1], atol=1e-12)
    assert np.abs(totals[0]).min() > 0.0


def test_wheel_odometry_has_no_error_at_rest() -> None:
    """The wheels neither roll nor jitter, and the covariance is the floor."""
    model = dataclasses.replace(FULL, encoder_counts=0.0)
    odometry = model.start(1, 'run').measure(Standstill(duration=10.0).at(np.arange(500) / 50.0))
    assert not odometry.velocity.any()
    assert not odometry.pose_covariance.any()
    np.testing.assert_array_equal(odometry.pose, np.zeros((500, 3)))
    floor = np.diag([1e-4, 1e-4, 1e-4])
    np.testing.assert_allclose(odometry.velocity_covariance, np.tile(floor, (500, 1, 1)))


def test_the_steering_error_follows_the_paper_or_its_code() -> None:
    """Text: uniform, variance 16/3; code: eight whole degrees, mean -0.5, variance 5.25."""
    n = 40000
    text = np.degrees(SteeringOffset(bound=4.0).draw(0, 'run', 'wheels', n))
    code = SteeringOffset(bound=4.0, variant='as_upstream')
    whole = np.degrees(code.draw(0, 'run', 'wheels', n))
    assert np.abs(text).max() <= 4.0
    assert abs(text.mean()) < SIGMAS * math.sqrt(16.0 / 3.0 / n)
    assert text.var() == pytest.approx(16.0 / 3.0, rel=0.03)
    values, counts = np.unique(np.round(whole, 9), return_counts=True)
    np.testing.assert_array_equal(values, np.arange(-4, 4))
    assert np.abs(counts / n - 0.125).max() < SIGMAS * math.sqrt(0.125 * 0.875 / n)
    assert whole.mean() == pytest.approx(-0.5, abs=0.06)
    assert code.mean == pytest.approx(math.radians(-0.5))
    assert code.variance == pytest.approx(math.radians(math.sqrt(5.25)) ** 2)
    assert SteeringOffset(bound=4.0).mean == 0.0
    assert SteeringOffset(bound=4.0).variance == pytest.approx(np.radians(4.0) ** 2 / 3.0)
    np.testing.assert_array_equal(np.floor(text + 4.0) - 4.0, np.round(whole))


def test_a_constant_steering_error_rotates_the_path() -> None:
    """Equal errors of all modules turn the path and leave the heading."""
    steps = np.tile([0.1, 0.0, 0.0], (10, 1))
    drive = SwerveWheels()
    travels, angles = drive.inverse(steps, np.zeros(4))
    odometry = drive.forward(travels, angles + math.radians(3.0))
    np.testing.assert_allclose(np.arctan2(odometry[:, 1], odometry[:, 0]), math.radians(3.0))
    np.testing.assert_allclose(odometry[:, 2], 0.0, atol=1e-15)
    sensor = dataclasses.replace(FULL, noise=NoWheelNoise()).start(2, 'run')
    measured = sensor.measure(dance(np.arange(0.0, 5.0, 0.02)))
    offset = measured.steering_angle - measured.true_steering_angle
    np.testing.assert_allclose(
        offset, np.tile(sensor.constants.steering_offsets, (len(offset), 1))
    )


def test_the_probability_of_an_encoder_count_is_the_fraction_rolled() -> None:
    """Encoders start anywhere between two counts; a jitter of 1e-5 counts is hardly counted."""
    counts = 64.0
    model = WheelOdometryModel(
        drive=DifferentialWheels(), noise=PerDistance(density=1e-3), encoder_counts=counts
    )
    count = 2.0 * math.pi * model.drive.wheel_radius / counts
    for step, share in ((0.25 * count, 0.25), (1e-6 * count, 0.001)):
        runs = [model.start(3, f'{run}').measure(straight(2, 50.0, step)) for run in range(300)]
        counted = np.array([run.wheel_angle[-1] != 0.0 for run in runs]).mean()
        assert counted == pytest.approx(share, abs=SIGMAS * math.sqrt(share / 600) + 0.001)


def test_the_error_of_encoders_never_exceeds_one_count() -> None:
    model = perfect(DifferentialWheels(), encoder_counts=64.0)
    odometry = model.start(0, 'run').measure(FigureEight().at(np.arange(0.0, 10.0, 0.02)))
    count = 2.0 * math.pi / 64.0
    wheel = odometry.wheel_angle / count
    np.testing.assert_allclose(wheel, np.round(wheel), atol=1e-6)
    error = odometry.wheel_angle - odometry.true_wheel_angle
    assert 0.5 * count < np.abs(error).max() <= count * (1.0 + 1e-9)


@pytest.mark.parametrize('drive', [SWERVE, DifferentialWheels(), AckermannWheels()])
def test_the_stated_covariance_equals_that_of_the_errors(drive) -> None:
    """Variances and NEES of 300 runs of white noise on a path with bends."""
    model = WheelOdometryModel(
        drive=drive, lever_arm=(0.2, 0.1, 0.0), noise=PerDistance(density=0.005), rate=20.0
    )
    truth = FigureEight(speed=1.0).at(np.arange(0.0, 10.0, 0.05))
    runs = [model.start(9, f'{run}').measure(truth) for run in range(300)]
    errors = np.array([run.pose[-1] - run.true_pose[-1] for run in runs])
    stated = runs[0].pose_covariance[-1]
    # To first order only, and stated from what was told: 5 % beside the scatter of the sample.
    bound = SIGMAS * math.sqrt(2.0 / 300) + 0.05
    np.testing.assert_allclose(errors.var(axis=0) / np.diag(stated), 1.0, atol=bound)
    nees = [
        error @ np.linalg.solve(run.pose_covariance[-1], error)
        for run, error in zip(runs, errors, strict=True)
    ]
    assert np.mean(nees) == pytest.approx(3.0, abs=SIGMAS * math.sqrt(6.0 / 300) + 0.15)
    velocity = np.array([run.velocity[100] - run.true_velocity[100] for run in runs])
    floor = np.diag([1e-4, 1e-4, 1e-4])
    white = runs[0].velocity_covariance[100] - floor
    measures = np.diag(white) > 1e-12
    assert measures.sum() >= 2
    ratio = velocity.var(axis=0)[measures] / np.diag(white)[measures]
    np.testing.assert_allclose(ratio, 1.0, atol=bound)


@pytest.mark.parametrize('model', [FULL, *(load_wheels(name) for name in preset_names('wheels'))])
def test_stepwise_simulation_equals_one_call_bit_for_bit(model: WheelOdometryModel) -> None:
    truth = dance(np.arange(0.0, 6.0, 0.02))
    whole = model.start(4, 'run').measure(truth)
    sensor = model.start(4, 'run')
    parts = [sensor.measure(piece) for piece in pieces(truth, [1, 2, 2, 50, 51, 200])]
    same_bits(parts, whole, FIELDS)
    by_one = model.start(4, 'run')
    same_bits([by_one.measure(piece) for piece in pieces(truth, range(1, 300))], whole, FIELDS)


def test_sources_of_error_are_independent() -> None:
    truth = dance(np.arange(0.0, 4.0, 0.02))
    some = dataclasses.replace(FULL, encoder_counts=0.0)
    less = dataclasses.replace(some, slip=Slip(), radius_error=0.0)
    first, second = some.start(4, 'run'), less.start(4, 'run')
    first.measure(truth), second.measure(truth)
    np.testing.assert_array_equal(
        first.constants.steering_offsets, second.constants.steering_offsets
    )
    bare = dataclasses.replace(less, noise=NoWheelNoise()).start(4, 'run').measure(truth)
    noise = less.start(4, 'run').measure(truth).wheel_angle - bare.wheel_angle
    with_slips = dataclasses.replace(less, slip=FULL.slip)
    slips = dataclasses.replace(with_slips, noise=NoWheelNoise()).start(4, 'run').measure(truth)
    both = with_slips.start(4, 'run').measure(truth).wheel_angle
    np.testing.assert_allclose(both - slips.wheel_angle, noise, atol=1e-12)
    assert np.abs(slips.wheel_angle - bare.wheel_angle).max() > 1.0


def test_messages_are_planar_odometry_with_latency() -> None:
    model = dataclasses.replace(FULL, latency=0.03, initial_pose='origin')
    odometry = wheel_odometry.simulate(
        model, FigureEight(duration=4.0), seed=1, run='run', origin_ns=10**18
    )
    assert len(odometry) == 201
    assert (odometry.frame, odometry.child_frame) == ('odom', 'base_link')
    assert (odometry.arrival_ns - odometry.stamp_ns == 30_000_000).all()
    assert not odometry.position[0].any()
    np.testing.assert_array_equal(odometry.orientation[0], [0.0, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(odometry.pose_covariance[:, 2, 2], 1e6)
    planar = odometry.pose_covariance[:, [0, 1, 5]][:, :, [0, 1, 5]]
    assert (np.linalg.eigvalsh(planar) > -1e-12).all()


@pytest.mark.parametrize(
    ('mapping', 'name'),
    [
        ({'drive': {'model': 'tank'}}, r'drive\.model'),
        ({'drive': {'model': 'swerve', 'module_x': [0.1] * 4, 'module_y': [0.1] * 4}}, 'module_x'),
        ({'encoder_counts': 1e-300}, 'encoder_counts'),
        ({'slip': {'distance': 1e-6}}, r'slip\.distance'),
        ({'noise': {'model': 'squared_increment', 'std': -1}}, r'noise\.std: -1'),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(mapping, name) -> None:
    with pytest.raises(ParameterError, match=name):
        WheelOdometryModel.from_mapping(mapping, 'my.yaml')


def test_a_model_is_read_from_its_mapping() -> None:
    assert WheelOdometryModel.from_mapping(FULL.to_mapping(), 'again') == FULL


def test_truth_times_that_do_not_increase_are_refused() -> None:
    sensor = FULL.start(0, 'run')
    sensor.measure(dance([0.0, 0.1]))
    with pytest.raises(MotionError):
        sensor.measure(dance([0.1, 0.2]))


def test_presets_have_the_values_of_their_sources() -> None:
    source = load_wheels('frc_swerve')
    assert source.noise.scale * source.noise.std == pytest.approx(0.4)
    assert (source.steering_offset.bound, source.rate) == (4.0, 50.0)
    assert source.steering_offset.is_exact
    assert not load_wheels('frc_swerve:as_upstream').steering_offset.is_exact
