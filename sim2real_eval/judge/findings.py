# SPDX-License-Identifier: Apache-2.0
"""What the error-state filter, the smoother and judges in other processes may find."""

from __future__ import annotations

from sim2real_eval.common.findings import assumed, decisive, routine

DIVERGED = decisive(
    'estimate.diverged',
    'the estimate is not a number from t = {first:.2f s} after the first one on ({count:d} of '
    '{estimates:d} estimates)',
    'The filter is unstable with these covariances.',
    'check the noise settings and the covariances of the messages',
    per_model=True,
)
NOTE = routine('judge.note', '{text}', 'A note of a judge that declares no codes of its own.')
COURSE_AS_HEADING = assumed(
    'judge.course_as_heading',
    'the judge estimates no orientation: the heading is that of the velocity',
    'The forward speed cannot be negative.',
)
START_HEADING_UNUSED = routine(
    'judge.start_heading_unused',
    'the judge takes no start heading; the true one was not used',
    'Other judges of the comparison may know more.',
)
LOOKS_AHEAD = routine(
    'error_state.looks_ahead',
    'the first {estimates:d} estimates, {time:.1f s}, use the {fixes:d} fixes of the start, which '
    'are later',
    'The velocity of a moving start is known only after a few fixes.',
)
FIXES_GATED = routine(
    'error_state.gated',
    'the gate of {gate:g} rejected {refused:d} of {fixes:d} fixes: the filter follows the IMU',
    'The fixes contradict the prediction by more than the covariances allow.',
    'raise the noise of the IMU or the covariances of the fixes',
)
GATE_TIMEOUT = routine(
    'error_state.gate_timeout',
    'after {timeout:g s} without an accepted fix the next one was accepted ({count:d}x)',
    'The uncertainty of the state was set to the size of the innovation.',
)
SEES_FUTURE = routine(
    'smoother.sees_future',
    'a smoother uses future measurements: no live filter can be as good',
    'Use it as a reference, not as a judge of what a robot would know.',
)
NOT_CONVERGED = routine(
    'smoother.not_converged',
    'did not converge in {iterations:d} iterations: the estimate is not the optimum',
    'The result depends on where the optimisation started.',
)
OUTAGES = routine(
    'smoother.outages',
    '{count:d} times no fix for more than {limit:g s}, at most {longest:.1f s}: the IMU alone '
    'bridges the outage',
    'The estimate is less accurate in the middle of an outage.',
)
OUTLIERS = routine(
    'smoother.outliers',
    '{count:d} of {fixes:d} fixes are more than {width:g} deviations off and got less weight '
    '(loss {loss})',
    'The robust loss limits the influence of outliers.',
)
SETTING_UNUSED = routine(
    'smoother.setting_unused',
    'has no effect on the smoother',
    'The smoother has no constraint on the velocity of base_link.',
)
NO_FIX = routine(
    'inertial.messages_without_fix',
    '{count:d} of {received:d} messages of the GPS have no fix',
    'The receiver had no fix at these times; this is a real outage.',
)
FIXES_OUTSIDE = routine(
    'inertial.fixes_outside',
    '{count:d} fixes before or after all IMU messages are left out',
    'The estimate exists only while there are IMU messages.',
)
IMU_REPEATS = routine(
    'inertial.imu_repeats',
    '{count:d} IMU messages repeat a stamp and are left out',
    'Nothing can be integrated over a time of zero.',
)
IMU_GAPS = routine(
    'inertial.imu_gaps',
    'gaps of up to {longest:.2f s} between IMU messages ({count:d}x), longer than {limit:g s}: '
    'interpolated, with the errors gap_rate and gap_acceleration',
    'The motion during a gap is unknown, so the uncertainty grows.',
)
NO_COVARIANCE = assumed(
    'inertial.no_covariance',
    '{count:d} of {fixes:d} fixes have no covariance: a deviation of {deviation} m is assumed',
    'The receiver does not state its accuracy.',
    'set `fix_deviation` of the judge',
)
COVARIANCE_LOWERED = routine(
    'inertial.covariance_lowered',
    '{count:d} of {fixes:d} fixes state a deviation over {most:g m}: lowered to it',
    'Larger values carry no information and cost numerical accuracy.',
)
COVARIANCE_RAISED = routine(
    'inertial.covariance_raised',
    '{count:d} of {fixes:d} fixes state a deviation below {least} m, or none on an axis: raised',
    'Receivers often state a better accuracy than they have.',
)
LEVELLED = routine(
    'inertial.levelled',
    'start: levelled {level}, accurate to {tilt:.2g rad} and the bias',
    'How the first roll and pitch were found.',
)
HEADING = routine(
    'inertial.heading',
    'start: heading {heading:.0f deg} {source}',
    'How the first heading was found.',
)
HEADING_BY_COURSE = assumed(
    'inertial.heading_by_course',
    'start: heading {heading:.0f deg} from the course over ground of the fixes {later:.1f s} '
    'later, assumed to drive forwards',
    'The heading is wrong by 180 degrees if the vehicle starts backwards.',
    'give the heading with --start-heading if it does',
)
HEADING_UNKNOWN = assumed(
    'inertial.heading_unknown',
    'start: the heading is unknown, and 0 deg is assumed: a filter linearised about a wrong '
    'heading may need long to correct it, or never does',
    'Neither the IMU nor the fixes of the start give a heading.',
    'give it with --start-heading or `start.heading`',
)
TILTED = routine(
    'inertial.tilted',
    'start: base_link is tilted by {tilt:.0f degrees}',
    'Vehicles start nearly level, so the mounting of the IMU is most likely wrong.',
    'check the transform to the IMU',
)
REAL_FILTER = routine(
    'external.real_filter',
    'robot_localization judged; its velocity differs from the embedded judge by at most '
    '{apart:g um/s}',
    'The real nodes confirm the embedded judge.',
)
REAL_FILTER_OWN_NAVSAT = routine(
    'external.real_filter_own_navsat',
    'robot_localization judged, with the embedded navsat_transform; its velocity differs from the '
    'embedded judge by at most {apart:g um/s}',
    'The real ekf_node confirms the embedded judge; navsat_transform_node did not run.',
)
REAL_TIME = routine(
    'external.rate',
    'the estimator ran at {rate:.3g} x real time',
    'How many seconds of the recording a second on the clock of the wall had.',
)
REPEATABILITY = routine(
    'external.repeatability',
    '{repeats:d} replays of the same recording differ by {rms:.2g m/s} of speed (RMS), at most '
    '{most:.2g m/s}',
    'The estimator itself varies by this much, in real and in simulated runs. A study scores both '
    'replays of the real runs, and no null distance is below the distance between them.',
)
LOST = decisive(
    'external.lost',
    'messages were lost on the way between sim2real and the estimator',
    'The estimator did not hear all of the recording, or not all of its estimates came back.',
    'lower `clock.rate`, or deepen the queue of the subscription',
)
UNANSWERED = decisive(
    'external.unanswered',
    '{missing:d} of {count:d} messages were not answered by an estimate',
    'The file declares that the estimator answers every message of this input.',
    'lower `clock.rate`, or deepen the queue of the subscription',
)
OUT_OF_ORDER = routine(
    'external.out_of_order',
    '{count:d} estimates are not later than the one before and are left out',
    'An estimator may correct an estimate; a live user knows only the first.',
)
BY_DIFFERENCES = assumed(
    'external.by_differences',
    'the estimates have no velocity: it is the difference of positions',
    'Noise of the positions is larger in their differences.',
)
LEVEL = assumed(
    'external.level',
    'the estimates have no orientation: the vehicle counts as level',
    'On a slope the horizontal speed is too large.',
)
NO_TRANSFORMS = assumed(
    'external.no_transforms',
    '{count:d} static transforms of the recording are not published: tf2_msgs is not installed',
    'The estimator may assume other places of the sensors, or drop their messages.',
    'source the setup file of ROS',
)
