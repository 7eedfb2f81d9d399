# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Recording of one run: its messages by topic, and the roles (imu, gps, truth) of the topics."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from sim2real_eval.common.findings import Finding, RecordingError
from sim_sensors.camera.features import FeatureArray
from sim_sensors.camera.pinhole import CameraInfoArray
from sim_sensors.core.errors import Sim2RealError, did_you_mean
from sim_sensors.core.measurements import (
    FixArray,
    ImuArray,
    MagneticFieldArray,
    MessageArray,
    OdometryArray,
    PoseArray,
)
from sim_sensors.sensor.catalogue import KINDS
from .checks import COVARIANCE_KINDS, LEFT_OUT, REFERENCE, UNUSABLE
from .message_types import POSE_TYPES, TF_TYPE

_Array = TypeVar('_Array', bound=MessageArray)


@dataclasses.dataclass(frozen=True)
class ReferenceTruth:
    """Origin of a truth that is an estimate; `truth` in recording.yaml.

    Attributes
    ----------
    topic : str
        Topic of the truth.
    made_by : str
        Programs that estimated it, and their versions.
    made_from : tuple of str
        Topics of the sensors that were used.
    deviation : mapping of str to float
        Median standard deviations of the estimate, by quantity and unit.
    settings : mapping
        Parameters of the programs.
    """

    topic: str
    made_by: str
    made_from: tuple[str, ...] = ()
    deviation: Mapping[str, float] = dataclasses.field(default_factory=dict)
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def finding(self) -> Finding:
        """Finding which says that errors against this truth are too small."""
        sensors = ' and '.join(self.made_from) or "the recording's own sensors"
        return REFERENCE(self.topic, made_by=self.made_by, sensors=sensors)

    def to_mapping(self) -> dict[str, Any]:
        """Return the content of `truth` in recording.yaml."""
        return {
            'nature': 'reference',
            'topic': self.topic,
            'made_by': self.made_by,
            'made_from': list(self.made_from),
            'deviation': dict(self.deviation),
            'settings': dict(self.settings),
        }


DEFAULT_TOPICS: Mapping[str, str] = {
    'imu': '/imu/data',
    'gps': '/gps/fix',
    'truth': '/ground_truth/odometry',
    'mag': '/imu/mag',
    'camera_pose': '/camera/pose',
    'features': '/camera/features',
    'camera_info': '/camera/camera_info',
    **{f'ideal_{name}': f'/{KINDS.get(name).ideal_topic}' for name in ('imu', 'gps', 'mag')},
}
ROLE_CLASSES: Mapping[str, type[MessageArray]] = {
    'imu': ImuArray,
    'gps': FixArray,
    'truth': OdometryArray,
    'mag': MagneticFieldArray,
    'camera_pose': PoseArray,
    'features': FeatureArray,
    'camera_info': CameraInfoArray,
    'ideal_imu': ImuArray,
    'ideal_gps': FixArray,
    'ideal_mag': MagneticFieldArray,
}

IDEAL_ROLES = {role.removeprefix('ideal_'): role for role in ROLE_CLASSES if 'ideal_' in role}
"""Roles of a simulator's noise-free sensors, by kind of sensor."""
OPTIONAL_ROLES = ('mag', 'camera_pose', 'features', 'camera_info', *IDEAL_ROLES.values())
"""Roles that no judge needs; they are left out if ambiguous or broken."""
NAMED_ROLES = ('truth', 'camera_pose', 'features', 'camera_info', *IDEAL_ROLES.values())
"""Roles that are never guessed from the type, because other topics have the same type."""
PLACED_ROLES = ('imu', 'gps', 'mag', *IDEAL_ROLES.values())
"""Roles of sensors that may have a lever arm in recording.yaml."""


@dataclasses.dataclass(frozen=True)
class StaticTransform:
    """Pose of frame `child` in frame `parent`, constant over the run.

    Attributes
    ----------
    parent, child : str
        Frame names.
    translation : tuple of 3 float
        Metres, in `parent`: for a sensor frame in base_link this is the lever arm.
    rotation : tuple of 4 float
        Quaternion x y z w that takes vectors from `child` to `parent`.
    """

    parent: str
    child: str
    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)


