# SPDX-License-Identifier: Apache-2.0
"""Findings of the benches."""

from __future__ import annotations

from sim2real_eval.common.findings import assumed, decisive, routine

WAYPOINTS = routine(
    'waypoints.repaired', '{problem!s}', 'Waypoints that no vehicle can follow are left out.'
)


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


SENSOR_OFF = decisive(
    'attitude.sensor_off',
    'averaged over {span:.3g s}, its measurements are {off:.2g} {unit} off, where its noise '
    'explains {explained:.2g}: {causes}; white noise of {noise:.1g} in this time would explain it',
    'The filter is overconfident because of this sensor.',
    '{action}',
)
NO_SUSPECT = routine(
    'attitude.no_suspect',
    'NEES is {ratio:.2f} times what the filter states, although each sensor is as close to the '
    'truth as its noise says',
    'The cause is not a single sensor.',
    'check the first attitude (--initial-std), the stated covariances, and --between-samples held',
)
SAME_FRAME = assumed(
    'attitude.same_frame',
    '{frames} assumed to have the same orientation as {reference}',
    'An unknown rotation between the frames becomes an error of the attitude.',
    'give the transforms in recording.yaml',
)


SMALLEST = decisive(
    'sensitivity.smallest',
    'would not have seen {noun} below {size:.2g} {unit} (95 % interval {low:.2g} to {high:.2g}) '
    'in {runs:d} runs, at {power:g %} power',
    'A smaller error of a sensor model stays hidden in most studies of so many runs with this '
    'judge.',
)
JUMP = decisive(
    'sensitivity.jump',
    'sees {noun} of {size:.3g} {unit} at {after:.0f %} power in {runs:d} runs, but {low:.3g} '
    '{unit} at {before:.0f %}: {power:g %} lies in a jump',
    'A gate or timeout may begin to refuse messages there. No size has the wanted power.',
)
UNSEEN = decisive(
    'sensitivity.unseen',
    'would not have seen {noun} of {most:.2g} {unit} in {runs:d} runs: {found:.0f %} power, less '
    'than {power:g %}',
    'The judge does not use the measurement, refuses it, or has better ones.',
    'do not conclude from its VEPD that a model has no such error',
)
AT_ONCE = assumed(
    'sensitivity.at_once',
    'sees {noun} of {least:.2g} {unit}, the smallest size that was tried',
    'The smallest error that it sees is smaller.',
)
NOT_THERE = assumed(
    'sensitivity.not_there',
    '{noun} cannot be injected: the messages do not hold the quantity',
    'It is unknown whether the judge would see the error.',
    'give sensors that publish it',
)


BETTER = decisive(
    'tune.better',
    '{changed:d} of {tried:d} parameters changed: {error} is better by {gain} on held-out blocks '
    'of recordings ({level:g} % interval {low} to {high})',
    'The tuned file is better on recordings that it was not tuned to. A gain without per cent is '
    'a difference of natural logarithms.',
)
UNCHANGED = decisive(
    'tune.unchanged',
    'none of {tried:d} parameters changed: {reason}',
    'The tuned file is the given one.',
    'use more recordings, or try other or fewer --parameters',
)
OVER_FITS = assumed(
    'tune.over_fits',
    'gain {training} on the recordings of the search, {gain} on held-out blocks of recordings: '
    'the rest is over-fitting',
    'The values follow the noise of their recordings.',
    'use more recordings, or fewer --parameters',
)
AT_BOUND = assumed(
    'tune.at_bound',
    '{value} is a bound of the search',
    'The best value may lie beyond.',
    'tune again from the tuned file',
)
SAME_DRIVES = assumed(
    'tune.same_drives',
    'the {blocks:d} blocks are parts of fewer drives ({drives:d}): the interval holds for these',
    'Recordings that follow each other are one drive. They share place, weather and mounting, '
    'which are never held out.',
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
    'The tuned file has the same effect on the robot.',
)
NODE_DIFFERS = assumed(
    'tune.node_differs',
    'the node does not give the speeds of the search: {problem}',
    'The gain was found with the embedded filter, and may not be that of the node.',
    'judge the recordings with --judge robot_localization and the tuned file',
)
