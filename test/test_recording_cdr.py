# Copyright 2026 The sim2real_sensors contributors
# SPDX-License-Identifier: Apache-2.0
"""The codec of messages agrees with the decoder of rosbags."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recording_examples import TYPESTORE, arrays_equal, drive

from sim2real_eval.common.findings import RecordingError
from sim2real_eval.recording.cdr import decode, decode_transforms, encode, encode_transforms
from sim2real_eval.recording.message_types import MESSAGE_TYPES, TF_TYPE
from sim2real_eval.recording.recording import StaticTransform

POSE = {
    'position': 'pose.pose.position',
    'orientation': 'pose.pose.orientation',
    'pose_covariance': 'pose.covariance',
}
TWIST = {
    'linear_velocity': 'twist.twist.linear',
    'angular_velocity': 'twist.twist.angular',
    'twist_covariance': 'twist.covariance',
}
# Paths in the .msg files of fields that have another name there, by the type.
PATHS: dict[str, dict[str, str]] = {
    'sensor_msgs/msg/NavSatFix': {'status': 'status.status'},
    'nav_msgs/msg/Odometry': {'child_frame': 'child_frame_id', **POSE, **TWIST},
    'geometry_msgs/msg/PoseWithCovarianceStamped': POSE,
    'geometry_msgs/msg/TwistWithCovarianceStamped': TWIST,
    'geometry_msgs/msg/TwistStamped': {
        'linear_velocity': 'twist.linear', 'angular_velocity': 'twist.angular'
    },
    'geometry_msgs/msg/Twist': {'linear_velocity': 'linear', 'angular_velocity': 'angular'},
}  # fmt: skip


def at_path(message: Any, path: str) -> object:
    """Return a text, or the list of numbers, at a path of a message of the rosbags decoder."""
    value = functools.reduce(getattr, path.split('.'), message)
    if isinstance(value, str):
        return value
    if dataclasses.is_dataclass(value):
        # rosbags adds the name of the type to the numbers of a nested message.
        value = [number for number in dataclasses.astuple(value) if not isinstance(number, str)]
    return np.ravel(value).tolist()


@settings(max_examples=25)
@given(
    frame=st.text(st.characters(exclude_categories=['Cs', 'Cc']), max_size=17),
    child=st.text(st.characters(exclude_categories=['Cs', 'Cc']), max_size=17),
    stamp=st.integers(-(2**31) * 10**9, 2**31 * 10**9 - 1),
    type_name=st.sampled_from(list(MESSAGE_TYPES)),
)
def test_the_codec_agrees_with_the_decoder_of_rosbags(
    frame: str, child: str, stamp: int, type_name: str
) -> None:
    kind = MESSAGE_TYPES[type_name]
    array = next(a for a in drive(20).messages.values() if type(a) is kind.array).take(slice(0, 2))
    if kind.array.__name__ == 'TwistArray' and 'Covariance' not in type_name:
        array = dataclasses.replace(array, twist_covariance=np.zeros((2, 6, 6)))
    array = dataclasses.replace(array, frame=frame, stamp_ns=np.array([stamp, 5]))
    if kind.has_child:
        array = dataclasses.replace(array, child_frame=child)
    if not kind.has_header:
        array = dataclasses.replace(array, frame='', stamp_ns=array.arrival_ns)
    rows = encode(kind, array, 'here')
    for index, row in enumerate(rows):
        message = TYPESTORE.deserialize_cdr(row, type_name)
        # The other way round as well: rosbags serialises to the very same bytes.
        assert bytes(TYPESTORE.serialize_cdr(message, type_name)) == row, 'rosbags, same bytes'
        if kind.has_header:
            stamp_of = message.header.stamp
            assert stamp_of.sec * 10**9 + stamp_of.nanosec == array.stamp_ns[index]
            assert message.header.frame_id == array.frame
        paths = PATHS.get(type_name, {})
        names = [name for name, *_ in kind.fields if name] + ['child_frame'] * kind.has_child
        assert set(paths) <= set(names)
        for name in names:
            ours = getattr(array, name)
            ours = ours if isinstance(ours, str) else np.ravel(ours[index]).tolist()
            assert ours == at_path(message, paths.get(name, name)), name
    again = decode(kind, rows, array.arrival_ns, 'here').array
    assert arrays_equal(again, array)
    big = [
        bytes(TYPESTORE.serialize_cdr(TYPESTORE.deserialize_cdr(r, type_name), type_name,
                                      little_endian=False))
        for r in rows
    ]  # fmt: skip
    assert arrays_equal(decode(kind, big, array.arrival_ns, 'here').array, array)


@settings(max_examples=30)
@given(names=st.lists(st.text('abc_/', min_size=1, max_size=9), min_size=0, max_size=6))
def test_static_transforms_agree_with_the_decoder_of_rosbags(names: list[str]) -> None:
    transforms = [
        StaticTransform('base_link', name, (0.1 * i, -1.0, 2.0), (0.0, 0.6, 0.0, 0.8))
        for i, name in enumerate(names)
    ]
    row = encode_transforms(transforms, 12_345_678_901)
    message = TYPESTORE.deserialize_cdr(row, TF_TYPE)
    assert [t.child_frame_id for t in message.transforms] == names
    assert all(t.header.stamp.nanosec == 345_678_901 for t in message.transforms)
    assert bytes(TYPESTORE.serialize_cdr(message, TF_TYPE)) == row
    assert [transform for _, transform in decode_transforms(row, 'here')] == transforms
    for size in range(len(row)):
        with pytest.raises(RecordingError):
            decode_transforms(row[:size], 'here')
