# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""Measurements of each input of the filter as plain arrays, for comparison with a truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from sim2real_eval.common.findings import Finding, decisive
from sim2real_eval.recording.metadata import FrameTree
from sim2real_eval.recording.recording import Recording
from sim_sensors.core.blocks import by_blocks
from sim_sensors.core.measurements import (
    FloatArray,
    ImuArray,
    IntArray,
    MessageArray,
    OdometryArray,
    PoseArray,
    TwistArray,
    is_absent,
)
from .configuration import FilterConfig, NavsatConfig
from .covariances import apply_covariances
from .parts import POSE, TWIST, Part, PartTable
from .replay_options import ReplayOptions
from .state import AX, FLAT, ROLL, VROLL, VX
from .topics import route

_FIRST_STATES = (0, VX, AX)
_QUANTITIES = ('position', 'orientation', 'velocity', 'rate', 'acceleration')
_SMALLEST_VARIANCE = 1e-9  # robot_localization uses it for smaller ones

CERTAIN = decisive(
    'rl.certain',
    'the variance of the {quantity} is zero in {count:d} of {messages:d} messages: as in '
    'robot_localization, 1e-9 is used, so they overrule all other inputs',
    'A zero covariance means unknown, but robot_localization takes the measurement as exact.',
    'set {setting}, from the data sheet or from the spread at rest',
)


@dataclasses.dataclass(frozen=True, eq=False)
class InputPart:
    """Measurements of one part of an input: pose, twist or acceleration.

    Messages without the quantity (covariance -1) are left out. Values and covariances are those of
    the messages: neither rotated into another frame nor free of gravity, neither differences of
    poses nor relative to the first pose.

    Attributes
    ----------
    name, topic : str
        Input (`odom0`) and its topic in the recording.
    kind : str
        `pose`, `twist` or `acceleration`.
    stamp_ns : (n,) int64
    first_state : int
        State of the filter, 0 to 14, that the first column of `values` measures.
    values : (n, k) float
        Consecutive states from `first_state` on, k = 3 or 6: m, rad (roll, pitch, yaw), m/s,
        rad/s, m/s^2.
    covariance : (n, k, k) float
    message_mask : (k,) bool
        Columns that the configuration measures, along the axes of the messages.
    states : (m,) int
        States of the filter that the part feeds, after the rotation into the target frame; those
        of the pose whose differences are fused, if it is differential.
    frame : str
        Frame of the values in the messages. For a twist, base_link if the messages name none.
    rotation, offset : (3, 3) and (3,) float
        Pose of `frame` in the target frame: the world frame for poses, otherwise base_link.
    differential, relative : bool
        Whether the filter fuses differences of poses, or poses relative to the first one.
    """

    name: str
    topic: str
    kind: str
    stamp_ns: IntArray
    first_state: int
    values: FloatArray
    covariance: FloatArray
    message_mask: NDArray[np.bool_]
    states: IntArray
    frame: str
    rotation: FloatArray
    offset: FloatArray
    differential: bool
    relative: bool


def input_parts(
    recording: Recording,
    config: FilterConfig,
    navsat: NavsatConfig | None = None,
    case: ReplayOptions | None = None,
) -> list[InputPart]:
    """Return the measurements of all inputs that come from the recording.

    An input that navsat_transform feeds is left out; its fixes are those of the recording's `gps`.
    Errors are those of `judge`.
    """
    case = case or ReplayOptions()
    routing = route(recording, config, navsat, case)
    recording = apply_covariances(recording, routing, config, case)
    transforms = recording.transforms
    if case.transforms is not None:
        transforms, _ = case.transforms.merge_with(transforms)
    frames = FrameTree(transforms, assume_identity=not transforms)
    by_navsat = {name: topic is None for name, topic in routing.sources.items()}
    layout = PartTable(config, navsat, by_navsat, frozenset())
    parts = []
    for name, topic in routing.sources.items():
        if topic is None:
            continue
        array = recording.messages[topic]
        layout.place(name, array, frames)
        first, own_parts = layout.of[name]
        for number, part in enumerate(own_parts, first):
            parts.append(_input_part(topic, array, part, layout, number, config.base_link_frame))
    return parts


