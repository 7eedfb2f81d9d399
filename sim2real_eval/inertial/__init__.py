# SPDX-License-Identifier: Apache-2.0
"""Judges that integrate the IMU itself: second opinions beside robot_localization."""

from sim2real_eval.inertial.alignment import FirstAttitude, first_attitude
from sim2real_eval.inertial.front_end import InertialInputs, inertial_inputs
from sim2real_eval.inertial.settings import InertialSettings

__all__ = [
    'FirstAttitude',
    'InertialInputs',
    'InertialSettings',
    'first_attitude',
    'inertial_inputs',
]
