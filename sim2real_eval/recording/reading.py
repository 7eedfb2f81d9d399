# SPDX-License-Identifier: Apache-2.0
"""Read a recording: a bag of ROS 2 or ROS 1, a log of Gazebo, CSV files, or a trajectory file."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sim2real_eval.common.errors import RecordingError
from sim2real_eval.common.findings import Finding
from sim_sensors.core.errors import Sim2RealError
from sim_sensors.core.measurements import FixArray, MessageArray, OdometryArray
from . import findings
from .checks import NothingUsableError, check_messages
from .corrections import FixCorrection
from .csv_folder import csv_files, read_csv_folder
from .frames import TransformFile
from .gazebo_log import LOG_SUFFIX, STATE_LOG, read_gazebo_log
from .message_types import MESSAGE_TYPES, known_type
from .metadata import Metadata, find_metadata, read_metadata
from .poses import TRAJECTORY_SUFFIXES, truth_of_poses, with_velocities
from .recording import (
    DEFAULT_TOPICS,
    IDEAL_ROLES,
    NAMED_ROLES,
    OPTIONAL_ROLES,
    ROLE_CLASSES,
    Content,
    Recording,
    StaticTransform,
)
from .roles import assign_roles, check_overlap, run_name, scenario_of
from .rosbag import STORAGE_SUFFIXES, TF_STATIC, read_bag
from .truth import low_passed

_LOG = logging.getLogger(__name__)


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
        a log of Gazebo (.tlog, or the folder of it), or a trajectory file (.tum, .kitti, .txt),
        which is a truth alone.
    topics : mapping of str to (str or None), optional
        Role (a key of `ROLE_CLASSES`) to topic; None: do without that role. Overrides the
        YAML. The truth may also be a trajectory file in the recording's folder or a path, or two
        frames of a bag, `/tf:map.base_link`.
    scenario, name : str, optional
        Labels; override the YAML, the custom data of the bag and the folder name.
    metadata : path, optional
        recording.yaml to use in place of the one in or beside the recording.
    arrival : str
        What `arrival_ns` becomes: `stamp`, `recorded` (receive time, or column arrival_ns), or
        `auto`: as recording.yaml says, else `stamp` for bags and `recorded` for CSV folders.
    reader : str
        See `read_bag`.

    Raises
    ------
    RecordingError
        One line: what is wrong, where, and what is allowed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> text = 'stamp_ns,x,y,z,qx,qy,qz,qw,vx_body,vy_body,vz_body,wx,wy,wz'
    >>> rows = [f'{k}00000000,{k},0,0,0,0,0,1,10,0,0,0,0,0' for k in range(1, 5)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, 'truth.csv').write_text(chr(10).join([text, *rows]))
    ...     recording = read_recording(folder, name='drive', scenario='line')
    >>> recording.roles, len(recording.truth)
    ({'truth': '/ground_truth/odometry'}, 4)
    """
    path = Path(path)
    # Of a pipe or a device nobody knows when it ends.
    if not (path.is_file() or path.is_dir()):
        raise RecordingError(f'{path}: no such file or folder')
    sidecar = Path(metadata) if metadata is not None else find_metadata(path)
    given = read_metadata(sidecar) if sidecar is not None else Metadata()
    where = str(path)
    chosen = {**given.topics, **(topics or {})}
    try:
        content = _read_content(path, given, reader, {**DEFAULT_TOPICS, **chosen})
    except OSError as error:
        raise RecordingError(f'{path}: cannot be read: {error.strerror}') from None
    poses = truth_of_poses(path, content, chosen)
    if not content.messages:
        found = ', '.join(content.ignored) or 'none'
        raise RecordingError(
            f'{path}: no topic of a known type; topics of other types: {found}; '
            f'must have one of {", ".join(MESSAGE_TYPES)}'
        )
    # An empty topic has no role, unless it is named.
    named = _names(chosen)
    types = {
        topic: content.ros_types[topic]
        for topic, array in content.messages.items()
        if len(array) or topic.strip('/') in named
    }
    roles, notes = assign_roles(where, types, chosen, content.roles)
    notes = content.notes + notes
    corrections = _exchanged_first(f'{sidecar}', content, roles, given.corrections)
    _check_topics(where, content, roles, _names(topics or {}), notes)
    messages = dict(content.messages)
    for role, correction in corrections.items():
        if role not in roles:
            continue
        topic, keys = roles[role], ', '.join(given.corrections[role].changed())
        if correction != given.corrections[role] and findings.EXCHANGED in (n.kind for n in notes):
            raise RecordingError(
                f'{sidecar}: corrections.gps.swapped: true is not allowed: longitudes of {topic} '
                'are no latitudes; must be false'
            )
        if keys:
            messages[topic] = correction.applied(messages[topic])
            notes.append(findings.CORRECTED(topic, keys=keys))
    notes += check_overlap(where, messages, roles)
    for role, frame in given.frames.items():
        if role in roles:
            messages[roles[role]] = dataclasses.replace(messages[roles[role]], frame=frame)
    truth = messages.get(roles.get('truth', ''))
    if given.low_pass is not None and isinstance(truth, OdometryArray):
        topic = roles['truth']
        messages[topic], note = low_passed(where, topic, truth, given.low_pass)
        notes.append(note)
    truth = messages.get(poses)
    if isinstance(truth, OdometryArray):
        messages[poses], note = with_velocities(where, poses, truth)
        notes.append(note)
    keep = {'stamp': False, 'recorded': True}.get(
        given.arrival or '' if arrival == 'auto' else arrival, content.keeps_arrival
    )
    if not keep:
        messages = {
            topic: dataclasses.replace(array, arrival_ns=array.stamp_ns)
            for topic, array in messages.items()
        }
    reference = given.reference
    if reference is not None and reference.topic.strip('/') != roles.get('truth', '').strip('/'):
        reference = None
    if reference is not None:
        notes.append(dataclasses.replace(reference, topic=roles['truth']).finding)
    label = name or given.name or run_name(path)
    for note in notes:
        _LOG.info('%s: %s', label, note)
    return Recording(
        name=label,
        scenario=scenario or given.scenario or content.scenario or scenario_of(label),
        path=where,
        messages=messages,
        roles=roles,
        transforms=_merged(content.transforms, _given_transforms(given, messages, roles), notes),
        notes=tuple(notes),
        ros_types=content.ros_types,
        ignored=tuple(content.ignored),
        reference=reference,
        corrections=given.corrections,
    )


