# SPDX-License-Identifier: Apache-2.0
"""What the attitude bench may find."""

from __future__ import annotations

from sim2real_eval.common.findings import assumed, decisive, routine

_SPAN = 'averaged over {span:.3g s}, '

GYROSCOPE_OFF = decisive(
    'attitude.gyroscope_off',
    f'{_SPAN}the gyroscope is {{off:.2g rad/s}} off, where its noise explains {{left:.2g}}: it '
    'has a bias or a scale error, or the truth turns differently',
    'The filter is overconfident because of this sensor.',
    'remove the offset of a run that starts at rest with --rest, or trust the sensor less with '
    '--gyroscope-noise',
)
ACCELEROMETER_OFF = decisive(
    'attitude.accelerometer_off',
    f'{_SPAN}the accelerometer is {{off:.2g m/s^2}} off gravity, where its noise explains '
    '{left:.2g}: the body accelerates, or the sensor is biased or mounted differently; white '
    'noise of {noise:.1g m/s^2/sqrt(Hz)} would explain it',
    'The filter is overconfident because of this sensor.',
    'trust the sensor less with --acceleration',
)
MAGNETOMETER_OFF = decisive(
    'attitude.magnetometer_off',
    f'{_SPAN}the magnetometer is {{off:.2g T}} off the expected field, where its noise explains '
    '{left:.2g}: magnets, iron, or another field',
    'The filter is overconfident because of this sensor.',
    'give the expected field with --world, trust the sensor less with --magnetometer-noise, or '
    'leave it out with --without magnetometer',
)
CAMERA_OFF = decisive(
    'attitude.camera_off',
    f'{_SPAN}the poses of the camera are {{off:.2g rad}} off the truth, where their covariance '
    'explains {left:.2g}: another frame or mounting, or wrong covariances',
    'The filter is overconfident because of this sensor.',
    'leave the camera out with --without camera',
)
NO_SUSPECT = routine(
    'attitude.no_suspect',
    'NEES is {ratio:.2f} times what the filter states, although each sensor is as close to the '
    'truth as its noise says',
    'The cause is not a single sensor.',
    'check the first attitude (--initial-std), the stated covariances, and --rate held',
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
