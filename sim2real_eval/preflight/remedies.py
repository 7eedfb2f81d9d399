# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Verification of corrections: they are proposed only if they work.

The corrections that the checks found are applied to the recording in memory, rounded as they are
printed, and every check is run again. They are kept if their findings are gone, no check is worse,
and nothing remains to be corrected. Otherwise the corrections of one role after the other are
tried, and a finding whose correction failed says so.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from sim2real_eval.common.findings import Finding, Severity
from sim2real_eval.recording.corrections import correct_recording
from sim2real_eval.recording.recording import PLACED_ROLES, Recording, StaticTransform
from sim_sensors.core.config_files import parse_yaml
from sim_sensors.core.errors import ParameterError
from .outcome import Preflight

LEVER_ARMS = 'lever_arms'
"""Name of the lever arms beside the roles of corrections."""
Constant = tuple[str, str]
"""Role and key of a correction, or `lever_arms` and a role."""
_ENTRY = re.compile(r'`(corrections|lever_arms): (\{.*?\})`')
_WORSE = 1.2
"""Growth of a value relative to its limit beyond which a check is worse."""
_ANTENNA = 'antenna_of_the_check'
NOT_PROPOSED = 'no correction is proposed: '
_FAILED = (
    f'{NOT_PROPOSED}applied to the recording, it does not pass its own check or makes another '
    'worse'
)


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
    result = dataclasses.replace(result, original=recording.corrections)
    if not result.changes and not result.lever_arms:
        return result
    if works(recording, result, result, run):
        return result
    verified: set[str] = set()
    roles = {*result.changes, *([LEVER_ARMS] if result.lever_arms else [])}
    # A correction may need that of another role first.
    for _ in range(len(roles)):
        for role in sorted(roles - verified):
            if works(recording, result, _restricted(result, {*verified, role}), run):
                verified.add(role)

    def checked(finding: Finding) -> Finding:
        failed = any(role not in verified for role, _ in corrected_constants(finding))
        return dataclasses.replace(finding, withheld=_FAILED) if failed else finding

    return _restricted(result, verified).with_findings(checked)


def works(
    recording: Recording,
    before: Preflight,
    proposal: Preflight,
    run: Callable[[Recording], Preflight],
    *,
    ignored: Collection[Constant] = (),
) -> bool:
    """Return whether a proposal removes its findings from a recording, and no check is worse.

    Parameters
    ----------
    recording : Recording
        Recording that was checked.
    before : Preflight
        Findings of the recording without corrections.
    proposal : Preflight
        Result with the changes and lever arms to apply.
    run : callable
        Runs every check on a corrected recording.
    ignored : collection of (role, key)
        Corrections that may remain to be made.
    """
    after = run(corrected_recording(recording, proposal))
    remaining = {
        (role, key)
        for role, change in after.changes.items()
        if role in proposal.changes
        for key in change.changes
    }
    if proposal.lever_arms:
        remaining |= {(LEVER_ARMS, role) for role in after.lever_arms}
    if not remaining.issubset(ignored):
        return False
    earlier, later = _problems(before), _problems(after)
    proposed = {(role, key) for role, change in proposal.changes.items() for key in change.changes}
    proposed |= {(LEVER_ARMS, role) for role in proposal.lever_arms}
    proposed -= {*ignored}
    return all(
        key in earlier
        and severity >= earlier[key][0]
        and share < _WORSE * earlier[key][1]
        and not proposed & {*corrected_constants(finding)}
        for key, (severity, share, finding) in later.items()
    )


def corrected_recording(recording: Recording, proposal: Preflight) -> Recording:
    """Return a recording with the changes and lever arms of a result applied in memory."""
    corrected = correct_recording(recording, proposal.changes)
    if proposal.lever_arms:
        corrected = _with_lever_arm(corrected, proposal.lever_arms)
    return corrected