@dataclasses.dataclass
class Content:
    """Content of a file or folder before it is checked.

    Attributes
    ----------
    messages : dict of str to MessageArray
        Messages by topic.
    ros_types : dict of str to str
        Message type by topic.
    roles : dict of str to str
        Topics of the roles that follow from file names.
    transforms : list of StaticTransform
        Static transforms between frames.
    notes : list of Finding
        Findings of the reader.
    ignored : list of str
        Files without a topic, and topics of other types.
    scenario : str or None
        Scenario in the custom data of a bag.
    keeps_arrival : bool
        True if `arrival_ns` holds times of arrival at the judge; False if it holds the receive
        times of a recorder.
    late_ns : dict of str to int
        As in `Recording`.
    """

    messages: dict[str, MessageArray] = dataclasses.field(default_factory=dict)
    ros_types: dict[str, str] = dataclasses.field(default_factory=dict)
    roles: dict[str, str] = dataclasses.field(default_factory=dict)
    transforms: list[StaticTransform] = dataclasses.field(default_factory=list)
    notes: list[Finding] = dataclasses.field(default_factory=list)
    ignored: list[str] = dataclasses.field(default_factory=list)
    scenario: str | None = None
    keeps_arrival: bool = False
    late_ns: dict[str, int] = dataclasses.field(default_factory=dict)


