# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The scenario runner against GTSAM, true motion and Monte Carlo covariances."""

from __future__ import annotations

import numpy as np
import pytest
from scenario_examples import (
    ESTIMATED_BIAS,
    PAGE,
    TRUE_BIAS,
    assert_states_alike,
    combined_params,
    gtsam_bias,
    gtsam_params,
    gtsam_scenario,
    load_gtsam,
    mounting,
    params,
    random_scenario,
)

from sim2real_eval.benches.preintegration.params import (
    ConstantBias,
    PreintegrationError,
    PreintegrationParams,
)
from sim2real_eval.benches.preintegration.runner import (
    CombinedScenarioRunner,
    ScenarioRunner,
    covariance_agreement,
)
from sim_sensors.core.errors import MotionError
from sim_sensors.motion.motions import truth_of
from sim_sensors.motion.odometry import OdometryMotion
from sim_sensors.motion.scenarios import FigureEight, Standstill
from sim_sensors.motion.spatial_scenarios import Accelerating, ConstantTwist, DiscreteScenario

T = 2.0


@pytest.mark.parametrize('mounted', [False, True])
@pytest.mark.parametrize('number', range(8))
def test_ideal_measurements_and_prediction_equal_those_of_gtsam(
    number: int, mounted: bool
) -> None:
    """Measurements to 1e-12, deltas and prediction to 1e-9 (seen: 1e-13)."""
    gtsam = load_gtsam()
    scenario = random_scenario(number)
    settings = params(body_p_sensor=mounting() if mounted else np.eye(4))
    runner = ScenarioRunner(scenario, settings, 0.01, TRUE_BIAS)
    # GTSAM's runner only points at its scenario, so the name keeps it alive.
    their_scenario = gtsam_scenario(gtsam, scenario)
    theirs = gtsam.ScenarioRunner(
        their_scenario, gtsam_params(gtsam, settings), 0.01, gtsam_bias(gtsam, TRUE_BIAS)
    )
    assert runner.imu_sample_time() == theirs.imuSampleTime()
    ours = runner.integrate(T, ESTIMATED_BIAS)
    pim = theirs.integrate(T, gtsam_bias(gtsam, ESTIMATED_BIAS))
    pairs = [(runner.gravity_n(), theirs.gravity_n(), 0.0)]
    for t in (0.0, 0.01, 1.234, 4.9):
        pairs += [
            (runner.actual_specific_force(t), theirs.actualSpecificForce(t), 1e-12),
            (runner.actual_angular_velocity(t), theirs.actualAngularVelocity(t), 1e-12),
        ]
    pairs += [
        (ours.delta_tij(), pim.deltaTij(), 1e-12),
        (ours.delta_rij(), pim.deltaRij().matrix(), 1e-9),
        (ours.delta_pij(), pim.deltaPij(), 1e-9),
        (ours.delta_vij(), pim.deltaVij(), 1e-9),
    ]
    for value, oracle, atol in pairs:
        np.testing.assert_allclose(value, oracle, rtol=0.0, atol=atol, err_msg='GTSAM')
    predicted = theirs.predict(pim, gtsam_bias(gtsam, TRUE_BIAS))
    assert_states_alike(runner.predict(ours, TRUE_BIAS), predicted, 1e-9)


def test_without_rotation_the_prediction_is_the_truth_to_rounding() -> None:
    for scenario in (PAGE, Accelerating(rpy=(0.3, 0.2, 1.0), velocity=(1.0, 2.0, 3.0))):
        runner = ScenarioRunner(scenario, params(), 0.01)
        predicted = runner.predict(runner.integrate(T))
        np.testing.assert_allclose(
            predicted.local_coordinates(scenario.nav_state(T)), 0.0, atol=2e-13
        )


def test_with_rotation_the_error_falls_with_the_sample_time() -> None:
    """Samples are held from their start on, so the error is of first order."""
    scenario = ConstantTwist(angular_velocity=(0.1, 0.2, 0.9), velocity=(2.0, 0.0, 0.5))
    errors = []
    for dt in (0.02, 0.01, 0.005):
        runner = ScenarioRunner(scenario, params(form='manifold'), dt)
        error = runner.predict(runner.integrate(T)).local_coordinates(scenario.nav_state(T))
        np.testing.assert_allclose(error[:3], 0.0, atol=1e-13)
        errors.append(np.linalg.norm(error))
    np.testing.assert_allclose([errors[0] / errors[1], errors[1] / errors[2]], 2.0, rtol=0.02)


