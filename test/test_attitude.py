# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The quaternion filter of [Ligorio2015] against scipy, filterpy and its own covariance."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import pytest
from filterpy.kalman import ExtendedKalmanFilter
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation
from scipy.stats import chi2
from test_trajectory import assert_consistent

from sim2real_eval.benches.attitude.filter import (
    ACCELEROMETER,
    CAMERA,
    MAGNETOMETER,
    AttitudeError,
    AttitudeEstimate,
    AttitudeInput,
    estimate_events,
    events_of,
    without_zero_rate,
    xi_matrices,
)
from sim2real_eval.benches.attitude.study import (
    AttitudeSetup,
    attitude_errors,
    estimate_simulated_run,
    run_simulated_study,
    simulate_inputs,
)
from sim2real_eval.benches.settings import AttitudeSettings
from sim_sensors.camera.camera import load_camera
from sim_sensors.core import rotations
from sim_sensors.core.measurements import FloatArray
from sim_sensors.imu.imu import load_imu
from sim_sensors.magnetometer.magnetometer import load_mag
from sim_sensors.motion.spatial_scenarios import HandHeld
from sim_sensors.world.world import Dipoles, World, load_world

Record = Callable[[str, object], None]

TIMES = (1.0, 2.5, 4.0)
RUNS = 200


def estimate_attitude(
    inputs: AttitudeInput,
    first: ArrayLike,
    *,
    gravity: float,
    field: ArrayLike = (0.0, 0.0, 0.0),
    settings: AttitudeSettings | None = None,
) -> AttitudeEstimate:
    settings = settings or AttitudeSettings()
    events, std = events_of(inputs, settings), settings.initial_std
    return estimate_events(events, first, gravity=gravity, field=field, initial_std=std)


def swaying(duration: float = 4.0, **more: object) -> HandHeld:
    return HandHeld.from_mapping({'duration': duration, **more}, 'test')


@functools.cache
def right_model() -> AttitudeSetup:
    imu, mag, world = load_imu('xsens_mtx'), load_mag('xsens_mtx'), load_world('chessboard')
    return AttitudeSetup(swaying(), imu, mag, world=world, runs=RUNS, seed=2, name='swaying')


@functools.cache
def measured(camera: bool = True) -> tuple[AttitudeSetup, AttitudeInput]:
    model = load_camera('webcam_vga') if camera else None
    setup = dataclasses.replace(right_model(), motion=swaying(1.0), camera=model)
    return setup, simulate_inputs(setup, 'run')


def rotated(q: FloatArray, v: FloatArray) -> FloatArray:
    return Rotation.from_quat(q).as_matrix() @ v


def difference(function, q: FloatArray) -> FloatArray:
    """Derivative by central differences, independent of our formulas."""
    steps = 1e-6 * np.eye(4)
    return np.stack([(function(q + d) - function(q - d)) / 2e-6 for d in steps], axis=1)


def unscaled(q: FloatArray, v: FloatArray) -> FloatArray:
    """Return q v conj(q) of a quaternion of any norm, which it contains squared."""
    return (q @ q) * rotated(q, v)