class _RoleMessages(Generic[_Array]):
    """Attribute of a recording: the messages of the role of the same name, or None."""

    def __init__(self, kind: type[_Array]) -> None:
        self._kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, recording: None, owner: type) -> _RoleMessages[_Array]: ...

    @overload
    def __get__(self, recording: Recording, owner: type | None = None) -> _Array | None: ...

    def __get__(self, recording: Recording | None, owner: type | None = None) -> Any:
        if recording is None:
            return self  # Access by the class, as in help().
        array = recording.messages.get(recording.roles.get(self._name, ''))
        return array if isinstance(array, self._kind) else None


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """The messages of one run.

    Attributes
    ----------
    name : str
        Label of the run, taken from the folder or file name.
    scenario : str
        Label of the manoeuvre, such as `line`; runs are compared per scenario.
    path : str
        File or folder that it was read from; empty for a recording made in memory.
    messages : mapping of str to MessageArray
        Messages by topic. Stamps of a topic never decrease; those of the truth increase strictly.
    roles : mapping of str to str
        Topic by role, a key of `ROLE_CLASSES`; a role that the run lacks is missing.
    transforms : tuple of StaticTransform
        Transforms from /tf_static, static_transforms.yaml or recording.yaml.
    notes : tuple of Finding
        Repairs and suspicious properties.
    ros_types : mapping of str to str
        Message type by topic where it is not the default of its array class.
    ignored : tuple of str
        Topics of other types, as `topic (type)`.
    reference : ReferenceTruth or None
        Origin of a truth that was estimated from the recording's own sensors.
    corrections : mapping of str to correction
        Corrections that were applied to the messages of a role, as in recording.yaml.
    block : str
        Label of recordings that are not independent, from recording.yaml; may be empty.
    late_ns : mapping of str to int
        By topic: time from the arrival of the last message here to that of a later message that
        was dropped, ns. A live node receives both.
    imu, gps, truth, mag, camera_pose, features, camera_info : MessageArray or None
        Messages of a role: IMU, GPS receiver, true motion, magnetometer, poses estimated from a
        camera's features, feature tracks of a camera, and its size, camera matrix and lens.

    Examples
    --------
    >>> from sim2real_eval import simulate
    >>> from sim_sensors import motion_of
    >>> drive = simulate(motion_of('line', duration=2.0), gps='baseline', imu='ideal')
    >>> drive.scenario, len(drive.gps), drive.roles['imu']
    ('default', 21, '/imu/data')
    """

    name: str
    scenario: str
    path: str
    messages: Mapping[str, MessageArray]
    roles: Mapping[str, str]
    transforms: tuple[StaticTransform, ...] = ()
    notes: tuple[Finding, ...] = ()
    ros_types: Mapping[str, str] = dataclasses.field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    reference: ReferenceTruth | None = None
    corrections: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    block: str = ''
    late_ns: Mapping[str, int] = dataclasses.field(default_factory=dict)

    imu = _RoleMessages(ImuArray)
    gps = _RoleMessages(FixArray)
    truth = _RoleMessages(OdometryArray)
    mag = _RoleMessages(MagneticFieldArray)
    camera_pose = _RoleMessages(PoseArray)
    features = _RoleMessages(FeatureArray)
    camera_info = _RoleMessages(CameraInfoArray)

    def __post_init__(self) -> None:
        for role, topic in self.roles.items():
            if role not in ROLE_CLASSES:
                raise ValueError(
                    f'role {role!r} is unknown, must be one of {", ".join(ROLE_CLASSES)}'
                )
            if topic not in self.messages:
                raise ValueError(f'role {role!r} names topic {topic!r}, which holds no messages')
            _require_class(role, self.messages[topic])

    def __repr__(self) -> str:
        counts = ', '.join(
            f'{len(self.messages[topic])} {role}' for role, topic in self.roles.items()
        )
        span = (self.end_ns - self.start_ns) * 1e-9
        return f'<Recording {self.name} ({self.scenario}): {span:.4g} s, {counts or "no role"}>'

    @classmethod
    def of_truth(cls, truth: OdometryArray, name: str, scenario: str, path: str = '') -> Recording:
        """Return a recording that holds only a true motion."""
        topic = DEFAULT_TOPICS['truth']
        return cls(name, scenario, path, {topic: truth}, {'truth': topic})

    @property
    def start_ns(self) -> int:
        """Earliest stamp of any message; 0 when there are none."""
        return min((int(a.stamp_ns[0]) for a in self.messages.values() if len(a)), default=0)

    @property
    def end_ns(self) -> int:
        """Latest stamp of any message; 0 when there are none."""
        return max((int(a.stamp_ns[-1]) for a in self.messages.values() if len(a)), default=0)

    def require(self, role: str) -> MessageArray:
        """Return the messages of `role`.

        Raises
        ------
        RecordingError
            When the recording does not have them; names the topics that it does have.
        """
        if role in self.roles:
            return self.messages[self.roles[role]]
        array_class = ROLE_CLASSES[role]
        same_type = [topic for topic, a in self.messages.items() if isinstance(a, array_class)]
        listed = f'topics of its type: {", ".join(same_type)}' if same_type else ''
        default = DEFAULT_TOPICS[role]
        poses = self.possible_truths() if role == 'truth' else []
        candidates = f'; {", ".join(poses)} may be it' if poses else ''
        raise RecordingError(
            f'{self.path or self.name}: no {role} topic '
            f'({default} is missing{self.why_missing(default, role)}; '
            f'{listed or "no topic of its type"}{candidates}); name one by --topic {role}=..., '
            'or in recording.yaml'
        )

    def possible_truths(self) -> list[str]:
        """Return topics and files of poses that could be named as the truth.

        They are not used unless named, since poses may be estimates.
        """
        names = [topic for topic, a in self.messages.items() if isinstance(a, PoseArray)]
        for description in self.ignored:
            topic, _, kind = description.removesuffix(')').partition(' (')
            if kind in POSE_TYPES:
                names.append(topic)
            elif kind == TF_TYPE:
                names.append(f'{topic}:PARENT.CHILD')
        path = Path(self.path)
        beside = path.parent / f'{path.stem if path.is_file() else path.name}.tum'
        files = [beside, *(path.glob('*.tum') if path.is_dir() else ())]
        return names + [file.name for file in files if self.path and file.is_file()]

    def why_missing(self, topic: str, role: str = '') -> str:
        """Return the reason why a topic, or that of a role, was left out, in parentheses.

        Empty if it was not left out.
        """
        name = topic.strip('/')
        for note, reason in self.left_out():
            if note.subject.strip('/') == name:
                return f' ({reason})'
            if role and note.words.get('role') == role:
                return f' ({note.subject}: {reason})'
        return ''

    def left_out(self) -> list[tuple[Finding, str]]:
        """Return the findings about topics of readable types that were left out, and reasons."""
        notes = [note for note in self.notes if note.kind in (LEFT_OUT, UNUSABLE)]
        return [(note, note.words['problem']) for note in notes]

    def repairs(self, topics: Collection[str]) -> list[Finding]:
        """Return the findings about some topics, without those about covariances."""
        return [
            note
            for note in self.notes
            if note.subject in topics and note.kind not in COVARIANCE_KINDS
        ]

    def with_messages(self, role: str, array: MessageArray | None) -> Recording:
        """Return a copy in which `role` has other messages, or none.

        A role that had no topic takes its default topic. Transforms and notes stay. RecordingError
        for an unknown role.
        """
        if role not in DEFAULT_TOPICS:
            hint = did_you_mean(role, DEFAULT_TOPICS)
            allowed = ', '.join(DEFAULT_TOPICS)
            raise RecordingError(f'role {role!r} is not allowed{hint}; must be one of {allowed}')
        topic = self.roles.get(role, DEFAULT_TOPICS[role])
        messages, roles = dict(self.messages), dict(self.roles)
        reference = self.reference
        if array is None:
            if role in roles:
                del messages[topic], roles[role]
            if role == 'truth':
                reference = None
        else:
            _require_class(role, array)
            messages[topic], roles[role] = array, topic
        return dataclasses.replace(self, messages=messages, roles=roles, reference=reference)


def require_recording(where: str, candidate: object) -> Recording:
    """Return `candidate` if it is a Recording; anything else raises Sim2RealError."""
    if not isinstance(candidate, Recording):
        raise Sim2RealError(
            f'{where}: {reprlib.repr(candidate)} is not allowed; must be a Recording, which '
            'read_recording returns'
        )
    return candidate


def _require_class(role: str, array: MessageArray) -> None:
    if not isinstance(array, ROLE_CLASSES[role]):
        raise ValueError(
            f'role {role!r} was given {type(array).__name__}, '
            f'must be {ROLE_CLASSES[role].__name__}'
        )