def _read_content(
    path: Path, given: Metadata, reader: str, topics: Mapping[str, str | None]
) -> Content:
    if path.is_dir():
        if (path / 'metadata.yaml').is_file():
            return read_bag(path, reader, topics)
        if (path / STATE_LOG).is_file():
            return read_gazebo_log(path)
        if csv_files(path):
            return read_csv_folder(path, given)
        if any(file.suffix in STORAGE_SUFFIXES for file in path.iterdir()):
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
    if path.suffix not in STORAGE_SUFFIXES:
        allowed = ', '.join((*STORAGE_SUFFIXES, LOG_SUFFIX, *TRAJECTORY_SUFFIXES))
        raise RecordingError(f'{path}: not a recording: must be a folder or a file {allowed}')
    return read_bag(path, reader, topics)


def _exchanged_first(
    where: str, content: Content, roles: Mapping[str, str], corrections: Mapping[str, Any]
) -> dict[str, Any]:
    """Exchange latitude and longitude, where asked for, before places are checked.

    Returns what is left to correct. Corrections of a role that the recording lacks are refused.
    """
    left = dict(corrections)
    for role, one in corrections.items():
        if role not in roles:
            raise RecordingError(
                f'{where}: corrections.{role} is not allowed: the recording has no {role} topic; '
                f'must be one of its roles: {", ".join(roles) or "none"}'
            )
        if isinstance(one, FixCorrection) and one.swapped:
            topic = roles[role]
            fixes = content.messages[topic]
            assert isinstance(fixes, FixArray)
            content.messages[topic] = FixCorrection(swapped=True).applied(fixes)
            left[role] = dataclasses.replace(one, swapped=False)
    return left


def _lost_role(topic: str, content: Content, roles: Mapping[str, str]) -> str | None:
    """Return the role that an empty topic would have, if it were not empty."""
    if len(content.messages[topic]):
        return None
    kind = type(content.messages[topic])
    found = [role for role in ('imu', 'gps') if role not in roles and ROLE_CLASSES[role] is kind]
    is_truth = topic.strip('/') == DEFAULT_TOPICS['truth'].strip('/') and 'truth' not in roles
    return 'truth' if is_truth else next(iter(found), None)


def _names(topics: Mapping[str, str | None]) -> set[str]:
    return {topic.strip('/') for topic in topics.values() if topic is not None}


