# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The checks of a recording, in their order: a cause before its symptoms."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

from sim2real_eval.common.findings import Finding, by_severity
from sim2real_eval.recording import checks as reading
from sim2real_eval.recording.recording import IDEAL_ROLES, Recording, require_recording
from sim2real_eval.simulation.twin_maker import TwinMaker
from . import (
    accelerometer,
    clocks,
    covariances,
    findings,
    independence,
    inertial,
    inputs,
    messages,
    orientation,
    positions,
    stuck,
    velocities,
    witnesses,
)  # fmt: skip
from .evidence import Evidence
from .outcome import Measure, Outcome, Preflight
from .remedies import corrected_constants, verify
from .vehicle import Pooled, pool

_UNTRIED = 'run `sim2real check`, which proposes a correction if it does not make the judge worse'


@dataclasses.dataclass(frozen=True)
class Check:
    """A named check of a recording.

    Attributes
    ----------
    name : str
        Name in the table.
    unit : str
        Unit of its values; empty for none.
    measure : callable
        Yields measures, and corrects the evidence if they show a cause.
    noise_free : bool
        Whether it applies to the noise-free sensors of a simulator, too.
    """

    name: str
    unit: str
    measure: Callable[[Evidence], Iterable[Measure]]
    noise_free: bool = False

    def outcomes(self, evidence: Evidence) -> Iterator[Outcome]:
        """Yield the outcome of each measure; its subject names the roles that were checked."""
        for measure in self.measure(evidence):
            subject = ' '.join(map(evidence.role, measure.subject.split()))
            yield Outcome(self.name, self.unit, dataclasses.replace(measure, subject=subject))


CHECKS: tuple[Check, ...] = (
    Check('topics', '', messages.measure_topics),
    Check('number of messages', '', messages.measure_counts, noise_free=True),
    Check('duration', 's', messages.measure_duration),
    Check('rate', 'Hz', messages.measure_rates, noise_free=True),
    Check('longest gap', 's', messages.measure_gaps, noise_free=True),
    Check('lost messages', '', messages.measure_lost),
    Check('order of stamps', '', messages.measure_order, noise_free=True),
    Check('clocks', '', messages.measure_clocks, noise_free=True),
    Check('clocks', '', clocks.measure_other_clocks, noise_free=True),
    Check('broken values', '', messages.measure_values, noise_free=True),
    Check('kind of fix', '', messages.measure_fix_kinds),
    Check('covariance stated', '', messages.measure_covariances),
    Check('axes', 'deg', positions.measure_axes, noise_free=True),
    Check('saturated', '', stuck.measure_saturation),
    Check('attitude of the truth', 'deg', inertial.measure_truth_attitude),
    Check('speed', '', velocities.measure_speeds),
    Check('delay', 's', velocities.measure_twist_delay),
    Check('heading', 'deg', velocities.measure_heading),
    Check('direction of travel', 'deg', inertial.measure_travel_direction),
    Check('frozen', 's', stuck.measure_frozen),
    Check('clock rate', 's', clocks.measure_clock_rates),
    Check('delay', 's', positions.measure_delay, noise_free=True),
    Check('altitude', '', positions.measure_altitude),
    Check('errors of fixes', 'm', positions.measure_fix_errors),
    Check('jumps', 'm', positions.measure_jumps, noise_free=True),
    Check('gravity', 'm/s^2', inertial.measure_gravity, noise_free=True),
    Check('turning', 's', inertial.measure_turning, noise_free=True),
    Check('bias of forces', 'm/s^2', accelerometer.measure_force_bias),
    Check('rates without truth', '', witnesses.measure_witnesses),
    Check('mounting', 'deg', inertial.measure_mounting, noise_free=True),
    Check('size of gravity', '', accelerometer.measure_force_scale, noise_free=True),
    Check('rate bias', 'rad/s', inertial.measure_rate_bias, noise_free=True),
    Check('independent truth', 'm', independence.measure_independence),
    Check('errors over stated', '', covariances.measure_fix_covariance),
    Check('errors over stated', '', covariances.measure_imu_covariance),
    Check('orientation', 'deg', orientation.measure_orientation),
    Check('errors over stated', '', covariances.measure_orientation_covariance),
    Check('other inputs', '', inputs.measure_inputs),
    Check('start speed', 'm/s', stuck.measure_start),
)
"""Every check of a single recording."""

