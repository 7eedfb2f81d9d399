# SPDX-License-Identifier: Apache-2.0
"""What the bench of wheel odometry may find."""

from __future__ import annotations

from sim2real_eval.common.findings import decisive, routine

BLIND = decisive(
    'wheels.no_pose',
    'the camera gave no pose for up to {longest:.3g s} of {duration:.3g s}: for this time only '
    'the wheels are used, also in the columns "with"',
    'The difference between "with" and "without" is smaller than it could be.',
    'place more tags, or choose another motion',
)
UNEVEN = routine(
    'wheels.uneven_ground',
    'the motion rises and falls by {height:.3g m} and tilts by up to {tilt:.3g degrees}, but '
    'wheels and judge assume level ground: even perfect wheels are {error:.2g m} rms off in x, y',
    'Wheel odometry measures the way along the ground, not its projection on the plane.',
)
