# SPDX-License-Identifier: Apache-2.0
"""Euler angles and quaternions where the package meets people and ROS: launch files, diagnostics.

`tf_transformations` does the work where ROS has it, scipy where it is missing or broken. They
agree to some 1e-15, not to the bit. So models and judge, whose results must not depend on what is
installed, do not use this module (`sim_sensors.rotations` and scipy serve them), and what is
written by its means into a file is rounded.

Quaternions are x y z w. Euler angles are roll, pitch, yaw about the fixed axes x, y, z in this
order, rad, as in a static transform and a URDF.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from types import ModuleType

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

__all__ = ['euler_from_quaternion', 'quaternion_from_euler']


def quaternion_from_euler(
    roll: float, pitch: float, yaw: float
) -> tuple[float, float, float, float]:
    """Return the quaternion x y z w of roll, pitch, yaw; of its two signs that with w >= 0.

    Parameters
    ----------
    roll, pitch, yaw : float
        rad.
    """
    library = _tf_transformations()
    if library is None:
        numbers = Rotation.from_euler('xyz', (roll, pitch, yaw)).as_quat().tolist()
    else:
        numbers = [float(part) for part in library.quaternion_from_euler(roll, pitch, yaw)]
    sign = -1.0 if numbers[3] < 0.0 else 1.0
    x, y, z, w = (sign * part for part in numbers)
    return x, y, z, w


def euler_from_quaternion(quaternion: npt.ArrayLike) -> tuple[float, float, float]:
    """Return roll, pitch, yaw of a quaternion, rad.

    Parameters
    ----------
    quaternion : (4,) array_like
        x y z w, of any length but zero.

    Raises
    ------
    ValueError
        For a quaternion of length zero.
    """
    # Checked and scaled here, as the two libraries differ about what is not a unit quaternion.
    unit = Rotation.from_quat(np.asarray(quaternion, dtype=np.float64))
    library = _tf_transformations()
    if library is None:
        with warnings.catch_warnings():
            # Pitch of a right angle: yaw is taken as 0, as the other library does.
            warnings.simplefilter('ignore', UserWarning)
            angles = unit.as_euler('xyz').tolist()
    else:
        angles = [float(angle) for angle in library.euler_from_quaternion(unit.as_quat())]
    roll, pitch, yaw = angles
    return roll, pitch, yaw


@functools.cache
def _tf_transformations() -> ModuleType | None:
    try:
        return importlib.import_module('tf_transformations')
    except ImportError:
        return None
    except Exception as error:
        # It is there but broken, as Ubuntu's transforms3d under it is beside numpy 2.
        warnings.warn(
            f'tf_transformations cannot be imported ({type(error).__name__}: {error}); '
            'scipy takes its place',
            RuntimeWarning,
            stacklevel=3,
        )
        return None
