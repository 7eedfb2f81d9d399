# SPDX-License-Identifier: Apache-2.0
"""Verification of corrections: they are proposed only if they work.

The corrections that the checks found are applied to the recording in memory, rounded as they are
printed, and every check is run again. They are kept if their findings are gone, no check is worse,
and nothing remains to be corrected. Otherwise the corrections of one role after the other are
tried, and a finding whose correction failed says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from sim2real_eval.common.findings import Finding, Severity
from sim2real_eval.recording.corrections import correct_recording
from sim2real_eval.recording.recording import Recording, StaticTransform
from .outcome import Outcome, Preflight

Corrections = Mapping[str, Any]
_KEY = '`corrections: '
_ANTENNA = 'antenna_of_the_check'


def verify(
    recording: Recording, result: Preflight, run: Callable[[Recording], Preflight]
) -> Preflight:
    """Return a result whose corrections have been applied and work.

    Parameters
    ----------
    recording : Recording
        Recording that was checked.
    result : Preflight
        Findings and corrections of all checks.
    run : callable
        Runs every check on a corrected recording.
    """
    if not result.changes and not result.lever_arms:
        return result
    if _works(recording, result, result.changes, run):
        return result
    kept: set[str] = set()
    for role in sorted(result.changes):
        roles = {*kept, role}
        changes = {role: result.changes[role] for role in sorted(roles)}
        if _works(recording, result, changes, run):
            kept = roles
    return _with_roles(result, kept)


def _works(
    recording: Recording,
    result: Preflight,
    changes: Corrections,
    run: Callable[[Recording], Preflight],
) -> bool:
    """Return whether the findings of the corrected roles are gone, and no check is worse."""
    corrected = correct_recording(recording, changes)
    if result.lever_arms:
        corrected = _with_lever_arm(corrected, result.lever_arms)
    after = run(corrected)
    if any(role in after.changes for role in changes):
        return False
    before = _severities(result)
    return all(
        before.get(key, Severity.ROUTINE + 1) <= severity
        for key, severity in _severities(after).items()
    )


def _with_lever_arm(recording: Recording, lever_arms: Mapping[str, list[float]]) -> Recording:
    """Return the recording with the fixes in a frame of their own at the lever arm."""
    fixes = recording.gps
    if fixes is None or 'gps' not in lever_arms:
        return recording
    x, y, z = lever_arms['gps']
    transform = StaticTransform('base_link', _ANTENNA, (x, y, z), (0.0, 0.0, 0.0, 1.0))
    moved = recording.with_messages('gps', dataclasses.replace(fixes, frame=_ANTENNA))
    return dataclasses.replace(moved, transforms=(*recording.transforms, transform))


def _severities(result: Preflight) -> dict[tuple[str, str], Severity]:
    """Return the severity of each finding by code, without its size, and subject."""
    return {
        (finding.code.removesuffix('_large'), finding.subject): finding.severity
        for finding in result.findings
    }


def _with_roles(result: Preflight, roles: set[str]) -> Preflight:
    """Return the result with the corrections of some roles; other findings withhold theirs."""

    def checked(outcome: Outcome) -> Outcome:
        finding = outcome.measure.finding
        if finding is None or not _is_withheld(finding, roles):
            return outcome
        reason = 'applied to the recording, it does not pass its own check or makes another worse'
        measure = dataclasses.replace(
            outcome.measure, finding=dataclasses.replace(finding, withheld=reason)
        )
        return dataclasses.replace(outcome, measure=measure)

    return dataclasses.replace(
        result,
        outcomes=tuple(map(checked, result.outcomes)),
        corrections={
            role: result.corrections[role] for role in result.corrections if role in roles
        },
        changes={role: result.changes[role] for role in roles},
    )


def _is_withheld(finding: Finding, roles: set[str]) -> bool:
    """Return whether a finding proposes a correction of a role that is not among `roles`."""
    _, found, entry = finding.remedy.partition(f'{_KEY}{{')
    return bool(found) and entry.partition(':')[0] not in roles
