# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Reading of recordings: ROS bags, logs of Gazebo and PX4, CSV files and trajectory files."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import re
from collections.abc import Collection, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from sim2real_eval.common.findings import Finding, RecordingError
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.input_files import check_inputs
from sim_sensors.core.measurements import FixArray, MessageArray, OdometryArray
from . import checks
from .corrections import FixCorrection
from .csv_files import list_csv_files, read_csv_folder
from .fields import stated_covariances
from .gazebo_log import LOG_SUFFIX, STATE_LOG, read_gazebo_log
from .message_types import MESSAGE_TYPES, find_type
from .metadata import Metadata, TransformFile, find_metadata, read_metadata
from .poses import TRAJECTORY_SUFFIXES, derive_velocities, read_truth_of_poses
from .recording import (
    DEFAULT_TOPICS,
    IDEAL_ROLES,
    NAMED_ROLES,
    OPTIONAL_ROLES,
    ROLE_CLASSES,
    Content,
    Recording,
)
from .repairs import NothingUsableError, check_messages, merge_drifts
from .rosbag import STORAGE_SUFFIXES, find_storage_suffix, read_bag
from .transforms import merge_transforms, stated_transforms
from .truth import low_pass_truth
from .ulog import ULOG_SUFFIX, read_ulog

DEFAULT_SCENARIO = 'drive'
_LOG = logging.getLogger(__name__)
_GENERIC_NAME = re.compile('bag|rosbag2?|mcap|db3|sqlite3|csv|data|recording|state', re.IGNORECASE)
_SUFFIXES = (*STORAGE_SUFFIXES, LOG_SUFFIX, ULOG_SUFFIX, *TRAJECTORY_SUFFIXES)
_NUMBERED_NAME = re.compile(r'(?P<scenario>.*[^_\W\d].*?)[_-](?:seg|run|trial)?\d+')
_FULL_OVERLAP = 0.95
"""Share of the longest time span above which a shorter common span is not reported."""
_MAX_LATE_NS = 10_000_000_000
"""Time from the last kept message beyond which the arrival of a dropped one is wrong."""