def _input_part(
    topic: str, array: MessageArray, part: Part, layout: PartTable, number: int, base: str
) -> InputPart:
    first_state, values, covariance = _measurements(array, part.kind)
    is_present = np.ones(len(array), np.bool_)
    if isinstance(array, ImuArray):
        is_present = ~is_absent(covariance)
    stamps = array.stamp_ns
    if not is_present.all():
        stamps, values, covariance = stamps[is_present], values[is_present], covariance[is_present]
    row, group = layout.table[number], _FIRST_STATES[part.kind]
    columns = slice(first_state - group, first_state - group + values.shape[1])
    return InputPart(
        name=part.source.name,
        topic=topic,
        kind=layout.names[number].kind,
        stamp_ns=stamps,
        first_state=first_state,
        values=values,
        covariance=covariance,
        message_mask=part.mask[columns] > 0.0,
        states=first_state + np.flatnonzero(row.mask[columns]),
        frame=part.frame(array, base),
        rotation=np.array(row.rotation),
        offset=np.array(row.offset),
        differential=part.source.differential,
        relative=part.source.relative,
    )


def _measurements(array: MessageArray, kind: int) -> tuple[int, FloatArray, FloatArray]:
    """Return first state, values and covariances of one part of messages."""
    if isinstance(array, ImuArray):
        if kind == POSE:
            return ROLL, _angles(array.orientation), array.orientation_covariance
        if kind == TWIST:
            return VROLL, array.angular_velocity, array.angular_velocity_covariance
        return AX, array.linear_acceleration, array.linear_acceleration_covariance
    if kind == POSE:
        assert isinstance(array, (OdometryArray, PoseArray))
        pose = np.hstack([array.position, _angles(array.orientation)])
        return 0, pose, array.pose_covariance
    assert isinstance(array, (OdometryArray, TwistArray))
    twist = np.hstack([array.linear_velocity, array.angular_velocity])
    return VX, twist, array.twist_covariance


def _angles(orientation: FloatArray) -> FloatArray:
    """Return roll, pitch, yaw, rad, of quaternions (n, 4)."""
    return by_blocks(lambda rows: Rotation.from_quat(np.array(rows)).as_euler('xyz'), orientation)


def certain_parts(
    parts: Iterable[InputPart], recording: Recording, *, two_d: bool
) -> list[Finding]:
    """Return findings about measured quantities whose variance is zero, or nearly so.

    In `two_d` mode the variances of states that it holds at zero are not used.
    """
    notes = []
    for part in parts:
        variance = np.abs(np.diagonal(part.covariance, axis1=1, axis2=2))
        states = slice(part.first_state, part.first_state + variance.shape[1])
        is_used = part.message_mask & ~(two_d & FLAT[states])
        is_zero = (variance < _SMALLEST_VARIANCE) & is_used
        for column in range(0, is_zero.shape[1], 3):
            count = int(is_zero[:, column : column + 3].any(axis=1).sum())
            if count:
                quantity = _QUANTITIES[(part.first_state + column) // 3]
                setting = _setting(part.topic, quantity, recording)
                values = {'count': count, 'messages': len(is_zero)}
                subject = f'{part.name} ({part.topic})'
                notes.append(CERTAIN(subject, quantity=quantity, setting=setting, **values))
    return notes


def _setting(topic: str, quantity: str, recording: Recording) -> str:
    """Return the setting that states the deviation of a quantity, and its file."""
    if recording.roles.get('imu') == topic:
        return f'`corrections: {{imu: {{{quantity}_std: VALUE}}}}` in recording.yaml'
    return f'`deviation: {{{topic}: {{{quantity}: VALUE}}}}` in case.yaml (--case)'
