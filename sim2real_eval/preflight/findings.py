# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Findings of the pre-flight, with remedies. Decisive ones fail their check, others warn."""

from __future__ import annotations

from sim2real_eval.common.findings import FindingKind, assumed, decisive, routine


def _key(entry: str) -> str:
    """Return a remedy that sets an entry of `corrections`."""
    return f'set `corrections: {{{{{entry}}}}}` in recording.yaml'


_DO_NOT_FUSE = (
    'do not fuse it: sixth element (yaw) of `imu0_config` false in the parameters of '
    'robot_localization, or publish -1 in `orientation_covariance[0]`'
)


def _covariance_key(entry: str, source: str = '') -> str:
    """Return a remedy that sets a deviation for judges that read covariances."""
    return f'if the judge reads covariances, as robot_localization does: {_key(entry)}{source}'


def levels(
    code: str, text: str, meaning: str, remedy: str = ''
) -> tuple[FindingKind, FindingKind]:
    """Declare a warning, and a failure for a larger value of the same kind."""
    return (
        routine(f'check.{code}', text, meaning, remedy),
        decisive(f'check.{code}_large', text, meaning, remedy),
    )


MISSING = routine(
    'check.missing',
    'no {role} topic; topics in the recording: {topics}',
    'Most checks, and VEPD, need it.',
    'name it with --topic {role}=TOPIC, or `topics: {{{role}: TOPIC}}` in recording.yaml',
)
UNUSABLE = routine(
    'check.unusable',
    '{problem}; so the recording has no {role}',
    'Most checks, and VEPD, need it. The topic exists, but too few of its messages are valid.',
    'correct the driver or its clock and record again, cut the recording where its time goes '
    'back, or name another topic with --topic {role}=TOPIC',
)
FEW_MESSAGES = routine(
    'check.few_messages',
    'too few messages of the {role} ({count:d}) to check its units, axes, delay and covariances',
    'Checks that are not in the table were skipped.',
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
    'the rate of the {role} is {rate:.3g Hz}',
    'Motion faster than half the rate is lost between two messages.',
    'record the {role} at a higher rate',
)
GAP, GAP_LARGE = levels(
    'gap',
    'a gap of {gap:.2f s} after {after:.1f s}',
    'Nothing was measured meanwhile. A judge predicts through the gap, and its error grows.',
    'leave this part out, or record with a larger queue',
)
NOISE_FREE_GAP = routine(
    'check.noise_free_gap',
    'the {role} has a gap of {gap:.2f s} after {after:.1f s}',
    'During the gap simulated sensors measure the motion of the truth, without vibration and '
    'contacts. A magnetic field is interpolated.',
    'record it with a larger queue, or leave this part out',
)
LOST = routine(
    'check.lost',
    '{count:d} messages ({share:.1%}) are missing between the others',
    'A judge predicts over the missing samples, and its error grows in turns.',
    'record with a larger queue, or look for dropped messages in the driver',
)
UNEVEN = routine(
    'check.uneven_stamps',
    '{share:.0%} of the intervals between stamps are below a fifth of the mean: the stamps '
    'seem to be times of arrival',
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
    '{count:d} measurements of {field} are at the end of the range, {limit:.4g}',
    'Values beyond the range of the sensor are lost.',
    'choose a larger range of the sensor, and record again',
)
NO_FIX, NO_FIX_LARGE = levels(
    'no_fix',
    '{share:.0%} of the messages have no fix',
    'The receiver had no position at these times.',
    'record with a clear view of the sky, or leave this part out',
)
FIX_KINDS = routine(
    'check.fix_kinds',
    'only {share:.0%} of the fixes have the most frequent status, {status:d}',
    'The accuracy of a receiver changes with the status of its fix.',
    'compare runs with one fix status, or choose a GPS model that changes its state',
)
NO_COVARIANCE = decisive(
    'check.no_covariance',
    '{share:.0%} of the covariances of {quantity} are zero or negative; robot_localization uses '
    '1e-9 for zero, so it trusts them completely',
    'A filter weighs measurements by their covariances.',
    _covariance_key(
        '{role}: {{{key}: VALUE}}',
        ', VALUE in {unit} from the data sheet or from `sim2real characterize`',
    ),
)
NO_ORIENTATION_COVARIANCE = routine(
    'check.no_orientation_covariance',
    '{share:.0%} of the covariances of orientation are zero or negative; robot_localization uses '
    '1e-9 for zero, so it trusts them completely',
    'It matters if the judge fuses the orientation.',
    _covariance_key(
        'imu: {{orientation_std: VALUE}}', ', VALUE in rad from the data sheet, or do not fuse it'
    ),
)
COVARIANCE, COVARIANCE_LARGE = levels(
    'covariance_small',
    'errors of {quantity} are {error:.2g} rms where the covariance states {stated:.2g}',
    'A filter trusts this sensor too much, and rejects the others.',
    _covariance_key('{role}: {{{key}: {error:.2g}}}'),
)
TRUTH_OF_FIXES = assumed(
    'check.truth_of_fixes',
    'truth and fixes agree within {error:.1f} mm, which no receiver achieves: the truth '
    'was probably computed from the fixes',
    'The truth shares the errors of the fixes, so the real GPS seems to be better than it is.',
    'trust the order of the models more than their distance, or use another source of truth',
)
TRUTH_OF_SMOOTHED_FIXES = assumed(
    'check.truth_of_smoothed_fixes',
    'the truth was probably computed from the fixes: they differ from it by {error:.1f mm}, with '
    'only {share:.1%} of the slow errors that an independent truth would show',
    'The truth shares the slow errors of the fixes, so the real GPS seems to be better than it '
    'is. Relative to an independent truth, errors of a receiver are white or wander: they have at '
    'least as much power at low as at high frequencies.',
    'trust the order of the models more than their distance, or use another source of truth',
)
OF_FIXES = TRUTH_OF_FIXES, TRUTH_OF_SMOOTHED_FIXES
PESSIMISTIC = assumed(
    'check.covariance_large',
    'errors of {quantity} are {error:.2g} rms where the covariance states {stated:.2g}',
    'A filter hardly uses this sensor. A single recording does not show slow errors, so no value '
    'is proposed.',
    'unless it is deliberately large, and '
    + _covariance_key(
        '{role}: {{{key}: VALUE}}',
        ', VALUE in {unit} from the data sheet, not the rms of one recording',
    ),
)
MOVING_START = routine(
    'check.moving_start',
    'starts at {speed:.1f m/s}',
    'A filter begins at rest: its first seconds are an error of the filter, not of the sensors.',
    'vepd and study leave out the start automatically; fit, tune, sensitivity and transfer do it '
    'with --warmup 5',
)