def read_recording(
    path: str | Path,
    *,
    topics: Mapping[str, str | None] | None = None,
    scenario: str | None = None,
    name: str | None = None,
    metadata: str | Path | None = None,
    arrival: Literal['auto', 'stamp', 'recorded'] = 'auto',
    reader: str = 'auto',
) -> Recording:
    """Read one run, repairing what can be repaired and refusing the rest.

    Parameters
    ----------
    path : path
        rosbag2 folder (sqlite3 or mcap), .mcap, .db3 or ROS 1 .bag file, folder of CSV files,
        a log of Gazebo (.tlog, or the folder of it) or of PX4 (.ulg), or a trajectory file (.tum,
        .kitti, .txt), which holds only a truth.
    topics : mapping of str to (str or None), optional
        Role (a key of `ROLE_CLASSES`) to topic, or to None to do without the role. Overrides the
        YAML. The truth may also be a trajectory file in the recording's folder or a path, or two
        frames of a bag, `/tf:map.base_link`.
    scenario, name : str, optional
        Labels; they override the YAML, the custom data of the bag and the folder name.
    metadata : path, optional
        recording.yaml to use instead of the one in or beside the recording.
    arrival : str
        Source of `arrival_ns`: `stamp`, `recorded` (receive time, or column arrival_ns), or
        `auto`: as recording.yaml states, else `stamp` for bags and `recorded` for CSV folders.
    reader : str
        See `read_bag`.

    Raises
    ------
    RecordingError
        When the recording cannot be used; one line names the problem, its place and what is
        allowed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> header = 'stamp_ns,x,y,z,qx,qy,qz,qw,vx_body,vy_body,vz_body,wx,wy,wz'
    >>> rows = [f'{k}00000000,{k},0,0,0,0,0,1,10,0,0,0,0,0' for k in range(1, 5)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, 'truth.csv').write_text(chr(10).join([header, *rows]))
    ...     recording = read_recording(folder, name='drive', scenario='line')
    >>> recording.roles, len(recording.truth)
    ({'truth': '/ground_truth/odometry'}, 4)
    """
    path = Path(path)
    if not path.exists():
        raise RecordingError(f'{path}: no such file or folder')
    try:
        check_inputs(path)
    except OSError as error:
        raise RecordingError(f'{error.filename}: {error.strerror}') from None
    sidecar = Path(metadata) if metadata is not None else find_metadata(path)
    settings = read_metadata(sidecar) if sidecar is not None else Metadata()
    where = str(path)
    chosen_topics = {**settings.topics, **(topics or {})}
    try:
        content = _read_content(path, settings, reader, {**DEFAULT_TOPICS, **chosen_topics})
    except OSError as error:
        raise RecordingError(f'{path}: cannot be read: {error.strerror}') from None
    pose_topic = read_truth_of_poses(path, content, chosen_topics)
    _refuse_ignored_topics(where, content, chosen_topics)
    if not content.messages:
        ignored = ', '.join(content.ignored) or 'none'
        raise RecordingError(
            f'{path}: no topic of a known type; topics of other types: {ignored}; '
            f'must have one of {", ".join(MESSAGE_TYPES)}'
        )
    roles, notes = _assign_content_roles(where, content, chosen_topics)
    remaining = _swap_coordinates(f'{sidecar}', content, roles, settings.corrections)
    requested = {*_stripped_names(topics or {})}
    if pose_topic and 'truth' in (topics or {}):
        # A file of poses, or frames, became this topic.
        requested.add(pose_topic.strip('/'))
    _check_topics(where, content, roles, requested, settings, notes)
    messages = dict(content.messages)
    _apply_corrections(f'{sidecar}', messages, roles, settings, remaining, notes)
    notes += check_overlap(where, messages, roles)
    for role, frame in settings.frames.items():
        if role in roles:
            messages[roles[role]] = dataclasses.replace(messages[roles[role]], frame=frame)
    stated = stated_transforms(f'{sidecar}', settings, messages, roles, notes, content.transforms)
    _process_truth(where, messages, roles, settings.low_pass, pose_topic, notes)
    chosen_arrival = settings.arrival if arrival == 'auto' else arrival
    if chosen_arrival == 'stamp' or (chosen_arrival is None and not content.keeps_arrival):
        messages = {
            topic: dataclasses.replace(array, arrival_ns=array.stamp_ns)
            for topic, array in messages.items()
        }
        content.late_ns.clear()
    reference = settings.reference
    if reference is not None and reference.topic.strip('/') != roles.get('truth', '').strip('/'):
        reference = None
    if reference is not None:
        notes.append(dataclasses.replace(reference, topic=roles['truth']).finding)
    label = name or settings.name or label_from_path(path)
    for note in notes:
        _LOG.info('%s: %s', label, note)
    return Recording(
        name=label,
        scenario=(scenario or settings.scenario or content.scenario or scenario_from_name(label)),
        path=where,
        messages=messages,
        roles=roles,
        transforms=merge_transforms([*content.transforms, *stated], notes),
        notes=tuple(notes),
        ros_types=content.ros_types,
        ignored=tuple(content.ignored),
        reference=reference,
        corrections=settings.corrections,
        block=settings.block,
        late_ns=content.late_ns,
    )


