# SPDX-License-Identifier: Apache-2.0
"""The time of a recording for which there is truth, and in which noise-free sensors measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

import numpy as np

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.common.findings import Finding
from sim2real_eval.recording.recording import IDEAL_ROLES, OPTIONAL_ROLES, Recording
from sim_sensors.core.measurements import FixArray, IntArray, MessageArray, OdometryArray
from sim_sensors.motion.motions import noise_free_imu
from sim_sensors.motion.trajectory import Motion
from sim_sensors.sensor.catalogue import KINDS
from .findings import NOISE_FREE

_LEAST = 3  # samples that a motion is made of


def noise_free(recording: Recording) -> dict[str, MessageArray]:
    """Return what noise-free sensors measured, by kind of sensor; once where a stamp repeats."""
    found = {}
    for kind, role in IDEAL_ROLES.items():
        if role in recording.roles:
            array = recording.messages[recording.roles[role]]
            found[kind] = array.take(np.diff(array.stamp_ns, prepend=-1) > 0)
    return found


def noise_free_fixes(recording: Recording) -> FixArray | None:
    """Return what a noise-free GPS measured."""
    fixes = noise_free(recording).get('gps')
    return fixes if isinstance(fixes, FixArray) else None


def with_noise_free(recording: Recording, motion: Motion) -> Recording:
    """Return the recording of a motion with what its noise-free IMU measured, if it has one."""
    measured = noise_free_imu(motion)
    if measured is None:
        return recording
    return recording.with_messages(IDEAL_ROLES['imu'], measured)


def noise_free_notes(recording: Recording, simulated: Collection[str]) -> tuple[Finding, ...]:
    """Say which of the kinds of sensors that are simulated measure what noise-free ones did."""
    return tuple(
        NOISE_FREE(recording.roles[role], role=role, sensor=KINDS.get(kind).title)
        for kind, role in IDEAL_ROLES.items()
        if kind in simulated and role in recording.roles
    )


def common_span(recording: Recording, truth: OdometryArray) -> tuple[int, int]:
    """Return the first and last stamp of the truth for which noise-free sensors measured, too.

    Without those sensors they are those of the truth.

    Raises
    ------
    RecordingError
        When one measured at another time.
    """
    start_ns, end_ns = int(truth.stamp_ns[0]), int(truth.stamp_ns[-1])
    for kind, array in noise_free(recording).items():
        stamps = array.stamp_ns
        first, last = (int(stamps[0]), int(stamps[-1])) if len(stamps) else (0, -1)
        start_ns, end_ns = max(start_ns, first), min(end_ns, last)
        span = truth.stamp_ns[span_of(truth.stamp_ns, start_ns, end_ns)]
        if len(span) < _LEAST:
            role = IDEAL_ROLES[kind]
            raise RecordingError(
                f'{recording.path or recording.name}: {recording.roles[role]} ({role}) measured '
                f'during {len(span)} samples of the truth; must be at least {_LEAST}'
            )
        start_ns, end_ns = int(span[0]), int(span[-1])
    return start_ns, end_ns


def within(recording: Recording, start_ns: int, end_ns: int) -> Recording:
    """Return the recording with only the messages stamped in [start, end].

    Raises RecordingError when a topic whose role is needed has nothing there.
    """
    messages = {
        topic: array.take(span_of(array.stamp_ns, start_ns, end_ns))
        for topic, array in recording.messages.items()
    }
    roles = dict(recording.roles)
    for role, topic in recording.roles.items():
        if not len(messages[topic]) and role in OPTIONAL_ROLES:
            del messages[topic], roles[role]
        elif not len(messages[topic]):
            span = (end_ns - start_ns) * 1e-9
            raise RecordingError(
                f'{recording.path or recording.name}: {topic} ({role}) has no message in the '
                f'{span:.1f} s for which there is truth'
            )
    return dataclasses.replace(recording, messages=messages, roles=roles)


def span_of(stamp_ns: IntArray, start_ns: int, end_ns: int) -> slice:
    """Return where stamps, which never decrease, are in [start, end]."""
    first = int(np.searchsorted(stamp_ns, start_ns))
    return slice(first, int(np.searchsorted(stamp_ns, end_ns, side='right')))
