# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Corrections of one vehicle: what all of its recordings say together.

Scales, rotations, delays and standard deviations are constants of a vehicle. Each recording
estimates them, so that one value serves all recordings if it works in all of them. A value that
must be constant to be usable, but is not, is withheld.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sim2real_eval.common.findings import Finding, Severity
from sim2real_eval.recording.corrections import CORRECTIONS
from sim2real_eval.recording.recording import Recording
from .outcome import Outcome, Preflight
from .remedies import LEVER_ARMS, NOT_PROPOSED, Constant, corrected_constants, without, works

_IMU = {
    *('acceleration_scale', 'rate_scale', 'rotation', 'delay', 'axes', 'orientation_rotation'),
    *('heading', 'acceleration_std', 'rate_std', 'orientation_std'),
}
_GPS = {'delay', 'std', 'swapped'}
_TRUTH = {*('axes', 'turn', 'heading', 'speed_scale', 'position_scale', 'body_yaw', 'twist')}
_CONSTANTS: Mapping[str, set[str]] = {
    'imu': _IMU, 'ideal_imu': _IMU, 'gps': _GPS, 'ideal_gps': _GPS, 'truth': _TRUTH,
    LEVER_ARMS: {'gps'},
}  # fmt: skip
_HEADING, _RATE_BIAS = ('imu', 'heading'), ('imu', 'rate_bias')
_MAX_SPREAD = {_HEADING: 10.0, _RATE_BIAS: 0.01}
"""Largest difference between recordings of values that must be constant, deg and rad/s."""
_UNITS = {_HEADING: 'deg', _RATE_BIAS: 'rad/s'}
_MIN_RECORDINGS = 4
_ROBUST = 4.0 * 1.48
"""Median absolute deviations from the median that count as noise: four standard deviations."""


