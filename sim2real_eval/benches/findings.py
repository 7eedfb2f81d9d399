# SPDX-License-Identifier: Apache-2.0
"""What the benches may find."""

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


_SPAN = 'averaged over {span:.3g s}, '
_NOISE = '; white noise of {noise:.1g} in this time would explain it'
_MEANING = 'The filter is overconfident because of this sensor.'

GYROSCOPE_OFF = decisive(
    'attitude.gyroscope_off',
    f'{_SPAN}the gyroscope is {{off:.2g rad/s}} off, where its noise explains {{left:.2g}}: it '
    f'has a bias or a scale error, or the truth turns differently{_NOISE}',
    _MEANING,
    'remove the offset of a run that starts at rest with --rest, or set --gyroscope-noise',
)
ACCELEROMETER_OFF = decisive(
    'attitude.accelerometer_off',
    f'{_SPAN}the accelerometer is {{off:.2g m/s^2}} off gravity, where its noise explains '
    f'{{left:.2g}}: the body accelerates, or the sensor has a bias or another mounting{_NOISE}',
    _MEANING,
    'set --acceleration',
)
MAGNETOMETER_OFF = decisive(
    'attitude.magnetometer_off',
    f'{_SPAN}the magnetometer is {{off:.2g T}} off the expected field, where its noise explains '
    f'{{left:.2g}}: magnets, iron, or another field{_NOISE}',
    _MEANING,
    'give the expected field with --world, set --magnetometer-std, or leave the sensor out with '
    '--without magnetometer',
)
CAMERA_OFF = decisive(
    'attitude.camera_off',
    f'{_SPAN}the poses of the camera are {{off:.2g rad}} off the truth, where their covariance '
    f'explains {{left:.2g}}: another frame or mounting, or wrong covariances{_NOISE}',
    _MEANING,
    'leave the camera out with --without camera',
)
NO_SUSPECT = routine(
    'attitude.no_suspect',
    'NEES is {ratio:.2f} times what the filter states, although each sensor is as close to the '
    'truth as its noise says',
    'The cause is not a single sensor.',
    'check the first attitude (--initial-std), the stated covariances, and --between-samples held',
)
SAME_TURN = assumed(
    'attitude.same_orientation',
    'no static transforms in the recording: {frames} assumed to have the orientation of {base}',
    'A mounting angle that is not known becomes an error of the attitude.',
    'give the transforms in recording.yaml',
)
CAMERA_FRAME = assumed(
    'attitude.camera_frame',
    'poses of the camera are in {camera}, the truth in {truth}: assumed to be the same frame',
    'A rotation between the two frames becomes an error of the attitude.',
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
    'sees {noun} of {least:.2g} {unit}, the least that was tried',
    'The smallest error that is seen is smaller.',
)
NOT_THERE = assumed(
    'sensitivity.not_there',
    '{noun} cannot be injected: the messages do not hold the quantity',
    'Nothing is known of what a judge would see.',
    'give sensors that publish it',
)


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
