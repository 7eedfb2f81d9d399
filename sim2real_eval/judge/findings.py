# SPDX-License-Identifier: Apache-2.0
"""Findings of the error-state filter, the smoother and judges in other processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sim2real_eval.common.findings import Finding, FindingKind, assumed, decisive, routine
from sim_sensors.core.errors import Remark


def _phrase(kind: FindingKind, template: str) -> Callable[..., Finding]:
    """Return a maker of findings of one kind, with their own words for the `problem`."""

    def make_finding(subject: str = '', /, **values: Any) -> Finding:
        words = template
        for name in [name for name, text in values.items() if isinstance(text, str)]:
            words = words.replace(f'{{{name}}}', values.pop(name))
        return kind(subject, problem=Remark(words, **values))

    return make_finding


DIVERGED = decisive(
    'estimate.diverged',
    'the estimate is not a number from t = {first:.2f s} after the first one on ({count:d} of '
    '{estimates:d} estimates)',
    'The filter is unstable with these covariances.',
    'check the noise settings and the covariances of the messages',
    per_model=True,
)
NOTE = routine('judge.note', '{text}', 'A note of a judge that declares no codes of its own.')
COMPLETED = assumed(
    'judge.completed',
    'the estimates are incomplete: {assumption}',
    'The estimator does not publish this quantity, so it is derived from the others.',
)
COURSE_AS_HEADING = 'without an orientation, the heading is that of the velocity'
"""Assumption of COMPLETED; the forward speed cannot be negative then."""
VELOCITY_BY_DIFFERENCES = 'without a velocity, positions are differentiated'
"""Assumption of COMPLETED; noise of the positions is larger in their differences."""
LEVEL = 'without an orientation, the vehicle is taken as level'
"""Assumption of COMPLETED; on a slope the horizontal speed is too large."""
START_HEADING_UNUSED = routine(
    'judge.start_heading_unused',
    'the judge takes no start heading; the true one was not used',
    'Other judges of the comparison may have used it.',
)
LOOKS_AHEAD = routine(
    'error_state.looks_ahead',
    'the first {estimates:d} estimates, {time:.1f s}, use the {fixes:d} fixes of the start, which '
    'are later',
    'The velocity of a moving start is known only after a few fixes.',
)
_GATED = routine(
    'error_state.gated',
    '{problem!s}',
    'The fixes contradict the prediction by more than the covariances allow. After a timeout the '
    'uncertainty of the state is set to the size of the innovation.',
    'raise the noise of the IMU or the covariances of the fixes',
)
FIXES_GATED = _phrase(
    _GATED,
    'the gate of {gate:g} rejected {refused:.0f} of {fixes:.0f} fixes: the filter follows the IMU',
)
GATE_TIMEOUT = _phrase(
    _GATED,
    'after {timeout:g} s without an accepted fix the next one was accepted ({count:.0f} times)',
)
SEES_FUTURE = routine(
    'smoother.sees_future',
    'a smoother uses future measurements: no live filter can be as good',
    'Use it as a reference for what the sensors allow.',
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
_LEFT_OUT = routine(
    'inertial.left_out',
    '{problem!s}',
    'Messages without a time interval to integrate over do not affect the estimate.',
)
FIXES_OUTSIDE = _phrase(
    _LEFT_OUT, '{count:.0f} fixes before or after all IMU messages are left out'
)
IMU_REPEATS = _phrase(_LEFT_OUT, '{count:.0f} IMU messages repeat a stamp and are left out')
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
_COVARIANCE_LIMITED = routine(
    'inertial.covariance_limited',
    '{problem!s}',
    'Receivers often state a better accuracy than they have; very large values carry no '
    'information and cost numerical accuracy.',
)
COVARIANCE_LOWERED = _phrase(
    _COVARIANCE_LIMITED,
    '{count:.0f} of {fixes:.0f} fixes state a deviation over {most:g} m: lowered to it',
)
COVARIANCE_RAISED = _phrase(
    _COVARIANCE_LIMITED,
    '{count:.0f} of {fixes:.0f} fixes state a deviation below {least} m, or none on an axis: '
    'raised',
)
_START = routine('inertial.start', '{problem!s}', 'Origin of the first attitude.')
LEVELLED = _phrase(_START, 'start: levelled {level}, accurate to {tilt:.2g} rad and the bias')
HEADING = _phrase(_START, 'start: heading {heading:.0f} deg {source}')
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
    'robot_localization judged{navsat}; its velocity differs from the embedded judge by at most '
    '{apart:g um/s}',
    'The real ekf_node or ukf_node confirms the embedded judge. navsat_transform_node is never '
    'run; the embedded navsat_transform takes its place.',
)
REAL_TIME = routine(
    'external.rate',
    'the estimator ran at {rate:.3g} x real time',
    'Seconds of the recording per second of wall time.',
)
REPEATABILITY = routine(
    'external.repeatability',
    '{repeats:d} replays of the same recording differ by {rms:.2g m/s} of speed (RMS), at most '
    '{most:.2g m/s}',
    'The estimator itself varies by this much, in real and in simulated runs. A study scores both '
    'replays of the real runs, and no null distance is below the distance between them.',
)
INCOMPLETE = decisive(
    'external.incomplete',
    '{problem!s}',
    'The estimator did not receive the whole recording, or not all of its estimates came back.',
    'lower `clock.rate`, or deepen the queue of the subscription',
)
LOST = _phrase(INCOMPLETE, 'messages were lost between sim2real and the estimator')
UNANSWERED = _phrase(
    INCOMPLETE, '{missing:.0f} of {count:.0f} messages were not answered by an estimate'
)
OUT_OF_ORDER = routine(
    'external.out_of_order',
    '{count:d} estimates are not later than the one before and are left out',
    'An estimator may correct an estimate; a live user knows only the first.',
)
NO_TRANSFORMS = assumed(
    'external.no_transforms',
    '{count:d} static transforms of the recording are not published: tf2_msgs is not installed',
    'The estimator may assume other places of the sensors, or drop their messages.',
    'source the setup file of ROS',
)
