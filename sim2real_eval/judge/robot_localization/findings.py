# SPDX-License-Identifier: Apache-2.0
"""Findings of the embedded judge about its inputs and estimates."""

from __future__ import annotations

from sim2real_eval.common.findings import assumed, decisive, routine

DIFFERENTIAL = assumed(
    'rl.differential_gps',
    'fuses GPS increments, which are world components, as body velocity: forward speed is '
    'meaningless unless the vehicle drives along a world axis; horizontal speed is not affected',
    'robot_localization does not rotate the increments of a differential pose into the body.',
    'rotate them with --correct differential (in a study file `correct: [differential]`)',
)
NO_ATTITUDE = routine(
    'rl.no_attitude',
    'is configured to measure orientation, but {topic} has none (-1): this part is skipped, and '
    'the attitude comes from the rates alone',
    'The attitude drifts with the bias of the gyroscope.',
)
NO_START_HEADING = decisive(
    'rl.no_start_heading',
    'is configured to measure orientation, but {topic} has none (-1): the attitude comes from the '
    'rates alone, from a start heading of 0 (east), so forward speed is meaningless and '
    'accelerations have a wrong direction unless the run starts eastward',
    'Without a heading the filter starts eastward, whatever the vehicle does.',
    'give the heading in `initial_state`, or with --start-heading (in a study file '
    '`start_heading: true`, in Python `run_judge(..., start_heading=True)`)',
)
GRAVITY_BY_ESTIMATE = routine(
    'rl.gravity_by_estimate',
    'has no orientation: gravity is removed with the estimated attitude, so an attitude error '
    'becomes an acceleration',
    'One degree of tilt leaves 0.17 m/s^2.',
)
NAVSAT_NO_HEADING = decisive(
    'rl.navsat_no_heading',
    'navsat_transform takes its heading from an IMU without orientation (-1): as in '
    'robot_localization the start heading is 0 (east), so the estimated track is turned by the '
    'true start heading',
    'The fixes are turned into a frame that does not point east.',
    'use an IMU with orientation, or `use_odometry_yaw`',
)
GRAVITY_LEFT = routine(
    'rl.gravity_left',
    'is mounted with roll or pitch: as in robot_localization, gravity is removed in the wrong '
    'axes, which leaves about {left:.1f m/s^2} of false acceleration at rest',
    'robot_localization removes gravity before it rotates the acceleration into the body.',
    'remove it in the right axes with --correct gravity (in a study file `correct: [gravity]`)',
)
DIVERGED = decisive(
    'rl.diverged',
    'the estimate is not a number from t = {first:.2f s} after the first one on ({count:d} of '
    '{estimates:d} estimates): as in robot_localization, state or covariance grew out of bounds',
    'The filter is unstable with these covariances.',
    'check process noise, initial covariance and the covariances of the messages',
    per_model=True,
)
UNSCENTED_DIVERGED = decisive(
    'rl.unscented_diverged',
    'the estimate is not a number from t = {first:.2f s} after the first one on ({count:d} of '
    "{estimates:d} estimates): the covariance of robot_localization's unscented filter is no "
    'longer positive definite',
    "The correction of robot_localization's unscented filter can make the covariance indefinite.",
    'use the textbook correction with --correct unscented (in a study file '
    '`correct: [unscented]`)',
    per_model=True,
)
NO_MESSAGE = decisive(
    'rl.no_message',
    'no message, so it measured nothing',
    'The input is configured, but nothing arrived on its topic.',
    'check the topic name in the judge configuration',
)
GATED = decisive(
    'rl.gated',
    'the Mahalanobis gate rejected {refused:d} of {judged:d} measurements, so the estimate hardly '
    'depends on this sensor',
    'The measurements contradict the estimate by more than the covariances allow.',
    'check the covariances, the frames and the `rejection_threshold`',
)
SINGULAR = decisive(
    'rl.singular',
    '{refused:d} of {judged:d} measurements were rejected, because the covariance of their '
    'innovation was singular or not a number',
    'The filter cannot invert the innovation covariance, so the sensor is not used.',
    'check the covariances of the messages',
)
OLDER = routine(
    'rl.older',
    '{refused:d} of {received:d} messages are older than the one before and were rejected',
    'robot_localization refuses measurements that go back in time within a topic.',
)
NO_FIX = decisive(
    'navsat.no_fix',
    'got no valid fix, so the filter had no GPS',
    'The estimate comes from the other sensors alone.',
    'check status and topic of the fixes',
)
NO_FIX_IN_MESSAGES = routine(
    'navsat.messages_without_fix',
    'dropped {dropped:d} of {received:d} messages of the GPS that have no fix',
    'The receiver had no fix at these times; this is a real outage.',
)
FIXES_EARLY = routine(
    'navsat.fixes_early',
    'dropped {dropped:d} of {fixes:d} fixes that came before its datum was in use',
    'With a given datum navsat_transform first needs a filtered odometry and a tick.',
)
FIXES_UNUSED = decisive(
    'navsat.fixes_unused',
    'passed on none of {fixes:d} fixes: it had no heading or odometry',
    'navsat_transform needs both before it can transform a fix, so the filter had no GPS.',
    'check the topics of the IMU and of the filtered odometry',
)
FIXES_OVERTAKEN = routine(
    'navsat.fixes_overtaken',
    '({frequency:g Hz} timer) dropped {dropped:d} of {fixes:d} fixes that a newer one replaced '
    'before its tick',
    'navsat_transform publishes at most one fix per tick.',
    'raise its `frequency`',
)
DATUM_YAW = routine(
    'navsat.datum_yaw',
    'the yaw of the datum is not used; x of the world points east',
    'The front end `enu` works in an east-north-up frame.',
)
NO_VELOCITY = routine(
    'navsat.no_velocity',
    'is configured to measure velocity, but {node} provides none',
    'A fix has no velocity. These parts of the input are skipped.',
)
WORLD_VELOCITY = decisive(
    'rl.world_velocity',
    'velocities are in {frame}, which looks like a world frame, and are used {how} as those of '
    '{base}: they are wrong as soon as the vehicle turns',
    'robot_localization expects the velocity in the body frame.',
    'publish the velocity in the body frame',
)
DATUM_FAR = decisive(
    'navsat.datum_far',
    'the datum is {distance:.0f km} from the first fix',
    'Coordinates far from the datum are inaccurate; most likely the datum is wrong.',
    'check the order of latitude and longitude, and the place',
)
TOO_FAST = decisive(
    'estimate.too_fast',
    'the estimated speed exceeds {limit:g m/s} from t = {first:.2f s} after the first estimate on '
    'and reaches {speed:.3g m/s}',
    'The filter has diverged: no vehicle is that fast.',
    'check covariances, frames and the start heading',
    per_model=True,
)
JUMPS = decisive(
    'estimate.jumps',
    'the estimated position jumps {count:d} times, first by {step:.3g m} at t = {first:.2f s} '
    'after the first estimate',
    'No vehicle moves like that; a measurement of another place was accepted.',
    'check the fixes, their covariances and the frames',
    per_model=True,
)
FIXES_ON_TICKS = decisive(
    'rl.fixes_on_ticks',
    '{share:.0%} of the fixes arrive within 1 us of a tick, some before and some after it: the '
    'rounding of their stamps decides which of them wait for {period:.3g ms} more',
    'The wait is an error of position that grows with the speed. Simulated fixes have another '
    'rounding, so a difference from the real ones may come of this alone.',
    'start the judge 10 us late: --off-ticks of vepd and study, `off_ticks` of `run_judge`; or '
    'set `corrections: {{gps: {{delay: 0.00001}}}}` in recording.yaml',
)
OTHER_TOPIC = assumed(
    'rl.other_topic',
    'subscribes to {wanted}, which the recording does not have: its IMU {used} is used instead',
    'The judge may read another IMU than the configuration means.',
    'name another topic with --topic INPUT=TOPIC',
)