def corrected_constants(finding: Finding) -> dict[Constant, Any]:
    """Return what the remedy of a finding sets in recording.yaml: values by role and key.

    A remedy that is withheld counts, too; a VALUE that the user has to find does not.
    """
    match = _ENTRY.search(dataclasses.replace(finding, withheld='').remedy)
    if match is None:
        return {}
    try:
        entry = parse_yaml(match[2], '')
    except ParameterError:
        return {}
    if match[1] == LEVER_ARMS:
        return {(LEVER_ARMS, role): arm for role, arm in entry.items()}
    return {
        (role, key): value
        for role, keys in entry.items()
        for key, value in keys.items()
        if value != 'VALUE'
    }


def without(result: Preflight, constants: Collection[Constant]) -> Preflight:
    """Return a result that does not correct some constants.

    Values that the recording had before stay in the total.
    """
    changes, corrections = dict(result.changes), dict(result.corrections)
    lever_arms = {
        role: arm for role, arm in result.lever_arms.items() if (LEVER_ARMS, role) not in constants
    }
    for role, key in constants:
        if role not in changes:
            continue
        default = type(changes[role])()
        changes[role] = dataclasses.replace(changes[role], **{key: getattr(default, key)})
        total = {name: value for name, value in corrections[role].items() if name != key}
        if key in (original := _original_values(result, role)):
            total[key] = original[key]
        corrections[role] = total
        if changes[role] == default:
            del changes[role]
    corrections = {role: total for role, total in corrections.items() if total}
    return dataclasses.replace(
        result, changes=changes, corrections=corrections if changes else {}, lever_arms=lever_arms
    )


def _restricted(result: Preflight, roles: Collection[str]) -> Preflight:
    """Return a result that changes some roles only; the others keep what they had before."""
    changes = {role: change for role, change in result.changes.items() if role in roles}
    totals = {
        role: total
        if role in roles or role not in result.changes
        else _original_values(result, role)
        for role, total in result.corrections.items()
    }
    return dataclasses.replace(
        result,
        changes=changes,
        corrections={role: total for role, total in totals.items() if total} if changes else {},
        lever_arms=result.lever_arms if LEVER_ARMS in roles else {},
    )


def _original_values(result: Preflight, role: str) -> Mapping[str, Any]:
    values: Mapping[str, Any] = result.original[role].changes if role in result.original else {}
    return values


def _with_lever_arm(recording: Recording, lever_arms: Mapping[str, list[float]]) -> Recording:
    """Return the recording with the fixes in a frame of their own at the lever arm."""
    fixes = recording.gps
    if fixes is None or 'gps' not in lever_arms:
        return recording
    x, y, z = lever_arms['gps']
    places = {_ANTENNA: (x, y, z)}
    if not recording.transforms:
        # As with `lever_arms` of recording.yaml, the other sensors stay at the base.
        frames = {
            recording.messages[recording.roles[role]].frame.strip('/')
            for role in PLACED_ROLES
            if role in recording.roles and role != 'gps'
        }
        places |= dict.fromkeys(frames - {'base_link', ''}, (0.0, 0.0, 0.0))
    added = [
        StaticTransform('base_link', frame, place, (0.0, 0.0, 0.0, 1.0))
        for frame, place in places.items()
    ]
    moved = recording.with_messages('gps', dataclasses.replace(fixes, frame=_ANTENNA))
    return dataclasses.replace(moved, transforms=(*recording.transforms, *added))


def _problems(result: Preflight) -> dict[tuple[str, ...], tuple[Severity, float, Finding]]:
    """Return severity, value over limit and finding of each problem.

    Problems are named by check, code without its size, topic and part of the check.
    """
    problems: dict[tuple[str, ...], tuple[Severity, float, Finding]] = {}
    for outcome in result.outcomes:
        finding, share = outcome.measure.finding, outcome.measure.share
        if finding is not None:
            code = finding.code.removesuffix('_large')
            key = (outcome.check, code, finding.subject, outcome.measure.subject)
            problems[key] = (finding.severity, max(share or 1.0, 1.0), finding)
    return problems