def test_the_filter_equals_filterpy_with_finite_difference_jacobians(
    record_property: Record,
) -> None:
    """Prediction by scipy's exponential; F by differences of it, H by differences of q v q*."""
    setup, inputs = measured()
    settings = AttitudeSettings()
    first = swaying(1.0).at([0.0]).orientation[0]
    field, gravity = setup.world.undisturbed_field, setup.world.gravity
    ours = estimate_attitude(inputs, first, gravity=gravity, field=field)
    events = events_of(inputs, settings)
    assert set(events.kind) == {ACCELEROMETER, MAGNETOMETER, CAMERA}
    reference_filters = {3: ExtendedKalmanFilter(4, 3), 4: ExtendedKalmanFilter(4, 4)}
    x = Rotation.from_quat(first).inv().as_quat()
    P = settings.initial_std**2 * 0.25 * (np.eye(4) - np.outer(x, x))
    states, covariances = [], []
    for i in range(len(events)):
        dt = events.dt[i]
        if dt > 0.0:
            turn = Rotation.from_rotvec(-events.rate[i] * dt).as_quat()

            def stepped(q: FloatArray, turn: FloatArray = turn) -> FloatArray:
                return rotations.multiply(turn[None], q[None])[0]

            def shaken(d: FloatArray, q: FloatArray) -> FloatArray:
                by = (Rotation.from_rotvec(d) * Rotation.from_quat(q)).as_quat()
                return by * np.sign(by @ q)

            F = difference(stepped, x)
            x = stepped(x)
            G = np.stack([(shaken(d, x) - shaken(-d, x)) / 2e-6 for d in 1e-6 * np.eye(3)], axis=1)
            P = F @ P @ F.T + dt * G @ events.density @ G.T
        n = 4 if events.kind[i] == CAMERA else 3
        ekf = reference_filters[n]
        ekf.x, ekf.P, ekf.R = x[:, None].copy(), P, events.covariance[i, :n, :n]
        z = events.values[i, :n]
        if n == 4:
            z = z * np.sign(z @ x)
            ekf.update(z[:, None], lambda q: np.eye(4), lambda q: q)
        else:
            v = field if events.kind[i] == MAGNETOMETER else np.array([0.0, 0.0, gravity])
            ekf.update(
                z[:, None],
                lambda q, v=v: difference(lambda p: unscaled(p, v), q[:, 0]),
                lambda q, v=v: unscaled(q[:, 0], v)[:, None],
            )
        x = ekf.x[:, 0]
        size = np.linalg.norm(x)
        x = x / size
        J = (np.eye(4) - np.outer(x, x)) / size
        P = J @ ekf.P @ J.T
        states.append(x)
        covariances.append(P)
    last = np.append(np.diff(events.stamp_ns) > 0, True)
    np.testing.assert_allclose(
        ours.quaternion, np.array(states)[last], atol=1e-9, err_msg='filterpy, tolerance 1e-9'
    )
    record_property('quaternion', np.abs(ours.quaternion - np.array(states)[last]).max())
    scale = np.max(np.abs(covariances))
    np.testing.assert_allclose(ours.covariance, np.array(covariances)[last], atol=1e-9 * scale)


def test_xi_maps_small_rotations_to_quaternion_increments() -> None:
    q = Rotation.random(20, random_state=1).as_quat()
    d = 1e-7 * np.random.default_rng(2).standard_normal((20, 3))
    turned = (Rotation.from_rotvec(d) * Rotation.from_quat(q)).as_quat()
    turned *= np.sign(np.sum(turned * q, axis=1))[:, None]
    xi = xi_matrices(q)
    np.testing.assert_allclose(turned - q, 0.5 * (xi @ d[..., None])[..., 0], atol=1e-13)
    np.testing.assert_allclose(
        np.swapaxes(xi, 1, 2) @ xi, np.tile(np.eye(3), (20, 1, 1)), atol=1e-15
    )


def test_the_estimate_without_noise_follows_the_truth() -> None:
    """Mean rates leave the error of the trapezoid; held rates lag by half a period."""
    exact = dataclasses.replace(right_model(), imu=load_imu('ideal'), mag=load_mag('ideal'))
    inputs = simulate_inputs(exact, 'run')
    settings = AttitudeSettings(
        gyroscope_density=1e-3, accelerometer_std=0.02, magnetometer_std=5e-7
    )
    motion = exact.motion
    rmse = []
    for used in (settings, dataclasses.replace(settings, rate='held')):
        estimate = estimate_attitude(
            inputs, motion.at([0.0]).orientation[0], gravity=exact.world.gravity,
            field=exact.world.undisturbed_field, settings=used,
        )  # fmt: skip
        true_orientation = motion.at(estimate.stamp_ns * 1e-9).orientation
        rmse.append(attitude_errors(estimate, true_orientation).rmse.max())
    assert np.degrees(rmse[0]) < 1e-3
    assert rmse[1] > 30.0 * rmse[0]


