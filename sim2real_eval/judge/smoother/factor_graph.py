# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Factor graph of a run in GTSAM (IMU factors, fixes and priors) and its solution."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import JudgeError
from sim2real_eval.judge.inertial.alignment import InertialInputs, InitialAttitude
from sim2real_eval.judge.inertial.settings import InertialSettings
from sim_sensors.core.installation import pip_install
from sim_sensors.core.measurements import FloatArray, IntArray
from sim_sensors.world.earth import TurningEarth

INTEGRATION_DENSITY = 1e-4
"""Noise density of the position for errors of the integration itself, m/sqrt(s)."""

# A bias walk of 0 would give a factor of infinite weight.
_MIN_GYROSCOPE_WALK = 1e-7
_MIN_ACCELEROMETER_WALK = 1e-6
# Weak priors keep the problem solvable. The IMU factors contain gravity, so a strong prior on tilt
# from levelling would use the same data twice.
_FIRST_TILT_DEVIATION = 0.5
_FIRST_POSITION_DEVIATION = 1e3
_FIRST_VELOCITY_DEVIATION = 100.0
_MIN_BIAS = 1e-6
_LONGEST_INTERVAL_NS = 1_000_000_000
_FILLER_CLEARANCE_NS = 50_000_000
# 1.6 mm at 16 m/s; nearer nodes would have factors with excessive weights.
_SAME_NODE_NS = 100_000


@dataclasses.dataclass(frozen=True, eq=False)
class Steps:
    """Time steps over which the IMU is taken as constant."""

    # (k,) Stamps of the nodes: fixes, edges of gaps in the IMU, the last IMU message, and fillers
    # that keep intervals below a second.
    node_ns: IntArray
    fix_node: IntArray  # (m,) Node of each fix
    start_ns: IntArray  # (s,) Start of each step, which is the end of the one before
    seconds: FloatArray  # (s,) Duration of each step
    # (s, 3) Mean angular rate, rad/s, and specific force, m/s^2, in the axes of base_link; the
    # force in its axes at the start of the step.
    rate: FloatArray
    force: FloatArray
    first: IntArray  # (k,) First step of each node's interval; that of the last node is s
    # (k - 1,) Length of the gap in the IMU that an interval bridges, s; 0 for none.
    gap: FloatArray
    output_ns: IntArray  # (n,) Times of the estimates
    output_step: IntArray  # (n,) Step at whose end each output is; -1 for the first node itself


def divide_into_steps(
    inputs: InertialInputs, settings: InertialSettings, output_ns: IntArray
) -> Steps:
    """Divide the IMU data at its messages, at the nodes and at the outputs.

    Outputs, (n,), increase from the first fix to the last IMU message. Signals are interpolated
    linearly between messages, so the mean of a step is that of its ends. Holding samples instead
    would delay them by half a period.
    """
    first_ns, last_ns = int(inputs.fix_ns[0]), int(inputs.imu_ns[-1])
    spans = np.diff(inputs.imu_ns)
    long = np.flatnonzero(spans > settings.longest_gap * 1e9)
    edges = np.concatenate([inputs.imu_ns[long], inputs.imu_ns[long + 1]])
    nodes = _place_nodes(inputs.fix_ns, edges[edges > first_ns], first_ns, last_ns)
    inside = (inputs.imu_ns >= nodes[0]) & (inputs.imu_ns <= nodes[-1])
    at = np.unique(np.concatenate([nodes, inputs.imu_ns[inside], output_ns]))
    origin = int(nodes[0])
    time = (inputs.imu_ns - origin) * 1e-9
    ends = (at - origin) * 1e-9
    rate = np.stack([np.interp(ends, time, column) for column in inputs.rate.T], axis=1)
    force = np.stack([np.interp(ends, time, column) for column in inputs.force.T], axis=1)
    seconds = np.diff(at) * 1e-9
    mean_rate = 0.5 * (rate[1:] + rate[:-1])
    half = Rotation.from_rotvec(0.5 * seconds[:, None] * mean_rate)
    middle = nodes[:-1] + np.diff(nodes) // 2
    message = np.searchsorted(inputs.imu_ns, middle, side='right') - 1
    span = spans[np.clip(message, 0, len(spans) - 1)] * 1e-9
    return Steps(
        node_ns=nodes,
        fix_node=np.clip(
            np.searchsorted(nodes, inputs.fix_ns, side='right') - 1, 0, len(nodes) - 1
        ).astype(np.int64),
        start_ns=at[:-1],
        seconds=seconds,
        rate=mean_rate,
        force=half.apply(0.5 * (force[1:] + force[:-1])),
        first=np.searchsorted(at, nodes).astype(np.int64),
        gap=np.where(span > settings.longest_gap, span, 0.0),
        output_ns=output_ns,
        output_step=np.searchsorted(at, output_ns).astype(np.int64) - 1,
    )


