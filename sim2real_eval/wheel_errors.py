# SPDX-License-Identifier: Apache-2.0
"""One swerve robot, each error of its odometry alone."""

from __future__ import annotations

import dataclasses

from sim_sensors.catalogue import load_wheels
from sim_sensors.wheel_noise import NoWheelNoise, SteeringOffset
from sim_sensors.wheel_odometry import WheelOdometryModel
from sim_sensors.wheel_slip import Slip

__all__ = ['SINGLE_ERRORS', 'single_errors']

SINGLE_ERRORS = 'errors'
"""Word that stands for all of them in a list of models."""


def single_errors() -> dict[str, WheelOdometryModel]:
    """Return models with one error each, by label.

    The noise of the squared increment and the offset of the steering, as the text of [FRC3176] has
    it (`exact`) and as its code has (`as_upstream`), with the numbers of the preset `frc_swerve`;
    variance per distance, slips and wrong radii with those of `swerve`, the same robot.
    """
    source, ours = load_wheels('frc_swerve'), load_wheels('swerve')
    bare = dataclasses.replace(
        ours, noise=NoWheelNoise(), slip=Slip(), radius_error=0.0, steering_offset=SteeringOffset()
    )
    exact = dataclasses.replace(source.steering_offset, variant='exact')
    upstream = dataclasses.replace(exact, variant='as_upstream')
    return {
        'squared': dataclasses.replace(bare, noise=source.noise),
        'per_distance': dataclasses.replace(bare, noise=ours.noise),
        'slip': dataclasses.replace(bare, slip=ours.slip),
        'radius': dataclasses.replace(bare, radius_error=ours.radius_error),
        'steering_text': dataclasses.replace(bare, steering_offset=exact),
        'steering_code': dataclasses.replace(bare, steering_offset=upstream),
    }