def _read_content(
    path: Path, settings: Metadata, reader: str, topics: Mapping[str, str | None]
) -> Content:
    if path.is_dir():
        if (path / 'metadata.yaml').is_file():
            return read_bag(path, reader, topics)
        if (path / STATE_LOG).is_file():
            return read_gazebo_log(path)
        if list_csv_files(path):
            return read_csv_folder(path, settings)
        if any(find_storage_suffix(file) for file in path.iterdir()):
            return read_bag(path, reader, topics)
        inside = [*sorted(path.glob('*/metadata.yaml')), *sorted(path.glob('*/*/metadata.yaml'))]
        hint = f'; did you mean {inside[0].parent}?' if inside else ''
        raise RecordingError(
            f'{path}: not a recording: neither metadata.yaml nor CSV files inside{hint}'
        )
    if path.suffix in TRAJECTORY_SUFFIXES:
        return Content(roles={'truth': DEFAULT_TOPICS['truth']})
    if path.suffix == LOG_SUFFIX:
        return read_gazebo_log(path)
    if path.suffix == ULOG_SUFFIX:
        return read_ulog(path)
    if path.suffix not in STORAGE_SUFFIXES:
        if find_storage_suffix(path):
            raise RecordingError(
                f'{path}: is compressed; unpack it with `zstd -d {path} -o '
                f'{path.with_suffix("")}` and give that file'
            )
        allowed = ', '.join(_SUFFIXES)
        raise RecordingError(f'{path}: not a recording: must be a folder or a file {allowed}')
    return read_bag(path, reader, topics)


def _assign_content_roles(
    where: str, content: Content, chosen_topics: Mapping[str, str | None]
) -> tuple[dict[str, str], list[Finding]]:
    """Assign the roles; an empty topic has none unless it is named."""
    named = _stripped_names(chosen_topics)
    used = [topic for topic, a in content.messages.items() if len(a) or topic.strip('/') in named]
    types = {topic: content.ros_types[topic] for topic in used}
    roles, notes = assign_roles(where, types, chosen_topics, content.roles)
    return roles, content.notes + notes


def _refuse_ignored_topics(
    where: str, content: Content, chosen_topics: Mapping[str, str | None]
) -> None:
    """Raise RecordingError if a role names a topic whose type is not read."""
    for description in content.ignored:
        topic, _, kind = description.removesuffix(')').partition(' (')
        for role, name in chosen_topics.items():
            if kind and name is not None and name.strip('/') == topic.strip('/'):
                types = [k.name for k in MESSAGE_TYPES.values() if k.array is ROLE_CLASSES[role]]
                raise RecordingError(
                    f'{where}: {role}: topic {topic} has type {kind}; must be one of '
                    f'{", ".join(types)}'
                )


def _swap_coordinates(
    where: str, content: Content, roles: Mapping[str, str], corrections: Mapping[str, Any]
) -> dict[str, Any]:
    """Exchange latitude and longitude where stated, before coordinates are checked.

    Return the remaining corrections. Raise RecordingError for a correction of a role that the
    recording lacks.
    """
    remaining = dict(corrections)
    for role, correction in corrections.items():
        if role not in roles:
            raise RecordingError(
                f'{where}: corrections.{role} is not allowed: the recording has no {role} topic; '
                f'must be one of its roles: {", ".join(roles) or "none"}'
            )
        if isinstance(correction, FixCorrection) and correction.swapped:
            topic = roles[role]
            fixes = content.messages[topic]
            assert isinstance(fixes, FixArray)
            content.messages[topic] = FixCorrection(swapped=True).apply(fixes)
            remaining[role] = dataclasses.replace(correction, swapped=False)
    return remaining


