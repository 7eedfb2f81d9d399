# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Findings about recordings, of `repairs.py`, `reading.py`, `rosbag.py` and `truth.py`."""

from __future__ import annotations

from sim2real_eval.common.findings import assumed, decisive, routine

_DROPPED = '{problem!s} ({count:d}x, first at stamp {stamp:d ns}); dropped'
_DRIVER = 'correct the driver or the converter; the other messages are used unchanged'
_CLOCK = 'let the driver stamp messages at the time of measurement with one clock'
_ORDER = 'check whether two publishers share the topic or the recorder changed the order'

STAMP_ZERO = routine(
    'recording.stamp_zero',
    'header stamp is zero ({count:d}x); the receive time is used',
    'The driver does not stamp its messages, so timing is only as good as the receive times.',
    _CLOCK,
)
BAD_STAMP = routine(
    'recording.bad_stamp',
    _DROPPED,
    'A stamp is not positive, or far from the receive time while others are not.',
    _CLOCK,
)
STAMP_NANOSEC = routine(
    'recording.stamp_nanosec',
    'nanosec of the header stamp is {value:d}, which is not below 1e9 ({count:d}x); from 2^31 on '
    'it is read as a negative number',
    'The driver wrote a negative or too large fraction of a second into an unsigned field.',
    _CLOCK,
)
CLOCKS_DRIFT = routine(
    'recording.clocks_drift',
    'stamps and receive times drift apart by {spread:.1f s} ({count:d}x); the stamps are used',
    'Two clocks disagree. Everything is computed with the stamps.',
    _CLOCK,
)
STAMP_AHEAD = routine(
    'recording.stamp_ahead',
    _DROPPED,
    'A single stamp in the future would make all later messages seem late.',
    _CLOCK,
)
STAMP_ORDER = routine(
    'recording.stamp_order',
    _DROPPED,
    'A stamp runs backwards, or the truth repeats a stamp.',
    _ORDER,
)
STAMP_REPEATED = routine(
    'recording.stamp_repeated',
    'stamp is repeated ({count:d}x); kept, as ekf_node does',
    'Several messages have one stamp. robot_localization processes all of them.',
    _ORDER,
)
NO_FIX = routine('recording.no_fix', _DROPPED, 'The receiver had no fix; this is a real outage.')
STATUS_UNKNOWN = routine(
    'recording.status_unknown',
    'fix status is unknown (-2) ({count:d}x); kept, as navsat_transform does',
    'The driver does not fill in the status. The fixes are treated as valid.',
)
NO_ALTITUDE = routine(
    'recording.no_altitude',
    'altitude is absent (NaN) ({count:d}x); set to 0 m',
    'The receiver gives no altitude, so the vertical estimate has no meaning.',
    'set `two_d_mode: true` in the parameters of the judge',
)
ALTITUDE_GAPS = routine(
    'recording.no_altitude_dropped',
    _DROPPED,
    'No altitude for a while; navsat_transform drops such fixes.',
)
FIRST_TWIST = routine(
    'recording.first_twist',
    'the first twists contradict the poses ({count:d}x, up to {speed:.3g m/s} and '
    '{rate:.3g rad/s}, where the poses move at {moved:.3g m/s}); left out',
    "Gazebo's OdometryPublisher takes the path from the origin to the robot as its first step.",
)
NO_ATTITUDE = routine(
    'recording.no_attitude',
    'orientation is all zero ({count:d}x); {treatment}',
    'A zero quaternion is no rotation. robot_localization takes it as the identity; in an IMU '
    'message it means that there is no orientation.',
    'correct the driver or the converter',
)
NORM = routine(
    'recording.quaternion_norm',
    'quaternion has norm {norm:g} ({count:d}x); normalised',
    'A rotation has norm 1. robot_localization normalises as well.',
    _DRIVER,
)
BAD_VALUE = routine(
    'recording.bad_value',
    _DROPPED,
    'A value is not finite or above 1e15, not on Earth, or a zero orientation of the truth.',
    _DRIVER,
)
FIELD_LEFT_OUT = routine(
    'recording.field_left_out',
    '{field} is not finite ({count:d}x, first at stamp {stamp:d ns}); {treatment}; the rest of '
    'the message is used',
    'One field of a message is NaN, infinite or above 1e15.',
    _DRIVER,
)
COVARIANCE_FILLED = routine(
    'recording.covariance_filled',
    '{quantity} covariance is not finite ({count:d}x); the last finite variances are used, and '
    '1e15 for infinity',
    'The covariance of a message is NaN or infinite. The values beside it are used.',
    _DRIVER,
)
COVARIANCE_ASSUMED = assumed(
    'recording.covariance_assumed',
    '{quantity} covariance is missing or not finite ({count:d}x); a standard deviation of '
    '{deviation} is assumed',
    'No message has a finite covariance. A filter weighs measurements by their covariances.',
    '{remedy}',
)
NOTHING_MEASURED = decisive(
    'recording.nothing_measured',
    'all covariances are -1 ({count:d}x), which states that nothing is measured: '
    'robot_localization skips every message',
    'A driver that does not know its covariances may have written -1, which means that the '
    'quantity itself is absent.',
    'set `corrections: {{imu: {{rate_std: 0.01, acceleration_std: 0.1}}}}` in recording.yaml, '
    'with the standard deviations of the sensor in rad/s and m/s^2',
)
EXCHANGED = assumed(
    'recording.fixes_exchanged',
    'latitude reaches {value:.1f deg}, which is no latitude, and longitude is within -90 .. 90 '
    '({count:d}x); both are exchanged',
    'The driver or the converter of the recording exchanged latitude and longitude.',
    'set `corrections: {{gps: {{swapped: true}}}}` in recording.yaml',
)
GAP = routine(
    'recording.gap',
    'gaps of up to {gap:.3f s} ({count:d}x), the longest {after:.2f s} after the first message '
    '(median period {period:.3f s}); nothing is filled in',
    'Messages are missing. A judge bridges the gap by prediction.',
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
COVARIANCE_KINDS = (ABSENT, COVARIANCE_ZERO, COVARIANCE_NEGATIVE)
"""Findings on how robot_localization reads covariances, which other judges may not do."""

CUT_SHORT = routine(
    'recording.cut_short',
    '{problem!s}; the file may be truncated',
    'The bag holds fewer messages than it announces, or the last CSV line is incomplete.',
)
LEFT_OUT = routine(
    'recording.topic_left_out',
    '{problem}; the topic is left out',
    'No role needs the topic, so the rest of the recording is used without it.',
)
UNUSABLE = assumed(
    'recording.role_left_out',
    '{problem}: the recording has no {role}',
    'The rest of the recording is used. A command that needs the role reports it.',
    'check the driver and its clock, or name another topic with --topic {role}=TOPIC',
)
NO_DEFINITION = routine(
    'recording.no_definition',
    'the bag does not define its type {found}; the topic is left out, others are read',
    'The recorder had no definition of the type. Supported types need none.',
)
METADATA_UNUSED = routine(
    'recording.metadata_unused',
    'metadata.yaml is not used: {problem} The files beside it are read',
    'metadata.yaml names no known storage or serialisation, but the files themselves can be read.',
    'rebuild it with `ros2 bag reindex`',
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
    'if another topic is meant: --topic {role}=TOPIC, or `topics: {{{role}: TOPIC}}` in '
    'recording.yaml',
)
SEVERAL = assumed(
    'recording.role_open',
    '{count:d} topics have the type of the {role} and none is named {default}; only a '
    'topic to which a judge subscribes is used as the {role}',
    'The recording does not say which of several sensors is to be used.',
    'name it with --topic {role}=TOPIC, or `topics: {{{role}: TOPIC}}` in recording.yaml',
)
OVERLAP = routine(
    'recording.overlap',
    'topics have {common:.2f s} in common, the longest lasts {longest:.2f s}; only the common '
    'time can be judged',
    'Sensors were started or stopped at different times.',
)
REFERENCE = routine(
    'recording.reference_truth',
    'the truth is a reference computed by {made_by} from {sensors}; errors against it '
    'are too small, because it is not independent of the sensors',
    'The truth is an estimate made from the recorded sensors themselves.',
)
CORRECTED = routine(
    'recording.corrected',
    'changed as recording.yaml states: {change!s}',
    'The messages differ from those of the file, because `corrections` or `truth: '
    'low_pass` in recording.yaml changes them.',
)
TRANSFORM = routine(
    'recording.transform',
    '{problem}',
    'A static transform is invalid, is given twice, is replaced by the transform file, '
    'or belongs to a moving joint.',
)
FRAMES_ASSUMED = assumed(
    'frames.assumed_equal',
    'no static transforms in the recording; frames assumed equal: {frames}',
    'Lever arms and mounting angles are taken as zero.',
    'give the transforms with --transforms FILE, or `lever_arms: {{gps: [X, Y, Z]}}` (m, measured '
    'on the vehicle) in recording.yaml',
)
TRUTH_NOT_ENU = decisive(
    'truth.not_enu',
    'fixes are {before:.1f m} rms from the truth, but {after:.1f m} if the truth is turned by '
    '{turn:.0f degrees}: the frame of the truth is not east-north-up, so simulated fixes and '
    'start headings are turned against the real ones',
    'Real and simulated runs are judged in different frames.',
    'set `corrections: {{truth: {{turn: VALUE}}}}` in recording.yaml; `sim2real check` prints the '
    'VALUE',
)
TRUTH_CHECK = routine(
    'truth.inconsistent',
    '{problem!s}',
    'The parts of the truth (position, velocity, attitude, rate) contradict each other.',
)
TRUTH_ASSUMED = assumed(
    'truth.frame_assumed',
    '{problem}; assumed equal to {base}',
    'The truth does not name the frame that it describes, or no static transform gives the lever '
    'arm, which is taken as zero.',
)
TRUTH_FROM_POSES = assumed(
    'truth.from_poses',
    'has only poses at {rate:.3g Hz}; velocities are derived from parabolas through '
    'three positions: 1 mm of noise becomes {noise:.2g mm/s}',
    'A topic of poses, two frames of /tf, or a trajectory file holds no velocity.',
    'if the poses are noisy: `truth: {{low_pass: VALUE}}` (Hz, above the frequencies of the '
    'motion) in recording.yaml',
)
TRUTH_MOVED = routine(
    'truth.moved',
    'truth is given for {child} and moved to {base} by static transforms',
    'The lever arm between both frames is taken into account.',
)
