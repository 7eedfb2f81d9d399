# SPDX-License-Identifier: Apache-2.0
"""What an IMU at rest measures when its numbers are not in the units they are taken for.

Gravity tells the unit of an accelerometer. A gyroscope at rest measures noise and bias only. The
data sheets of the catalogue state 0.005 to 0.014 deg/s/sqrt(Hz) of noise, and degrees taken for
radians make that 57 times larger, so ten times the worst of them is told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from sim_sensors.environment import STANDARD_GRAVITY

__all__ = ['unit_warnings']

_NOISIEST = math.radians(0.15)
_GRAVITY_TOLERANCE = 0.1


def unit_warnings(means: Mapping[str, float], whites: Mapping[str, float]) -> list[str]:
    """Return what is hard to believe, each with the option that corrects it.

    Parameters
    ----------
    means : mapping
        Of an axis at rest, rad/s or m/s^2, by its name in `signals.AXES`.
    whites : mapping
        Its white noise, the same per sqrt(Hz).
    """
    notes = []
    force = [mean for axis, mean in means.items() if axis.startswith('accelerometer')]
    if len(force) == 3:
        size = float(np.linalg.norm(force))
        for unit, gravity in (('g', 1.0), ('mg', 1000.0)):
            if abs(size / gravity - 1.0) < 2.0 * _GRAVITY_TOLERANCE:
                notes.append(
                    f'the specific force at rest is {size:.4g} m/s^2, as gravity is in {unit}: '
                    f'all accelerometer values are wrong unless --accel-unit {unit} is given'
                )
                break
        else:
            if abs(size / STANDARD_GRAVITY - 1.0) > _GRAVITY_TOLERANCE:
                notes.append(
                    f'the specific force at rest is {size:.4g} m/s^2, and gravity '
                    f'{STANDARD_GRAVITY:.4g}: taken away by a driver, or a large bias, or another '
                    'unit (--accel-unit)'
                )
    noises = [white for axis, white in whites.items() if axis.startswith('gyroscope')]
    if noises and float(np.median(noises)) > _NOISIEST:
        median = float(np.median(noises))
        notes.append(
            f'the white noise of the gyroscope is {median:.2g} rad/s/sqrt(Hz), ten times that of '
            'cheap sensors: if its values are in deg/s, all are 57 times too large unless '
            '--gyro-unit deg/s is given'
        )
    return notes