def _check_topics(
    where: str,
    content: Content,
    roles: dict[str, str],
    requested: Collection[str],
    settings: Metadata,
    notes: list[Finding],
) -> None:
    """Check every topic, and leave out those that fail, with a finding.

    Raise RecordingError if the topic of a required role fails. A topic without usable messages is
    left out nevertheless, unless the caller requested it.
    """
    for topic in list(content.messages):
        role = next((name for name, role_topic in roles.items() if role_topic == topic), None)
        has_covariance = find_type(content.ros_types[topic]).has_covariance
        try:
            array, remarks = check_messages(
                where,
                topic,
                content.messages[topic],
                role=role or '',
                is_truth=role == 'truth',
                # The covariance of noise-free messages is rightly zero.
                has_covariance=has_covariance and role not in IDEAL_ROLES.values(),
                stated=stated_covariances(role or '', settings.corrections.get(role or '')),
            )
        except RecordingError as error:
            is_needed = role is not None and role not in OPTIONAL_ROLES
            is_requested = topic.strip('/') in requested
            if is_needed and (is_requested or not isinstance(error, NothingUsableError)):
                raise
            roles.pop(role or '', None)
            problem = str(error).removeprefix(f'{where}: {topic}: ')
            lost_role = role if is_needed else _lost_role(topic, content, roles)
            if lost_role is None:
                count = len(content.messages[topic])
                notes.append(checks.LEFT_OUT(topic, problem=f'{problem} ({count}x)'))
            else:
                notes.append(checks.UNUSABLE(topic, problem=problem, role=lost_role))
            del content.messages[topic], content.ros_types[topic]
            continue
        late_ns = int(content.messages[topic].arrival_ns.max() - array.arrival_ns.max())
        if 0 < late_ns < _MAX_LATE_NS:
            content.late_ns[topic] = late_ns
        content.messages[topic] = array
        notes += remarks
    notes[:] = merge_drifts(notes)


def _lost_role(topic: str, content: Content, roles: Mapping[str, str]) -> str | None:
    """Return the role that an empty topic would have if it were not empty."""
    if len(content.messages[topic]):
        return None
    if 'truth' not in roles and topic.strip('/') == DEFAULT_TOPICS['truth'].strip('/'):
        return 'truth'
    kind = type(content.messages[topic])
    open_roles = (role for role in ('imu', 'gps') if role not in roles)
    return next((role for role in open_roles if ROLE_CLASSES[role] is kind), None)


def _apply_corrections(
    where: str,
    messages: dict[str, MessageArray],
    roles: Mapping[str, str],
    settings: Metadata,
    remaining: Mapping[str, Any],
    notes: list[Finding],
) -> None:
    """Apply the corrections of recording.yaml that `_swap_coordinates` left."""
    for role, correction in remaining.items():
        if role not in roles:
            continue
        topic, stated = roles[role], settings.corrections[role]
        was_exchanged = checks.EXCHANGED in [n.kind for n in notes if n.subject == topic]
        if correction != stated and was_exchanged:
            raise RecordingError(
                f'{where}: corrections.{role}.swapped: true is not allowed: longitudes of {topic} '
                'exceed 90 deg, so they are not latitudes; must be false'
            )
        if changes := stated.changed_parameters():
            messages[topic] = correction.apply(messages[topic])
            notes.append(checks.CORRECTED(topic, change=', '.join(changes)))


def _process_truth(
    where: str,
    messages: dict[str, MessageArray],
    roles: Mapping[str, str],
    low_pass: float | None,
    pose_topic: str,
    notes: list[Finding],
) -> None:
    """Low-pass the truth where stated, and derive the velocities of a truth of poses."""
    topic = roles.get('truth', '')
    truth = messages.get(topic)
    if low_pass is not None and isinstance(truth, OdometryArray):
        messages[topic], note = low_pass_truth(where, topic, truth, low_pass)
        notes.append(note)
    poses = messages.get(pose_topic)
    if isinstance(poses, OdometryArray):
        messages[pose_topic], note = derive_velocities(where, pose_topic, poses)
        notes.append(note)


# Roles.


