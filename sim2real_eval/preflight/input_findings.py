# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Findings about the other inputs of a judge."""

from __future__ import annotations

from sim2real_eval.common.findings import decisive, routine
from .findings import levels

INPUT_IN_WORLD = decisive(
    'check.input_in_world',
    'velocities are in the axes of the world: their error is {world:.2g m/s} there, and '
    '{body:.2g m/s} in the axes of the body',
    'robot_localization reads a twist in the axes of its child frame, or of the frame of a '
    'TwistWithCovarianceStamped.',
    'publish it in the axes of the body, or in a frame that a transform to base_link turns',
)
INPUT_STRAYS = decisive(
    'check.input_strays',
    'the motion explains only {share:.0%} of the velocities',
    'A judge that fuses this input follows it instead of the vehicle.',
    'do not fuse this input',
)
INPUT_REVERSED = decisive(
    'check.input_reversed',
    'velocities have the wrong sign',
    'A judge that fuses this input estimates the opposite speed.',
    'correct the sign in the driver',
)
INPUT_TURNED = routine(
    'check.input_turned',
    'velocities are turned by {turn:.0f deg} in the body',
    'Forward speed appears as lateral speed.',
    'give the frame of this input this yaw, by a static transform or `transforms: [{{parent: '
    'base_link, child: FRAME, rotation_xyzw: [0, 0, Z, W]}}]` in recording.yaml',
)
INPUT_SCALE, INPUT_SCALE_LARGE = levels(
    'input_scale',
    'velocities are {scale:.3g} times the true ones{unit}',
    'A judge that fuses this input has this error of speed.',
    'correct unit, wheel radius or gear ratio in the driver',
)
INPUT_LATE = routine(
    'check.input_late',
    'stamps are {delay:+.2f s} off (positive: late)',
    'A judge applies these velocities at the wrong time.',
    'stamp the messages at the time of measurement',
)
INPUT_COVARIANCE_SMALL = routine(
    'check.input_covariance_small',
    'errors of the velocities are {error:.2g m/s} rms where the covariance states {stated:.2g}',
    'A filter trusts this input too much, and rejects the others.',
    'state the deviation in the driver, or in case.yaml: `deviation: {{{name}: {{velocity: '
    '{error:.2g}}}}}`',
)
INPUT_RATE_REVERSED = decisive(
    'check.input_rate_reversed',
    'yaw rates have the wrong sign',
    'A judge that fuses this rate turns the wrong way.',
    'correct the sign in the driver',
)
INPUT_COVARIANCE = routine(
    'check.input_covariance',
    '{share:.0%} of the variances of the forward velocity are zero or negative; '
    'robot_localization uses 1e-9 for zero, so it trusts them completely',
    'A filter weighs measurements by their covariances.',
    'before you fuse this input, state the variance in the driver, or in case.yaml: `deviation: '
    '{{{name}: {{velocity: VALUE}}}}`, VALUE in m/s from the data sheet or the spread at rest',
)
