# SPDX-License-Identifier: Apache-2.0
"""What the pre-flight of a recording may find, and the line that mends it.

A decisive finding fails its check, another one is a warning.
"""

from __future__ import annotations

from sim2real_eval.common.findings import FindingKind, assumed, decisive, routine


def _key(entry: str) -> str:
    """Return the remedy: an entry of `corrections`, with values that are set in total."""
    return f'set `corrections: {{{{{entry}}}}}` in recording.yaml'


def _levels(
    code: str, text: str, meaning: str, remedy: str = ''
) -> tuple[FindingKind, FindingKind]:
    """Declare a warning, and what fails when the same is larger."""
    return (
        routine(f'check.{code}', text, meaning, remedy),
        decisive(f'check.{code}_large', text, meaning, remedy),
    )


MISSING = routine(
    'check.missing',
    'no {role} topic; topics in the recording: {topics}',
    'Without it most of the questions of this tool have no answer.',
    'name it with --topic {role}=TOPIC, or `topics: {{{role}: TOPIC}}` in recording.yaml',
)
FEW_MESSAGES = routine(
    'check.few_messages',
    'too few messages of the {role} ({count:d}) to check its units, axes, delay and covariances',
    'Nothing that the table does not show has been looked at.',
    'record {least:.0f} or more',
)
SHORT = routine(
    'check.short',
    'lasts {duration:.1f s}',
    'A filter takes seconds to converge, so the start dominates the error of a short run.',
    'record 20 s or more, or leave the start out with --warmup',
)
FEW_RUNS = routine(
    'check.few_runs',
    '{runs:d} recordings are too few for significance: the smallest p-value is {least:.2g}',
    'Runs, not samples, are independent: a permutation test of n pairs has 2^n labellings.',
    'record 6 runs or more',
)
SLOW = routine(
    'check.slow',
    '{rate:.3g Hz}, of the {role}',
    'Motion faster than half the rate is lost between two messages.',
    'record the {role} at a higher rate',
)
GAP, GAP_LARGE = _levels(
    'gap',
    'a gap of {gap:.2f s} after {after:.1f s}',
    'Nothing was measured meanwhile. A judge predicts through the gap, and its error grows.',
    'leave this part out, or record with a larger queue',
)
NOISE_FREE_GAP = routine(
    'check.noise_free_gap',
    'a gap of {gap:.2f s} after {after:.1f s}, of the {role}',
    'Simulated sensors measure the motion of the truth meanwhile: no vibration, no contact. A '
    'magnetic field is interpolated.',
    'record it with a larger queue, or leave this part out',
)
UNEVEN = routine(
    'check.uneven_stamps',
    '{share:.0%} of the intervals between stamps are below a fifth of the mean one: the stamps '
    'seem to be those of arrival',
    'Messages that wait in a buffer and are stamped when they leave it have wrong times.',
    'stamp the messages in the driver, at the time of measurement',
)
FROZEN = decisive(
    'check.frozen',
    'the same values for {time:.1f s}, while the sensor should have changed',
    'The driver repeated its last measurement, or the sensor hung.',
    'leave this part out, and look at the driver',
)
SATURATED = decisive(
    'check.saturated',
    '{count:d} measurements of {field} stand at the end of the range, {limit:.4g}',
    'What was beyond the range of the sensor is cut off and lost.',
    'set a larger range of the sensor, and record again',
)
NO_FIX, NO_FIX_LARGE = _levels(
    'no_fix',
    '{share:.0%} of the messages have no fix',
    'The receiver had no position at these times.',
    'record with a clear view of the sky, or leave this part out',
)
FIX_KINDS = routine(
    'check.fix_kinds',
    'only {share:.0%} of the fixes are of the commonest kind, status {status:d}',
    'The accuracy of a receiver changes with the kind of fix.',
    'compare runs with one kind of fix, or choose a GPS model that changes its state',
)
NO_COVARIANCE = decisive(
    'check.no_covariance',
    '{share:.0%} of the covariances of {quantity} are zero or negative; robot_localization uses '
    '1e-9 for zero, so it trusts them completely',
    'A filter weighs measurements by their covariances.',
    _key('{role}: {{{key}: VALUE}}') + ', from the data sheet or `sim2real characterize`',
)
COVARIANCE, COVARIANCE_LARGE = _levels(
    'covariance_small',
    'errors of {quantity} are {error:.2g} rms where the covariance states {stated:.2g}',
    'A filter trusts this sensor too much, and its gates refuse the other ones.',
    _key('{role}: {{{key}: {error:.2g}}}'),
)
TRUTH_OF_FIXES = assumed(
    'check.truth_of_fixes',
    'truth and fixes agree within {error:.1f} mm, closer than receivers are accurate: the truth '
    'was probably made of the fixes',
    'Their errors are in the truth too, so the real GPS seems to be better than it is.',
    'trust the order of the models more than their distance, or take a truth from another source',
)
TRUTH_OF_SMOOTHED_FIXES = assumed(
    'check.truth_of_smoothed_fixes',
    'the truth was probably made of the fixes: they differ from it by {error:.1f mm}, with '
    'only {share:.1%} of the slow errors that an independent truth would show',
    'The slow errors of the fixes are in the truth too, so the real GPS seems to be better than '
    'it is. Against an independent truth, errors of a receiver are white or wander: they have at '
    'least as much power at low as at high frequencies.',
    'trust the order of the models more than their distance, or take a truth from another source',
)
OF_FIXES = TRUTH_OF_FIXES, TRUTH_OF_SMOOTHED_FIXES
PESSIMISTIC = assumed(
    'check.covariance_great',
    'errors of {quantity} are {error:.2g} rms where the covariance states {stated:.2g}',
    'A filter hardly uses this sensor.',
    _key('{role}: {{{key}: {error:.2g}}}') + ', unless it is so large on purpose',
)
MOVING_START = routine(
    'check.moving_start',
    'starts at {speed:.1f m/s}',
    'A filter begins at rest: its first seconds are an error of the filter, not of the sensors.',
    'vepd and study skip the start by themselves; with other commands give --warmup 5',
)