# Findings of the reader, and beginnings of the codes of checks that state them better.
_REPLACED = {
    reading.TRUTH_NOT_ENU: ('truth_turned', 'truth_ned', 'truth_camera', 'fixes_swapped'),
    reading.TRUTH_CHECK: (
        'truth_turned', 'truth_ned', 'truth_camera', 'truth_scale', 'truth_no_heading',
        'truth_heading', 'truth_sideways', 'truth_jumps', 'truth_quaternion', 'truth_down',
        'speed_', 'twist',
    ),
    reading.GAP: ('gap',),
    reading.COVARIANCE_ZERO: ('no_covariance', 'no_orientation_covariance'),
}  # fmt: skip
# Judges and scores state these with their results.
_ELSEWHERE = (findings.MISSING, findings.UNUSABLE, findings.MOVING_START, findings.NO_ORIENTATION)


def check(
    recording: Recording, *, base_frame: str = 'base_link', maker: TwinMaker | None = None
) -> Preflight:
    """Run every check on a recording.

    Each check sees the recording as corrected by those before it, so that one cause is one
    finding. A correction is kept if the checks of the corrected recording find nothing new. The
    recording itself is not changed.

    Parameters
    ----------
    recording : Recording
        Recording to check.
    base_frame : str
        Body frame.
    maker : TwinMaker, optional
        Maker of the twins of this recording, if there is one already; saves time.

    Examples
    --------
    >>> from sim2real_eval import simulate
    >>> from sim_sensors import motion_of
    >>> motion = motion_of('half_sine', duration=20.0)
    >>> drive = simulate(motion, gps='zed_f9p_rtk', imu='xsens_mtx')
    >>> [finding.code for finding in check(drive).findings]
    ['check.no_orientation']
    """
    result = _run(require_recording('check', recording), base_frame, maker)
    return verify(recording, result, lambda corrected: _run(corrected, base_frame, None))


def check_vehicle(
    runs: Sequence[Preflight], reread: Callable[[int], Recording], *, base_frame: str = 'base_link'
) -> tuple[list[Preflight], list[Pooled]]:
    """Return the results of all recordings of a vehicle, and their common corrections.

    See `pool`.
    """
    return pool(runs, reread, lambda corrected: _run(corrected, base_frame, None))


def _run(recording: Recording, base_frame: str, maker: TwinMaker | None) -> Preflight:
    """Run every check once, on real and then on noise-free sensors."""
    evidence = Evidence(recording, base_frame, maker=maker)
    outcomes = [outcome for check in CHECKS for outcome in check.outcomes(evidence)]
    last, changes = evidence, dict(evidence.changes)
    if any(role in recording.roles for role in IDEAL_ROLES.values()):
        exact = evidence.of_noise_free()
        real_keys = {_key(outcome) for outcome in outcomes}
        outcomes += [
            outcome
            for check in CHECKS
            if check.noise_free
            for outcome in check.outcomes(exact)
            # Problems of the truth that the real sensors showed already are left out.
            if _key(outcome) not in real_keys
        ]
        if exact.corrections:
            last = exact
            changes |= exact.changes
    return Preflight(
        recording.name,
        tuple(outcomes),
        last.corrections,
        recording.path,
        evidence.lever_arms,
        changes,
    )


def _key(outcome: Outcome) -> tuple[str, str, Finding | None]:
    return outcome.check, outcome.measure.subject, outcome.measure.finding


def remarks(
    recording: Recording,
    reader_findings: Iterable[Finding],
    *,
    base_frame: str = 'base_link',
    maker: TwinMaker | None = None,
) -> tuple[Finding, ...]:
    """Return the findings about a recording: `reader_findings`, and those of `check`.

    Findings of the reader that a check states better are left out. Only `sim2real check` tries
    corrections, so none is proposed here.
    """
    checked = [
        dataclasses.replace(finding, withheld=_UNTRIED)
        if corrected_constants(finding)
        else finding
        for finding in check(recording, base_frame=base_frame, maker=maker).findings
        if finding.kind not in _ELSEWHERE
    ]

    def is_replaced(finding: Finding) -> bool:
        codes = tuple(f'check.{code}' for code in _REPLACED.get(finding.kind, ()))
        return bool(codes) and any(
            better.code.startswith(codes) and finding.subject in ('', better.subject)
            for better in checked
        )

    unreplaced = [finding for finding in reader_findings if not is_replaced(finding)]
    return tuple(by_severity([*checked, *unreplaced]))


def check_run_count(runs: int) -> list[Finding]:
    """Return a finding if the recordings are too few for a significant result.

    The smallest two-sided p-value of a permutation test of n pairs is 2 / 2^n.
    """
    smallest = 2.0 ** (1 - runs)
    return [findings.FEW_RUNS(runs=runs, least=smallest)] if smallest > 0.05 else []