def test_tables_and_recorded_motions_can_be_used_as_scenarios() -> None:
    """Their first time is arbitrary."""
    figure = FigureEight(duration=4.0)
    runner = ScenarioRunner(figure, params(), 0.001)
    predicted = runner.predict(runner.integrate(4.0))
    end = figure.at([4.0])
    np.testing.assert_allclose(predicted.position, end.position[0], atol=5e-3)
    rows = np.linspace(0.0, 4.0, 401)
    m = figure.at(rows)
    columns = (m.position, m.orientation, m.angular_velocity, m.velocity, m.acceleration)
    for other in (
        DiscreteScenario(rows + 7.0, *columns),
        OdometryMotion(truth_of(figure), origin_ns=truth_of(figure).stamp_ns[0]),
    ):
        again = ScenarioRunner(other, params(), 0.001)
        np.testing.assert_allclose(
            again.predict(again.integrate(4.0)).position, predicted.position, atol=2e-3
        )


def test_only_complete_samples_are_integrated() -> None:
    """GTSAM truncates T/dt, which makes 2 steps of 0.3 s / 0.1 s."""
    gtsam = load_gtsam()
    scenario = gtsam_scenario(gtsam, PAGE)
    gtsam_runner = gtsam.ScenarioRunner(
        scenario, gtsam_params(gtsam, params()), 0.1, gtsam_bias(gtsam, ConstantBias())
    )
    assert gtsam_runner.integrate(0.3).deltaTij() == pytest.approx(0.2)
    runner = ScenarioRunner(PAGE, params(), 0.1)
    for settings, lasted in ((0.3, 0.3), (0.29, 0.2), (0.7, 0.7), (1.0, 1.0)):
        assert runner.integrate(settings).delta_tij() == pytest.approx(lasted)


def test_measurements_are_truth_plus_bias_plus_noise_of_the_stated_density() -> None:
    """400 samples of 6 axes: 6 tests of mean and of variance at 4.5 sigma, 1e-4 false alarms."""
    runner = ScenarioRunner(PAGE, params(), 0.01, TRUE_BIAS, seed=4)
    for measured, actual, bias, sigma in (
        (runner.measured_specific_force, runner.actual_specific_force, TRUE_BIAS.accelerometer, 1),
        (runner.measured_angular_velocity, runner.actual_angular_velocity, TRUE_BIAS.gyroscope,
         0.1),
    ):  # fmt: skip
        noise = np.array([measured(1.0) for _ in range(400)]) - actual(1.0) - bias
        assert (np.abs(noise.mean(axis=0)) < 4.5 * sigma / np.sqrt(400)).all()
        assert (np.abs(noise.var(axis=0) / sigma**2 - 1.0) < 4.5 * np.sqrt(2 / 400)).all()


def test_the_noise_covariance_is_discrete_with_the_accelerometer_first() -> None:
    """N = 20000, with correlated axes; 21 entries within 4.5 sigma: 1.4e-4 false alarms."""
    noise = np.array([[0.02, 0.005, 0.0], [0.005, 0.01, -0.004], [0.0, -0.004, 0.01]])
    runner = ScenarioRunner(PAGE, params(accelerometer_covariance=noise), 0.01)
    expected = np.zeros((6, 6))
    expected[:3, :3], expected[3:, 3:] = noise / 0.01, np.eye(3) * 1e-2
    estimated = runner.estimate_noise_covariance(20000)
    variance = np.diag(expected)
    deviation = np.sqrt((np.outer(variance, variance) + expected**2) / 19999)
    assert (np.abs(estimated - expected) < 4.5 * deviation).all()