def assign_roles(
    where: str,
    types: Mapping[str, str],
    chosen_topics: Mapping[str, str | None],
    file_roles: Mapping[str, str],
) -> tuple[dict[str, str], list[Finding]]:
    """Assign a topic to each role.

    Parameters
    ----------
    where : str
        File or folder, for error messages.
    types : mapping of str to str
        Message type by topic, of all topics that can be read.
    chosen_topics : mapping of str to (str or None)
        Topics named by the user; None for a role that is not wanted. A leading slash does not
        matter.
    file_roles : mapping of str to str
        Roles that follow from the file names of a CSV folder.

    Returns
    -------
    dict of str to str, list of Finding
        Role to topic. A role without any topic is missing. If the default topic is missing and
        exactly one topic has the type of imu, gps or mag, that one is taken, with a finding. The
        truth is never guessed, as wheel odometry has its type too; nor are the topics of a camera.

    Raises
    ------
    RecordingError
        When a named topic is missing or of another type.
    """
    roles: dict[str, str] = {}
    notes: list[Finding] = []
    for role, array_class in ROLE_CLASSES.items():
        same_type = [
            topic for topic, name in types.items() if find_type(name).array is array_class
        ]
        if role in chosen_topics:
            name = chosen_topics[role]
            if name is not None:
                roles[role] = _find_named_topic(where, role, name, types, same_type)
            continue
        # A topic that has another role by its name is not a candidate for this one.
        named_topics = {
            topic.strip('/')
            for other in NAMED_ROLES
            if other != role and (topic := chosen_topics.get(other, DEFAULT_TOPICS[other]))
        }
        candidates = [topic for topic in same_type if topic.strip('/') not in named_topics]
        default = DEFAULT_TOPICS[role]
        if role in file_roles:
            roles[role] = file_roles[role]
        elif default in candidates:
            roles[role] = default
        elif role not in NAMED_ROLES and len(candidates) == 1:
            roles[role] = candidates[0]
            notes.append(checks.ONLY_ONE(candidates[0], default=default, role=role))
        elif role not in (*NAMED_ROLES, *OPTIONAL_ROLES) and candidates:
            listed, count = ', '.join(candidates), len(candidates)
            notes.append(checks.SEVERAL(listed, count=count, default=default, role=role))
    return roles, notes


def _find_named_topic(
    where: str, role: str, name: str, types: Mapping[str, str], same_type: list[str]
) -> str:
    topic = next((topic for topic in types if topic.strip('/') == name.strip('/')), None)
    listed = ', '.join(same_type) or 'none'
    if topic is None:
        raise RecordingError(
            f'{where}: {role}: topic {name} is missing; topics of its type: {listed}'
        )
    if topic not in same_type:
        raise RecordingError(
            f'{where}: {role}: topic {topic} has type {types[topic]}; '
            f'topics of the right type: {listed}'
        )
    return topic


def _stripped_names(topics: Mapping[str, str | None]) -> set[str]:
    return {topic.strip('/') for topic in topics.values() if topic is not None}


def assign_subscribed_roles(recording: Recording, topics: Collection[str]) -> Recording:
    """Return the recording with open imu and gps roles assigned by a judge's subscriptions.

    A role is open if several topics have its type. It goes to the only one of them in `topics`
    (with or without a leading slash), and stays open if there are several or none.
    """
    names = {topic.strip('/') for topic in topics}
    roles = dict(recording.roles)
    for role in ('imu', 'gps'):
        subscribed = [
            topic
            for topic, array in recording.messages.items()
            if isinstance(array, ROLE_CLASSES[role]) and topic.strip('/') in names
        ]
        if role not in roles and len(subscribed) == 1:
            roles[role] = subscribed[0]
    return dataclasses.replace(recording, roles=roles)