# Truth

TRUTH_NED = decisive(
    'check.truth_ned',
    'the axes are north-east-down: only then do positions agree with the fixes',
    'ROS has x east, y north, z up, and x forward, y left, z up in the body.',
    _key('truth: {{axes: {axes}}}'),
)
TRUTH_CAMERA = decisive(
    'check.truth_camera',
    'the axes are those of a camera, right, down and forward: only then do positions agree with '
    'the fixes',
    'ROS has x east, y north, z up, and x forward, y left, z up in the body.',
    _key('truth: {{axes: {axes}}}'),
)
TRUTH_DOWN = decisive(
    'check.truth_down',
    'heights of the truth fall while those of the fixes rise (correlation {correlation:.2f}): z '
    'points down',
    'ROS has z up. The vertical velocity and the specific force of the truth have the wrong sign.',
    'record a truth with z up',
)
TRUTH_QUATERNION = decisive(
    'check.truth_quaternion',
    'the orientation tilts by {tilt:.0f deg}, which rates and forces of the IMU contradict; with '
    'its quaternion in the order w x y z they agree',
    'Body velocity and specific force of the truth mean nothing with a wrong orientation.',
    'write the quaternion of the truth in the order x y z w',
)
TRUTH_TURNED, TRUTH_TURNED_LARGE = levels(
    'truth_turned',
    'turned by {turn:.1f deg} relative to the fixes',
    'Simulated fixes and start headings are turned relative to the real ones.',
    _key('truth: {{turn: {set:.1f}}}'),
)
TRUTH_SCALE = decisive(
    'check.truth_scale',
    'distances are {scale:.4g} times those of the fixes or of the speeds: the unit is not metres',
    'Everything that is simulated on this truth is too fast.',
    _key('truth: {{position_scale: {set:.6g}{speeds}}}'),
)
SPEED_SCALE = decisive(
    'check.speed_scale',
    'recorded speeds are {scale:.4g} times the differences of positions{unit}',
    'The error of every estimate is relative to this wrong speed.',
    _key('truth: {{speed_scale: {set:.6g}}}'),
)
NO_TWIST = assumed(
    'check.truth_no_twist',
    'all velocities are zero while positions move at {speed:.2g m/s}; they are derived from the '
    'positions',
    'The true speed contains the noise of the positions.',
    _key('truth: {{twist: positions}}'),
)
NO_ATTITUDE = decisive(
    'check.truth_no_attitude',
    'roll and pitch are constant while the IMU turns by {turn:.0f deg} about the horizontal axes',
    'Simulated sensors measure a level motion, and attitudes of real ones seem to be wrong.',
    'record a truth with roll and pitch',
)
SPEED_OR_POSITIONS = routine(
    'check.speed_or_positions',
    'recorded speeds are {scale:.4g} times the differences of positions, and there are no '
    'fixes to show which of the two is wrong',
    'The error of every estimate is relative to this speed.',
    'compare the truth with fixes, or with a distance that you know',
)
WORLD_TWIST = decisive(
    'check.twist_in_world',
    'the twist is in the axes of the world: read in these, it differs from the differences of '
    'positions by {world:.2g m/s}, but read in the axes of the body by {body:.2g m/s}',
    'nav_msgs/Odometry has the twist in the axes of the body.',
    _key('truth: {{twist: world}}'),
)
TWIST_LATE = decisive(
    'check.twist_late',
    'the twist is {delay:+.2f s} off the differences of positions (positive: late)',
    'Every estimate is compared with the speed at another time.',
    _key('truth: {{twist: positions}}'),
)
TRUTH_ROUGH = routine(
    'check.truth_rough',
    'noise of the truth causes {quantity} of {noise:.2g} {unit} rms',
    'Simulated sensors measure this noise as motion, and real sensors seem to have it as error.',
    '{mend}',
)
TWIST_STRAYS = decisive(
    'check.twist_strays',
    'the {what} is wrong: the twist, turned by the orientation, strays by {spread:.0f deg} from '
    'the track',
    'Body velocity and specific force of the truth mean nothing where its parts disagree.',
    '{mend}',
)
NO_HEADING = decisive(
    'check.truth_no_heading',
    'the orientation changes by only {turn:.1f deg} while the course changes by {course:.0f deg}',
    'Without a heading, body velocity and specific force of the truth mean nothing.',
    'record a truth with orientation',
)
HEADING, HEADING_LARGE = levels(
    'truth_heading',
    'the orientation is off by {turn:.1f deg}: the velocity, turned by it, has another direction '
    'than the track',
    'Body velocity and specific force of the truth are turned.',
    _key('truth: {{heading: {set:.1f}}}'),
)
SIDEWAYS = routine(
    'check.truth_sideways',
    'base_link always moves at an angle of {yaw:.0f deg} to its x axis',
    'Unless the robot moves sideways, the axes of the truth are not those of base_link.',
    _key('truth: {{body_yaw: {set:.1f}}}'),
)
SIDEWAYS_IMU = routine(
    'check.base_sideways',
    'base_link always moves at an angle of {yaw:.0f deg} to its x axis, and the axes of the IMU '
    'agree with it',
    'Forward speed is taken along x of base_link.',
    'name the frame whose x axis points ahead with --base-frame, unless the robot moves sideways',
)
TRUTH_JUMPS = decisive(
    'check.truth_jumps',
    'jumps of up to {step:.2g m} ({count:d}x)',
    'Motion capture lost the body, or the source of the truth changed its solution.',
    'leave this part out, or smooth the truth with `truth: {{low_pass: VALUE}}` (Hz, above the '
    'frequencies of the motion) in recording.yaml',
)

