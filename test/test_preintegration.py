# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Preintegration: GTSAM's numbers, derivatives by differences, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scenario_examples import (
    ESTIMATED_BIAS,
    TRUE_BIAS,
    assert_states_alike,
    combined_params,
    gtsam_bias,
    gtsam_params,
    gtsam_state,
    load_gtsam,
    mounting,
    params,
    random_scenario,
)
from scipy.spatial.transform import Rotation

from sim2real_eval.benches.preintegration.measurements import (
    PreintegratedCombinedMeasurements,
    PreintegratedImuMeasurements,
)
from sim2real_eval.benches.preintegration.params import (
    ConstantBias,
    PreintegrationError,
    PreintegrationParams,
)
from sim_sensors.core.compiled_rotations import (
    inverse_right_jacobian,
    inverse_terms,
    matrix_from_vector,
    right_jacobian,
)
from sim_sensors.core.measurements import FloatArray

DT = 0.01
FORMS = ('tangent', 'manifold')


def samples(number: int, count: int = 150) -> tuple[FloatArray, FloatArray]:
    """Rough measurements that turn the body by a radian or two."""
    rng = np.random.default_rng(number)
    mean = rng.uniform(-0.7, 0.7, 3)
    return (rng.normal([0.0, 0.0, 9.8], 3.0, (count, 3)), rng.normal(mean, 0.5, (count, 3)))


def integrated(
    number: int = 0, *, bias: ConstantBias = ESTIMATED_BIAS, **changes: Any
) -> PreintegratedImuMeasurements:
    pim = PreintegratedImuMeasurements(params(**changes), bias)
    pim.integrate_measurements(*samples(number), DT)
    return pim


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('mounted', [False, True])
@pytest.mark.parametrize('number', range(6))
def test_deltas_covariance_and_prediction_equal_those_of_gtsam(
    number: int, mounted: bool, form: str, record_property: Callable[[str, object], None]
) -> None:
    """Except for the bias Jacobians of its manifold form, which ignore the mounting."""
    gtsam = load_gtsam()
    pim = integrated(number, form=form, body_p_sensor=mounting() if mounted else np.eye(4))
    kind = getattr(gtsam, f'PreintegratedImuMeasurements{form.capitalize()}')
    gtsam_pim = kind(gtsam_params(gtsam, pim.params), gtsam_bias(gtsam, ESTIMATED_BIAS))
    for force, rate in zip(*samples(number), strict=True):
        gtsam_pim.integrateMeasurement(force, rate, DT)
    assert pim.delta_tij() == pytest.approx(gtsam_pim.deltaTij())
    np.testing.assert_allclose(pim.delta_rij(), gtsam_pim.deltaRij().matrix(), atol=1e-13)
    np.testing.assert_allclose(pim.delta_pij(), gtsam_pim.deltaPij(), atol=1e-12, err_msg='GTSAM')
    np.testing.assert_allclose(pim.delta_vij(), gtsam_pim.deltaVij(), atol=1e-12)
    scale = np.abs(gtsam_pim.preintMeasCov()).max()
    error = np.abs(pim.prediction_covariance() - gtsam_pim.residualCovariance()).max() / scale
    assert error <= 1e-12, 'covariance of GTSAM, relative to its largest entry'
    record_property('covariance', error)
    record_property('position', np.abs(pim.delta_pij() - gtsam_pim.deltaPij()).max())
    # In the manifold form GTSAM 4.3 keeps it in local coordinates.
    covariance = pim.preint_meas_cov() if form == 'tangent' else pim.prediction_covariance()
    np.testing.assert_allclose(covariance, gtsam_pim.preintMeasCov(), rtol=0.0, atol=1e-12 * scale)
    start = random_scenario(number).nav_state(1.0)
    bias = ESTIMATED_BIAS if mounted and form == 'manifold' else TRUE_BIAS
    theirs_at = gtsam_pim.predict(gtsam_state(gtsam, start), gtsam_bias(gtsam, bias))
    assert_states_alike(pim.predict(start, bias), theirs_at, 1e-11)


def test_the_manifold_form_of_gtsam_corrects_the_bias_of_a_mounted_sensor_wrongly() -> None:
    """GTSAM is 3 cm off a new integration after 1.5 s, this project 0.1 mm."""
    gtsam = load_gtsam()
    changes = {'form': 'manifold', 'body_p_sensor': mounting()}
    pim = integrated(**changes)
    gtsam_pim = gtsam.PreintegratedImuMeasurementsManifold(
        gtsam_params(gtsam, pim.params), gtsam_bias(gtsam, ESTIMATED_BIAS)
    )
    for force, rate in zip(*samples(0), strict=True):
        gtsam_pim.integrateMeasurement(force, rate, DT)
    start = random_scenario(0).nav_state(1.0)
    anew = integrated(bias=TRUE_BIAS, **changes).predict(start, TRUE_BIAS).position
    theirs_at = gtsam_pim.predict(gtsam_state(gtsam, start), gtsam_bias(gtsam, TRUE_BIAS))
    assert np.linalg.norm(pim.predict(start, TRUE_BIAS).position - anew) < 2e-4
    assert np.linalg.norm(theirs_at.position() - anew) == pytest.approx(0.03, abs=0.005)


