# SPDX-License-Identifier: Apache-2.0
"""What simulating the sensors of a recording may find."""

from __future__ import annotations

from sim2real_eval.common.findings import assumed, decisive, routine

RATE_DIFFERS = decisive(
    'twin.rate_differs',
    'simulated at {simulated:g Hz}, real one at {real:.3g Hz}: the rate alone can change VEPD '
    'severalfold',
    'The comparison measures the difference of the rates, not of the errors.',
    'simulate at the real rate with --match-rates (in a study file `match_rates: true`, in Python '
    '`simulate(..., match_rates=True)`)',
)
ATTITUDE_DIFFERS = routine(
    'twin.attitude_differs',
    'the {has} one publishes an orientation, the {lacks} one does not: part of the difference is '
    'the attitude',
    'A judge uses a published orientation, so it knows more in one of the two runs.',
    'set `orientation: mode:` of the model',
)
NOISE_FREE = routine(
    'twin.noise_free',
    "the simulated {sensor} measures what the simulator's noise-free one did",
    'Their errors are added to its specific force, position or field; odometry gives the rest.',
    'do without it by `topics: {{{role}: null}}` in recording.yaml',
)
PLACED_BY_MODEL = assumed(
    'twin.placed_by_model',
    'no static transform names it, so the simulated sensor is where its model says: [{place}] m',
    'The recording says where other sensors are, but has none of this kind.',
    'place it by `transforms` in recording.yaml, or by `lever_arm` of the model',
)
NOTHING_SEEN = routine(
    'twin.nothing_seen',
    'the camera never saw anything of the world ({count:d} empty frames)',
    'The feature tracks are empty.',
    'check where the camera points and where the motion goes',
)