# Truth

TRUTH_NED = decisive(
    'check.truth_ned',
    'north-east-down: positions agree with the fixes once x and y are exchanged',
    'ROS has x east, y north, z up, and x forward, y left, z up in the body.',
    _key('truth: {{axes: {axes}}}'),
)
TRUTH_CAMERA = decisive(
    'check.truth_camera',
    'axes are those of a camera, right, down and forward: so read, positions agree with the fixes',
    'ROS has x east, y north, z up, and x forward, y left, z up in the body.',
    _key('truth: {{axes: {axes}}}'),
)
TRUTH_TURNED, TRUTH_TURNED_LARGE = _levels(
    'truth_turned',
    'turned by {turn:.1f deg} against the fixes',
    'Simulated fixes and start headings are turned against the real ones.',
    _key('truth: {{turn: {set:.1f}}}'),
)
TRUTH_SCALE = decisive(
    'check.truth_scale',
    'distances are {scale:.4g} times what they should be: not metres',
    'Everything that is simulated on this truth is too fast.',
    _key('truth: {{position_scale: {set:.6g}{speeds}}}'),
)
SPEED_SCALE = decisive(
    'check.speed_scale',
    'recorded speeds are {scale:.4g} times the differences of positions{unit}',
    'The error of every estimate is taken against a wrong speed.',
    _key('truth: {{speed_scale: {set:.6g}}}'),
)
WORLD_TWIST = decisive(
    'check.twist_in_world',
    'the twist is in world axes: it differs from the differences of positions by {world:.2g m/s} '
    'as it is, but by {body:.2g m/s} turned by the orientation',
    'nav_msgs/Odometry has the twist in the axes of the body.',
    _key('truth: {{twist: world}}'),
)
TWIST_LATE = decisive(
    'check.twist_late',
    'the twist is {delay:+.2f s} off the differences of positions (positive: late)',
    'The error of every estimate is taken against the speed of another time.',
    _key('truth: {{twist: positions}}'),
)
TWIST_ROUGH = routine(
    'check.twist_rough',
    'errors of the twist make accelerations of {noise:.2g m/s^2} rms',
    'Simulated sensors measure them as motion, and real ones seem to err by them.',
    '{mend}',
)
TWIST_STRAYS = decisive(
    'check.twist_strays',
    'wrong {what}: turned by the orientation, the twist strays by {spread:.0f deg} off the course',
    'Body velocity and specific force of the truth mean nothing where its parts disagree.',
    '{mend}',
)
NO_HEADING = decisive(
    'check.truth_no_heading',
    'orientation changes by {turn:.1f deg} only while the course changes by {course:.0f deg}',
    'Without its heading body velocity and specific force of the truth mean nothing.',
    'record a truth with orientation',
)
HEADING, HEADING_LARGE = _levels(
    'truth_heading',
    'the orientation is off by {turn:.1f deg}: the twist, turned by it, points elsewhere than the '
    'differences of positions',
    'Body velocity and specific force of the truth are turned.',
    _key('truth: {{heading: {set:.1f}}}'),
)
SIDEWAYS = routine(
    'check.truth_sideways',
    'base_link moves at {yaw:.0f deg} to its x axis all the time',
    'Unless the robot moves sideways, the axes of the truth are not those of base_link.',
    _key('truth: {{body_yaw: {set:.1f}}}'),
)
SIDEWAYS_IMU = routine(
    'check.base_sideways',
    'base_link moves at {yaw:.0f deg} to its x axis all the time, and the axes of the IMU agree '
    'with it',
    'Forward speed is taken along x of base_link.',
    'name the frame whose x axis points ahead with --base-frame, unless the robot moves sideways',
)
TRUTH_JUMPS = decisive(
    'check.truth_jumps',
    'jumps of up to {step:.2g m} ({count:d}x)',
    'The truth lost its body, or passes from one solution to another.',
    'leave this part out, or smooth the truth with `truth: {{low_pass: HZ}}` in recording.yaml',
)