@pytest.mark.parametrize('mounted', [False, True])
def test_the_covariance_of_random_walk_biases_equals_that_of_gtsam(mounted: bool) -> None:
    gtsam = load_gtsam()
    parameters = combined_params(body_p_sensor=mounting() if mounted else np.eye(4))
    pim = PreintegratedCombinedMeasurements(parameters, ESTIMATED_BIAS)
    gtsam_pim = gtsam.PreintegratedCombinedMeasurements(
        gtsam_params(gtsam, parameters), gtsam_bias(gtsam, ESTIMATED_BIAS)
    )
    for force, rate in zip(*samples(3), strict=True):
        pim.integrate_measurement(force, rate, DT)
        gtsam_pim.integrateMeasurement(force, rate, DT)
    np.testing.assert_allclose(pim.delta_pij(), gtsam_pim.deltaPij(), atol=1e-12, err_msg='GTSAM')
    scale = np.abs(gtsam_pim.preintMeasCov()).max()
    close = {'rtol': 0.0, 'atol': 1e-12 * scale, 'err_msg': 'GTSAM'}
    np.testing.assert_allclose(pim.preint_meas_cov(), gtsam_pim.preintMeasCov(), **close)


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('mounted', [False, True])
def test_bias_jacobians_equal_numerical_derivatives_of_the_integration(
    mounted: bool, form: str
) -> None:
    """Central differences of the whole integration, to 3e-7."""
    pose = mounting() if mounted else np.eye(4)
    here = integrated(form=form, body_p_sensor=pose)
    analytic = np.zeros((9, 6))
    analytic[:3, 3:] = here.del_r_del_bias_omega()
    analytic[3:6] = np.hstack([here.del_p_del_bias_acc(), here.del_p_del_bias_omega()])
    analytic[6:] = np.hstack([here.del_v_del_bias_acc(), here.del_v_del_bias_omega()])

    def deltas(vector: FloatArray) -> FloatArray:
        """Turn, position and velocity of an integration with another bias."""
        bias = ConstantBias(vector[:3], vector[3:])
        shifted = integrated(bias=bias, form=form, body_p_sensor=pose)
        turn = Rotation.from_matrix(here.delta_rij().T @ shifted.delta_rij()).as_rotvec()
        return np.concatenate([turn, shifted.delta_pij(), shifted.delta_vij()])

    centre = ESTIMATED_BIAS.vector
    for axis, step in enumerate(1e-4 * np.eye(6)):
        slope = (deltas(centre + step) - deltas(centre - step)) / 2e-4
        np.testing.assert_allclose(analytic[:, axis], slope, rtol=0.0, atol=3e-7)


@pytest.mark.parametrize('form', FORMS)
def test_the_error_of_a_bias_correction_is_of_second_order_in_the_bias(form: str) -> None:
    """The error of the correction falls with the square of the change."""
    errors = []
    for size in (1e-2, 1e-3):
        vector = ESTIMATED_BIAS.vector + size
        bias = ConstantBias(vector[:3], vector[3:])
        again = integrated(bias=bias, form=form).bias_corrected_delta(bias)
        errors.append(np.abs(integrated(form=form).bias_corrected_delta(bias) - again).max())
    assert 50.0 < errors[0] / errors[1] < 200.0


def test_stepwise_integration_equals_batch_integration_bit_for_bit() -> None:
    force, rate = samples(4)
    for form in FORMS:
        single = PreintegratedImuMeasurements(params(form=form), ESTIMATED_BIAS)
        for f, w in zip(force, rate, strict=True):
            single.integrate_measurement(f, w, DT)
        whole = integrated(4, form=form)
        np.testing.assert_array_equal(single.preint_meas_cov(), whole.preint_meas_cov())
        np.testing.assert_array_equal(single.delta_pij(), whole.delta_pij())
        np.testing.assert_array_equal(single.delta_rij(), whole.delta_rij())
        single.reset_integration()
        assert single.delta_tij() == 0.0
        np.testing.assert_array_equal(single.delta_rij(), np.eye(3))


