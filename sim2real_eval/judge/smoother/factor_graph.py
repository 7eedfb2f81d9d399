# SPDX-License-Identifier: Apache-2.0
"""The factors of a run in GTSAM: IMU between nodes, fixes at them, and what is known before."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.inertial.alignment import FirstAttitude
from sim2real_eval.judge.inertial.front_end import InertialInputs
from sim2real_eval.judge.inertial.settings import InertialSettings
from sim2real_eval.judge.smoother.chain import Steps
from sim_sensors.core.measurements import FloatArray

__all__ = ['INTEGRATION_DENSITY', 'FactorGraph', 'imu_densities', 'load_gtsam']

INTEGRATION_DENSITY = 1e-4
"""Of the position for what the integration itself does wrong, m/sqrt(s)."""

# A walk of 0 would tie biases together with infinite weight.
_LEAST_GYROSCOPE_WALK = 1e-7
_LEAST_ACCELEROMETER_WALK = 1e-6
# The IMU factors level by gravity themselves; levelling them beforehand, too, would use the same
# data twice. These only keep the problem solvable.
_FIRST_TILT_DEVIATION = 0.5
_FIRST_POSITION_DEVIATION = 1e3
_FIRST_VELOCITY_DEVIATION = 100.0
_LEAST_BIAS = 1e-6


def load_gtsam() -> Any:
    """Return the module gtsam.

    Raises
    ------
    JudgeError
        When it is not installed, or too old to know lever arms of antennas.
    """
    try:
        gtsam = importlib.import_module('gtsam')
    except ImportError:
        raise JudgeError(
            "judge gtsam: needs gtsam, which is not installed: pip install '.[gtsam]'"
        ) from None
    if not hasattr(gtsam, 'GPSFactorArm'):
        raise JudgeError('judge gtsam: this gtsam is too old; must be 4.3 or later')
    return gtsam


def imu_densities(settings: InertialSettings, gap: float) -> FloatArray:
    """Return the densities of gyroscope, accelerometer and of their walks over an interval.

    In a gap of L seconds the line has an error e that is constant, whose integral is uncertain by
    e L, as that of white noise of density e sqrt(L) is.
    """
    return np.array([
        np.hypot(settings.gyroscope_noise, settings.gap_rate * np.sqrt(gap)),
        np.hypot(settings.accelerometer_noise, settings.gap_acceleration * np.sqrt(gap)),
        max(settings.gyroscope_bias_walk, _LEAST_GYROSCOPE_WALK),
        max(settings.accelerometer_bias_walk, _LEAST_ACCELEROMETER_WALK),
    ])  # fmt: skip


class FactorGraph:
    """Makes the factors of a run.

    Variables of node i are its pose `x`, velocity `v` (both of the IMU) and bias `b`.
    """

    def __init__(
        self, gtsam: Any, inputs: InertialInputs, settings: InertialSettings, steps: Steps
    ) -> None:
        self.gtsam, self.inputs, self.settings, self.steps = gtsam, inputs, settings, steps
        self.arm = inputs.antenna - inputs.imu_arm
        self.models = [_fix_model(gtsam, settings, each) for each in inputs.fix_covariance]
        self.parameters: dict[float, Any] = {}

    def keys(self, node: int) -> tuple[int, int, int]:
        """Return the keys of pose, velocity and bias of a node."""
        symbol = self.gtsam.symbol
        return symbol('x', node), symbol('v', node), symbol('b', node)

    def imu_factor(self, i: int, bias: Any) -> tuple[Any, Any]:
        """Return the factor between nodes i and i + 1, and its preintegrated measurements."""
        gap = float(self.steps.gap[i])
        if gap not in self.parameters:
            self.parameters[gap] = _imu_parameters(self.gtsam, self.settings, gap)
        measured = self.gtsam.PreintegratedCombinedMeasurements(self.parameters[gap], bias)
        span = slice(int(self.steps.first[i]), int(self.steps.first[i + 1]))
        for force, rate, dt in zip(
            self.steps.force[span], self.steps.rate[span], self.steps.seconds[span].tolist(),
            strict=True,
        ):  # fmt: skip
            measured.integrateMeasurement(force, rate, dt)
        (x0, v0, b0), (x1, v1, b1) = self.keys(i), self.keys(i + 1)
        return self.gtsam.CombinedImuFactor(x0, v0, x1, v1, b0, b1, measured), measured

    def fix_factors(self, node: int) -> list[Any]:
        """Return a factor for each fix at a node."""
        low, high = np.searchsorted(self.steps.fix_node, [node, node + 1])
        pose = self.keys(node)[0]
        return [
            self.gtsam.GPSFactorArm(pose, self.inputs.fix[f], self.arm, self.models[f])
            for f in range(int(low), int(high))
        ]

    def prior(self, start: FirstAttitude, turn: Rotation) -> list[Any]:
        """Return what is known of the first node before any measurement."""
        gtsam, first = self.gtsam, self.settings.start
        matrix = turn.as_matrix()
        tilt = _FIRST_TILT_DEVIATION**2
        covariance = np.eye(6) * _FIRST_POSITION_DEVIATION**2
        covariance[:3, :3] = matrix.T @ np.diag([tilt, tilt, start.covariance[2, 2]]) @ matrix
        pose = gtsam.Pose3(gtsam.Rot3(matrix), self.inputs.fix[0] - matrix @ self.arm)
        biases = [first.accelerometer_bias_deviation] * 3 + [first.gyroscope_bias_deviation] * 3
        diagonal = gtsam.noiseModel.Diagonal
        speeds = diagonal.Sigmas(np.full(3, _FIRST_VELOCITY_DEVIATION))
        x, v, b = self.keys(0)
        return [
            gtsam.PriorFactorPose3(x, pose, gtsam.noiseModel.Gaussian.Covariance(covariance)),
            gtsam.PriorFactorVector(v, np.zeros(3), speeds),
            gtsam.PriorFactorConstantBias(
                b, gtsam.imuBias.ConstantBias(), diagonal.Sigmas(np.maximum(biases, _LEAST_BIAS))
            ),
        ]

    def first_values(self, turn: Rotation) -> Any:
        """Return values of the first node to start from, turned so."""
        gtsam, inputs = self.gtsam, self.inputs
        matrix = turn.as_matrix()
        values = gtsam.Values()
        x, v, b = self.keys(0)
        values.insert(x, gtsam.Pose3(gtsam.Rot3(matrix), inputs.fix[0] - matrix @ self.arm))
        values.insert(v, _first_velocity(inputs))
        values.insert(b, gtsam.imuBias.ConstantBias())
        return values


def _first_velocity(inputs: InertialInputs) -> FloatArray:
    """Return the velocity between the first fix and one about a second later."""
    time = (inputs.fix_ns - inputs.fix_ns[0]) * 1e-9
    later = min(int(np.searchsorted(time, 1.0)), len(time) - 1)
    if time[later] <= 0.0:
        return np.zeros(3)
    return np.asarray((inputs.fix[later] - inputs.fix[0]) / time[later])


def _imu_parameters(gtsam: Any, settings: InertialSettings, gap: float) -> Any:
    gyroscope, accelerometer, gyroscope_walk, accelerometer_walk = imu_densities(settings, gap)
    parameters = gtsam.PreintegrationCombinedParams.MakeSharedU(settings.gravity)
    eye = np.eye(3)
    parameters.setGyroscopeCovariance(gyroscope**2 * eye)
    parameters.setAccelerometerCovariance(accelerometer**2 * eye)
    parameters.setIntegrationCovariance(INTEGRATION_DENSITY**2 * eye)
    parameters.setBiasOmegaCovariance(gyroscope_walk**2 * eye)
    parameters.setBiasAccCovariance(accelerometer_walk**2 * eye)
    return parameters


def _fix_model(gtsam: Any, settings: InertialSettings, covariance: FloatArray) -> Any:
    model = gtsam.noiseModel.Gaussian.Covariance(covariance)
    loss, width = settings.smoother.loss, settings.smoother.loss_width
    if loss == 'none':
        return model
    estimators = gtsam.noiseModel.mEstimator
    kind = estimators.Huber if loss == 'huber' else estimators.Cauchy
    return gtsam.noiseModel.Robust.Create(kind.Create(width), model)
