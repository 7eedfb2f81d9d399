# SPDX-License-Identifier: Apache-2.0
"""What reading a recording may find."""

from __future__ import annotations

from sim2real_eval.common.findings import FindingKind, assumed, decisive, routine

_DRIVER = 'mend it in the driver or the converter; the other messages are used as they are'
_CLOCK = 'let the driver stamp messages when they are measured, by one clock'
_ORDER = 'see whether two publishers share the topic, or the recorder lost the order'


def _dropped(code: str, problem: str, meaning: str, remedy: str = '') -> FindingKind:
    text = f'{problem} ({{count:d}}x, first at stamp {{stamp:d ns}}); dropped'
    return routine(f'recording.{code}', text, meaning, remedy)


STAMP_ZERO = routine(
    'recording.stamp_zero',
    'header stamp is zero ({count:d}x); the receive time is used',
    'The driver does not stamp its messages, so timing is only as good as the receive times.',
    _CLOCK,
)
STAMP_NOT_POSITIVE = _dropped(
    'stamp_not_positive',
    'stamp is not positive',
    'Messages without a usable time are dropped.',
    _CLOCK,
)
STAMP_OFF = _dropped(
    'stamp_off',
    'stamp differs from the receive time by over {limit:d s}',
    'Single messages with a stamp far from the others are a glitch of the clock.',
    _CLOCK,
)
CLOCKS_DRIFT = routine(
    'recording.clocks_drift',
    'stamps and receive times drift apart by {spread:.1f s} ({count:d}x); the stamps are used',
    'Two clocks disagree. Everything is computed with the stamps.',
    _CLOCK,
)
NO_FIX = _dropped('no_fix', 'STATUS_NO_FIX', 'The receiver had no fix; this is a real outage.')
STATUS_UNKNOWN = routine(
    'recording.status_unknown',
    'fix status is unknown (-2) ({count:d}x); kept, as navsat_transform does',
    'The driver does not fill in the status. The fixes are treated as valid.',
)
NO_ALTITUDE = routine(
    'recording.no_altitude',
    'altitude is absent (NaN) ({count:d}x); set to 0 m',
    'The receiver gives no altitude, so the vertical estimate has no meaning.',
    'use two_d_mode',
)
TWO_D_FIX = _dropped(
    'no_altitude_dropped',
    'altitude is absent (NaN)',
    'The receiver had no altitude for a while. navsat_transform does not use such a fix.',
)
FIRST_TWIST = routine(
    'recording.first_twist',
    'the first twists contradict the poses ({count:d}x, up to {speed:.3g m/s} and '
    '{rate:.3g rad/s}, where the poses move at {moved:.3g m/s}); left out',
    "Gazebo's OdometryPublisher takes the way from the origin to the robot for its first step.",
)
NO_ATTITUDE = routine(
    'recording.no_attitude',
    'orientation is all zero ({count:d}x); marked as absent (covariance -1)',
    'The IMU publishes no orientation and does not say so as sensor_msgs/Imu asks.',
)
IDENTITY_ATTITUDE = routine(
    'recording.identity_attitude',
    'orientation is all zero ({count:d}x); set to identity, as ekf_node does',
    'A zero quaternion is no rotation. robot_localization takes it as the identity.',
    _DRIVER,
)
ZERO_ATTITUDE = _dropped(
    'zero_attitude', 'orientation is all zero', 'The truth must have an orientation.', _DRIVER
)
NORM = routine(
    'recording.quaternion_norm',
    'quaternion has norm {norm:g} ({count:d}x); normalised',
    'A rotation has norm 1. robot_localization normalises as well.',
    _DRIVER,
)
NOT_FINITE = _dropped(
    'not_finite',
    '{field} is not finite',
    'NaN, infinity or a number beyond 1e15 in a message.',
    _DRIVER,
)
OUT_OF_RANGE = _dropped(
    'out_of_range',
    '{field} {value:g deg} is outside -{limit:g} .. {limit:g}',
    'No place on Earth has such coordinates.',
    _DRIVER,
)
EXCHANGED = assumed(
    'recording.fixes_exchanged',
    'latitude reaches {value:.1f deg}, which is no latitude, and longitude is within -90 .. 90 '
    '({count:d}x); both are read exchanged',
    'The driver or the converter of the recording fills in one for the other.',
    'set `corrections: {{gps: {{swapped: true}}}}` in recording.yaml',
)
STAMP_AHEAD = _dropped(
    'stamp_ahead',
    'stamp is ahead of the next messages',
    'A single stamp from the future would make all later messages run backwards.',
    _CLOCK,
)
STAMP_BACK = _dropped(
    'stamp_back', 'stamp runs backwards', 'Messages must be ordered in time.', _ORDER
)
STAMP_REPEATED = routine(
    'recording.stamp_repeated',
    'stamp is repeated ({count:d}x); kept, as ekf_node does',
    'Several messages have one stamp. robot_localization processes all of them.',
    _ORDER,
)
TRUTH_REPEATED = _dropped(
    'truth_repeated', 'stamp is repeated', 'The truth must increase strictly in time.', _ORDER
)
GAP = routine(
    'recording.gap',
    'gaps of up to {gap:.3f s} ({count:d}x), the longest {after:.2f s} after the first message '
    '(median period {period:.3f s}); nothing is filled in',
    'Messages are missing. A judge bridges the time by prediction.',
)
ABSENT = routine(
    'recording.quantity_absent',
    '{quantity} is absent (covariance -1) ({count:d}x); a judge skips it',
    'The sensor declares that it does not measure this quantity.',
)
COVARIANCE_ZERO = routine(
    'recording.covariance_zero',
    '{quantity} covariance is all zero (unknown) ({count:d}x); robot_localization uses 1e-9, so '
    'it trusts the measurement completely',
    'A zero covariance means unknown, but robot_localization treats it as exact.',
)
COVARIANCE_NEGATIVE = routine(
    'recording.covariance_negative',
    '{quantity} covariance has a negative variance ({count:d}x); robot_localization takes its '
    'absolute value',
    'A variance cannot be negative; the driver is wrong.',
)
OF_COVARIANCES = (ABSENT, COVARIANCE_ZERO, COVARIANCE_NEGATIVE)
"""What says how robot_localization reads covariances; of no interest to who does not use it."""