@pytest.mark.parametrize('form', FORMS)
def test_the_covariance_at_rest_equals_the_textbook_formula(form: str) -> None:
    """Var(theta) = s_g^2 T, Var(v) = s_a^2 T + g^2 s_g^2 T^3/3, ...: [GTSAM]."""
    T, dt = 2.0, 1e-3
    pim = PreintegratedImuMeasurements(params(form=form, integration_covariance=0.0))
    count = round(T / dt)
    pim.integrate_measurements(np.tile([0.0, 0.0, 9.81], (count, 1)), np.zeros((count, 3)), dt)
    variance = np.diag(pim.prediction_covariance())
    tilt = 9.81**2 * 1e-4
    np.testing.assert_allclose(variance[:3], 1e-4 * T, rtol=1e-12)
    np.testing.assert_allclose(variance[6:8], 0.01 * T + tilt * T**3 / 3.0, rtol=2e-3)
    np.testing.assert_allclose(variance[3:5], 0.01 * T**3 / 3.0 + tilt * T**5 / 20.0, rtol=2e-3)
    np.testing.assert_allclose(variance[5], 0.01 * T**3 / 3.0, rtol=1e-5)


def test_noise_may_be_correlated_between_axes() -> None:
    """A covariance turned with the sensor leaves that of the body as it was."""
    R = mounting()[:3, :3]
    turned = np.eye(4)
    turned[:3, :3] = R
    noise = np.diag([0.01, 0.04, 0.09])
    force, rate = samples(1)
    plain = PreintegratedImuMeasurements(params(accelerometer_covariance=noise))
    plain.integrate_measurements(force, rate, DT)
    noise = R.T @ noise @ R
    other = PreintegratedImuMeasurements(
        params(accelerometer_covariance=noise, body_p_sensor=turned)
    )
    other.integrate_measurements(force @ R, rate @ R, DT)
    np.testing.assert_allclose(other.preint_meas_cov(), plain.preint_meas_cov(), atol=1e-15)


def test_only_the_manifold_form_integrates_large_rotations() -> None:
    rate = np.tile([0.0, 0.0, 1.0], (1000, 1))
    force = np.zeros((1000, 3))
    manifold = PreintegratedImuMeasurements(params(form='manifold'))
    manifold.integrate_measurements(force, rate, DT)
    expected = Rotation.from_rotvec([0.0, 0.0, 10.0]).as_matrix()
    np.testing.assert_allclose(manifold.delta_rij(), expected, atol=1e-13)
    tangent = PreintegratedImuMeasurements(params())
    with pytest.raises(PreintegrationError, match='manifold'):
        tangent.integrate_measurements(force, rate, DT)
    assert tangent.delta_tij() == 0.0


def test_rotation_matrices_and_jacobians_agree_with_scipy_and_differences() -> None:
    """Small angles, both sides of where the series ends (0.5 rad), and near 2 pi."""
    step = 1e-6
    for angle in (0.0, 1e-9, 0.1, 0.4999999, 0.5000001, 2.0, 3.2, 5.9):
        phi = angle * np.array([0.6, -0.48, 0.64])
        R, J, inverse = np.zeros((3, 3, 3))
        matrix_from_vector(phi, R)
        right_jacobian(phi, J)
        inverse_right_jacobian(phi, inverse)
        np.testing.assert_allclose(R, Rotation.from_rotvec(phi).as_matrix(), atol=2e-15)
        np.testing.assert_allclose(J @ inverse, np.eye(3), atol=1e-13)
        for axis in range(3):
            around = [Rotation.from_rotvec(phi + h * step * np.eye(3)[axis]) for h in (1, -1)]
            numeric = (around[1].inv() * around[0]).as_rotvec() / (2.0 * step)
            np.testing.assert_allclose(J[:, axis], numeric, atol=1e-9)
        e, rise = inverse_terms(angle * angle)
        if angle > 0.05:
            near = [inverse_terms((angle + sign * 1e-5) ** 2)[0] for sign in (1, -1)]
            assert rise == pytest.approx((near[0] - near[1]) / 2e-5 / angle, rel=1e-6)
        assert e == pytest.approx(inverse_terms((angle + 2e-7) ** 2)[0], rel=1e-5)


@pytest.mark.parametrize(
    'changes',
    [
        {'accelerometer_covariance': -1.0},
        {'gyroscope_covariance': [1.0, 2.0]},
        {'gyroscope_covariance': np.ones((3, 3)) - np.eye(3)},
        {'integration_covariance': np.triu(np.ones((3, 3)))},
        {'accelerometer_covariance': np.nan},
        {'body_p_sensor': 2.0 * np.eye(4)},
        {'form': 'lie'},
        {'n_gravity': [0.0, 0.0]},
    ],
)
def test_wrong_parameters_are_refused_by_name(changes: dict[str, Any]) -> None:
    with pytest.raises(PreintegrationError, match=next(iter(changes))):
        PreintegrationParams(**{'n_gravity': [0.0, 0.0, -9.81], **changes})


def test_wrong_measurements_are_refused() -> None:
    pim = PreintegratedImuMeasurements(params())
    for force, rate, dt in (
        (np.zeros(3), np.zeros(3), 0.0),
        (np.zeros(2), np.zeros(3), DT),
        (np.zeros(3), np.full(3, np.nan), DT),
    ):
        with pytest.raises(PreintegrationError):
            pim.integrate_measurement(force, rate, dt)