def nees_of(setup: AttitudeSetup) -> FloatArray:
    """NEES over all runs at three times, over its degrees of freedom."""
    (squares,) = (
        squares_of_run
        for squares_of_run in run_simulated_study(setup).squares
        if squares_of_run.name.startswith('NEES')
    )
    rows = np.searchsorted(squares.stamp_ns, np.array(TIMES) * 1e9 - 1.0)
    assert (squares.freedom == 3 * setup.runs).all()
    return squares.squares[rows] / squares.freedom[rows]


def band(runs: int) -> FloatArray:
    """Return the 95 % interval of such ratios."""
    return np.asarray(chi2.ppf([0.025, 0.975], 3 * runs) / (3 * runs))


def test_nees_of_a_correct_model_is_inside_its_band(record_property: Record) -> None:
    """Each time has a false-alarm rate of 5 %, all three 14 %; seeds are fixed."""
    ratios = nees_of(right_model())
    for ratio in ratios:
        record_property('ratio', ratio)
    low, high = band(RUNS)
    assert (ratios > low).all()
    assert (ratios < high).all()


def biased() -> AttitudeSetup:
    imu = load_imu('xsens_mtx')
    gyroscope = dataclasses.replace(imu.gyroscope, constant_bias=(0.02, 0.0, 0.0))
    return dataclasses.replace(right_model(), imu=dataclasses.replace(imu, gyroscope=gyroscope))


def disturbed() -> AttitudeSetup:
    """A magnet of 5 A m^2 half a metre below: 4 uT there, a fifth of what points north."""
    world = right_model().world
    dipoles = Dipoles(
        positions=np.array([[-0.2, 0.15, -0.42]]), moments=np.array([[5.0, 0.0, 0.0]])
    )
    return dataclasses.replace(right_model(), world=dataclasses.replace(world, dipoles=dipoles))


@pytest.mark.parametrize('wrong', [biased, disturbed])
def test_nees_of_a_wrong_model_is_outside_its_band(wrong) -> None:
    """The filter does not model a bias or a magnet [Ligorio2015]."""
    runs = RUNS // 4
    assert (nees_of(dataclasses.replace(wrong(), runs=runs)) > band(runs)[1]).all()


def test_errors_with_a_30_hz_camera_stay_within_their_bounds() -> None:
    """The camera improves the yaw, 99 % bounds hold, and the NIS is chi-square."""
    camera = load_camera('webcam_vga')
    sharp = dataclasses.replace(camera, noise_std=(0.1, 0.1))
    setup = dataclasses.replace(right_model(), camera=sharp, runs=8, motion=swaying(5.0))
    study = run_simulated_study(setup)
    alone = run_simulated_study(dataclasses.replace(setup, camera=None))
    assert study.overall[0] < alone.overall[0]
    assert (study.inside.mean(axis=0) > 0.96).all()
    for row in study.consistency():
        # Three standard deviations of a mean: false alarms in 0.3 % of rows, of which there are 4.
        assert abs(row.ratio - 1.0) < 3.0 * np.sqrt(2.0 / (row.freedom * row.effective))


def test_a_run_does_not_depend_on_the_other_runs() -> None:
    """Results then do not depend on the number of processes, each of which makes whole runs."""
    setup = dataclasses.replace(right_model(), runs=3, motion=swaying(0.5))
    study = run_simulated_study(setup)
    assert study.rmse[2].tobytes() == estimate_simulated_run(setup, 3).errors.rmse.tobytes()
    assert (
        run_simulated_study(setup).squares[0].squares.tobytes()
        == study.squares[0].squares.tobytes()
    )
    assert len(set(study.rmse[:, 0])) == 3


