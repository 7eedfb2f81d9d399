# SPDX-License-Identifier: Apache-2.0
"""The checks of a recording, in their order: a cause before its symptoms."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator

from sim2real_eval.common.findings import Finding, by_severity
from sim2real_eval.recording import checks as reading
from sim2real_eval.recording.recording import IDEAL_ROLES, Recording, require_recording
from sim2real_eval.simulation.twin_maker import TwinMaker
from . import covariances, findings, inertial, messages, orientation, positions, velocities
from .evidence import Evidence
from .outcome import Measure, Outcome, Preflight


@dataclasses.dataclass(frozen=True)
class Check:
    """A question to a recording.

    Attributes
    ----------
    name : str
        As in the table.
    unit : str
        Of its values; empty for none.
    measure : callable
        Yields what it measured, and puts right what it found wrong.
    noise_free : bool
        Whether noise-free sensors of a simulator are asked, too.
    """

    name: str
    unit: str
    measure: Callable[[Evidence], Iterable[Measure]]
    noise_free: bool = False

    def outcomes(self, evidence: Evidence) -> Iterator[Outcome]:
        """Yield what it measured, named by the roles that are looked at."""
        for one in self.measure(evidence):
            subject = ' '.join(map(evidence.role, one.subject.split()))
            yield Outcome(self.name, self.unit, dataclasses.replace(one, subject=subject))
        # What was looked at whole.


CHECKS: tuple[Check, ...] = (
    Check('topics', '', messages.topics),
    Check('number of messages', '', messages.counts, noise_free=True),
    Check('duration', 's', messages.duration),
    Check('rate', 'Hz', messages.rates, noise_free=True),
    Check('longest gap', 's', messages.gaps, noise_free=True),
    Check('order of stamps', '', messages.order, noise_free=True),
    Check('clocks', '', messages.clocks, noise_free=True),
    Check('broken values', '', messages.values, noise_free=True),
    Check('kind of fix', '', messages.fix_kinds),
    Check('covariance there', '', messages.covariances),
    Check('axes', 'deg', positions.axes, noise_free=True),
    Check('speed', '', velocities.speeds),
    Check('delay', 's', velocities.twist_delay),
    Check('heading', 'deg', velocities.heading),
    Check('direction of travel', 'deg', inertial.body_axes),
    Check('frozen', 's', messages.frozen),
    Check('delay', 's', positions.delay, noise_free=True),
    Check('jumps', 'm', positions.jumps, noise_free=True),
    Check('saturated', '', messages.saturation),
    Check('gravity', 'm/s^2', inertial.gravity, noise_free=True),
    Check('turning', 's', inertial.turning, noise_free=True),
    Check('mounting', 'deg', inertial.mounting, noise_free=True),
    Check('size of gravity', '', inertial.force_scale, noise_free=True),
    Check('rate bias', 'rad/s', inertial.bias, noise_free=True),
    Check('independent truth', 'm', positions.independence),
    Check('errors over stated', '', covariances.fix_covariance),
    Check('errors over stated', '', covariances.imu_covariance),
    Check('orientation', 'deg', orientation.orientation),
    Check('start speed', 'm/s', messages.start),
)
"""Every check of a single recording."""

# What is said already, and by which checks it is said better.
_REPLACED = {
    reading.TRUTH_NOT_ENU: ('truth_turned', 'truth_ned', 'truth_camera', 'fixes_swapped'),
    reading.TRUTH_CHECK: (
        'truth_turned',
        'truth_ned',
        'truth_camera',
        'truth_scale',
        'truth_no_heading',
        'truth_heading',
        'truth_sideways',
        'truth_jumps',
        'speed_scale',
        'twist',
    ),
    reading.GAP: ('gap',),
    reading.COVARIANCE_ZERO: ('no_covariance',),
}
# Judges and scores say it where it matters.
_ELSEWHERE = (findings.MISSING, findings.MOVING_START, findings.NO_ORIENTATION)


def check(
    recording: Recording, *, base_frame: str = 'base_link', maker: TwinMaker | None = None
) -> Preflight:
    """Run every check on a recording.

    Each check sees the recording as those before it have put it right, so that one cause is one
    finding. The recording itself stays as it is. To save time, pass the `maker` of its twins if
    there is one.

    Examples
    --------
    >>> from sim2real_eval import simulate
    >>> from sim_sensors import motion_of
    >>> motion = motion_of('half_sine', duration=20.0)
    >>> drive = simulate(motion, gps='zed_f9p_rtk', imu='xsens_mtx')
    >>> [finding.code for finding in check(drive).findings]
    ['check.no_orientation']
    """
    evidence = Evidence(require_recording('check', recording), base_frame, maker=maker)
    outcomes = [each for one in CHECKS for each in one.outcomes(evidence)]
    corrections = evidence.corrections
    if any(role in recording.roles for role in IDEAL_ROLES.values()):
        exact = evidence.of_noise_free()
        known = {(one.check, one.measure.subject, one.measure.finding) for one in outcomes}
        outcomes += [
            each
            for one in CHECKS
            if one.noise_free
            for each in one.outcomes(exact)
            # Of the truth, what real sensors did not say.
            if (each.check, each.measure.subject, each.measure.finding) not in known
        ]
        corrections = exact.corrections or corrections
    return Preflight(recording.name, tuple(outcomes), corrections, recording.path)


def remarks(
    recording: Recording,
    found: Iterable[Finding],
    *,
    base_frame: str = 'base_link',
    maker: TwinMaker | None = None,
) -> tuple[Finding, ...]:
    """Return what the user of a recording should know: what was found already, and by `check`.

    What a check says better is left out, and so is what it says once more.
    """
    told = [
        one
        for one in check(recording, base_frame=base_frame, maker=maker).findings
        if one.kind not in _ELSEWHERE
    ]

    def is_said_better(one: Finding) -> bool:
        codes = tuple(f'check.{code}' for code in _REPLACED.get(one.kind, ()))
        return bool(codes) and any(
            better.code.startswith(codes) and one.subject in ('', better.subject)
            for better in told
        )

    return tuple(by_severity([*told, *(one for one in found if not is_said_better(one))]))


def enough(runs: int) -> list[Finding]:
    """Return whether so many recordings are too few for a significant result.

    The smallest p-value of n pairs is that of 2^n labellings, from either side.
    """
    least = 2.0 ** (1 - runs)
    return [findings.FEW_RUNS(runs=runs, least=least)] if least > 0.05 else []