TRUTH_SPEED = decisive(
    'check.truth_speed',
    'over {runs:d} straight runs the speed of the truth is {error:+.3f m/s} ({share:+.2%}) off '
    'distance over time of the fixes, 95 % interval {low:+.3f m/s} to {high:+.3f m/s}',
    'The error of every estimate is taken against this speed.',
    'with fixes of an RTK receiver, multiply `speed_scale` of `corrections: {{truth: ...}}` in '
    'recording.yaml by {factor:.6g}',
)
TRUTH_SPEED_UNSURE = routine(
    'check.truth_speed_unsure',
    'the speed of the truth may be {bound:.3f m/s} off: {runs:d} straight runs, each good for '
    '{fixes:.3f m/s} by the covariances of its fixes',
    'A difference between models that is smaller may be an error of the truth.',
    'drive more straight runs of 30 s with an RTK receiver; the paper has 20',
)
FEW_STRAIGHT_RUNS = routine(
    'check.few_straight_runs',
    'straight runs of {seconds:g s} with truth and fixes: {runs:d}',
    'The speed of the truth needs two or more to be held against distance over time.',
    'drive straight for so long, or give --straight a shorter time',
)

# Fixes

SWAPPED = decisive(
    'check.fixes_swapped',
    'latitude and longitude are exchanged: the track agrees with the truth as in a mirror',
    'The fixes lie elsewhere on the Earth.',
    _key('{role}: {{swapped: {swapped}}}'),
)
FIXES_LATE, FIXES_LATE_LARGE = _levels(
    'fixes_late',
    'stamps of fixes are {delay:+.2f s} off those of the truth (positive: late)',
    'At speed v a fix is that time v behind.',
    _key('{role}: {{delay: {set:.3f}}}'),
)
OTHER_CLOCK = decisive(
    'check.other_clock',
    'stamps begin and end {shift:+.1f s} off those of the truth (positive: late), as those of '
    'another clock do',
    'GPS time is 18 s ahead of UTC; clocks of computers that nothing sets differ by anything.',
    _key('{role}: {{delay: {set:.3f}}}'),
)
FIX_JUMPS = routine(
    'check.fix_jumps',
    'jumps of up to {step:.1f m} against the truth ({count:d}x)',
    'Multipath, or a change of the solution of the receiver.',
    'set a `rejection_threshold` of the judge, or leave this part out',
)

# IMU