def _place_nodes(fix_ns: IntArray, edges: IntArray, first_ns: int, last_ns: int) -> IntArray:
    """Return the stamps of the nodes, increasing, at least two."""
    stamps = np.unique(np.concatenate([fix_ns, edges, [last_ns]]))
    nodes = [first_ns]
    for stamp in stamps.tolist():
        # The last stamp is always a node, because no output may lie beyond the nodes.
        if stamp - nodes[-1] >= _SAME_NODE_NS or last_ns == stamp > nodes[-1]:
            fillers = (stamp - nodes[-1] - _FILLER_CLEARANCE_NS) // _LONGEST_INTERVAL_NS
            nodes += [nodes[-1] + (i + 1) * _LONGEST_INTERVAL_NS for i in range(fillers)]
            nodes.append(stamp)
    return np.array(nodes, dtype=np.int64)


def load_gtsam() -> Any:
    """Return the module gtsam.

    JudgeError when it is not installed, or too old for lever arms of antennas.
    """
    try:
        gtsam = importlib.import_module('gtsam')
    except ImportError:
        raise JudgeError(
            f'judge gtsam: needs gtsam, which is not installed: {pip_install("gtsam")}'
        ) from None
    if not hasattr(gtsam, 'GPSFactorArm'):
        raise JudgeError('judge gtsam: this gtsam is too old; must be 4.3 or later')
    return gtsam


def imu_densities(settings: InertialSettings, gap: float) -> FloatArray:
    """Return the densities of gyroscope, accelerometer and their bias walks over an interval.

    In a gap of L seconds interpolation has a constant error e. Its integral has the deviation e L,
    as that of white noise of density e sqrt(L).
    """
    return np.array([
        np.hypot(settings.gyroscope_noise, settings.gap_rate * np.sqrt(gap)),
        np.hypot(settings.accelerometer_noise, settings.gap_acceleration * np.sqrt(gap)),
        max(settings.gyroscope_bias_walk, _MIN_GYROSCOPE_WALK),
        max(settings.accelerometer_bias_walk, _MIN_ACCELEROMETER_WALK),
    ])  # fmt: skip


class FactorGraph:
    """Builder of the factors of a run.

    Variables of node i are its pose `x`, velocity `v` (both of the IMU) and bias `b`.
    """

    def __init__(
        self, gtsam: Any, inputs: InertialInputs, settings: InertialSettings, steps: Steps
    ) -> None:
        self.gtsam, self.inputs, self.settings, self.steps = gtsam, inputs, settings, steps
        self.earth = settings.turning_earth(inputs.origin, inputs.imu_ns)
        self.arm = inputs.antenna - inputs.imu_arm
        self.models = [_fix_model(gtsam, settings, P) for P in inputs.fix_covariance]
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

    def prior(self, start: InitialAttitude, turn: Rotation) -> list[Any]:
        """Return the prior factors of the first node."""
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
                b, gtsam.imuBias.ConstantBias(), diagonal.Sigmas(np.maximum(biases, _MIN_BIAS))
            ),
        ]

    def first_values(self, turn: Rotation) -> Any:
        """Return initial values of the first node with a given attitude."""
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
        # The bias of the accelerometer absorbs the curvature of the Earth.
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
    """Solution at the nodes."""

    joint: FloatArray  # (k - 1, 30, 30) Covariance of the errors of a node and the next
    fix_node: IntArray  # (m,) Node of each fix
    fix_distance: FloatArray  # (m,) Mahalanobis distance of each fix from the solution
    # (k - 1,) Mahalanobis distance of the IMU between two nodes from the solution; 15 dimensions.
    imu_distance: FloatArray
    iterations: int
    converged: bool