def check_overlap(
    where: str, messages: Mapping[str, MessageArray], roles: Mapping[str, str]
) -> list[Finding]:
    """Compare the time spans of the topics whose role a judge needs.

    Raise RecordingError if two of them do not overlap.
    """
    spans = {
        topic: (int(messages[topic].stamp_ns[0]), int(messages[topic].stamp_ns[-1]))
        for role, topic in roles.items()
        if role not in OPTIONAL_ROLES
    }
    for (first, a), (second, b) in combinations(spans.items(), 2):
        if a[1] < b[0] or b[1] < a[0]:
            raise RecordingError(
                f'{where}: {first} ({_format_span(a)}) and {second} ({_format_span(b)}) do not '
                'overlap in time; check their clocks'
            )
    if len(spans) < 2:
        return []
    common = min(end for _, end in spans.values()) - max(start for start, _ in spans.values())
    longest = max(end - start for start, end in spans.values())
    if common >= _FULL_OVERLAP * longest:
        return []
    numbers = {'common': max(0, common) * 1e-9, 'longest': longest * 1e-9}
    return [checks.OVERLAP(', '.join(spans), **numbers)]


def _format_span(span: tuple[int, int]) -> str:
    return f'{span[0] * 1e-9:.3f} .. {span[1] * 1e-9:.3f} s'


# Labels.


def label_from_path(path: Path) -> str:
    """Return the label of a run: the file or folder name, or the first specific parent's.

    Examples
    --------
    >>> label_from_path(Path('drive/segments/drive_seg00/bag'))
    'drive_seg00'
    """
    full = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links
    names = [full.stem if full.suffix in _SUFFIXES else full.name]
    names += [parent.name for parent in full.parents]
    specific = (name for name in names if name and not _GENERIC_NAME.fullmatch(name))
    # The label becomes part of file names and of tables.
    return ''.join(c if c.isprintable() else '_' for c in next(specific, 'recording'))


def scenario_from_name(name: str) -> str:
    """Return the scenario of a run name `<scenario>_<n>`, as in the paper's files.

    `_seg<n>`, `_run<n>` and `_trial<n>` count as numbers too. Any other name, and the date names
    of `ros2 bag record`, gives `drive`.

    Examples
    --------
    >>> [scenario_from_name(name) for name in ('half_sine_7', 'drive0708_seg00', 'tuesday')]
    ['half_sine', 'drive0708', 'drive']
    """
    match = _NUMBERED_NAME.fullmatch(name)
    if match is None or name.startswith('rosbag2_'):
        return DEFAULT_SCENARIO
    return match['scenario']


# Recordings that are to be read later.


@dataclasses.dataclass(frozen=True)
class RecordingSource:
    """Path of a recording, and settings that override its own.

    Attributes
    ----------
    path : str
        File or folder, as for `read_recording`.
    name : str or None
        Label of table rows and random streams.
    topics : tuple of (role, topic)
        Topics of roles.
    scenario : str or None
        Label of the manoeuvre.
    transforms : TransformFile or None
        Static transforms that replace or complete the recording's own.
    """

    path: str
    name: str | None = None
    topics: tuple[tuple[str, str], ...] = ()
    scenario: str | None = None
    transforms: TransformFile | None = None

    def expected_name(self) -> str:
        """Return the name that the recording will have, without reading it."""
        if self.name is not None:
            return self.name
        # An unreadable sidecar is reported when this recording is read, not before the others.
        with contextlib.suppress(Sim2RealError):
            sidecar = find_metadata(Path(self.path))
            if sidecar is not None and (name := read_metadata(sidecar).name):
                return name
        return label_from_path(Path(self.path))

    def read(self) -> Recording:
        """Read the recording."""
        recording = read_recording(
            self.path, topics=dict(self.topics) or None, scenario=self.scenario
        )
        if self.transforms is not None:
            transforms, notes = self.transforms.merge_with(recording.transforms)
            recording = dataclasses.replace(
                recording, transforms=transforms, notes=(*recording.notes, *notes)
            )
        # The scenario may follow from the recording's own name, so the name is set afterwards.
        return recording if self.name is None else dataclasses.replace(recording, name=self.name)


@dataclasses.dataclass(frozen=True)
class Failure:
    """Recording that could not be used, and the reason."""

    recording: str
    reason: str

    def __str__(self) -> str:
        prefix = '' if self.reason.startswith(self.recording) else f'{self.recording}: '
        return prefix + self.reason