CUT_SHORT = routine(
    'recording.cut_short',
    '{found:d} messages found, {announced:d} announced; the file may be truncated',
    'The bag was not closed properly, or the disk was full.',
)
NO_LINE_END = routine(
    'recording.no_line_end',
    'the last line has no end; kept, but the file may be truncated',
    'The last line of the CSV file is incomplete or was written by hand.',
)
LEFT_OUT = routine(
    'recording.topic_left_out',
    '{problem} ({count:d}x); the topic is left out',
    'No role needs the topic, so the rest of the recording is used without it.',
)
UNUSABLE = assumed(
    'recording.role_left_out',
    '{problem}: the recording has no {role}',
    'The rest of the recording is used; whoever needs the role says so.',
    'see whether the driver published, or name another topic with --topic {role}=TOPIC',
)
EMPTY = routine(
    'recording.topic_empty',
    'no messages; the topic is left out',
    'The recorder subscribed to it, but nothing was published.',
)
NO_DEFINITION = routine(
    'recording.no_definition',
    'the bag does not define its type {found}; the topic is left out, others are read',
    'The recorder had no definition of the type. Types that are read need none.',
)
READ_AS_FIX = routine(
    'recording.gps_fix',
    'gps_msgs/GPSFix is read as sensor_msgs/NavSatFix',
    'Position, covariance and status of the fix are used, its speed and track are not.',
)
OTHER_FRAME = routine(
    'recording.other_frame',
    'frame_id is {found}, not {expected} ({count:d}x); dropped',
    'One topic must have one frame. Messages of a rare second frame are dropped.',
)
ONLY_ONE = routine(
    'recording.role_guessed',
    '{default} is missing; this topic is used as {role}, as it is the only one of its type',
    'No topic has the default name, so the role follows from the type.',
    'name the topic in recording.yaml or by option if it is another',
)
SEVERAL = assumed(
    'recording.role_open',
    '{count:d} topics have the type of the {role} and none is {default}, so none of them is the '
    '{role} unless a judge subscribes to one of them alone',
    'The recording does not say which of several sensors counts.',
    'name it in recording.yaml or with --topic {role}=TOPIC',
)
OVERLAP = routine(
    'recording.overlap',
    'topics have {common:.2f s} in common, the longest lasts {longest:.2f s}; only the common '
    'time can be judged',
    'Sensors were started or stopped at different times.',
)
REFERENCE = routine(
    'recording.reference_truth',
    'truth is a reference that {made_by} made from {sensors}; errors against it are too small, '
    'because it is not independent of the sensors',
    'The truth is an estimate made from the recorded sensors themselves.',
)
CORRECTED = routine(
    'recording.corrected',
    'corrected as recording.yaml says: {keys}',
    'The messages are not those of the file; `corrections` in recording.yaml says why.',
)
LOW_PASSED = routine(
    'recording.low_passed',
    'low-passed at {cutoff:g Hz}, as recording.yaml says; positions moved by {moved:.2g mm} rms, '
    'attitudes by {turned:.2g deg} rms',
    'The noise of the truth is removed before sensors are simulated on it.',
)
BAD_TRANSFORM = routine(
    'recording.bad_transform',
    '{frames} is not a transform; dropped',
    'The values are not finite, or the rotation is not a quaternion.',
)
TRANSFORM_TWICE = routine(
    'recording.transform_twice',
    '{frames} is given twice; the later one is used',
    'Two static transforms contradict each other.',
)
TRANSFORM_REPLACED = routine(
    'recording.transform_replaced',
    "replaces the recording's transform {frames}",
    'The given transform file has precedence over the recording.',
)
MOVING_JOINTS = routine(
    'recording.moving_joints',
    'joints that move are taken at zero: {joints}',
    'A URDF does not say the positions of its moving joints.',
)
FRAMES_ASSUMED = assumed(
    'frames.assumed_equal',
    'no static transforms in the recording; frames assumed equal: {frames}',
    'Lever arms and mounting angles are taken as zero.',
    'give the transforms with --transforms or in recording.yaml',
)
TRUTH_NOT_ENU = decisive(
    'truth.not_enu',
    'fixes are {before:.1f m} rms from the truth, but {after:.1f m} if the truth is turned by '
    '{turn:.0f degrees}: the frame of the truth is not east-north-up, so simulated fixes and '
    'start headings are turned against the real ones',
    'Real and simulated runs are judged in different frames.',
    'turn the truth to east-north-up',
)
TRUTH_CHECK = routine(
    'truth.inconsistent',
    '{problem!s}',
    'The parts of the truth (position, velocity, attitude, rate) contradict each other.',
)
TRUTH_NO_FRAME = assumed(
    'truth.no_child_frame',
    'truth has no child frame; assumed to be that of {base}',
    'The truth does not say which point of the vehicle it describes.',
)
TRUTH_ASSUMED = assumed(
    'truth.frame_assumed',
    'truth is given for {child}; assumed equal to {base}, as there are no static transforms',
    'The lever arm between both frames is taken as zero.',
)
TRUTH_FROM_POSES = assumed(
    'truth.from_poses',
    'has poses alone; its velocities are slopes of parabolas through three positions each, at '
    '{rate:.3g Hz}: 1 mm of noise becomes {noise:.2g mm/s}',
    'A topic of poses, two frames of /tf, or a trajectory file holds no velocity.',
    'set truth: {{low_pass: HZ}} in recording.yaml where the poses are noisy',
)
TRUTH_MOVED = routine(
    'truth.moved',
    'truth is given for {child} and moved to {base} by static transforms',
    'The lever arm between both frames is taken into account.',
)