TRUTH_SPEED = decisive(
    'check.truth_speed',
    'over {runs:d} straight runs the speed of the truth differs by {error:+.3f m/s} '
    '({share:+.2%}) from distance over time of the fixes, 95 % interval {low:+.3f m/s} to '
    '{high:+.3f m/s}',
    'The error of every estimate is relative to this speed.',
    'with fixes of an RTK receiver, multiply `speed_scale` of `corrections: {{truth: ...}}` in '
    'recording.yaml by {factor:.6g}',
)
TRUTH_SPEED_UNSURE = routine(
    'check.truth_speed_unsure',
    'the speed of the truth may be {bound:.3f m/s} off: {runs:d} straight runs, each accurate '
    'to {fixes:.3f m/s} by the covariances of its fixes',
    'A difference between models that is smaller may be an error of the truth.',
    'drive more straight runs of 30 s with an RTK receiver; [Mahajan2024] has 20',
)
FEW_STRAIGHT_RUNS = routine(
    'check.few_straight_runs',
    'straight runs of {seconds:g s} with truth and fixes: {runs:d}',
    'The speed of the truth is compared with distance over time on two or more straight runs.',
    'drive straight for that long, or give --straight a shorter time',
)

# Fixes

SWAPPED = decisive(
    'check.fixes_swapped',
    'latitude and longitude are exchanged: only then does the track agree with the truth',
    'The fixes lie elsewhere on the Earth.',
    _key('{role}: {{swapped: {swapped}}}'),
)
FIXES_LATE, FIXES_LATE_LARGE = levels(
    'fixes_late',
    'stamps of fixes are {delay:+.2f s} off those of the truth (positive: late)',
    'A fix lags by this delay times the speed.',
    _key('{role}: {{delay: {set:.3f}}}'),
)
OTHER_CLOCK = decisive(
    'check.other_clock',
    'stamps begin and end {shift:+.1f s} off those of the truth (positive: late): they come '
    'from another clock',
    'GPS time is 18 s ahead of UTC; unsynchronised computer clocks can differ by any amount.',
    _key('{role}: {{delay: {set:.3f}}}'),
)
FIXES_IN_RADIANS = decisive(
    'check.fixes_in_radians',
    'latitude and longitude are in radians: in degrees the track agrees with the truth',
    'The fixes are elsewhere on the Earth.',
    'convert them to degrees in the driver',
)
FIXES_SIGN = decisive(
    'check.fixes_sign',
    'the {coordinate} has lost its sign: the track is a mirror image of the truth',
    'The fixes are on another hemisphere.',
    'take the sign from N and S, E and W in the driver',
)
ALTITUDE_UNIT = decisive(
    'check.altitude_unit',
    'altitudes change by {scale:.3g} times the heights of the truth{unit}',
    'navsat_transform fuses them as heights unless it ignores the altitude.',
    'convert them to metres in the driver',
)
ALTITUDE_PLACE = decisive(
    'check.altitude_place',
    'the altitude is {altitude:.3g m}',
    'No vehicle on the ground or in the air reaches this altitude: the unit is not metres.',
    'convert altitudes to metres in the driver',
)
CLOCK_RATE = decisive(
    'check.clock_rate',
    'stamps are {first:+.2f s} off those of the truth at the beginning, {last:+.2f s} at the end',
    'The clocks run at different rates, and no constant delay corrects them.',
    'synchronise the clocks, for example with chrony or PTP, and record again',
)
FIX_JUMPS = routine(
    'check.fix_jumps',
    'jumps of up to {step:.1f m} against the truth ({count:d}x)',
    'Multipath, or a change of the solution of the receiver.',
    'set `odom0_pose_rejection_threshold: VALUE` (a Mahalanobis distance, such as 5) in the '
    'parameters of robot_localization, or leave this part out',
)
FIX_ERRORS = decisive(
    'check.fix_errors',
    'fixes differ from the truth by {north:.3g m} north and {east:.3g m} east (standard '
    'deviations), by {white:.3g m} from one fix to the next',
    'Errors of a receiver stay below 100 m, and below 20 m from one fix to the next.',
    'check the noise of a simulated receiver: NavSat of Gazebo takes degrees, 0.01 are 1.1 km. Or '
    'correct the positions of the truth. Then record again',
)
FIXES_UNRELATED = decisive(
    'check.fixes_unrelated',
    'fixes do not follow the truth: no turn, scale or delay explains differences of {error:.3g m}',
    'Fixes and truth come from different times, vehicles or places.',
    'check the clocks and the source of the truth; no constant corrects it',
)
LEVER_ARM = routine(
    'check.lever_arm',
    'errors turn with the heading: the antenna is {size:.2g m} from its stated position',
    'In a turn the antenna moves relative to the base, at the turn rate times this distance.',
    'set `lever_arms: {{{role}: [{x:g}, {y:g}, {z:g}]}}` in recording.yaml',
)
LATE_OR_ARM = routine(
    'check.late_or_lever_arm',
    'stamps {delay:+.2f s} off, or an antenna {size:.2g m} from its stated position: both '
    'explain the errors equally well',
    'At a steady speed a delay moves fixes along the track as a lever arm does.',
    'measure the lever arm, or record a drive with other speeds',
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
    'set `imu0_remove_gravitational_acceleration: false` in the parameters of '
    'robot_localization, or record the raw acceleration',
)
NOISE_FREE_NO_GRAVITY = decisive(
    'check.noise_free_no_gravity',
    'mean specific force is {force:.2g m/s^2}: gravity has been removed',
    'A simulated accelerometer then measures no gravity.',
    'have the simulator publish what an accelerometer measures, or do without it by `topics: '
    '{{ideal_imu: null}}` in recording.yaml',
)
GRAVITY_SCALE = routine(
    'check.gravity_scale',
    'mean vertical force is {force:.4g m/s^2}, {scale:.3g} times gravity: a scale error, or a '
    'bias of {bias:+.2g m/s^2}',
    'Both explain the mean equally well, so neither is corrected.',
    'calibrate the accelerometer in several attitudes',
)
GRAVITY_SCALE_LARGE = decisive(
    'check.gravity_scale_large',
    'mean vertical force is {force:.4g m/s^2}, {scale:.3g} times gravity',
    'The accelerations of the motion have the same scale, or the force is off by half of '
    'gravity or more, too much for a bias.',
    _key('{role}: {{acceleration_scale: {set:.6g}}}'),
)
GRAVITY_OFFSET = decisive(
    'check.gravity_offset',
    'mean vertical force is {force:.4g m/s^2}: a bias of {bias:+.2g m/s^2}, or a scale of '
    '{scale:.3g}',
    'The accelerations of the motion do not show that scale. A scale would change all of them.',
    'calibrate the accelerometer, or set a smaller bias of the simulated one, and record again',
)
FORCE_BIAS = decisive(
    'check.force_bias',
    'forces wander by {wander:.2g m/s^2} (root mean square over 5 s) against the truth; the '
    'vertical one is off by {first:+.2g m/s^2} at the start and {last:+.2g m/s^2} at the end',
    'The bias of the accelerometer walks: no scale, mounting or constant bias explains it.',
    'set a smaller bias drift of the simulated accelerometer, or fuse no acceleration: last three '
    'elements of `imu0_config` false in the parameters of robot_localization',
)
FORCE_REVERSED = decisive(
    'check.force_reversed',
    'specific force points down at rest while rates have the right sign',
    'sensor_msgs/Imu has +9.81 on the axis that points up at rest.',
    _key('{role}: {{acceleration_scale: {set:.6g}}}'),
)
RATE_REVERSED = decisive(
    'check.rate_reversed',
    'rates have the wrong sign: they turn left while the truth turns right',
    'sensor_msgs/Imu has right-handed axes.',
    _key('{role}: {{rate_scale: {set:.6g}}}'),
)
RATE_AXES = decisive(
    'check.rate_axes',
    'rates about {axes} have the wrong sign, and the others the right one',
    'sensor_msgs/Imu has right-handed axes. No rotation corrects a single sign.',
    'correct the sign in the driver',
)
RATE_UNIT = decisive(
    'check.rate_unit',
    'rates are {scale:.3g} times those of the truth: degrees per second',
    'sensor_msgs/Imu has rad/s.',
    _key('{role}: {{rate_scale: {set:.6g}}}'),
)
RATE_UNIT_WITNESS = decisive(
    'check.rate_unit_without_truth',
    'rates are {scale:.3g} times those of the {witness}: degrees per second',
    'sensor_msgs/Imu has rad/s.',
    _key('{role}: {{rate_scale: {set:.6g}}}'),
)
RATE_REVERSED_WITNESS = decisive(
    'check.rate_reversed_without_truth',
    'rates have the wrong sign, according to the {witness}',
    'sensor_msgs/Imu has right-handed axes.',
    _key('{role}: {{rate_scale: {set:.6g}}}'),
)
RATE_SCALE_WITNESS = decisive(
    'check.rate_scale_without_truth',
    'rates are {scale:.3g} times those of the {witness}',
    'sensor_msgs/Imu has rad/s. Without truth the scale is too uncertain to be corrected.',
    _key('{role}: {{rate_scale: VALUE}}') + ', VALUE from the unit in the manual of the driver: '
    '0.0174533 for degrees per second',
)
RATE_SCALE, RATE_SCALE_LARGE = levels(
    'rate_scale',
    'rates are {scale:.3g} times those of the truth',
    'Scale error of the gyroscope: every turn adds a heading error of this fraction of its angle.',
    _key('{role}: {{rate_scale: {set:.6g}}}'),
)
RATE_BIAS, RATE_BIAS_LARGE = levels(
    'rate_bias',
    'the mean error of the rates is {bias:.2g rad/s}',
    'An integrated heading drifts at this rate.',
    _key('{role}: {{rate_bias: [{x:.4f}, {y:.4f}, {z:.4f}]}}'),
)
IMU_LATE, IMU_LATE_LARGE = levels(
    'imu_late',
    'stamps are {delay:+.2f s} off those of the truth (positive: late)',
    'In a turn the heading lags by this delay times the turn rate.',
    _key('{role}: {{delay: {set:.3f}}}'),
)
TILTED, TILTED_LARGE = levels(
    'imu_tilted',
    'gravity is {tilt:.0f deg} off the axis that should point up: the axes of the sensor have '
    'roll {roll:.0f}, pitch {pitch:.0f}, yaw {yaw:.0f} degrees in {frame}',
    'One degree of tilt leaves 0.17 m/s^2 of gravity in the horizontal acceleration.',
    _key('{role}: {{rotation: [{roll:.4g}, {pitch:.4g}, {yaw:.4g}]}}')
    + ', or the rotation of the static transform of {frame}',
)
IMU_YAW, IMU_YAW_LARGE = levels(
    'imu_yaw',
    'accelerations and rates are turned by {turn:.0f deg} about the vertical: {frame} has '
    'another mounting',
    'Accelerations point in a wrong direction.',
    _key('{role}: {{rotation: [{roll:.4g}, {pitch:.4g}, {yaw:.4g}]}}')
    + ', or the rotation of the static transform of {frame}',
)
ORIENTATION_AXES = decisive(
    'check.orientation_axes',
    'the published orientation has other axes: it follows the truth only with the world frame '
    '{axes} and body axes rotated by [{rotation}] deg',
    'sensor_msgs/Imu and robot_localization have x east, y north, z up, and x forward, y left, z '
    'up in the body (REP 103).',
    _key('imu: {{axes: {axes}, orientation_rotation: [{rotation}]}}'),
)
ORIENTATION_QUATERNION = decisive(
    'check.orientation_quaternion',
    'the published orientation follows the truth only if its quaternion is in the order w x y z',
    'ROS has the order x y z w.',
    'write the quaternion in the order x y z w',
)
ORIENTATION_DRIFTS = decisive(
    'check.orientation_drifts',
    'the heading of the published orientation drifts by {drift:.0f deg} relative to the truth',
    'The filter fuses it as it is. No constant corrects a heading that drifts.',
    _DO_NOT_FUSE,
)
ORIENTATION_YAW, ORIENTATION_YAW_LARGE = levels(
    'orientation_yaw',
    'the published heading is {turn:.0f deg} off that of the truth',
    'The filter fuses it as it is, and navsat_transform turns the fixes by it. Usual causes: '
    'heading from north, from the start, or without magnetic declination.',
    _key('imu: {{heading: {set:.1f}}}'),
)
ORIENTATION_TILT = decisive(
    'check.orientation_tilt',
    'the vertical of the published orientation is {tilt:.0f deg} off',
    'Gravity is removed in a wrong direction: 1 deg leaves 0.17 m/s^2.',
    'publish the orientation of the axes in which accelerations are measured',
)
ORIENTATION_STRAYS = decisive(
    'check.orientation_strays',
    'the heading of the published orientation is not constant relative to the truth: it strays by '
    '{spread:.0f deg}',
    'The filter fuses it as it is. No constant corrects a heading that drifts.',
    _DO_NOT_FUSE,
)
ORIENTATION_UNSET = decisive(
    'check.orientation_unset',
    'the orientation is the identity in every message, and is not marked as absent',
    'Filters take it for a heading due east. Logs of Gazebo contain it.',
    'publish -1 in `orientation_covariance[0]`, which marks it as absent',
)
NO_ORIENTATION = routine(
    'check.no_orientation',
    'no orientation (covariance -1)',
    'The filter starts eastward, whatever the vehicle does.',
    'vepd, study and judge give the true heading automatically; with other commands give '
    '--start-heading',
)
