# SPDX-License-Identifier: Apache-2.0
"""Which topic is the imu, the gps, the truth and the magnetometer; and the labels of a run."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Collection, Mapping
from itertools import combinations
from pathlib import Path

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.common.findings import Finding
from sim_sensors.core.measurements import MessageArray
from .findings import ONLY_ONE, OVERLAP, SEVERAL
from .message_types import known_type
from .poses import TRAJECTORY_SUFFIXES
from .recording import DEFAULT_TOPICS, NAMED_ROLES, OPTIONAL_ROLES, ROLE_CLASSES, Recording

DEFAULT_SCENARIO = 'drive'
_GENERIC = (
    'bag',
    'rosbag',
    'rosbag2',
    'mcap',
    'db3',
    'sqlite3',
    'csv',
    'data',
    'recording',
    'state',
)
_FILES = ('.mcap', '.db3', '.bag', '.tlog', *TRAJECTORY_SUFFIXES)
_NUMBERED = re.compile(r'(?P<scenario>.*[^_\W\d].*?)[_-](?:seg|run|trial)?\d+')


def assign_roles(
    where: str,
    types: Mapping[str, str],
    chosen: Mapping[str, str | None],
    known: Mapping[str, str],
) -> tuple[dict[str, str], list[Finding]]:
    """Give each role its topic.

    Parameters
    ----------
    types : mapping of str to str
        Message type by topic, of all topics that can be read.
    chosen : mapping of str to (str or None)
        Topics named by the user; None: the role is not wanted. A leading slash does not matter.
    known : mapping of str to str
        Roles that follow from the file names of a CSV folder.

    Returns
    -------
    dict of str to str, list of Finding
        Role to topic. A role without any topic is missing. Where the default topic is missing and
        exactly one topic has the type of imu, gps or mag, that one is taken, with a note; of
        several none is. The truth is never guessed, as wheel odometry has its type too; nor is
        what a camera gave.

    Raises
    ------
    RecordingError
        When a named topic is missing or of another type.
    """
    roles: dict[str, str] = {}
    notes: list[Finding] = []
    for role, wanted in ROLE_CLASSES.items():
        same = [topic for topic, name in types.items() if known_type(name).array is wanted]
        if role in chosen:
            name = chosen[role]
            if name is not None:
                roles[role] = _named(where, role, name, types, same)
            continue
        # What has another role by its name is not guessed to have this one.
        named = {
            topic.strip('/')
            for one in NAMED_ROLES
            if one != role and (topic := chosen.get(one, DEFAULT_TOPICS[one])) is not None
        }
        same = [topic for topic in same if topic.strip('/') not in named]
        if role in known:
            roles[role] = known[role]
        elif DEFAULT_TOPICS[role] in same:
            roles[role] = DEFAULT_TOPICS[role]
        elif role not in NAMED_ROLES and len(same) == 1:
            roles[role] = same[0]
            notes.append(ONLY_ONE(same[0], default=DEFAULT_TOPICS[role], role=role))
        elif role not in (*NAMED_ROLES, *OPTIONAL_ROLES) and same:
            about = {'default': DEFAULT_TOPICS[role], 'role': role}
            notes.append(SEVERAL(', '.join(same), count=len(same), **about))
    return roles, notes


def roles_heard(recording: Recording, heard: Collection[str]) -> Recording:
    """Return the recording whose imu and gps are those that a judge subscribes to.

    A role that is open, since several topics have its type, goes to the one among them that is in
    `heard` (topics, with or without a leading slash); to none where that are several or none.
    """
    names = {topic.strip('/') for topic in heard}
    roles = dict(recording.roles)
    for role in ('imu', 'gps'):
        found = [
            topic
            for topic, array in recording.messages.items()
            if isinstance(array, ROLE_CLASSES[role]) and topic.strip('/') in names
        ]
        if role not in roles and len(found) == 1:
            roles[role] = found[0]
    return dataclasses.replace(recording, roles=roles)


def run_name(path: Path) -> str:
    """Return the label of a run: the folder or file name, or the first parent with a telling one.

    Examples
    --------
    >>> run_name(Path('drive/segments/drive_seg00/bag'))
    'drive_seg00'
    """
    full = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links
    names = [full.stem if full.suffix in _FILES else full.name]
    names += [parent.name for parent in full.parents]
    return next((name for name in names if name and name.lower() not in _GENERIC), 'recording')


def scenario_of(name: str) -> str:
    """Return the scenario that a run name stands for: `<scenario>_<n>`, as in the paper's files.

    `_seg<n>`, `_run<n>` and `_trial<n>` count as numbers too. Any other name, and the date names
    of `ros2 bag record`, gives `drive`.

    Examples
    --------
    >>> scenario_of('half_sine_7'), scenario_of('drive0708_seg00'), scenario_of('tuesday')
    ('half_sine', 'drive0708', 'drive')
    """
    match = _NUMBERED.fullmatch(name)
    if match is None or name.startswith('rosbag2_'):
        return DEFAULT_SCENARIO
    return match['scenario']


def _named(where: str, role: str, name: str, types: Mapping[str, str], same: list[str]) -> str:
    topic = next((each for each in types if each.strip('/') == name.strip('/')), None)
    listed = ', '.join(same) or 'none'
    if topic is None:
        raise RecordingError(
            f'{where}: {role}: topic {name} is missing; topics of its type: {listed}'
        )
    if topic not in same:
        raise RecordingError(
            f'{where}: {role}: topic {topic} has type {types[topic]}; '
            f'topics of the right type: {listed}'
        )
    return topic


# Less than this share of the longest role in common is worth a remark.
_FULL = 0.95


def check_overlap(
    where: str, messages: Mapping[str, MessageArray], roles: Mapping[str, str]
) -> list[Finding]:
    """Compare the time spans of the topics that have a role which a judge needs.

    Two of them without any time in common are a RecordingError.
    """
    needed = [topic for role, topic in roles.items() if role not in OPTIONAL_ROLES]
    spans = {
        topic: (int(messages[topic].stamp_ns[0]), int(messages[topic].stamp_ns[-1]))
        for topic in needed
    }
    for (first, a), (second, b) in combinations(spans.items(), 2):
        if a[1] < b[0] or b[1] < a[0]:
            raise RecordingError(
                f'{where}: {first} ({_shown(a)}) and {second} ({_shown(b)}) do not overlap in '
                'time; check their clocks'
            )
    if len(spans) < 2:
        return []
    common = min(end for _, end in spans.values()) - max(start for start, _ in spans.values())
    longest = max(end - start for start, end in spans.values())
    if common >= _FULL * longest:
        return []
    return [OVERLAP(', '.join(spans), common=max(0, common) * 1e-9, longest=longest * 1e-9)]


def _shown(span: tuple[int, int]) -> str:
    return f'{span[0] * 1e-9:.3f} .. {span[1] * 1e-9:.3f} s'
