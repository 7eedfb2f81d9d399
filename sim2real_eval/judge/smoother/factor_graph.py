# SPDX-License-Identifier: Apache-2.0
"""A run in GTSAM: IMU between nodes, fixes at them, what is known before, and the solution."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.errors import JudgeError
from sim2real_eval.judge.inertial.alignment import FirstAttitude
from sim2real_eval.judge.inertial.front_end import InertialInputs
from sim2real_eval.judge.inertial.settings import InertialSettings
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.world.earth import TurningEarth
from .chain import Steps, joint_covariances

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

    JudgeError when it is not installed, or too old to know lever arms of antennas.
    """
    try:
        gtsam = importlib.import_module('gtsam')
    except ImportError:
        raise JudgeError(
            'judge gtsam: needs gtsam, which is not installed: pip install '
            "'sim2real_sensors[gtsam]'"
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
        self.earth = settings.turning_earth(inputs.origin, inputs.imu_ns)
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
            self.parameters[gap] = _imu_parameters(self.gtsam, self.settings, gap, self.earth)
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


def _imu_parameters(
    gtsam: Any, settings: InertialSettings, gap: float, earth: TurningEarth | None
) -> Any:
    gyroscope, accelerometer, gyroscope_walk, accelerometer_walk = imu_densities(settings, gap)
    parameters = gtsam.PreintegrationCombinedParams.MakeSharedU(settings.gravity)
    eye = np.eye(3)
    parameters.setGyroscopeCovariance(gyroscope**2 * eye)
    parameters.setAccelerometerCovariance(accelerometer**2 * eye)
    parameters.setIntegrationCovariance(INTEGRATION_DENSITY**2 * eye)
    parameters.setBiasOmegaCovariance(gyroscope_walk**2 * eye)
    parameters.setBiasAccCovariance(accelerometer_walk**2 * eye)
    if earth is not None:
        # Its curvature is left to the bias of the accelerometer.
        parameters.setOmegaCoriolis(earth.rate)
    return parameters


def _fix_model(gtsam: Any, settings: InertialSettings, covariance: FloatArray) -> Any:
    model = gtsam.noiseModel.Gaussian.Covariance(covariance)
    loss, width = settings.smoother.loss, settings.smoother.loss_width
    if loss == 'none':
        return model
    estimators = gtsam.noiseModel.mEstimator
    kind = estimators.Huber if loss == 'huber' else estimators.Cauchy
    return gtsam.noiseModel.Robust.Create(kind.Create(width), model)


_UPDATE_EVERY = 8


@dataclasses.dataclass(frozen=True, eq=False)
class ImuMotion:
    """Position and velocity of the IMU, and its biases.

    Errors are ordered attitude (about the axes of base_link, R_true = R Exp(e)), then differences
    of position, velocity (world), accelerometer bias, gyroscope bias, truth against estimate.
    """

    orientation: FloatArray  # (k, 3, 3) Base_link to world
    # (k, 3) m and m/s, world.
    position: FloatArray
    velocity: FloatArray
    # (k, 3) m/s^2 and rad/s.
    accelerometer_bias: FloatArray
    gyroscope_bias: FloatArray


@dataclasses.dataclass(frozen=True, eq=False)
class Nodes(ImuMotion):
    """The solution at the nodes."""

    joint: FloatArray  # (k - 1, 30, 30) Covariance of the errors of a node and the next
    fix_node: IntArray  # (m,) Node of each fix
    fix_distance: FloatArray  # (m,) Mahalanobis distance of each fix from the solution
    iterations: int
    converged: bool


def solve(
    inputs: InertialInputs, settings: InertialSettings, steps: Steps, start: FirstAttitude
) -> Nodes:
    """Build the graph and solve it; JudgeError without gtsam, or when it cannot be solved.

    The estimates that the batch optimisation starts from come from incremental smoothing (iSAM2),
    a few nodes at a time, because an IMU that is integrated open loop for minutes leaves the
    valley that the solution is in.
    """
    gtsam = load_gtsam()
    try:
        return _solve(gtsam, inputs, settings, steps, start)
    except RuntimeError as error:
        reason = ' '.join(str(error).split())[:160]
        raise JudgeError(f'judge gtsam: gtsam cannot solve this run: {reason}') from None


def _solve(
    gtsam: Any,
    inputs: InertialInputs,
    settings: InertialSettings,
    steps: Steps,
    start: FirstAttitude,
) -> Nodes:
    builder = FactorGraph(gtsam, inputs, settings, steps)
    turn = Rotation.from_quat(start.orientation)
    guess = builder.first_values(turn)
    prior = builder.prior(start, turn)
    fixes = builder.fix_factors(0)
    factors: list[Any] = list(fixes)
    recent, fresh = _graph_of(gtsam, [*prior, *fixes]), gtsam.Values(guess)
    incremental = _incremental(gtsam)
    x, v, b = builder.keys(0)
    pose, velocity, bias = guess.atPose3(x), guess.atVector(v), guess.atConstantBias(b)
    last = len(steps.node_ns) - 1
    for i in range(last):
        factor, measured = builder.imu_factor(i, bias)
        state = measured.predict(gtsam.NavState(pose, velocity), bias)
        pose, velocity = state.pose(), state.velocity()
        x, v, b = builder.keys(i + 1)
        fresh.insert(x, pose)
        fresh.insert(v, velocity)
        fresh.insert(b, bias)
        for new in (factor, *builder.fix_factors(i + 1)):
            factors.append(new)
            recent.push_back(new)
        if (i + 1) % _UPDATE_EVERY == 0 or i + 1 == last:
            incremental.update(recent, fresh)
            recent, fresh = gtsam.NonlinearFactorGraph(), gtsam.Values()
            pose = incremental.calculateEstimatePose3(x)
            velocity = incremental.calculateEstimateVector(v)
            bias = incremental.calculateEstimateConstantBias(b)
    guess = incremental.calculateBestEstimate()
    found = Rotation.from_matrix(guess.atPose3(builder.keys(0)[0]).rotation().matrix())
    # About the tilt that was found, since a prior that is tilted by much is turned by a little.
    roll, pitch, _ = found.as_euler('xyz')
    turn = Rotation.from_euler('xyz', [roll, pitch, turn.as_euler('xyz')[2]])
    graph = _graph_of(gtsam, [*builder.prior(start, turn), *factors])
    values, used, converged = _optimise(gtsam, graph, guess, settings.smoother.iterations)
    return _nodes(builder, graph, values, used, converged)


def _incremental(gtsam: Any) -> Any:
    parameters = gtsam.ISAM2Params()
    parameters.setRelinearizeThreshold(0.05)
    parameters.relinearizeSkip = 1
    parameters.setFactorization('QR')
    return gtsam.ISAM2(parameters)


def _graph_of(gtsam: Any, factors: list[Any]) -> Any:
    graph = gtsam.NonlinearFactorGraph()
    for factor in factors:
        graph.push_back(factor)
    return graph


def _optimise(gtsam: Any, graph: Any, guess: Any, most: int) -> tuple[Any, int, bool]:
    parameters = gtsam.LevenbergMarquardtParams()
    parameters.setMaxIterations(most)
    parameters.setRelativeErrorTol(1e-9)
    parameters.setAbsoluteErrorTol(1e-9)
    parameters.setLinearSolverType('MULTIFRONTAL_QR')
    optimiser = gtsam.LevenbergMarquardtOptimizer(graph, guess, parameters)
    values = optimiser.optimize()
    used = int(optimiser.iterations())
    return values, used, used < most


def _nodes(
    builder: FactorGraph, graph: Any, values: Any, iterations: int, converged: bool
) -> Nodes:
    count = len(builder.steps.node_ns)
    poses = [values.atPose3(builder.keys(i)[0]) for i in range(count)]
    velocity = np.array([values.atVector(builder.keys(i)[1]) for i in range(count)])
    biases = [values.atConstantBias(builder.keys(i)[2]) for i in range(count)]
    orientation = np.array([pose.rotation().matrix() for pose in poses])
    position = np.array([pose.translation() for pose in poses])
    joint = _joint(builder, graph.linearize(values), count)
    # From positions along the axes of base_link, as GTSAM's poses have them, to the world's.
    turn = np.tile(np.eye(15), (count, 1, 1))
    turn[:, 3:6, 3:6] = orientation
    both = np.zeros((count - 1, 30, 30))
    both[:, :15, :15], both[:, 15:, 15:] = turn[:-1], turn[1:]
    joint = both @ joint @ both.transpose(0, 2, 1)
    inputs, fixes = builder.inputs, builder.steps.fix_node
    error = position[fixes] + orientation[fixes] @ builder.arm - inputs.fix
    solved = np.linalg.solve(inputs.fix_covariance, error[..., None])[..., 0]
    return Nodes(
        orientation=orientation,
        position=position,
        velocity=velocity,
        accelerometer_bias=np.array([bias.accelerometer() for bias in biases]),
        gyroscope_bias=np.array([bias.gyroscope() for bias in biases]),
        joint=joint,
        fix_node=fixes,
        fix_distance=np.sqrt(np.sum(error * solved, axis=1)),
        iterations=iterations,
        converged=converged,
    )


def _joint(builder: FactorGraph, linear: Any, count: int) -> FloatArray:
    """Return the joint covariances of neighbours in GTSAM's coordinates, ordered as `Nodes`."""
    place: dict[int, int] = {}
    for node in range(count):
        x, v, b = builder.keys(node)
        place |= {x: 15 * node, v: 15 * node + 6, b: 15 * node + 9}
    single: list[list[FloatArray]] = [[np.zeros((0, 15))] for _ in range(count)]
    double = [np.zeros((0, 30))] * (count - 1)
    for number in range(linear.size()):
        factor = linear.at(number)
        rows = np.asarray(factor.augmentedJacobian())[:, :-1]
        keys = [place[key] for key in list(factor.keys())]
        node = min(keys) // 15
        spread = np.zeros((len(rows), 30))
        column = 0
        for key in keys:
            width = 3 if key % 15 == 6 else 6
            at = key - 15 * node
            spread[:, at : at + width] = rows[:, column : column + width]
            column += width
        if max(keys) // 15 == node:
            single[node].append(spread[:, :15])
        else:
            double[node] = spread
    return joint_covariances([np.vstack(rows) for rows in single], double)
