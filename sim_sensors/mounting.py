# SPDX-License-Identifier: Apache-2.0
"""How sensors are turned and placed in the body."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from sim_sensors.measurements import FloatArray
from sim_sensors.parameters import Parameters

__all__ = ['mounting_quaternion', 'placed', 'turned']

P = TypeVar('P', bound=Parameters)


def mounting_quaternion(rpy: ArrayLike) -> FloatArray:
    """Return the quaternion x y z w, `(1, 4)`, of roll, pitch, yaw about fixed axes, rad."""
    quaternion: FloatArray = Rotation.from_euler('xyz', np.asarray(rpy)).as_quat()[None, :]
    return quaternion


def placed(model: P, translation: ArrayLike) -> P:
    """Return a sensor model with its `lever_arm` at `translation` `(3,)` m in the body."""
    changes: Any = {'lever_arm': tuple(np.asarray(translation, dtype=np.float64).tolist())}
    return dataclasses.replace(model, **changes)


def turned(model: P, rotation: Rotation) -> P:
    """Return a sensor model whose `mounting_rpy` takes its axes to those of the body so."""
    changes: Any = {'mounting_rpy': tuple(rotation.as_euler('xyz').tolist())}
    return dataclasses.replace(model, **changes)
