# SPDX-License-Identifier: Apache-2.0
"""Attitude from gyroscope, accelerometer, magnetometer and camera: the case of [Ligorio2015]."""

from sim2real_eval.attitude.errors import AttitudeErrors, attitude_errors
from sim2real_eval.attitude.estimate import AttitudeEstimate, estimate_attitude
from sim2real_eval.attitude.events import AttitudeInput
from sim2real_eval.attitude.settings import AttitudeError, AttitudeSettings

__all__ = [
    'AttitudeError',
    'AttitudeErrors',
    'AttitudeEstimate',
    'AttitudeInput',
    'AttitudeSettings',
    'attitude_errors',
    'estimate_attitude',
]
