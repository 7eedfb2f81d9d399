# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Example, random and GTSAM scenarios for the tests of scenarios and their runner."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sim2real_eval.benches.preintegration.params import (
    ConstantBias,
    PreintegrationCombinedParams,
    PreintegrationParams,
)
from sim_sensors.core.measurements import FloatArray
from sim_sensors.motion.spatial_scenarios import Accelerating, ConstantTwist, RigidScenario
from sim_sensors.motion.trajectory import NavState

# The page [ScenarioRunner] of GTSAM: T = 2 s, dt = 0.01 s.
NOISE: dict[str, Any] = {
    'accelerometer_covariance': 0.01,
    'gyroscope_covariance': 1e-4,
    'integration_covariance': 1e-9,
}
WALKS: dict[str, Any] = {'bias_acc_covariance': 1e-3, 'bias_omega_covariance': 1e-5}
TRUE_BIAS = ConstantBias(np.array([0.05, -0.05, 0.1]), np.array([0.01, -0.01, 0.02]))
ESTIMATED_BIAS = ConstantBias(np.array([0.04, -0.04, 0.09]), np.array([0.005, -0.005, 0.015]))
PAGE = Accelerating()


def params(**changes: Any) -> PreintegrationParams:
    return PreintegrationParams.make_shared_u(9.81, **{**NOISE, **changes})


def combined_params(**changes: Any) -> PreintegrationCombinedParams:
    return PreintegrationCombinedParams.make_shared_u(9.81, **{**NOISE, **WALKS, **changes})


def load_gtsam() -> Any:
    """GTSAM, or skip: an optional library, and the oracle here."""
    return pytest.importorskip('gtsam', reason='gtsam is the oracle')


def random_scenario(number: int) -> RigidScenario:
    """Constant twists and accelerations in turn, at up to 0.9 rad/s and some m/s^2."""
    rng = np.random.default_rng(number)
    kind = (ConstantTwist, Accelerating)[number % 2]
    params = {
        'duration': 5.0,
        'position': tuple(rng.normal(0.0, 5.0, 3)),
        'rpy': tuple(rng.uniform(-1.4, 1.4, 3)),
        'angular_velocity': tuple(rng.uniform(-0.5, 0.5, 3)),
        'velocity': tuple(rng.normal(0.0, 3.0, 3)),
    }
    if kind is Accelerating:
        params['acceleration'] = tuple(rng.normal(0.0, 2.0, 3))
    return kind(**params)


def gtsam_scenario(gtsam: Any, scenario: RigidScenario) -> Any:
    rotation = gtsam.Rot3.RzRyRx(*scenario.rpy)
    position, velocity = np.array(scenario.position), np.array(scenario.velocity)
    rate = np.array(scenario.angular_velocity)
    if isinstance(scenario, ConstantTwist):
        return gtsam.ConstantTwistScenario(rate, velocity, gtsam.Pose3(rotation, position))
    assert isinstance(scenario, Accelerating)
    return gtsam.AcceleratingScenario(
        rotation, position, velocity, np.array(scenario.acceleration), rate
    )


def gtsam_params(gtsam: Any, params: PreintegrationParams) -> Any:
    combined = isinstance(params, PreintegrationCombinedParams)
    kind = gtsam.PreintegrationCombinedParams if combined else gtsam.PreintegrationParams
    up = params.n_gravity[2] < 0.0
    gtsam_parameters = (kind.MakeSharedU if up else kind.MakeSharedD)(abs(params.n_gravity[2]))
    gtsam_parameters.setAccelerometerCovariance(params.accelerometer_covariance)
    gtsam_parameters.setGyroscopeCovariance(params.gyroscope_covariance)
    gtsam_parameters.setIntegrationCovariance(params.integration_covariance)
    if isinstance(params, PreintegrationCombinedParams):
        gtsam_parameters.setBiasAccCovariance(params.bias_acc_covariance)
        gtsam_parameters.setBiasOmegaCovariance(params.bias_omega_covariance)
    if not np.array_equal(params.body_p_sensor, np.eye(4)):
        gtsam_parameters.setBodyPSensor(gtsam.Pose3(params.body_p_sensor))
    return gtsam_parameters


def gtsam_bias(gtsam: Any, bias: ConstantBias) -> Any:
    return gtsam.imuBias.ConstantBias(bias.accelerometer, bias.gyroscope)


def gtsam_state(gtsam: Any, state: NavState) -> Any:
    return gtsam.NavState(gtsam.Rot3(state.rotation), state.position, state.velocity)


def assert_states_alike(state: NavState, gtsam_state: Any, atol: float) -> None:
    np.testing.assert_allclose(
        state.rotation, gtsam_state.attitude().matrix(), rtol=0.0, atol=atol
    )
    np.testing.assert_allclose(state.position, gtsam_state.position(), rtol=0.0, atol=atol)
    np.testing.assert_allclose(state.velocity, gtsam_state.velocity(), rtol=0.0, atol=atol)


def mounting() -> FloatArray:
    """A sensor turned and half a metre away, as a pose in the body."""
    from scipy.spatial.transform import Rotation

    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_euler('xyz', [0.3, -0.2, 1.0]).as_matrix()
    pose[:3, 3] = 0.3, -0.2, 0.5
    return pose
