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
