# SPDX-License-Identifier: Apache-2.0
"""What tuning a filter may find."""

from __future__ import annotations

from sim2real_eval.common.findings import assumed, decisive, routine

_HELD_OUT = 'held-out blocks of recordings'

BETTER = decisive(
    'tune.better',
    '{changed:d} of {tried:d} parameters changed: {error} is {gain:.2g} % smaller on '
    f'{_HELD_OUT} ({{level:g}} % interval {{low:.2g}} to {{high:.2g}} %)',
    'The tuned file is better on recordings that it was not tuned to.',
)
BETTER_SCORE = decisive(
    'tune.better_score',
    '{changed:d} of {tried:d} parameters changed: {error} is better by {gain:.3g} on '
    f'{_HELD_OUT} ({{level:g}} % interval {{low:.3g}} to {{high:.3g}}), in natural logarithms',
    'The filter states better what it does not know, on recordings that it was not tuned to.',
)
UNCHANGED = decisive(
    'tune.unchanged',
    'none of {tried:d} parameters changed: no other value makes {error} significantly better on '
    f'{_HELD_OUT}',
    'The tuned file is the given one.',
    'use more recordings, or try other --parameters',
)
NOT_BETTER = decisive(
    'tune.not_better',
    f'no parameter changed: those that gain alone, together gain {{gain}} on {_HELD_OUT} '
    '({low} to {high}), which may be chance',
    'The tuned file is the given one.',
    'use more recordings, or fewer --parameters',
)
OVER_FITS = assumed(
    'tune.over_fits',
    f'gain {{training}} on the recordings of the search, {{gain}} on {_HELD_OUT}: the rest is '
    'over-fitting',
    'The values follow the noise of their recordings.',
    'use more recordings, or fewer --parameters',
)
LEFT = routine(
    'tune.left',
    'left at their start, as no other value is significantly better: {names}',
    'The recordings say nothing of these parameters.',
)
AT_BOUND = assumed(
    'tune.at_bound',
    '{value} is as far as the search goes',
    'The best value may lie beyond.',
    'tune again from the tuned file',
)
SAME_DRIVES = assumed(
    'tune.same_drives',
    'the {blocks:d} blocks are parts of fewer drives ({drives:d}): the interval holds for these',
    'Recordings that follow each other are one drive. Place, weather and mounting, which they '
    'share, are never held out.',
    'use recordings of other drives, or hold them out with --test',
)
TRUE_HEADING = assumed(
    'tune.true_heading',
    'the filter starts each recording with the true heading, as the IMU has no orientation',
    'On the robot it has to find its heading first.',
)
HEADING_OFF = assumed(
    'tune.heading_off',
    'with the tuned parameters the heading is {error:.0f deg} off in the mean',
    'No noise parameter mends that: the inputs do not show which way the robot points.',
    'fuse an orientation, or fuse a lateral speed of zero where the robot cannot move sideways',
)
NO_PARAMETER = assumed(
    'tune.no_parameter',
    'robot_localization has no parameter for the covariances of a topic',
    'The embedded judge takes the factor from case.yaml (--case). The nodes do not.',
    'state {factor:.3g} times the covariance where the messages are made',
)
NODE_AGREES = routine(
    'tune.node_agrees',
    'the node gives the speeds of the search: the largest of {count:d} differences is '
    '{difference:.1g} m/s',
    'The tuned file does on the robot what it did here.',
)
NODE_DIFFERS = assumed(
    'tune.node_differs',
    'the node gives other speeds than the search: of {count:d} estimates at the same time up to '
    '{difference:.3g} m/s away',
    'The gain was found with the embedded filter, and may not be that of the node.',
    'judge the recordings with --judge robot_localization and compare the errors',
)
NODE_FAILS = assumed(
    'tune.node_fails',
    'the node did not judge with the tuned parameters: {problem}',
    'The gain was found with the embedded filter alone.',
    'run --judge robot_localization with the tuned file',
)