def solve(
    inputs: InertialInputs, settings: InertialSettings, steps: Steps, start: InitialAttitude
) -> Nodes:
    """Build the graph and solve it; JudgeError without gtsam, or when it cannot be solved.

    The initial estimates of the batch optimisation come from incremental smoothing (iSAM2), a few
    nodes at a time. Open-loop integration over minutes would end too far from the solution.
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
    start: InitialAttitude,
) -> Nodes:
    builder = FactorGraph(gtsam, inputs, settings, steps)
    turn = Rotation.from_quat(start.orientation)
    guess = builder.first_values(turn)
    prior = builder.prior(start, turn)
    fixes = builder.fix_factors(0)
    factors: list[Any] = list(fixes)
    imu_factors: list[Any] = []
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
        imu_factors.append(factor)
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
    solved = Rotation.from_matrix(guess.atPose3(builder.keys(0)[0]).rotation().matrix())
    # The prior covariance is centred on the solved tilt: it is linear in small tilts only.
    roll, pitch, _ = solved.as_euler('xyz')
    turn = Rotation.from_euler('xyz', [roll, pitch, turn.as_euler('xyz')[2]])
    graph = _graph_of(gtsam, [*builder.prior(start, turn), *factors])
    values, used, converged = _optimise(gtsam, graph, guess, settings.smoother.iterations)
    squares = np.array([2.0 * factor.error(values) for factor in imu_factors])
    return _nodes(builder, graph, values, np.sqrt(squares), used, converged)


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
    builder: FactorGraph,
    graph: Any,
    values: Any,
    imu_distance: FloatArray,
    iterations: int,
    converged: bool,
) -> Nodes:
    count = len(builder.steps.node_ns)
    poses = [values.atPose3(builder.keys(i)[0]) for i in range(count)]
    velocity = np.array([values.atVector(builder.keys(i)[1]) for i in range(count)])
    biases = [values.atConstantBias(builder.keys(i)[2]) for i in range(count)]
    orientation = np.array([pose.rotation().matrix() for pose in poses])
    position = np.array([pose.translation() for pose in poses])
    joint = _joint(builder, graph.linearize(values), count)
    # GTSAM's poses have position errors in the axes of base_link; rotate them to the world.
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
        imu_distance=imu_distance,
        iterations=iterations,
        converged=converged,
    )


def _joint(builder: FactorGraph, linear: Any, count: int) -> FloatArray:
    """Return joint covariances of neighbouring nodes in GTSAM's coordinates, as `Nodes.joint`."""
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


def joint_covariances(single: list[FloatArray], double: list[FloatArray]) -> FloatArray:
    """Return the joint covariance of each node and the next, (k - 1, 2 d, 2 d).

    A QR decomposition eliminates each node in turn from all rows that contain it. It leaves
    R x_i + S x_(i+1) = noise of unit covariance, and rows for the next node alone (Dellaert and
    Kaess, Square root SAM, 2006). Backwards from the last node, P_i = R^-1 (I + S P_(i+1) S') R^-T
    and P_(i,i+1) = -R^-1 S P_(i+1). Normal equations would lose the weak directions of a run with
    few fixes, because the informations span more than the 16 digits of a double.

    LinAlgError when a direction of a node is not determined.

    Parameters
    ----------
    single : rows of unit noise for one node, k arrays (r, d); r may be 0.
    double : rows of unit noise for a node and the next, k - 1 arrays (r, 2 d).
    """
    d = single[0].shape[1]
    count = len(single)
    heads, tails = np.zeros((2, count, d, d))
    carried = np.zeros((0, d))
    for i in range(count - 1):
        own_rows = np.vstack([carried, single[i]])
        rows = np.vstack([np.hstack([own_rows, np.zeros_like(own_rows)]), double[i]])
        triangle = _triangle(rows)
        heads[i], tails[i] = triangle[:d, :d], triangle[:d, d:]
        carried = triangle[d:, d:]
    heads[-1] = _triangle(np.vstack([carried, single[-1]]))[:d]
    inverse = np.linalg.inv(heads)
    onward = inverse @ tails
    joint = np.zeros((count - 1, 2 * d, 2 * d))
    later = inverse[-1] @ inverse[-1].T
    for i in range(count - 2, -1, -1):
        across = -onward[i] @ later
        earlier = inverse[i] @ inverse[i].T - across @ onward[i].T
        joint[i] = np.block([[earlier, across], [across.T, later]])
        later = 0.5 * (earlier + earlier.T)
    return joint


def _triangle(rows: FloatArray) -> FloatArray:
    # The stub of numpy does not know that this mode returns an array.
    triangle: Any = np.linalg.qr(rows, mode='r')
    return np.asarray(triangle, dtype=np.float64)