@pytest.mark.parametrize('form', ['tangent', 'manifold'])
@pytest.mark.parametrize('number', range(4))
def test_monte_carlo_errors_have_the_predicted_covariance(number: int, form: str) -> None:
    """A likelihood-ratio test of the whole matrix; 8 at 1e-4 each: 8e-4 false alarms."""
    settings = params(integration_covariance=0.0, form=form, body_p_sensor=mounting())
    runner = ScenarioRunner(random_scenario(number), settings, 0.01, TRUE_BIAS, seed=number)
    predicted = runner.integrate(T, ESTIMATED_BIAS).prediction_covariance()
    estimated = runner.estimate_covariance(T, 2000, ESTIMATED_BIAS)
    assert covariance_agreement(estimated, predicted, 2000).probability > 1e-4
    # What a user would get wrong is found: a tenth less noise, 19 % less variance.
    assert covariance_agreement(estimated, 0.81 * predicted, 2000).probability < 1e-9


def test_the_monte_carlo_covariance_agrees_with_gtsam() -> None:
    """GTSAM's covariance of 1000 runs, by the same test: 1e-4 false alarms."""
    gtsam = load_gtsam()
    scenario = gtsam_scenario(gtsam, PAGE)
    gtsam_runner = gtsam.ScenarioRunner(
        scenario, gtsam_params(gtsam, params()), 0.01, gtsam_bias(gtsam, TRUE_BIAS)
    )
    estimated = gtsam_runner.estimateCovariance(T, 1000, gtsam_bias(gtsam, TRUE_BIAS))
    ours = ScenarioRunner(PAGE, params(), 0.01, TRUE_BIAS).integrate(T)
    ratio = covariance_agreement(estimated, ours.prediction_covariance(), 1000)
    assert ratio.probability > 1e-4


@pytest.mark.parametrize('number', range(3))
def test_errors_from_random_walk_biases_have_the_predicted_covariance(number: int) -> None:
    """All 15 rows, the first bias uncertain too; 3 at 1e-4 each: 3e-4 false alarms."""
    settings = combined_params(
        integration_covariance=0.0,
        bias_acc_omega_init=np.diag([1e-3, 2e-3, 1e-3, 1e-5, 1e-5, 3e-5]),
        body_p_sensor=mounting(),
    )
    runner = CombinedScenarioRunner(
        random_scenario(number), settings, 0.01, TRUE_BIAS, seed=number
    )
    predicted = runner.integrate(T, ESTIMATED_BIAS).prediction_covariance()
    estimated = runner.estimate_covariance(T, 2000, ESTIMATED_BIAS)
    assert estimated.shape == (15, 15)
    assert covariance_agreement(estimated, predicted, 2000).probability > 1e-4
    # As GTSAM leaves it, with the biases' rows and columns 0, it would not be.
    constant = ScenarioRunner(random_scenario(number), settings, 0.01, TRUE_BIAS, seed=number)
    nine = constant.estimate_covariance(T, 500, ESTIMATED_BIAS)
    assert covariance_agreement(nine, predicted[:9, :9], 500).probability < 1e-9


def test_the_bias_random_walk_has_the_stated_density() -> None:
    """At rest, no other noise: the last bias of 500 runs; 6 at 4.5 sigma, 4e-5 false alarms."""
    settings = combined_params(accelerometer_covariance=0.0, gyroscope_covariance=0.0)
    runner = CombinedScenarioRunner(Standstill(), settings, 0.1, TRUE_BIAS)
    last = []
    for _ in range(500):
        runner.integrate(T, corrupted=True)
        last.append(runner.latest_bias().vector - TRUE_BIAS.vector)
    ratio = np.var(last, axis=0) / (T * np.repeat([1e-3, 1e-5], 3))
    assert (np.abs(ratio - 1.0) < 4.5 * np.sqrt(2.0 / 500)).all()


def test_random_draws_depend_only_on_seed_and_run_number() -> None:
    def runner(seed: int = 0) -> ScenarioRunner:
        return CombinedScenarioRunner(PAGE, combined_params(), 0.01, TRUE_BIAS, seed=seed)

    first, second = runner(), runner()
    second.measured_angular_velocity(0.0)
    second.estimate_covariance(0.1, 5)
    for _ in range(2):
        ours, other = first.integrate(T, corrupted=True), second.integrate(T, corrupted=True)
        np.testing.assert_array_equal(ours.delta_pij(), other.delta_pij())
    assert np.any(runner().integrate(T, corrupted=True).delta_pij() != ours.delta_pij())
    assert np.any(runner(1).prediction_errors(T, 3) != runner().prediction_errors(T, 3))
    mean_of_3, many = runner().prediction_errors(T, 3), runner().prediction_errors(T, 2600)
    np.testing.assert_array_equal(
        runner().estimate_covariance(T, 3), np.cov(mean_of_3, rowvar=False)
    )
    # 2600 runs of 200 samples are more than are drawn at once.
    np.testing.assert_array_equal(mean_of_3, many[:3])