def _check_topics(
    where: str,
    content: Content,
    roles: dict[str, str],
    asked: Collection[str],
    notes: list[Finding],
) -> None:
    """Check every topic; one that fails without a role, or has nothing to use, is left out, with a
    note. Whoever needs its role says so, and why it is missing; who `asked` for it hears it here.
    """
    for topic in list(content.messages):
        role = next((each for each, name in roles.items() if name == topic), None)
        stated = known_type(content.ros_types[topic]).has_covariance
        try:
            array, remarks = check_messages(
                where,
                topic,
                content.messages[topic],
                is_truth=role == 'truth',
                # What is noise-free rightly has one of zero.
                has_covariance=stated and role not in IDEAL_ROLES.values(),
            )
        except RecordingError as error:
            is_needed = role is not None and role not in OPTIONAL_ROLES
            is_asked = topic.strip('/') in asked
            if is_needed and (is_asked or not isinstance(error, NothingUsableError)):
                raise
            roles.pop(role or '', None)
            problem = str(error).removeprefix(f'{where}: {topic}: ')
            count = len(content.messages[topic])
            lost = role if is_needed else _lost_role(topic, content, roles)
            if lost is not None:
                notes.append(findings.UNUSABLE(topic, problem=problem, role=lost))
            elif count:
                notes.append(findings.LEFT_OUT(topic, problem=problem, count=count))
            else:
                notes.append(findings.EMPTY(topic))
            del content.messages[topic], content.ros_types[topic]
            continue
        content.messages[topic] = array
        notes += remarks


def _given_transforms(
    given: Metadata, messages: Mapping[str, MessageArray], roles: Mapping[str, str]
) -> list[StaticTransform]:
    """Return the transforms that the YAML states.

    Who states lever arms has described the sensors: one that is not named is at the base frame.
    """
    if not given.lever_arms:
        return list(given.transforms)
    frames = {role: messages[topic].frame for role, topic in roles.items()}
    placed = {*roles} - {*NAMED_ROLES} | {*IDEAL_ROLES.values()}
    stated = {transform.child for transform in given.transforms}
    # A magnetometer in the frame of an IMU whose arm is given has that arm.
    stated |= {frame for role, frame in frames.items() if role in given.lever_arms}
    arms = [
        StaticTransform(given.base_frame, frame, given.lever_arms.get(role, (0.0, 0.0, 0.0)))
        for role, frame in frames.items()
        if role in placed and (role in given.lever_arms or frame not in stated)
    ]
    return [*given.transforms, *arms]


def _merged(
    found: list[StaticTransform], given: list[StaticTransform], notes: list[Finding]
) -> tuple[StaticTransform, ...]:
    """Keep one transform per child frame: the last one, those of the YAML before those of tf."""
    result: dict[str, StaticTransform] = {}
    for transform in [*found, *given]:
        values = np.array([*transform.translation, *transform.rotation])
        norm = float(np.linalg.norm(values[3:]))
        frames = f'{transform.parent} -> {transform.child}'
        if not np.isfinite(values).all() or norm < 1e-6:
            notes.append(findings.BAD_TRANSFORM(TF_STATIC, frames=frames))
            continue
        known = result.get(transform.child)
        if known is not None and known != transform:
            frames = f'{known.parent} -> {known.child}'
            notes.append(findings.TRANSFORM_TWICE(TF_STATIC, frames=frames))
        result[transform.child] = transform
    return tuple(result.values())


# Where a recording is, and what became of one that could not be used.


@dataclasses.dataclass(frozen=True)
class Source:
    """Where a recording is, and what overrides its own statements.

    Attributes
    ----------
    name : str or None
        Label of rows and random streams.
    topics : tuple of (role, topic)
    scenario : str or None
    transforms : TransformFile or None
        Static transforms that replace or complete the recording's own.
    """

    path: str
    name: str | None = None
    topics: tuple[tuple[str, str], ...] = ()
    scenario: str | None = None
    transforms: TransformFile | None = None

    def own_name(self) -> str:
        """Return the name that the recording will have, without reading it."""
        if self.name is not None:
            return self.name
        path = Path(self.path)
        # A sidecar that cannot be read makes the recording fail in its turn, and not the others.
        with contextlib.suppress(Sim2RealError):
            sidecar = find_metadata(path)
            if sidecar is not None and (name := read_metadata(sidecar).name):
                return name
        return run_name(path)

    def read(self) -> Recording:
        """Read the recording."""
        recording = read_recording(
            self.path, topics=dict(self.topics) or None, scenario=self.scenario
        )
        if self.transforms is not None:
            transforms, notes = self.transforms.over(recording.transforms)
            recording = dataclasses.replace(
                recording, transforms=transforms, notes=(*recording.notes, *notes)
            )
        # Afterwards: the scenario may follow from the recording's own name, never from this one.
        return recording if self.name is None else dataclasses.replace(recording, name=self.name)


@dataclasses.dataclass(frozen=True)
class Failure:
    """A recording that could not be used, and why."""

    recording: str
    reason: str

    def __str__(self) -> str:
        known = self.reason.startswith(self.recording)
        return self.reason if known else f'{self.recording}: {self.reason}'
