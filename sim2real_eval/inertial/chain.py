# SPDX-License-Identifier: Apache-2.0
"""Covariances of a chain of nodes, from its linear factors, without ever squaring them.

Each node is eliminated in turn by a QR decomposition of all rows that know it, which leaves
R x_i + S x_(i+1) = noise of unit covariance and rows for the next node alone (Dellaert and Kaess,
Square root SAM, 2006). Backwards from the last node, P_i = R^-1 (I + S P_(i+1) S') R^-T and
P_(i,i+1) = -R^-1 S P_(i+1). Normal equations would lose the weak directions of a run with few
fixes: informations there span more than the 16 digits of a double.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sim_sensors.measurements import FloatArray

__all__ = ['joint_covariances']


def joint_covariances(single: list[FloatArray], double: list[FloatArray]) -> FloatArray:
    """Return the covariance of each node and the next, (k - 1, 2 d, 2 d).

    Parameters
    ----------
    single : list of k arrays (r, d)
        Rows, of unit noise, that know one node only; r may be 0.
    double : list of k - 1 arrays (r, 2 d)
        Rows that know a node and the next.

    Raises
    ------
    LinAlgError
        When a direction of a node is not determined at all.
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