def resting(model: AttitudeSetup, bias: tuple[float, float, float]) -> AttitudeInput:
    gyroscope = dataclasses.replace(model.imu.gyroscope, constant_bias=bias)
    imu = dataclasses.replace(model.imu, gyroscope=gyroscope)
    still = swaying(8.0, swing=[0.0, 0.0, 0.0])
    return simulate_inputs(dataclasses.replace(model, motion=still, imu=imu), 'run')


def test_the_zero_rate_offset_is_estimated_at_rest() -> None:
    """The residual is the noise of a mean: 4 standard deviations, 2e-4 of false alarms."""
    model = right_model()
    density = np.array(model.imu.gyroscope.noise_density)
    (biased, right) = (resting(model, bias) for bias in ((0.3, -0.05, 0.02), (0.0, 0.0, 0.0)))
    rates = without_zero_rate(biased.imu, 4.0).angular_velocity
    residual = np.abs(rates - right.imu.angular_velocity)
    assert (residual < 4.0 * density / np.sqrt(4.0)).all()
    settings = AttitudeSettings(rest=4.0)
    first = swaying().at([0.0]).orientation[0]
    where = {'gravity': model.world.gravity, 'field': model.world.undisturbed_field}
    with_bias, without = (
        estimate_attitude(inputs, first, settings=settings, **where) for inputs in (biased, right)
    )
    np.testing.assert_allclose(with_bias.quaternion, without.quaternion, atol=1e-9)


def test_a_moving_start_is_refused_as_rest() -> None:
    _, inputs = measured()
    for rest in (1.0, 0.05):
        with pytest.raises(AttitudeError):
            without_zero_rate(inputs.imu, rest)


def test_the_sign_of_a_pose_does_not_matter() -> None:
    setup, inputs = measured()
    first = swaying(1.0).at([0.0]).orientation[0]
    flipped = dataclasses.replace(inputs.poses, orientation=-inputs.poses.orientation)
    results = [
        estimate_attitude(
            dataclasses.replace(inputs, poses=poses), first, gravity=setup.world.gravity,
            field=setup.world.undisturbed_field,
        ).quaternion
        for poses in (inputs.poses, flipped)
    ]  # fmt: skip
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    ('stream', 'covariance', 'option'),
    [
        ('imu', 'angular_velocity_covariance', '--gyroscope-noise'),
        ('imu', 'linear_acceleration_covariance', '--accelerometer-std'),
        ('mag', 'magnetic_field_covariance', '--magnetometer-std'),
        ('poses', 'pose_covariance', 'camera'),
    ],
)
def test_a_missing_covariance_is_refused(stream: str, covariance: str, option: str) -> None:
    setup, inputs = measured()
    array = getattr(inputs, stream)
    unknown = dataclasses.replace(array, **{covariance: 0.0 * getattr(array, covariance)})
    with pytest.raises(AttitudeError, match=option):
        estimate_attitude(
            dataclasses.replace(inputs, **{stream: unknown}), [0.0, 0.0, 0.0, 1.0],
            gravity=setup.world.gravity, field=setup.world.undisturbed_field,
        )  # fmt: skip


def test_a_camera_without_visible_features_is_refused() -> None:
    setup, _ = measured()
    blind = dataclasses.replace(setup, world=World(), camera=load_camera('webcam_vga'))
    with pytest.raises(AttitudeError, match='camera never sees'):
        simulate_inputs(blind, 'run')


def test_derivatives_of_the_swaying_motion_are_consistent() -> None:
    motion = HandHeld(
        duration=5.0, position=(1.0, 2.0, 3.0), rpy=(0.1, 0.2, 0.3), sway=(0.1, 0.2, 0.05)
    )
    assert_consistent(motion.at, np.linspace(0.5, 4.5, 50), atol=1e-6)
    np.testing.assert_allclose(motion.at([0.0]).position, [[1.0, 2.0, 3.0]])
