# SPDX-License-Identifier: Apache-2.0
"""Findings of simulating the sensors of a recording."""

from __future__ import annotations

from sim2real_eval.common.findings import assumed, decisive, routine

RATE_DIFFERS = decisive(
    'twin.rate_differs',
    'simulated at {simulated:g Hz}, real one at {real:.3g Hz}: the rate alone can change VEPD '
    'severalfold',
    'The comparison then measures the difference of the rates, not of the errors.',
    'simulate at the real rate with --match-rates (in a study file `match_rates: true`, in Python '
    '`simulate(..., match_rates=True)`)',
)
ATTITUDE_DIFFERS = routine(
    'twin.attitude_differs',
    'the {has} sensor publishes an orientation, the {lacks} one does not: part of the difference '
    'is the attitude',
    'A judge uses a published orientation, so it knows more in one of the two runs.',
    'set `orientation: mode:` of the model',
)
NOISE_FREE = routine(
    'twin.noise_free',
    "the simulated {sensor} adds its errors to the simulator's noise-free messages",
    'Specific force, position or field come from the noise-free sensor, the rest from odometry.',
    'to ignore that sensor, set `topics: {{{role}: null}}` in recording.yaml',
)
PLACED_BY_MODEL = assumed(
    'twin.placed_by_model',
    'no static transform names it, so the simulated sensor has the lever arm of its model: '
    '[{place}] m',
    'The recording has static transforms, but none for a sensor of this kind.',
    'place it by `transforms` in recording.yaml, or by `lever_arm` of the model',
)
NOTHING_SEEN = routine(
    'twin.nothing_seen',
    'the camera saw no feature of the world ({count:d} empty frames)',
    'The feature tracks are empty.',
    'check where the camera points and where the motion goes',
)