def test_prediction_errors_equal_those_of_the_integration() -> None:
    """The fast path for many runs gives the result of the measurements with Jacobians."""
    for form in ('tangent', 'manifold'):
        settings = params(form=form, accelerometer_covariance=0.0, gyroscope_covariance=0.0)
        runner = ScenarioRunner(random_scenario(1), settings, 0.01, TRUE_BIAS)
        np.testing.assert_allclose(runner.prediction_errors(T, 2), 0.0, atol=1e-15)
        pim = runner.integrate(T, ESTIMATED_BIAS, corrupted=True)
        aim = runner.predict(pim)
        still = ScenarioRunner(
            random_scenario(1), settings, 0.01, ConstantBias(*(TRUE_BIAS.vector.reshape(2, 3) -
            ESTIMATED_BIAS.vector.reshape(2, 3))),
        )  # fmt: skip
        other = still.predict(still.integrate(T, corrupted=True))
        np.testing.assert_allclose(aim.local_coordinates(other), 0.0, atol=1e-12)


def test_downward_gravity_equals_upward_gravity_in_an_inverted_world() -> None:
    """The same motion in a world turned by pi about x (NED) has the same specific force."""
    up = Accelerating(acceleration=(0.5, 0.2, 0.1))
    down = Accelerating(acceleration=(0.5, -0.2, -0.1), rpy=(np.pi, 0.0, 0.0))
    ours = ScenarioRunner(up, params())
    turned = ScenarioRunner(down, PreintegrationParams.make_shared_d(9.81))
    np.testing.assert_allclose(
        ours.actual_specific_force(1.0), turned.actual_specific_force(1.0), atol=1e-14
    )


def test_runs_of_a_wrong_length_or_number_are_refused() -> None:
    with pytest.raises(PreintegrationError, match='imu_sample_time'):
        ScenarioRunner(PAGE, params(), 0.0)
    runner = ScenarioRunner(PAGE, params(), 0.01)
    for wrong in (0.001, -1.0, float('nan'), 1e12):
        with pytest.raises(PreintegrationError):
            runner.integrate(wrong)
    for wrong in (1, 2_000_000):
        with pytest.raises(PreintegrationError, match=f'N: {wrong}'):
            runner.estimate_covariance(T, wrong)
    with pytest.raises(PreintegrationError, match='N: 0'):
        runner.estimate_noise_covariance(0)
    with pytest.raises(MotionError, match='outside the motion'):
        runner.integrate(21.0)


def test_runs_that_rotate_too_far_for_the_tangent_form_are_refused() -> None:
    """Noise of 3 rad/s/sqrt(Hz) over 2 s alone is 4 rad about each axis."""
    runner = ScenarioRunner(PAGE, params(gyroscope_covariance=9.0), 0.01)
    with pytest.raises(PreintegrationError, match='or the form manifold'):
        runner.prediction_errors(T, 100)


def test_covariance_agreement_has_its_stated_false_alarm_rate() -> None:
    """2000 times 50 samples of 4 rows, one a sum of two others: 5 % +- 1.7 (3.5 sigma: 5e-4)."""
    rng = np.random.default_rng(1)
    root = np.array([[1.0, 0, 0], [0.5, 2.0, 0], [0.1, 0.2, 30.0], [1.5, 2.0, 0]])
    model = root @ root.T
    rejected = 0
    for _ in range(2000):
        samples = rng.standard_normal((50, 3)) @ root.T
        ratio = covariance_agreement(np.cov(samples, rowvar=False), model, 50)
        assert ratio.freedom == 6
        rejected += ratio.probability < 0.05
    assert 0.033 < rejected / 2000 < 0.067
    # Variance where the model has none at all.
    assert covariance_agreement(np.eye(4), model, 50).probability == 0.0
    assert covariance_agreement(np.zeros((2, 2)), np.zeros((2, 2)), 50).probability == 1.0
    with pytest.raises(PreintegrationError, match='N: 4'):
        covariance_agreement(model, model, 4)