@dataclasses.dataclass(frozen=True)
class Pooled:
    """One value of a correction for several recordings.

    Attributes
    ----------
    constant : (role, key)
        Correction, or `lever_arms` and a role.
    value : float or list of float
        Value for all of them: the median; the root mean square of standard deviations.
    low, high : float or list of float
        Range of the values that single recordings gave.
    members : frozenset of int
        Positions of the recordings that need the correction.
    """

    constant: Constant
    value: Any
    low: Any
    high: Any
    members: frozenset[int]

    def to_record(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        role, key = self.constant
        return {
            'role': role,
            'key': key,
            'value': self.value,
            'low': self.low,
            'high': self.high,
            'recordings': len(self.members),
        }


def pool(
    runs: Sequence[Preflight],
    reread: Callable[[int], Recording],
    run: Callable[[Recording], Preflight],
) -> tuple[list[Preflight], list[Pooled]]:
    """Return the results of all recordings of a vehicle with common corrections, and these.

    Parameters
    ----------
    runs : sequence of Preflight
        Result of each recording by itself.
    reread : callable
        Reads the recording at a position again. It is called only for recordings that are
        corrected with a value other than their own.
    run : callable
        Runs every check on a corrected recording.
    """
    if len(runs) < 2:
        return list(runs), []
    noise = _noise(runs)
    results = [_without_noise(result, noise.get(i, {})) for i, result in enumerate(runs)]
    reasons = dict(_inconstant(results))
    ignored = [
        {*itertools.chain.from_iterable(noise.get(i, {}).values()), *reasons}
        for i in range(len(runs))
    ]
    results = [_withheld(result, reasons) for result in results]
    candidates = list(_candidates(results))
    while candidates:
        failed: set[Constant] = set()
        for i, result in enumerate(results):
            proposal = _with_values(result, i, candidates)
            if proposal is result:
                continue
            recording = reread(i)
            if works(recording, runs[i], proposal, run, ignored=ignored[i]):
                continue
            members = [pooled for pooled in candidates if i in pooled.members]
            failed = {
                pooled.constant
                for pooled in members
                if len(members) == 1
                or not works(
                    recording, runs[i], _with_values(result, i, [pooled]), run, ignored=ignored[i]
                )
            } or {pooled.constant for pooled in members}
            break
        if not failed:
            break
        candidates = [pooled for pooled in candidates if pooled.constant not in failed]
    return [_with_values(result, i, candidates) for i, result in enumerate(results)], candidates


def _noise(runs: Sequence[Preflight]) -> dict[int, dict[Finding, set[Constant]]]:
    """Return the warnings about constants that are noise, by recording, with what they correct.

    Few recordings have them, and their values are within the scatter of all recordings.
    """
    groups: dict[tuple[str, str], list[tuple[int, Outcome]]] = {}
    for i, result in enumerate(runs):
        for outcome in result.outcomes:
            if outcome.measure.value is not None:
                groups.setdefault((outcome.check, outcome.measure.subject), []).append(
                    (i, outcome)
                )
    noise: dict[int, dict[Finding, set[Constant]]] = {}
    for members in groups.values():
        flagged = [outcome for _, outcome in members if outcome.measure.finding is not None]
        if len(members) < _MIN_RECORDINGS or not 0 < 3 * len(flagged) < len(members):
            continue
        values = [_linear_value(outcome) for _, outcome in members]
        middle = statistics.median(values)
        scatter = _ROBUST * statistics.median(abs(value - middle) for value in values)
        for (i, outcome), value in zip(members, values, strict=True):
            finding = outcome.measure.finding
            if finding is None or finding.severity is Severity.DECISIVE:
                continue
            constants = {*corrected_constants(finding)}
            if constants and all(map(_is_constant, constants)) and abs(value - middle) <= scatter:
                noise.setdefault(i, {})[finding] = constants
    return noise


def _linear_value(outcome: Outcome) -> float:
    """Return the value of a check; the logarithm of a ratio."""
    value = outcome.measure.value
    assert value is not None
    return math.log(max(value, 1e-12)) if outcome.measure.scale == 'ratio' else value


def _is_constant(constant: Constant) -> bool:
    role, key = constant
    return key in _CONSTANTS.get(role, ())


def _without_noise(result: Preflight, noise: Mapping[Finding, set[Constant]]) -> Preflight:
    """Return a result without some findings and their corrections."""
    if not noise:
        return result
    cleared = result.with_findings(lambda finding: None if finding in noise else finding)
    needed = {
        constant
        for finding in cleared.findings
        if not finding.withheld
        for constant in corrected_constants(finding)
    }
    return without(cleared, set().union(*noise.values()) - needed)


def _inconstant(runs: Sequence[Preflight]) -> Iterator[tuple[Constant, str]]:
    """Yield corrections that must be constant but are not, with the reason to withhold them."""
    for constant, most in _MAX_SPREAD.items():
        values = [value for result in runs if (value := _total(result, constant)) is not None]
        spread = max(
            (_difference(a, b) for a, b in itertools.combinations(values, 2)), default=0.0
        )
        if spread > most:
            size = f'{spread:.3g} {_UNITS[constant]}'
            yield (
                constant,
                f'{NOT_PROPOSED}it differs by {size} between recordings; do not fuse it',
            )


def _total(result: Preflight, constant: Constant) -> tuple[Any, float] | None:
    """Return the value of a correction with the error that is left, or None if unknown."""
    role, key = constant
    original = result.original.get(role, CORRECTIONS[role]()).to_mapping()[key]
    if role in result.changes and key in result.changes[role].changes:
        return result.corrections[role].get(key, getattr(CORRECTIONS[role](), key)), 0.0
    check, subject = (
        ('orientation', 'imu heading') if constant == _HEADING else ('rate bias', 'imu')
    )
    for outcome in result.outcomes:
        value = outcome.measure.value
        if (outcome.check, outcome.measure.subject) == (check, subject) and value is not None:
            return (original + value, 0.0) if constant == _HEADING else (original, abs(value))
    return None


def _difference(a: tuple[Any, float], b: tuple[Any, float]) -> float:
    """Return the least difference of two values, of angles in deg for single numbers."""
    if isinstance(a[0], float):
        return abs(math.remainder(a[0] - b[0], 360.0))
    return float(np.linalg.norm(np.subtract(a[0], b[0]))) - a[1] - b[1]


def _withheld(result: Preflight, reasons: Mapping[Constant, str]) -> Preflight:
    """Return a result that does not correct inconstant values, and says why."""

    def checked(finding: Finding) -> Finding:
        texts = [
            reasons[constant] for constant in corrected_constants(finding) if constant in reasons
        ]
        return dataclasses.replace(finding, withheld=texts[0]) if texts else finding

    return without(result.with_findings(checked), list(reasons)) if reasons else result


def _candidates(runs: Sequence[Preflight]) -> Iterator[Pooled]:
    """Yield a common value of each constant that several recordings correct."""
    values: dict[Constant, dict[int, Any]] = {}
    for i, result in enumerate(runs):
        for role, change in result.changes.items():
            earlier = result.original[role].changes if role in result.original else {}
            for key in change.changes:
                # A value that follows an earlier one is not comparable with the others.
                if _is_constant((role, key)) and key not in earlier:
                    # The total is rounded.
                    total = result.corrections[role].get(key, change.changes[key])
                    values.setdefault((role, key), {})[i] = total
        for role, arm in result.lever_arms.items():
            values.setdefault((LEVER_ARMS, role), {})[i] = arm
    for constant, by_run in values.items():
        members = list(by_run.values())
        first = members[0]
        if len(members) < 2 or (isinstance(first, (str, bool)) and len({*members}) > 1):
            continue
        pooled = _median(members)
        if constant[1].endswith('std'):
            mean_square = statistics.fmean(value**2 for value in members)
            pooled = float(f'{math.sqrt(mean_square):.2g}')
        low, high = _columns(min, members), _columns(max, members)
        yield Pooled(constant, pooled, low, high, frozenset(by_run))


def _columns(function: Callable[[Sequence[float]], float], values: Sequence[Any]) -> Any:
    """Apply a function to numbers, or to each component of vectors."""
    if isinstance(values[0], list):
        return [function(column) for column in zip(*values, strict=True)]
    return function(values)


def _median(values: Sequence[Any]) -> Any:
    # The lower of two middle values is rounded already, unlike their mean.
    return _columns(statistics.median_low, values)


def _with_values(result: Preflight, position: int, pooled: Sequence[Pooled]) -> Preflight:
    """Return the result of one recording with the common values; itself if they are its own."""
    changes, lever_arms = dict(result.changes), dict(result.lever_arms)
    corrections = {role: dict(total) for role, total in result.corrections.items()}
    for constant in pooled:
        role, key = constant.constant
        if position not in constant.members:
            continue
        if role == LEVER_ARMS:
            lever_arms[key] = constant.value
            continue
        value = constant.value
        changes[role] = dataclasses.replace(
            changes[role], **{key: tuple(value) if isinstance(value, list) else value}
        )
        corrections[role][key] = value
    if changes == dict(result.changes) and lever_arms == dict(result.lever_arms):
        return result
    return dataclasses.replace(
        result, changes=changes, corrections=corrections, lever_arms=lever_arms
    )