ACCELERATION_UNIT = decisive(
    'check.acceleration_unit',
    'specific force is {force:.4g} at rest, not 9.81 m/s^2: the unit is {unit}',
    'sensor_msgs/Imu has m/s^2.',
    _key('{role}: {{acceleration_scale: {set:.6g}}}'),
)
NO_GRAVITY = decisive(
    'check.no_gravity',
    'mean specific force is {force:.2g m/s^2}: gravity has been removed',
    'robot_localization removes gravity once more, which leaves an acceleration of 9.81 m/s^2.',
    'set `imu0_remove_gravitational_acceleration: false` in the parameters of the judge, or '
    'record the raw acceleration',
)
NOISE_FREE_NO_GRAVITY = decisive(
    'check.noise_free_no_gravity',
    'mean specific force is {force:.2g m/s^2}: gravity has been removed',
    'A simulated accelerometer measures this, which has no gravity then.',
    'have the simulator publish what an accelerometer feels, or do without it by `topics: '
    '{{ideal_imu: null}}` in recording.yaml',
)
GRAVITY_SCALE, GRAVITY_SCALE_LARGE = _levels(
    'gravity_scale',
    'specific force is {force:.4g m/s^2} in the mean, {scale:.3g} times what it should be',
    'Bias or scale of the accelerometer.',
    _key('{role}: {{acceleration_scale: {set:.6g}}}'),
)
FORCE_REVERSED = decisive(
    'check.force_reversed',
    'specific force points down at rest while rates have the right sign',
    'sensor_msgs/Imu has +9.81 on the axis that points up at rest.',
    _key('{role}: {{acceleration_scale: {set:.6g}}}'),
)
RATE_REVERSED = decisive(
    'check.rate_reversed',
    'rates have the wrong sign: they turn left where the truth turns right',
    'sensor_msgs/Imu has right-handed axes.',
    _key('{role}: {{rate_scale: {set:.6g}}}'),
)
RATE_UNIT = decisive(
    'check.rate_unit',
    'rates are {scale:.3g} times those of the truth: degrees per second',
    'sensor_msgs/Imu has rad/s.',
    _key('{role}: {{rate_scale: {set:.6g}}}'),
)
RATE_SCALE, RATE_SCALE_LARGE = _levels(
    'rate_scale',
    'rates are {scale:.3g} times those of the truth',
    'Scale error of the gyroscope: headings are off by that share of every turn.',
    _key('{role}: {{rate_scale: {set:.6g}}}'),
)
RATE_BIAS, RATE_BIAS_LARGE = _levels(
    'rate_bias',
    'rates are off by {bias:.2g rad/s} in the mean',
    'A heading that is integrated drifts by this rate.',
    _key('{role}: {{rate_bias: [{x:.4f}, {y:.4f}, {z:.4f}]}}'),
)
IMU_LATE, IMU_LATE_LARGE = _levels(
    'imu_late',
    'stamps are {delay:+.2f s} off those of the truth (positive: late)',
    'In a turn the heading is that time behind.',
    _key('{role}: {{delay: {set:.3f}}}'),
)
TILTED, TILTED_LARGE = _levels(
    'imu_tilted',
    'gravity is {tilt:.0f deg} off the axis that should point up: the axes measured in have roll '
    '{roll:.0f}, pitch {pitch:.0f}, yaw {yaw:.0f} degrees in {frame}',
    'One degree of tilt leaves 0.17 m/s^2 of gravity in the horizontal acceleration.',
    _key('{role}: {{rotation: [{roll:.4g}, {pitch:.4g}, {yaw:.4g}]}}')
    + ', or the rotation of the static transform of {frame}',
)
IMU_YAW, IMU_YAW_LARGE = _levels(
    'imu_yaw',
    'accelerations and rates are turned by {turn:.0f deg} about the vertical: another mounting '
    'than {frame} has',
    'Accelerations point in a wrong direction.',
    _key('{role}: {{rotation: [{roll:.4g}, {pitch:.4g}, {yaw:.4g}]}}')
    + ', or the rotation of the static transform of {frame}',
)
ORIENTATION_NED = decisive(
    'check.orientation_ned',
    'the published heading counts from north, clockwise: the orientation is north-east-down',
    'sensor_msgs/Imu and robot_localization have x east, y north, z up (REP 103).',
    _key('imu: {{axes: {axes}, orientation_rotation: [{rotation}]}}'),
)
ORIENTATION_YAW, ORIENTATION_YAW_LARGE = _levels(
    'orientation_yaw',
    'the published heading is {turn:.0f deg} off that of the truth',
    'The filter takes it as measured, and navsat_transform turns the fixes by it. Usual causes: '
    'heading from north, from the start, or without magnetic declination.',
    _key('imu: {{heading: {set:.1f}}}'),
)
ORIENTATION_TILT = decisive(
    'check.orientation_tilt',
    'the published orientation has the vertical {tilt:.0f deg} off gravity',
    'Gravity is removed in a wrong direction.',
    'publish the orientation of the axes that accelerations are measured in',
)
ORIENTATION_STRAYS = decisive(
    'check.orientation_strays',
    'the published orientation does not follow the truth: the heading strays by {spread:.0f deg}',
    'The filter takes it as measured.',
    'say that there is none: -1 in the first element of its covariance',
)
ORIENTATION_UNSET = decisive(
    'check.orientation_unset',
    'no orientation, but one is stated: the identity in every message',
    'Filters take it for a heading due east. Logs of Gazebo leave it so.',
    'say that there is none: -1 in the first element of its covariance',
)
NO_ORIENTATION = routine(
    'check.no_orientation',
    'no orientation (covariance -1)',
    'The filter starts eastward, whatever the vehicle does.',
    'vepd, study and judge give the true heading by themselves; with other commands give '
    '--start-heading',
)
