# SPDX-License-Identifier: Apache-2.0
"""Covariances of a chain of nodes, from its linear factors, without ever squaring them.

Each node is eliminated in turn by a QR decomposition of all rows that know it, which leaves
R x_i + S x_(i+1) = noise of unit covariance and rows for the next node alone (Dellaert and Kaess,
Square root SAM, 2006). Backwards from the last node, P_i = R^-1 (I + S P_(i+1) S') R^-T and
P_(i,i+1) = -R^-1 S P_(i+1). Normal equations would lose the weak directions of a run with few
fixes: informations there span more than the 16 digits of a double.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from sim2real_eval.judge.inertial.front_end import InertialInputs
from sim2real_eval.judge.inertial.settings import InertialSettings
from sim_sensors.core.measurements import FloatArray, IntArray


def joint_covariances(single: list[FloatArray], double: list[FloatArray]) -> FloatArray:
    """Return the covariance of each node and the next, (k - 1, 2 d, 2 d).

    Rows of unit noise know one node only, `single`, k arrays (r, d), r may be 0; or a node and the
    next, `double`, k - 1 arrays (r, 2 d). LinAlgError when a direction of a node is not determined
    at all.
    """
    d = single[0].shape[1]
    count = len(single)
    heads, tails = np.zeros((2, count, d, d))
    carried = np.zeros((0, d))
    for i in range(count - 1):
        known = np.vstack([carried, single[i]])
        rows = np.vstack([np.hstack([known, np.zeros_like(known)]), double[i]])
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
    # In this mode it returns an array, which its stub does not say.
    triangle: Any = np.linalg.qr(rows, mode='r')
    return np.asarray(triangle, dtype=np.float64)


_LONGEST_INTERVAL_NS = 1_000_000_000
_FILLER_CLEARANCE_NS = 50_000_000
# 1.6 mm at 16 m/s; nodes nearer than that would be tied together by numbers beyond reason.
_SAME_NODE_NS = 100_000


@dataclasses.dataclass(frozen=True, eq=False)
class Steps:
    """Pieces of time over which the IMU is taken as constant."""

    # (k,) Stamps of the nodes: fixes, edges of gaps in the IMU, the last IMU message, and what it
    # takes for none to be more than a second from the next.
    node_ns: IntArray
    fix_node: IntArray  # (m,) Node of each fix
    start_ns: IntArray  # (s,) When each step starts; they join
    seconds: FloatArray  # (s,) How long each is
    # (s, 3) Mean angular rate, rad/s, and specific force, m/s^2, in base_link's axes; the force
    # turned by half a step, as seen from the attitude at the start of the step.
    rate: FloatArray
    force: FloatArray
    first: IntArray  # (k,) First step of each node's interval; that of the last node is s
    # (k - 1,) Length of the gap in the IMU that an interval bridges, s; 0 for none.
    gap: FloatArray
    output_ns: IntArray  # (n,) When estimates are asked for
    output_step: IntArray  # (n,) Step at whose end each output is; -1 for the first node itself


def cut(inputs: InertialInputs, settings: InertialSettings, output_ns: IntArray) -> Steps:
    """Cut the IMU at its messages, at the nodes and at the outputs.

    Outputs, (n,), increase from the first fix to the last IMU message. Between messages the
    signals are taken as lines, so that a step's mean is that of its ends. Sensors are read at
    instants, and a held sample would lag by half a period.
    """
    first_ns, last_ns = int(inputs.fix_ns[0]), int(inputs.imu_ns[-1])
    spans = np.diff(inputs.imu_ns)
    long = np.flatnonzero(spans > settings.longest_gap * 1e9)
    edges = np.concatenate([inputs.imu_ns[long], inputs.imu_ns[long + 1]])
    nodes = _nodes(inputs.fix_ns, edges[edges > first_ns], first_ns, last_ns)
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


def _nodes(fix_ns: IntArray, edges: IntArray, first_ns: int, last_ns: int) -> IntArray:
    """Return the stamps of the nodes, increasing, at least two."""
    wanted = np.unique(np.concatenate([fix_ns, edges, [last_ns]]))
    kept = [first_ns]
    for stamp in wanted.tolist():
        # The last one in any case: no output may lie beyond the nodes.
        if stamp - kept[-1] >= _SAME_NODE_NS or last_ns == stamp > kept[-1]:
            fillers = (stamp - kept[-1] - _FILLER_CLEARANCE_NS) // _LONGEST_INTERVAL_NS
            kept += [kept[-1] + (i + 1) * _LONGEST_INTERVAL_NS for i in range(fillers)]
            kept.append(stamp)
    return np.array(kept, dtype=np.int64)
